//! What the threads of a measurement write, and what they all see.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use event::{Duration, Instant, Tid};
use host::clock::Clock;

use super::gate::Gate;
use super::mark::TraceMark;
use super::measured::Measured;
use super::newest::Newest;
use super::phases::Splitter;
use super::plan::{Break, Reading, ThreadPlan};
use crate::histogram::Recorder;

#[derive(Debug)]
pub(super) struct Running {
    pub(super) plan: ThreadPlan,
    pub(super) tid: Tid,
    pub(super) figures: Arc<Figures>,
    pub(super) thread: JoinHandle<Option<()>>,
}

/// What one thread writes.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) latency: Recorder,
    pub(super) missed: AtomicU64,
    pub(super) unmeasured: AtomicU64,
    pub(super) lost_cpu: AtomicBool,
    /// Whether it waits at the gate, or has ended.
    pub(super) rests: AtomicBool,
    /// When it ended; 0 before.
    pub(super) ended_ns: AtomicI64,
    pub(super) phases: Option<Splitter>,
    pub(super) newest: Newest,
}

/// What all threads see.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Clock,
    pub(super) samples: Option<u64>,
    pub(super) break_over_ns: i64,
    pub(super) kept_over_ns: i64,
    pub(super) gate: Gate,
    pub(super) measured: Measured,
    pub(super) broken: OnceLock<Break>,
    pub(super) mark: Option<Arc<TraceMark>>,
}

impl Shared {
    /// A sample ends the measurement; only the first counts.
    pub(super) fn breaks(&self, thread: usize, sample: u64, latency: Duration) {
        self.broken.get_or_init(|| {
            if let Some(mark) = &self.mark {
                mark.hit(latency);
            }
            Break {
                thread,
                sample,
                latency,
            }
        });
        self.gate.close();
    }
}

impl Figures {
    /// When the last of all threads ended; none while one goes on.
    pub(super) fn ended<'a>(all: impl Iterator<Item = &'a Arc<Figures>>) -> Option<Instant> {
        let ended = |one: &Arc<Figures>| match one.ended_ns.load(Ordering::Acquire) {
            0 => None,
            ns => Some(Instant::from_ns(ns)),
        };
        let ended: Option<Vec<Instant>> = all.map(ended).collect();
        ended?.into_iter().max()
    }

    pub(super) fn read(&self, tid: Tid, plan: ThreadPlan) -> Reading {
        Reading {
            tid,
            plan,
            latency: self.latency.read(),
            missed: self.missed.load(Ordering::Relaxed),
            unmeasured: self.unmeasured.load(Ordering::Relaxed),
            lost_cpu: self.lost_cpu.load(Ordering::Relaxed),
            phases: self.phases.as_ref().map(Splitter::read),
        }
    }
}
