//! Who had the CPU while a task waited for it, followed only when a question wants it.
//!
//! A task may wait for one CPU after the other. Each stretch of it is dealt out by what that CPU is
//! told to have done then, and by nothing else: whoever seems to have a CPU may turn out to have
//! left it. So a wait is told when all of its stretches are, which may be after its end.

use super::process::{ProcId, Queued};
use super::run::Holder;
use super::{Change, Kernel, Sink};

/// Of a wait behind more stretches, those of its begin are told summed up.
const ONE_BY_ONE_MAX: usize = 256;
/// Beyond so many, those that had the CPU during one wait are not told apart.
const HOLDERS_MAX: usize = ONE_BY_ONE_MAX / 2;
/// Where a CPU tells nothing for so many stretches, nobody will know who had it in more of them.
const LEFT_MAX: usize = 1024;
/// Of more stretches of one wait, which came first is not told.
const STRETCHES_MAX: usize = 64;
/// So many waits are under way at once, mostly.
const ROOMS_MAX: usize = 64;

/// Puts together what each had, the first to have the CPU first.
pub fn sum_up(behind: &mut Vec<(Holder, i64)>) {
    let mut kept = 0;
    for place in 0..behind.len() {
        let (holder, ns) = behind[place];
        let mut known = behind[..kept].iter_mut();
        match known.find(|(known, _)| *known == holder) {
            Some((_, sum_ns)) => *sum_ns += ns,
            None => {
                behind[kept] = (holder, ns);
                kept += 1;
            }
        }
    }
    behind.truncate(kept);
}

/// Who had the CPU, one after the other, and for how long.
#[derive(Clone, Debug, Default)]
struct Behind(Vec<(Holder, i64)>);

impl Behind {
    fn add(&mut self, holder: Holder, ns: i64) {
        if ns <= 0 {
            return;
        }
        match self.0.last_mut() {
            Some((last, sum_ns)) if *last == holder => *sum_ns += ns,
            _ => self.0.push((holder, ns)),
        }
        if self.0.len() > ONE_BY_ONE_MAX {
            self.fold();
        }
    }

    /// The begin of a wait behind many is summed up.
    #[cold]
    fn fold(&mut self) {
        sum_up(&mut self.0);
        if self.0.len() > HOLDERS_MAX {
            let rest = self.0.drain(HOLDERS_MAX..);
            let rest_ns = rest.map(|(_, ns)| ns).sum();
            self.0.push((Holder::SomeTask, rest_ns));
            sum_up(&mut self.0);
        }
    }

    fn add_all(&mut self, others: &Behind) {
        for (holder, ns) in &others.0 {
            self.add(*holder, *ns);
        }
    }

    /// A whole wait dealt out: nobody knows of what ran before it was seen on a run queue, and what
    /// a switch to it was inferred from is left out.
    fn dealt_out(mut self, (since_ns, at_ns): (i64, i64)) -> Vec<(Holder, i64)> {
        let counted_ns: i64 = self.0.iter().map(|(_, ns)| ns).sum();
        let mut over_ns = counted_ns - (at_ns - since_ns);
        if over_ns < 0 {
            self.0.insert(0, (Holder::Unknown, -over_ns));
        }
        while over_ns > 0 {
            let Some((_, ns)) = self.0.last_mut() else {
                break;
            };
            let cut_ns = over_ns.min(*ns);
            *ns -= cut_ns;
            over_ns -= cut_ns;
            if *ns == 0 {
                self.0.pop();
            }
        }
        self.0
    }
}

/// A task waits for CPUs, or has, and is told nothing of some of that time yet.
#[derive(Debug)]
struct Wait {
    id: ProcId,
    /// Of the first stretch that is over and told, with its begin: most waits have no other.
    first: Option<(i64, Behind)>,
    /// Of the others.
    told: Vec<(i64, Behind)>,
    /// How many are not, and one more while it is held.
    stretches: u32,
    /// From when to when, once it is over and to be told.
    over_ns: Option<(i64, i64)>,
    /// Where it ended.
    cpu: u32,
}

