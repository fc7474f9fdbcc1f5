//! The tracks of a walk, put together on a thread of their own, while the walk goes on.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use kernel_state::{CpuWhat, Holder, ProcId};

use crate::activation::{Activation, Family};
use crate::index::Index;
use crate::kept::Spill;
use crate::state::{Kind, Segment, State};
use crate::timed::Timed;
use crate::track::Track;

/// What is told at once.
const BATCH: usize = 2048;
/// Batches that wait, at most: memory is bounded, whoever of the two is faster.
const BATCHES: usize = 16;

/// What the walk says of tracks and of what was timed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    /// What a CPU did in a stretch, and for whom; its state says whether that was inferred.
    Stayed(u32, CpuWhat, Holder, Segment),
    /// What it did for a thread was a softirq, in which that was preempted then.
    WasSoftirq(u32, ProcId, Segment),
    /// A stretch of a thread.
    Thread(ProcId, Segment),
    /// Who had the CPU for which a thread waited from then on.
    Waited(ProcId, i64, Option<ProcId>),
    /// A thread that was scheduled in at the instant had seemed to wait since then, and nobody
    /// knows for how long it did.
    RanBefore(ProcId, Option<i64>, i64),
    /// Something ended.
    Timed(Family, Activation),
}

enum Message {
    Batch(Vec<Told>),
    /// An index of what was told so far is wanted: its head, what is still open, and for whom.
    Look(Box<(Index, Vec<Told>, Sender<Index>)>),
}

/// Where the walk tells it.
#[derive(Debug)]
pub(crate) struct Teller {
    batch: Vec<Told>,
    to: SyncSender<Message>,
    /// Batches that were heard, for their room.
    emptied: Receiver<Vec<Told>>,
}

impl Teller {
    /// A teller, and where it is heard.
    pub fn new() -> (Teller, Heard) {
        let (to, from) = sync_channel(BATCHES);
        let (back, emptied) = channel();
        let batch = Vec::with_capacity(BATCH);
        let teller = Teller { batch, to, emptied };
        (teller, Heard { from, back })
    }

    #[inline]
    pub fn tell(&mut self, told: Told) {
        self.batch.push(told);
        if self.batch.len() >= BATCH {
            self.flush();
        }
    }

    /// Sends what was told. Nobody hears it where the other thread has panicked, which ends the
    /// walk in a moment.
    pub fn flush(&mut self) {
        let next = self.emptied.try_recv();
        let next = next.unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let batch = std::mem::replace(&mut self.batch, next);
        self.to.send(Message::Batch(batch)).ok();
    }

    /// The index of all that was flushed, with a head and what is still open; empty tracks where
    /// nobody hears any more.
    pub fn look(&self, head: Index, open: Vec<Told>) -> Index {
        let (back, answer) = channel();
        let wanted = Message::Look(Box::new((head, open, back)));
        self.to.send(wanted).ok();
        answer.recv().unwrap_or_default()
    }
}

/// What the walk tells.
pub(crate) struct Heard {
    from: Receiver<Message>,
    back: Sender<Vec<Told>>,
}

impl Heard {
    /// Puts tracks together until the walk has no more to tell; what no longer changes is kept
    /// where `spill` has it.
    pub fn gather(self, spill: Spill) -> Gathered {
        let mut gathered = Gathered {
            spill,
            ..Gathered::default()
        };
        for message in self.from {
            match message {
                Message::Batch(mut batch) => {
                    batch.iter().for_each(|told| gathered.take(told));
                    batch.clear();
                    // Who told it may be done.
                    self.back.send(batch).ok();
                }
                Message::Look(wanted) => {
                    let (head, open, back) = *wanted;
                    // Who asked may be gone.
                    back.send(gathered.look(head, open)).ok();
                }
            }
        }
        gathered
    }
}

/// What was told so far.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    index: Index,
    spill: Spill,
}

