//! One measuring thread: how it becomes what it is to be, and its loop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use event::{Duration, Error, Result, Tid};

use super::{Break, Figures, Plan, Running, Shared, ThreadPlan};
use crate::histogram::Recorder;
use crate::task;

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
    });
    let offset_ns = plan.aligned.map_or(0, Duration::as_ns) * number as i64;
    let (ready, is_ready) = mpsc::channel();
    let (own_plan, own_figures, own_shared) = (one.clone(), figures.clone(), shared.clone());
    let body = move || {
        let prepared = prepare(&own_plan);
        let failed = prepared.is_err();
        if ready.send(prepared).is_err() || failed {
            return;
        }
        let begin_ns = wait_for_begin(&own_shared) + offset_ns;
        let interval_ns = own_plan.interval.as_ns();
        measure(number, begin_ns, interval_ns, &own_figures, &own_shared);
    };
    let thread = std::thread::Builder::new()
        .name(format!("rtscope-cyc{number}"))
        .spawn(body)
        .map_err(|error| Error::io("cannot start a measuring thread", error))?;
    let gone = |_| {
        Err(Error::io(
            "a measuring thread panicked",
            std::io::Error::other("start"),
        ))
    };
    match is_ready.recv().unwrap_or_else(gone) {
        Ok(tid) => Ok(Running {
            plan: one.clone(),
            tid,
            figures,
            thread,
        }),
        Err(error) => {
            thread.join().ok();
            Err(error)
        }
    }
}

fn prepare(plan: &ThreadPlan) -> Result<Tid> {
    // Signals are for the thread that reads.
    task::block_signals();
    if let Some(cpu) = plan.cpu {
        task::stay_on(cpu)?;
    }
    task::schedule(plan.policy)?;
    Ok(Tid(rustix::thread::gettid().as_raw_nonzero().get()))
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
