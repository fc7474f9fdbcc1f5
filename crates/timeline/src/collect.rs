//! What a walk learns as it goes: it tells the tracks, and keeps the rest.

use event::ClassId;
use kernel_state::{
    Change, Holder, Kernel, ProcId, Sink, Topic, Topics, Waker, WasSoftirq, sum_up,
};
use trace::{EventView, LossCause, Lost, Trace};

use crate::activation::{Activation, Family, NO_TASK};
use crate::gather::{Teller, Told};
use crate::index::{CHECKPOINT_EVENTS, Index, Loss, TaskFacts};
use crate::power::Power;
use crate::state::{Kind, Segment, State, WokenBy};
use crate::track::Track;
use crate::users::Users;

/// What is known of a trace so far, but for its tracks, which are told.
#[derive(Debug)]
pub(crate) struct Collect {
    /// Without tracks and without what was timed.
    index: Index,
    teller: Teller,
    /// System calls by number that were seen.
    calls: u32,
    /// Losses that begin behind the last event so far.
    held: Vec<Loss>,
    /// Events of the instant of the last one, it among them.
    of_instant: u32,
    power: Power,
    users: Users,
    /// Who had the CPU in one wait; its room serves the next one.
    behind: Vec<(Holder, i64)>,
}

impl Collect {
    /// A wait is told with who had the CPU for most of it.
    fn waited(&mut self, process: ProcId, since_ns: i64, behind: &[(Holder, i64)]) {
        self.behind.clear();
        self.behind.extend_from_slice(behind);
        sum_up(&mut self.behind);
        let most = self.behind.iter().max_by_key(|(_, ns)| *ns);
        let task = most.and_then(|(holder, _)| holder.task());
        self.teller.tell(Told::Waited(process, since_ns, task));
    }

    pub fn new(trace: &Trace, teller: Teller) -> Collect {
        Collect {
            index: Index::default(),
            teller,
            calls: 0,
            held: Vec::new(),
            of_instant: 0,
            power: Power::new(trace),
            users: Users::new(trace),
            behind: Vec::new(),
        }
    }

    /// Whether it reads events of a class itself.
    pub fn reads(&self, class: ClassId) -> bool {
        self.power.reads(class) || self.users.reads(class)
    }

    /// What the model of the kernel does not follow.
    #[inline]
    pub fn beside(&mut self, event: &EventView<'_>, now_ns: i64) {
        self.power.event(event, now_ns);
        self.users.event(event, now_ns);
    }

    /// The events so far.
    pub fn events(&self) -> u64 {
        self.index.events
    }

    /// The last event, where there was one.
    pub fn last_ns(&self) -> Option<i64> {
        (self.index.events > 0).then_some(self.index.end_ns)
    }

    /// Bytes could not be read.
    pub fn damaged(&mut self) {
        self.index.damages += 1;
    }

    /// What was told so far is heard.
    pub fn flush(&mut self) {
        self.teller.flush();
    }

    /// What is known of all that was flushed.
    pub fn look(&self, kernel: &Kernel) -> Index {
        let (mut head, open) = rest(self.index.clone(), self.calls, kernel);
        put_beside(&mut head, self.power.clone(), self.users.clone());
        self.teller.look(head, open)
    }

