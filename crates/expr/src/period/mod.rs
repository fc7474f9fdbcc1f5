//! Periods: what begins at one event and ends at another, in the language of lttng-analyses.
//!
//! ```text
//! [NAME[(PARENT)]] : BEGIN [: END]
//! NAME : [ALIAS=]VALUE, … [: [ALIAS=]VALUE, …]
//! ```
//!
//! The first line defines a period: an event for which BEGIN holds opens one, an event for which
//! END holds closes it (without END, BEGIN closes it too). The second says which values to keep
//! when a period of that name begins and when it ends. A value is `$evt.field`, `$evt.$ctx.field`
//! or `$evt.$name`, of the current event (`$evt`), of the event that began the period
//! (`$begin.$evt`) or of the one that began its parent (`$parent.$begin.$evt`).
//!
//! # Design constraints
//! - The trees hold no file and no type of another crate: who matches periods, be it over events
//!   or in the kernel, reads them as they are.
//! - What holds is for the matcher to say, with these rules: a comparison with a field that the
//!   event does not have is false, also `!=`; a text never compares with a number. While BEGIN is
//!   asked, `$begin.$evt` is the current event. One event may close many periods, and closes
//!   before it opens. A child opens in each open period of its parent, and ends with it.

mod parse;
mod print;
mod set;
mod tree;

pub use set::Periods;
pub use tree::{
    Capture, Captures, EventOf, EventPart, EventValue, Period, PeriodCond, PeriodValue,
};
