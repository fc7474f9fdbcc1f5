//! Which tasks are meant: by name, by id, by class.

use event::{Prio, Tid};

/// Which tasks' activations are looked at. A task is meant when any part names it; a filter that
/// names nothing means all real-time tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Patterns of thread names, with `*` and `?`. Names are cut at 15 bytes by the kernel, and a
    /// longer pattern without `*` is cut the same way.
    pub names: Vec<String>,
    /// Thread ids.
    pub tids: Vec<Tid>,
    /// All tasks of a real-time or deadline priority, except those that only pass work on
    /// (threaded interrupts, `ksoftirqd`, `ktimers`, `migration`, …).
    pub real_time: bool,
}

/// The kernel's `TASK_COMM_LEN` without its final zero.
const COMM_BYTES: usize = 15;

impl TaskFilter {
    /// Whether the filter names tasks itself (by name or tid).
    pub fn is_explicit(&self) -> bool {
        !self.names.is_empty() || !self.tids.is_empty()
    }

    /// Whether the task is meant.
    pub fn matches(&self, tid: Tid, comm: &[u8], prio: Prio) -> bool {
        if tid.is_idle() {
            return false;
        }
        if self.tids.contains(&tid) || self.names.iter().any(|name| name_matches(name, comm)) {
            return true;
        }
        let by_class = self.real_time || !self.is_explicit();
        by_class && prio.is_real_time() && !passes_work_on(comm)
    }
}

fn name_matches(pattern: &str, comm: &[u8]) -> bool {
    let pattern = pattern.as_bytes();
    let literal = !pattern.iter().any(|byte| matches!(byte, b'*' | b'?'));
    let cut = if literal {
        pattern.len().min(COMM_BYTES)
    } else {
        pattern.len()
    };
    glob(&pattern[..cut], comm)
}

/// Whether `text` matches `pattern`, in which `*` is any run of bytes and `?` any one byte.
/// Linear in the text for each `*`: only the last star is ever reconsidered.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star_p, star_t)) = star else {
                    return false;
                };
                star = Some((star_p, star_t + 1));
                p = star_p + 1;
                t = star_t + 1;
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Kernel threads through which the work of others passes; the names are the kernel's own
/// (`kernel/irq/manage.c`, `kernel/softirq.c`, `kernel/stop_machine.c`, `kernel/workqueue.c`).
const PASS_THROUGH: [&[u8]; 7] = [
    b"irq/",
    b"ksoftirqd/",
    b"ktimers/",
    b"migration/",
    b"napi/",
    b"kworker/",
    b"rcuc/",
];

/// Whether a thread of this name only passes on the work of others.
pub fn passes_work_on(comm: &[u8]) -> bool {
    PASS_THROUGH.iter().any(|prefix| comm.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_as_shells_do_and_long_names_are_cut_as_the_kernel_does() {
        let check = |pattern: &str, comm: &str, expect: bool| {
            assert_eq!(
                name_matches(pattern, comm.as_bytes()),
                expect,
                "{pattern} {comm}"
            );
        };
        check("jackd", "jackd", true);
        check("jackd", "jackdbus", false);
        check("jack*", "jackdbus", true);
        check("*d", "jackd", true);
        check("?ackd", "jackd", true);
        check("*a*b*c", "xxaxxbxxc", true);
        check("*a*b*c", "xxaxxcxxb", false);
        check("Client management", "Client manageme", true);
        check("", "jackd", false);
    }

    #[test]
    fn a_filter_that_names_nothing_means_real_time_tasks_that_are_their_own() {
        let check = |filter: &TaskFilter, tid: i32, comm: &str, prio: i32, expect: bool| {
            assert_eq!(
                filter.matches(Tid(tid), comm.as_bytes(), Prio(prio)),
                expect,
                "{comm}"
            );
        };
        let default = TaskFilter::default();
        check(&default, 7, "jackd", 89, true);
        check(&default, 7, "bash", 120, false);
        check(&default, 7, "irq/24-snd", 49, false);
        check(&default, 0, "swapper/0", 120, false);
        let named = TaskFilter {
            names: vec!["irq/24*".into()],
            ..TaskFilter::default()
        };
        check(&named, 7, "irq/24-snd", 49, true);
        check(&named, 8, "jackd", 89, false);
        let by_tid = TaskFilter {
            tids: vec![Tid(8)],
            real_time: true,
            ..TaskFilter::default()
        };
        check(&by_tid, 8, "bash", 120, true);
        check(&by_tid, 9, "jackd", 89, true);
    }
}
