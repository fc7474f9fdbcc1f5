//! What the flags mean: values with units, checked against each other and against this machine.

mod cat;
mod convert;
mod eval;
mod events;
mod gaps;
mod judge;
mod measure;
mod monitor;
mod preempt;
mod read;
mod record;
mod report;
mod session;
mod tasks;
mod trackers;
mod wall;
mod watch;
mod words;

pub use cat::{CatOptions, Passing};
pub use convert::ConvertOptions;
pub use eval::{EvalOptions, load_of};
pub use gaps::GapOptions;
pub use judge::{CheckOptions, DiffOptions};
pub use measure::{CyclicOptions, CyclicOutput, CyclictestOutput};
pub use monitor::{MonitorOptions, scope, store_path};
pub use preempt::PreemptOptions;
pub use read::{DiagnoseOptions, InfoOptions, TimeWord, WindowOptions};
pub use record::RecordOptions;
pub use report::{ExternalRequest, Output, ReportRequest, ReportVerb, report_program};
pub use session::SessionOptions;
pub use tasks::target_words;
pub use trackers::{LIST as TRACKER_LIST, TrackerOptions, only_takes};
pub use wall::WallWord;
pub use watch::{IrqFilter, Keep, Rate, SnapshotOptions, Target, Trigger, WatchOptions};
pub use words::{BUFFER_DEFAULT_BYTES, known_cpu, known_cpus, parse_size, positive_duration};
