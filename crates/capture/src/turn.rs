//! From one archive to the next while events come in: each reader gets streams that take over at
//! one instant, and says what the streams before got.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use ctf::writer::StreamWriter;
use event::Instant;
use ftrace::CpuStatistics;

use crate::channels::RingId;
use crate::kernel_ctf::CpuTotals;
use crate::progress::{Progress, Source};
use crate::syscalls::CallsSummary;

/// Streams that take over from those before.
pub(crate) struct Turn {
    /// What happens from here on is theirs.
    pub at: Instant,
    pub streams: Vec<(RingId, StreamWriter)>,
    /// Of the trace that they are part of.
    pub progress: (Arc<Progress>, Source),
}

/// What the streams before a turn got.
#[derive(Debug)]
pub(crate) enum Ended {
    Cpus(Vec<CpuTotals>),
    Calls(CallsSummary),
}

/// A reader's side of turns.
pub(crate) struct Turns<'f> {
    pub asked: Receiver<Turn>,
    pub ended: Sender<Ended>,
    /// Where it is noted how full rings are.
    pub fills: &'f Fills,
}

/// How full one ring is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fill {
    /// Bytes of events when it was looked at last, and at most.
    pub now_bytes: u64,
    pub most_bytes: u64,
    /// Events that were offered to it, and those of them that it lost.
    pub offered: u64,
    pub lost: u64,
}

/// How full the rings of all CPUs and channels are.
#[derive(Debug, Default)]
pub(crate) struct Fills {
    rings: Mutex<BTreeMap<RingId, Fill>>,
    /// Events of system calls so far, and those of them that were lost.
    calls: Mutex<(u64, u64)>,
}

impl Fills {
    pub fn note(&self, ring: RingId, counted: &CpuStatistics) {
        let mut fills = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let fill = fills.entry(ring).or_default();
        fill.now_bytes = counted.size_bytes;
        fill.most_bytes = fill.most_bytes.max(counted.size_bytes);
        fill.offered = counted.offered();
        fill.lost = counted.lost();
    }

    pub fn all(&self) -> BTreeMap<RingId, Fill> {
        let fills = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        fills.clone()
    }

    /// Takes note of all system calls so far, and of those that were lost.
    pub fn note_calls(&self, events: u64, lost: u64) {
        *self.calls.lock().unwrap_or_else(PoisonError::into_inner) = (events, lost);
    }

    pub fn calls(&self) -> (u64, u64) {
        *self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
