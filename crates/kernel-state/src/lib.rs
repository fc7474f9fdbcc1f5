//! The kernel's state, fed one event at a time: CPUs, threads, files, requests. It tells a
//! [`Sink`] what changed, so that many questions can be asked in one pass.
//!
//! # Design constraints
//! - What is kept is bounded by the threads and files that were seen, not by the events.
//! - Fields are bound once; an event that no question needs costs a look into a table.
//! - Every generation of LTTng's names is understood, see [`crate::bind`].

mod actions;
pub mod bind;
mod change;
mod clocks;
mod cycles;
mod devices;
mod finish;
mod functions;
mod grid;
mod handlers;
mod inference;
mod irq;
mod locks;
mod loss;
mod moved;
mod process;
mod programs;
mod queue;
mod run;
mod sched;
mod statedump;
mod stops;
mod stretches;
mod syscalls;
mod task_filter;
mod tid_map;
mod timer_place;
mod unrecorded;
mod unseen;
mod vectors;
mod waker;
mod wakeup;
mod window;

use std::collections::HashMap;
use std::sync::Arc;

use trace::{EventView, Symbols, TRACKED_TASKS, Trace};

use crate::bind::{Binding, Bound, Families, Handler, Known};

use devices::Disks;
use process::Processes;

pub use actions::Actions;
pub use bind::Pause;
pub use change::{Block, Change, Shared, Sink, Told, Topic, Topics, WasSoftirq};
pub use clocks::{ClockReading, OtherClocks};
pub use cycles::{Caller, Cycles, Inside};
pub use event::kernel_threads::passes_work_on;
pub use functions::FunctionId;
pub use inference::preempts_at_once;
pub use loss::{known_from_ns, places};
pub use process::{Comm, FileKind, ON_ITS_WAY_NS_MAX, ProcId, Process};
pub use programs::Programs;
pub use queue::sum_up;
pub use run::Holder;
pub use sched::BY_TICK_NS_MAX;
pub use stops::Stopper;
pub use syscalls::Request;
pub use task_filter::TaskFilter;
pub use unrecorded::Unrecorded;
pub use vectors::{Unlisted, softirq_name, vector_name};
pub use waker::{CpuWhat, Waker};
pub use wakeup::Wakee;
pub use window::seen_until;

/// The kernel can be built for fewer; bounds what a hostile trace makes us keep.
const CPUS_MAX: u32 = 8192;

/// A CPU.
#[derive(Debug, Default)]
struct CpuState {
    /// An event spoke of it.
    seen: bool,
    /// Its first event, once it had one.
    begun_ns: Option<i64>,
    /// Its last event.
    last_ns: i64,
    /// How often events of it were lost.
    losses: u64,
    /// Up to here it is told who had it.
    told_ns: i64,
    /// Nobody knows who had it between these instants, as a clock went back from one to the other.
    gone_back_ns: (i64, i64),
    /// The task on it, none while it idles or nothing is known.
    current: Option<ProcId>,
    raised: irq::Raised,
    handlers: handlers::Handlers,
    run: run::Run,
    /// Who left it with the last recorded switch, and when.
    left: Option<(ProcId, i64)>,
    /// When a hard interrupt was left here last.
    interrupted_ns: Option<i64>,
    queue: queue::Queue,
    /// Up to the loss after which nothing is known; told at the next switch.
    before_loss: Option<(run::Run, run::Part)>,
    /// Up to its first switch; told at the trace's end.
    first_run: Option<(run::Run, run::Part)>,
    /// A switch out of idle was recorded here.
    left_idle: bool,
    /// The recorder writes down which task has it where no switch says so.
    says_current: bool,
    /// Whom the recorder said last to have it, and who was on its way out then by what was seen.
    on_its_way: Option<i32>,
    /// So many runs were not, and were inferred.
    inferred: u64,
    /// A switch was not recorded here, and nothing tells who was scheduled in.
    doubted: bool,
}

/// What few questions want, and all would pay for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Follow {
    /// What each CPU does, stretch by stretch: [`Change::Stayed`].
    pub stretches: bool,
    /// Who had the CPU while a task waited for it: [`Change::Waited`].
    pub queues: bool,
    /// Names as lttng-analyses takes them: only from who is scheduled in, not from who leaves a
    /// CPU or runs another program. A wake-up is one whatever its task did, as it takes them too.
    pub stale_names: bool,
}

