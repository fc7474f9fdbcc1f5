//! The kernel's threads through which the work of others passes: one table for the ledger, the
//! watch in the kernel and the advice.

/// Threads whose names begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelThreads {
    /// What their names begin with.
    pub prefix: &'static str,
    /// What they do is the work of others: nobody's own real-time work.
    pub passes_work_on: bool,
    /// The kernel binds them to a CPU, or refuses to move them or to change their priority.
    pub bound: bool,
}

/// By the kernel's own names: `kernel/irq/manage.c`, `kernel/softirq.c`, `kernel/stop_machine.c`,
/// `kernel/workqueue.c`, `net/core/dev.c`, `kernel/rcu/`, `kernel/cpu.c`, `drivers/idle/`,
/// `mm/backing-dev.c`. The watch's programs are compiled from it.
pub const KERNEL_THREADS: &[KernelThreads] = &[
    both("irq/"),
    both("ksoftirqd/"),
    both("ktimers/"),
    both("irq_work/"),
    both("migration/"),
    // A busy poller of the network is moved like any task.
    KernelThreads {
        prefix: "napi/",
        passes_work_on: true,
        bound: false,
    },
    both("kworker/"),
    both("rcuc/"),
    both("cpuhp/"),
    both("backlog_napi/"),
    both("idle_inject/"),
];

const fn both(prefix: &'static str) -> KernelThreads {
    KernelThreads {
        prefix,
        passes_work_on: true,
        bound: true,
    }
}

/// The kinds to which a thread of this name belongs, if it is the kernel's.
fn of(comm: &[u8]) -> Option<&'static KernelThreads> {
    let mut all = KERNEL_THREADS.iter();
    all.find(|threads| comm.starts_with(threads.prefix.as_bytes()))
}

/// Whether a thread of this name only passes on the work of others.
pub fn passes_work_on(comm: &[u8]) -> bool {
    of(comm).is_some_and(|threads| threads.passes_work_on)
}

/// Whether the kernel binds a thread of this name: moving it is refused.
pub fn is_bound(comm: &[u8]) -> bool {
    of(comm).is_some_and(|threads| threads.bound)
}

/// Whether a thread of this name is of the stop class, above every priority.
pub fn is_stop_class(comm: &[u8]) -> bool {
    let number = comm.strip_prefix(b"migration/");
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// What the names of further kernel threads begin with that are real-time tasks: `kernel/rcu/`,
/// `kernel/watchdog.c`, `kernel/time/posix-cpu-timers.c`, `kernel/sched/`, `drivers/gpu/drm/`.
const FURTHER: [&str; 8] = [
    "rcu",
    "watchdog",
    "posixcputmr/",
    "psimon",
    "sugov:",
    "kthreadd",
    "card0-crtc",
    "card1-crtc",
];

/// Whether the kernel gives this name to a thread of its own; a program may take it too.
pub fn is_kernels_name(comm: &[u8]) -> bool {
    let mut further = FURTHER.iter();
    of(comm).is_some() || further.any(|prefix| comm.starts_with(prefix.as_bytes()))
}

/// The interrupt whose handler's thread has this name: `irq/N-…`, `irq/N-s-…`.
pub fn irq_of_thread(comm: &[u8]) -> Option<i32> {
    let rest = comm.strip_prefix(b"irq/")?;
    let end = rest.iter().position(|byte| *byte == b'-')?;
    let number = &rest[..end];
    let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(number).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_pass_work_on_are_known_by_how_their_names_begin() {
        let check = |comm: &str, passes: bool, bound: bool| {
            assert_eq!(passes_work_on(comm.as_bytes()), passes, "{comm}");
            assert_eq!(is_bound(comm.as_bytes()), bound, "{comm}");
        };
        check("irq/24-snd", true, true);
        check("ksoftirqd/0", true, true);
        check("kworker/0:1H-kb", true, true);
        check("napi/eth0-8193", true, false);
        check("cpuhp/1", true, true);
        check("jackd", false, false);
        check("ksoftirqd", false, false);
        check("", false, false);
    }

    #[test]
    fn a_thread_with_a_name_of_the_kernels_is_told_from_the_users() {
        let check = |comm: &str, expect: bool| {
            assert_eq!(is_kernels_name(comm.as_bytes()), expect, "{comm}");
        };
        check("rcub/0", true);
        check("irq/24-snd", true);
        check("migration/1", true);
        check("posixcputmr/0", true);
        check("jackd", false);
        check("recorder", false);
    }

    #[test]
    fn the_number_of_a_threaded_interrupt_stands_between_slash_and_dash() {
        let check = |comm: &str, expect: Option<i32>| {
            assert_eq!(irq_of_thread(comm.as_bytes()), expect, "{comm}");
        };
        check("irq/24-snd", Some(24));
        check("irq/36-x", Some(36));
        check("irq/9 a b", None);
        check("irq/-1-x", None);
        check("irq/+1-x", None);
        check("irq/99999999999-", None);
        check("jackd", None);
    }
}
