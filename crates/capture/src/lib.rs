//! Sessions from start to files on disk: recordings, the flight recorder, snapshots.
//!
//! # Design constraints
//! - The hot path only copies: pages leave the kernel's rings in a drain, all parsing and writing
//!   comes later and elsewhere.
//! - Every lost event is counted, per CPU and cause, and stands at its place in the trace.
//! - Output appears whole, under its own name, or not at all.

mod boot;
mod boot_words;
pub mod capabilities;
mod channels;
mod clock;
mod cost;
mod descriptors;
mod environment;
mod event_cost;
mod evidence;
mod functions;
mod heartbeat;
mod housekeeping;
mod keep;
mod kernel_ctf;
mod kernel_filter;
mod kernel_trace;
mod lanes;
pub mod leftovers;
mod notes;
mod pages;
mod probes;
mod program_log;
mod programs;
mod progress;
mod quotas;
mod raw;
mod record;
mod record_config;
mod recorder;
mod ring_folders;
mod select;
pub mod session;
mod sets;
mod snapshot;
mod statedump;
mod stream;
mod syscalls;
mod traced_functions;
mod track;
mod turn;
mod unfinished;
mod user;
pub mod watch;
mod ways;

pub use boot::{BootSummary, import_boot};
pub use boot_words::{BootMemory, BootWords};
pub use channels::Channel;
pub use cost::Cost;
pub use descriptors::with_given_limit;
pub use environment::own_command_line;
pub use event_cost::{EventCost, measure_event_cost};
pub use functions::kernel_functions;
pub use housekeeping::cpus as housekeeping_cpus;
pub use keep::Keep;
pub use kernel_ctf::{
    Before, CpuConverter, CpuTotals, KernelClasses, KernelContexts, ThreadGroups,
};
pub use lanes::CpuRecord;
pub use pages::{CpuPages, History, PageBlock, PageSpan, Pages};
pub use probes::{Probe, ProbeKind};
pub use progress::LiveTrace;
pub use raw::{RawSummary, convert_raw, is_raw};
pub use record::{fly, record};
pub use record_config::{CommandEnd, RecordConfig, RecordSummary};
pub use recorder::{Mode, Recorder, RecorderConfig, StopTrigger};
pub use ring_folders::{require_folder as require_ring_folder, require_rings};
pub use select::{EventSelection, Selected, named_event};
pub use snapshot::{MissingPart, Seen, SnapshotFacts, SnapshotSummary, write_snapshot};
pub use statedump::{
    BlockDevice, InterruptLine, LoadedProgram, MemoryMap, NetworkInterface, OfMemory, OpenFile,
    StateDump, TaskState,
};
pub use syscalls::{CallsSummary, system_call_classes};
pub use traced_functions::FunctionPatterns;
pub use track::Track;
pub use unfinished::{Unfinished, unfinished};
pub use user::{
    LOG_LEVELS, Listed, LookSummary, RING_BYTES_USUAL, UserConfig, UserProcess, UserSummary, Whose,
    left_by_killed_recorders, list, look,
};
