//! Tasks with a runtime, a deadline and a period of their own (SCHED_DEADLINE): does each begin at
//! its release, and is its work done by its deadline?
//!
//! # Design constraints
//! - Between two looks at whether it is over a task sleeps, reads clocks and works; it allocates
//!   nothing and takes no lock.
//! - A release that has passed when the work before is done is skipped and counted, not made up
//!   for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;

use event::{Duration, Error, ErrorKind, Result, Tid};
use host::clock::Clock;
use host::task::{self, Policy};

use crate::histogram::{Histogram, Recorder};
use crate::worker;

/// From the last task's readiness to the first release.
const LEAD_NS: i64 = 20_000_000;
/// A release is looked for at most so long after the end.
const END_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);

/// One task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPlan {
    /// CPU time that it may take in each period.
    pub runtime: Duration,
    /// From its release to when that has to be done.
    pub deadline: Duration,
    /// From one release to the next.
    pub period: Duration,
    /// CPU time that it takes; less than the runtime, from which the kernel takes its own share.
    pub work: Duration,
}

/// What to try.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tasks; they run wherever the scheduler puts them.
    pub tasks: Vec<TaskPlan>,
    /// The width of a histogram's bucket.
    pub bucket: Duration,
    /// How many buckets there are.
    pub buckets: usize,
}

/// What a task found.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The task, as the kernel calls it.
    pub tid: Tid,
    /// What it was.
    pub plan: TaskPlan,
    /// From each release to its first instruction.
    pub wakeup: Histogram,
    /// From each release to the end of its work.
    pub response: Histogram,
    /// How often that was after its deadline.
    pub missed: u64,
    /// Releases that had passed when the work before was done.
    pub skipped: u64,
    /// By how much the worst was late, and when that was, in nanoseconds since 1970.
    pub worst_miss: Option<(Duration, i64)>,
}

#[derive(Debug)]
struct Figures {
    wakeup: Recorder,
    response: Recorder,
    missed: AtomicU64,
    skipped: AtomicU64,
    worst_ns: AtomicI64,
    worst_at_ns: AtomicI64,
}

#[derive(Debug)]
struct Shared {
    /// The first release; zero until everybody is ready.
    begin_ns: AtomicI64,
    over: AtomicBool,
}

#[derive(Debug)]
struct Running {
    plan: TaskPlan,
    tid: Tid,
    figures: Arc<Figures>,
    thread: JoinHandle<Option<()>>,
}

/// Tasks that run.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    tasks: Vec<Running>,
}

impl Run {
    /// Starts all tasks; their first release is the same instant.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for times that the kernel takes from nobody; else what it
    /// refuses, as more tasks than fit.
    pub fn start(plan: &Plan) -> Result<Run> {
        plan.tasks.iter().try_for_each(check)?;
        let shared = Arc::new(Shared {
            begin_ns: AtomicI64::new(0),
            over: AtomicBool::new(false),
        });
        let mut run = Run {
            shared,
            tasks: Vec::with_capacity(plan.tasks.len()),
        };
        for (number, one) in plan.tasks.iter().enumerate() {
            let running = start(number, *one, plan, &run.shared)?;
            run.tasks.push(running);
        }
        let begin_ns = Clock::Monotonic.now_ns() + LEAD_NS;
        run.shared.begin_ns.store(begin_ns, Ordering::Release);
        run.tasks
            .iter()
            .for_each(|one| one.thread.thread().unpark());
        Ok(run)
    }

    /// What every task has found so far; it does not notice.
    pub fn read(&self) -> Vec<Reading> {
        self.tasks.iter().map(Running::read).collect()
    }

    /// Ends all tasks, each after its present period, and gives what they found.
    pub fn finish(mut self) -> Vec<Reading> {
        self.end();
        let tasks = std::mem::take(&mut self.tasks);
        tasks.iter().map(Running::read).collect()
    }

