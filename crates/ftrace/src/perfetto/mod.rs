//! Perfetto's traces: what ftrace recorded in them, under LTTng's names.
//!
//! A trace is a row of packets; those with bundles of ftrace's events are found at open, with the
//! classes and the times that they have, and read again, CPU by CPU, when somebody walks. Packets
//! may be compressed, several in one.

mod bundle;
mod reader;
mod recording;
mod schema;
mod wire;

pub use reader::PerfettoReader;
pub use recording::{PerfettoRecording, is_perfetto};
