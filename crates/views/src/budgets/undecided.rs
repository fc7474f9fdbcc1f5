//! Wake-ups whose length is not certain when their thread is scheduled in, as it was moved before.

use super::judge::Tally;
use super::{Checker, End, Subject};
use kernel_state::ProcId;

/// One of them.
#[derive(Debug)]
pub(super) struct Undecided {
    process: ProcId,
    woken_ns: i64,
    at_ns: i64,
    /// The budgets that it is a sample of, by their places.
    budgets: Vec<usize>,
}

impl Tally {
    /// Takes in what lasted from an instant to its end.
    pub fn enter(&mut self, begin_ns: i64, end: End, limit_ns: i64) {
        match end {
            End::Seen(end_ns) => self.add(begin_ns, end_ns, limit_ns),
            End::NotAfter(most_ns) if most_ns - begin_ns <= limit_ns => self.within += 1,
            _ => self.unsure += 1,
        }
    }
}

impl Checker<'_> {
    /// A thread that was woken is scheduled in, and was moved before.
    pub(super) fn undecided(
        &mut self,
        is_it: impl Fn(&Subject) -> bool,
        process: ProcId,
        (woken_ns, at_ns): (i64, i64),
    ) {
        if at_ns < self.begin_ns {
            return;
        }
        let budgets = self.rules.budgets.iter().enumerate();
        let its = budgets.filter(|(_, budget)| is_it(&budget.subject));
        self.undecided.push(Undecided {
            process,
            woken_ns,
            at_ns,
            budgets: its.map(|(place, _)| place).collect(),
        });
    }

    /// It is known whether it ran before. If it did, it waited for less.
    pub(super) fn settled(&mut self, process: ProcId, at_ns: i64, lossy: bool) {
        let is_it = |wait: &Undecided| wait.process == process && wait.at_ns == at_ns;
        let Some(place) = self.undecided.iter().position(is_it) else {
            return;
        };
        let wait = self.undecided.swap_remove(place);
        let end = match lossy {
            true => End::NotAfter(at_ns),
            false => End::Seen(at_ns),
        };
        for place in wait.budgets {
            let limit_ns = self.rules.budgets[place].limit.as_ns();
            self.tallies[place].enter(wait.woken_ns, end, limit_ns);
        }
        if lossy {
            self.responses.ran_unseen(process);
        }
    }
}
