//! Control groups, units and containers by the names that people have for them: found in the folders
//! of the kernel, without asking a daemon.
//!
//! # Design constraints
//! - Both versions of control groups, and both at once.
//! - A unit and a container that start again have a new control group: what is found has the names
//!   under which the kernel is to know the next one.
//! - All paths are below a root, so that tests have a machine of their own.

mod container;
mod engines;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use event::{GroupId, GroupName, Result};

/// What somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A control group, by its path or the end of it.
    Cgroup(String),
    /// A unit of systemd.
    Unit(String),
    /// A container, by its name or id.
    Container(String),
}

impl std::fmt::Display for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Asked::Cgroup(name) => write!(f, "control group {name}"),
            Asked::Unit(name) => write!(f, "unit {name}"),
            Asked::Container(name) => write!(f, "container {name}"),
        }
    }
}

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// As the kernel numbers it.
    pub id: GroupId,
    /// From its hierarchy's root on, as `/proc/PID/cgroup` shows it.
    pub path: String,
}

/// What somebody asked for, as far as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What that was.
    pub asked: Asked,
    /// The groups of that name, of every hierarchy.
    pub groups: Vec<Group>,
    /// What it may be called when it is made again, or at last.
    pub names: Vec<GroupName>,
    /// Its PID namespaces, where no control group tells a container.
    pub namespaces: Vec<u32>,
}

impl Found {
    /// Whether it is not there.
    pub fn is_absent(&self) -> bool {
        self.groups.is_empty() && self.namespaces.is_empty()
    }

