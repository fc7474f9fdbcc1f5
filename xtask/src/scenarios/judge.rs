//! Compares what a watch said with what the actor did.

use super::hit::{Culprit, Hit};
use super::language::{Scenario, VICTIM};
use super::log::{Entry, Played, covered_ns};
use super::place::Place;

/// What became of a scenario; of several, the first of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Somebody was accused who did not do it, or of a lateness that was none.
    Wrong,
    /// The victim was late and nothing was said.
    Unseen,
    /// Nobody was accused, although it was a fault: honest, not helpful.
    Open,
    /// The right one, for a time that is not true.
    Inexact,
    /// Nobody was accused, and by the actor's own pulse the machine did not run the CPU for a good
    /// part of the time: nobody could say more.
    Stood,
    /// Who did it, for as long as it was.
    Right,
    /// Somebody outside of the scenario was accused, and the events of the snapshot bear it out.
    Foreign,
    /// Nobody was to be accused, and nobody was.
    Silent,
}

/// All of them, as the columns of tables.
pub const GRADES: [(Grade, &str); 8] = [
    (Grade::Right, "right"),
    (Grade::Silent, "silent, as it must be"),
    (Grade::Open, "inconclusive"),
    (Grade::Stood, "the machine stood"),
    (Grade::Unseen, "unseen"),
    (Grade::Inexact, "inexact"),
    (Grade::Foreign, "others, borne out"),
    (Grade::Wrong, "wrong"),
];

/// The judgement on a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub grade: Grade,
    /// Why it is no better.
    pub why: String,
    /// The hit that decided.
    pub hit: Option<Hit>,
}

/// A hit that ends so long after its scenario still belongs to it.
const TAIL_NS: i64 = 150_000_000;
/// Lateness that begins so long after a fault is none of its doing, but for a quota.
const AFTER_NS: i64 = 5_000_000;
const AFTER_QUOTA_NS: i64 = 150_000_000;
/// A culprit that ends in its fault has the CPU for so long beyond its log.
const END_NS: i64 = 2_500_000;
/// An innocent may have had so many percent of the time that a culprit is given.
const SHARE_PERCENT: i64 = 25;

/// With one part of so many a machine that stands still takes what a verdict needs.
const STOOD_PART: i64 = 3;

/// One scenario's evidence.
struct Case<'a> {
    scenario: &'a Scenario,
    played: &'a Played,
    place: Place,
    hits: Vec<&'a Hit>,
    told: &'a [(i64, i64)],
}

/// What the hits of a watch over many scenarios are worth for this one. `told` are the spans of
/// all late activations that it told, with a snapshot or in short.
pub fn judge(
    scenario: &Scenario,
    played: &Played,
    (hits, told): (&[Hit], &[(i64, i64)]),
    place: Place,
) -> Judgement {
    let window = played.begin_ns..played.end_ns + TAIL_NS;
    // Before that it only gets ready, and has neither its policy nor, to a watch, its name.
    let ready_ns = played.activations().map(|entry| entry.due_ns).min();
    let ours = |hit: &&Hit| {
        let begun = ready_ns.is_none_or(|ready_ns| hit.end_ns >= ready_ns);
        begun && window.contains(&hit.end_ns) && hit.origin_ns < played.end_ns
    };
    let case = Case {
        scenario,
        played,
        place,
        hits: hits.iter().filter(ours).collect(),
        told,
    };
    let mut all: Vec<Judgement> = case.hits.iter().map(|hit| case.of_hit(hit)).collect();
    all.extend(case.unseen());
    let worst = all.into_iter().min_by_key(|judgement| judgement.grade);
    worst.unwrap_or_else(|| judgement(Grade::Silent, ""))
}

fn judgement(grade: Grade, why: &str) -> Judgement {
    Judgement {
        grade,
        why: why.to_owned(),
        hit: None,
    }
}

