//! Counts of a watch, stretch by stretch: what a change does to them is all that is asked.

use std::time::{Duration as StdDuration, Instant as StdInstant};

use bpf_host::{HitRing, Statistics, Watch, WatchConfig};
use event::{Duration, Result};

use super::compare::Block;
use crate::signals::{self, Request};

/// How often somebody who wants it to end is heard.
const LOOK: StdDuration = StdDuration::from_millis(50);
const P99: f64 = 0.99;

/// A watch that counts, and reports nobody.
pub struct Counting {
    watch: Watch,
    ring: HitRing,
}

impl Counting {
    /// Of the same targets and threshold as `config`.
    ///
    /// # Errors
    /// As [`Watch::start`].
    pub fn start(config: WatchConfig) -> Result<Counting> {
        let config = WatchConfig {
            // What is late is counted all the same.
            new_worst_only: true,
            late_timer_floor: Duration::ZERO,
            waker_stacks: false,
            notes_late: false,
            waiting_after: None,
            max_hits: None,
            ..config
        };
        let (watch, ring) = Watch::start(&config)?;
        Ok(Counting { watch, ring })
    }

    /// What ends within the next `time`; none when somebody wants to end meanwhile.
    ///
    /// # Errors
    /// When the kernel refuses to be read.
    pub fn block(&mut self, time: StdDuration) -> Result<Option<Block>> {
        self.ring.take()?;
        let before = self.watch.statistics()?;
        if !rest(time) {
            return Ok(None);
        }
        let after = self.watch.statistics()?;
        let hits = self.ring.take()?.len() as u64;
        Ok(Some(difference(&before, &after, hits)))
    }
}

/// Waits so long; whether nobody wants to end.
pub fn rest(time: StdDuration) -> bool {
    let end = StdInstant::now() + time;
    while signals::request() == Request::GoOn {
        let left = end.saturating_duration_since(StdInstant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK));
    }
    false
}

fn difference(before: &Statistics, after: &Statistics, hits: u64) -> Block {
    let old: std::collections::HashMap<Duration, u64> = before
        .histogram
        .counts()
        .map(|(lower, _, count)| (lower, count))
        .collect();
    let new = after
        .histogram
        .counts()
        .filter_map(|(lower, upper, count)| {
            let count = count - old.get(&lower).copied().unwrap_or(0);
            (count > 0).then_some((upper, count))
        });
    let new: Vec<(Duration, u64)> = new.collect();
    let samples: u64 = new.iter().map(|(_, count)| count).sum();
    let rank = (P99 * samples as f64).ceil().max(1.0) as u64;
    let mut seen = 0;
    let p99 = new.iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    let held_back = (after.suppressed + after.lost) - (before.suppressed + before.lost);
    Block {
        samples,
        late: held_back + hits,
        p99: p99.map(|(upper, _)| *upper),
        worst: new.last().map(|(upper, _)| *upper),
    }
}
