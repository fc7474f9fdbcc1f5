//! `record`: from start to a trace on disk, with reader threads on housekeeping CPUs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use ctf::writer::{EnvValue, StagedDir};
use event::{Cpu, Duration, Error, ErrorKind, Instant, Result, TimeRange};
use ftrace::{EventName, Instance};

use crate::functions::{self, SharedFunctions};
use crate::kernel_ctf::{CpuConverter, KernelClasses, ThreadGroups};
use crate::kernel_trace::KernelTrace;
use crate::lanes::{CpuRecord, Lane, read_lanes, shares};
use crate::progress::{POLL_PERIOD, Progress, Source};
use crate::recorder::{Mode, Recorder, RecorderConfig};
use crate::select::EventSelection;
use crate::statedump::StateDump;
use crate::user::{PARTS, UserConfig, UserRecorder, UserSummary, UserTarget};
use crate::{clock, environment, housekeeping};
use host::capabilities::Capabilities;

/// More reader threads than this gain nothing.
const READERS_MAX: usize = 8;

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
    /// Events of applications.
    pub user: Option<UserConfig>,
    /// Run this, and stop when it ends.
    pub command: Option<Vec<OsString>>,
    /// Kernel filters, each on one event.
    pub filters: Vec<(EventName, String)>,
    /// The size of each CPU's ring.
    pub buffer_bytes_per_cpu: usize,
    /// Only these CPUs; all when none are named.
    pub cpus: Option<Vec<Cpu>>,
    /// Raised by somebody else to stop.
    pub stop: Arc<AtomicBool>,
    /// Raised here when the kernel's events are recorded from now on.
    pub recording: Arc<AtomicBool>,
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
            user: None,
            command: None,
            filters: Vec::new(),
            buffer_bytes_per_cpu: 4 << 20,
            cpus: None,
            stop: Arc::new(AtomicBool::new(false)),
            recording: Arc::new(AtomicBool::new(false)),
            begun: |_| (),
        }
    }
}

/// What a recording holds.
#[derive(Clone, Debug)]
pub struct RecordSummary {
    /// Where it is.
    pub path: PathBuf,
    /// How long events were recorded.
    pub duration: Duration,
    /// Per CPU: written, and counted by the kernel.
    pub cpus: Vec<CpuRecord>,
    /// Events of the state dump.
    pub dump_events: u64,
    /// Events of the asked sets that this kernel does not have.
    pub absent: Vec<String>,
    /// How the command ended.
    pub command_status: Option<ExitStatus>,
    /// What applications gave.
    pub user: UserSummary,
}

impl RecordSummary {
    /// Events of the kernel, on all CPUs.
    pub fn events(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.written.events).sum()
    }

    /// Lost events of the kernel, on all CPUs.
    pub fn lost(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.statistics.lost()).sum()
    }

    /// Bytes of all streams of the kernel.
    pub fn size_bytes(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.written.size_bytes).sum()
    }
}

/// Records. Blocks until the duration is over, the command has ended, or the flag is raised.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when the output is there; [`ErrorKind::StorageFull`] when the disk
/// is: of applications, what was written until then is kept; of the kernel, it is removed, so that
/// no half trace remains. A command that cannot be
/// started is an error, one that fails is not.
pub fn record(
    config: &RecordConfig,
    capabilities: &Capabilities,
    command_line: &str,
) -> Result<RecordSummary> {
    let staged = StagedDir::create(&config.output)?;
    // Before the first event: every stream covers the recording from here on.
    let begin = clock::monotonic();
    // One offset for all parts of the trace: their times are of one clock.
    let offset = clock::wall_offset_ns();
    let name = config.output.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let progress = Arc::new(Progress::create(staged.path())?);
    let kernel_source = config.kernel.then(|| progress.source());
    let failed = Arc::new(AtomicBool::new(false));
    let target = UserTarget {
        failed: Arc::clone(&failed),
        progress: config
            .user
            .is_some()
            .then(|| (Arc::clone(&progress), progress.source())),
        root: staged.path().to_owned(),
        trace_name: name.clone(),
        wall_offset_ns: offset,
        begin,
        cpus: housekeeping::cpus(&capabilities.machine, config.cpus.as_deref()),
        in_flight: false,
    };
    let user = config.user.as_ref();
    let user = user
        .map(|user| UserRecorder::start(user, target))
        .transpose()?;
    let recorded = match kernel_source {
        Some(source) => {
            let environment = environment::environment(&name, command_line, capabilities);
            let written = Written {
                staged: &staged,
                progress: &progress,
                source,
                failed: &failed,
            };
            record_kernel(config, capabilities, written, (begin, offset), environment)
        }
        None => record_nothing_else(config, &failed),
    };
    // Also after an error: no process may be left switched on.
    let user = user.map(UserRecorder::finish).transpose();
    let recorded = recorded?;
    let user = match user {
        Err(full) if full.kind() == ErrorKind::StorageFull => {
            drop(progress);
            return Err(kept_until_full(staged, &full));
        }
        user => user?.unwrap_or_default(),
    };
    if !config.kernel && user.events() + user.lost() == 0 {
        return Err(nothing_recorded(config, &user));
    }
    let duration = recorded.duration;
    drop(progress);
    Ok(RecordSummary {
        path: staged.commit()?,
        duration: Duration::from_ns(duration.as_nanos().min(i64::MAX as u128) as i64),
        cpus: recorded.cpus,
        dump_events: recorded.dump_events,
        absent: recorded.absent,
        command_status: recorded.command_status,
        user,
    })
}

