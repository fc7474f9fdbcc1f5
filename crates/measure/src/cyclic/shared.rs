//! What the threads of a measurement write, and what they all see.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use event::{Duration, Tid};
use host::clock::Clock;

use super::gate::Gate;
use super::mark::TraceMark;
use super::newest::Newest;
use super::phases::Splitter;
use super::plan::{Break, Reading, ThreadPlan};
use super::rests::Rests;
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
    pub(super) rests: Rests,
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