impl Wait {
    fn new(id: ProcId) -> Wait {
        Wait {
            id,
            first: None,
            told: Vec::new(),
            stretches: 0,
            over_ns: None,
            cpu: 0,
        }
    }

    /// Takes in a stretch that is over and told.
    fn add(&mut self, begin_ns: i64, behind: Behind) {
        if self.first.is_none() {
            self.first = Some((begin_ns, behind));
            return;
        }
        self.told.push((begin_ns, behind));
        if self.told.len() > STRETCHES_MAX {
            let all = self.behind();
            self.first = Some((begin_ns, all));
            self.told.clear();
        }
    }

    /// All that is told, the first to have the CPU first.
    fn behind(&self) -> Behind {
        let mut told: Vec<&(i64, Behind)> = self.first.iter().chain(&self.told).collect();
        told.sort_by_key(|(begin_ns, _)| *begin_ns);
        let mut all = Behind::default();
        told.iter().for_each(|(_, behind)| all.add_all(behind));
        all
    }

    /// The same of a wait of which no more is asked.
    fn into_behind(self) -> Behind {
        match self.first {
            Some((_, behind)) if self.told.is_empty() => behind,
            _ => self.behind(),
        }
    }
}

/// A part of a wait for one CPU.
#[derive(Debug)]
struct Stretch {
    wait: usize,
    begin_ns: i64,
    /// What the CPU did is told up to here.
    told_ns: i64,
    /// Where the task left the run queue; none while it is there.
    until_ns: Option<i64>,
    behind: Behind,
}

/// The tasks that wait for one CPU, and those that did, of which it has told nothing yet.
#[derive(Debug, Default)]
pub(super) struct Queue {
    stretches: Vec<Stretch>,
}

/// All waits that are under way or not told yet.
#[derive(Debug, Default)]
pub(super) struct Waits {
    all: Vec<Wait>,
    /// Places that are free.
    free: Vec<usize>,
    /// Room of waits that were told, for the next ones.
    rooms: Vec<Behind>,
}

impl Waits {
    fn room(&mut self) -> Behind {
        self.rooms.pop().unwrap_or_default()
    }

    /// What a wait that was told had room for serves the next one.
    fn recycle(&mut self, room: Behind) {
        if self.rooms.len() < ROOMS_MAX {
            self.rooms.push(room);
        }
    }

    fn begin(&mut self, id: ProcId) -> usize {
        let wait = Wait::new(id);
        if let Some(place) = self.free.pop() {
            self.all[place] = wait;
            return place;
        }
        self.all.push(wait);
        self.all.len() - 1
    }

    /// Nobody knows how long a wait lasted: it is not told of, if it was not yet.
    pub(super) fn revoke(&mut self, place: usize, id: ProcId, at_ns: i64) {
        let wait = self.all.get_mut(place).filter(|wait| wait.id == id);
        if let Some(wait) = wait
            && wait.over_ns.is_some_and(|(_, end_ns)| end_ns == at_ns)
        {
            wait.over_ns = None;
        }
    }

    /// A wait is not told before it is certain that its task has not run meanwhile.
    pub(super) fn hold(&mut self, place: usize) {
        self.all[place].stretches += 1;
    }

    /// A stretch is over and told. The place of the wait is free once the wait is over too and has
    /// no other; what is to be told of it is handed out.
    fn end_stretch(&mut self, stretch: &mut Stretch) -> Option<Wait> {
        let wait = &mut self.all[stretch.wait];
        wait.add(stretch.begin_ns, std::mem::take(&mut stretch.behind));
        self.release(stretch.wait)
    }

    fn release(&mut self, place: usize) -> Option<Wait> {
        let wait = &mut self.all[place];
        wait.stretches -= 1;
        if wait.stretches > 0 {
            return None;
        }
        self.free.push(place);
        let wait = std::mem::replace(wait, Wait::new(wait.id));
        wait.over_ns.is_some().then_some(wait)
    }
}