impl Gathered {
    fn take(&mut self, told: &Told) {
        let (index, spill) = (&mut self.index, &mut self.spill);
        match *told {
            Told::Stayed(cpu, what, holder, segment) => {
                stayed(index, cpu, (what, holder), segment, spill)
            }
            Told::WasSoftirq(cpu, task, segment) => was_softirq(index, cpu, task.0, segment),
            Told::Thread(task, segment) => track(&mut index.threads, task.0).push(segment, spill),
            Told::Waited(task, since_ns, behind) => {
                let state = State::new(Kind::Runnable, behind.map(|task| task.0));
                track(&mut index.threads, task.0).amend(since_ns, state);
            }
            Told::RanBefore(task, since_ns, at_ns) => ran_before(index, task.0, since_ns, at_ns),
            Told::Timed(family, one) => timed(index, family).push(one, spill),
        }
    }

    /// The index of what was told so far. What that puts right stays in memory: the file has it
    /// once, in the end.
    fn look(&mut self, head: Index, open: Vec<Told>) -> Index {
        self.spill.flush();
        let so_far = Gathered {
            index: self.index.clone(),
            spill: Spill::default(),
        };
        so_far.finish(head, open).0
    }

    /// All of it in order, with the rest of the index and with what is still open; and where the
    /// blocks are kept.
    pub fn finish(mut self, head: Index, open: Vec<Told>) -> (Index, Spill) {
        open.iter().for_each(|told| self.take(told));
        let (cpus, threads) = (head.cpus.len(), head.threads.len());
        let (told, mut spill) = (self.index, self.spill);
        let mut index = Index {
            cpus: told.cpus,
            threads: told.threads,
            activations: told.activations,
            irqs: told.irqs,
            softirqs: told.softirqs,
            calls: told.calls,
            ..head
        };
        index.cpus.resize_with(cpus, Track::default);
        index.threads.resize_with(threads, Track::default);
        for track in index.cpus.iter_mut().chain(&mut index.threads) {
            track.finish(&mut spill);
        }
        for family in [Family::Wakeup, Family::Irq, Family::Softirq, Family::Call] {
            timed(&mut index, family).finish(&mut spill);
        }
        spill.flush();
        (index, spill)
    }
}

/// What a stretch of a CPU says of its track, and of that of the thread that had the CPU.
fn stayed(
    index: &mut Index,
    cpu: u32,
    (what, holder): (CpuWhat, Holder),
    segment: Segment,
    spill: &mut Spill,
) {
    let kind = match what {
        CpuWhat::Unknown => return,
        CpuWhat::Idle => Kind::Idle,
        CpuWhat::Task => Kind::Run,
        CpuWhat::Call => Kind::Call,
        CpuWhat::Irq => Kind::Irq,
        CpuWhat::Softirq => Kind::Softirq,
    };
    let inferred = segment.state != State::UNKNOWN;
    let of = |detail: Option<u32>| Segment {
        state: State::new(kind, detail).inferred_if(inferred),
        ..segment
    };
    let task = holder.task();
    track(&mut index.cpus, cpu).push(of(task.map(|task| task.0)), spill);
    if let Some(task) = task {
        track(&mut index.threads, task.0).push(of(Some(cpu)), spill);
    }
}

fn was_softirq(index: &mut Index, cpu: u32, task: u32, segment: Segment) {
    let of = |detail: u32| Segment {
        state: State::new(Kind::Softirq, Some(detail)),
        ..segment
    };
    track(&mut index.cpus, cpu).turns_out(of(task));
    track(&mut index.threads, task).turns_out(of(cpu));
}

/// The wait of a task that ended at `at_ns` is none that is known.
fn ran_before(index: &mut Index, task: u32, since_ns: Option<i64>, at_ns: i64) {
    index.activations.take_away(task, at_ns);
    if let Some(since_ns) = since_ns {
        track(&mut index.threads, task).amend(since_ns, State::UNKNOWN);
    }
}

fn track(tracks: &mut Vec<Track>, number: u32) -> &mut Track {
    let number = number as usize;
    if tracks.len() <= number {
        tracks.resize_with(number + 1, Track::default);
    }
    &mut tracks[number]
}

fn timed(index: &mut Index, family: Family) -> &mut Timed {
    match family {
        Family::Wakeup => &mut index.activations,
        Family::Irq => &mut index.irqs,
        Family::Softirq => &mut index.softirqs,
        Family::Call => &mut index.calls,
    }
}