    fn end(&self) {
        self.shared.over.store(true, Ordering::Release);
        let ended = |one: &Running| {
            one.thread.thread().unpark();
            one.thread.is_finished()
        };
        while !self.tasks.iter().all(ended) {
            std::thread::sleep(END_INTERVAL);
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    fn read(&self) -> Reading {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let figures = &self.figures;
        let worst = Duration::from_ns(figures.worst_ns.load(Ordering::Relaxed));
        let at_ns = figures.worst_at_ns.load(Ordering::Relaxed);
        Reading {
            tid: self.tid,
            plan: self.plan,
            wakeup: figures.wakeup.read(),
            response: figures.response.read(),
            missed: of(&figures.missed),
            skipped: of(&figures.skipped),
            worst_miss: (worst > Duration::ZERO).then_some((worst, at_ns)),
        }
    }
}

/// As sched(7) has it.
fn check(task: &TaskPlan) -> Result<()> {
    let &TaskPlan {
        runtime,
        deadline,
        period,
        work,
    } = task;
    let refuse = |what: &str, fix: &str| {
        let found = format!("runtime {runtime}, deadline {deadline}, period {period}, work {work}");
        Err(Error::new(ErrorKind::InvalidInput, what)
            .found(found)
            .fix(fix))
    };
    if !(runtime <= deadline && deadline <= period) {
        let what = "a runtime ends before its deadline, and that with its period at the latest";
        return refuse(
            what,
            "RUNTIME:DEADLINE:PERIOD, none shorter than the one before",
        );
    }
    if work >= runtime || work <= Duration::ZERO {
        let what = "work that takes the whole runtime is put off to the next period";
        return refuse(what, "choose less --work than the runtime");
    }
    Clock::Monotonic.check_interval(period)
}

fn start(number: usize, one: TaskPlan, plan: &Plan, shared: &Arc<Shared>) -> Result<Running> {
    let figures = Arc::new(Figures {
        wakeup: Recorder::new(plan.bucket, plan.buckets),
        response: Recorder::new(plan.bucket, plan.buckets),
        missed: AtomicU64::new(0),
        skipped: AtomicU64::new(0),
        worst_ns: AtomicI64::new(0),
        worst_at_ns: AtomicI64::new(0),
    });
    let (own_shared, own_figures) = (shared.clone(), figures.clone());
    let policy = Policy::Deadline {
        runtime: one.runtime,
        deadline: one.deadline,
        period: one.period,
    };
    let name = format!("rtscope-dl{number}");
    let (tid, thread) = worker::start(name, None, policy, move || {
        work(&own_shared, &own_figures, one);
    })?;
    Ok(Running {
        plan: one,
        tid,
        figures,
        thread,
    })
}

fn work(shared: &Shared, figures: &Figures, plan: TaskPlan) {
    let clock = Clock::Monotonic;
    let is_over = || shared.over.load(Ordering::Acquire);
    let begin_ns = loop {
        match shared.begin_ns.load(Ordering::Acquire) {
            0 if is_over() => return,
            0 => std::thread::park(),
            begin_ns => break begin_ns,
        }
    };
    let (deadline_ns, period_ns) = (plan.deadline.as_ns(), plan.period.as_ns());
    let mut at_ns = begin_ns;
    while !is_over() {
        clock.sleep_until(at_ns);
        figures.wakeup.add(clock.now_ns() - at_ns);
        let done_ns = task::thread_cpu_ns() + plan.work.as_ns_unsigned();
        while task::thread_cpu_ns() < done_ns {
            std::hint::spin_loop();
        }
        let end_ns = clock.now_ns();
        let response_ns = end_ns - at_ns;
        figures.response.add(response_ns);
        if response_ns > deadline_ns {
            miss(figures, response_ns - deadline_ns);
        }
        at_ns += period_ns;
        if at_ns <= end_ns {
            let skipped = (end_ns - at_ns) / period_ns + 1;
            increase(&figures.skipped, skipped.cast_unsigned());
            at_ns += skipped * period_ns;
        }
    }
}

fn miss(figures: &Figures, late_ns: i64) {
    increase(&figures.missed, 1);
    if late_ns > figures.worst_ns.load(Ordering::Relaxed) {
        figures.worst_ns.store(late_ns, Ordering::Relaxed);
        let wall_ns = Clock::Realtime.now_ns();
        figures.worst_at_ns.store(wall_ns, Ordering::Relaxed);
    }
}

/// Only the owner writes: a load and a store.
fn increase(counter: &AtomicU64, by: u64) {
    let before = counter.load(Ordering::Relaxed);
    counter.store(before + by, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_lies_between_runtime_and_period_and_the_work_is_less_than_the_runtime() {
        let check = |us: [i64; 4], expect: bool| {
            let [runtime, deadline, period, work] = us.map(Duration::from_us);
            let plan = TaskPlan {
                runtime,
                deadline,
                period,
                work,
            };
            assert_eq!(check(&plan).is_ok(), expect, "{plan:?}");
        };
        check([100, 500, 1_000, 50], true);
        check([100, 100, 1_000, 50], true);
        check([100, 1_000, 1_000, 99], true);
        check([600, 500, 1_000, 50], false);
        check([100, 2_000, 1_000, 50], false);
        check([100, 500, 1_000, 100], false);
        check([100, 500, 1_000, 0], false);
    }
}
