//! What events of the kernel carry besides their fields, by LTTng's names where it has one.
//!
//! ftrace puts four values before each event (`struct trace_entry`, include/linux/trace_events.h):
//! its number, flags, how deep preemption and migration were off, and the task. They are copied, so
//! a context costs the traced CPU nothing.

use event::{Error, ErrorKind, Field, FieldType, Integer, IntegerMapping, Result, Scope};

use host::capabilities::{Capabilities, Preemption};

use super::flags::{HARDIRQ, IRQS_OFF, NEED_RESCHED, NMI, SOFTIRQ, SOFTIRQS_OFF, irq_level};
use super::groups::ThreadGroups;
use super::stacks::Stacks;
use ftrace::StackKinds;

/// Where each record has them.
const FLAGS_AT: usize = 2;
const COUNTS_AT: usize = 3;
const TID_AT: usize = 4;

/// `common_preempt_count`: how deep preemption is off, 15 at most, and above it the same of
/// migration (tracing_gen_ctx_irq_test, kernel/trace/trace.c).
const PREEMPTION_OFF: u8 = 0x0f;
const MIGRATION_OFF: u8 = 0xf0;

/// What ran as an event happened, by the numbers that are written.
const IRQ_CONTEXTS: [&str; 4] = ["task", "softirq", "hardirq", "nmi"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Tid,
    Pid,
    Interruptible,
    Preemptible,
    PreemptCount,
    Migratable,
    NeedReschedule,
    Serving,
    CallstackKernel,
    CallstackUser,
}

const NAMED: [(&str, Context); 10] = [
    ("tid", Context::Tid),
    ("pid", Context::Pid),
    ("interruptible", Context::Interruptible),
    ("preemptible", Context::Preemptible),
    ("preempt_count", Context::PreemptCount),
    ("migratable", Context::Migratable),
    ("need_reschedule", Context::NeedReschedule),
    ("irq_context", Context::Serving),
    ("callstack-kernel", Context::CallstackKernel),
    ("callstack-user", Context::CallstackUser),
];

impl Context {
    fn of(name: &str) -> Option<Context> {
        let found = NAMED.iter().find(|(named, _)| *named == name);
        found.map(|(_, context)| *context)
    }

    /// Its field; of a stack also the length before it.
    fn fields(self) -> impl Iterator<Item = Field> {
        let name = NAMED.iter().find(|(_, context)| *context == self);
        // LTTng's names of contexts have a dash where those of their fields cannot.
        let name = name.map_or("", |(name, _)| name).replace('-', "_");
        let byte = Integer::le(8, false);
        let length = format!("_{name}_length");
        let counted = FieldType::Integer(Integer::le(32, false));
        let is_stack = self.is_stack();
        // babeltrace 2.0 finds no length in an event's own context.
        let scope = match is_stack {
            true => Scope::StreamContext,
            false => Scope::EventContext,
        };
        let length_field = is_stack.then(|| field(scope, &length, counted));
        let ty = match self {
            Context::Tid | Context::Pid => FieldType::Integer(Integer::le(32, true)),
            Context::Serving => {
                let label = |(value, label): (i64, &&str)| IntegerMapping {
                    label: (*label).to_owned(),
                    first: value,
                    last: value,
                };
                FieldType::Enum(byte, (0..).zip(&IRQ_CONTEXTS).map(label).collect())
            }
            Context::CallstackKernel | Context::CallstackUser => FieldType::Sequence {
                element: FieldType::Integer(Integer::hex(64)).into(),
                length,
            },
            _ => FieldType::Integer(byte),
        };
        length_field.into_iter().chain([field(scope, &name, ty)])
    }

    fn is_stack(self) -> bool {
        matches!(self, Context::CallstackKernel | Context::CallstackUser)
    }

    /// `unpreempted` has the flags under which the kernel counts preemption as off.
    fn write(self, record: &[u8], groups: &ThreadGroups, unpreempted: u8, out: &mut Vec<u8>) {
        // A record is never shorter than what stands before each event; one that is has zeros.
        let byte = |at: usize| record.get(at).copied().unwrap_or(0);
        let tid = i32::from_le_bytes([TID_AT, TID_AT + 1, TID_AT + 2, TID_AT + 3].map(byte));
        let (flags, counts) = (byte(FLAGS_AT), byte(COUNTS_AT));
        match self {
            Context::Tid => out.extend(tid.to_le_bytes()),
            Context::Pid => out.extend(groups.group(tid).to_le_bytes()),
            Context::Interruptible => out.push((flags & IRQS_OFF == 0).into()),
            Context::Preemptible => {
                let is_off = counts & PREEMPTION_OFF != 0 || flags & unpreempted != 0;
                out.push((!is_off).into());
            }
            Context::PreemptCount => out.push(counts & PREEMPTION_OFF),
            Context::Migratable => out.push((counts & MIGRATION_OFF == 0).into()),
            Context::NeedReschedule => out.push((flags & NEED_RESCHED != 0).into()),
            Context::Serving => out.push(irq_level(flags)),
            // In the stream's context.
            Context::CallstackKernel | Context::CallstackUser => {}
        }
    }
}

fn field(scope: Scope, name: &str, ty: FieldType) -> Field {
    Field {
        name: name.into(),
        scope,
        ty,
    }
}

/// A sequence: how many, and each.
fn addresses(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u32 / 8).to_le_bytes());
    out.extend(bytes);
}

/// Those that each event of the kernel carries, in the order in which they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelContexts {
    contexts: Vec<Context>,
    /// On PREEMPT_RT softirqs run in tasks, which are preempted.
    is_rt: bool,
}

