//! Who had each CPU, from one switch to the next.
//!
//! A run is told when the switch that ends it has shown who had the CPU: some kernels do not record
//! what some tasks do themselves, their switch away from the CPU among it, and events can be lost.
//! What nobody knows is told as unknown; it is never given to the task that was seen last.

use event::Prio;

use super::process::ProcId;
use super::stretches::stretches;
use super::waker::CpuWhat;
use super::{Change, Kernel, Sink};

/// Where a CPU's event is earlier than the one before it by as much, a clock was set, or events are
/// not in order. By less they can be where an interrupt comes while one is written.
const BACK_NS_MIN: i64 = 100_000;
/// So long behind the event of a switch its CPU may still be in the name of who leaves: programs of
/// other tools run at that event.
const IN_SWITCH_NS_MAX: i64 = 200_000;

/// Who has a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Nobody knows.
    #[default]
    Unknown,
    /// Nobody: it idles.
    Idle,
    /// This task.
    Task(ProcId),
    /// A task; nobody knows which.
    SomeTask,
}

impl Holder {
    /// The task, where it is known.
    pub fn task(self) -> Option<ProcId> {
        match self {
            Holder::Task(task) => Some(task),
            _ => None,
        }
    }

    /// What the CPU does for it outside of handlers.
    pub(super) fn work(self, seen: CpuWhat) -> CpuWhat {
        match (self, seen) {
            (Holder::Unknown, _) => CpuWhat::Unknown,
            (Holder::Idle, _) => CpuWhat::Idle,
            (Holder::Task(_), CpuWhat::Call) => CpuWhat::Call,
            (Holder::Task(_) | Holder::SomeTask, _) => CpuWhat::Task,
        }
    }
}

/// What is believed of a run that is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Belief {
    /// The CPU has had no event.
    #[default]
    Unseen,
    /// It had no switch: who leaves it first has had it since its first event.
    UntilFirstSwitch,
    /// Events were lost since the last switch.
    Lost,
    /// The last switch said so.
    Switched(Holder),
    /// One whose events are not recorded had it at the last switch; who else did since, nobody
    /// recorded.
    Untracked,
}

/// Wake-ups of the task that seems to have a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WokenThere {
    /// The first of them.
    pub since_ns: i64,
    /// How many.
    pub count: u64,
}

/// What a CPU does from one switch to the next.
/// Tasks of which nobody knows whether they ran on a CPU that seemed to idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone {
    /// The first of them came.
    pub first_ns: i64,
    /// The highest priority among them; none where one of them is not known.
    pub prio: Option<Prio>,
}

impl Gone {
    /// One more of them.
    pub fn with(self, other: Gone) -> Gone {
        Gone {
            first_ns: self.first_ns.min(other.first_ns),
            // Less is more urgent.
            prio: self.prio.zip(other.prio).map(|(one, other)| one.min(other)),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub belief: Belief,
    /// The thread's id of who is believed to have the CPU.
    tid: Option<i32>,
    pub begin_ns: i64,
    /// An event since then says so too: its tracer told who had the CPU.
    proven_ns: i64,
    /// So did the first of them, and no switch.
    pub is_found: bool,
    /// It was woken since then: it may have slept.
    pub woken: Option<WokenThere>,
    /// What was lost of it is who had the CPU, not events.
    pub is_doubted: bool,
    /// Those that came on the run queue of the CPU while that seemed to idle, and are no more there
    /// now, or of which nobody saw that they wait: they may have run.
    pub gone: Option<Gone>,
    /// Tasks were moved away from its run queue meanwhile.
    pub moved: bool,
    /// What it does, and since when; only where stretches are followed.
    pub stretches: Vec<(i64, CpuWhat)>,
}

impl Run {
    /// The task that is believed to have the CPU.
    pub fn task(&self) -> Option<ProcId> {
        match self.belief {
            Belief::Switched(holder) => holder.task(),
            _ => None,
        }
    }

    /// Up to here it surely had the CPU.
    pub fn sure_ns(&self) -> i64 {
        self.begin_ns.max(self.proven_ns)
    }

    /// What the CPU does outside of handlers, as far as the last switch says.
    pub fn idles(&self) -> bool {
        self.belief == Belief::Switched(Holder::Idle)
    }
}

/// A part of a run that is known to be of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub holder: Holder,
    pub begin_ns: i64,
    pub end_ns: i64,
    pub inferred: bool,
}

impl Part {
    pub fn known(holder: Holder, begin_ns: i64, end_ns: i64) -> Part {
        Part {
            holder,
            begin_ns,
            end_ns,
            inferred: false,
        }
    }
}

impl Kernel {
    /// The CPU has an event: its recording has begun. What it did before nobody knows.
    #[inline]
    pub(super) fn begin_recording<S: Sink>(&mut self, cpu: u32, sink: &mut S) {
        let now_ns = self.now_ns;
        let Some(state) = self.cpu(cpu) else { return };
        let last_ns = std::mem::replace(&mut state.last_ns, now_ns);
        let is_unseen = state.run.belief == Belief::Unseen;
        if last_ns.saturating_sub(now_ns) >= BACK_NS_MIN {
            self.steps_back(cpu, last_ns, sink);
        }
        if is_unseen {
            self.begin_first_run(cpu, sink);
        }
    }