/// Lets the rings of applications keep their newest events, until the duration is over, the command
/// has ended, or the flag is raised; whoever wants them takes a [`crate::look`].
///
/// # Errors
/// When there is no directory that we may read, or somebody else records there; when nothing of
/// applications was asked for.
pub fn fly(config: &RecordConfig, capabilities: &Capabilities) -> Result<()> {
    let Some(user) = &config.user else {
        return Err(
            Error::new(ErrorKind::InvalidInput, "no events of applications")
                .fix("rtscope record --flight --user 'GLOB'"),
        );
    };
    let failed = Arc::new(AtomicBool::new(false));
    let target = UserTarget {
        failed: Arc::clone(&failed),
        progress: None,
        root: PathBuf::new(),
        trace_name: String::new(),
        wall_offset_ns: 0,
        begin: clock::monotonic(),
        cpus: housekeeping::cpus(&capabilities.machine, config.cpus.as_deref()),
        in_flight: true,
    };
    let recorder = UserRecorder::start(user, target)?;
    let waited = wait(config, &failed);
    recorder.finish()?;
    waited.map(|_| ())
}

/// Ends a recording whose disk is full: what was written until then gets its final name, when there
/// is any.
fn kept_until_full(staged: StagedDir, full: &Error) -> Error {
    let found = full.value_found().unwrap_or("no space").to_owned();
    let what = full.what();
    let (what, found) = match holds_packets(staged.path()).then(|| staged.commit()) {
        Some(Ok(path)) => (
            format!("the recording ended when its disk was full: {what}"),
            format!("{found}; what came before is in {}", path.display()),
        ),
        Some(Err(error)) => (what.to_owned(), format!("{found}; {error}")),
        None => (what.to_owned(), format!("{found}; nothing was kept")),
    };
    let error = Error::new(ErrorKind::StorageFull, what).found(found);
    error.fix(full.fixed_by().unwrap_or("free some space"))
}

/// Whether a process's trace below `root` has a packet of events.
fn holds_packets(root: &Path) -> bool {
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    let traces = entries(&root.join(PARTS));
    let mut files = traces.flat_map(|trace| entries(&trace.path()));
    files.any(|file| {
        let is_stream = file.file_name().as_encoded_bytes().starts_with(b"channel");
        is_stream
            && file
                .metadata()
                .is_ok_and(|capabilities| capabilities.len() > 0)
    })
}

/// A trace without a stream is no trace: no reader takes it.
fn nothing_recorded(config: &RecordConfig, user: &UserSummary) -> Error {
    let patterns = config.user.as_ref().map_or(&[][..], UserConfig::words);
    let found = match user.refused.as_slice() {
        [] => "no traced process executed such an event".to_owned(),
        refused => refused.join("\n"),
    };
    let what = format!("nothing was recorded for --user '{}'", patterns.join(","));
    let error = Error::new(ErrorKind::NotFound, what).found(found);
    match user.refused.is_empty() {
        true => error.fix(
            "check the pattern, and that the program is linked with librtscope-probe, which is for \
             64-bit programs",
        ),
        // Each refusal has its remedy.
        false => error,
    }
}

/// What was recorded besides applications.
struct Recorded {
    cpus: Vec<CpuRecord>,
    dump_events: u64,
    absent: Vec<String>,
    command_status: Option<ExitStatus>,
    duration: StdDuration,
}

/// Waits for the end while applications alone are recorded.
fn record_nothing_else(config: &RecordConfig, failed: &AtomicBool) -> Result<Recorded> {
    let started = StdInstant::now();
    let command_status = wait(config, failed)?;
    Ok(Recorded {
        cpus: Vec::new(),
        dump_events: 0,
        absent: Vec::new(),
        command_status,
        duration: started.elapsed(),
    })
}

/// Where the kernel's events go, and who is told how far they are.
struct Written<'r> {
    staged: &'r StagedDir,
    progress: &'r Progress,
    /// Stands for all readers until they stand for themselves.
    source: Source,
    /// Raised by whoever cannot go on.
    failed: &'r AtomicBool,
}