/// Tells a wait; gives its room.
fn tell<S: Sink>(kernel: &Kernel, wait: Wait, sink: &mut S) -> Behind {
    let Some(over_ns) = wait.over_ns else {
        return Behind::default();
    };
    let (process, cpu) = (wait.id, wait.cpu);
    let mut behind = wait.into_behind().dealt_out(over_ns);
    let change = Change::Waited {
        process,
        cpu,
        since_ns: over_ns.0,
        until_ns: over_ns.1,
        behind: &behind,
    };
    sink.change(kernel, &change);
    behind.clear();
    Behind(behind)
}

impl Kernel {
    /// A task waits for a CPU from now on; it may have waited for another one.
    #[inline]
    pub(super) fn queue(&mut self, id: ProcId, cpu: u32) {
        if self.follows.queues {
            self.queue_on(id, cpu);
        }
    }

    fn queue_on(&mut self, id: ProcId, cpu: u32) {
        if self.cpu(cpu).is_none() {
            return;
        }
        let now_ns = self.now_ns;
        let before = self.processes.get(id).queued;
        if before.is_some_and(|before| before.cpu == cpu) {
            return;
        }
        let wait = match before {
            Some(before) => before.wait,
            None => self.waits.begin(id),
        };
        self.begin_stretch(id, Queued { cpu, wait });
        if let Some(before) = before {
            // Another one is open, so that this does not end the wait.
            self.leave_queue(before, now_ns, true);
        }
    }

    fn begin_stretch(&mut self, id: ProcId, queued: Queued) {
        self.waits.all[queued.wait].stretches += 1;
        let behind = self.waits.room();
        self.processes.get_mut(id).queued = Some(queued);
        self.cpus[queued.cpu as usize]
            .queue
            .stretches
            .push(Stretch {
                wait: queued.wait,
                begin_ns: self.now_ns,
                told_ns: self.now_ns,
                until_ns: None,
                behind,
            });
    }

    /// A task that waits turns out to be on the run queue of `cpu`, where it did not seem to be.
    pub(super) fn requeue(&mut self, id: ProcId, cpu: u32) {
        let Some(before) = self.processes.get(id).queued else {
            return;
        };
        if before.cpu == cpu || self.cpu(cpu).is_none() {
            return;
        }
        let wait = before.wait;
        self.begin_stretch(id, Queued { cpu, wait });
        self.leave_queue(before, self.now_ns, false);
    }

    /// A task leaves a run queue; `is_seen` where it was there up to now. An idle CPU would have
    /// taken it: how long that one idled on is not known.
    fn leave_queue(&mut self, queued: Queued, until_ns: i64, is_seen: bool) -> Option<Wait> {
        let state = self.cpus.get_mut(queued.cpu as usize)?;
        let (holder, begin_ns, sure_ns) = state.open_run();
        let stretches = &mut state.queue.stretches;
        let is_it = |stretch: &Stretch| stretch.wait == queued.wait && stretch.until_ns.is_none();
        let place = stretches.iter().position(is_it)?;
        let stretch = &mut stretches[place];
        stretch.until_ns = Some(until_ns);
        if !is_seen {
            stretch.behind = Behind::default();
            stretch
                .behind
                .add(Holder::Unknown, until_ns - stretch.begin_ns);
        } else if holder == Holder::Idle {
            let from_ns = stretch.told_ns.max(begin_ns);
            stretch.behind.add(holder, sure_ns.min(until_ns) - from_ns);
            stretch
                .behind
                .add(Holder::Unknown, until_ns - sure_ns.max(from_ns));
        }
        // Whether it idled is not certain before its run is over.
        let is_told = !is_seen || stretch.told_ns >= until_ns;
        if holder == Holder::Idle {
            stretch.told_ns = until_ns;
        }
        if !is_told && stretches.len() <= LEFT_MAX {
            return None;
        }
        let mut stretch = stretches.swap_remove(place);
        self.waits.end_stretch(&mut stretch)
    }

