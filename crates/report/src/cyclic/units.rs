//! Durations in the unit of latencies.

use event::Duration;

/// Microseconds with a decimal; `–` for what is not known.
pub(crate) fn us(duration: Option<Duration>) -> String {
    duration.map_or("–".to_owned(), |duration| {
        format!("{:.1}", duration.as_ns() as f64 / 1000.0)
    })
}
