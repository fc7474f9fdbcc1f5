//! `record`: from start to a trace on disk, with reader threads on housekeeping CPUs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use ctf::writer::{EnvValue, Outlet, StagedDir, StreamWriter};
use event::{Duration, Error, ErrorKind, Instant, Result, Tid};
use ftrace::{EventName, Instance, Tracefs};

use crate::channels::{self, Channels, Division, channel_names};
use crate::functions::{self, SharedFunctions};
use crate::kernel_ctf::{KernelClasses, KernelContexts, ThreadGroups};
use crate::kernel_trace::KernelTrace;
use crate::lanes::CpuRecord;
use crate::notes::Tracked;
use crate::probes::Probes;
use crate::program_log::ProgramLog;
use crate::progress::{POLL_PERIOD, Progress, Source};
use crate::quotas::QuotaLog;
use crate::raw::RawFacts;
use crate::record_config::{CommandEnd, RecordConfig, RecordSummary};
use crate::recorder::{FORK, Mode, RecorderConfig};
use crate::select::EventSelection;
use crate::statedump::{OfMemory, StateDump};
use crate::stream::Streamed;
use crate::syscalls::{CallsSummary, SyscallRecorder, Wanted};
use crate::track::{Track, Tracker};
use crate::unfinished::holds_packets;
use crate::user::{UserConfig, UserRecorder, UserSummary, UserTarget};
use crate::ways::{Lanes, Read};
use crate::{clock, descriptors, environment, housekeeping};
use host::capabilities::Capabilities;

/// How often it is looked at whether somebody took the folder away.
const FOLDER_PERIOD: StdDuration = StdDuration::from_millis(500);
/// More reader threads than this gain nothing.
pub(crate) const READERS_MAX: usize = 8;

/// Records. Blocks until the duration is over, the command has ended, or the flag is raised.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when the output is there; [`ErrorKind::StorageFull`] when the disk
/// is: what was written until then is kept. A command that cannot be started is an error, one that
/// fails is not.
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
    let name = name_of(&config.output);
    let cpus = housekeeping::cpus(&capabilities.machine, config.cpus.as_deref());
    let begin_stream = |to| Streamed::start(to, staged.path(), &name, cpus.clone());
    let streamed = config.to.as_ref().map(begin_stream).transpose()?;
    let outlet = streamed.as_ref().map(Streamed::outlet);
    let progress = Arc::new(Progress::create(staged.path(), streamed.is_some())?);
    let kernel_source = config.kernel.then(|| progress.source());
    let failed = Arc::new(AtomicBool::new(false));
    let target = UserTarget {
        failed: Arc::clone(&failed),
        progress: of_user(&progress, config),
        root: staged.path().to_owned(),
        trace_name: name.clone(),
        outlet: outlet.clone(),
        wall_offset_ns: offset,
        begin,
        cpus,
        in_flight: false,
    };
    let begin_user = |user| UserRecorder::start(user, target);
    let user = config.user.as_ref().map(begin_user).transpose()?;
    let recorded = match kernel_source {
        Some(source) => {
            let environment = environment::environment(&name, command_line, capabilities);
            let written = Written {
                staged: &staged,
                progress: &progress,
                source,
                failed: &failed,
                outlet,
            };
            record_kernel(config, capabilities, written, (begin, offset), environment)
        }
        None => record_nothing_else(config, (&failed, staged.path())),
    };
    // Also after an error: no process may be left switched on.
    let user = user.map(UserRecorder::finish).transpose();
    let recorded = match recorded {
        Err(_) if !staged.path().is_dir() => return Err(folder_is_gone(config)),
        Err(full) if full.kind() == ErrorKind::StorageFull && holds_packets(staged.path()) => {
            // The mark stays: readers say that events are missing behind the end of each stream.
            progress.stay();
            return Err(kept_until_full((staged, progress), &full));
        }
        recorded => recorded?,
    };
    let user = match user {
        Err(full) if full.kind() == ErrorKind::StorageFull => {
            progress.stay();
            return Err(kept_until_full((staged, progress), &full));
        }
        user => user?.unwrap_or_default(),
    };
    if !config.kernel && user.is_empty() {
        return Err(nothing_recorded(config, &user));
    }
    // Before it has its final name, though a thread that ends may still hold on to it.
    progress.finish();
    ended(recorded.summary(config, user), config, staged, streamed)
}

