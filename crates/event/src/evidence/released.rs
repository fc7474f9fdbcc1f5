//! A moment from which on a target was due, though its timer was served later: the target was busy,
//! or it had allowed that much slack.

use super::from_kernel::{FromKernel, Machine};
use super::raw::{self, mirror};
use super::record::{Place, label_part, record};
use super::task::TaskRef;
use crate::{Duration, Instant};

/// Why a target's timer was served after its release. The values are those of
/// `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReleaseKind {
    /// The target was still busy with the activation before: it armed the timer after its expiry.
    Overrun = 0,
    /// The timer may be late by its slack.
    Slack = 1,
}

impl ReleaseKind {
    /// All kinds, with the names that traces use, in the order of the values.
    pub const NAMES: [(ReleaseKind, &'static str); 2] = [
        (ReleaseKind::Overrun, "overrun"),
        (ReleaseKind::Slack, "slack"),
    ];

    /// From its value in a record.
    pub fn from_value(value: u8) -> Option<ReleaseKind> {
        Self::NAMES.get(usize::from(value)).map(|(kind, _)| *kind)
    }
}

label_part!(ReleaseKind);

/// A timer's slack that is worth a report by itself; the usual 50 us of fair tasks are not.
const SLACK_FLOOR_MIN: Duration = Duration::from_ms(1);

/// From which slack of its timer on a target is due before that, where it may take `threshold`.
pub fn slack_floor(threshold: Duration) -> Duration {
    Duration::from_ns(threshold.as_ns() / 2).max(SLACK_FLOOR_MIN)
}

record! {
    /// A target was due before its timer woke it. Its time is the wake-up.
    Released as "rtscope_released" {
        /// When it was due: the origin of its chain.
        release: Instant = "release_ns",
        /// Origin of its activation before; zero when unknown.
        previous: Instant = "previous_ns",
        /// The timer's slack; zero but for [`ReleaseKind::Slack`].
        slack: Duration = "slack_ns",
        /// The target.
        task: TaskRef = "",
        /// Why it was served later.
        why: ReleaseKind = "why",
    }
}

mirror! {
    /// What the kernel sends of it.
    Raw = "rts_released" {
        release_ns: u64,
        previous_ns: u64,
        slack_ns: u64,
        task: raw::Task,
        why: u8,
        padding: [u8; 7],
    }
}

impl FromKernel for Released {
    type Raw = Raw;

    fn from_kernel(place: Place, raw: &Raw, _: &Machine) -> Option<Released> {
        Some(Released {
            cpu: place.cpu,
            time: place.time,
            release: Instant::from_ns(raw.release_ns as i64),
            previous: Instant::from_ns(raw.previous_ns as i64),
            slack: Duration::from_ns(raw.slack_ns as i64),
            task: raw.task.named()?,
            why: ReleaseKind::from_value(raw.why)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_round_trip, place, task};
    use super::*;

    #[test]
    fn a_release_comes_back_from_its_trace() {
        for (why, _) in ReleaseKind::NAMES {
            check_round_trip(&Released {
                cpu: place().cpu,
                time: place().time,
                release: Instant::from_ns(20),
                previous: Instant::from_ns(1),
                slack: Duration::from_ns(30),
                task: task("target"),
                why,
            });
        }
    }
}
