//! What each event class says about the kernel, with the fields to read: bound once per trace, in
//! every generation of names. Both models, [`crate`] and [`crate::model`], read events
//! through it and each takes the groups that it follows.

// A field bears the name of the event's own field.
#![allow(missing_docs)]

mod calls;
mod context;
mod devices;
mod dump;
mod functions;
mod handlers;
mod machine;
mod once;
mod sched;
mod stops;

use event::evidence::Kind;
use event::{ClassId, EventClass, FieldId, Scope};
use trace::Trace;

use crate::vectors::Unlisted;

pub use calls::{Call, CallNames, ConnectFields, FileCall, FutexCommand, Operation};
pub use context::{Context, Within};
pub use devices::Device;
pub use dump::{Dump, Limits};
pub use functions::Function;
pub use handlers::{Handler, IRQ_THREAD_WAKE_NS_MAX, irq_of_thread};
pub use machine::{host_of, one_kernel};
pub use sched::{
    CLONE_THREAD, ExecFields, Left, Life, Pause, PrioFields, STOPPED_ASLEEP_NS_MAX, Sched,
    SwitchFields, Switched, TaskFields, WakeKind, WakeUp,
};
pub use stops::Stop;

/// An event class that is understood.
#[derive(Clone, Copy, Debug)]
pub enum Known {
    /// Who runs, wakes and moves.
    Sched(Sched),
    /// Forks and execs.
    Life(Life),
    /// Signals that stop tasks, and the freezer.
    Stop(Stop),
    /// Interrupts, softirqs, timers, NMIs.
    Handler(Handler),
    /// System calls.
    Call(Call),
    /// A page fault that a program serves: whether it begins to wait for that, or has.
    Fault { begins: bool },
    /// Disks, network interfaces, pages.
    Device(Device),
    /// The state before the first event.
    Dump(Dump),
    /// Functions of programs and of the kernel.
    Function(Function),
    /// What our own programs in the kernel saw.
    Evidence(Kind),
    /// Which task has the CPU, where our recorder saw that no switch says it: behind the first of
    /// them on a CPU, all events there are of the task that they tell.
    Current,
}

/// A class, and where its events say their CPU when it is not their stream's.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub known: Known,
    pub cpu: Option<FieldId>,
    /// Where the tracer says which task had the CPU, interrupted or not.
    pub current: Option<FieldId>,
    /// Its events are where events of [`Known::Current`] may be.
    pub confirms: bool,
}

impl Bound {
    /// Whether it shows which task has the CPU.
    #[inline]
    pub fn tells_task(&self) -> bool {
        self.confirms || self.current.is_some()
    }
}

/// All classes of a trace.
#[derive(Debug)]
pub struct Binding {
    by_class: Vec<Option<Bound>>,
    /// The names of system calls.
    pub calls: CallNames,
    /// Interrupts that no table has.
    pub unlisted: Unlisted,
}

/// Which families of events a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Families {
    pub switch: bool,
    pub waking: bool,
    pub wakeup: bool,
    pub irq: bool,
    /// Where their exits are not recorded, or a filter chose some, nothing says how long interrupts
    /// have the CPU.
    pub irq_exit: bool,
    pub vector: bool,
    pub timer: bool,
    pub softirq: bool,
    /// As for interrupts.
    pub softirq_exit: bool,
    pub raise: bool,
    pub migrate: bool,
    /// Requests of block devices, from their issue to their end.
    pub block: bool,
    pub hit: bool,
}

impl Binding {
    pub fn new(trace: &Trace) -> Binding {
        let mut calls = CallNames::default();
        let unlisted = Unlisted::new(trace.classes().iter());
        let mut all = trace.classes().iter();
        let says_current = all.any(|class| class.name == CURRENT);
        let by_class = trace.classes().iter().map(|class| {
            let known = known(class, trace, &unlisted, &mut calls)?;
            // A stream says its CPU once for all its events.
            let in_event = |field: &FieldId| {
                let scope = class.fields[usize::from(field.0)].scope;
                scope != Scope::PacketContext
            };
            let cpu = class.field("cpu_id").filter(in_event);
            let current = match known {
                // Its own fields say so.
                Known::Sched(Sched::Switch(_)) => None,
                Known::Current => class.field("tid"),
                known if !is_of_cpu(known) || cpu.is_some() => None,
                _ => context::current(class),
            };
            let is_switch = matches!(known, Known::Sched(Sched::Switch(_)));
            let is_silent = current.is_none() && !is_switch;
            let confirms = says_current && is_silent && is_of_cpu(known);
            Some(Bound {
                known,
                cpu,
                current,
                confirms,
            })
        });
        let by_class = by_class.collect();
        Binding {
            by_class,
            calls,
            unlisted,
        }
    }

    #[inline]
    pub fn get(&self, class: ClassId) -> Option<&Bound> {
        self.by_class.get(class.0 as usize)?.as_ref()
    }

    /// Whether a watch's hits can be there.
    pub fn has_hits(&self) -> bool {
        let mut bound = self.by_class.iter().flatten();
        bound.any(|bound| matches!(bound.known, Known::Evidence(Kind::Hit)))
    }