impl KernelContexts {
    /// Whether an event of the kernel can carry what is called so.
    pub fn has(name: &str) -> bool {
        Context::of(name).is_some()
    }

    /// All names, for messages.
    pub fn names() -> String {
        NAMED.map(|(name, _)| name).join(", ")
    }

    /// The contexts of these names, each once.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a name that is none.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self> {
        let mut contexts = Vec::new();
        for name in names {
            let Some(context) = Context::of(name) else {
                let what = "not a context of the kernel's events";
                return Err(Error::new(ErrorKind::InvalidInput, what)
                    .found(format!("'{name}'"))
                    .fix(format!("one of {}", KernelContexts::names())));
            };
            // Whose addresses they are is part of what they say.
            let whose = (context == Context::CallstackUser).then_some(Context::Pid);
            for context in whose.into_iter().chain([context]) {
                if !contexts.contains(&context) {
                    contexts.push(context);
                }
            }
        }
        Ok(KernelContexts {
            contexts,
            is_rt: false,
        })
    }

    /// The same, of the kernel that these facts are of.
    pub(crate) fn on(&self, capabilities: &Capabilities) -> Self {
        self.on_rt(capabilities.scheduler.preemption == Preemption::Rt)
    }

    /// The same, of a kernel of PREEMPT_RT or of another.
    pub(crate) fn on_rt(&self, is_rt: bool) -> Self {
        KernelContexts {
            is_rt,
            ..self.clone()
        }
    }

    /// Their names, from which [`KernelContexts::new`] makes the same, and whether the kernel is
    /// one of PREEMPT_RT.
    pub(crate) fn facts(&self) -> (Vec<String>, bool) {
        let name = |context: &Context| {
            let found = NAMED.iter().find(|(_, named)| named == context);
            found.map_or(String::new(), |(name, _)| (*name).to_owned())
        };
        (self.contexts.iter().map(name).collect(), self.is_rt)
    }

    /// What the kernel has to write behind each event for them.
    pub(crate) fn stacks(&self) -> StackKinds {
        StackKinds {
            kernel: self.contexts.contains(&Context::CallstackKernel),
            user: self.contexts.contains(&Context::CallstackUser),
        }
    }

    /// Their fields in this scope.
    pub(super) fn fields(&self, scope: Scope) -> impl Iterator<Item = Field> {
        let all = self.contexts.iter().flat_map(|context| context.fields());
        all.filter(move |field| field.scope == scope)
    }

    /// The values of the fields that all events of the stream have.
    pub(super) fn write_shared(&self, stacks: Stacks<'_>, out: &mut Vec<u8>) {
        for context in &self.contexts {
            match context {
                Context::CallstackKernel => addresses(stacks.kernel, out),
                Context::CallstackUser => addresses(stacks.user, out),
                _ => {}
            }
        }
    }

    /// The values of the others for `record`, in front of its own.
    pub(super) fn write(&self, record: &[u8], groups: &ThreadGroups, out: &mut Vec<u8>) {
        let softirqs = match self.is_rt {
            true => 0,
            false => SOFTIRQ | SOFTIRQS_OFF,
        };
        for context in &self.contexts {
            context.write(record, groups, HARDIRQ | NMI | softirqs, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_what_stands_before_the_event() {
        let groups = ThreadGroups::new([(7, 6)]);
        let check = |flags: u8, counts: u8, name: &str, expect: &[u8]| {
            let contexts = KernelContexts::new([name]).expect("a context");
            let record = [&[1, 0, flags, counts][..], &7_i32.to_le_bytes()].concat();
            let mut out = Vec::new();
            contexts.write(&record, &groups, &mut out);
            assert_eq!(out, expect, "{name} {flags:#x} {counts:#x}");
        };
        check(0, 0, "tid", &[7, 0, 0, 0]);
        check(0, 0, "pid", &[6, 0, 0, 0]);
        check(0, 0, "interruptible", &[1]);
        check(IRQS_OFF | HARDIRQ, 0, "interruptible", &[0]);
        check(0, 0, "preemptible", &[1]);
        check(0, 0x02, "preemptible", &[0]);
        check(0, 0x20, "preemptible", &[1]);
        check(SOFTIRQ, 0, "preemptible", &[0]);
        check(HARDIRQ, 0, "preemptible", &[0]);
        check(0, 0x2f, "preempt_count", &[15]);
        check(0, 0x20, "migratable", &[0]);
        check(0, 0x02, "migratable", &[1]);
        check(NEED_RESCHED, 0, "need_reschedule", &[1]);
        check(0x80, 0, "need_reschedule", &[0]);
        check(0, 0, "irq_context", &[0]);
        check(SOFTIRQ, 0, "irq_context", &[1]);
        check(SOFTIRQ | HARDIRQ, 0, "irq_context", &[2]);
        check(NMI | HARDIRQ, 0, "irq_context", &[3]);
    }

    #[test]
    fn a_context_is_asked_for_once_and_by_a_name_that_exists() {
        let contexts = KernelContexts::new(["tid", "preemptible", "tid"]).expect("contexts");
        let names: Vec<String> = contexts
            .fields(Scope::EventContext)
            .map(|field| field.name.to_string())
            .collect();
        assert_eq!(names, ["tid", "preemptible"]);
        let refused = KernelContexts::new(["procname"]).expect_err("applications' alone");
        assert_eq!(refused.value_found(), Some("'procname'"));
    }
}
