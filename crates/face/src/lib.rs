//! What the C, C++ and Python faces of the trace engine share, so that all three have the same
//! calls: an owned walk over a part of a trace, fields bound by name, tables, a checked writer.
//!
//! # Design constraints
//! - Nothing here borrows from its caller: handles of other languages have no lifetimes.
//! - Names are looked up once: an event costs loads at known places.
//! - Losses and damage are items of a walk, and are counted in a table: no face can hide them.

mod accessor;
mod fields;
mod selection;
pub mod table;
mod walk;
mod why_late;
mod writer;

pub use accessor::{Accessor, Kind};
pub use fields::visible_fields;
pub use selection::Selection;
pub use walk::{Step, Walk};
pub use why_late::{Question, diagnosis_json};
pub use writer::{Given, Writer};