/// The state.
#[derive(Debug)]
pub struct Kernel {
    binding: Arc<Binding>,
    /// Nanoseconds of the wall clock.
    now_ns: i64,
    cpus: Vec<CpuState>,
    processes: Processes,
    programs: Programs,
    waits: queue::Waits,
    moved: Vec<moved::Moved>,
    disks: Disks,
    pages: u64,
    /// From when to when a softirq ran; its room serves the next one.
    softirq_ran: Vec<(i64, i64)>,
    locks: locks::Locks,
    /// The owner of each table of files, by its address (LTTng 2.12 and later).
    tables: HashMap<u64, i32>,
    unknown: Arc<str>,
    irq_actions: Actions,
    symbols: Option<Symbols>,
    /// Which of them the trace has.
    families: Families,
    follows: Follow,
    /// The trace is of some tasks alone.
    tracks: bool,
    /// Nothing that was open before this is known: events were lost.
    known_from_ns: i64,
    /// The latest of those losses began here.
    lost_from_ns: i64,
    /// A clock went back from one of these instants to the other, for any CPU.
    gone_back_ns: (i64, i64),
    /// Tasks left CPUs that, by the events, others had.
    contradictions: u64,
    /// What the last wake-up found its task doing.
    wakee: Wakee,
    /// The first event.
    first_ns: i64,
    /// CPUs that the trace has streams of: as many as the greatest number and one.
    cpus_of_trace: u32,
    unrecorded: Unrecorded,
    stops: stops::Stops,
}

/// A number that no CPU can have was damaged.
fn cpus_of(trace: &Trace) -> u32 {
    let mut all = trace.info().cpus.iter().rev();
    let last = all.find(|cpu| cpu.0 < CPUS_MAX);
    last.map_or(0, |cpu| cpu.0 + 1)
}

impl Kernel {
    /// Nothing is known yet. What it `follows` besides is up to the questions.
    pub fn new(trace: &Trace, follows: Follow) -> Kernel {
        let binding = Binding::new(trace);
        let families = binding.families(trace);
        Kernel {
            symbols: functions::symbols(trace, binding.has_functions(trace)),
            families,
            tracks: trace.info().environment.contains_key(TRACKED_TASKS),
            irq_actions: Actions::default(),
            follows,
            known_from_ns: i64::MIN,
            lost_from_ns: i64::MIN,
            gone_back_ns: (i64::MAX, i64::MIN),
            contradictions: 0,
            wakee: Wakee::default(),
            first_ns: i64::MAX,
            cpus_of_trace: cpus_of(trace),
            unrecorded: Unrecorded::new(trace),
            stops: stops::Stops::default(),
            now_ns: 0,
            cpus: Vec::new(),
            processes: Processes::default(),
            programs: Programs::default(),
            locks: locks::Locks::new(binding.has_futex_calls(trace)),
            binding: binding.into(),
            waits: queue::Waits::default(),
            moved: Vec::new(),
            disks: Disks::default(),
            pages: 0,
            softirq_ran: Vec::new(),
            tables: HashMap::new(),
            unknown: "unknown".into(),
        }
    }

    /// When the last event was, in nanoseconds of the wall clock.
    #[inline]
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// A thread.
    #[inline]
    pub fn process(&self, id: ProcId) -> &Process {
        self.processes.get(id)
    }

    /// The thread of this id.
    pub fn find(&self, tid: i32) -> Option<ProcId> {
        self.processes.find(tid)
    }

    /// All threads that were seen.
    pub fn processes(&self) -> impl Iterator<Item = (ProcId, &Process)> {
        self.processes.iter()
    }

    /// Whether the trace tells who sleeps for a lock of its program's.
    pub fn knows_locks(&self) -> bool {
        self.locks.are_known()
    }

    /// What handles each interrupt, as far as events said it.
    pub fn irq_actions(&self) -> &Actions {
        &self.irq_actions
    }

    /// The name of a system call.
    pub fn call_name(&self, call: u32) -> &str {
        self.binding.calls.get(call)
    }

    /// How many CPUs the trace has: it has streams of them, or events spoke of them.
    pub fn cpus(&self) -> usize {
        self.cpus_seen().max(self.cpus_of_trace as usize)
    }

    /// How many CPUs events spoke of.
    pub fn cpus_seen(&self) -> usize {
        self.cpus.iter().filter(|cpu| cpu.seen).count()
    }

    /// Whether a switch was not recorded on a CPU and nothing tells who was scheduled in: who seems
    /// to be there at the end, or to wait, may have left it unseen, too.
    pub fn is_doubted(&self, cpu: u32) -> bool {
        self.cpus
            .get(cpu as usize)
            .is_some_and(|state| state.doubted)
    }

    /// The name of what nobody saw opened.
    pub fn unknown_name(&self) -> Arc<str> {
        self.unknown.clone()
    }

    /// The state of a CPU, which is seen from now on.
    #[inline]
    fn cpu(&mut self, cpu: u32) -> Option<&mut CpuState> {
        if self.cpus.len() <= cpu as usize {
            self.make_room(cpu)?;
        }
        let state = &mut self.cpus[cpu as usize];
        state.seen = true;
        Some(state)
    }

