//! The filter that verbs share: compiled for a trace, and a walk over the events that it must see.

use event::{Result, TimeRange};
use expr::{Expr, Filter};
use trace::{Cursor, Trace};

/// The filter for this trace; what looks like a mistake in it is said at once.
pub(super) fn compile(expr: &Expr, trace: &Trace) -> Result<Filter> {
    let named = expr.naming_functions(|meant| trace.symbols().ranges(meant));
    let filter = Filter::new(&named, trace.classes())?;
    for note in filter.program().notes() {
        note!("warning: {note:#}");
    }
    Ok(filter)
}

/// A walk over the events that the filter must see.
pub(super) fn cursor<'t>(
    trace: &'t Trace,
    range: TimeRange,
    filter: Option<&Filter>,
) -> Cursor<'t> {
    match filter {
        Some(filter) => trace.cursor_of(range, |class| filter.wants(class)),
        None => trace.cursor(range),
    }
}
