//! Whether a part of a store keeps a budget, from its histograms.
//!
//! A histogram knows a sample to its bucket, so that of some nobody knows whether they were over: a
//! budget holds only when it does with all of them, and is broken only when it is without any. The
//! longest of each interval is known to the nanosecond.

use abi::bucket_begin_ns;
use abi::monitor::Phase;
use event::{Duration, NamedTask, Prio, Result, TaskPattern, Tid};

use crate::buckets::Histogram;
use crate::interval::{Head, Interval, Run, Scope, Worst};
use crate::kind::Kind;
use crate::store::{Range, Store};
use crate::sum::PhaseSum;

const MILLION: u128 = 1_000_000;

/// What is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateSubject {
    /// From the wake-up to the switch-in: the sum of two phases.
    WakeUp,
    /// How late timers were.
    Timer,
    /// What a tracker measured.
    Tracked(Kind),
}

/// A budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// As it was written.
    pub text: String,
    /// What of.
    pub subject: GateSubject,
    /// Whose; none: of all tasks.
    pub task: Option<TaskPattern>,
    /// No sample may last longer.
    pub limit: Duration,
    /// But so many of a million.
    pub over_ppm: u32,
    /// Fewer samples say nothing of so small a share.
    pub samples_min: u64,
}

/// What a store says of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateJudgement {
    /// It holds.
    Held,
    /// It does not.
    Broken,
    /// The store does not carry a statement, and why.
    Inconclusive(String),
}

/// What was found for a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateFinding {
    /// The budget.
    pub gate: Gate,
    /// The judgement.
    pub judgement: GateJudgement,
    /// Samples that were counted.
    pub samples: u64,
    /// How many of these were over: at least, and at most.
    pub over: (u64, u64),
    /// The longest that is known, and when it ended on the wall clock.
    pub worst: Option<(Duration, i64)>,
}

/// What was found for all budgets, and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateReport {
    /// In the order of the budgets.
    pub findings: Vec<GateFinding>,
    /// Closed intervals.
    pub intervals: u64,
    /// From the begin of the first to the end of the last; what is missing in them.
    pub head: Head,
}

/// Judges budgets over a part of a store.
///
/// # Errors
/// When the store cannot be read.
pub fn judge(store: &Store, range: Range, gates: &[Gate]) -> Result<GateReport> {
    let runs = store.runs()?;
    let mut tallies: Vec<Tally> = gates.iter().map(Tally::new).collect();
    let mut report = GateReport::default();
    store.read(range, |number, interval| {
        let run = runs.iter().find(|(of, _)| *of == number);
        for tally in &mut tallies {
            tally.add(run.map(|(_, run)| run), &interval);
        }
        let head = &interval.head;
        let sum = &mut report.head;
        if report.intervals == 0 {
            sum.begin_ns = head.begin_ns;
        }
        report.intervals += 1;
        sum.end_ns = head.end_ns;
        sum.elapsed += head.elapsed;
        sum.lost += head.lost;
        sum.lost_tracked += head.lost_tracked;
        sum.unsaved += head.unsaved;
        Ok(())
    })?;
    let findings = tallies.into_iter().map(|tally| tally.finding(&report.head));
    report.findings = findings.collect();
    Ok(report)
}

/// The scope whose samples are exactly those of `task`; none when the run counts no such.
fn scope_of(run: &Run, task: Option<&TaskPattern>) -> Option<Scope> {
    let Some(task) = task else {
        return run.all().then_some(Scope::All);
    };
    if *task == TaskPattern::RealTime {
        return Some(Scope::RealTime);
    }
    (run.tasks()? == [task.to_string()]).then_some(Scope::Named)
}

/// What is counted for a budget.
struct Tally<'g> {
    gate: &'g Gate,
    samples: u64,
    over: (u64, u64),
    worst: Option<(Duration, i64)>,
    /// Intervals whose run counts no such samples apart.
    apart: u64,
    /// Wake-ups whose switch may be in the interval after them.
    before: Option<PhaseSum>,
}

