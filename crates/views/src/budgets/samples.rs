//! Samples are counted for the budgets that they are about: those that are over, and those that the
//! trace's end leaves open.

use super::Checker;
use super::begun::Since;
use super::judge::End;
use super::pace::passed;
use super::rules::Subject;

impl Checker<'_> {
    /// Something lasted from an instant to its end.
    pub(super) fn sample(&mut self, is_it: impl Fn(&Subject) -> bool, begin_ns: i64, end: End) {
        self.sample_since(is_it, (Since::known(begin_ns), None), end);
    }

    /// The same of what others may have handed on.
    pub(super) fn sample_since(
        &mut self,
        is_it: impl Fn(&Subject) -> bool,
        (since, period_ns): (Since, Option<i64>),
        end: End,
    ) {
        let ended_ns = match end {
            End::Seen(end_ns) => end_ns,
            End::NotAfter(_) | End::Stopped(_) | End::PerhapsBefore(_) | End::Unknown => {
                self.now_ns
            }
        };
        if !self.here || ended_ns < self.begin_ns {
            return;
        }
        let end = match since.begin_ns >= self.known_from_ns {
            true => end,
            false => End::Unknown,
        };
        for (budget, tally) in self.rules.budgets.iter().zip(&mut self.tallies) {
            if !is_it(&budget.subject) {
                continue;
            }
            let limit_ns = budget.limit.as_ns();
            tally.enter(since.begin_ns, end, limit_ns);
            tally.unknown_wakers += u64::from(since.may_be_over(ended_ns, limit_ns));
            let passed = |period_ns| passed(ended_ns - since.begin_ns, period_ns, limit_ns);
            tally.passed += period_ns.map_or(0, passed);
        }
    }

    /// What is still open when the trace ends is over if it is over already; else nobody knows.
    pub(super) fn still_open(
        &mut self,
        is_it: impl Fn(&Subject) -> bool,
        begin_ns: i64,
        doubtful: bool,
    ) {
        self.open_since(is_it, Since::known(begin_ns), doubtful);
    }

    /// The same of what others may have handed on.
    pub(super) fn open_since(
        &mut self,
        is_it: impl Fn(&Subject) -> bool,
        since: Since,
        doubtful: bool,
    ) {
        let begin_ns = since.begin_ns;
        if !self.here {
            return;
        }
        for (budget, tally) in self.rules.budgets.iter().zip(&mut self.tallies) {
            if !is_it(&budget.subject) {
                continue;
            }
            let limit_ns = budget.limit.as_ns();
            let is_over = self.now_ns - begin_ns > limit_ns;
            match is_over {
                true if doubtful || begin_ns < self.known_from_ns => tally.unsure += 1,
                true => tally.add(begin_ns, self.now_ns, limit_ns),
                false => tally.open += 1,
            }
            tally.unknown_wakers += u64::from(since.may_be_over(self.now_ns, limit_ns));
        }
    }
}
