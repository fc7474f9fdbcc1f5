//! Events as tables: columns in Apache Arrow's layout, in batches, without an object per event.

mod arrow;
mod batches;
mod column;
mod kind;
mod plan;

pub use arrow::{ArrowArray, ArrowArrayStream, ArrowSchema};
pub use batches::{Batches, Tally, export_stream};
