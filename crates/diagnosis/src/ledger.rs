//! The ledger of one activation: phases, cut by what ran, added up. `docs/ledger.md` is the law.

use std::collections::BTreeMap;

use event::{Cpu, Duration, Instant, NumberMap, Prio, TimeRange};

use crate::finding::{Grade, Ledger};
use crate::model::Model;
use crate::naming::{self, Key, ThreadNames};
use crate::phases::{Chain, Doing, Phase};
use crate::public;
use event::evidence::{EndKind, PreemptionModel, Step, StepKind, TaskRef};

use crate::term::{Reason, Term, TermKind};

/// An activation whose ledger is asked for.
pub(crate) struct Account<'a> {
    pub origin: Instant,
    pub end: Instant,
    pub target: i32,
    /// The CPU on which it ended.
    pub cpu: Cpu,
    pub steps: &'a [Step],
    /// The instant of each step in the kernel trace's events.
    pub times_ns: &'a [i64],
    /// The end in the kernel trace's events.
    pub end_ns: i64,
    /// The target still waits.
    pub waiting: bool,
    /// A watch saw the target wait, and how that ended: it did not run meanwhile, whatever was
    /// lost.
    pub watched: Option<EndKind>,
    pub preemption: PreemptionModel,
}

/// What is added up for one name.
struct Sum {
    duration_ns: i64,
    pieces: u32,
    begin_ns: i64,
    end_ns: i64,
    longest_ns: i64,
    cpu: Cpu,
    /// Whose wait the longest piece was, and its priority.
    waiter: Option<(i32, Prio)>,
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.duration_ns += other.duration_ns;
        self.pieces += other.pieces;
        self.begin_ns = self.begin_ns.min(other.begin_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        if other.longest_ns > self.longest_ns {
            self.longest_ns = other.longest_ns;
            self.cpu = other.cpu;
            self.waiter = other.waiter;
        }
    }
}

/// The books of one activation. Every nanosecond is entered once, in time order.
struct Books {
    sums: NumberMap<Key, Sum>,
    /// Entered up to here.
    now_ns: i64,
    end_ns: i64,
}

impl Books {
    /// Enters the time up to `until_ns`. What was entered before is not entered again.
    fn enter(&mut self, until_ns: i64, key: Key, (cpu, waiter): (Cpu, Option<(i32, Prio)>)) {
        let (begin_ns, end_ns) = (self.now_ns, until_ns.min(self.end_ns));
        let duration_ns = end_ns.saturating_sub(begin_ns);
        if duration_ns <= 0 {
            return;
        }
        self.now_ns = end_ns;
        let sum = Sum {
            duration_ns,
            pieces: 1,
            begin_ns,
            end_ns,
            longest_ns: duration_ns,
            cpu,
            waiter,
        };
        match self.sums.get_mut(&key) {
            Some(before) => before.add(&sum),
            None => {
                self.sums.insert(key, sum);
            }
        }
    }
}

/// Splits an activation into its terms; they add up to `end - origin`.
pub(crate) fn ledger(model: &Model, account: &Account<'_>) -> Ledger {
    let mut books = Books {
        sums: NumberMap::default(),
        now_ns: account.origin.as_ns(),
        end_ns: account.end.as_ns(),
    };
    let mut cpus = vec![account.cpu];
    let chain = Chain {
        steps: account.steps,
        times_ns: account.times_ns,
        end_ns: account.end_ns,
        cpu: account.cpu,
        waiting: account.waiting,
    };
    let missing = Key::Unexplained(Reason::MissingSteps);
    let first_ns = account
        .steps
        .first()
        .map_or(i64::MAX, |step| step.time.as_ns());
    books.enter(first_ns, missing, (account.cpu, None));
    let mut pieces = Vec::new();
    for (place, step) in account.steps.iter().enumerate() {
        let next = account.steps.get(place + 1);
        let until_ns = next.map_or(account.end.as_ns(), |next| next.time.as_ns());
        let mut rest = missing;
        for phase in chain.phases(model, place) {
            pieces.clear();
            naming::name(model, &phase, &mut pieces);
            let cpu = phase.cpu.unwrap_or(step.cpu);
            cpus.push(cpu);
            for piece in &pieces {
                books.enter(piece.end_ns.min(until_ns), piece.key, (cpu, waiter(&phase)));
            }
            rest = pieces
                .last()
                .map_or_else(|| naming::proper(&phase), |piece| piece.key);
        }
        // Between the two sources' stamps of the next step.
        books.enter(until_ns, rest, (step.cpu, None));
    }
    close(model, account, books, &cpus)
}

