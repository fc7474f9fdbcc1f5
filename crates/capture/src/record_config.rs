//! What a recording is asked for, and what came of it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use event::{Cpu, Duration, Result};
use ftrace::EventName;
use relay::{Delivered, To};

use crate::channels::{self, Channel, Division};
use crate::kernel_ctf::KernelContexts;
use crate::lanes::CpuRecord;
use crate::probes::Probe;
use crate::select::EventSelection;
use crate::statedump::OfMemory;
use crate::syscalls::CallsSummary;
use crate::traced_functions::FunctionPatterns;
use crate::track::Track;
use crate::user::{UserConfig, UserSummary};

/// What to record, for how long, and where to.
#[derive(Clone, Debug)]
pub struct RecordConfig {
    /// The directory to make.
    pub output: PathBuf,
    /// Stop after this time; else when the command ends or the flag is raised.
    pub duration: Option<Duration>,
    /// The kernel's events; none when only applications are recorded.
    pub kernel: bool,
    /// Which of the kernel's events.
    pub events: EventSelection,
    /// Whether the first channel has any: not where all that was asked for comes in others.
    pub has_first: bool,
    /// Channels beside the first one.
    pub channels: Vec<Channel>,
    /// What each of these carries besides its fields.
    pub contexts: KernelContexts,
    /// Events of applications.
    pub user: Option<UserConfig>,
    /// Run this, and stop when it ends.
    pub command: Option<Vec<OsString>>,
    /// Filters, each on one event, in the language of every verb; several of one event: any.
    pub filters: Vec<(EventName, String)>,
    /// Whose events alone; everybody's when nobody is named.
    pub track: Option<Track>,
    /// Probes in programs and in the kernel.
    pub probes: Vec<Probe>,
    /// Functions of the kernel.
    pub functions: FunctionPatterns,
    /// Whether the state dump has the memory of all processes.
    pub memory_maps: bool,
    /// Whether the kernel's pages are kept as they are, to be converted later.
    pub raw: bool,
    /// Whether system calls of this process are recorded too.
    pub own_calls: bool,
    /// Another host gets it while it is written; the output is then what waits for that.
    pub to: Option<To>,
    /// The size of each CPU's ring.
    pub buffer_bytes_per_cpu: usize,
    /// Only these CPUs; all when none are named.
    pub cpus: Option<Vec<Cpu>>,
    /// Raised by somebody else to stop.
    pub stop: Arc<AtomicBool>,
    /// Raised here when the kernel's events are recorded from now on.
    pub recording: Arc<AtomicBool>,
    /// Whether nobody waits any more for what is still to be delivered.
    pub is_enough: fn() -> bool,
    /// Called when all that was asked for is recorded from now on, before the command starts.
    pub begun: fn(&RecordConfig),
}

impl RecordConfig {
    /// The default set of events into `output`, until the flag is raised.
    pub fn new(output: impl Into<PathBuf>) -> Self {
        RecordConfig {
            output: output.into(),
            duration: None,
            kernel: true,
            events: EventSelection::default(),
            has_first: true,
            channels: Vec::new(),
            contexts: KernelContexts::default(),
            user: None,
            command: None,
            filters: Vec::new(),
            track: None,
            probes: Vec::new(),
            functions: FunctionPatterns::default(),
            memory_maps: false,
            raw: false,
            own_calls: false,
            to: None,
            buffer_bytes_per_cpu: 4 << 20,
            cpus: None,
            stop: Arc::new(AtomicBool::new(false)),
            recording: Arc::new(AtomicBool::new(false)),
            is_enough: || false,
            begun: |_| (),
        }
    }
}

impl std::fmt::Display for CommandEnd {
    /// What is to be said of it: nothing where it ended well.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandEnd::Ended(status) if status.success() => Ok(()),
            CommandEnd::Ended(status) => write!(f, "the command failed: {status}"),
            CommandEnd::GoesOn(pid) => {
                write!(
                    f,
                    "the command goes on without the recording; kill {pid} ends it"
                )
            }
        }
    }
}

impl RecordConfig {
    /// What the channel with this number is called; the first is 0.
    pub fn channel_name(&self, number: usize) -> &str {
        channels::name(&self.channels, number)
    }

    /// Whether the kernel with these events has what is asked for, channel by channel.
    ///
    /// # Errors
    /// [`event::ErrorKind::NotFound`] for what it does not have, with names that are near;
    /// [`event::ErrorKind::InvalidInput`] for an event of two channels.
    pub fn require_events(&self, available: &[EventName]) -> Result<()> {
        let first = self.has_first.then_some(&self.events);
        Division::of(first, &self.channels, available).map(drop)
    }

    /// What the state dump has of the memory of processes.
    pub(crate) fn of_memory(&self) -> OfMemory {
        OfMemory {
            maps: self.memory_maps,
            // Addresses in them are to have names.
            programs: self.contexts.stacks().user,
        }
    }
}

/// What became of a command by the end of its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// It has ended.
    Ended(ExitStatus),
    /// It goes on, as the process of this number: it is the user's.
    GoesOn(u32),
}

/// What a recording holds.
#[derive(Debug)]
pub struct RecordSummary {
    /// Where it is.
    pub path: PathBuf,
    /// How long events were recorded.
    pub duration: Duration,
    /// Per CPU: written, and counted by the kernel.
    pub cpus: Vec<CpuRecord>,
    /// System calls with their contents.
    pub calls: CallsSummary,
    /// Events of the state dump.
    pub dump_events: u64,
    /// Events of the asked sets that this kernel does not have.
    pub absent: Vec<String>,
    /// What could not be had of probes.
    pub left_out: Vec<String>,
    /// What became of the command.
    pub command: Option<CommandEnd>,
    /// What applications gave.
    pub user: UserSummary,
    /// What became of it on the way to another host.
    pub delivered: Option<Delivered>,
}

impl RecordSummary {
    /// How many CPUs were recorded, in however many channels.
    pub fn cpu_count(&self) -> usize {
        let cpus = self.cpus.iter().map(|cpu| cpu.written.cpu);
        cpus.collect::<BTreeSet<_>>().len()
    }

    /// Events of the channel with this number, and those that it lost.
    pub fn of_channel(&self, number: usize) -> (u64, u64) {
        let own = self.cpus.iter().filter(|cpu| cpu.channel == number);
        own.fold((0, 0), |(events, lost), cpu| {
            (events + cpu.written.events, lost + cpu.written.discarded)
        })
    }

    /// Events of the kernel, on all CPUs.
    pub fn events(&self) -> u64 {
        let of_cpus = self.cpus.iter().map(|cpu| cpu.written.events);
        of_cpus.sum::<u64>() + self.calls.events
    }

    /// Lost events of the kernel, on all CPUs, as the trace says.
    pub fn lost(&self) -> u64 {
        let of_cpus = self.cpus.iter().map(|cpu| cpu.written.discarded);
        of_cpus.sum::<u64>() + self.calls.lost
    }

    /// Bytes of all streams of the kernel.
    pub fn size_bytes(&self) -> u64 {
        let of_cpus = self.cpus.iter().map(|cpu| cpu.written.size_bytes);
        of_cpus.sum::<u64>() + self.calls.size_bytes
    }
}