    #[cold]
    fn begin_first_run<S: Sink>(&mut self, cpu: u32, sink: &mut S) {
        let now_ns = self.now_ns;
        let state = &mut self.cpus[cpu as usize];
        state.begun_ns = Some(now_ns);
        state.run.belief = Belief::UntilFirstSwitch;
        state.run.begin_ns = now_ns;
        self.tell_unseen(cpu, now_ns, sink);
    }

    /// When the first event came; what was before nobody recorded.
    pub fn first_ns(&self) -> i64 {
        self.first_ns
    }

    /// When the first event of a CPU came.
    pub fn begun_ns(&self, cpu: u32) -> Option<i64> {
        self.cpus.get(cpu as usize)?.begun_ns
    }

    /// Whether the events of a CPU have not begun, or began behind `since_ns`: what it did unseen
    /// may bear on what went on since.
    pub(super) fn has_begun_since(&self, since_ns: i64) -> bool {
        self.all_begun_ns()
            .is_none_or(|begun_ns| begun_ns > since_ns)
    }

    /// When the first event had come of each CPU; nothing where one has none yet.
    pub(super) fn all_begun_ns(&self) -> Option<i64> {
        let all = 0..(self.cpus_of_trace as usize).max(self.cpus.len());
        let mut begun = all.map(|cpu| self.cpus.get(cpu).and_then(|state| state.begun_ns));
        begun.try_fold(i64::MIN, |last_ns, begun_ns| Some(last_ns.max(begun_ns?)))
    }

    /// Tells what a CPU did before its first event.
    pub(super) fn tell_unseen<S: Sink>(&mut self, cpu: u32, end_ns: i64, sink: &mut S) {
        let part = Part::known(Holder::Unknown, self.first_ns, end_ns);
        self.tell(cpu, &Run::default(), part, sink);
    }

    /// Who is on a CPU, as the model sees it.
    #[inline]
    fn holder(&self, id: ProcId) -> Holder {
        match self.process(id).tid {
            0 => Holder::Idle,
            _ => Holder::Task(id),
        }
    }

    /// `prev` leaves the CPU to `next` now: what it did since the switch before is known.
    #[inline]
    pub(super) fn end_run<S: Sink>(
        &mut self,
        cpu: u32,
        (prev, next): (ProcId, ProcId),
        sink: &mut S,
    ) {
        let (now_ns, holder) = (self.now_ns, self.holder(prev));
        let Some(state) = self.cpu(cpu) else { return };
        state.left_idle |= holder == Holder::Idle;
        let as_believed = state.run.belief == Belief::Switched(holder) && !state.run.moved;
        if as_believed && !self.follows.stretches {
            let begin_ns = self.cpus[cpu as usize].run.begin_ns;
            let part = Part::known(holder, begin_ns, now_ns);
            if let Some(part) = self.claim(cpu, part) {
                let part = self.tell_unknown(cpu, &Run::default(), part, sink);
                self.tell_ran(cpu, part, sink);
            }
            return;
        }
        self.run_is_over(cpu, (prev, Some(next)), sink);
    }