    /// Whether the calls of `futex` can be there, with their returns.
    pub fn has_futex_calls(&self, trace: &Trace) -> bool {
        let is_call = |bound: &Bound| match bound.known {
            Known::Call(Call::Entry {
                futex: Some(fields),
                ..
            }) => fields.is_of_locks(),
            _ => false,
        };
        let returns = trace.classes().iter().any(calls::is_futex_return);
        returns && self.by_class.iter().flatten().any(is_call)
    }

    /// Whether functions' entries can be there, or the kernel's call stacks.
    pub fn has_functions(&self, trace: &Trace) -> bool {
        let mut bound = self.by_class.iter().flatten();
        let mut classes = trace.classes().iter();
        bound.any(|bound| matches!(bound.known, Known::Function(_)))
            || classes.any(|class| class.field("callstack_kernel").is_some())
    }

    /// Which families a trace has: those that a look at its begin meets, and those that are
    /// declared where it is too long for a look at all of it. Where one event of a wake-up is met
    /// and the other is not, that one is absent: they come together. A trace that cannot be read is
    /// for the walk to report.
    pub fn families(&self, trace: &Trace) -> Families {
        let mut declared = Families::default();
        let bound = self.by_class.iter().flatten();
        bound.for_each(|bound| declared.add(bound.known));
        declared.irq_exit &= !trace.info().is_filtered("irq_handler_exit");
        declared.softirq_exit &= !trace.info().is_filtered("irq_softirq_exit");
        // Ours declares what was recorded: where no interrupt came, none is missing.
        if trace.info().environment.contains_key("rtscope_version") {
            return declared;
        }
        // A hit stands at its end; only a watch declares it.
        let mut met = Families {
            hit: declared.hit,
            ..Families::default()
        };
        let looked = trace.look(|class| {
            if let Some(bound) = self.get(class) {
                met.add(bound.known);
            }
            met == declared
        });
        match looked.unwrap_or(false) || met == declared {
            true => met,
            false => Families {
                waking: declared.waking && (met.waking || !met.wakeup),
                wakeup: declared.wakeup && (met.wakeup || !met.waking),
                ..declared
            },
        }
    }
}

impl Families {
    fn add(&mut self, known: Known) {
        let family = match known {
            Known::Sched(Sched::Switch(_)) => &mut self.switch,
            Known::Sched(Sched::Wake(WakeKind::Waking, _)) => &mut self.waking,
            Known::Sched(Sched::Wake(WakeKind::Wakeup, _)) => &mut self.wakeup,
            Known::Sched(Sched::Migrate(_)) => &mut self.migrate,
            Known::Handler(Handler::IrqEntry { .. }) => &mut self.irq,
            Known::Handler(Handler::IrqExit { .. }) => &mut self.irq_exit,
            Known::Handler(Handler::VectorEntry(_)) => &mut self.vector,
            Known::Handler(Handler::HrtimerExpireEntry { .. }) => &mut self.timer,
            Known::Handler(Handler::SoftirqEntry { .. }) => &mut self.softirq,
            Known::Handler(Handler::SoftirqExit { .. }) => &mut self.softirq_exit,
            Known::Handler(Handler::SoftirqRaise { .. }) => &mut self.raise,
            Known::Device(Device::BlockIssue { .. }) => &mut self.block,
            Known::Evidence(Kind::Hit) => &mut self.hit,
            _ => return,
        };
        *family = true;
    }
}

/// Whether the kernel's events of this kind come from the CPU whose state they tell.
fn is_of_cpu(known: Known) -> bool {
    !matches!(
        known,
        Known::Function(_) | Known::Evidence(_) | Known::Dump(_)
    )
}

fn known(
    class: &EventClass,
    trace: &Trace,
    unlisted: &Unlisted,
    calls: &mut CallNames,
) -> Option<Known> {
    let life = || sched::life(class).map(Known::Life);
    let sched = || sched::bind(class, trace).map(Known::Sched);
    let handler = || handlers::bind(class, unlisted).map(Known::Handler);
    let device = || devices::bind(class).map(Known::Device);
    let dump = || dump::bind(class).map(Known::Dump);
    let function = || functions::bind(class).map(Known::Function);
    let stop = || stops::bind(class).map(Known::Stop);
    let evidence = || Kind::of_class(&class.name).map(Known::Evidence);
    calls::bind(class, calls)
        .map(Known::Call)
        .or_else(sched)
        .or_else(life)
        .or_else(handler)
        .or_else(device)
        .or_else(dump)
        .or_else(function)
        .or_else(stop)
        .or_else(evidence)
        .or_else(|| (class.name == CURRENT).then_some(Known::Current))
        .or_else(|| fault(class))
}

fn fault(class: &EventClass) -> Option<Known> {
    match class.name.strip_prefix("rtscope_userfault_")? {
        "entry" => Some(Known::Fault { begins: true }),
        "exit" => Some(Known::Fault { begins: false }),
        _ => None,
    }
}

/// The class of [`Known::Current`].
const CURRENT: &str = "rtscope_current";
