//! In which context an event happened, and which task had the CPU, where the tracer says it with
//! each event.

use event::{EventClass, FieldId, Scope};
use trace::EventView;

/// Bits of `common_flags` (kernel: `include/linux/trace_events.h`).
const NEED_RESCHED: u64 = 0x04;
const HARD: u64 = 0x08;
const SOFT: u64 = 0x10;
const NMI: u64 = 0x40;

/// The flags that ftrace puts before each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    flags: FieldId,
}

/// What had the CPU at an event, as its flags say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// A hard interrupt or an NMI.
    Hard,
    /// A softirq.
    Soft,
    /// Neither: the task itself.
    Task,
}

impl Context {
    /// Where events of a class have them.
    pub fn bind(class: &EventClass) -> Option<Context> {
        let flags = class.field("common_flags")?;
        Some(Context { flags })
    }

    /// Whether a hard interrupt or an NMI had the CPU.
    pub fn is_hard(&self, event: &EventView<'_>) -> bool {
        event.u64(self.flags) & (HARD | NMI) != 0
    }

    /// What had the CPU.
    pub fn within(&self, event: &EventView<'_>) -> Within {
        match (self.is_hard(event), self.is_soft(event)) {
            (true, _) => Within::Hard,
            (false, true) => Within::Soft,
            (false, false) => Within::Task,
        }
    }

    /// Whether a softirq had the CPU, or a hard interrupt in one.
    pub fn is_soft(&self, event: &EventView<'_>) -> bool {
        event.u64(self.flags) & SOFT != 0
    }
}

/// Where a wake-up says whether the task that has the CPU is to leave it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// ftrace's flags.
    Flags(FieldId),
    /// LTTng's context.
    Alone(FieldId),
}

impl Asked {
    pub fn bind(class: &EventClass) -> Option<Asked> {
        let alone = class.field("need_reschedule").map(Asked::Alone);
        alone.or_else(|| class.field("common_flags").map(Asked::Flags))
    }

    pub fn is_asked(self, event: &EventView<'_>) -> bool {
        match self {
            Asked::Flags(flags) => event.u64(flags) & NEED_RESCHED != 0,
            Asked::Alone(flag) => event.u64(flag) != 0,
        }
    }
}

/// Where events of a class say which task had their CPU: the number that ftrace puts before each,
/// LTTng's and perf's contexts. A `vtid` is the task's number in its own namespace, which may be
/// another one's outside of it.
pub(super) fn current(class: &EventClass) -> Option<FieldId> {
    let context = [Scope::StreamContext, Scope::EventContext];
    let tid = context
        .iter()
        .find_map(|scope| class.field_in(*scope, "tid"));
    let of_perf = || class.field_in(Scope::Payload, "perf_tid");
    tid.or_else(of_perf)
}
