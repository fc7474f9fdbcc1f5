//! Tasks that are meant by where they are: in a control group, in a PID namespace, below a command.
//! And whose ids those are that a task is asked for by.

use abi::raw;
use event::{GroupId, GroupName, Result, Tid};
use libbpf_rs::{MapCore, MapFlags, Object};

use crate::fill::fill;
use crate::object;

/// Who is meant beside those that are named. Newcomers are as they come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Of these control groups, and of all below them; at most 1024.
    pub groups: Vec<GroupId>,
    /// Of those that will be made and called so; at most 8.
    pub group_names: Vec<GroupName>,
    /// Of these PID namespaces, by the numbers of `/proc/PID/ns/pid`; at most 8.
    pub namespaces: Vec<u32>,
    /// This process and all that descend from it; an id of our own PID namespace.
    pub family: Option<Tid>,
    /// Who is named, or asked for by a priority, is meant in the family alone, and its others are
    /// not meant.
    pub family_named: bool,
}

impl Members {
    /// Whether nobody is meant.
    pub fn is_empty(&self) -> bool {
        *self == Members::default()
    }

    pub(crate) fn fill(&self, config: &mut raw::Config) -> Result<()> {
        let names: Vec<_> = self.group_names.iter().map(raw_name).collect();
        config.groups = u8::from(!self.groups.is_empty() || !names.is_empty());
        config.group_names_length =
            fill("names of control groups", &names, &mut config.group_names)?;
        config.namespaces_length =
            fill("PID namespaces", &self.namespaces, &mut config.namespaces)?;
        config.family = self.family.map_or(0, |process| process.0);
        config.family_named = u8::from(self.family_named);
        // The map has room for so many.
        fill(
            "control groups",
            &self.groups,
            &mut [GroupId {
                hierarchy: 0,
                id: 0,
            }; raw::GROUPS_MAX],
        )
        .map(drop)
    }

    /// Writes the groups that are there into the map of a loaded object.
    pub(crate) fn fill_map(&self, object: &Object) -> Result<()> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let map = object::map(object, "groups")?;
        for group in &self.groups {
            let key = raw::Group {
                id: group.id,
                hierarchy: group.hierarchy,
                padding: 0,
            };
            map.update(raw::bytes(&key), &[1], MapFlags::ANY)
                .map_err(|error| object::explain("name control groups to", &error))?;
        }
        Ok(())
    }
}

fn raw_name(name: &GroupName) -> raw::GroupName {
    let mut found: raw::GroupName = raw::zeroed();
    let (head, tail) = (name.head.as_bytes(), name.tail.as_bytes());
    // Who reads a name refuses longer ones.
    let head = &head[..head.len().min(GroupName::HEAD_BYTES_MAX)];
    let tail = &tail[..tail.len().min(GroupName::TAIL_BYTES_MAX)];
    found.head[..head.len()].copy_from_slice(head);
    found.tail[..tail.len()].copy_from_slice(tail);
    found.head_length = head.len() as u8;
    found.tail_length = tail.len() as u8;
    let last = name.head.rfind('/').map_or(0, |slash| slash + 1);
    found.last_length = (head.len() - last.min(head.len())) as u8;
    found.is_open = u8::from(name.is_open);
    found.is_whole = u8::from(name.is_whole);
    found
}

/// The number of the first PID namespace (`PROC_PID_INIT_INO` of include/linux/proc_ns.h).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Whether this process is in a PID namespace that is not the first, and how many namespaces above
/// its own that is whose ids `/proc` shows.
pub(crate) fn fill_namespace(config: &mut raw::Config) {
    let own = std::fs::read_link("/proc/self/ns/pid");
    config.in_namespace = u8::from(own.is_ok_and(|own| own.as_os_str() != FIRST_NAMESPACE));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    config.levels_up = levels_up(&status);
}

/// Of our ids, one for each namespace from that of `/proc` down to our own.
fn levels_up(status: &str) -> u32 {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let ids = line.map_or(1, |line| line.split_whitespace().count());
    ids.saturating_sub(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_that_proc_shows_may_be_those_of_a_namespace_above() {
        let check = |status: &str, expect: u32| assert_eq!(levels_up(status), expect, "{status}");
        check("Pid:\t5\nNSpid:\t5\n", 0);
        check("Pid:\t512\nNSpid:\t512\t5\n", 1);
        check("NSpid:\t9000\t512\t5\n", 2);
        check("Pid:\t5\n", 0);
    }

    #[test]
    fn a_watch_takes_so_many_names_and_refuses_more() {
        let check = |names: usize, expect: bool| {
            let name = GroupName::parse("docker-3f*.scope").expect("a name");
            let members = Members {
                group_names: vec![name; names],
                ..Members::default()
            };
            let mut config: raw::Config = raw::zeroed();
            assert_eq!(members.fill(&mut config).is_ok(), expect, "{names}");
            assert_eq!(config.groups, 1);
        };
        check(1, true);
        check(8, true);
        check(9, false);
        assert!(Members::default().is_empty());
    }
}
