//! The closed intervals of many machines as one set of tables, in files of Parquet that engines
//! such as DuckDB and Spark read. `docs/fleet.md` has the schema.
//!
//! # Design constraints
//! - A file's name follows from its host, boot and first interval, and its content from the store:
//!   pushed twice is pushed once.
//! - The store is the spool: what could not be pushed waits there, bounded as the store is.
//! - A file appears whole or not at all, and never becomes less than it was.
//! - A target is a folder or a bucket of an object store; `curl` talks to the latter.
//! - Metrics are sent to a collector by the same way; what they are the monitor says.
//! - No query engine: whoever asks brings one.

mod collector;
mod columns;
mod curl;
mod directory;
mod export;
mod late;
mod part;
mod push;
mod s3;
mod state;
mod tables;

pub use collector::Collector;
pub use directory::Directory;
pub use export::export_parquet;
pub use push::{Push, Pushed, Target, push, put_part};
pub use s3::{ObjectStore, S3Place};
pub use tables::{Part, PartFile, VERSION};
