//! One looking thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use event::{Cpu, Duration, Instant, Tid, TimeRange};

use super::{Plan, Reading};
use crate::counter::{Counter, Line, Pair};
use host::clock::Clock;
use host::task;

/// How long the counter is held against the clock before the first window.
const CALIBRATION_NS: i64 = 10_000_000;
/// Readings between two looks at whether to stop. Their mean step is the resolution: single steps
/// are no measure of it, as a processor's counter may stand still for longer than a reading takes
/// and then tells one reading from the next by a count that is no time.
const BATCH: u64 = 1024;

pub(super) struct Looker {
    cpu: Cpu,
    plan: Plan,
    stop: Arc<AtomicBool>,
}

/// A gap in counts.
struct Raw {
    begin: i64,
    end: i64,
}

/// What one window found, in counts.
struct Window {
    begin: Pair,
    end: Pair,
    /// Of the fastest readings in a row, [`BATCH`] of them.
    batch_min: Option<i64>,
    longest: i64,
    unkept: u64,
    /// Whether it ended because the CPU was taken from the thread.
    lost_cpu: bool,
}

impl Looker {
    pub(super) fn new(cpu: Cpu, plan: &Plan, stop: &Arc<AtomicBool>) -> Looker {
        Looker {
            cpu,
            plan: plan.clone(),
            stop: stop.clone(),
        }
    }

    /// On its CPU and at its priority already.
    pub(super) fn look(self) -> Reading {
        let mut reading = Reading {
            cpu: self.cpu,
            tid: Tid(rustix::thread::gettid().as_raw_nonzero().get()),
            iterations: 0,
            looped: Duration::ZERO,
            step_min: Duration::MAX,
            gaps: Vec::with_capacity(self.plan.gaps_max),
            gaps_unkept: 0,
            longest: Duration::ZERO,
            lost_cpu: false,
        };
        let mut raw = Vec::with_capacity(self.plan.gaps_max);
        let Some(rough) = calibrate(self.plan.counter) else {
            return reading;
        };
        let mut begin_ns = Clock::Monotonic.now_ns();
        while !self.stop.load(Ordering::Relaxed) {
            let room = self.plan.gaps_max - reading.gaps.len();
            let window = self.window(rough, &mut raw, room, &mut reading.iterations);
            add(&mut reading, &window, &mut raw);
            if window.lost_cpu {
                reading.lost_cpu = true;
                break;
            }
            begin_ns += self.plan.window.as_ns();
            Clock::Monotonic.sleep_until(begin_ns);
        }
        reading
    }

    /// Reads the counter for the width of a window. Nothing here calls the system or allocates. A
    /// batch that did not end where it is to be is none: it holds the way to another CPU.
    fn window(&self, line: Line, raw: &mut Vec<Raw>, room: usize, iterations: &mut u64) -> Window {
        let counter = self.plan.counter;
        let threshold = line.counts(self.plan.threshold.as_ns());
        let begin = counter.pair();
        let last_count = begin.counter + line.counts(self.plan.width.as_ns());
        let (mut batch_min, mut longest, mut unkept) = (None::<i64>, 0, 0);
        let mut last = counter.read();
        let mut lost_cpu = !task::is_on(self.cpu);
        while last < last_count && !lost_cpu && !self.stop.load(Ordering::Relaxed) {
            let batch_begin = last;
            let before = (raw.len(), longest, unkept);
            for _ in 0..BATCH {
                let now = counter.read();
                let step = now - last;
                if step > threshold {
                    longest = longest.max(step);
                    if raw.len() < room {
                        raw.push(Raw {
                            begin: last,
                            end: now,
                        });
                    } else {
                        unkept += 1;
                    }
                }
                last = now;
            }
            lost_cpu = !task::is_on(self.cpu);
            if lost_cpu {
                raw.truncate(before.0);
                (longest, unkept) = (before.1, before.2);
                break;
            }
            let batch = last - batch_begin;
            batch_min = Some(batch_min.map_or(batch, |shortest| shortest.min(batch)));
            *iterations += BATCH;
        }
        Window {
            begin,
            end: counter.pair(),
            batch_min,
            longest,
            unkept,
            lost_cpu,
        }
    }
}

/// How fast the counter goes, roughly: each window has a line of its own for its instants.
fn calibrate(counter: Counter) -> Option<Line> {
    let begin = counter.pair();
    Clock::Monotonic.sleep_until(begin.monotonic_ns + CALIBRATION_NS);
    Line::through(begin, counter.pair())
}

fn add(reading: &mut Reading, window: &Window, raw: &mut Vec<Raw>) {
    let Some(line) = Line::through(window.begin, window.end) else {
        raw.clear();
        return;
    };
    let ns = |counts: i64| line.to_ns(window.begin.counter + counts) - window.begin.monotonic_ns;
    reading.looped = Duration::from_ns(
        reading.looped.as_ns() + window.end.monotonic_ns - window.begin.monotonic_ns,
    );
    if let Some(batch_min) = window.batch_min {
        let step = Duration::from_ns(ns(batch_min) / BATCH.cast_signed());
        reading.step_min = reading.step_min.min(step);
    }
    reading.longest = reading.longest.max(Duration::from_ns(ns(window.longest)));
    reading.gaps_unkept += window.unkept;
    let instant = |counter| Instant::from_ns(line.to_ns(counter));
    reading.gaps.extend(raw.drain(..).map(|gap| TimeRange {
        begin: instant(gap.begin),
        end: instant(gap.end),
    }));
}
