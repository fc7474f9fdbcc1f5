//! Which events a report cannot do without, and how they are recorded.

use event::EventClass;

/// Events of which a report needs at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Their names, in all generations; one that ends in `_` begins many names.
    pub names: &'static [&'static str],
    /// The sets of `rtscope record --events` that have them; none for what only programs emit.
    pub set: &'static str,
    /// What any event that carries one of these has to say is enough.
    pub contexts: &'static [&'static str],
}

pub(super) const SWITCHES: Need = Need {
    names: &["sched_switch"],
    set: "sched",
    contexts: &[],
};
pub(super) const WAKE_UPS: Need = Need {
    names: &["sched_waking", "sched_wakeup"],
    set: "sched",
    contexts: &[],
};
pub(super) const INTERRUPTS: Need = Need {
    names: &["irq_handler_entry", "irq_softirq_entry", "softirq_entry"],
    set: "irq,softirq",
    contexts: &[],
};
pub(super) const SYSTEM_CALLS: Need = Need {
    names: &["syscall_entry_", "sys_", "compat_syscall_entry_"],
    set: "syscall",
    contexts: &[],
};
pub(super) const REQUESTS: Need = Need {
    names: &[
        "syscall_entry_",
        "sys_",
        "compat_syscall_entry_",
        "block_rq_issue",
        "net_dev_xmit",
        "netif_receive_skb",
        "net_if_receive_skb",
    ],
    set: "syscall,block,net",
    contexts: &[],
};
pub(super) const PAGES: Need = Need {
    names: &["kmem_mm_page_alloc", "mm_page_alloc"],
    set: "mm",
    contexts: &[],
};

pub(super) const FUNCTIONS: Need = Need {
    names: &[
        "lttng_ust_cyg_profile:func_entry",
        "lttng_ust_cyg_profile_fast:func_entry",
        "funcgraph_entry",
    ],
    set: "",
    contexts: &["callstack_kernel", "callstack_user"],
};

impl Need {
    /// Whether events of this class are among them.
    pub fn is_met_by(&self, class: &EventClass) -> bool {
        let kernel_name = class.kernel_name();
        let is_one = |name: &str| match name.ends_with('_') {
            true => kernel_name.starts_with(name),
            false => kernel_name == name,
        };
        let carries = |context: &&str| class.field(context).is_some();
        self.names.iter().any(|name| is_one(name)) || self.contexts.iter().any(carries)
    }
}
