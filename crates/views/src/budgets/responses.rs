//! Activations of threads from their release to the end of their work, for budgets of both: the
//! instant for which the timer that wakes a thread was set, else its wake-up.

use kernel_state::bind::STOPPED_ASLEEP_NS_MAX;
use kernel_state::{Change, Kernel, Pause, ProcId};

use super::pace::Pace;

/// An activation that goes on.
#[derive(Clone, Copy, Debug)]
struct Open {
    begin_ns: i64,
    /// For how long its thread ran.
    own_ns: i64,
    /// Since when it runs.
    since_ns: Option<i64>,
    /// It lasted no longer than it seems: it ended unseen, and its thread may have had others.
    lossy: bool,
    /// Nobody knows for how long its thread ran.
    own_lossy: bool,
    /// Its thread was stopped, perhaps in its sleep, and nobody knows when that was to end.
    stopped_asleep: bool,
    /// It began with the making of its thread, which is nobody's deadline.
    made: bool,
    /// A timer woke its thread.
    by_timer: bool,
    /// Its thread was stopped in its sleep, which was to end then.
    stopped_due_ns: Option<i64>,
    /// How often a timer releases its thread, where one does that steadily.
    period_ns: Option<i64>,
}

/// One that is over, or that the trace's end leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub process: ProcId,
    pub begin_ns: i64,
    pub own_ns: i64,
    /// It was no longer than that.
    pub lossy: bool,
    pub own_lossy: bool,
    /// It may have begun later: its thread was stopped, perhaps in its sleep.
    pub stopped_asleep: bool,
    /// How often a timer releases its thread, where one does that steadily.
    pub period_ns: Option<i64>,
}

/// What became of a thread's activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It is over.
    Known(Response),
    /// So is one that had begun before the trace.
    Unseen(ProcId),
    /// So is one whose wake-up was not recorded, though its thread was seen to end its work before,
    /// at this instant.
    Unwoken(ProcId, i64),
    /// So is a wait for a CPU, since this instant, of a thread of which no begin was seen: it may
    /// never sleep. Nobody knows how long it was where that is said.
    PutOff(ProcId, i64, bool),
    /// So is the start-up of a thread that was made at this instant: it sleeps for the first time,
    /// where that is said, or is gone.
    Started(ProcId, i64, bool),
}

/// What is known of a thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    open: Option<Open>,
    /// Since when it sleeps, where it was seen to leave its CPU and nothing was seen of it since.
    asleep_ns: Option<i64>,
    /// It was seen on a CPU.
    seen: bool,
    /// It is no more.
    gone: bool,
    /// When its work was last seen to end: what it does next begins in the trace.
    begun_ns: Option<i64>,
    /// Since when it waits, where it was preempted in what was not seen to begin.
    put_off_ns: Option<i64>,
    /// It may have put itself off, as its work was done.
    gave_way: bool,
    /// It was just made and has not run yet.
    made: bool,
    /// It sleeps, or is woken from a sleep, inside of work that was not seen to begin.
    inside: bool,
    /// When it last slept inside of its work, and was woken from that.
    slept_inside_ns: (i64, i64),
    /// When the timer was due that has woken it, where it has not run since.
    due_ns: Option<i64>,
    pace: Pace,
}

/// Follows all threads.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// By their numbers.
    threads: Vec<Thread>,
}

impl Responses {
    fn of(&mut self, process: ProcId) -> &mut Thread {
        let place = process.0 as usize;
        if self.threads.len() <= place {
            self.threads.resize(place + 1, Thread::default());
        }
        &mut self.threads[place]
    }

    fn get(&self, process: ProcId) -> Option<&Thread> {
        self.threads.get(process.0 as usize)
    }

    /// A thread that slept is woken; when the timer was due that does it.
    pub fn woken(&mut self, process: ProcId, due_ns: Option<i64>) {
        self.of(process).due_ns = due_ns;
    }

    /// When the activation of a thread began that was woken then and has not run since.
    pub fn begin_ns(&self, process: ProcId, woken_ns: i64) -> i64 {
        let due_ns = self.get(process).and_then(|thread| thread.due_ns);
        due_ns.map_or(woken_ns, |due_ns| woken_ns.min(due_ns))
    }

    /// A thread was made: its start-up is no work, and is judged to its switch-in.
    pub fn made(&mut self, process: ProcId) {
        let thread = self.of(process);
        thread.open = None;
        (thread.made, thread.seen) = (true, true);
    }

    /// Whether a thread has just been made and has not run yet.
    pub fn is_made(&self, process: ProcId) -> bool {
        self.get(process).is_some_and(|thread| thread.made)
    }

