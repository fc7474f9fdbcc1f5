//! From a stream's ticks to nanoseconds of the trace's base clock.

use super::layout::StreamLayout;
use super::schema::{ClockInfo, Schema};

/// The clock of one stream class beside the trace's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeScale<'a> {
    /// None when a tick is a nanosecond.
    clock: Option<&'a ClockInfo>,
    shift_ns: i64,
    /// Whether the stream has a clock; without one its times mean nothing.
    pub known: bool,
}

impl<'a> TimeScale<'a> {
    /// Before any packet is open.
    pub const NONE: TimeScale<'static> = TimeScale {
        clock: None,
        shift_ns: 0,
        known: false,
    };

    pub fn new(schema: &'a Schema, layout: &StreamLayout) -> TimeScale<'a> {
        let clock = layout
            .clock
            .and_then(|place| schema.clocks.get(place as usize));
        let (Some(clock), Some(base)) = (clock, schema.base_clock()) else {
            return TimeScale::NONE;
        };
        let shift_ns = clock.wall_offset_ns().saturating_sub(base.wall_offset_ns());
        let nanoseconds = clock.frequency_hz == 1_000_000_000;
        TimeScale {
            clock: (!nanoseconds).then_some(clock),
            shift_ns,
            known: true,
        }
    }

    #[inline]
    pub fn ns(&self, ticks: u64) -> i64 {
        let ns = match self.clock {
            None => i64::try_from(ticks).unwrap_or(i64::MAX),
            Some(clock) => clock.ns(ticks.into()),
        };
        ns.saturating_add(self.shift_ns)
    }
}