    /// The same where the tracer does not say how it left the CPU.
    fn run_is_over<S: Sink>(
        &mut self,
        cpu: u32,
        (prev, next): (ProcId, Option<ProcId>),
        sink: &mut S,
    ) {
        let (now_ns, holder) = (self.now_ns, self.holder(prev));
        let Some(state) = self.cpu(cpu) else { return };
        let run = std::mem::take(&mut state.run);
        let whole = |holder| Part {
            holder,
            begin_ns: run.begin_ns,
            end_ns: now_ns,
            inferred: false,
        };
        match run.belief {
            Belief::Unseen => {}
            Belief::UntilFirstSwitch => {
                let seen_ns = self.seen_elsewhere_ns(prev).clamp(run.begin_ns, now_ns);
                let before = Part::known(Holder::Unknown, run.begin_ns, seen_ns);
                self.tell(cpu, &run, before, sink);
                let part = Part {
                    begin_ns: seen_ns,
                    ..whole(match self.is_untracked(prev) {
                        true => Holder::Unknown,
                        false => holder,
                    })
                };
                if let Some(part) = self.claim(cpu, part) {
                    let part = self.tell_unknown(cpu, &run, part, sink);
                    self.cpus[cpu as usize].first_run = Some((run, part));
                }
                return;
            }
            Belief::Lost => {
                self.tell_before_loss(cpu, sink);
                self.tell(cpu, &run, whole(Holder::Unknown), sink);
                self.doubt_earlier(cpu, (holder, next), false, sink);
                if run.is_doubted {
                    self.doubt_waiting(cpu, holder);
                }
            }
            Belief::Untracked => self.tell(cpu, &run, whole(Holder::Unknown), sink),
            Belief::Switched(believed) if believed == holder => {
                if run.moved {
                    self.settle_moved(cpu, None, sink);
                }
                self.tell(cpu, &run, whole(holder), sink);
            }
            Belief::Switched(believed) => {
                self.contradicted(cpu, &run, (believed, holder, next), now_ns, sink);
            }
        }
        self.recycle(cpu, run);
    }

    /// Until when a task is told to sleep or to wait for a CPU, and had none, or until when nobody
    /// recorded what it did.
    fn seen_elsewhere_ns(&self, id: ProcId) -> i64 {
        let process = self.process(id);
        match process.blocked_since_ns {
            Some(_) => self.now_ns,
            None => process
                .runnable_since_ns
                .max(process.tracked_ns)
                .unwrap_or(i64::MIN),
        }
    }

    /// Since when a CPU has whom it seems to have, as a switch said.
    #[inline]
    pub(super) fn switched_in_ns(&self, cpu: u32) -> Option<i64> {
        let run = &self.cpus.get(cpu as usize)?.run;
        matches!(run.belief, Belief::Switched(_)).then_some(run.begin_ns)
    }

    /// Whether what a task does is not in the trace, which is of others alone.
    pub(super) fn is_untracked(&self, task: ProcId) -> bool {
        self.tracks && self.process(task).tracked_ns.is_none()
    }

    /// `next` has the CPU from now on.
    #[inline]
    pub(super) fn begin_run(&mut self, cpu: u32, next: ProcId) {
        let (now_ns, holder) = (self.now_ns, self.holder(next));
        let tid = self.process(next).tid;
        let is_untracked = self.is_untracked(next);
        let Some(state) = self.cpu(cpu) else { return };
        state.run.belief = match is_untracked {
            true => Belief::Untracked,
            false => Belief::Switched(holder),
        };
        state.run.tid = Some(tid);
        (state.run.begin_ns, state.run.proven_ns) = (now_ns, now_ns);
        (state.run.is_found, state.run.is_doubted) = (false, false);
        (state.run.woken, state.run.gone) = (None, None);
        state.on_its_way = None;
        state.current = holder.task();
        self.processes.get_mut(next).seen_on = cpu;
    }

    /// The tracer says that the task `tid` has the CPU now, also where it is interrupted, as it is
    /// at the event where that `is_interrupt`.
    #[inline]
    pub(super) fn prove<S: Sink>(
        &mut self,
        cpu: u32,
        (tid, is_interrupt): (i32, bool),
        sink: &mut S,
    ) {
        let now_ns = self.now_ns;
        let Some(state) = self.cpu(cpu) else { return };
        match state.run.tid == Some(tid) {
            true if state.run.woken.is_some() => {}
            true => {
                state.run.proven_ns = now_ns;
                state.on_its_way = None;
            }
            false => self.disprove(cpu, (tid, is_interrupt), sink),
        }
    }

    /// An event that is of whom the recorder says to have the CPU.
    #[inline]
    pub(super) fn confirm<S: Sink>(&mut self, cpu: u32, is_interrupt: bool, sink: &mut S) {
        let now_ns = self.now_ns;
        let Some(state) = self
            .cpus
            .get_mut(cpu as usize)
            .filter(|cpu| cpu.says_current)
        else {
            return;
        };
        if let Some(tid) = state.on_its_way {
            // The recorder says it once, and this event is that task's, too.
            return self.disprove(cpu, (tid, is_interrupt), sink);
        }
        if state.run.woken.is_none() {
            state.run.proven_ns = now_ns;
        }
    }

