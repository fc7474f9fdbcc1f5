//! The mounted hierarchies of control groups, and the groups in them.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use event::GroupId;

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// As the kernel numbers it.
    pub id: GroupId,
    /// From its hierarchy's root on, as `/proc/PID/cgroup` shows it.
    pub path: String,
}

/// All groups whose path passes, the topmost alone of those that lie in each other.
pub(super) fn all(root: &Path, passes: impl Fn(&str) -> bool) -> Vec<Group> {
    let mut found = Vec::new();
    for hierarchy in hierarchies(root) {
        let folder = root.join(
            hierarchy
                .mount
                .strip_prefix("/")
                .unwrap_or(&hierarchy.mount),
        );
        let mut folders = vec![(folder, String::new())];
        while let Some((folder, path)) = folders.pop() {
            if !path.is_empty() && passes(&path) {
                if let Ok(inode) = folder.metadata().map(|entry| entry.ino()) {
                    let id = GroupId {
                        hierarchy: hierarchy.number,
                        id: inode,
                    };
                    found.push(Group { id, path });
                }
                continue;
            }
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.extend(groups.filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                Some((entry.path(), format!("{path}/{name}")))
            }));
        }
    }
    found.sort_by(|one, other| {
        (one.id.hierarchy, &one.path).cmp(&(other.id.hierarchy, &other.path))
    });
    found
}

/// A mounted hierarchy of control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub mount: PathBuf,
    pub number: u32,
}

/// The folders of the group that a line of `/proc/PID/cgroup` names, and of those above it.
pub(crate) fn folders_of(hierarchies: &[Hierarchy], line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':');
    let number = parts.next().and_then(|word| word.parse().ok());
    let hierarchy = hierarchies.iter().find(|one| Some(one.number) == number);
    let Some((hierarchy, path)) = hierarchy.zip(parts.nth(1)) else {
        return Vec::new();
    };
    let above = Path::new(path).ancestors();
    let inside = above.map(|path| path.strip_prefix("/").unwrap_or(path));
    inside.map(|path| hierarchy.mount.join(path)).collect()
}

/// Each once, however often it is mounted.
pub(crate) fn hierarchies(root: &Path) -> Vec<Hierarchy> {
    let text = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_default();
    hierarchies_in(&text("proc/self/mounts"), &text("proc/self/cgroup"))
}

pub(super) fn hierarchies_in(mounts: &str, own: &str) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = Vec::new();
    for line in mounts.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, mount, kind, options, ..] = words[..] else {
            continue;
        };
        let number = match kind {
            "cgroup2" => Some(0),
            "cgroup" => number_of(own, options),
            _ => None,
        };
        let Some(number) = number else { continue };
        if found.iter().all(|known| known.number != number) {
            let mount = PathBuf::from(mount);
            found.push(Hierarchy { mount, number });
        }
    }
    found
}

/// The hierarchy of version 1 that has all the controllers of a mount.
fn number_of(own: &str, options: &str) -> Option<u32> {
    let options: Vec<&str> = options.split(',').collect();
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers) = (parts.next()?, parts.next()?);
        let mut controllers = controllers.split(',');
        let is_it = controllers.all(|one| !one.is_empty() && options.contains(&one));
        is_it.then(|| number.parse().ok()).flatten()
    })
}
