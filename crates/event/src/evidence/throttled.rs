//! A target that the quota of its control group keeps from running.

use super::from_kernel::{FromKernel, Machine};
use super::raw::{self, mirror};
use super::record::{Place, record};
use super::task::TaskRef;
use crate::{Duration, Instant};

record! {
    /// A target waited while its control group had used up its quota. Its time is when it was
    /// scheduled in at last, or when it was seen to wait still.
    Throttled as "rtscope_throttled" {
        /// Since when it was so, as far as it was seen.
        begin: Instant = "begin_ns",
        /// How long that kept it, by the kernel's own count; zero where that is not known.
        kept: Duration = "kept_ns",
        /// The target.
        task: TaskRef = "",
    }
}

mirror! {
    /// What the kernel sends of it.
    Raw = "rts_throttled" {
        begin_ns: u64,
        kept_ns: u64,
        task: raw::Task,
    }
}

impl FromKernel for Throttled {
    type Raw = Raw;

    fn from_kernel(place: Place, raw: &Raw, _: &Machine) -> Option<Throttled> {
        Some(Throttled {
            cpu: place.cpu,
            time: place.time,
            begin: Instant::from_ns(raw.begin_ns as i64),
            kept: Duration::from_ns(raw.kept_ns as i64),
            task: raw.task.named()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_round_trip, place, task};
    use super::*;

    #[test]
    fn a_used_up_quota_comes_back_from_its_trace() {
        check_round_trip(&Throttled {
            cpu: place().cpu,
            time: place().time,
            begin: Instant::from_ns(12),
            kept: Duration::from_ns(7),
            task: task("target"),
        });
    }
}