impl Case<'_> {
    fn of_hit(&self, hit: &Hit) -> Judgement {
        let (grade, why) = match hit.conclusive {
            true => self.of_accusation(hit),
            // Beside the fault it is the machine's own noise, and nobody is accused of it.
            false => match self.is_of_fault(hit.span()) && self.expects_somebody() {
                true if self.stood_ns(hit.span()) * STOOD_PART >= hit.end_ns - hit.origin_ns => {
                    (Grade::Stood, "the machine stood still: ")
                }
                true => (Grade::Open, ""),
                false => (Grade::Silent, ""),
            },
        };
        let ms = (hit.end_ns - hit.origin_ns) as f64 / 1e6;
        Judgement {
            grade,
            why: format!("{why}{} [{ms:.3} ms]", hit.sentence),
            hit: Some(hit.clone()),
        }
    }

    fn expects_somebody(&self) -> bool {
        !self.scenario.accuse.is_empty() && self.scenario.silence.is_none()
    }

    fn of_accusation(&self, hit: &Hit) -> (Grade, &'static str) {
        let Some(first) = hit.culprits.first() else {
            return (Grade::Open, "");
        };
        let latency_ns = hit.end_ns - hit.origin_ns;
        let counts = |culprit: &&Culprit| culprit.duration_ns * 100 > latency_ns * SHARE_PERCENT;
        let innocent = |culprit: &Culprit| {
            let mut names = culprit.names.iter();
            let called = names.any(|name| self.is_of_role("innocent", name));
            called && !self.is_another(culprit) && !self.is_ahead_of_timers(culprit)
        };
        let mut named = hit.culprits.iter().filter(counts);
        if hit.comm != VICTIM {
            return (Grade::Wrong, "another task is said to be late: ");
        }
        if named.any(innocent) {
            return (Grade::Wrong, "an innocent is named: ");
        }
        if !self.is_meant(first) {
            let known = first.names.iter().any(|name| self.plays(name));
            let ahead = self.is_ahead_of_timers(first) || self.uses_its_quota(first);
            let known = known && !self.is_another(first) && !ahead;
            return match known || self.is_of_injector(first) {
                true => (Grade::Wrong, "not the kind and name of the fault: "),
                false => (Grade::Foreign, ""),
            };
        }
        let late_ns = self.late_ns(hit.span());
        let allowed_ns = self.allowed_ns(latency_ns);
        if late_ns * 2 < self.over_ns() {
            // Its own time accuses nobody, and the log has only the part of it that it was to
            // spend: where an emulator runs it, a fork takes milliseconds.
            return match first.kind == "own_run" {
                true => (Grade::Inexact, "it was not late by its log: "),
                false => (Grade::Wrong, "it was not late: "),
            };
        }
        if latency_ns > late_ns + allowed_ns {
            return (Grade::Inexact, "it was not late by so much: ");
        }
        match self.error_ns(hit, first) {
            Some(error_ns) if error_ns > allowed_ns => {
                (Grade::Inexact, "another time than in the log: ")
            }
            _ => (Grade::Right, ""),
        }
    }

    /// Whether the scenario says that it may be accused of this.
    fn is_meant(&self, culprit: &Culprit) -> bool {
        let names: Vec<&str> = culprit.names.iter().map(String::as_str).collect();
        let mut accuse = self.scenario.accuse.iter();
        accuse.any(|accuse| accuse.means(&culprit.kind, &names))
    }

    /// Whether it is a real-time task that ran ahead of the thread that serves timers on real-time
    /// kernels: whoever wakes by such a timer is late by that, whatever the scenario meant. The
    /// events of the snapshot are asked next.
    fn is_ahead_of_timers(&self, culprit: &Culprit) -> bool {
        let mut tasks = self.scenario.tasks.iter();
        culprit.kind == "run_queue_wait"
            && culprit.waiter.starts_with("ktimers/")
            && tasks.all(|task| !culprit.names.contains(&task.name) || task.is_real_time())
    }

    /// Whether it is the one that uses up the quota, on the victim's CPU: until the quota is gone,
    /// the victim waits behind it. The events of the snapshot are asked next.
    fn uses_its_quota(&self, culprit: &Culprit) -> bool {
        let mut culprits = self.scenario.of_role("culprit");
        self.scenario.fault == "quota"
            && culprit.kind == "run_queue_wait"
            && culprits.any(|task| culprit.names.contains(&task.name))
    }

    /// Lateness that nothing was said of.
    fn unseen(&self) -> Option<Judgement> {
        let must_ns = self.over_ns() + self.over_ns() / 5 + 300_000;
        let said = |entry: &Entry| {
            let with_snapshot = self.hits.iter().map(|hit| hit.span());
            let mut told = with_snapshot.chain(self.told.iter().copied());
            told.any(|(from_ns, to_ns)| from_ns <= entry.end_ns && entry.due_ns <= to_ns)
        };
        let mut late = self.played.activations();
        let late = late.find(|entry| entry.end_ns - entry.due_ns > must_ns && !said(entry))?;
        if self.scenario.silence.is_some() {
            return None;
        }
        let ms = (late.end_ns - late.due_ns) as f64 / 1e6;
        let why = format!(
            "late by {ms:.3} ms at {}, and nothing was said",
            late.end_ns
        );
        Some(judgement(Grade::Unseen, &why))
    }

    /// For how long the machine did not run a CPU in a span, by the actor's pulse. Faults of the
    /// kernel stop it too, and tasks with a deadline go ahead of it.
    fn stood_ns(&self, span: (i64, i64)) -> i64 {
        let mut tasks = self.scenario.tasks.iter();
        if tasks.any(|task| task.policy.starts_with("dl:")) {
            return 0;
        }
        let of = |roles: &[&str]| {
            let entries = self.played.entries.iter();
            covered_ns(entries.filter(|entry| roles.contains(&&*entry.role)), span)
        };
        of(&["machine", "kernel"]) - of(&["kernel"])
    }

    fn over_ns(&self) -> i64 {
        self.scenario.over_us as i64 * 1000
    }

    fn allowed_ns(&self, of_ns: i64) -> i64 {
        let ends = ["hog-dies", "hog-forks"].contains(&self.scenario.fault.as_str());
        let end_ns = if ends { END_NS } else { 0 };
        (self.place.error_us as i64 * 1000).max(of_ns / 10) + end_ns
    }

    /// Whether it is a task of the machine that is called like an innocent.
    fn is_another(&self, culprit: &Culprit) -> bool {
        let mut called = self.played.tasks.iter();
        let is_it = |(name, tid): &(String, i64)| {
            culprit.names.contains(name) && (culprit.tid == *tid || *tid == 0)
        };
        let mut names = culprit.names.iter();
        let innocent = names.any(|name| self.is_of_role("innocent", name));
        innocent && !self.played.tasks.is_empty() && !called.any(is_it)
    }

    fn plays(&self, name: &str) -> bool {
        self.scenario.tasks.iter().any(|task| task.name == name)
    }

    fn is_of_role(&self, role: &str, name: &str) -> bool {
        self.scenario.of_role(role).any(|task| task.name == name)
    }

    fn is_of_injector(&self, culprit: &Culprit) -> bool {
        culprit.names.iter().any(|name| name.starts_with("lab_"))
    }

    fn is_of_fault(&self, (from_ns, to_ns): (i64, i64)) -> bool {
        let after_ns = match self.scenario.fault.as_str() {
            "quota" => AFTER_QUOTA_NS,
            _ => AFTER_NS,
        };
        let mut faults = self.played.faults();
        faults.any(|fault| fault.begin_ns <= to_ns && from_ns <= fault.end_ns + after_ns)
    }

    /// By how much the victim was late within a span, by its own log: from when it was due, or the
    /// one that woke it was, to the end of its work.
    fn late_ns(&self, span: (i64, i64)) -> i64 {
        let within = |entry: &&Entry| entry.due_ns <= span.1 && span.0 <= entry.end_ns;
        let begins = self.played.entries.iter().filter(within);
        let handed_on = self
            .scenario
            .things
            .iter()
            .any(|thing| thing.starts_with("channel"));
        let begins = begins.filter(|entry| match entry.what.as_str() {
            "activation" => entry.name == VICTIM || handed_on && entry.role == "helper",
            _ => handed_on && entry.role == "culprit",
        });
        let due_ns = begins.map(|entry| entry.due_ns).min();
        let end_ns = self
            .played
            .activations()
            .filter(within)
            .map(|entry| entry.end_ns)
            .max();
        match (due_ns, end_ns) {
            (Some(due_ns), Some(end_ns)) => end_ns - due_ns,
            _ => 0,
        }
    }

    /// How much a term differs from the log, where the log says how long its cause lasted: for
    /// real-time tasks that had the CPU, and for the kernel's injector.
    fn error_ns(&self, hit: &Hit, first: &Culprit) -> Option<i64> {
        let of_kernel = ["interrupts_off", "preemption_off", "hardirq"];
        let by_kernel = of_kernel.contains(&first.kind.as_str());
        let mut culprits = self.scenario.of_role("culprit");
        let all_real_time = culprits.all(|task| task.is_real_time());
        if !by_kernel && (first.kind != "run_queue_wait" || !all_real_time) {
            return None;
        }
        let role = if by_kernel { "kernel" } else { "culprit" };
        let causes = self.played.faults().filter(|entry| entry.role == role);
        let true_ns = covered_ns(causes, hit.span());
        let meant = hit.culprits.iter().filter(|culprit| self.is_meant(culprit));
        let said_ns: i64 = meant.map(|culprit| culprit.duration_ns).sum();
        // What it says that it does not know is nobody's.
        let open = hit.sentence.contains("unexplained");
        match open && said_ns < true_ns {
            true => None,
            false => Some((said_ns - true_ns).abs()),
        }
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