    /// The thread that `change` shows on a CPU, if it was seen to sleep and not to be woken, or for
    /// the first time; with the instant since when it may wait.
    pub fn unwoken(&mut self, kernel: &Kernel, change: &Change<'_>) -> Option<(ProcId, i64)> {
        match *change {
            Change::Switch { prev, pause, .. } => {
                let thread = self.of(prev);
                thread.seen = true;
                // It was scheduled in unseen, too.
                let slept = thread.asleep_ns.take();
                match pause {
                    // Who is stopped is woken, too, to go on.
                    Pause::Gone => thread.gone = true,
                    Pause::PutOff | Pause::OutOfRuntime => {}
                    _ => thread.asleep_ns = Some(kernel.now_ns()),
                }
                slept.map(|slept_ns| (prev, slept_ns))
            }
            Change::ScheduledIn {
                process,
                woken_ns,
                waited_since_ns,
                ..
            } => {
                let thread = self.of(process);
                let slept = thread.asleep_ns.take();
                let is_first = !thread.seen && waited_since_ns.is_none();
                thread.seen = true;
                let since_ns = slept.or(is_first.then(|| kernel.first_ns()));
                let since_ns = since_ns.filter(|_| woken_ns.is_none());
                since_ns.map(|since_ns| (process, since_ns))
            }
            // It may have run, and slept again, meanwhile.
            Change::Lost { .. } => {
                for thread in &mut self.threads {
                    (thread.asleep_ns, thread.put_off_ns, thread.due_ns) = (None, None, None);
                    thread.inside = false;
                }
                None
            }
            _ => None,
        }
    }

    /// Takes a change at `now_ns`; an activation that it ended. The thread that leaves its CPU is
    /// due by a timer of its own then, where that is known.
    pub fn change(
        &mut self,
        now_ns: i64,
        change: &Change<'_>,
        due_ns: Option<i64>,
    ) -> Option<Ended> {
        match *change {
            Change::Switch { prev, pause, .. } => {
                return self.leaves(now_ns, prev, (pause, due_ns));
            }
            Change::ScheduledIn {
                process,
                at_ns,
                woken_ns,
                lossy,
                within_ns,
                ..
            } => {
                // Where only the switch was not recorded, its wake-up and its end are known. Else
                // it may have run before, and have ended its work.
                let unknown = (lossy && within_ns.is_none(), lossy);
                self.comes(process, at_ns, woken_ns, unknown);
                let put_off_ns = self.of(process).put_off_ns.take();
                let put_off_ns = put_off_ns.filter(|_| woken_ns.is_none());
                let lossy = lossy || self.of(process).gave_way;
                return put_off_ns.map(|since_ns| Ended::PutOff(process, since_ns, lossy));
            }
            Change::NoLock { process, surely } => {
                return self.waited_for_work(now_ns, process, surely);
            }
            Change::Unknown { process, .. } | Change::RanUnseen { process } => {
                if let Some(open) = &mut self.of(process).open {
                    (open.lossy, open.own_lossy) = (true, true);
                }
            }
            _ => {}
        }
        None
    }

    fn leaves(
        &mut self,
        now_ns: i64,
        process: ProcId,
        (pause, due_ns): (Pause, Option<i64>),
    ) -> Option<Ended> {
        let thread = self.of(process);
        if let Some(open) = &mut thread.open {
            let ran_ns = open.since_ns.take().map(|since_ns| now_ns - since_ns);
            open.own_ns += ran_ns.unwrap_or(0);
            // It may have been stopped in its sleep, and nobody knows when that was to end.
            let is_soon = pause.is_stop() && open.own_ns <= STOPPED_ASLEEP_NS_MAX;
            // Who was woken by its timer was due.
            let is_asleep = is_soon && !open.by_timer;
            // Its work may be over, too.
            open.lossy |= pause == Pause::OutOfRuntime;
            open.stopped_due_ns = due_ns.filter(|_| is_asleep);
            open.stopped_asleep |= is_asleep && open.stopped_due_ns.is_none();
        }
        thread.due_ns = None;
        thread.inside = pause.is_inside() && thread.open.is_none() && !thread.made;
        match pause {
            pause if pause.is_inside() => {
                thread.slept_inside_ns.0 = now_ns;
                None
            }
            pause if pause.is_stop() => None,
            Pause::PutOff | Pause::OutOfRuntime => {
                let is_open = thread.open.is_some_and(|open| !open.made);
                thread.gave_way = pause == Pause::OutOfRuntime;
                if !is_open {
                    thread.put_off_ns = Some(now_ns);
                }
                None
            }
            _ => {
                let ended = thread.open.take();
                let last_ns = match pause {
                    Pause::Gone => None,
                    _ => thread.begun_ns.replace(now_ns),
                };
                if let Some(open) = ended.filter(|open| open.made) {
                    return Some(Ended::Started(process, open.begin_ns, pause == Pause::Done));
                }
                let known = ended.map(|open| Ended::Known(open.response(process)));
                let unknown = match last_ns {
                    None => Ended::Unseen(process),
                    Some(last_ns) => Ended::Unwoken(process, last_ns),
                };
                // The end of a thread whose begin was not seen is no end of work.
                known.or((pause == Pause::Done).then_some(unknown))
            }
        }
    }

