//! Events into the files of other tools, one writer per format.
//!
//! A caller walks a trace and hands each item to a [`Sink`]; what is chosen (time, CPUs, filter) is
//! the caller's business.
//!
//! # Design constraints
//! - Output appears whole or not at all: it is written beside its place and renamed at the end.
//! - Losses are data and are carried over wherever the format has a word for them.
//! - Memory is bounded by the number of classes and streams, never by the number of events.

mod csv;
mod ctf_sink;
mod formats;
mod json;
mod output;
mod perfetto;
mod sink;
#[cfg(feature = "arrow")]
mod tables;
mod value;

pub use formats::{Format, sink};
pub use sink::Sink;