/// Who is on a run queue in a phase, and with which priority.
fn waiter(phase: &Phase) -> Option<(i32, Prio)> {
    match phase.doing {
        Doing::Waiting { tid, prio, .. } => Some((tid, prio)),
        _ => None,
    }
}

/// Names, sorts and grades.
fn close(model: &Model, account: &Account<'_>, books: Books, cpus: &[Cpu]) -> Ledger {
    let mut named: BTreeMap<TermKind, Sum> = BTreeMap::new();
    let lengths = books.sums.iter().map(|(key, sum)| (*key, sum.duration_ns));
    let names = ThreadNames::new(model, lengths);
    for (key, sum) in books.sums {
        let key = names.name(key);
        let kind = public::public(model, key, account.target, account.preemption);
        match named.get_mut(&kind) {
            Some(before) => before.add(&sum),
            None => {
                named.insert(kind, sum);
            }
        }
    }
    let term = |(kind, sum): (TermKind, Sum)| Term {
        kind,
        duration: Duration::from_ns(sum.duration_ns),
        pieces: sum.pieces,
        range: TimeRange {
            begin: Instant::from_ns(sum.begin_ns),
            end: Instant::from_ns(sum.end_ns),
        },
        cpu: sum.cpu,
        waiter: sum
            .waiter
            .and_then(|waiter| of_chain(model, account, waiter)),
        waited_as: sum.waiter.map(|(_, prio)| prio),
    };
    let mut terms: Vec<Term> = named.into_iter().map(term).collect();
    terms.sort_by_key(|term| -term.duration.as_ns());
    let range = TimeRange {
        begin: account.origin,
        end: account.end,
    };
    let edge = TermKind::Unexplained(Reason::WindowEdge);
    let unseen = account.watched.is_none() && model.has_loss(last_wait(account));
    let lacks_evidence = model.lacks_evidence(range, account.watched);
    let grade = if model.is_lossy(range, cpus) || unseen || lacks_evidence {
        match !lacks_evidence && is_short_pause(model, account, range) {
            true => Grade::Paused,
            false => Grade::Lossy,
        }
    } else if account.waiting
        || model.has_edge(account.origin.as_ns(), account.end.as_ns())
        || terms.iter().any(|term| term.kind == edge)
    {
        Grade::Censored
    } else {
        Grade::Complete
    };
    Ledger {
        terms,
        total: account.end - account.origin,
        grade,
    }
}

/// A task that the late one waits for; none where it is the late one itself.
fn of_chain(model: &Model, account: &Account<'_>, (tid, prio): (i32, Prio)) -> Option<TaskRef> {
    let task = public::called_last(model, tid).filter(|_| tid != account.target)?;
    Some(TaskRef { prio, ..task })
}

/// What was left out for less than this part of an activation is no cause of half of it.
const PAUSE_SHARE_MAX: f64 = 0.1;

/// Whether a watch saw where it begins and ends, and its recorder left out a short part of it: all
/// that is named is outside of that.
fn is_short_pause(model: &Model, account: &Account<'_>, range: TimeRange) -> bool {
    let is_over = account.watched.is_some_and(|end| end != EndKind::Waiting);
    let left_out = model.left_out(range).filter(|_| is_over);
    left_out.is_some_and(|left_out| left_out.share_of(range.end - range.begin) <= PAUSE_SHARE_MAX)
}

/// The target's own wait for a CPU, to its end.
fn last_wait(account: &Account<'_>) -> TimeRange {
    let wakes_it = |step: &&Step| step.kind == StepKind::Waking && step.id == account.target;
    let wake_up = account.steps.iter().rev().find(wakes_it);
    TimeRange {
        begin: wake_up.map_or(account.end, |step| step.time),
        end: account.end,
    }
}
