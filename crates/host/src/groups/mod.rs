//! Control groups, units and containers by the names that people have for them: found in the
//! folders of the kernel, without asking a daemon.
//!
//! # Design constraints
//! - Both versions of control groups, and both at once.
//! - A unit and a container that start again have a new control group: what is found has the names
//!   under which the kernel is to know the next one.
//! - All paths are below a root, so that tests have a machine of their own.

mod container;
mod engines;
mod found;
mod hierarchy;
mod limits;
mod quota;

use std::path::Path;

use event::{GroupName, Result};

pub use found::{Asked, Found};
pub use hierarchy::Group;
pub use limits::{GroupLimits, MemoryLimit, Weight, of_task};
pub use quota::{Kept, Quotas, out_of_quota};

use hierarchy::{Hierarchy, all};
pub(crate) use hierarchy::{folders_of, hierarchies};

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

#[cfg(test)]
mod tests {
    use super::hierarchy::hierarchies_in;
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
