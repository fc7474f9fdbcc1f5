//! What each part of a request is called, in the terms of a late activation's ledger where they
//! exist (docs/ledger.md), and who made the request late.
//!
//! A recording's request has neither a watch's evidence nor stacks: what only those prove has no
//! name here, and accuses nobody.

use event::evidence::TaskRef;
use event::kernel_threads::is_stop_class;
use event::{Duration, Tid};

/// A switch takes this at most: so long may a task of a lower priority have the CPU.
const SWITCH_MAX: Duration = Duration::from_us(10);
/// A CPU leaves its idle state within this.
const IDLE_EXIT_MAX: Duration = Duration::from_us(2_000);
/// Who made a request late has this share of it at least.
const SHARE_MIN: f64 = 0.1;

/// A term of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term {
    /// The thread that ended it ran.
    OwnRun,
    /// Another thread ran for which it waited.
    Upstream,
    /// The handler of an interrupt.
    Hardirq,
    /// The handler of a softirq.
    Softirq,
    /// A task of the same or a higher priority had the CPU.
    RunQueueWait,
    /// A stop-class thread had it.
    StopClass,
    /// From one task to the next.
    Switch,
    /// The CPU left its idle state.
    IdleExit,
    /// Blocked until a disk was done.
    BlockIo,
    /// Blocked until something else came that is no thread's: no term of the ledger, in which what
    /// a task sleeps for ends its work.
    Blocked,
    /// Nothing in the trace proves a cause.
    Unexplained,
}

impl Term {
    /// Its name, which is the ledger's own where that has one.
    pub fn tag(self) -> &'static str {
        match self {
            Term::OwnRun => "own_run",
            Term::Upstream => "upstream",
            Term::Hardirq => "hardirq",
            Term::Softirq => "softirq",
            Term::RunQueueWait => "run_queue_wait",
            Term::StopClass => "stop_class",
            Term::Switch => "switch",
            Term::IdleExit => "idle_exit",
            Term::BlockIo => "block_io",
            Term::Blocked => "blocked",
            Term::Unexplained => "unexplained",
        }
    }

    /// All of them.
    pub const ALL: [Term; 11] = [
        Term::OwnRun,
        Term::Upstream,
        Term::Hardirq,
        Term::Softirq,
        Term::RunQueueWait,
        Term::StopClass,
        Term::Switch,
        Term::IdleExit,
        Term::BlockIo,
        Term::Blocked,
        Term::Unexplained,
    ];
}

/// What a thread of a request did.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Did {
    /// It ran.
    Ran,
    /// A handler ran on its time.
    Interrupted {
        /// Its name; empty when none is known.
        name: String,
        /// It is a softirq's.
        soft: bool,
    },
    /// It waited for a CPU that this task had; none when nobody knows which.
    Behind(Option<TaskRef>),
    /// It waited for a CPU that did nothing.
    Idle,
    /// It was blocked until something woke it that is no thread.
    Blocked {
        /// What that is; empty when nobody knows.
        by: String,
        /// It is a disk's softirq.
        disk: bool,
    },
    /// The trace does not say.
    Unknown,
}

/// Something that took time of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The thread.
    pub task: TaskRef,
    /// What it did.
    pub did: Did,
    /// What that is called.
    pub term: Term,
    /// For how long in all.
    pub total: Duration,
    /// In so many pieces.
    pub pieces: u64,
}

/// Where the time of a request went. The parts add up to its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// The largest first.
    pub parts: Vec<Part>,
    /// Events were lost meanwhile, or the trace begins later: parts may be wrong.
    pub is_lossy: bool,
}

