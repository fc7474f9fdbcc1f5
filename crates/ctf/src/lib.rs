//! The Common Trace Format 1.8: reader and writer.
//!
//! # Design constraints
//! - The writer lays traces out as LTTng does, so that every reader of LTTng's traces reads ours.
//! - The reader never panics, loops or allocates without bound on hostile bytes.
//! - Decoding is pure over byte slices; files are opened and mapped in one thin layer around it.

pub mod writer;
