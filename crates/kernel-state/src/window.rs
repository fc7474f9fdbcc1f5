//! The part of a trace that a question is about.

use event::{Instant, Result, TimeRange};
use trace::{Item, Trace};

/// Until when it is known what went on at the end of a part of a trace, in nanoseconds: up to its
/// end, where the trace goes on behind it; none where the last event says it.
///
/// # Errors
/// As [`trace::Cursor::next`].
pub fn seen_until(trace: &Trace, range: TimeRange) -> Result<Option<i64>> {
    if range.end == Instant::MAX {
        return Ok(None);
    }
    let mut rest = trace.cursor(TimeRange {
        begin: range.end,
        end: Instant::MAX,
    });
    while let Some(item) = rest.next()? {
        if let Item::Event(_) = item {
            return Ok(Some(range.end.as_ns() - 1));
        }
    }
    Ok(None)
}
