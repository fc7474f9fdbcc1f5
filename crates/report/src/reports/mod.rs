//! Reports as text, as LAMI and as our own JSON.

mod bars;
mod calendar;
mod io_text;
mod irq_text;
mod json;
mod lami;
mod periods_text;
mod sched_text;
mod text;

pub use calendar::{Calendar, Date};
pub use json::report_json;
pub use lami::{LAMI_VERSION, lami_error, lami_metadata, lami_results};
pub use text::report_text;