/// What a piece is called in which `task` did this, in a request that `ended_by` ended.
pub(super) fn term(did: &Did, task: &TaskRef, ended_by: Tid, length: Duration) -> Term {
    match did {
        Did::Ran if task.tid == ended_by => Term::OwnRun,
        Did::Ran => Term::Upstream,
        Did::Interrupted { soft: false, .. } => Term::Hardirq,
        Did::Interrupted { soft: true, .. } => Term::Softirq,
        Did::Behind(Some(other)) if is_stop_class(other.comm.as_bytes()) => Term::StopClass,
        Did::Behind(Some(other)) if !task.prio.is_real_time() || other.prio <= task.prio => {
            Term::RunQueueWait
        }
        Did::Behind(Some(_)) if length <= SWITCH_MAX => Term::Switch,
        Did::Idle if length <= IDLE_EXIT_MAX => Term::IdleExit,
        Did::Behind(_) | Did::Idle | Did::Unknown => Term::Unexplained,
        Did::Blocked { disk: true, .. } => Term::BlockIo,
        Did::Blocked { disk: false, .. } => Term::Blocked,
    }
}

/// Who made a request late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LateBy {
    /// The thread that ended it had that much to do.
    OwnWork,
    /// A task that ran ahead, or for which it waited.
    Task(TaskRef),
    /// A handler that ran on its time; empty when its name is not known.
    Handler(String),
    /// What it was blocked until; empty when that is not known.
    Awaited(String),
}

impl Explained {
    /// How long it took.
    pub fn total(&self) -> Duration {
        self.parts.iter().map(|part| part.total).sum()
    }

    /// The sums of its terms, the largest first. They add up to its length, to the nanosecond.
    pub fn terms(&self) -> Vec<(Term, Duration)> {
        let sum = |term: Term| {
            let own = self.parts.iter().filter(|part| part.term == term);
            (term, own.map(|part| part.total).sum::<Duration>())
        };
        let mut terms: Vec<_> = Term::ALL.map(sum).to_vec();
        terms.retain(|(_, total)| *total > Duration::ZERO);
        terms.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
        terms
    }

    /// Who made it late, and by how much: its own work where that has half of it, else whoever has
    /// most. Nobody where events are missing, or where more than that is unexplained.
    pub fn late_by(&self) -> Option<(LateBy, Duration)> {
        if self.is_lossy {
            return None;
        }
        let mut sums: Vec<(LateBy, Duration)> = Vec::new();
        for part in &self.parts {
            let Some(by) = blamed(part) else { continue };
            match sums.iter_mut().find(|(known, _)| is_same(known, &by)) {
                Some((_, sum)) => *sum += part.total,
                None => sums.push((by, part.total)),
            }
        }
        let whole = self.total();
        let unexplained = self
            .parts
            .iter()
            .filter(|part| part.term == Term::Unexplained);
        let unexplained: Duration = unexplained.map(|part| part.total).sum();
        let own = sums.iter().position(|(by, _)| *by == LateBy::OwnWork);
        if let Some(own) = own
            && sums[own].1.share_of(whole) >= 0.5
        {
            return Some(sums.swap_remove(own));
        }
        sums.retain(|(by, _)| *by != LateBy::OwnWork);
        let most = sums.into_iter().max_by_key(|(_, sum)| *sum)?;
        let has_enough = most.1 > unexplained && most.1.share_of(whole) >= SHARE_MIN;
        has_enough.then_some(most)
    }
}

fn blamed(part: &Part) -> Option<LateBy> {
    match (part.term, &part.did) {
        (Term::OwnRun, _) => Some(LateBy::OwnWork),
        (Term::Upstream, _) => Some(LateBy::Task(part.task.clone())),
        (Term::RunQueueWait | Term::StopClass, Did::Behind(Some(task))) => {
            Some(LateBy::Task(task.clone()))
        }
        (_, Did::Interrupted { name, .. }) => Some(LateBy::Handler(name.clone())),
        (_, Did::Blocked { by, .. }) => Some(LateBy::Awaited(by.clone())),
        _ => None,
    }
}