    /// It is certain whether the task of a wait that was held has run meanwhile.
    pub(super) fn tell_held<S: Sink>(&mut self, place: usize, sink: &mut S) {
        if let Some(wait) = self.waits.release(place) {
            let room = tell(self, wait, sink);
            self.waits.recycle(room);
        }
    }

    /// Somebody had a CPU: told to those who waited for it meanwhile.
    pub(super) fn queue_ran<S: Sink>(
        &mut self,
        cpu: u32,
        (holder, from_ns, until_ns): (Holder, i64, i64),
        sink: &mut S,
    ) {
        let mut stretches = std::mem::take(&mut self.cpus[cpu as usize].queue.stretches);
        stretches.retain_mut(|stretch| {
            let left_ns = stretch.until_ns.unwrap_or(i64::MAX);
            let to_ns = until_ns.min(left_ns);
            // What lies between is not told, or only at the end of all.
            let untold_ns = from_ns.min(to_ns) - stretch.told_ns;
            stretch.behind.add(Holder::Unknown, untold_ns);
            stretch
                .behind
                .add(holder, to_ns - from_ns.max(stretch.told_ns));
            stretch.told_ns = stretch.told_ns.max(to_ns);
            let stays = until_ns < left_ns;
            if !stays && let Some(wait) = self.waits.end_stretch(stretch) {
                let room = tell(self, wait, sink);
                self.waits.recycle(room);
            }
            stays
        });
        self.cpus[cpu as usize].queue.stretches = stretches;
    }

    /// A task that comes on `cpu` waits no more, since the end of what it `waited`, if that is
    /// known: who had its CPU meanwhile is told as soon as that is.
    pub(super) fn tell_behind<S: Sink>(
        &mut self,
        cpu: u32,
        id: ProcId,
        waited: Option<(i64, i64)>,
        sink: &mut S,
    ) {
        let Some(queued) = self.processes.get_mut(id).queued.take() else {
            return;
        };
        let wait = &mut self.waits.all[queued.wait];
        (wait.over_ns, wait.cpu) = (waited, cpu);
        let until_ns = waited.map_or(self.now_ns, |(_, at_ns)| at_ns);
        if let Some(wait) = self.leave_queue(queued, until_ns, queued.cpu == cpu) {
            let room = tell(self, wait, sink);
            self.waits.recycle(room);
        }
    }

    /// Waits that are over, and of which it is not told yet who had the CPU: task, where it was
    /// scheduled in, from, until, and who seems to have had it. A window that ends before the trace
    /// takes them for what they are so far.
    pub fn untold_waits(&self, mut each: impl FnMut(ProcId, u32, (i64, i64), &[(Holder, i64)])) {
        let untold = self.waits.all.iter().enumerate();
        for (place, wait) in untold.filter(|(_, wait)| wait.stretches > 0) {
            let Some(over_ns) = wait.over_ns else {
                continue;
            };
            let mut so_far = wait.behind();
            for state in &self.cpus {
                let (holder, begin_ns, _) = state.open_run();
                let its = state.queue.stretches.iter();
                for stretch in its.filter(|stretch| stretch.wait == place) {
                    let until_ns = stretch.until_ns.unwrap_or(over_ns.1);
                    so_far.add_all(&stretch.behind);
                    so_far.add(holder, until_ns - begin_ns.max(stretch.told_ns));
                }
            }
            each(wait.id, wait.cpu, over_ns, &so_far.dealt_out(over_ns));
        }
    }

    /// The trace ends: nothing is told of who had a CPU any more.
    pub(super) fn tell_rest<S: Sink>(&mut self, sink: &mut S) {
        let queues = self.cpus.iter_mut().map(|state| &mut state.queue.stretches);
        let rest: Vec<Stretch> = queues.flat_map(std::mem::take).collect();
        for mut stretch in rest {
            if let Some(wait) = self.waits.end_stretch(&mut stretch) {
                tell(self, wait, sink);
            }
        }
        for process in self.processes.iter_mut() {
            process.queued = None;
        }
    }
}
