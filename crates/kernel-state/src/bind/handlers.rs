//! Events of interrupts, softirqs, timers and NMIs.

use event::vectors::vector_of_reason;
use event::{EventClass, FieldId, FieldType};
use trace::EventView;

use super::context::Context;
use crate::vectors::{Edge, Unlisted, vector_of};

pub use event::kernel_threads::irq_of_thread;

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
    /// One of these two, or none: each event says it, see [`Handler::of`].
    Vector(VectorFields),
    SoftirqRaise {
        vec: FieldId,
        context: Option<Context>,
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
        /// From when on it may run already; the rest is its slack.
        soft: Option<FieldId>,
        function: Option<FieldId>,
        mode: Option<TimerMode>,
    },
    HrtimerCancel {
        hrtimer: FieldId,
    },
    HrtimerExpireEntry {
        hrtimer: FieldId,
        now: FieldId,
        function: Option<FieldId>,
    },
    HrtimerExpireExit,
    Nmi {
        delta_ns: FieldId,
    },
    /// User code touched a page that was not there.
    PageFault {
        /// Of what was not there.
        address: Option<FieldId>,
    },
    /// A task begins to wait for a lock.
    ContentionBegin {
        flags: FieldId,
    },
    /// The wait that began last there is over.
    ContentionEnd,
}

/// A timer's mode: a number, or the kernel's words for it.
#[derive(Clone, Copy, Debug)]
pub struct TimerMode {
    field: FieldId,
    is_text: bool,
}

impl TimerMode {
    fn bind(class: &EventClass, field: FieldId) -> TimerMode {
        TimerMode {
            field,
            is_text: is_text(class, field),
        }
    }

    /// Whether the timer was set for a length of time, and not until a moment.
    pub fn is_relative(self, event: &EventView<'_>) -> bool {
        // HRTIMER_MODE_REL is the lowest bit.
        match self.is_text {
            true => event.text(self.field).starts_with(b"REL"),
            false => event.u64(self.field) & 1 != 0,
        }
    }
}

fn is_text(class: &EventClass, field: FieldId) -> bool {
    let ty = &class.fields[usize::from(field.0)].ty;
    matches!(ty, FieldType::String | FieldType::Text { .. })
}

/// An interrupt of which the class alone does not say whether, or which, it is.
#[derive(Clone, Copy, Debug)]
pub struct VectorFields {
    number: i32,
    edge: Edge,
    /// Why, of an inter-processor interrupt.
    reason: Option<FieldId>,
    /// The class is no interrupt's but where an event was in one.
    context: Option<Context>,
}

impl VectorFields {
    fn of(self, event: &EventView<'_>) -> Option<Handler> {
        if self.context.is_some_and(|context| !context.is_hard(event)) {
            return None;
        }
        let reason = self.reason.map(|field| event.text(field));
        let reason = reason.and_then(|reason| std::str::from_utf8(reason).ok());
        let number = reason.and_then(vector_of_reason).unwrap_or(self.number);
        Some(match self.edge {
            Edge::Entry => Handler::VectorEntry(number),
            Edge::Exit => Handler::VectorExit(number),
        })
    }
}

impl Handler {
    /// What one event of the class is; none where it is no handler's after all.
    #[inline]
    pub fn of(self, event: &EventView<'_>) -> Option<Handler> {
        match self {
            Handler::Vector(fields) => fields.of(event),
            handler => Some(handler),
        }
    }

    /// Whether a timer is armed, cancelled or served.
    #[inline]
    pub fn is_of_timer(&self) -> bool {
        matches!(
            self,
            Handler::HrtimerStart { .. }
                | Handler::HrtimerCancel { .. }
                | Handler::HrtimerExpireEntry { .. }
                | Handler::HrtimerExpireExit
        )
    }
}

/// The kernel wakes a handler's thread right after the handler.
pub const IRQ_THREAD_WAKE_NS_MAX: i64 = 100_000;

pub(super) fn bind(class: &EventClass, unlisted: &Unlisted) -> Option<Handler> {
    let field = |field: &str| class.field(field);
    Some(match class.kernel_name() {
        "irq_handler_entry" => Handler::IrqEntry {
            irq: field("irq")?,
            name: field("name"),
        },
        "irq_handler_exit" => Handler::IrqExit { irq: field("irq")? },
        "irq_softirq_raise" | "softirq_raise" => Handler::SoftirqRaise {
            vec: field("vec")?,
            context: Context::bind(class),
        },
        "irq_softirq_entry" | "softirq_entry" => Handler::SoftirqEntry { vec: field("vec")? },
        "irq_softirq_exit" | "softirq_exit" => Handler::SoftirqExit { vec: field("vec")? },
        "timer_hrtimer_start" | "hrtimer_start" => Handler::HrtimerStart {
            hrtimer: field("hrtimer")?,
            expires: field("expires")?,
            soft: field("softexpires"),
            function: field("function"),
            mode: field("mode").map(|mode| TimerMode::bind(class, mode)),
        },
        "timer_hrtimer_cancel" | "hrtimer_cancel" => Handler::HrtimerCancel {
            hrtimer: field("hrtimer")?,
        },
        "timer_hrtimer_expire_entry" | "hrtimer_expire_entry" => Handler::HrtimerExpireEntry {
            hrtimer: field("hrtimer")?,
            now: field("now")?,
            function: field("function"),
        },
        "timer_hrtimer_expire_exit" | "hrtimer_expire_exit" => Handler::HrtimerExpireExit,
        "nmi_handler" => Handler::Nmi {
            delta_ns: field("delta_ns")?,
        },
        "x86_exceptions_page_fault_user" | "page_fault_user" => Handler::PageFault {
            address: field("address"),
        },
        "lock_contention_begin" | "contention_begin" => Handler::ContentionBegin {
            flags: field("flags")?,
        },
        "lock_contention_end" | "contention_end" => Handler::ContentionEnd,
        _ => return vector(class, unlisted),
    })
}

fn vector(class: &EventClass, unlisted: &Unlisted) -> Option<Handler> {
    let (number, edge, unsure) = vector_of(class, unlisted)?;
    let reason = class.field("reason");
    let reason = reason.filter(|field| is_text(class, *field));
    let context = match unsure {
        true => Some(Context::bind(class)?),
        false => None,
    };
    Some(match (reason.is_some() || unsure, edge) {
        (true, _) => Handler::Vector(VectorFields {
            number,
            edge,
            reason,
            context,
        }),
        (false, Edge::Entry) => Handler::VectorEntry(number),
        (false, Edge::Exit) => Handler::VectorExit(number),
    })
}