    /// An event at this instant.
    #[inline]
    pub fn count(&mut self, now_ns: i64) {
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

    /// Events are missing.
    pub fn lost(&mut self, kernel: &mut Kernel, lost: &Lost, offset_ns: i64) {
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
    #[inline]
    pub fn lose(&mut self, kernel: &mut Kernel, now_ns: i64) {
        if !self.held.is_empty() {
            self.lose_begun(kernel, now_ns);
        }
    }

    #[cold]
    fn lose_begun(&mut self, kernel: &mut Kernel, now_ns: i64) {
        let (begun, held): (Vec<Loss>, Vec<Loss>) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|loss| loss.begin_ns <= now_ns);
        self.held = held;
        for loss in begun {
            self.users.lose(loss.begin_ns);
            kernel.lost(loss.cpu, loss.begin_ns, loss.end_ns, self);
        }
    }

    fn thread(&mut self, task: ProcId, state: State, segment: Segment) {
        let segment = Segment { state, ..segment };
        self.teller.tell(Told::Thread(task, segment));
    }

    #[cold]
    fn was_softirq(&mut self, was: &WasSoftirq) {
        let segment = unknown(was.from_ns, was.until_ns);
        let told = Told::WasSoftirq(was.cpu, was.process, segment);
        self.teller.tell(told);
    }

    /// A handler or a system call ended that began at `begin_ns`.
    #[inline]
    fn ended(&mut self, family: Family, (begin_ns, end_ns): (i64, i64), one: Activation) {
        let latency_ns = end_ns.saturating_sub(begin_ns);
        self.timed(
            family,
            Activation {
                end_ns,
                latency_ns,
                ..one
            },
        );
    }

    #[inline(never)]
    fn handler_ended(&mut self, family: Family, ns: (i64, i64), cpu: u32, number: i64) {
        let Ok(what) = u32::try_from(number) else {
            return;
        };
        let one = Activation {
            task: NO_TASK,
            cpu,
            what,
            ..Activation::default()
        };
        self.ended(family, ns, one);
    }

    #[inline(never)]
    fn call_ended(&mut self, ns: (i64, i64), cpu: u32, process: ProcId, call: u32) {
        self.calls = self.calls.max(call.saturating_add(1));
        let one = Activation {
            task: process.0,
            cpu,
            what: call,
            ..Activation::default()
        };
        self.ended(Family::Call, ns, one);
    }

    fn name_irq(&mut self, irq: i64, name: &[u8]) {
        if let (Ok(irq), false) = (u32::try_from(irq), name.is_empty()) {
            let name = || event::plain_text(name);
            self.index.irq_names.entry(irq).or_insert_with(name);
        }
    }

    #[inline(never)]
    fn scheduled_in(
        &mut self,
        (cpu, process): (u32, ProcId),
        at_ns: i64,
        woken_ns: Option<i64>,
        waited_since_ns: Option<i64>,
    ) {
        if let Some(since_ns) = waited_since_ns {
            let state = State::new(Kind::Runnable, None);
            self.thread(process, state, unknown(since_ns, at_ns));
        }
        if let Some(woken_ns) = woken_ns {
            let one = Activation {
                task: process.0,
                cpu,
                ..Activation::default()
            };
            self.ended(Family::Wakeup, (woken_ns, at_ns), one);
        }
    }

    /// All but the tracks, and what is still open.
    pub fn finish(self, kernel: &Kernel) -> (Index, Vec<Told>) {
        let (mut head, open) = rest(self.index, self.calls, kernel);
        put_beside(&mut head, self.power, self.users);
        (head, open)
    }

    fn timed(&mut self, family: Family, one: Activation) {
        self.teller.tell(Told::Timed(family, one));
    }
}

/// What the model of the kernel does not follow, up to the last event.
fn put_beside(index: &mut Index, mut power: Power, users: Users) {
    power.finish(&index.losses);
    (index.frequencies, index.idle_states) = (power.frequencies, power.idle_states);
    (index.users, index.user_names) = users.finish(index.end_ns);
}

/// The index but for its tracks, which are only as many as they will be, and what is still open.
fn rest(mut index: Index, calls: u32, kernel: &Kernel) -> (Index, Vec<Told>) {
    let open = open(kernel, index.end_ns);
    index.cpus.resize_with(kernel.cpus(), Track::default);
    let tasks = kernel.processes().map(|(_, process)| TaskFacts {
        tid: process.tid,
        pid: process.pid,
        prio: process.prio,
        comm: match process.comm.bytes() {
            b"" => process.woken_as.text(),
            _ => process.comm.text(),
        },
    });
    index.tasks = tasks.collect();
    let count = index.tasks.len();
    index.threads.resize_with(count, Track::default);
    let names = (0..calls).map(|call| kernel.call_name(call).to_owned());
    index.call_names = names.collect();
    (index, open)
}

/// What has begun and has not ended.
fn open(kernel: &Kernel, end_ns: i64) -> Vec<Told> {
    let mut open = Vec::new();
    kernel.open_stretches(end_ns, |cpu, what, holder, from_ns, until_ns| {
        open.push(Told::Stayed(cpu, what, holder, unknown(from_ns, until_ns)));
    });
    for (id, process) in kernel.processes() {
        let waits = process.runnable_since_ns.map(|ns| (ns, false));
        let begun = waits.or(process.blocked_since_ns.map(|ns| (ns, true)));
        let known = begun.filter(|(since_ns, blocked)| {
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
        open.push(Told::Thread(id, Segment { state, ..segment }));
    }
    open
}

fn unknown(begin_ns: i64, end_ns: i64) -> Segment {
    Segment {
        begin_ns,
        end_ns,
        state: State::UNKNOWN,
    }
}

fn cause(cause: LossCause) -> u8 {
    match cause {
        LossCause::Discarded => 1,
        LossCause::Overrun => 2,
        LossCause::Damaged => 3,
        LossCause::Cut => 4,
        LossCause::Missing => 5,
        LossCause::Silent => 6,
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
    const TOPICS: Topics = Topics::of(&[
        Topic::Waits,
        Topic::Stretches,
        Topic::Handlers,
        Topic::Calls,
    ]);

    /// Where a change is made it is known which of these it is: the others are not put together.
    #[inline(always)]
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
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
                self.teller.tell(Told::Stayed(cpu, what, holder, segment));
            }
            Change::WasSoftirq(ref was) => self.was_softirq(was),
            Change::Woken {
                process,
                by,
                blocked_since_ns: Some(since_ns),
            } if !is_idle(process) => {
                let state = State::waits(woken_by(by));
                self.thread(process, state, unknown(since_ns, kernel.now_ns()));
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
                self.scheduled_in((cpu, process), at_ns, woken_ns, waited_since_ns);
            }
            Change::Settled {
                process,
                at_ns,
                waited_since_ns,
                lossy: true,
            } => self
                .teller
                .tell(Told::RanBefore(process, waited_since_ns, at_ns)),
            Change::Waited {
                process,
                since_ns,
                behind,
                ..
            } => self.waited(process, since_ns, behind),
            Change::IrqEntry { irq, name } => self.name_irq(irq, name),
            Change::IrqExit { cpu, irq, begin_ns } => {
                self.handler_ended(Family::Irq, (begin_ns, kernel.now_ns()), cpu, irq)
            }
            Change::SoftirqExit {
                cpu, vec, begin_ns, ..
            } => self.handler_ended(Family::Softirq, (begin_ns, kernel.now_ns()), cpu, vec),
            Change::CallExit {
                process,
                cpu,
                call,
                begin_ns,
                ..
            } => self.call_ended((begin_ns, kernel.now_ns()), cpu, process, call),
            _ => {}
        }
    }
}
