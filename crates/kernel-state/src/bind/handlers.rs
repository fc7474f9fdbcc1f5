//! Events of interrupts, softirqs, timers and NMIs.

use event::{EventClass, FieldId};

/// A handler's event.
#[derive(Clone, Copy, Debug)]
pub enum Handler {
    IrqEntry {
        irq: FieldId,
        name: Option<FieldId>,
    },
    IrqExit {
        irq: FieldId,
    },
    /// An interrupt vector with a negative number, see [`event::evidence::Step::id`].
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
}

/// The kernel wakes a handler's thread right after the handler.
pub const IRQ_THREAD_WAKE_NS_MAX: i64 = 100_000;

/// The interrupt whose thread is called `irq/N-…`.
pub fn irq_of_thread(comm: &[u8]) -> Option<i32> {
    let rest = comm.strip_prefix(b"irq/")?;
    let end = rest.iter().position(|byte| *byte == b'-')?;
    std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

pub(super) fn bind(class: &EventClass) -> Option<Handler> {
    let field = |field: &str| class.field(field);
    Some(match class.name.as_str() {
        "irq_handler_entry" => Handler::IrqEntry {
            irq: field("irq")?,
            name: field("name"),
        },
        "irq_handler_exit" => Handler::IrqExit { irq: field("irq")? },
        "irq_softirq_raise" | "softirq_raise" => Handler::SoftirqRaise { vec: field("vec")? },
        "irq_softirq_entry" | "softirq_entry" => Handler::SoftirqEntry { vec: field("vec")? },
        "irq_softirq_exit" | "softirq_exit" => Handler::SoftirqExit { vec: field("vec")? },
        "timer_hrtimer_start" | "hrtimer_start" => Handler::HrtimerStart {
            hrtimer: field("hrtimer")?,
            expires: field("expires")?,
        },
        "timer_hrtimer_cancel" | "hrtimer_cancel" => Handler::HrtimerCancel {
            hrtimer: field("hrtimer")?,
        },
        "timer_hrtimer_expire_entry" | "hrtimer_expire_entry" => Handler::HrtimerExpireEntry {
            hrtimer: field("hrtimer")?,
            now: field("now")?,
        },
        "timer_hrtimer_expire_exit" | "hrtimer_expire_exit" => Handler::HrtimerExpireExit,
        "nmi_handler" => Handler::Nmi {
            delta_ns: field("delta_ns")?,
        },
        "x86_exceptions_page_fault_user" | "page_fault_user" => Handler::PageFault,
        name => return vector(name),
    })
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

fn vector(name: &str) -> Option<Handler> {
    let name = name.strip_prefix("x86_irq_vectors_").unwrap_or(name);
    let number = |middle: &str| {
        VECTORS
            .iter()
            .find_map(|(vector, number)| (*vector == middle).then_some(*number))
    };
    if let Some(middle) = name.strip_suffix("_entry") {
        return number(middle).map(Handler::VectorEntry);
    }
    number(name.strip_suffix("_exit")?).map(Handler::VectorExit)
}
