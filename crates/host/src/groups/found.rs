//! What somebody asks for, and what of it is there.

use event::GroupName;

use super::hierarchy::Group;

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
