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
//! - Pure: no clock, no printing, and no file but the one that a caller lends for what outgrows
//!   memory, which [`Index::open`] reads later. A walk decodes on a second thread and puts the
//!   tracks together on a third; a tile of many tracks is made by as many threads as there are
//!   processors. What was looked at lately of a file is remembered, in bounded memory.

mod activation;
mod build;
mod bytes;
mod collect;
mod decoded;
mod gather;
mod index;
mod kept;
mod late;
mod latency;
mod look;
mod packed;
mod power;
mod read;
mod series;
mod state;
mod tally;
mod tile;
mod timed;
mod track;
mod users;

pub use activation::{Activation, Family, NO_TASK};
pub use build::{Builder, Walked};
pub use bytes::Spilled;
pub use index::{Index, Loss, TaskFacts, TrackId};
pub use latency::{LatencyGrid, Stats};
pub use series::{Numbers, Series};
pub use state::{Kind, Segment, State, WokenBy};
pub use tile::TILE_VERSION;
pub use timed::Timed;
pub use track::Track;
pub use users::{UserTrack, UserWhat};
