//! The named sets of events: patterns over `system:name`.

/// What `record` and the flight recorder take when nothing is asked for: every event that the
/// ledger needs to name a culprit, and no more.
pub(crate) const DEFAULT: &str = "default";

/// Every set with its patterns. A pattern that matches nothing on this kernel is reported, not
/// fatal.
pub(crate) const SETS: &[(&str, &[&str])] = &[
    (
        DEFAULT,
        &[
            "sched:sched_switch",
            "sched:sched_waking",
            "sched:sched_wakeup",
            "sched:sched_wakeup_new",
            "sched:sched_migrate_task",
            "sched:sched_pi_setprio",
            "sched:sched_process_fork",
            "sched:sched_process_exec",
            "sched:sched_process_exit",
            "sched:sched_process_free",
            "task:task_newtask",
            "task:task_rename",
            "signal:signal_generate",
            "block:block_rq_issue",
            "block:block_rq_complete",
            "cgroup:cgroup_attach_task",
            "cgroup:cgroup_freeze",
            "cgroup:cgroup_unfreeze",
            "irq:irq_handler_entry",
            "irq:irq_handler_exit",
            "irq:softirq_*",
            "irq_vectors:*_entry",
            "irq_vectors:*_exit",
            "timer:hrtimer_start",
            "timer:hrtimer_expire_*",
            "timer:hrtimer_cancel",
            "nmi:nmi_handler",
            "power:cpu_idle",
            "exceptions:page_fault_*",
            "lock:contention_*",
            "ipi:ipi_*",
        ],
    ),
    (
        "sched",
        &["sched:*", "task:task_newtask", "task:task_rename"],
    ),
    (
        "irq",
        &[
            "irq:irq_handler_*",
            "irq_vectors:*_entry",
            "irq_vectors:*_exit",
        ],
    ),
    ("softirq", &["irq:softirq_*", "irq:tasklet_*"]),
    ("timer", &["timer:*"]),
    ("nmi", &["nmi:*"]),
    ("trap", &["exceptions:*"]),
    ("syscall", &["syscalls:*"]),
    (
        "futex",
        &["syscalls:sys_enter_futex", "syscalls:sys_exit_futex"],
    ),
    ("block", &["block:*"]),
    ("net", &["net:*", "napi:*", "skb:*"]),
    ("ipi", &["ipi:*"]),
    ("idle", &["power:cpu_idle*"]),
    ("lock", &["lock:*"]),
    ("workqueue", &["workqueue:*"]),
    (
        "mm",
        &[
            "kmem:*",
            "vmscan:*",
            "compaction:*",
            "exceptions:page_fault_*",
        ],
    ),
    ("signal", &["signal:*"]),
    ("power", &["power:*"]),
    // System calls have events of their own in `syscalls`; the raw ones would say it twice.
    ("all", &["*:*", "!raw_syscalls:*"]),
];

/// The patterns of the set `name`.
pub(crate) fn patterns(name: &str) -> Option<&'static [&'static str]> {
    SETS.iter()
        .find_map(|(set, patterns)| (*set == name).then_some(*patterns))
}
