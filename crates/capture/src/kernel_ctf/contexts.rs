//! What events of the kernel carry besides their fields, by LTTng's names where it has one.
//!
//! ftrace puts four values before each event (`struct trace_entry`, include/linux/trace_events.h):
//! its number, flags, how deep preemption and migration were off, and the task. They are copied, so
//! a context of these costs the traced CPU nothing. What it does not note, BPF reads ([`Asked`]).

use abi::contexts::{COUNTERS, RawContext};
use bpf_host::Counter;
use event::{Cpu, Error, ErrorKind, Field, FieldType, Integer, IntegerMapping, Result, Scope};

use host::capabilities::{Capabilities, Preemption};

use super::asked::{Asked, NOTHING_KNOWN};
use super::counters;
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
    Cpu,
    /// What ftrace does not note.
    Asked(Asked),
}

const NAMED: [(&str, Context); 11] = [
    ("tid", Context::Tid),
    ("pid", Context::Pid),
    ("cpu_id", Context::Cpu),
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
        let asked = || Asked::of(name).map(Context::Asked);
        found.map(|(_, context)| *context).or_else(asked)
    }

    /// What it is called; a counter is by the recording's `counters`.
    fn name(self, counters: &[Counter]) -> String {
        if let Context::Asked(Asked::Counter(place)) = self {
            return counters[place].name.clone();
        }
        let asked = Asked::all().map(|(name, asked)| (name, Context::Asked(asked)));
        let found = NAMED
            .into_iter()
            .chain(asked)
            .find(|(_, named)| *named == self);
        found.map_or("", |(name, _)| name).to_owned()
    }

    /// Its field; of a stack also the length before it.
    fn fields(self, counters: &[Counter]) -> impl Iterator<Item = Field> + use<> {
        // LTTng's names of contexts have a dash where those of their fields cannot.
        let name = match self {
            Context::Asked(Asked::Counter(place)) => counters::field_name(&counters[place]),
            named => named.name(counters).replace('-', "_"),
        };
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
            Context::Tid | Context::Pid | Context::Cpu => FieldType::Integer(Integer::le(32, true)),
            Context::Asked(asked) => asked.ty(),
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
    fn write(self, event: &Carrier<'_>, unpreempted: u8, out: &mut Vec<u8>) {
        let byte = |at: usize| event.record.get(at).copied().unwrap_or(0);
        let tid = event.tid();
        let (flags, counts) = (byte(FLAGS_AT), byte(COUNTS_AT));
        match self {
            Context::Tid => out.extend(tid.to_le_bytes()),
            Context::Pid => out.extend(event.group.of(tid).to_le_bytes()),
            Context::Cpu => out.extend(event.cpu.0.to_le_bytes()),
            Context::Asked(asked) => asked.write(event.moment, out),
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

/// An event, and what is known of the moment when it happened.
pub(super) struct Carrier<'e> {
    pub record: &'e [u8],
    pub cpu: Cpu,
    pub group: Group<'e>,
    /// What BPF read.
    pub moment: &'e RawContext,
}

/// Who knows the process of an event's task.
#[derive(Clone, Copy)]
pub(super) enum Group<'e> {
    Known(i32),
    In(&'e ThreadGroups),
}

impl Group<'_> {
    fn of(self, tid: i32) -> i32 {
        match self {
            Group::Known(pid) => pid,
            Group::In(groups) => groups.group(tid),
        }
    }
}

impl Carrier<'_> {
    fn tid(&self) -> i32 {
        tid_of(self.record)
    }
}

/// The task that an event is of. A record is never shorter than what stands before each event; one
/// that is has zeros.
pub(super) fn tid_of(record: &[u8]) -> i32 {
    let byte = |at: usize| record.get(at).copied().unwrap_or(0);
    i32::from_le_bytes([TID_AT, TID_AT + 1, TID_AT + 2, TID_AT + 3].map(byte))
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
    /// What each CPU counts, by the places that contexts name.
    counters: Vec<Counter>,
    /// What BPF is to read; none where ftrace notes all of it.
    wanted: Option<u32>,
}

impl KernelContexts {
    /// Whether an event of the kernel can carry what is called so.
    pub fn has(name: &str) -> bool {
        Context::of(name).is_some() || name.starts_with(counters::PREFIX)
    }