impl<'g> Tally<'g> {
    fn new(gate: &'g Gate) -> Tally<'g> {
        Tally {
            gate,
            samples: 0,
            over: (0, 0),
            worst: None,
            apart: 0,
            before: None,
        }
    }

    fn add(&mut self, run: Option<&Run>, interval: &Interval) {
        let task = self.gate.task.as_ref();
        let Some(scope) = run.and_then(|run| scope_of(run, task)) else {
            self.apart += 1;
            return self.add_victims(interval);
        };
        let phase = |kind: Kind| interval.phase(scope, kind);
        match &self.gate.subject {
            GateSubject::Timer => {
                if let Some(timers) = phase(Phase::Timer.into()) {
                    self.count(timers.histogram.samples(), self.over_of(&timers));
                }
            }
            GateSubject::Tracked(kind) => {
                if let Some(tracked) = phase(kind.clone()) {
                    self.count(tracked.histogram.samples(), self.over_of(&tracked));
                }
            }
            GateSubject::WakeUp => {
                let wakeups = phase(Phase::Wakeup.into());
                if let Some(switches) = phase(Phase::Switch.into()) {
                    let mut before = self.before.take().unwrap_or_default();
                    if let Some(wakeups) = &wakeups {
                        before.max = before.max.max(wakeups.max);
                        before.histogram.add(&wakeups.histogram);
                    }
                    let least = self.over_of(&switches).0;
                    let most = over_together(&before, &switches, self.gate.limit);
                    self.count(switches.histogram.samples(), (least, most));
                }
                self.before = wakeups;
            }
        }
        for worst in &interval.worst {
            if worst.scope == scope {
                self.longest(worst);
            }
        }
    }

    fn count(&mut self, samples: u64, over: (u64, u64)) {
        self.samples += samples;
        self.over.0 += over.0;
        self.over.1 += over.1;
    }

    fn over_of(&self, sum: &PhaseSum) -> (u64, u64) {
        over(sum, self.gate.limit)
    }

    /// Of tasks that are not counted apart, only the longest of an interval has a name: it breaks a
    /// budget, and holds none.
    fn add_victims(&mut self, interval: &Interval) {
        let Some(task) = &self.gate.task else {
            return;
        };
        let is_meant = |worst: &&Worst| {
            worst.victim.as_ref().is_some_and(|victim| {
                let name = victim.name.as_bytes();
                let named = NamedTask::alone(Tid(victim.tid), name, Prio(victim.prio));
                task.matches(&named)
            })
        };
        let mut is_over = false;
        for worst in interval.worst.iter().filter(is_meant) {
            is_over |= self.longest(worst) > self.gate.limit;
        }
        self.over.0 += u64::from(is_over);
    }

    /// How long what is judged took in one of the longest.
    fn longest(&mut self, worst: &Worst) -> Duration {
        let value = match (&self.gate.subject, worst.phase.phase()) {
            (GateSubject::Tracked(kind), None) if worst.phase == *kind => worst.value,
            (GateSubject::Tracked(_), _) => Duration::ZERO,
            (GateSubject::Timer, _) => worst.timer.unwrap_or_default(),
            // Only these go on to the switch.
            (GateSubject::WakeUp, Some(Phase::Switch | Phase::TimerWakeupSwitch)) => {
                worst.parts[0] + worst.parts[1]
            }
            (GateSubject::WakeUp, _) => Duration::ZERO,
        };
        if value > self.worst.map_or(Duration::ZERO, |(longest, _)| longest) {
            self.worst = Some((value, worst.at_ns));
        }
        value
    }

    fn finding(self, head: &Head) -> GateFinding {
        // One of the longest is known better than its bucket.
        let known = self.worst.is_some_and(|(worst, _)| worst > self.gate.limit);
        let least = self.over.0.max(u64::from(known));
        let over = (least, self.over.1.max(least));
        GateFinding {
            judgement: self.judgement(over, head),
            gate: self.gate.clone(),
            samples: self.samples,
            over,
            worst: self.worst,
        }
    }

    fn judgement(&self, over: (u64, u64), head: &Head) -> GateJudgement {
        let gate = self.gate;
        let inconclusive = |why: String| GateJudgement::Inconclusive(why);
        if gate.over_ppm == 0 && over.0 > 0 {
            // One is enough, whatever is missing.
            return GateJudgement::Broken;
        }
        if self.apart > 0 {
            return inconclusive(self.how_to_count_apart());
        }
        if self.samples == 0 {
            return inconclusive("there is no sample".to_owned());
        }
        if head.unsaved > 0 {
            return inconclusive(format!("{} closed intervals are missing", head.unsaved));
        }
        let lost = self.lost(head);
        let all = u128::from(self.samples + lost);
        let allowed = all * u128::from(gate.over_ppm);
        if self.samples < gate.samples_min {
            return inconclusive(format!("it takes {} samples to tell", gate.samples_min));
        }
        if u128::from(over.0) * MILLION > allowed {
            return GateJudgement::Broken;
        }
        if u128::from(over.1 + lost) * MILLION <= allowed {
            return GateJudgement::Held;
        }
        if u128::from(over.1) * MILLION <= allowed {
            return inconclusive(format!("{lost} samples were not counted"));
        }
        inconclusive(format!(
            "between {} and {} were over: a sample is known to its bucket, a sixteenth of it",
            over.0, over.1
        ))
    }

    /// What a tracker did not count says nothing of the phases.
    fn lost(&self, head: &Head) -> u64 {
        match self.gate.subject {
            GateSubject::Tracked(_) => head.lost_tracked,
            GateSubject::WakeUp | GateSubject::Timer => head.lost,
        }
    }

    fn how_to_count_apart(&self) -> String {
        let of = self.apart;
        match &self.gate.task {
            Some(task) => format!(
                "in {of} intervals no samples of this task alone were counted: \
                 rtscope monitor --task '{task}' does"
            ),
            None => format!(
                "in {of} intervals only some tasks were counted: \
                 rtscope monitor --all counts every one"
            ),
        }
    }
}

/// How many samples were longer than `limit`: at least, and at most.
fn over(sum: &PhaseSum, limit: Duration) -> (u64, u64) {
    if sum.max <= limit {
        return (0, 0);
    }
    let (mut least, mut most) = (0, 0);
    for (begin_ns, end_ns, count) in sum.histogram.bounds_ns() {
        if begin_ns > limit.as_ns_unsigned() {
            least += count;
        }
        // The end belongs to the next bucket.
        if end_ns > limit.as_ns_unsigned() + 1 {
            most += count;
        }
    }
    // The longest is over, whatever else its bucket has.
    (least.max(1), most.max(1))
}

/// How many sums of a wake-up and the switch after it can at most be longer than `limit`: each of
/// them has a wake-up longer than some share of the limit, or a switch longer than the rest.
fn over_together(wakeups: &PhaseSum, switches: &PhaseSum, limit: Duration) -> u64 {
    if wakeups.max + switches.max <= limit {
        return 0;
    }
    let split = |share: Duration| {
        let rest = Duration::from_ns((limit.as_ns() - share.as_ns()).max(0));
        over(wakeups, share).1 + over(switches, rest).1
    };
    let Histogram(buckets) = &wakeups.histogram;
    let ends = buckets.iter().map(|(bucket, _)| {
        let end_ns = bucket_begin_ns(usize::from(*bucket) + 1);
        Duration::from_ns(i64::try_from(end_ns).unwrap_or(i64::MAX))
    });
    let shares = ends.chain([wakeups.max, Duration::ZERO]);
    let shares = shares.filter(|share| *share <= limit);
    shares.map(split).min().unwrap_or_default()
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
