//! What is counted for a budget, and what that says of it.

use std::collections::BTreeMap;

use event::{Instant, TimeRange};
use kernel_state::{Inside, places};

use super::finding::{BudgetFinding, Judgement, SleepsInside};
use super::rules::Budget;

const MILLION: u128 = 1_000_000;

/// When something was over.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// At this instant.
    Seen(i64),
    /// Its end was not recorded; it came no later than this.
    NotAfter(i64),
    /// The same: it may have begun later, as its thread was stopped.
    Stopped(i64),
    /// It came no later than this, and perhaps it never was.
    PerhapsBefore(i64),
    /// Nobody knows.
    Unknown,
}

/// What is counted for one budget.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub samples: u64,
    pub over: u64,
    pub unsure: u64,
    pub within: u64,
    pub open: u64,
    pub unseen: u64,
    pub unwoken: u64,
    pub unknown_wakers: u64,
    pub stopped: u64,
    pub start_ups: u64,
    pub long_start_ups: u64,
    pub unslept: u64,
    pub passed: u64,
    pub threads: BTreeMap<i32, String>,
    /// Threads that were seen at work, by the name that they had.
    pub worked: BTreeMap<i32, String>,
    pub renamed: u64,
    pub worst: Option<(i64, i64)>,
    pub inside: Option<SleepsInside>,
}

impl Tally {
    /// Takes in what lasted from an instant to its end.
    pub fn enter(&mut self, begin_ns: i64, end: End, limit_ns: i64) {
        match end {
            End::Seen(end_ns) => self.add(begin_ns, end_ns, limit_ns),
            End::NotAfter(most_ns) | End::Stopped(most_ns) if most_ns - begin_ns <= limit_ns => {
                self.within += 1;
            }
            // It is in time, or never was.
            End::PerhapsBefore(most_ns) if most_ns - begin_ns <= limit_ns => {}
            _ => {
                self.unsure += 1;
                self.stopped += u64::from(matches!(end, End::Stopped(_)));
            }
        }
    }

    pub fn add(&mut self, begin_ns: i64, end_ns: i64, limit_ns: i64) {
        self.samples += 1;
        self.over += u64::from(end_ns - begin_ns > limit_ns);
        let longest = |worst: &(i64, i64)| worst.1 - worst.0 >= end_ns - begin_ns;
        if !self.worst.as_ref().is_some_and(longest) {
            self.worst = Some((begin_ns, end_ns));
        }
    }

    /// A thread slept inside cycles of its timer.
    pub fn slept_inside(&mut self, found: &Inside, over: u64) {
        let (begin_ns, end_ns) = found.worst_ns;
        let worst = TimeRange {
            begin: Instant::from_ns(begin_ns),
            end: Instant::from_ns(end_ns),
        };
        let inside = self.inside.get_or_insert(SleepsInside {
            cycles: 0,
            sleeps: 0,
            worst,
            over: 0,
        });
        inside.cycles += found.cycles;
        inside.sleeps += found.sleeps;
        inside.over += over;
        if worst.duration() > inside.worst.duration() {
            inside.worst = worst;
        }
    }

    /// All that happened on a CPU is missing: nothing that was found is sure.
    pub fn doubt_all(&mut self) {
        self.unsure += self.samples + self.within;
        (self.samples, self.within, self.over, self.worst) = (0, 0, 0, None);
    }

