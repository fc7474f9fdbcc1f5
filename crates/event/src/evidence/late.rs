//! A late activation that is told in short: the limits of a watch held its hit back.

use super::{EndKind, TaskRef};
use crate::{Duration, Instant};

/// A late activation without steps and stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateOne {
    /// What ended it.
    pub end_kind: EndKind,
    /// Where its latency begins.
    pub origin: Instant,
    /// When its task was scheduled in; none where that is not known.
    pub began: Option<Instant>,
    /// Where its latency ends.
    pub end: Instant,
    /// Whose it is.
    pub task: TaskRef,
    /// Who left the CPU when the task came on it; the idle task has tid 0. The task itself where it
    /// was still at work when it was due; none where it has not left the CPU since.
    pub culprit: Option<TaskRef>,
    /// How often a task of its chain was preempted.
    pub preemptions: u32,
}

impl LateOne {
    /// How long it took.
    pub fn latency(&self) -> Duration {
        self.end - self.origin
    }

    /// On which side of the switch-in most of it lies, and who left the CPU then. That is what is
    /// known without a snapshot: it accuses nobody.
    pub fn seen(&self) -> String {
        let Some(began) = self.began else {
            return "not told apart".to_owned();
        };
        let before = began - self.origin;
        let half = Duration::from_ns(self.latency().as_ns() / 2);
        let at_work = || "before this work, it was still at the last".to_owned();
        match &self.culprit {
            _ if before < half && self.preemptions > 0 => "after it ran, put off in it".to_owned(),
            _ if before < half => "after it ran".to_owned(),
            Some(culprit) if culprit.tid == self.task.tid => at_work(),
            Some(culprit) if !culprit.tid.is_idle() => {
                format!("before it ran, {} had the CPU last", culprit.comm)
            }
            Some(_) => "before it ran, the CPU was idle last".to_owned(),
            None => at_work(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prio, Tid};

    #[test]
    fn what_is_seen_of_it_says_on_which_side_of_the_switch_most_of_it_lies() {
        let task = |tid, comm: &str| TaskRef {
            tid: Tid(tid),
            comm: comm.to_owned(),
            prio: Prio::from_rt(1),
        };
        let check = |began_us: Option<i64>, culprit: i32, preemptions: u32, expect: &str| {
            let late = LateOne {
                end_kind: EndKind::Blocked,
                origin: Instant::from_ns(0),
                began: began_us.map(|us| Instant::from_ns(us * 1000)),
                end: Instant::from_ns(10_000_000),
                task: task(5, "loop"),
                culprit: (culprit >= 0).then(|| task(culprit, "hog")),
                preemptions,
            };
            assert_eq!(late.seen(), expect);
        };
        check(Some(10), 7, 0, "after it ran");
        check(Some(10), 7, 2, "after it ran, put off in it");
        check(Some(9000), 7, 0, "before it ran, hog had the CPU last");
        check(Some(9000), 0, 0, "before it ran, the CPU was idle last");
        // Its own timer expired while it was at work: the CPU was not idle until it slept.
        check(
            Some(9000),
            5,
            0,
            "before this work, it was still at the last",
        );
        // It was woken on its way to sleep, and did not leave the CPU.
        check(
            Some(9000),
            -1,
            0,
            "before this work, it was still at the last",
        );
        check(None, 7, 0, "not told apart");
    }
}
