//! PID namespaces: what a task is called in each, and which one a process is in.

use std::path::Path;

/// The number of the first PID namespace (`PROC_PID_INIT_INO` of include/linux/proc_ns.h).
const FIRST: u32 = 4_026_531_836;

/// A task's ids by the text of `/proc/PID/status`, from the namespace of `/proc` down to its own.
pub fn ids(status: &str) -> Vec<i32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let words = line.unwrap_or_default().split_whitespace();
    words.filter_map(|id| id.parse().ok()).collect()
}

/// The number of a process's PID namespace, by its folder in `/proc`; none where it may not be
/// known.
pub fn of(folder: &Path) -> Option<u32> {
    let link = std::fs::read_link(folder.join("ns/pid")).ok()?;
    let number = link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?;
    number.parse().ok()
}

/// Whether this process is in a PID namespace that is not the first: its ids are not the kernel's.
pub fn is_inside() -> bool {
    of(Path::new("/proc/self")) != Some(FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_an_id_in_each_namespace_down_to_its_own() {
        let check = |status: &str, expect: &[i32]| assert_eq!(ids(status), expect);
        check("Name:\tx\nNSpid:\t512\t7\n", &[512, 7]);
        check("NSpid:\t512\n", &[512]);
        check("Name:\tx\n", &[]);
        assert!(of(Path::new("/proc/self")).is_some());
    }
}