    /// A thread had ended its work when it last slept, as if inside of it, or may have.
    fn waited_for_work(&mut self, now_ns: i64, process: ProcId, surely: bool) -> Option<Ended> {
        let thread = self.of(process);
        let open = thread.open.take()?;
        let (slept_ns, woken_ns) = thread.slept_inside_ns;
        thread.begun_ns = Some(woken_ns);
        if open.made {
            return Some(Ended::Started(process, open.begin_ns, true));
        }
        // It lasted for so long at most.
        let most_ns = match surely {
            true => slept_ns - open.begin_ns,
            false => now_ns - open.begin_ns,
        };
        Some(Ended::Unwoken(process, now_ns - most_ns))
    }

    fn comes(
        &mut self,
        process: ProcId,
        at_ns: i64,
        woken_ns: Option<i64>,
        (lossy, own_lossy): (bool, bool),
    ) {
        let thread = self.of(process);
        if let Some(woken_ns) = woken_ns {
            thread.slept_inside_ns.1 = woken_ns;
        }
        let made = std::mem::take(&mut thread.made);
        let due_ns = thread.due_ns.take();
        // What was not seen to begin does not begin with such a wake-up.
        if std::mem::take(&mut thread.inside) && thread.open.is_none() {
            return;
        }
        let begun = woken_ns.map(|woken_ns| Open {
            begin_ns: due_ns.map_or(woken_ns, |due_ns| due_ns.min(woken_ns)),
            own_ns: 0,
            since_ns: None,
            lossy: false,
            own_lossy: false,
            stopped_asleep: false,
            made,
            by_timer: due_ns.is_some(),
            stopped_due_ns: None,
            period_ns: due_ns.and_then(|due_ns| thread.pace.released(due_ns)),
        });
        // A wake-up inside its work is not its begin.
        let open = match begun {
            Some(begun) => thread.open.get_or_insert(begun),
            None => match &mut thread.open {
                Some(open) => open,
                None => return,
            },
        };
        if let Some(stopped_due_ns) = open.stopped_due_ns.take() {
            match woken_ns {
                // It was not due yet, or late since it was.
                Some(woken_ns) => open.begin_ns = stopped_due_ns.min(woken_ns),
                None => open.stopped_asleep = true,
            }
            open.own_ns = 0;
        }
        open.lossy |= lossy;
        open.own_lossy |= own_lossy;
        open.since_ns = Some(at_ns);
    }

    /// A thread had a CPU before it was seen on one: nobody knows for how long it ran.
    pub fn ran_unseen(&mut self, process: ProcId) {
        if let Some(open) = &mut self.of(process).open {
            open.own_lossy = true;
        }
    }

    /// Whether a thread is no more: what it was in will not end.
    pub fn is_gone(&self, process: ProcId) -> bool {
        self.get(process).is_some_and(|thread| thread.gone)
    }

    /// Whether a thread was made, and has not slept since.
    pub fn is_starting(&self, process: ProcId) -> bool {
        let open = self.get(process).and_then(|thread| thread.open);
        open.is_some_and(|open| open.made)
    }

    fn open(&self) -> impl Iterator<Item = (ProcId, Open)> {
        let threads = (0..).map(ProcId).zip(&self.threads);
        threads.filter_map(|(process, thread)| Some((process, thread.open?)))
    }

    /// The threads that are in their start-up, when each was made, and whether it sleeps.
    pub fn starting(&self) -> impl Iterator<Item = (ProcId, i64, bool)> {
        let made = self.open().filter(|(_, open)| open.made);
        made.map(|(process, open)| {
            let asleep_ns = self.threads[process.0 as usize].asleep_ns;
            (process, open.begin_ns, asleep_ns.is_some())
        })
    }

    /// Those that are under way at `now_ns`.
    pub fn under_way(&self, now_ns: i64) -> impl Iterator<Item = Response> {
        let begun = self.open().filter(|(_, open)| !open.made);
        begun.map(move |(process, mut open)| {
            open.own_ns += open.since_ns.map_or(0, |since_ns| now_ns - since_ns);
            open.response(process)
        })
    }
}

impl Open {
    fn response(self, process: ProcId) -> Response {
        Response {
            process,
            begin_ns: self.begin_ns,
            own_ns: self.own_ns,
            lossy: self.lossy,
            own_lossy: self.own_lossy,
            stopped_asleep: self.stopped_asleep,
            period_ns: self.period_ns,
        }
    }
}