    /// Whether a thread with this text of `/proc/PID/cgroup`, in this PID namespace, belongs to it.
    pub fn has_member(&self, cgroups: &str, namespace: Option<u32>) -> bool {
        let by_namespace = namespace.is_some_and(|number| self.namespaces.contains(&number));
        by_namespace
            || memberships(cgroups).any(|(hierarchy, path)| {
                self.groups.iter().any(|group| {
                    let below = path.strip_prefix(group.path.as_str());
                    group.id.hierarchy == hierarchy
                        && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
            })
    }
}

/// Hierarchy and path of each line of `/proc/PID/cgroup`.
fn memberships(cgroups: &str) -> impl Iterator<Item = (u32, &str)> {
    cgroups.lines().filter_map(|line| {
        let (hierarchy, rest) = line.split_once(':')?;
        let (_, path) = rest.split_once(':')?;
        Some((hierarchy.parse().ok()?, path))
    })
}

/// Looks for what somebody asked for, on the machine below `root`.
///
/// # Errors
/// [`event::ErrorKind::InvalidInput`] for a name that nothing can have.
pub fn find(root: &Path, asked: &Asked) -> Result<Found> {
    match asked {
        Asked::Cgroup(name) => {
            let hierarchies = hierarchies(root);
            let below = |hierarchy: &Hierarchy| {
                let rest = Path::new(name).strip_prefix(&hierarchy.mount).ok()?;
                Some(format!("/{}", rest.display()))
            };
            // A path in the file system is one of a hierarchy.
            let inside = hierarchies.iter().find_map(below);
            let name = GroupName::parse(inside.as_ref().unwrap_or(name))?;
            Ok(called(root, asked, vec![name]))
        }
        Asked::Unit(name) => Ok(called(root, asked, vec![GroupName::parse(&unit(name))?])),
        Asked::Container(name) => container::find(root, asked, name),
    }
}

/// The full name of a unit; one without a kind is a service.
fn unit(name: &str) -> String {
    const KINDS: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];
    match KINDS.iter().any(|kind| name.ends_with(kind)) {
        true => name.to_owned(),
        false => format!("{name}.service"),
    }
}

/// The groups of these names.
fn called(root: &Path, asked: &Asked, names: Vec<GroupName>) -> Found {
    let is_meant = |path: &str| names.iter().any(|name| name.matches(path));
    Found {
        groups: all(root, is_meant),
        asked: asked.clone(),
        names,
        namespaces: Vec::new(),
    }
}

/// All groups whose path passes, the topmost alone of those that lie in each other.
fn all(root: &Path, passes: impl Fn(&str) -> bool) -> Vec<Group> {
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
struct Hierarchy {
    mount: PathBuf,
    number: u32,
}

/// Each once, however often it is mounted.
fn hierarchies(root: &Path) -> Vec<Hierarchy> {
    let text = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_default();
    hierarchies_in(&text("proc/self/mounts"), &text("proc/self/cgroup"))
}

fn hierarchies_in(mounts: &str, own: &str) -> Vec<Hierarchy> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /cg/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n\
        cgroup /cg/systemd cgroup rw,xattr,name=systemd 0 0\n\
        cgroup2 /cg/unified cgroup2 rw 0 0\n\
        cgroup2 /elsewhere cgroup2 rw 0 0\n";
    const OWN: &str = "7:cpu,cpuacct:/\n2:name=systemd:/\n0::/\n";

    /// A machine with these folders of control groups.
    pub(super) fn machine(groups: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        std::fs::create_dir_all(root.join("proc/self")).expect("made");
        std::fs::write(root.join("proc/self/mounts"), MOUNTS).expect("written");
        std::fs::write(root.join("proc/self/cgroup"), OWN).expect("written");
        for group in groups {
            std::fs::create_dir_all(root.join(group)).expect("made");
        }
        folder
    }

    /// Hierarchy and path of what is found, a word each.
    pub(super) fn found(root: &Path, asked: &Asked) -> Vec<String> {
        let found = find(root, asked).expect("a name");
        let groups = found.groups.iter();
        groups
            .map(|group| format!("{}:{}", group.id.hierarchy, group.path))
            .collect()
    }

    #[test]
    fn every_hierarchy_is_found_once_with_the_kernels_number() {
        let found = hierarchies_in(MOUNTS, OWN);
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.mount.to_str().expect("text"), one.number))
            .collect();
        assert_eq!(
            found,
            [("/cg/cpu", 7), ("/cg/systemd", 2), ("/cg/unified", 0)]
        );
    }

    #[test]
    fn a_group_is_found_by_path_name_and_unit_in_every_hierarchy() {
        let machine = machine(&[
            "cg/unified/system.slice/web.service/inner",
            "cg/cpu/system.slice/web.service",
            "cg/unified/user.slice/user-1000.slice/web.scope",
            "cg/unified/system.slice/worker@1.service",
            "cg/unified/system.slice/worker@2.service",
        ]);
        let check = |asked: Asked, expect: &[&str]| {
            assert_eq!(found(machine.path(), &asked), expect, "{asked}");
        };
        let cgroup = |text: &str| Asked::Cgroup(text.to_owned());
        let unit = |text: &str| Asked::Unit(text.to_owned());
        let web = ["0:/system.slice/web.service", "7:/system.slice/web.service"];
        check(unit("web"), &web);
        check(unit("web.service"), &web);
        check(
            unit("web.scope"),
            &["0:/user.slice/user-1000.slice/web.scope"],
        );
        check(cgroup("system.slice/web.service"), &web);
        check(cgroup("/system.slice/web.service"), &web);
        check(cgroup("/web.service"), &[]);
        check(cgroup("/cg/cpu/system.slice/web.service"), &web);
        check(
            unit("worker@*"),
            &[
                "0:/system.slice/worker@1.service",
                "0:/system.slice/worker@2.service",
            ],
        );
        check(unit("nobody"), &[]);
        assert!(find(machine.path(), &cgroup("/")).is_err());
    }

    #[test]
    fn a_member_is_of_the_group_or_below_it_in_its_hierarchy() {
        let machine = machine(&["cg/cpu/a/b"]);
        let found = find(machine.path(), &Asked::Cgroup("b".into())).expect("a name");
        let check = |cgroups: &str, expect: bool| {
            assert_eq!(found.has_member(cgroups, None), expect, "{cgroups}");
        };
        check("7:cpu,cpuacct:/a/b\n0::/\n", true);
        check("7:cpu,cpuacct:/a/b/c\n", true);
        check("7:cpu,cpuacct:/a/bc\n", false);
        check("7:cpu,cpuacct:/a\n", false);
        check("0::/a/b\n", false);
        check("7:cpu,cpuacct:/a/b:c\n", false);
    }
}