    /// All names, for messages.
    pub fn names() -> String {
        let asked = Asked::all().map(|(name, _)| name);
        let named = NAMED.into_iter().map(|(name, _)| name).chain(asked);
        let all: Vec<&str> = named.chain(["perf:cpu:COUNTER"]).collect();
        all.join(", ")
    }

    /// The contexts of these names, each once.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a name that is none.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self> {
        let (mut contexts, mut counters) = (Vec::new(), Vec::new());
        for name in names {
            let Some(context) = Context::of(name) else {
                counters.push(counter(name)?);
                contexts.push(Context::Asked(Asked::Counter(counters.len() - 1)));
                continue;
            };
            // Whose addresses they are is part of what they say.
            let whose = (context == Context::CallstackUser).then_some(Context::Pid);
            for context in whose.into_iter().chain([context]) {
                if !contexts.contains(&context) {
                    contexts.push(context);
                }
            }
        }
        if counters.len() > COUNTERS {
            return Err(Error::new(ErrorKind::Unsupported, "too many counters")
                .found(format!("{} of perf:cpu", counters.len()))
                .fix(format!("ask for {COUNTERS} at most, or record twice")));
        }
        Ok(KernelContexts {
            is_rt: false,
            counters,
            wanted: wanted(&contexts),
            contexts,
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
        let name = |context: &Context| context.name(&self.counters);
        (self.contexts.iter().map(name).collect(), self.is_rt)
    }

    /// What the kernel has to write behind each event for them.
    pub(crate) fn stacks(&self) -> StackKinds {
        StackKinds {
            kernel: self.contexts.contains(&Context::CallstackKernel),
            user: self.contexts.contains(&Context::CallstackUser),
        }
    }

    /// Whether somebody has to read, as events happen, what ftrace does not note with them.
    pub fn needs_reader(&self) -> bool {
        self.wanted.is_some()
    }

    /// What BPF is to read at each event for them, and what each CPU is to count; none where
    /// ftrace notes all of it.
    pub(crate) fn asked(&self) -> Option<(u32, &[Counter])> {
        Some((self.wanted?, &self.counters))
    }

    /// Those that system calls carry which others than ftrace record. The kernel's flags of that
    /// moment, and its call stacks, are ftrace's alone.
    pub(crate) fn of_calls(&self) -> KernelContexts {
        let is_theirs =
            |context: &&Context| !context.is_stack() && **context != Context::NeedReschedule;
        KernelContexts {
            contexts: self.contexts.iter().filter(is_theirs).copied().collect(),
            ..self.clone()
        }
    }

    /// What BPF is to read at those; none where a call's own record has all of it.
    pub(crate) fn asked_of_calls(&self) -> Option<(u32, &[Counter])> {
        let of_process = self.contexts.contains(&Context::Pid).then_some(0);
        Some((self.wanted.or(of_process)?, &self.counters))
    }

    /// The values for a system call of a task, of which this was read. It is made where nothing
    /// keeps the task from being interrupted or preempted.
    pub(crate) fn write_of_call(
        &self,
        (tid, cpu): (i32, Cpu),
        moment: Option<&RawContext>,
        out: &mut Vec<u8>,
    ) {
        let mut record = [0; TID_AT + 4];
        record[TID_AT..].copy_from_slice(&tid.to_le_bytes());
        let moment = moment.unwrap_or(&NOTHING_KNOWN);
        let event = Carrier {
            record: &record,
            cpu,
            group: Group::Known(moment.pid),
            moment,
        };
        self.write(&event, out);
    }

    /// Their fields in this scope.
    pub(crate) fn fields(&self, scope: Scope) -> impl Iterator<Item = Field> {
        let all = self.contexts.iter();
        let all = all.flat_map(|context| context.fields(&self.counters));
        all.filter(move |field| field.scope == scope)
    }

    /// What a wake-up carries also where not every event does: whether the task on the CPU is to
    /// leave it. The scheduler has compared the two by then (`ttwu_do_activate`,
    /// kernel/sched/core.c).
    pub(super) fn of_wakeup(&self) -> Option<Field> {
        let mut fields = Context::NeedReschedule.fields(&[]);
        fields.next().filter(|_| self.has_more_of_wakeups())
    }

    fn has_more_of_wakeups(&self) -> bool {
        !self.contexts.contains(&Context::NeedReschedule)
    }

    /// The value of [`KernelContexts::of_wakeup`], where it has one.
    pub(super) fn write_of_wakeup(&self, event: &Carrier<'_>, out: &mut Vec<u8>) {
        if self.has_more_of_wakeups() {
            Context::NeedReschedule.write(event, 0, out);
        }
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

    /// The values of the others for `event`, in front of its own.
    pub(super) fn write(&self, event: &Carrier<'_>, out: &mut Vec<u8>) {
        let softirqs = match self.is_rt {
            true => 0,
            false => SOFTIRQ | SOFTIRQS_OFF,
        };
        for context in &self.contexts {
            context.write(event, HARDIRQ | NMI | softirqs, out);
        }
    }
}

/// What BPF is to read for these.
fn wanted(contexts: &[Context]) -> Option<u32> {
    let of = |context: &Context| match context {
        Context::Asked(asked) => Some(asked.wanted()),
        _ => None,
    };
    contexts.iter().filter_map(of).reduce(|all, one| all | one)
}

/// What a CPU counts, by LTTng's name.
fn counter(name: &str) -> Result<Counter> {
    if let Some(word) = name.strip_prefix("perf:thread:") {
        let what = "events of the kernel carry what their CPU counted, not a thread";
        return Err(Error::new(ErrorKind::Unsupported, what)
            .found(format!("'{name}'"))
            .fix(format!("perf:cpu:{word}")));
    }
    let known = name.strip_prefix(counters::PREFIX);
    let counter = known.and_then(counters::counter);
    counter.ok_or_else(|| {
        let error = Error::new(
            ErrorKind::InvalidInput,
            "not a context of the kernel's events",
        );
        let error = error.found(format!("'{name}'"));
        match known {
            Some(_) => {
                error.fix("a counter as perf calls it: perf:cpu:page-faults, perf:cpu:cycles")
            }
            None => error.fix(format!("one of {}", KernelContexts::names())),
        }
    })
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
            let event = Carrier {
                record: &record,
                cpu: Cpu(3),
                group: Group::In(&groups),
                moment: &RawContext {
                    comm: *b"app\0 was longer\0",
                    prio: -51,
                    ids: [1, 2, 3, 4, 5, 6],
                    counters: [9, 8, 7, 6],
                    ..RawContext::default()
                },
            };
            contexts.write(&event, &mut out);
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
        check(0, 0, "cpu_id", &[3, 0, 0, 0]);
        check(0, 0, "procname", b"app\0");
        check(0, 0, "prio", &[0xcd, 0xff, 0xff, 0xff]);
        check(0, 0, "egid", &[5, 0, 0, 0]);
        check(0, 0, "perf:cpu:cs", &[9, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_context_is_asked_for_once_and_by_a_name_that_exists() {
        let contexts = KernelContexts::new(["tid", "preemptible", "tid"]).expect("contexts");
        let names: Vec<String> = contexts
            .fields(Scope::EventContext)
            .map(|field| field.name.to_string())
            .collect();
        assert_eq!(names, ["tid", "preemptible"]);
        let refused = KernelContexts::new(["pthread_id"]).expect_err("applications' alone");
        assert_eq!(refused.value_found(), Some("'pthread_id'"));
        let refused = KernelContexts::new(["perf:thread:cycles"]).expect_err("of a thread");
        assert_eq!(refused.fixed_by(), Some("perf:cpu:cycles"));
        let counted = ["cycles", "cs", "faults", "branches", "instructions"];
        let counted = counted.map(|name| format!("perf:cpu:{name}"));
        let refused = KernelContexts::new(counted.iter().map(String::as_str));
        assert!(refused.is_err_and(|error| error.what() == "too many counters"));
    }

    #[test]
    fn what_ftrace_notes_asks_bpf_for_nothing() {
        let asked = |name| {
            let contexts = KernelContexts::new([name]).expect("a context");
            contexts
                .asked()
                .map(|(wanted, counters)| (wanted, counters.len()))
        };
        assert_eq!(asked("tid"), None);
        assert_eq!(asked("callstack-kernel"), None);
        assert_eq!(asked("ppid"), Some((abi::contexts::WANTED_TASK, 0)));
        assert_eq!(asked("perf:cpu:cs"), Some((0, 1)));
    }
}
