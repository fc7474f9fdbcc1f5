//! Since when activations are late that others handed on: a response begins where `diagnose` says
//! that it does.

use std::collections::{HashMap, VecDeque};

use diagnosis::{Origin, TaskFilter, origins};
use event::{Duration, Instant, Result, TaskPattern};
use trace::Trace;

use super::rules::{Rules, Subject};

/// The origins of activations, of each thread in the order in which they ended.
#[derive(Debug, Default)]
pub(super) struct Begun {
    threads: HashMap<i32, VecDeque<Origin>>,
}

/// Since when an activation lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Since {
    pub begin_ns: i64,
    /// Since when it seems to: had the task that had the CPU woken its thread, which nobody knows.
    seems_ns: i64,
}

impl Since {
    pub fn known(begin_ns: i64) -> Since {
        Since {
            begin_ns,
            seems_ns: begin_ns,
        }
    }

    /// Whether it is over the limit only if that task did.
    pub fn may_be_over(self, end_ns: i64, limit_ns: i64) -> bool {
        let is_over = |begin_ns: i64| end_ns - begin_ns > limit_ns;
        is_over(self.seems_ns) && !is_over(self.begin_ns)
    }
}

impl Begun {
    /// What is needed to judge `rules` over what ends before `until`.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn of(trace: &Trace, rules: &Rules, until: Instant) -> Result<Begun> {
        let mut tasks: Vec<TaskPattern> = Vec::new();
        let mut limit: Option<Duration> = None;
        for budget in &rules.budgets {
            if let Subject::Response(task) = &budget.subject {
                tasks.push(task.clone());
                limit = Some(limit.map_or(budget.limit, |limit| limit.min(budget.limit)));
            }
        }
        let mut begun = Begun::default();
        let Some(limit) = limit else { return Ok(begun) };
        let tasks = TaskFilter::default().or(tasks);
        for origin in origins(trace, tasks, limit, until)? {
            let thread = begun.threads.entry(origin.tid.0).or_default();
            thread.push_back(origin);
        }
        Ok(begun)
    }

    /// Since when the activation of a thread lasted that is over at `end_ns`, and that its
    /// wake-up, or the timer behind it, began at `begin_ns`. What ended before is not asked for any
    /// more.
    pub fn since(&mut self, tid: i32, (begin_ns, end_ns): (i64, i64)) -> Since {
        let known = Since::known(begin_ns);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return known;
        };
        while let Some(first) = thread.front().copied() {
            if first.end.as_ns() > end_ns {
                break;
            }
            thread.pop_front();
            if first.end.as_ns() == end_ns {
                return Since {
                    begin_ns: begin_ns.min(first.begin.as_ns()),
                    seems_ns: begin_ns.min(first.seems.as_ns()),
                };
            }
        }
        known
    }
}
