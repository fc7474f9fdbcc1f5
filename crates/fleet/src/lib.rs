//! The closed intervals of many machines as one set of tables, in files of Parquet that engines
//! such as DuckDB and Spark read. `docs/fleet.md` has the schema.
//!
//! # Design constraints
//! - A file's name follows from its host, boot and first interval, and its content from the store:
//!   pushed twice is pushed once.
//! - The store is the spool: what could not be pushed waits there, bounded as the store is.
//! - A file appears whole or not at all, and never becomes less than it was.
//! - No query engine: whoever asks brings one.

mod columns;
mod directory;
mod late;
mod part;
mod push;
mod state;
mod tables;

pub use directory::Directory;
pub use push::{Push, Pushed, Target, push, put_part};
pub use tables::{Part, PartFile, VERSION};
