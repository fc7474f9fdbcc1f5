//! Control groups and how they are named: the same rule for those that are there and for those that
//! the kernel sees being made.

use crate::{Error, ErrorKind, Result};

/// A control group as the kernel numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    /// Its hierarchy; 0 is that of version 2.
    pub hierarchy: u32,
    /// Its folder's inode there.
    pub id: u64,
}

/// How control groups are called: by the last components of their paths, as in `web.service`,
/// `docker/3f*` or `/system.slice/web.service`. The last one may hold one `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupName {
    /// What it begins with.
    pub head: String,
    /// What it ends with, behind the `*`.
    pub tail: String,
    /// How many components of the path these are.
    pub components: u8,
    /// There is a `*`.
    pub is_open: bool,
    /// It begins at the root.
    pub is_whole: bool,
}

impl GroupName {
    /// The longest head that the kernel compares.
    pub const HEAD_BYTES_MAX: usize = 127;
    /// The longest tail.
    pub const TAIL_BYTES_MAX: usize = 31;

    /// Reads a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for one that no control group can have, and for one that is too
    /// long or too general for the kernel to look for.
    pub fn parse(text: &str) -> Result<GroupName> {
        let refuse =
            |what: &str| {
                Error::new(ErrorKind::InvalidInput, what)
                .found(format!("'{text}'"))
                .fix("give a name (web.service, 'worker@*.service') or a path as /proc/PID/cgroup \
                      has it; systemd-cgls shows them")
            };
        let name = text.strip_prefix('/').unwrap_or(text);
        let name = name.strip_suffix('/').unwrap_or(name);
        if name.is_empty() {
            return Err(refuse("the group of all tasks is none to choose"));
        }
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(refuse("not the path of a control group"));
        }
        let (head, tail) = name.split_once('*').unwrap_or((name, ""));
        if tail.contains(['*', '/']) {
            return Err(refuse(
                "a control group's name takes one '*', in its last part",
            ));
        }
        if head.len() > Self::HEAD_BYTES_MAX || tail.len() > Self::TAIL_BYTES_MAX {
            return Err(refuse("the name of a control group is too long"));
        }
        let components = name.split('/').count();
        Ok(GroupName {
            head: head.to_owned(),
            tail: tail.to_owned(),
            // Each has a byte at least.
            components: components as u8,
            is_open: name.contains('*'),
            is_whole: text.starts_with('/'),
        })
    }

    /// Whether a control group of this path, from the root on, is called so.
    pub fn matches(&self, path: &str) -> bool {
        let mut begin = path.len();
        for _ in 0..self.components {
            match path[..begin].rfind('/') {
                Some(slash) => begin = slash,
                None => return false,
            }
        }
        let name = &path[begin..];
        let Some(name) = name.strip_prefix('/') else {
            return false;
        };
        if self.is_whole && begin > 0 {
            return false;
        }
        let rest = name.strip_prefix(self.head.as_str());
        let rest = rest.and_then(|rest| rest.strip_suffix(self.tail.as_str()));
        rest.is_some_and(|rest| self.is_open || rest.is_empty())
    }
}

/// As it is typed.
impl std::fmt::Display for GroupName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slash = if self.is_whole { "/" } else { "" };
        let star = if self.is_open { "*" } else { "" };
        write!(f, "{slash}{}{star}{}", self.head, self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_by_the_end_of_its_path() {
        let check = |name: &str, path: &str, expect: bool| {
            let parsed = GroupName::parse(name).expect("a name");
            assert_eq!(parsed.matches(path), expect, "{name} {path}");
            assert_eq!(GroupName::parse(&parsed.to_string()).ok(), Some(parsed));
        };
        check("web.service", "/system.slice/web.service", true);
        check("web.service", "/web.service", true);
        check("web.service", "/system.slice/myweb.service", false);
        check("web.service", "/system.slice/web.service/inner", false);
        check("web.service", "/system.slice/web.service2", false);
        check("docker-3f*.scope", "/system.slice/docker-3fa9.scope", true);
        check("docker-3f*.scope", "/system.slice/docker-3f.scope", true);
        check("docker-3f*.scope", "/system.slice/docker-3g.scope", false);
        check("docker/3f*", "/docker/3fa9", true);
        check("docker/3f*", "/a/docker/3fa9", true);
        check("docker/3f*", "/docker/3fa9/init", false);
        check("docker/3f*", "/3fa9", false);
        check("/a/b", "/a/b", true);
        check("/a/b", "/x/a/b", false);
        check("/a/b", "/b", false);
        check("a*", "/", false);
        check("*", "/x", true);
        check("aa*aa", "/aaa", false);
    }

    #[test]
    fn what_names_no_group_or_too_many_is_refused() {
        let long = "x".repeat(GroupName::HEAD_BYTES_MAX + 1);
        for wrong in [
            "", "/", "//", "a//b", "../a", "a/./b", "a*b*", "a*/b", &long,
        ] {
            let error = GroupName::parse(wrong).expect_err(wrong);
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong}");
        }
    }
}