    /// Why what nobody knows of samples could break a budget that is not broken; none where it
    /// could not.
    fn doubt(&self, budget: &Budget) -> Option<String> {
        let unknown = u128::from(self.unsure + self.unwoken + self.open);
        let all = u128::from(self.samples + self.within) + unknown;
        let over = u128::from(self.over) + unknown;
        let may_break = |over: u128| over * MILLION > all * u128::from(budget.over_ppm);
        if self.unsure > 0 && may_break(over) {
            let unsure = self.unsure;
            return Some(format!("nobody knows how long {unsure} of them lasted"));
        }
        if self.unwoken > 0 && may_break(over) {
            let unwoken = self.unwoken;
            return Some(format!("the wake-up of {unwoken} of them was not recorded"));
        }
        let over = over + u128::from(self.unknown_wakers);
        if self.unknown_wakers > 0 && may_break(over) {
            return Some(format!(
                "{} more may have been over: nothing shows who woke them, or since when",
                self.unknown_wakers
            ));
        }
        // They are samples that were not counted, too.
        let (over, all) = (
            over + u128::from(self.passed),
            all + u128::from(self.passed),
        );
        let may_break = |over: u128| over * MILLION > all * u128::from(budget.over_ppm);
        if self.passed > 0 && may_break(over) {
            return Some(format!(
                "{} more releases of its timer passed in those that are over",
                self.passed
            ));
        }
        let over = over + u128::from(self.renamed);
        if self.renamed > 0 && may_break(over) {
            return Some(format!(
                "{} more were over, of threads that were called otherwise by then; a rule of their \
                 tid judges them",
                self.renamed
            ));
        }
        let inside = self.inside.as_ref().map_or(0, |inside| inside.over);
        (inside > 0 && may_break(over + u128::from(inside))).then(|| {
            format!(
                "{inside} more may have been over: it slept in them, for others or for a length \
                 of time"
            )
        })
    }

    fn judge(&self, budget: &Budget, holes: u64) -> Judgement {
        let inconclusive = |why: String| Judgement::Inconclusive(why);
        if budget.over_ppm == 0 && self.over > 0 {
            // One is enough, whatever is missing.
            return Judgement::Broken;
        }
        if self.samples + self.unsure + self.within + self.unwoken == 0 {
            return inconclusive("there is no sample".to_owned());
        }
        let unsure = u128::from(self.unsure + self.unwoken + self.open);
        let all = u128::from(self.samples + self.within) + unsure;
        let needed = budget.samples_min();
        // Were all of these short that nobody knows: too many are over still.
        let allowed = all.max(u128::from(needed)) * u128::from(budget.over_ppm);
        if holes == 0 && u128::from(self.over) * MILLION > allowed {
            return Judgement::Broken;
        }
        if let Some(why) = self.doubt(budget).filter(|_| holes == 0) {
            return inconclusive(why);
        }
        if holes > 0 {
            return inconclusive(format!("events are missing in {}", places(holes)));
        }
        // Were all samples that it takes there, and none of the missing ones over: too many still.
        let is_beyond = |samples: u64| {
            let allowed = u128::from(samples) * u128::from(budget.over_ppm);
            u128::from(self.over) * MILLION > allowed
        };
        let samples = self.samples + self.within;
        if samples < needed && !is_beyond(needed) {
            return inconclusive(format!("it takes {needed} samples to tell"));
        }
        match is_beyond(samples.max(needed)) {
            true => Judgement::Broken,
            // Nobody may take waits for work that was in time.
            false if self.unslept > 0 => {
                let those = match self.unslept {
                    1 => "a new thread".to_owned(),
                    all => format!("{all} new threads"),
                };
                inconclusive(format!(
                    "{those} worked for longer than the limit without a sleep"
                ))
            }
            false if self.long_start_ups > 0 && self.start_ups >= samples => {
                inconclusive("only waits of new threads for a CPU could be judged".to_owned())
            }
            false => Judgement::Held,
        }
    }

    pub fn finding(self, budget: Budget, holes: u64, locks_known: bool) -> BudgetFinding {
        let range = |(begin_ns, end_ns)| TimeRange {
            begin: Instant::from_ns(begin_ns),
            end: Instant::from_ns(end_ns),
        };
        BudgetFinding {
            judgement: self.judge(&budget, holes),
            budget,
            samples: self.samples,
            over: self.over,
            unsure: self.unsure,
            within: self.within,
            open: self.open,
            unseen: self.unseen,
            unwoken: self.unwoken,
            unknown_wakers: self.unknown_wakers,
            stopped: self.stopped,
            long_start_ups: self.long_start_ups,
            unslept: self.unslept,
            passed: self.passed,
            renamed: self.renamed,
            threads: self.threads,
            worst: self.worst.map(range),
            locks_known,
            inside: self.inside,
        }
    }
}