    #[cold]
    fn make_room(&mut self, cpu: u32) -> Option<()> {
        if cpu >= CPUS_MAX {
            return None;
        }
        let gone_back_ns = self.gone_back_ns;
        self.cpus.resize_with(cpu as usize + 1, || CpuState {
            last_ns: i64::MIN,
            told_ns: i64::MIN,
            gone_back_ns,
            ..CpuState::default()
        });
        Some(())
    }

    /// The task on a CPU.
    #[inline]
    pub fn current(&self, cpu: u32) -> Option<ProcId> {
        self.cpus.get(cpu as usize)?.current
    }

    /// The task that has a CPU while no handler runs there.
    pub fn task_on(&self, cpu: u32) -> Option<ProcId> {
        let state = self.cpus.get(cpu as usize)?;
        state.current.filter(|_| !state.handlers.are_open())
    }

    /// What the trace's classes say; who walks over events keeps it beside the state.
    #[inline]
    pub fn binding(&self) -> &Arc<Binding> {
        &self.binding
    }

    /// Which families of events the trace has.
    pub fn families(&self) -> Families {
        self.families
    }

    /// Interrupts of timers are shown, or their expiries.
    fn sees_timers(&self) -> bool {
        self.families.vector || self.families.timer
    }

    /// Takes in an event of the instant `now_ns` of the wall clock.
    #[inline]
    pub fn event<S: Sink>(&mut self, event: &EventView<'_>, now_ns: i64, sink: &mut S) {
        let bound = self.binding.get(event.class()).copied();
        self.bound_event(bound.as_ref(), event, now_ns, sink);
    }

    /// The same with what the event's class says, for who keeps the [binding](Kernel::binding)
    /// beside the state.
    #[inline]
    pub fn bound_event<S: Sink>(
        &mut self,
        bound: Option<&Bound>,
        event: &EventView<'_>,
        now_ns: i64,
        sink: &mut S,
    ) {
        self.now_ns = now_ns;
        self.first_ns = self.first_ns.min(now_ns);
        let Some(bound) = bound else { return };
        if let Some(cpu) = self.place(bound, event) {
            self.witness(bound, cpu, event, now_ns, sink);
            self.take_in(&bound.known, cpu, event, sink);
        }
    }

    /// On which CPU an event was; what happened on none that we know of happened to nobody.
    #[inline(always)] // a few comparisons for each event
    pub fn place(&self, bound: &Bound, event: &EventView<'_>) -> Option<u32> {
        let cpu = match bound.cpu {
            Some(field) => Some(event.u64(field) as u32),
            None => event.cpu().map(|cpu| cpu.0),
        };
        cpu.filter(|cpu| *cpu < CPUS_MAX)
    }

    /// Takes in what any event says: that its CPU is recorded and, where the tracer tells, which
    /// task had it.
    #[inline(always)] // a few comparisons for each event
    pub fn witness<S: Sink>(
        &mut self,
        bound: &Bound,
        cpu: u32,
        event: &EventView<'_>,
        now_ns: i64,
        sink: &mut S,
    ) {
        self.now_ns = now_ns;
        self.first_ns = self.first_ns.min(now_ns);
        if !matches!(bound.known, Known::Function(_) | Known::Evidence(_)) {
            self.begin_recording(cpu, sink);
        }
        // A switch keeps interrupts off to its end.
        let is_interrupt = matches!(
            bound.known,
            Known::Handler(Handler::IrqEntry { .. } | Handler::VectorEntry(_))
        );
        if let Some(current) = bound.current {
            self.prove(cpu, (event.i64(current) as i32, is_interrupt), sink);
            let says = matches!(bound.known, Known::Current);
            if let Some(state) = self.cpu(cpu).filter(|_| says) {
                state.says_current = true;
            }
        } else if bound.confirms {
            self.confirm(cpu, is_interrupt, sink);
        }
    }

    /// Takes in what an event is about, behind [`Kernel::witness`].
    #[inline(always)] // who calls it knows of which kind the event is
    pub fn take_in<S: Sink>(
        &mut self,
        known: &Known,
        cpu: u32,
        event: &EventView<'_>,
        sink: &mut S,
    ) {
        match *known {
            Known::Sched(ref sched) => self.scheduling(event, cpu, sched, sink),
            Known::Life(life) => self.life(event, life, sink),
            Known::Stop(stop) => self.stop(event, cpu, stop),
            Known::Handler(handler) => self.interrupt(event, cpu, handler, sink),
            Known::Call(call) => self.call(event, cpu, call, sink),
            Known::Fault { begins } => self.note_fault(cpu, begins),
            Known::Device(device) => self.device(event, cpu, device, sink),
            Known::Dump(dump) => self.state_dump(event, dump, sink),
            Known::Function(function) => self.function(event, cpu, function, sink),
            Known::Evidence(_) | Known::Current => {}
        }
        if self.follows.stretches {
            self.follow(cpu, sink);
        }
    }
}