/// Gives a whole recording its name, here or there.
fn ended(
    mut summary: RecordSummary,
    config: &RecordConfig,
    staged: StagedDir,
    streamed: Option<Streamed>,
) -> Result<RecordSummary> {
    match streamed {
        Some(streamed) => {
            let events = summary.events().saturating_add(summary.user.events());
            let lost = summary.lost().saturating_add(summary.user.lost());
            let ended = streamed.end(staged, (events, lost), config.is_enough);
            (summary.path, summary.delivered) = (ended.0, Some(ended.1));
        }
        None => summary.path = staged.commit()?,
    }
    Ok(summary)
}

/// What tells of the progress of applications, when any are recorded.
fn of_user(progress: &Arc<Progress>, config: &RecordConfig) -> Option<(Arc<Progress>, Source)> {
    let is_wanted = config.user.is_some();
    is_wanted.then(|| (Arc::clone(progress), progress.source()))
}

/// The last part of a path.
pub(crate) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
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
    let cpus = housekeeping::cpus(&capabilities.machine, config.cpus.as_deref());
    let target = UserTarget::in_flight(cpus, Arc::clone(&failed));
    let recorder = UserRecorder::start(user, target)?;
    let waited = wait(config, (&failed, None), None);
    recorder.finish()?;
    waited.map(|_| ())
}

/// Ends a recording whose disk is full: what was written until then gets its final name, when there
/// is any.
fn kept_until_full((staged, progress): (StagedDir, Arc<Progress>), full: &Error) -> Error {
    drop(progress);
    if relay::is_spool(staged.path()) {
        // What it has of the rest is still worth reading when this fails.
        let _ = relay::cut_delivered(staged.path());
    }
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
    calls: CallsSummary,
    dump_events: u64,
    absent: Vec<String>,
    left_out: Vec<String>,
    command: Option<CommandEnd>,
    duration: StdDuration,
}

impl Recorded {
    fn summary(self, config: &RecordConfig, user: UserSummary) -> RecordSummary {
        let duration_ns = self.duration.as_nanos().min(i64::MAX as u128) as i64;
        RecordSummary {
            path: config.output.clone(),
            duration: Duration::from_ns(duration_ns),
            cpus: self.cpus,
            calls: self.calls,
            dump_events: self.dump_events,
            absent: self.absent,
            left_out: self.left_out,
            command: self.command,
            user,
            delivered: None,
        }
    }
}

/// Waits for the end while applications alone are recorded.
fn record_nothing_else(
    config: &RecordConfig,
    (failed, root): (&AtomicBool, &Path),
) -> Result<Recorded> {
    let started = StdInstant::now();
    let command = wait(config, (failed, Some(root)), None)?;
    Ok(Recorded {
        cpus: Vec::new(),
        calls: CallsSummary::default(),
        dump_events: 0,
        absent: Vec::new(),
        left_out: Vec::new(),
        command,
        duration: started.elapsed(),
    })
}

/// Where the kernel's events go, and who is told how far they are.
struct Written<'r> {
    staged: &'r StagedDir,
    progress: &'r Arc<Progress>,
    /// Stands for all readers until they stand for themselves.
    source: Source,
    /// Raised by whoever cannot go on.
    failed: &'r AtomicBool,
    /// Who is told of what is written.
    outlet: Option<Arc<dyn Outlet>>,
}