    /// By the last switch another one has the CPU, or nobody knows who: a switch was not recorded.
    #[cold]
    fn disprove<S: Sink>(&mut self, cpu: u32, (tid, is_interrupt): (i32, bool), sink: &mut S) {
        // perf's number of a task that is no more; lttng-analyses reads switches alone.
        if tid < 0 || self.follows.stale_names {
            return;
        }
        let process = self.processes.find_or_add(tid);
        let left = self.cpus[cpu as usize].left;
        let is_of_switch =
            |(prev, at_ns)| prev == process && self.now_ns - at_ns <= IN_SWITCH_NS_MAX;
        if !is_interrupt && left.is_some_and(is_of_switch) {
            // It is on its way out, unless later events are still its.
            self.cpus[cpu as usize].on_its_way = Some(tid);
            return;
        }
        self.left_for(cpu, process, sink);
        self.run_is_over(cpu, (process, None), sink);
        if self.was_woken(process) || self.waits(process) {
            self.scheduled_in_by(cpu, process, sink);
        }
        let task = self.processes.get_mut(process);
        task.blocked_since_ns = None;
        task.runnable_since_ns = None;
        self.begin_run(cpu, process);
        let state = &mut self.cpus[cpu as usize];
        state.run.is_found = true;
        // None is known to span a switch that was not recorded.
        state.handlers.clear();
        sink.change(self, &Change::Found { cpu, process });
    }

    /// Events were lost on a CPU: what it did up to then is told, and nothing from there on.
    pub(super) fn lose_run(&mut self, cpu: u32, from_ns: i64) {
        let Some(state) = self.cpus.get_mut(cpu as usize) else {
            return;
        };
        if let Some(task) = state.current.take() {
            self.processes.get_mut(task).pending = None;
        }
        let state = &mut self.cpus[cpu as usize];
        let run = std::mem::take(&mut state.run);
        let end_ns = from_ns.max(run.begin_ns);
        let (belief, begin_ns) = (run.belief, run.begin_ns);
        if belief == Belief::Unseen {
            return;
        }
        // Who had it before the hole is known only where a switch before said it: what was found
        // may have been in a handler, whose end was lost.
        let holder = match belief {
            Belief::Switched(holder) if !run.is_found => holder,
            _ => Holder::Unknown,
        };
        let part = Part::known(holder, begin_ns, end_ns);
        let state = &mut self.cpus[cpu as usize];
        state.run.belief = Belief::Lost;
        state.run.begin_ns = end_ns;
        state.run.stretches.push((end_ns, CpuWhat::Unknown));
        if belief != Belief::Lost {
            state.before_loss = Some((run, part));
            return;
        }
        // Losses come in the order of their ends: this one began before, or after, the last.
        let begin_ns = begin_ns.min(from_ns);
        state.run.begin_ns = begin_ns;
        if let Some((_, before)) = &mut state.before_loss {
            before.end_ns = before.end_ns.min(from_ns);
            state.run.begin_ns = begin_ns.max(before.begin_ns);
        }
        // Handlers between the two are certain.
        state.run.stretches = run.stretches;
        state.run.stretches.push((end_ns, CpuWhat::Unknown));
    }

    /// For who follows handlers by itself: one ends that was not seen to begin.
    pub fn handled_unseen<S: Sink>(&mut self, cpu: u32, now_ns: i64, sink: &mut S) {
        self.now_ns = now_ns;
        self.unseen_handler(cpu, sink);
    }

    /// A handler ends that was not seen to begin: of what came before the CPU's first switch, or of
    /// a run that was found, nobody knows what it was up to here.
    pub(super) fn unseen_handler<S: Sink>(&mut self, cpu: u32, sink: &mut S) {
        let end_ns = self.now_ns;
        let Some(state) = self.cpus.get_mut(cpu as usize) else {
            return;
        };
        if state.run.belief != Belief::UntilFirstSwitch && !state.run.is_found {
            return;
        }
        let mut run = std::mem::take(&mut state.run);
        let begin_ns = std::mem::replace(&mut run.begin_ns, end_ns);
        let part = Part::known(Holder::Unknown, begin_ns, end_ns);
        self.tell(cpu, &run, part, sink);
        run.stretches.clear();
        self.cpus[cpu as usize].run = run;
    }

    /// Tells what a CPU did up to the loss after which nothing is known of it.
    pub(super) fn tell_before_loss<S: Sink>(&mut self, cpu: u32, sink: &mut S) {
        if let Some((run, part)) = self.cpus[cpu as usize].before_loss.take() {
            self.tell(cpu, &run, part, sink);
        }
    }

