//! The readers of a recording: each CPU's ring is emptied now and then and converted at once.
//!
//! They never sleep on the rings: a waiting reader would make the measured CPUs send wake-ups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as StdInstant;

use event::{Instant, Result};
use ftrace::{CpuStatistics, Page};

use crate::channels::{Ring, RingId};
use crate::clock;
use crate::kernel_ctf::{Before, CpuConverter, CpuTotals};
use crate::progress::{POLL_PERIOD, Progress, Source};
use crate::turn::{Ended, Turns};

/// What the kernel's counting rounds off.
const MICROSECOND: u64 = 1000;

/// What became of one CPU's events, in one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuRecord {
    /// Which of the channels.
    pub channel: usize,
    /// What was written.
    pub written: CpuTotals,
    /// What the kernel's ring counted.
    pub statistics: CpuStatistics,
}

impl CpuRecord {
    /// Whether the trace accounts for every event that the kernel offered: those written (or of no
    /// known format, or beside others as their call stacks) are those read, those declared lost are
    /// those lost, and nothing is left.
    pub fn reconciles(&self) -> bool {
        let written = &self.written;
        written.events + written.unknown + written.stacks == self.statistics.read
            && written.discarded == self.statistics.lost()
            && self.statistics.entries == 0
    }
}

/// One CPU's way from its ring to its stream.
pub(crate) struct Lane<'a> {
    ring: Ring<'a>,
    converter: CpuConverter,
    page: Vec<u8>,
    /// What the ring counted when it was emptied last.
    statistics: CpuStatistics,
}

impl<'a> Lane<'a> {
    pub(crate) fn new(ring: Ring<'a>, converter: CpuConverter) -> Self {
        let page = vec![0; ring.pipe.page_size_bytes()];
        Lane {
            ring,
            converter,
            page,
            statistics: CpuStatistics::default(),
        }
    }

    /// Whose ring it is.
    pub(crate) fn id(&self) -> RingId {
        self.ring.id
    }

    fn count(&self) -> Result<CpuStatistics> {
        self.ring.instance.statistics(self.ring.id.cpu)
    }

    /// Empties the ring; gives up after `pages_max` so that one busy CPU does not starve others.
    /// False when it gave up.
    fn empty(&mut self, pages_max: usize) -> Result<bool> {
        // Before the first read: what was overwritten until now lies before what is read next.
        self.statistics = self.count()?;
        // The kernel's own word: between two of ours the ring may have become full.
        let counted_ns = self.statistics.counted_ns;
        let overrun = self.statistics.overrun;
        for _ in 0..pages_max {
            if !self.ring.pipe.read_page(&mut self.page)? {
                self.say_refused(true)?;
                return Ok(true);
            }
            let page = Page::parse(&self.converter.layout(), &self.page);
            let is_later =
                |page: Page| counted_ns.is_some_and(|ns| page.time_ns > ns + MICROSECOND);
            self.say_refused(page.is_ok_and(is_later))?;
            // Behind the page: all that was read at its events is in the ring.
            if let Some(contexts) = &mut self.ring.contexts {
                let (moments, bytes) = (self.converter.moments(), contexts.record_bytes());
                contexts.take(|records, is_full| moments.add(records, bytes, is_full))?;
            }
            let missed_min = overrun.saturating_sub(self.converter.discarded());
            self.converter
                .page(&self.page, Before::Running, missed_min)?;
        }
        Ok(false)
    }

    /// Says what a full ring has refused: that lies behind all that was in it when it was counted,
    /// and before a page that `is_later`, or, where none came, what comes next.
    fn say_refused(&mut self, is_later: bool) -> Result<()> {
        let is_news = self.statistics.lost() > self.converter.discarded();
        match self.ring.refuses && is_news && is_later {
            true => self.converter.lost(self.statistics.lost()),
            false => Ok(()),
        }
    }

    /// The last losses, and the end of the stream.
    fn finish(mut self) -> Result<CpuRecord> {
        let statistics = self.count()?;
        self.converter.lost(statistics.lost())?;
        self.converter.covers(clock::monotonic())?;
        Ok(CpuRecord {
            channel: self.ring.id.channel,
            written: self.converter.finish()?,
            statistics,
        })
    }
}

