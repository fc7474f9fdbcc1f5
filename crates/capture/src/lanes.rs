//! The readers of a recording: each CPU's ring is emptied now and then and converted at once.
//!
//! They never sleep on the rings: a waiting reader would make the measured CPUs send wake-ups.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as StdInstant;

use event::Result;
use ftrace::{CpuStatistics, Instance, PagePipe};

use crate::clock;
use crate::kernel_ctf::{Before, CpuConverter, CpuTotals};
use crate::progress::{FLUSH_PERIOD, POLL_PERIOD, Progress, Source};

/// What became of one CPU's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuRecord {
    /// What was written.
    pub written: CpuTotals,
    /// What the kernel's ring counted.
    pub statistics: CpuStatistics,
}

impl CpuRecord {
    /// Whether the trace accounts for every event that the kernel offered: those written (or of no
    /// known format) are those read, those declared lost are those lost, and nothing is left.
    pub fn reconciles(&self) -> bool {
        let written = &self.written;
        written.events + written.unknown == self.statistics.read
            && written.discarded == self.statistics.lost()
            && self.statistics.entries == 0
    }
}

/// One CPU's way from its ring to its stream.
pub(crate) struct Lane<'a> {
    pipe: &'a mut PagePipe,
    converter: CpuConverter,
    page: Vec<u8>,
}

impl<'a> Lane<'a> {
    pub(crate) fn new(pipe: &'a mut PagePipe, converter: CpuConverter) -> Self {
        let page = vec![0; pipe.page_size_bytes()];
        Lane {
            pipe,
            converter,
            page,
        }
    }

    /// Empties the ring; gives up after `pages_max` so that one busy CPU does not starve others.
    /// False when it gave up.
    fn empty(&mut self, instance: &Instance, pages_max: usize) -> Result<bool> {
        // Before the first read: what was overwritten until now lies before what is read next.
        let overrun = instance.statistics(self.pipe.cpu())?.overrun;
        for _ in 0..pages_max {
            if !self.pipe.read_page(&mut self.page)? {
                return Ok(true);
            }
            let missed_min = overrun.saturating_sub(self.converter.discarded());
            self.converter
                .page(&self.page, Before::Running, missed_min)?;
        }
        Ok(false)
    }

    /// The last losses, and the end of the stream.
    fn finish(mut self, instance: &Instance) -> Result<CpuRecord> {
        let statistics = instance.statistics(self.pipe.cpu())?;
        self.converter.lost(statistics.lost())?;
        self.converter.covers(clock::monotonic())?;
        Ok(CpuRecord {
            written: self.converter.finish()?,
            statistics,
        })
    }
}

/// Deals the lanes out to at most `count` readers.
pub(crate) fn shares(lanes: Vec<Lane<'_>>, count: usize) -> Vec<Vec<Lane<'_>>> {
    let mut shares: Vec<Vec<_>> = (0..count.min(lanes.len())).map(|_| Vec::new()).collect();
    let share_count = shares.len().max(1);
    for (place, lane) in lanes.into_iter().enumerate() {
        shares[place % share_count].push(lane);
    }
    shares
}

/// Empties the lanes now and then until `drained` is raised, and then a last time.
pub(crate) fn read_lanes(
    mut lanes: Vec<Lane<'_>>,
    instance: &Instance,
    drained: &AtomicBool,
    (progress, source): (&Progress, Source),
) -> Result<Vec<CpuRecord>> {
    let mut flushed = StdInstant::now();
    loop {
        let last = drained.load(Ordering::Acquire);
        let (begin, begin_at) = (StdInstant::now(), clock::monotonic());
        let mut is_empty = true;
        for lane in &mut lanes {
            let pages_max = if last { usize::MAX } else { 4096 };
            is_empty &= lane.empty(instance, pages_max)?;
        }
        if is_empty && flushed.elapsed() >= FLUSH_PERIOD {
            flushed = StdInstant::now();
            for lane in &mut lanes {
                lane.converter.flush()?;
            }
            progress.reached(source, begin_at)?;
        }
        if last {
            return lanes
                .into_iter()
                .map(|lane| lane.finish(instance))
                .collect();
        }
        std::thread::sleep(POLL_PERIOD.saturating_sub(begin.elapsed()));
    }
}
