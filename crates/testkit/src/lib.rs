//! Helpers of tests; no product code depends on them.

mod child;
mod corpus;
pub mod dat;
mod exported;
mod leftovers;
mod privileged;
mod probe;
mod sample;
mod small_trace;
mod synthetic;
mod terminal;
pub mod waiting;

pub use child::let_end;
pub use corpus::Corpus;
pub use exported::check_exported;
pub use leftovers::{Leftovers, tracefs_instances};
pub use privileged::{Privileged, core_of, is_all, long, privileged, runs, skip, two_cpus};
pub use probe::{Traced, build_traced};
pub use sample::{SAMPLE_EVENTS, write_sample};
pub use small_trace::{event_class, one_stream_class};
pub use synthetic::{SyntheticTrace, Task, moment};
pub use terminal::Terminal;
