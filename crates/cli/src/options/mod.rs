//! What the flags mean: values with units, checked against each other and against this machine.

mod cat;
mod channel;
mod convert;
mod cyclictest;
mod cyclictest_output;
mod deadline;
mod eval;
mod events;
mod fleet;
mod gaps;
mod judge;
mod keep;
mod measure;
mod monitor;
mod numa_cpus;
mod preempt;
mod read;
mod receive;
mod record;
mod report;
mod session;
mod settings;
mod tasks;
mod track;
mod trackers;
mod wall;
mod watch;
mod words;

pub use cat::{CatOptions, Passing};
pub use convert::ConvertOptions;
pub use cyclictest_output::CyclictestOutput;
pub use deadline::DeadlineOptions;
pub use eval::{EvalOptions, load_of};
pub use fleet::FleetOptions;
pub use gaps::GapOptions;
pub use judge::{CheckOptions, DiffOptions};
pub use measure::{Actions, CyclicOptions, CyclicOutput, ExplainOptions};
pub use monitor::{Door, MonitorOptions, OtlpOptions, OverOptions, scope, store_path};
pub use preempt::PreemptOptions;
pub use read::{DiagnoseOptions, InfoOptions, TimeWord, WindowOptions};
pub use receive::ReceiveOptions;
pub use record::RecordOptions;
pub use report::{ExternalRequest, Output, ReportRequest, ReportVerb, report_program};
pub use session::{SessionOptions, setting};
pub use tasks::{group_flag, target_words};
pub use track::TrackOptions;
pub use trackers::{LIST as TRACKER_LIST, TrackerOptions, only_takes};
pub use wall::WallWord;
pub use watch::{IrqFilter, Rate, SnapshotOptions, Target, Trigger, WatchOptions};
pub use words::{
    BUFFER_DEFAULT_BYTES, LONGEST, duration, known_cpu, known_cpus, parse_size, positive_duration,
};
