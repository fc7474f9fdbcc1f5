//! What the hypervisor took from a CPU, as it says itself; read on every CPU at a hit.

use super::from_kernel::{FromKernel, Machine};
use super::raw::mirror;
use super::record::{Place, record};
use crate::{Duration, Instant};

record! {
    /// What the hypervisor took from this CPU since the last look.
    Steal as "rtscope_steal" {
        /// The last look.
        begin: Instant = "begin_ns",
        /// What it took since then.
        steal: Duration = "steal_ns",
    }
}

mirror! {
    /// What the kernel sends of it.
    Raw = "rts_steal" {
        begin_ns: u64,
        steal_ns: u64,
    }
}

impl FromKernel for Steal {
    type Raw = Raw;

    fn from_kernel(place: Place, raw: &Raw, _: &Machine) -> Option<Steal> {
        Some(Steal {
            cpu: place.cpu,
            time: place.time,
            begin: Instant::from_ns(raw.begin_ns as i64),
            steal: Duration::from_ns(raw.steal_ns as i64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_round_trip, place};
    use super::*;

    #[test]
    fn steal_comes_back_from_its_trace() {
        check_round_trip(&Steal {
            cpu: place().cpu,
            time: place().time,
            begin: Instant::from_ns(4),
            steal: Duration::from_ns(5),
        });
    }
}