    /// The room of a run's stretches serves the next run.
    fn recycle(&mut self, cpu: u32, run: Run) {
        let mut stretches = run.stretches;
        stretches.clear();
        self.cpus[cpu as usize].run.stretches = stretches;
    }

    /// Tells a part of a run.
    pub(super) fn tell<S: Sink>(&mut self, cpu: u32, run: &Run, part: Part, sink: &mut S) {
        if let Some(part) = self.claim(cpu, part) {
            let part = self.tell_unknown(cpu, run, part, sink);
            self.tell_claimed(cpu, run, part, sink);
        }
    }

    /// What of a part was not told before: where a clock went back, some of it may have been.
    #[inline]
    fn claim(&mut self, cpu: u32, part: Part) -> Option<Part> {
        let state = &mut self.cpus[cpu as usize];
        let begin_ns = part.begin_ns.max(state.told_ns);
        if part.end_ns <= begin_ns {
            return None;
        }
        state.told_ns = part.end_ns;
        Some(Part { begin_ns, ..part })
    }

    /// Tells of a part what lies up to the end of a time of which nobody knows anything, as a clock
    /// went back over it; returns the rest.
    #[inline]
    fn tell_unknown<S: Sink>(&mut self, cpu: u32, run: &Run, part: Part, sink: &mut S) -> Part {
        let (from_ns, until_ns) = self.cpus[cpu as usize].gone_back_ns;
        if part.begin_ns >= until_ns || part.end_ns <= from_ns {
            return part;
        }
        let from_ns = from_ns.clamp(part.begin_ns, part.end_ns);
        let until_ns = until_ns.clamp(from_ns, part.end_ns);
        let before = Part {
            end_ns: from_ns,
            ..part
        };
        self.tell_claimed(cpu, run, before, sink);
        let unknown = Part::known(Holder::Unknown, from_ns, until_ns);
        self.tell_claimed(cpu, &Run::default(), unknown, sink);
        Part {
            begin_ns: until_ns,
            ..part
        }
    }

    /// Tells a part that is told for the first time.
    pub(super) fn tell_claimed<S: Sink>(&mut self, cpu: u32, run: &Run, part: Part, sink: &mut S) {
        if part.end_ns <= part.begin_ns {
            return;
        }
        self.tell_ran(cpu, part, sink);
        if !self.follows.stretches {
            return;
        }
        stretches(&run.stretches, part, |what, from_ns, until_ns| {
            let change = Change::Stayed {
                cpu,
                what,
                holder: part.holder,
                inferred: part.inferred,
                from_ns,
                until_ns,
            };
            sink.change(self, &change);
        });
    }

    /// The same without what the CPU did in it.
    #[inline(always)] // what a switch ends is known beforehand, and who is not told pays nothing
    fn tell_ran<S: Sink>(&mut self, cpu: u32, part: Part, sink: &mut S) {
        if part.end_ns <= part.begin_ns {
            return;
        }
        let change = Change::Ran {
            cpu,
            holder: part.holder,
            from_ns: part.begin_ns,
            until_ns: part.end_ns,
            inferred: part.inferred,
        };
        sink.change(self, &change);
        if self.follows.queues {
            self.queue_ran(cpu, (part.holder, part.begin_ns, part.end_ns), sink);
        }
    }
}

impl super::CpuState {
    /// Whether it had no event.
    pub(super) fn is_unseen(&self) -> bool {
        self.run.belief == Belief::Unseen
    }

    /// Whether the kernel does not record where this CPU stops to idle.
    pub(super) fn hides_idle(&self) -> bool {
        self.inferred > 0 && !self.left_idle
    }

    /// Who is believed to have the CPU, since when, and until when surely.
    pub(super) fn open_run(&self) -> (Holder, i64, i64) {
        (self.believed(), self.run.begin_ns, self.run.sure_ns())
    }

    /// The task that has the CPU is woken: it was about to sleep, or it has slept, unseen. That it
    /// has the CPU later proves no more that it had it all the time. A wake-up has two events.
    pub(super) fn wakes_itself(&mut self, at_ns: i64, is_first: bool) {
        let none = WokenThere {
            since_ns: at_ns,
            count: 0,
        };
        let woken = self.run.woken.get_or_insert(none);
        woken.count += u64::from(is_first);
    }

    /// Who is believed to have the CPU before its run is over.
    pub(super) fn believed(&self) -> Holder {
        match self.run.belief {
            Belief::Switched(Holder::Idle) if self.hides_idle() => Holder::Unknown,
            Belief::Switched(holder) => holder,
            _ => Holder::Unknown,
        }
    }
}