/// Records the kernel's events.
fn record_kernel(
    config: &RecordConfig,
    capabilities: &Capabilities,
    written: Written<'_>,
    (begin, offset): (Instant, i64),
    mut environment: Vec<(String, EnvValue)>,
) -> Result<Recorded> {
    let quotas = QuotaLog::begin();
    let (mut recorder, mut calls, refused) = start_recorders(config)?;
    let asked = (&config.filters[..], config.track.as_ref());
    environment.extend(environment::asked(&recorder.cpus(), asked));
    config.recording.store(true, Ordering::Release);
    let started = StdInstant::now();
    let dump = StateDump::collect_all(OfMemory {
        programs: false,
        ..config.of_memory()
    });
    let groups = Arc::new(ThreadGroups::new(dump.thread_groups()));
    let (staged, contexts) = (written.staged, config.contexts.on(capabilities));
    let recorders = (&recorder, calls.as_mut());
    let says = (environment, (begin, offset));
    let names = channel_names(&config.channels);
    let mut trace = create_trace(&written, (&contexts, names), recorders, says)?;
    let absent = recorder.absent().to_vec();
    let left_out = recorder.left_out();
    let tracked = config.track.as_ref().map(|_| recorder.tracked());
    let tracked = (begin, tracked.transpose()?);
    let (mut dumped, dump_events) = begin_dump(&mut trace, &dump, tracked)?;
    let begin_raw = || {
        let facts = RawFacts::new(trace.uuid(), &contexts, (begin, offset));
        let facts = facts.of(&recorder.cpus(), dump.thread_groups());
        facts.begin(staged.path(), &recorder.formats())
    };
    let raw = config.raw.then(begin_raw).transpose()?;
    let (instances, rings) = recorder.parts();
    let lanes = match &raw {
        Some(_) => Lanes::raw(rings, staged.path())?,
        None => Lanes::ctf(rings, &mut trace, &groups, begin)?,
    };
    let of_functions = (&instances[..], !config.functions.is_empty());
    let tracker = |track| Tracker::new(track, of_functions, calls.as_ref());
    let mut tracked = Tracked {
        tracker: config.track.as_ref().map(tracker).transpose()?,
        quotas,
        programs: config.of_memory().programs.then(ProgramLog::default),
        told: 0,
        trace: &trace,
        dumped: &mut dumped,
    };
    let readers = (lanes, calls);
    let tasks = (capabilities, &mut tracked);
    let (ran, command, ended) = run(config, &instances, readers, tasks, &written)?;
    let dump_events = dump_events + tracked.end()?;
    let (cpus, mut calls) = ran;
    let (of_raw, cpus): (Vec<_>, Vec<_>) = cpus.into_iter().unzip();
    if let Some(facts) = raw {
        facts.end(staged.path(), of_raw.into_iter().flatten().collect())?;
    }
    calls.refused = refused.map(|error| format!("{error:#}"));
    end_trace(staged.path(), dumped)?;
    Ok(Recorded {
        cpus,
        calls,
        dump_events,
        absent,
        left_out,
        command,
        duration: ended - started,
    })
}

/// Begins the trace, and the streams of system calls.
fn create_trace(
    written: &Written<'_>,
    (contexts, channels): (&KernelContexts, Vec<String>),
    (recorder, calls): (&Channels, Option<&mut SyscallRecorder>),
    (environment, (begin, offset)): (Vec<(String, EnvValue)>, (Instant, i64)),
) -> Result<KernelTrace> {
    let classes = KernelClasses::compile(&recorder.formats()).carrying(contexts);
    let classes = classes.in_channels(channels);
    let of_calls = calls.as_ref().map_or(&[][..], |calls| calls.classes());
    let (root, classes) = (written.staged.path(), (Arc::new(classes), of_calls));
    let mut trace = KernelTrace::create(root, classes, environment, offset, false)?;
    trace.tell(written.outlet.clone());
    if let Some(calls) = calls {
        let (streams, first_class) = trace.calls(&recorder.cpus())?;
        calls.write_to(streams, first_class, begin)?;
    }
    Ok(trace)
}

/// Ends the stream of state dumps, and writes what the kernel's functions are called.
fn end_trace(root: &Path, mut dumped: StreamWriter) -> Result<()> {
    // To the end, so that the intersection of all streams stays what was recorded.
    dumped.covers(clock::monotonic().max(dumped.end()))?;
    dumped.finish()?;
    let own = SharedFunctions::default();
    functions::write_functions(root, &functions::kernel_functions(), &own)
}

/// Begins the stream of state dumps: with those whose events alone are recorded, where not
/// everybody's are, and with the tables. Gives how many events these are.
fn begin_dump(
    trace: &mut KernelTrace,
    dump: &StateDump,
    (begin, tracked): (Instant, Option<Vec<Tid>>),
) -> Result<(StreamWriter, u64)> {
    let mut dumped = trace.open_dump(begin.min(dump.begin))?;
    if let Some(tasks) = tracked {
        trace.tracked(&mut dumped, (begin, &tasks))?;
    }
    let events = trace.dump(&mut dumped, dump)?;
    // At once: who is killed, or has no more room, leaves a trace that knows the tasks.
    dumped.gap()?;
    Ok((dumped, events))
}

pub(crate) type Started = (Channels, Option<SyscallRecorder>, Option<Error>);

