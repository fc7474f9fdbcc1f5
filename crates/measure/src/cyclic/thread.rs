//! One measuring thread: how it becomes what it is to be, and its loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use event::{Duration, Result};

use super::measured::now;
use super::newest::Newest;
use super::phases::Splitter;
use super::plan::{Plan, ThreadPlan};
use super::shared::{Figures, Running, Shared};
use super::sleep::{Sleeper, Slept};
use crate::histogram::Recorder;
use crate::worker;
use host::clock::StepWatch;
use host::task;

/// Starts thread `number` and waits until it has its CPU and its priority.
pub(super) fn start(
    number: usize,
    one: &ThreadPlan,
    plan: &Plan,
    shared: &Arc<Shared>,
) -> Result<Running> {
    let figures = Arc::new(Figures {
        latency: Recorder::naming(plan.bucket, plan.buckets, plan.overflows_named),
        missed: AtomicU64::new(0),
        unmeasured: AtomicU64::new(0),
        lost_cpu: AtomicBool::new(false),
        rests: AtomicBool::new(false),
        ended_ns: AtomicI64::new(0),
        phases: plan
            .phases
            .as_ref()
            .map(|source| Splitter::new(number, source, plan.bucket, plan.buckets)),
        newest: Newest::new(plan.kept),
    });
    let sleep = plan.sleep;
    let offset_ns = plan.begin.apart.as_ns().saturating_mul(number as i64);
    let lead_ns = match plan.begin.with_interval {
        true => one.interval.as_ns(),
        false => 0,
    };
    let sampled_for_ns = plan.sampled_for.map_or(i64::MAX, Duration::as_ns);
    let (own_plan, own_figures, own_shared) = (one.clone(), figures.clone(), shared.clone());
    let body = move || {
        let mut sample = 0;
        while let Some(begin_ns) = wait(&own_shared, &own_figures) {
            let begin_ns = begin_ns.saturating_add(offset_ns);
            let (clock, interval) = (own_shared.clock, own_plan.interval);
            let first_ns = begin_ns.saturating_add(lead_ns);
            let from = From {
                thread: number,
                sample,
                at_ns: first_ns,
                sleeper: Sleeper::new(sleep, clock, interval, first_ns),
                until_ns: begin_ns.saturating_add(sampled_for_ns),
            };
            sample = measure(from, &own_plan, &own_figures, &own_shared);
            let done = own_shared.samples.is_some_and(|last| sample >= last);
            if done || own_figures.lost_cpu.load(Ordering::Relaxed) {
                break;
            }
        }
        own_figures.ended_ns.store(now().as_ns(), Ordering::Release);
        own_figures.rests.store(true, Ordering::SeqCst);
    };
    let ours = || format!("rtscope-cyc{number}");
    let name = plan.called.map_or_else(ours, str::to_owned);
    let (tid, thread) = worker::start(name, one.cpu, one.policy, body)?;
    if let Some(source) = &plan.phases
        && let Err(error) = source.follow(number, tid)
    {
        // It waits for the begin, and ends at once then.
        shared.gate.close();
        thread.thread().unpark();
        thread.join().ok();
        return Err(error);
    }
    Ok(Running {
        plan: one.clone(),
        tid,
        figures,
        thread,
    })
}

/// Waits until measuring begins, or goes on; none when it has ended.
fn wait(shared: &Shared, figures: &Figures) -> Option<i64> {
    figures.rests.store(true, Ordering::SeqCst);
    let begin_ns = shared.gate.wait();
    // Before it looks at the gate again, which may be shut by now.
    figures.rests.store(false, Ordering::SeqCst);
    begin_ns
}

/// Where a thread's loop begins.
struct From {
    /// Its number.
    thread: usize,
    /// That of its next sample.
    sample: u64,
    /// When that is due.
    at_ns: i64,
    /// How it sleeps until then.
    sleeper: Sleeper,
    /// The first sample from then on ends the measurement.
    until_ns: i64,
}

/// The loop, until the gate is shut, the samples are taken or the CPU is gone; gives the number of
/// the next sample. Nothing in it allocates, locks or calls the system, but for the sleep.
fn measure(from: From, plan: &ThreadPlan, figures: &Figures, shared: &Shared) -> u64 {
    let From {
        thread,
        mut sample,
        mut at_ns,
        mut sleeper,
        mut until_ns,
    } = from;
    let clock = shared.clock;
    let mut steps = clock.can_be_set().then(|| StepWatch::new(clock));
    let interval_ns = plan.interval.as_ns();
    let last = shared.samples.unwrap_or(u64::MAX);
    while sample < last && shared.gate.is_open() {
        let slept = sleeper.sleep(at_ns);
        let now_ns = clock.now_ns();
        if plan.cpu.is_some_and(|cpu| !task::is_on(cpu)) {
            figures.lost_cpu.store(true, Ordering::Relaxed);
            break;
        }
        let was_set = steps.as_mut().is_some_and(StepWatch::look);
        let Slept::Until(due_ns) = slept_unless(was_set, slept) else {
            increase(&figures.unmeasured, u64::from(was_set));
            let anew_ns = clock.now_ns();
            // It lasts as long as it was to, whatever the clock shows.
            until_ns = until_ns.saturating_add(anew_ns - at_ns);
            at_ns = anew_ns + interval_ns;
            sleeper.begin(at_ns);
            continue;
        };
        at_ns = due_ns;
        let latency_ns = now_ns - at_ns;
        figures.latency.add(latency_ns);
        if latency_ns > shared.kept_over_ns {
            figures.newest.add(latency_ns, now_ns);
        }
        if let Some(phases) = &figures.phases {
            phases.add(at_ns, now_ns);
        }
        if latency_ns > shared.break_over_ns {
            shared.breaks(thread, sample, Duration::from_ns(latency_ns));
        }
        if now_ns >= until_ns {
            shared.gate.close();
        }
        sample += 1;
        at_ns += interval_ns;
        if at_ns <= now_ns && sleeper.has_instants() {
            let missed = (now_ns - at_ns) / interval_ns + 1;
            increase(&figures.missed, missed as u64);
            at_ns += missed * interval_ns;
        }
    }
    sample
}

/// A sleep over which the clock was set is none.
fn slept_unless(was_set: bool, slept: Slept) -> Slept {
    match was_set {
        true => Slept::Nudged,
        false => slept,
    }
}

/// Only the owner writes: a load and a store.
fn increase(counter: &AtomicU64, by: u64) {
    let before = counter.load(Ordering::Relaxed);
    counter.store(before + by, Ordering::Relaxed);
}