/// Records the kernel's events.
fn record_kernel(
    config: &RecordConfig,
    capabilities: &Capabilities,
    written: Written<'_>,
    (begin, offset): (Instant, i64),
    environment: Vec<(String, EnvValue)>,
) -> Result<Recorded> {
    let mut recorder = Recorder::start(&RecorderConfig {
        events: config.events.clone(),
        buffer_bytes_per_cpu: config.buffer_bytes_per_cpu,
        mode: Mode::Stream,
        stop_trigger_comm: None,
        cpus: config.cpus.clone(),
        filters: config.filters.clone(),
    })?;
    config.recording.store(true, Ordering::Release);
    let started = StdInstant::now();
    let dump = StateDump::collect();
    let groups = Arc::new(ThreadGroups::new(dump.thread_groups()));
    let classes = Arc::new(KernelClasses::compile(&recorder.formats()));
    let staged = written.staged;
    let mut trace = KernelTrace::create(staged.path(), classes, environment, offset, false)?;
    let absent = recorder.selected().absent.clone();

    let (instance, pipes) = recorder.parts();
    let converters: Result<Vec<_>> = pipes
        .iter()
        .map(|pipe| covered(trace.cpu(pipe.cpu(), &groups)?, begin))
        .collect();
    let lanes = pipes
        .iter_mut()
        .zip(converters?)
        .map(|(pipe, converter)| Lane::new(pipe, converter));
    let (cpus, command_status, ended) =
        run(config, instance, lanes.collect(), capabilities, &written)?;
    let end = clock::monotonic();
    let dump_events = trace.state_dump(&dump, TimeRange { begin, end })?;
    let own = SharedFunctions::default();
    functions::write_functions(staged.path(), &functions::kernel_functions(), &own)?;
    Ok(Recorded {
        cpus,
        dump_events,
        absent,
        command_status,
        duration: ended - started,
    })
}

fn covered(mut converter: CpuConverter, begin: Instant) -> Result<CpuConverter> {
    converter.covers(begin)?;
    Ok(converter)
}

type Ran = (Vec<CpuRecord>, Option<ExitStatus>, StdInstant);

/// Starts readers and command, waits for the end, stops the rings, gathers what was written.
fn run(
    config: &RecordConfig,
    instance: &Instance,
    lanes: Vec<Lane<'_>>,
    capabilities: &Capabilities,
    written: &Written<'_>,
) -> Result<Ran> {
    // Raised when events no longer come in: the readers empty the rings a last time.
    let drained = AtomicBool::new(false);
    let cpus = housekeeping::cpus(&capabilities.machine, config.cpus.as_deref());
    std::thread::scope(|scope| {
        let readers: Vec<_> = shares(lanes, cpus.len().clamp(1, READERS_MAX))
            .into_iter()
            .map(|share| {
                let (drained, failed, cpus) = (&drained, written.failed, &cpus);
                let progress = (written.progress, written.progress.source());
                scope.spawn(move || {
                    housekeeping::pin(cpus);
                    let result = read_lanes(share, instance, drained, progress);
                    if result.is_err() {
                        failed.store(true, Ordering::Release);
                    }
                    result
                })
            })
            .collect();
        written.progress.over(written.source)?;
        let waited = wait(config, written.failed);
        let stopped = instance.stop();
        let ended = StdInstant::now();
        drained.store(true, Ordering::Release);
        let mut records = Vec::new();
        let mut first_error = None;
        for reader in readers {
            match reader.join() {
                Ok(Ok(mut some)) => records.append(&mut some),
                Ok(Err(error)) => first_error = first_error.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        if let Some(error) = first_error {
            return Err(error);
        }
        stopped?;
        records.sort_by_key(|record| record.written.cpu);
        Ok((records, waited?, ended))
    })
}

/// Waits for the first of: duration over, command ended, flag raised, reader failed.
fn wait(config: &RecordConfig, failed: &AtomicBool) -> Result<Option<ExitStatus>> {
    (config.begun)(config);
    let mut child = config.command.as_deref().map(start_command).transpose()?;
    let limit = config
        .duration
        .map(|limit| StdDuration::from_nanos(limit.as_ns_unsigned()));
    let begin = StdInstant::now();
    loop {
        if let Some(child) = &mut child {
            let status = child.try_wait();
            let status = status.map_err(|error| Error::io("cannot wait for the command", error))?;
            if status.is_some() {
                return Ok(status);
            }
        }
        let over = limit.is_some_and(|limit| begin.elapsed() >= limit);
        if over || config.stop.load(Ordering::Acquire) || failed.load(Ordering::Acquire) {
            // The command goes on without us: it is the user's, and only recording is over.
            return Ok(None);
        }
        let left = limit.map_or(POLL_PERIOD, |limit| limit.saturating_sub(begin.elapsed()));
        std::thread::sleep(left.min(POLL_PERIOD));
    }
}

fn start_command(words: &[OsString]) -> Result<Child> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Error::new(ErrorKind::InvalidInput, "no command after '--'")
            .fix("rtscope record -- COMMAND"));
    };
    Command::new(program)
        .args(arguments)
        .spawn()
        .map_err(|error| {
            Error::io(
                format!("cannot start '{}'", program.to_string_lossy()),
                error,
            )
            .fix("check the command's name and its path")
        })
}
