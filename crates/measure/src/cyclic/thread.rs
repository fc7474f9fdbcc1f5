//! One measuring thread: how it becomes what it is to be, and its loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use event::{Duration, Result};

use super::phases::Splitter;
use super::{Break, Figures, Plan, Running, Shared, ThreadPlan};
use crate::histogram::Recorder;
use crate::worker;

/// Starts thread `number` and waits until it has its CPU and its priority.
pub(super) fn start(
    number: usize,
    one: &ThreadPlan,
    plan: &Plan,
    shared: &Arc<Shared>,
) -> Result<Running> {
    let figures = Arc::new(Figures {
        latency: Recorder::new(plan.bucket, plan.buckets),
        missed: AtomicU64::new(0),
        phases: plan
            .phases
            .as_ref()
            .map(|source| Splitter::new(number, source, plan.bucket, plan.buckets)),
    });
    let offset_ns = plan.aligned.map_or(0, Duration::as_ns) * number as i64;
    let (own_plan, own_figures, own_shared) = (one.clone(), figures.clone(), shared.clone());
    let body = move || {
        let begin_ns = wait_for_begin(&own_shared) + offset_ns;
        let interval_ns = own_plan.interval.as_ns();
        measure(number, begin_ns, interval_ns, &own_figures, &own_shared);
    };
    let name = format!("rtscope-cyc{number}");
    let (tid, thread) = worker::start(name, one.cpu, one.policy, body)?;
    if let Some(source) = &plan.phases
        && let Err(error) = source.follow(number, tid)
    {
        // It waits for the begin, and ends at once then.
        shared.stop.store(true, Ordering::Relaxed);
        shared.begin_ns.get_or_init(|| 0);
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

fn wait_for_begin(shared: &Shared) -> i64 {
    loop {
        if let Some(begin_ns) = shared.begin_ns.get() {
            return *begin_ns;
        }
        std::thread::park();
    }
}

/// The loop. Nothing in it allocates, locks or calls the system, but for the sleep.
fn measure(number: usize, begin_ns: i64, interval_ns: i64, figures: &Figures, shared: &Shared) {
    let clock = shared.clock;
    let last = shared.samples.unwrap_or(u64::MAX);
    let mut at_ns = begin_ns;
    let mut sample = 0;
    while sample < last && !shared.stop.load(Ordering::Relaxed) {
        clock.sleep_until(at_ns);
        let now_ns = clock.now_ns();
        let latency_ns = now_ns - at_ns;
        figures.latency.add(latency_ns);
        if let Some(phases) = &figures.phases {
            phases.add(at_ns, now_ns);
        }
        if latency_ns > shared.break_over_ns {
            shared.broken.get_or_init(|| Break {
                thread: number,
                sample,
                latency: Duration::from_ns(latency_ns),
            });
            shared.stop.store(true, Ordering::Relaxed);
        }
        sample += 1;
        at_ns += interval_ns;
        if at_ns <= now_ns {
            let missed = (now_ns - at_ns) / interval_ns + 1;
            let before = figures.missed.load(Ordering::Relaxed);
            let missed_all = before + missed as u64;
            figures.missed.store(missed_all, Ordering::Relaxed);
            at_ns += missed * interval_ns;
        }
    }
}