/// Deals the lanes out to at most `count` readers.
pub(crate) fn shares<T>(lanes: Vec<T>, count: usize) -> Vec<Vec<T>> {
    let mut shares: Vec<Vec<_>> = (0..count.min(lanes.len())).map(|_| Vec::new()).collect();
    let share_count = shares.len().max(1);
    for (place, lane) in lanes.into_iter().enumerate() {
        shares[place % share_count].push(lane);
    }
    shares
}

/// A reader of some lanes, and who is told how far it is.
pub(crate) struct Reader<'a> {
    lanes: Vec<Lane<'a>>,
    progress: (Arc<Progress>, Source),
    flushed: StdInstant,
    /// Where streams come from that take over; the progress that is told from then on.
    turns: Option<Turns<'a>>,
    turning: Option<(Instant, (Arc<Progress>, Source))>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(lanes: Vec<Lane<'a>>, progress: (Arc<Progress>, Source)) -> Self {
        Reader {
            lanes,
            progress,
            flushed: StdInstant::now(),
            turns: None,
            turning: None,
        }
    }

    /// Takes streams that are to take over from `turns`, and notes there how full rings were.
    pub(crate) fn turning(mut self, turns: Turns<'a>) -> Self {
        self.turns = Some(turns);
        self
    }

    /// Empties the lanes now and then until `drained` is raised, and then a last time.
    pub(crate) fn read(mut self, drained: &AtomicBool) -> Result<Vec<CpuRecord>> {
        loop {
            let last = drained.load(Ordering::Acquire);
            self.take_turn();
            let (begin, begin_at) = (StdInstant::now(), clock::monotonic());
            let pages_max = if last { usize::MAX } else { 4096 };
            let mut is_empty = true;
            for lane in &mut self.lanes {
                let lane_is_empty = lane.empty(pages_max)?;
                is_empty &= lane_is_empty;
                if let Some(turns) = &self.turns {
                    turns.fills.note(lane.id(), &lane.statistics);
                }
            }
            self.end_turn(is_empty, begin_at)?;
            let mut is_settled = is_empty;
            let lanes = self.lanes.iter_mut();
            for lane in lanes.take_while(|_| is_empty) {
                // What waits now is written at the next look.
                is_settled &= lane.converter.settle()?;
            }
            if is_settled && self.flushed.elapsed() >= self.progress.0.flush_period() {
                self.flushed = StdInstant::now();
                for lane in &mut self.lanes {
                    lane.converter.flush()?;
                }
                self.progress.0.reached(self.progress.1, begin_at)?;
            }
            if last {
                return self.lanes.into_iter().map(Lane::finish).collect();
            }
            std::thread::sleep(POLL_PERIOD.saturating_sub(begin.elapsed()));
        }
    }

    /// Takes the streams of a turn, if there is one.
    fn take_turn(&mut self) {
        let turn = self
            .turns
            .as_ref()
            .and_then(|turns| turns.asked.try_recv().ok());
        let Some(mut turn) = turn else { return };
        for lane in &mut self.lanes {
            let mut streams = turn.streams.iter();
            let own = streams.position(|(ring, _)| *ring == lane.id());
            if let Some(place) = own {
                lane.converter
                    .turn_to(turn.at, turn.streams.swap_remove(place).1);
            }
        }
        self.turning = Some((turn.at, turn.progress));
    }

    /// Ends the turn when all of before it was read.
    fn end_turn(&mut self, is_empty: bool, begin_at: Instant) -> Result<()> {
        let Some((at, _)) = &self.turning else {
            return Ok(());
        };
        let is_read = is_empty && begin_at >= *at;
        let mut waiting = self.lanes.iter().map(|lane| &lane.converter);
        if !is_read && waiting.any(CpuConverter::waits_for_turn) {
            return Ok(());
        }
        let mut ended = Vec::new();
        for lane in &mut self.lanes {
            ended.extend(lane.converter.turned()?);
        }
        self.progress.0.over(self.progress.1)?;
        if let Some((_, progress)) = self.turning.take() {
            self.progress = progress;
        }
        if let Some(turns) = &self.turns {
            // Whoever asked may have given up, and then the recording ends.
            let _ = turns.ended.send(Ended::Cpus(ended));
        }
        Ok(())
    }
}
