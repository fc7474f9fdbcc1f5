//! Start-ups of threads: what one does that was just made, up to its first sleep, is nobody's
//! deadline. Where it never sleeps it is no start-up, and its waits for a CPU count.

use event::NamedTask;
use kernel_state::ProcId;

use super::judge::End;
use super::starts::Wait;
use super::{Checker, is_response_of};

impl Checker<'_> {
    /// A thread is scheduled in that was made and has not slept since: of its response this wait is
    /// judged alone.
    pub(super) fn starts(&mut self, task: &NamedTask<'_>) {
        let counts = self.counts();
        for (budget, tally) in self.rules.budgets.iter().zip(&mut self.tallies) {
            tally.start_ups += u64::from(counts && is_response_of(&budget.subject, task));
        }
    }

    /// The same thread waited for a CPU afterwards, since an instant.
    pub(super) fn waits_in_start_up(
        &mut self,
        process: ProcId,
        task: &NamedTask<'_>,
        (since_ns, end): (i64, End),
    ) {
        if !self.counts() {
            return;
        }
        let budgets = (0..).zip(&self.rules.budgets);
        let budgets = budgets.filter(|(_, budget)| is_response_of(&budget.subject, task));
        let budgets: Vec<usize> = budgets.map(|(place, _)| place).collect();
        if budgets.is_empty() {
            return;
        }
        let end = match since_ns >= self.known_from_ns {
            true => end,
            false => End::Unknown,
        };
        let wait = Wait {
            since_ns,
            end,
            thread: (task.tid.0, event::plain_text(task.comm)),
            budgets,
        };
        self.start_ups.add(process, wait);
    }

    /// A thread that was made at `made_ns` has come to its first sleep, if it `slept`, to its end,
    /// or to that of the trace: its work until then is no sample of a response.
    pub(super) fn started(
        &mut self,
        process: ProcId,
        task: &NamedTask<'_>,
        (made_ns, slept): (i64, bool),
    ) {
        if slept {
            self.start_ups.end(process);
        }
        if !self.counts() {
            return;
        }
        let took_ns = self.now_ns - made_ns;
        let budgets = self.rules.budgets.iter().zip(&mut self.tallies);
        for (budget, tally) in budgets.filter(|(budget, _)| is_response_of(&budget.subject, task)) {
            let is_long = took_ns > budget.limit.as_ns();
            tally.long_start_ups += u64::from(is_long);
            tally.unslept += u64::from(is_long && !slept);
        }
    }

    /// Waits of threads that have never slept are samples of their responses.
    pub(super) fn start_ups_end(&mut self) {
        for wait in self.start_ups.take() {
            for place in wait.budgets {
                let tally = &mut self.tallies[place];
                let limit_ns = self.rules.budgets[place].limit.as_ns();
                tally.enter(wait.since_ns, wait.end, limit_ns);
                tally.start_ups += 1;
                let (tid, name) = &wait.thread;
                tally.threads.entry(*tid).or_insert_with(|| name.clone());
            }
        }
    }
}