/// ftrace's recorders, and that of system calls when any are wanted and this kernel can.
/// Else also why not.
pub(crate) fn start_recorders(config: &RecordConfig) -> Result<Started> {
    let tracefs = Tracefs::find()?;
    let probes = (!config.probes.is_empty())
        .then(|| Probes::install(&tracefs, &config.probes))
        .transpose()?;
    let tracked = config.track.as_ref().map(Track::first).transpose()?;
    let mut events = with_probes(&config.events, probes.as_ref());
    if tracked.is_some() && config.channels.is_empty() {
        // A trace has to say who joins those that are tracked.
        events = events.with(FORK);
    }
    let recorder_config = |without| RecorderConfig {
        events: events.clone(),
        buffer_bytes_per_cpu: config.buffer_bytes_per_cpu,
        mode: Mode::Stream,
        stop_trigger: None,
        cpus: config.cpus.clone(),
        filters: config.filters.clone(),
        without,
        functions: config.functions.clone(),
        tracked: tracked.clone(),
        contexts: config.contexts.clone(),
    };
    let available = tracefs.available_events()?;
    let first = config.has_first.then_some(&events);
    let mut division = Division::of(first, &config.channels, &available)?;
    if tracked.is_some() {
        channels::with_fork(&mut division, &available);
    }
    let start = |without| Channels::start(&recorder_config(without), &config.channels, &division);
    let is_filtered = |event: &EventName| config.filters.iter().any(|(of, _)| of == event);
    let wanted = Wanted::of(&division.all(), &available, is_filtered);
    let is_asked = wanted.is_some();
    let waits = || (config.has_first && events.has_default()).then(Wanted::waits);
    let Some(wanted) = wanted.or_else(waits) else {
        return Ok((start(BTreeSet::new())?.with_probes(probes), None, None));
    };
    let recorders = start(wanted.events.clone())?;
    let bytes = (&config.channels[..], config.buffer_bytes_per_cpu);
    let bytes = channels::calls_bytes(bytes, &division, &wanted.events);
    let cpus = recorders.cpus();
    let whose = (config.own_calls, tracked.clone());
    match SyscallRecorder::start(wanted, &config.contexts, (&cpus, bytes), whose) {
        Ok(calls) => Ok((recorders.with_probes(probes), Some(calls), None)),
        Err(error) if is_asked && error.kind() == ErrorKind::StorageFull => Err(error),
        // What reads the trace says what it cannot tell without.
        Err(_) if !is_asked => Ok((recorders.with_probes(probes), None, None)),
        // ftrace has their numbers, and no more.
        Err(refused) => {
            drop(recorders);
            let recorders = start(BTreeSet::new())?;
            Ok((recorders.with_probes(probes), None, Some(refused)))
        }
    }
}

/// What was asked for, and the events of probes.
pub(crate) fn with_probes(events: &EventSelection, probes: Option<&Probes>) -> EventSelection {
    let of_probes = probes.map(Probes::events).unwrap_or_default().iter();
    of_probes.fold(events.clone(), |all, event| all.with(&event.to_string()))
}

type Ran = ((Vec<Read>, CallsSummary), Option<CommandEnd>, StdInstant);

