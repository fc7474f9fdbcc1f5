//! Which events a report cannot do without, and how they are recorded.

use event::EventClass;

use super::options::Family;

/// Events of which a report needs at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Their names, in all generations; one that ends in `_` begins many names.
    pub names: &'static [&'static str],
    /// The sets of `rtscope record --events` that have them; none for what only programs emit.
    pub set: &'static str,
}

const SWITCHES: Need = Need {
    names: &["sched_switch"],
    set: "sched",
};
const WAKE_UPS: Need = Need {
    names: &["sched_waking", "sched_wakeup"],
    set: "sched",
};
const INTERRUPTS: Need = Need {
    names: &["irq_handler_entry", "irq_softirq_entry", "softirq_entry"],
    set: "irq,softirq",
};
const CALLS: Need = Need {
    names: &["syscall_entry_", "sys_"],
    set: "syscall",
};
const REQUESTS: Need = Need {
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
const PAGES: Need = Need {
    names: &["kmem_mm_page_alloc", "mm_page_alloc"],
    set: "mm",
};

const FUNCTIONS: Need = Need {
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

impl Family {
    /// What its reports need.
    pub fn needs(self) -> &'static [Need] {
        match self {
            Family::Cpu => &[SWITCHES],
            Family::Sched => &[SWITCHES, WAKE_UPS],
            Family::Irq => &[INTERRUPTS],
            Family::Io => &[SWITCHES, REQUESTS],
            Family::Memory => &[SWITCHES, PAGES],
            Family::Syscalls => &[SWITCHES, CALLS],
            // Who asks for hosts is refused without their packets.
            Family::Periods | Family::Intervals | Family::Hosts => &[],
            Family::Irqs => &[INTERRUPTS],
            Family::Dependency | Family::CriticalPath => &[SWITCHES, WAKE_UPS],
            Family::Futexes => &[SWITCHES, WAKE_UPS, CALLS],
            Family::RtCheck | Family::States | Family::Resources => &[SWITCHES],
            Family::Flame => &[FUNCTIONS],
        }
    }

    /// What its reports need and a trace of these classes cannot have.
    pub fn missing(self, classes: &[EventClass]) -> Vec<Need> {
        let has = |need: &Need| classes.iter().any(|class| need.is_met_by(class));
        let needs = self.needs().iter();
        needs.filter(|need| !has(need)).copied().collect()
    }
}
