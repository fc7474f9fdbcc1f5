//! The one pass over a trace that makes an [`Index`].

use event::{Result, TimeRange};
use kernel_state::{Change, CpuWhat, Follow, Holder, Kernel, ProcId, Sink, Waker};
use trace::{Item, LossCause, Lost, Trace};

use crate::index::{CHECKPOINT_EVENTS, Index, Loss, TaskFacts};
use crate::latency::{Activation, NO_TASK};
use crate::state::{Kind, State, WokenBy};
use crate::track::{Segment, Track};

/// Events between two looks at how far the walk is.
const LOOK_EVENTS: u64 = 1 << 16;

/// Makes an [`Index`] of a trace of one machine.
pub struct Builder<'t> {
    trace: &'t Trace,
}

/// How far a walk is.
pub struct Walked<'a> {
    /// The events so far.
    pub events: u64,
    /// The last of them, in nanoseconds of the wall clock.
    pub now_ns: i64,
    kernel: &'a Kernel,
    collect: &'a Collect,
}

impl Walked<'_> {
    /// What is known so far; costs a copy of it.
    pub fn index(&self) -> Index {
        self.collect.clone().finish(self.kernel)
    }
}

impl<'t> Builder<'t> {
    /// For this trace.
    pub fn new(trace: &'t Trace) -> Builder<'t> {
        Builder { trace }
    }

    /// Walks. `look` is told now and then how far the walk is, and ends it by a no.
    ///
    /// # Errors
    /// As [`trace::Cursor::next`]; a trace of several machines.
    pub fn walk(&self, mut look: impl FnMut(&Walked<'_>) -> bool) -> Result<Index> {
        kernel_state::bind::one_machine(self.trace)?;
        let follows = Follow {
            stretches: true,
            queues: true,
            stale_names: false,
        };
        let mut kernel = Kernel::new(self.trace, follows);
        let mut collect = Collect::default();
        let offset_ns = self.trace.info().wall_offset.as_ns();
        let mut cursor = self.trace.cursor(TimeRange::ALL);
        while let Some(item) = cursor.next()? {
            match item {
                Item::Event(event) => {
                    let now_ns = event.time().as_ns().saturating_add(offset_ns);
                    collect.lose(&mut kernel, now_ns);
                    collect.count(now_ns);
                    kernel.event(&event, now_ns, &mut collect);
                    let walked = Walked {
                        events: collect.index.events,
                        now_ns,
                        kernel: &kernel,
                        collect: &collect,
                    };
                    if walked.events.is_multiple_of(LOOK_EVENTS) && !look(&walked) {
                        break;
                    }
                }
                Item::Lost(lost) => collect.lost(&mut kernel, &lost, offset_ns),
                Item::Damage(_) => collect.index.damages += 1,
            }
        }
        // What the model holds back until it knows more is told at its end.
        if collect.index.events > 0 {
            kernel.finish(collect.index.end_ns, &mut collect);
        }
        Ok(collect.finish(&kernel))
    }
}

/// What was told so far.
#[derive(Clone, Debug, Default)]
struct Collect {
    index: Index,
    /// Losses that begin behind the last event so far.
    held: Vec<Loss>,
    /// Events of the instant of the last one, it among them.
    of_instant: u32,
}

impl Collect {
    fn count(&mut self, now_ns: i64) {
        let index = &mut self.index;
        if index.events == 0 {
            index.begin_ns = now_ns;
        }
        self.of_instant = match index.events > 0 && now_ns == index.end_ns {
            true => self.of_instant.saturating_add(1),
            false => 0,
        };
        if index.events.is_multiple_of(CHECKPOINT_EVENTS) {
            index.checkpoints.push((now_ns, self.of_instant));
        }
        index.events += 1;
        index.end_ns = now_ns;
    }

    fn lost(&mut self, kernel: &mut Kernel, lost: &Lost, offset_ns: i64) {
        let wall_ns = |at: event::Instant| at.as_ns().saturating_add(offset_ns);
        let loss = Loss {
            cpu: lost.cpu.map(|cpu| cpu.0),
            begin_ns: wall_ns(lost.range.begin),
            end_ns: wall_ns(lost.range.end),
            count: lost.count,
            cause: cause(lost.cause),
        };
        if lost.hides_what_happened() {
            self.held.push(loss.clone());
        }
        self.index.losses.push(loss);
        let seen = self.index.events > 0;
        self.lose(kernel, if seen { self.index.end_ns } else { i64::MAX });
    }

    /// The model is told of the losses that have begun by now. One that begins behind the last
    /// event takes nothing away from what lies before that.
    fn lose(&mut self, kernel: &mut Kernel, now_ns: i64) {
        if self.held.is_empty() {
            return;
        }
        let (begun, held): (Vec<Loss>, Vec<Loss>) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|loss| loss.begin_ns <= now_ns);
        self.held = held;
        for loss in begun {
            kernel.lost(loss.cpu, loss.begin_ns, loss.end_ns, self);
        }
    }

    fn cpu(&mut self, cpu: u32) -> &mut Track {
        let cpus = &mut self.index.cpus;
        if cpus.len() <= cpu as usize {
            cpus.resize_with(cpu as usize + 1, Track::default);
        }
        &mut cpus[cpu as usize]
    }

    fn thread(&mut self, task: ProcId) -> &mut Track {
        let threads = &mut self.index.threads;
        if threads.len() <= task.0 as usize {
            threads.resize_with(task.0 as usize + 1, Track::default);
        }
        &mut threads[task.0 as usize]
    }

    fn stayed(&mut self, cpu: u32, what: CpuWhat, holder: Holder, segment: Segment) {
        let kind = match what {
            CpuWhat::Unknown => return,
            CpuWhat::Idle => Kind::Idle,
            CpuWhat::Task => Kind::Run,
            CpuWhat::Call => Kind::Call,
            CpuWhat::Irq => Kind::Irq,
            CpuWhat::Softirq => Kind::Softirq,
        };
        let inferred = segment.state != State::UNKNOWN;
        let task = holder.task();
        let state = State::new(kind, task.map(|task| task.0)).inferred_if(inferred);
        self.cpu(cpu).push(Segment { state, ..segment });
        if let Some(task) = task {
            let state = State::new(kind, Some(cpu)).inferred_if(inferred);
            self.thread(task).push(Segment { state, ..segment });
        }
    }

    /// Handlers and system calls that ended.
    fn timed(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let end_ns = kernel.now_ns();
        let one = |cpu: u32, begin_ns: i64, task: u32, what: u32| Activation {
            end_ns,
            latency_ns: end_ns.saturating_sub(begin_ns),
            task,
            cpu,
            what,
        };
        let index = &mut self.index;
        match *change {
            Change::IrqEntry { irq, name } => {
                if let (Ok(irq), false) = (u32::try_from(irq), name.is_empty()) {
                    let name = || event::plain_text(name);
                    index.irq_names.entry(irq).or_insert_with(name);
                }
            }
            Change::IrqExit { cpu, irq, begin_ns } => {
                if let Ok(irq) = u32::try_from(irq) {
                    index.irqs.push(one(cpu, begin_ns, NO_TASK, irq));
                }
            }
            Change::SoftirqExit {
                cpu, vec, begin_ns, ..
            } => {
                if let Ok(vec) = u32::try_from(vec) {
                    index.softirqs.push(one(cpu, begin_ns, NO_TASK, vec));
                }
            }
            Change::CallExit {
                process,
                cpu,
                call,
                begin_ns,
                ..
            } => index.calls.push(one(cpu, begin_ns, process.0, call)),
            _ => {}
        }
    }

    /// What is still open is closed, and all is put in order.
    fn finish(mut self, kernel: &Kernel) -> Index {
        let end_ns = self.index.end_ns;
        let mut open = Vec::new();
        kernel.open_stretches(end_ns, |cpu, what, holder, from_ns, until_ns| {
            open.push((cpu, what, holder, from_ns, until_ns));
        });
        for (cpu, what, holder, from_ns, until_ns) in open {
            self.stayed(cpu, what, holder, unknown(from_ns, until_ns));
        }
        for (id, process) in kernel.processes() {
            let waits = process.runnable_since_ns.map(|ns| (ns, false));
            let open = waits.or(process.blocked_since_ns.map(|ns| (ns, true)));
            let known = open.filter(|(since_ns, blocked)| {
                kernel.is_known_since(*since_ns) && (*blocked || !process.doubtful)
            });
            let Some((since_ns, blocked)) = known.filter(|_| process.tid != 0) else {
                continue;
            };
            let state = match blocked {
                true => State::waits(WokenBy::Unknown),
                false => State::new(Kind::Runnable, None),
            };
            let segment = unknown(since_ns, end_ns);
            self.thread(id).push(Segment { state, ..segment });
        }
        self.index.cpus.resize_with(kernel.cpus(), Track::default);
        let tasks = kernel.processes().map(|(_, process)| TaskFacts {
            tid: process.tid,
            pid: process.pid,
            prio: process.prio,
            comm: match process.comm.bytes() {
                b"" => process.woken_as.text(),
                _ => process.comm.text(),
            },
        });
        self.index.tasks = tasks.collect();
        let count = self.index.tasks.len();
        self.index.threads.resize_with(count, Track::default);
        let tracks = self.index.cpus.iter_mut().chain(&mut self.index.threads);
        tracks.for_each(Track::finish);
        self.index.call_names = names_of_calls(kernel, &self.index.calls);
        let index = &mut self.index;
        let families = [
            &mut index.activations,
            &mut index.irqs,
            &mut index.softirqs,
            &mut index.calls,
        ];
        for family in families {
            family.sort_by_key(|one| one.end_ns);
        }
        self.index
    }
}

fn unknown(begin_ns: i64, end_ns: i64) -> Segment {
    Segment {
        begin_ns,
        end_ns,
        state: State::UNKNOWN,
    }
}

/// The names of the system calls that there are, by their numbers.
fn names_of_calls(kernel: &Kernel, calls: &[Activation]) -> Vec<String> {
    let count = calls.iter().map(|call| call.what.saturating_add(1));
    let count = count.max().unwrap_or(0);
    let names = (0..count).map(|call| kernel.call_name(call).to_owned());
    names.collect()
}

fn cause(cause: LossCause) -> u8 {
    match cause {
        LossCause::Discarded => 1,
        LossCause::Overrun => 2,
        LossCause::Damaged => 3,
        LossCause::Cut => 4,
        LossCause::Missing => 5,
        _ => 0,
    }
}

fn woken_by(waker: Waker) -> WokenBy {
    let number = |number: i64| u32::try_from(number).ok();
    match waker {
        Waker::Thread(task) => WokenBy::Task(task.0),
        Waker::Timer => WokenBy::Timer,
        Waker::Irq(irq) => number(irq).map_or(WokenBy::Unknown, WokenBy::Irq),
        Waker::Softirq(vec) => number(vec).map_or(WokenBy::Unknown, WokenBy::Softirq),
        Waker::During(_) | Waker::Vector(_) | Waker::Unknown => WokenBy::Unknown,
    }
}

impl Sink for Collect {
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let now_ns = kernel.now_ns();
        let is_idle = |id: ProcId| kernel.process(id).tid == 0;
        match *change {
            Change::Stayed {
                cpu,
                what,
                holder,
                inferred,
                from_ns,
                until_ns,
            } => {
                let mut segment = unknown(from_ns, until_ns);
                segment.state = segment.state.inferred_if(inferred);
                self.stayed(cpu, what, holder, segment);
            }
            Change::Woken {
                process,
                by,
                blocked_since_ns: Some(since_ns),
            } if !is_idle(process) => {
                let state = State::waits(woken_by(by));
                let segment = unknown(since_ns, now_ns);
                self.thread(process).push(Segment { state, ..segment });
            }
            Change::ScheduledIn {
                cpu,
                process,
                at_ns,
                woken_ns,
                waited_since_ns,
                lossy: false,
                ..
            } if !is_idle(process) => {
                if let Some(since_ns) = waited_since_ns {
                    let state = State::new(Kind::Runnable, None);
                    let segment = unknown(since_ns, at_ns);
                    self.thread(process).push(Segment { state, ..segment });
                }
                if let Some(woken_ns) = woken_ns {
                    self.index.activations.push(Activation {
                        end_ns: at_ns,
                        latency_ns: at_ns.saturating_sub(woken_ns),
                        task: process.0,
                        cpu,
                        what: 0,
                    });
                }
            }
            Change::Waited {
                process,
                since_ns,
                behind,
                ..
            } => {
                let most = behind.iter().max_by_key(|(_, ns)| *ns);
                let task = most.and_then(|(holder, _)| holder.task());
                let waits = self.thread(process).from(since_ns);
                if let Some(state) = waits.filter(|state| state.kind() == Kind::Runnable) {
                    *state = State::new(Kind::Runnable, task.map(|task| task.0));
                }
            }
            _ => self.timed(kernel, change),
        }
    }
}