/// Starts readers and command, waits for the end, stops the rings, gathers what was written.
fn run(
    config: &RecordConfig,
    instances: &[&Instance],
    (lanes, calls): (Lanes<'_>, Option<SyscallRecorder>),
    (capabilities, tracked): (&Capabilities, &mut Tracked<'_>),
    written: &Written<'_>,
) -> Result<Ran> {
    // Raised when events no longer come in: the readers empty the rings a last time.
    let drained = AtomicBool::new(false);
    let cpus = housekeeping::cpus(&capabilities.machine, config.cpus.as_deref());
    std::thread::scope(|scope| {
        let readers: Vec<_> = lanes
            .shares(cpus.len().clamp(1, READERS_MAX))
            .into_iter()
            .map(|share| {
                let (drained, failed, cpus) = (&drained, written.failed, &cpus);
                let progress = (Arc::clone(written.progress), written.progress.source());
                scope.spawn(move || {
                    housekeeping::pin(cpus);
                    let result = share.read(progress, drained);
                    if result.is_err() {
                        failed.store(true, Ordering::Release);
                    }
                    result
                })
            })
            .collect();
        let calls = calls.map(|calls| {
            let (drained, failed, cpus) = (&drained, written.failed, &cpus);
            let progress = (Arc::clone(written.progress), written.progress.source());
            scope.spawn(move || {
                housekeeping::pin(cpus);
                let result = calls.read_until(drained, progress, None);
                if result.is_err() {
                    failed.store(true, Ordering::Release);
                }
                result
            })
        });
        written.progress.over(written.source)?;
        let root = Some(written.staged.path());
        let waited = wait(config, (written.failed, root), Some(tracked));
        let stopped = channels::stop(instances);
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
        let calls = match calls.map(ScopedJoinHandle::join) {
            None => Ok(CallsSummary::default()),
            Some(Ok(calls)) => calls,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        };
        if let Some(error) = first_error {
            return Err(error);
        }
        stopped?;
        records.sort_by_key(|(_, record)| (record.channel, record.written.cpu));
        Ok(((records, calls?), waited?, ended))
    })
}

/// Waits for the first of: duration over, command ended, flag raised, reader failed; `root` is the
/// folder that is written to.
fn wait(
    config: &RecordConfig,
    (failed, root): (&AtomicBool, Option<&Path>),
    mut tracked: Option<&mut Tracked<'_>>,
) -> Result<Option<CommandEnd>> {
    if let (Some(words), true) = (&config.command, config.stop.load(Ordering::Acquire)) {
        return Err(stopped_before(words));
    }
    (config.begun)(config);
    let tracker = tracked
        .as_ref()
        .and_then(|tracked| tracked.tracker.as_ref());
    let started_at = clock::monotonic();
    let start = |words| start_command(words, tracker);
    let mut child = config.command.as_deref().map(start).transpose()?;
    if let (Some(tracked), Some(child)) = (&mut tracked, &child) {
        tracked.write_command(started_at, child)?;
    }
    let limit = config
        .duration
        .map(|limit| StdDuration::from_nanos(limit.as_ns_unsigned()));
    let begin = StdInstant::now();
    let mut looked = begin;
    loop {
        if let Some(root) = root.filter(|_| looked.elapsed() >= FOLDER_PERIOD) {
            looked = StdInstant::now();
            if !root.is_dir() {
                return Err(folder_is_gone(config));
            }
        }
        if let Some(child) = &mut child {
            let status = child.try_wait();
            let status = status.map_err(|error| Error::io("cannot wait for the command", error))?;
            if let Some(status) = status {
                return Ok(Some(CommandEnd::Ended(status)));
            }
        }
        let over = limit.is_some_and(|limit| begin.elapsed() >= limit);
        if over || config.stop.load(Ordering::Acquire) || failed.load(Ordering::Acquire) {
            // The command goes on without us: it is the user's, and only recording is over.
            return Ok(child.map(|child| CommandEnd::GoesOn(child.id())));
        }
        if let Some(tracked) = &mut tracked {
            tracked.look()?;
        }
        let left = limit.map_or(POLL_PERIOD, |limit| limit.saturating_sub(begin.elapsed()));
        std::thread::sleep(left.min(POLL_PERIOD));
    }
}

/// What is still recorded goes nowhere.
fn folder_is_gone(config: &RecordConfig) -> Error {
    let what = "the folder that the recording writes to was removed: nothing is left of it";
    Error::new(ErrorKind::NotFound, what)
        .found(config.output.display().to_string())
        .fix("record again, and give -o a folder that stays")
}

/// Whoever asked to stop wants no command to be started any more, and there is nothing without it.
fn stopped_before(words: &[OsString]) -> Error {
    let program = words.first().map(|word| word.to_string_lossy());
    let what = "asked to stop before the command was started: nothing was recorded";
    Error::new(ErrorKind::Interrupted, what)
        .found(format!("'{}' did not run", program.unwrap_or_default()))
        .fix("give it longer: a recording takes a moment to begin")
}

fn start_command(words: &[OsString], tracker: Option<&Tracker<'_>>) -> Result<Child> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Error::new(ErrorKind::InvalidInput, "no command after '--'")
            .fix("rtscope record -- COMMAND"));
    };
    let mut command = Command::new(program);
    descriptors::with_given_limit(command.args(arguments));
    let spawned = match tracker {
        Some(tracker) => tracker.spawn(&mut command),
        None => command.spawn(),
    };
    spawned.map_err(|error| {
        let what = format!("cannot start '{}'", program.to_string_lossy());
        Error::io(what, error).fix("check the command's name and its path")
    })
}
