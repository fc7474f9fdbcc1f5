//! What every CPU and every thread did, as tracks that answer at any scale.
//!
//! # How to use it
//! [`Builder`] walks over a trace once and makes an [`Index`]; on the way it hands out what it has
//! so far. [`Index::tile`] is what a page draws of some tracks in some range.
//!
//! # Design constraints
//! - The states are the kernel state's own: a track says at any instant what the reports say.
//! - What nobody knows is a state, [`Kind::Unknown`]; it is never filled.
//! - The cost of an answer grows with the pixels that are asked for, not with the events.
//! - Pure: no file, no clock, no printing. [`Index::to_bytes`] is for whoever keeps it. A walk puts
//!   the tracks together on a second thread.

mod build;
mod bytes;
mod collect;
mod gather;
mod index;
mod latency;
mod power;
mod series;
mod state;
mod tile;
mod track;
mod users;

pub use build::{Builder, Walked};
pub use index::{Index, Loss, TaskFacts, TrackId};
pub use latency::{Activation, Family, LatencyGrid, NO_TASK, Stats};
pub use series::{Numbers, Series};
pub use state::{Kind, State, WokenBy};
pub use tile::TILE_VERSION;
pub use track::{Segment, Track};
pub use users::{UserTrack, UserWhat};
