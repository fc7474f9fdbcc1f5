//! The Common Trace Format: reader of 1.8 and 2, writer.
//!
//! # Design constraints
//! - The writer lays traces out as LTTng does, so that every reader of LTTng's traces reads ours.
//! - The reader never panics, loops or allocates without bound on hostile bytes.
//! - Decoding is pure over byte slices; files are opened and read in pieces by a thin layer around
//!   it.
//! - No file is mapped: one that is cut while it is mapped would end the process.

pub mod reader;
pub mod writer;

/// The key of the `env` block by which our writer says where losses lie.
pub const LOSSES_KEY: &str = "rtscope_losses";
/// Its value: a loss lies between two packets, not somewhere inside of the second.
pub const LOSSES_BETWEEN: &str = "between_packets";
