//! Threads that a rule means by a name, and that are called otherwise later: what they do then is
//! no sample, and nobody may take it for in time.

use event::NamedTask;
use kernel_state::bind::{Bound, Known, Life};
use trace::EventView;

use super::{Checker, Subject};

impl Checker<'_> {
    /// A thread runs another program from here on: that is no other name of the same work.
    pub(super) fn runs_another(&mut self, bound: &Bound, event: &EventView<'_>) {
        if let Known::Life(Life::Exec(fields)) = &bound.known {
            let tid = fields.tid(event);
            for tally in &mut self.tallies {
                tally.worked.remove(&tid);
            }
        }
    }

    /// Something that rules of the subjects `is_about` are about lasted until now. Those that mean
    /// its thread know it from here on; those that meant it by another name count it.
    pub(super) fn named(
        &mut self,
        is_about: impl Fn(&Subject) -> bool,
        is_it: impl Fn(&Subject) -> bool,
        task: &NamedTask<'_>,
        begin_ns: i64,
    ) {
        if !self.counts() {
            return;
        }
        let (tid, length_ns) = (task.tid.0, self.now_ns - begin_ns);
        let budgets = self.rules.budgets.iter().zip(&mut self.tallies);
        for (budget, tally) in budgets.filter(|(budget, _)| is_about(&budget.subject)) {
            let name = || event::plain_text(task.comm);
            if is_it(&budget.subject) {
                tally.worked.entry(tid).or_insert_with(name);
            } else if length_ns > budget.limit.as_ns() {
                let was_it = tally.worked.get(&tid).is_some_and(|was| *was != name());
                tally.renamed += u64::from(was_it);
            }
        }
    }
}
