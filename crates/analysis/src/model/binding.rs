//! Event classes bound once to what the model knows about them, with their field ids.

use event::{EventClass, FieldId};
use trace::Trace;

/// Fields of an event about one task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskFields {
    pub comm: FieldId,
    pub tid: FieldId,
    pub prio: FieldId,
    /// `target_cpu` or `dest_cpu`.
    pub cpu: Option<FieldId>,
}

/// Fields of `sched_switch`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchFields {
    pub prev: TaskFields,
    pub prev_state: FieldId,
    pub next: TaskFields,
}

/// An event class that the model understands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    Switch(SwitchFields),
    Waking(TaskFields),
    Wakeup(TaskFields),
    WakeupNew(TaskFields),
    Migrate {
        tid: FieldId,
        dest: FieldId,
    },
    PiSetprio {
        tid: FieldId,
        prio: FieldId,
    },
    IrqEntry {
        irq: FieldId,
        name: Option<FieldId>,
    },
    IrqExit {
        irq: FieldId,
    },
    /// An interrupt vector with a negative number, see [`crate::Step::id`].
    VectorEntry(i32),
    VectorExit(i32),
    SoftirqRaise {
        vec: FieldId,
    },
    SoftirqEntry {
        vec: FieldId,
    },
    SoftirqExit {
        vec: FieldId,
    },
    HrtimerStart {
        hrtimer: FieldId,
        expires: FieldId,
    },
    HrtimerCancel {
        hrtimer: FieldId,
    },
    HrtimerExpireEntry {
        hrtimer: FieldId,
        now: FieldId,
    },
    HrtimerExpireExit,
    Nmi {
        delta_ns: FieldId,
    },
    /// User code touched a page that was not there.
    PageFault,
    Hit,
    LateTimer,
    PreemptionOff,
    Blocked,
    Throttled,
}

/// What each class of a trace is to the model.
pub(crate) struct Binding {
    by_class: Vec<Option<Known>>,
}

/// Which families of events a trace can hold at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Families {
    pub switch: bool,
    pub waking: bool,
    pub wakeup: bool,
    pub irq: bool,
    pub vector: bool,
    pub softirq: bool,
    pub migrate: bool,
    pub hit: bool,
}

impl Binding {
    pub fn new(trace: &Trace) -> Self {
        Binding {
            by_class: trace.classes().iter().map(known).collect(),
        }
    }

    pub fn get(&self, class: event::ClassId) -> Option<Known> {
        self.by_class.get(class.0 as usize).copied().flatten()
    }

    pub fn families(&self) -> Families {
        let mut families = Families::default();
        for known in self.by_class.iter().flatten() {
            match known {
                Known::Switch(_) => families.switch = true,
                Known::Waking(_) => families.waking = true,
                Known::Wakeup(_) => families.wakeup = true,
                Known::IrqEntry { .. } => families.irq = true,
                Known::VectorEntry(_) => families.vector = true,
                Known::SoftirqEntry { .. } => families.softirq = true,
                Known::Migrate { .. } => families.migrate = true,
                Known::Hit => families.hit = true,
                _ => {}
            }
        }
        families
    }
}

/// Interrupt vectors by the middle of their event's name (lttng-modules puts `x86_irq_vectors_`
/// before it, ftrace nothing).
const VECTORS: [(&str, i32); 6] = [
    ("local_timer", -1),
    ("reschedule", -2),
    ("call_function", -3),
    ("call_function_single", -3),
    ("irq_work", -4),
    ("x86_platform_ipi", -5),
];

fn known(class: &EventClass) -> Option<Known> {
    let name = class.name.as_str();
    let field = |field: &str| class.field(field);
    let task = |comm: &str, tid: &str, prio: &str, cpu: &str| {
        let (comm, tid, prio) = (field(comm)?, field(tid)?, field(prio)?);
        Some(TaskFields {
            comm,
            tid,
            prio,
            cpu: field(cpu),
        })
    };
    let woken = || task("comm", "tid", "prio", "target_cpu");
    Some(match name {
        "sched_switch" => Known::Switch(SwitchFields {
            prev: task("prev_comm", "prev_tid", "prev_prio", "")?,
            prev_state: field("prev_state")?,
            next: task("next_comm", "next_tid", "next_prio", "")?,
        }),
        "sched_waking" => Known::Waking(woken()?),
        "sched_wakeup" => Known::Wakeup(woken()?),
        "sched_wakeup_new" => Known::WakeupNew(woken()?),
        "sched_migrate_task" => Known::Migrate {
            tid: field("tid")?,
            dest: field("dest_cpu")?,
        },
        "sched_pi_setprio" => Known::PiSetprio {
            tid: field("tid")?,
            prio: field("newprio")?,
        },
        "irq_handler_entry" => Known::IrqEntry {
            irq: field("irq")?,
            name: field("name"),
        },
        "irq_handler_exit" => Known::IrqExit { irq: field("irq")? },
        "irq_softirq_raise" | "softirq_raise" => Known::SoftirqRaise { vec: field("vec")? },
        "irq_softirq_entry" | "softirq_entry" => Known::SoftirqEntry { vec: field("vec")? },
        "irq_softirq_exit" | "softirq_exit" => Known::SoftirqExit { vec: field("vec")? },
        "timer_hrtimer_start" | "hrtimer_start" => Known::HrtimerStart {
            hrtimer: field("hrtimer")?,
            expires: field("expires")?,
        },
        "timer_hrtimer_cancel" | "hrtimer_cancel" => Known::HrtimerCancel {
            hrtimer: field("hrtimer")?,
        },
        "timer_hrtimer_expire_entry" | "hrtimer_expire_entry" => Known::HrtimerExpireEntry {
            hrtimer: field("hrtimer")?,
            now: field("now")?,
        },
        "timer_hrtimer_expire_exit" | "hrtimer_expire_exit" => Known::HrtimerExpireExit,
        "nmi_handler" => Known::Nmi {
            delta_ns: field("delta_ns")?,
        },
        "x86_exceptions_page_fault_user" | "page_fault_user" => Known::PageFault,
        "rtscope_hit" => Known::Hit,
        "rtscope_late_timer" => Known::LateTimer,
        "rtscope_preemption_off" => Known::PreemptionOff,
        "rtscope_blocked" => Known::Blocked,
        "rtscope_throttled" => Known::Throttled,
        _ => return vector(name),
    })
}

fn vector(name: &str) -> Option<Known> {
    let name = name.strip_prefix("x86_irq_vectors_").unwrap_or(name);
    let number = |middle: &str| {
        VECTORS
            .iter()
            .find_map(|(vector, number)| (*vector == middle).then_some(*number))
    };
    if let Some(middle) = name.strip_suffix("_entry") {
        return number(middle).map(Known::VectorEntry);
    }
    number(name.strip_suffix("_exit")?).map(Known::VectorExit)
}
