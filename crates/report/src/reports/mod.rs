//! Reports as text, as LAMI, as our own JSON, as a page and as pictures.

mod bars;
mod calendar;
mod cells;
mod cpu_text;
mod grid;
mod html;
mod io_text;
mod irq_text;
mod json;
mod lami;
mod lami_read;
mod memory_text;
mod page;
mod periods_text;
pub(crate) mod picture;
mod plain_text;
mod sched_text;
mod syscalls_text;
mod text;
mod views_text;

pub use calendar::{Calendar, Date};
pub use grid::Grid;
pub use html::ReportHtml;
pub use json::ReportJson;
pub use lami::{LAMI_VERSION, LamiResults, lami_error, lami_metadata};
pub use lami_read::{LamiColumn, LamiTable, lami_tables};
pub use picture::{Drawing, Picture, picture};
pub use text::ReportText;
