//! Reports as text, as LAMI, as our own JSON, as a page and as pictures.

mod bars;
mod calendar;
mod grid;
mod html;
mod io_text;
mod irq_text;
mod json;
mod lami;
mod lami_read;
mod periods_text;
pub(crate) mod picture;
mod plain_text;
mod sched_text;
mod text;
mod views_text;

pub use calendar::{Calendar, Date};
pub use grid::Grid;
pub use html::report_html;
pub use json::report_json;
pub use lami::{LAMI_VERSION, lami_error, lami_metadata, lami_results};
pub use lami_read::lami_grids;
pub use picture::{Picture, picture};
pub use text::report_text;
