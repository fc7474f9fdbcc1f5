//! How long activations of a task usually are: of the moments in which nobody said that anything
//! was late. What is no longer than that explains no miss.

use std::collections::{HashMap, VecDeque};

use event::evidence::Hit;
use event::{Duration, Instant, Tid, TimeRange};

/// The kernel begins anew after so long: a worse one of before hides none for longer.
pub const WINDOW: Duration = Duration::from_ms(20);
/// So many windows of each task are kept: of some ten seconds, if it is always at work.
const WINDOWS_MAX: usize = 512;
/// Fewer tell nothing.
const WINDOWS_MIN: usize = 4;
/// One of so many may be longer for another reason.
const ODD_ONE_OF: usize = 50;
/// So many moments are kept in which somebody called.
const CALLS_MAX: usize = 64;
/// So many tasks; whoever did nothing for longest gives way.
const TASKS_MAX: usize = 1_024;

/// The worst of a window, and when it ended.
#[derive(Clone, Copy, Debug)]
struct Worst {
    begin: Instant,
    end: Instant,
    latency: Duration,
}

/// What is known of all tasks.
#[derive(Debug, Default)]
pub(super) struct Usual {
    tasks: HashMap<Tid, VecDeque<Worst>>,
    called: VecDeque<TimeRange>,
}

impl Usual {
    /// This one ended. A task's first may be its start, and is left out.
    pub fn note(&mut self, hit: &Hit) {
        let (end, latency) = (hit.end, hit.latency());
        if self.tasks.len() >= TASKS_MAX && !self.tasks.contains_key(&hit.task.tid) {
            self.forget_one();
        }
        let Some(windows) = self.tasks.get_mut(&hit.task.tid) else {
            self.tasks.insert(hit.task.tid, VecDeque::new());
            return;
        };
        // The kernel sends each that is worse than those before in a window.
        match windows.back_mut().filter(|last| end < last.begin + WINDOW) {
            Some(last) if latency > last.latency => (last.end, last.latency) = (end, latency),
            Some(_) => {}
            None => windows.push_back(Worst {
                begin: end,
                end,
                latency,
            }),
        }
        while windows.len() > WINDOWS_MAX {
            windows.pop_front();
        }
    }

    fn forget_one(&mut self) {
        let newest = |windows: &VecDeque<Worst>| windows.back().map(|worst| worst.end);
        let oldest = self.tasks.iter().min_by_key(|(_, all)| newest(all));
        if let Some(tid) = oldest.map(|(tid, _)| *tid) {
            self.tasks.remove(&tid);
        }
    }

    /// In this time somebody said that something was late.
    pub fn called(&mut self, range: TimeRange) {
        match self.called.back_mut() {
            Some(last) if range.begin <= last.end => last.end = last.end.max(range.end),
            _ => self.called.push_back(range),
        }
        while self.called.len() > CALLS_MAX {
            self.called.pop_front();
        }
    }

    /// What is known of a task's quiet moments.
    pub fn of(&self, tid: Tid) -> Quiet {
        let is_quiet = |worst: &&Worst| {
            let mut called = self.called.iter();
            !called.any(|range| range.contains(worst.end))
        };
        let windows = self.tasks.get(&tid).into_iter().flatten();
        let quiet = windows.filter(is_quiet);
        let mut worst: Vec<_> = quiet.map(|worst| (worst.latency, worst.end)).collect();
        worst.sort_unstable();
        Quiet { worst }
    }
}

/// The worst of each quiet window of a task, the shortest first.
#[derive(Debug)]
pub(super) struct Quiet {
    worst: Vec<(Duration, Instant)>,
}

impl Quiet {
    /// How long they are at most, but for the one of `hit` itself; none where there were too few.
    pub fn most(&self, hit: &Hit) -> Option<Duration> {
        let others = self.worst.iter().filter(|(_, end)| *end != hit.end);
        let count = others.clone().count();
        let place = (count >= WINDOWS_MIN).then(|| count - 1 - count / ODD_ONE_OF)?;
        others.map(|(latency, _)| *latency).nth(place)
    }
}

#[cfg(test)]
pub(super) mod testing {
    use event::Prio;
    use event::evidence::{EndKind, Stack, TaskRef};

    use super::*;

    pub fn ms(at: i64) -> Instant {
        Instant::from_ns(at * 1_000_000)
    }

    /// One of `tid` (below 100: real-time) that ended at an instant, and how long it was.
    pub fn hit(tid: i32, end_ms: i64, latency_ms: i64) -> Hit {
        let prio = match tid {
            ..100 => Prio::from_rt(50),
            _ => Prio::from_lttng(20),
        };
        Hit {
            id: 77,
            end_kind: EndKind::Blocked,
            origin: ms(end_ms - latency_ms),
            end: ms(end_ms),
            threshold: Duration::from_us(10),
            task: TaskRef {
                tid: Tid(tid),
                comm: format!("task{tid}"),
                prio,
            },
            preemptions: 0,
            overflow: 0,
            stale: false,
            repaired: false,
            unseen: false,
            kin: Default::default(),
            ordinary: false,
            culprit: None,
            steps: vec![],
            cost: Duration::ZERO,
            waker_stack: Stack::new(),
            wakee_stack: Stack::new(),
            culprit_stack: Stack::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{hit, ms};
    use super::*;

    #[test]
    fn what_is_usual_is_the_worst_of_quiet_moments() {
        let mut usual = Usual::default();
        let of = |usual: &Usual| {
            let found = usual.of(Tid(7)).most(&hit(7, 4_990, 90));
            found.map(|latency| latency.as_ns() / 1_000_000)
        };
        // Its first one is its start.
        usual.note(&hit(7, 100, 50));
        for turn in 1..4 {
            usual.note(&hit(7, 100 + 50 * turn, 3));
        }
        assert_eq!(of(&usual), None, "three say little");
        usual.note(&hit(7, 300, 4));
        assert_eq!(of(&usual), Some(4));
        // The worse one of a window stands for it.
        usual.note(&hit(7, 305, 5));
        assert_eq!(of(&usual), Some(5));
        usual.note(&hit(7, 400, 30));
        usual.note(&hit(9, 420, 70));
        assert_eq!(of(&usual), Some(30));
        usual.called(TimeRange {
            begin: ms(350),
            end: ms(410),
        });
        assert_eq!(of(&usual), Some(5), "somebody called that late");
        // The one that is asked about is no measure of itself.
        usual.note(&hit(7, 4_990, 90));
        assert_eq!(of(&usual), Some(5));
    }
}
