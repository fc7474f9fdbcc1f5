//! What the tests measure.

use event::Duration;
use host::clock::Clock;
use measure::cyclic::{Begin, Plan, Sleep, ThreadPlan};
use measure::histogram::OVERFLOWS_NAMED;

/// Threads that take so many samples each, and nothing besides.
pub fn plan(threads: Vec<ThreadPlan>, samples: u64) -> Plan {
    Plan {
        threads,
        clock: Clock::Monotonic,
        samples: Some(samples),
        break_over: None,
        bucket: Duration::from_us(1),
        buckets: 1000,
        begin: Begin::default(),
        sampled_for: None,
        sleep: Sleep::Until,
        kept: 0,
        overflows_named: OVERFLOWS_NAMED,
        kept_over: None,
        called: None,
        mark: None,
        phases: None,
    }
}