/// Tasks of one name and one priority are one cause, as in a verdict.
fn is_same(left: &LateBy, right: &LateBy) -> bool {
    match (left, right) {
        (LateBy::Task(left), LateBy::Task(right)) => {
            (&left.comm, left.prio) == (&right.comm, right.prio)
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use event::Prio;

    use super::*;

    fn task(tid: i32, comm: &str, prio: Prio) -> TaskRef {
        TaskRef {
            tid: Tid(tid),
            comm: comm.to_owned(),
            prio,
        }
    }

    #[test]
    fn a_piece_has_the_name_that_the_ledger_would_give_it_and_none_that_nothing_proves() {
        let urgent = task(1, "urgent", Prio::from_rt(50));
        let fair = task(2, "fair", Prio::from_lttng(20));
        let us = Duration::from_us;
        let check = |did: &Did, who: &TaskRef, length: Duration, expect: Term| {
            assert_eq!(term(did, who, Tid(1), length), expect, "{did:?} {who:?}");
        };
        check(&Did::Ran, &urgent, us(9), Term::OwnRun);
        check(&Did::Ran, &fair, us(9), Term::Upstream);
        let behind = |task: &TaskRef| Did::Behind(Some(task.clone()));
        check(&behind(&fair), &urgent, us(10), Term::Switch);
        check(&behind(&fair), &urgent, us(11), Term::Unexplained);
        check(&behind(&fair), &fair, us(900), Term::RunQueueWait);
        check(&behind(&urgent), &fair, us(900), Term::RunQueueWait);
        check(&behind(&urgent), &urgent, us(900), Term::RunQueueWait);
        let stop = task(3, "migration/1", Prio::from_rt(99));
        check(&behind(&stop), &urgent, us(900), Term::StopClass);
        check(&Did::Behind(None), &fair, us(1), Term::Unexplained);
        check(&Did::Idle, &fair, us(2000), Term::IdleExit);
        check(&Did::Idle, &fair, us(2001), Term::Unexplained);
        check(&Did::Unknown, &fair, us(1), Term::Unexplained);
    }

    fn explained(parts: &[(Did, &TaskRef, i64)], is_lossy: bool) -> Explained {
        let part = |(did, task, us): &(Did, &TaskRef, i64)| {
            let total = Duration::from_us(*us);
            Part {
                task: (*task).clone(),
                term: term(did, task, Tid(1), total),
                did: did.clone(),
                total,
                pieces: 1,
            }
        };
        Explained {
            parts: parts.iter().map(part).collect(),
            is_lossy,
        }
    }

    #[test]
    fn who_made_it_late_is_who_has_most_of_it_and_nobody_where_it_is_not_proven() {
        let own = task(1, "server", Prio::from_lttng(20));
        let hog = |tid| task(tid, "hog", Prio::from_rt(50));
        let behind = |tid| Did::Behind(Some(hog(tid)));
        let check = |parts: &[(Did, &TaskRef, i64)], expect: Option<(LateBy, i64)>| {
            let found = explained(parts, false).late_by();
            let found = found.map(|(by, total)| (by, total.as_ns() / 1000));
            assert_eq!(found, expect);
            assert_eq!(explained(parts, true).late_by(), None);
        };
        let first = LateBy::Task(hog(7));
        // A storm of short-lived tasks is one cause.
        let storm = [
            (Did::Ran, &own, 40),
            (behind(7), &own, 35),
            (behind(8), &own, 35),
        ];
        check(&storm, Some((first.clone(), 70)));
        check(
            &[(Did::Ran, &own, 70), (behind(7), &own, 30)],
            Some((LateBy::OwnWork, 70)),
        );
        let awaited = Did::Blocked {
            by: "a timer".to_owned(),
            disk: false,
        };
        check(
            &[(awaited, &own, 60), (Did::Ran, &own, 40)],
            Some((LateBy::Awaited("a timer".to_owned()), 60)),
        );
        check(&[(Did::Unknown, &own, 60), (behind(7), &own, 40)], None);
        check(
            &[(Did::Unknown, &own, 30), (behind(7), &own, 70)],
            Some((first, 70)),
        );
        check(&[(Did::Ran, &own, 49), (Did::Idle, &own, 51)], None);
        check(&[], None);
    }
}
