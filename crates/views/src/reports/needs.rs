//! Which events a report cannot do without, and how they are recorded.

use event::EventClass;

/// Events of which a report needs at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Their names, in all generations; one that ends in `_` begins many names.
    pub names: &'static [&'static str],
    /// The sets of `rtscope record --events` that have them; none for what only programs emit.
    pub set: &'static str,
}

pub(super) const SWITCHES: Need = Need {
    names: &["sched_switch"],
    set: "sched",
};
pub(super) const WAKE_UPS: Need = Need {
    names: &["sched_waking", "sched_wakeup"],
    set: "sched",
};
pub(super) const INTERRUPTS: Need = Need {
    names: &["irq_handler_entry", "irq_softirq_entry", "softirq_entry"],
    set: "irq,softirq",
};
pub(super) const SYSTEM_CALLS: Need = Need {
    names: &["syscall_entry_", "sys_"],
    set: "syscall",
};
pub(super) const REQUESTS: Need = Need {
    names: &[
        "syscall_entry_",
        "sys_",
        "block_rq_issue",
        "net_dev_xmit",
        "netif_receive_skb",
        "net_if_receive_skb",
    ],
    set: "syscall,block,net",
};
pub(super) const PAGES: Need = Need {
    names: &["kmem_mm_page_alloc", "mm_page_alloc"],
    set: "mm",
};

pub(super) const FUNCTIONS: Need = Need {
    names: &[
        "lttng_ust_cyg_profile:func_entry",
        "lttng_ust_cyg_profile_fast:func_entry",
        "funcgraph_entry",
    ],
    set: "",
};

impl Need {
    /// Whether events of this class are among them.
    pub fn is_met_by(&self, class: &EventClass) -> bool {
        let kernel_name = class.kernel_name();
        let is_one = |name: &str| match name.ends_with('_') {
            true => kernel_name.starts_with(name),
            false => kernel_name == name,
        };
        self.names.iter().any(|name| is_one(name))
    }
}
