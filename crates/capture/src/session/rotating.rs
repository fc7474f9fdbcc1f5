//! A session that writes: one archive after the other, without an event lost between them.
//!
//! At a turn each reader gets streams that take over at one instant: what happened before it goes
//! to the archive before, whenever it is read. Applications turn where their rings are read then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use event::{Error, ErrorKind, Instant, Result};
use host::capabilities::Capabilities;

use super::SessionConfig;
use super::archive::{Archive, Functions, Got, OfKernel};
use super::book::stream_bytes;
use super::desk::{Desk, Engine, Figures, Trouble, cpu_status, user_status};
use super::status::{ArchiveFacts, CallsStatus};
use super::talk::Request;
use super::threads::{Readers, Written};
use crate::RecordConfig;
use crate::channels::{self, Channels, channel_names};
use crate::kernel_ctf::{KernelClasses, ThreadGroups};
use crate::quotas::QuotaLog;
use crate::record::start_recorders;
use crate::statedump::StateDump;
use crate::syscalls::SyscallRecorder;
use crate::track::{self, Leaving, Tracker};
use crate::turn::{Ended, Fills, Turn};
use crate::user::{UserRecorder, UserSummary, UserTarget, UserTurn};
use crate::{clock, housekeeping};

/// How often the size of the present archive is looked at.
const SIZE_PERIOD: StdDuration = StdDuration::from_millis(500);

/// Records until the desk says that it is over.
///
/// # Errors
/// Why it could not begin, or could not go on; what was recorded until then is kept.
pub(super) fn run(desk: &mut Desk<'_>, capabilities: &Capabilities) -> Result<()> {
    let record = &desk.config.record;
    let mut archive = desk.next_archive()?;
    let failed = Arc::new(AtomicBool::new(false));
    let target = UserTarget {
        failed: Arc::clone(&failed),
        progress: record.user.is_some().then(|| archive.progress()),
        root: archive.root().to_owned(),
        trace_name: archive.name(),
        outlet: archive.outlet(),
        wall_offset_ns: archive.wall_offset_ns,
        begin: archive.begin,
        cpus: housekeeping::cpus(&capabilities.machine, record.cpus.as_deref()),
        in_flight: false,
    };
    let user = record.user.as_ref();
    let user = user.map(|user| UserRecorder::start(user, target));
    let user = user.transpose()?;
    let begun = match record.kernel {
        true => Kernel::start(desk.config, capabilities, &mut archive).map(Some),
        false => archive.dump(&StateDump::default()).map(|()| None),
    };
    let (ran, archive, mut got) = match begun {
        Ok(kernel) => {
            let session = Begun {
                archive,
                user: user.as_ref(),
                failed: &failed,
            };
            match kernel {
                Some(kernel) => kernel.run(desk, capabilities, session),
                None => session.run(desk),
            }
        }
        Err(error) => {
            if let Some(user) = user {
                // The first error is the one to be told.
                let _ = user.finish();
            }
            return Err(error);
        }
    };
    // Also after an error: no process may be left switched on.
    let shown = user.as_ref().map(UserRecorder::figures);
    let user = user.map(UserRecorder::finish).transpose();
    match ran.and(user) {
        Ok(user) => {
            let user = user.unwrap_or_default();
            desk.user_ended(shown.map(|shown| shown.ended(&user)));
            add_user(&mut got, &user);
            let ended = archive.finish(clock::monotonic(), got)?;
            ended.map_or(Ok(()), |facts| desk.book.add(facts))
        }
        Err(error) => {
            let is_gone = archive.is_gone();
            // Whatever failed first, that is why.
            let error = match is_gone {
                true => folder_is_gone(desk),
                false => error,
            };
            let left = archive.leave();
            if let Ok(Some(facts)) = &left {
                // The first error is the one to be told.
                let _ = desk.book.add(facts.clone());
            }
            Err(kept_until(left, is_gone, error))
        }
    }
}

fn add_user(got: &mut Got, user: &UserSummary) {
    got.add(user.events(), user.lost(), user.size_bytes());
}

/// An error that ended a session, with what was kept.
fn kept_until(left: Result<Option<ArchiveFacts>>, is_gone: bool, error: Error) -> Error {
    let cause = match error.value_found() {
        Some(found) => format!("{}: {found}", error.what()),
        None => error.what().to_owned(),
    };
    let kept = match left {
        Ok(Some(facts)) => format!("what came before is in {}", facts.path.display()),
        Ok(None) if is_gone => "its last archive is gone".to_owned(),
        Ok(None) => "its last archive was empty".to_owned(),
        Err(error) => error.to_string(),
    };
    let what = match error.kind() {
        ErrorKind::StorageFull => "the session ended when its disk was full",
        _ => "the session could not go on",
    };
    let fix = error.fixed_by().unwrap_or("stop it, and start it again");
    Error::new(error.kind(), what)
        .found(format!("{cause}; {kept}"))
        .fix(fix)
}

/// The kernel's part before its readers run.
struct Kernel<'a> {
    recorder: Channels,
    calls: Option<SyscallRecorder>,
    quotas: Option<QuotaLog>,
    of: OfKernel<'a>,
}

/// What a session begins with.
struct Begun<'a> {
    archive: Archive,
    user: Option<&'a UserRecorder>,
    failed: &'a Arc<AtomicBool>,
}

/// How a session ended, its last archive, and what that got so far.
type Over = (Result<()>, Archive, Got);

impl<'a> Kernel<'a> {
    fn start(
        config: &'a SessionConfig,
        capabilities: &'a Capabilities,
        archive: &mut Archive,
    ) -> Result<Kernel<'a>> {
        let quotas = QuotaLog::begin();
        let (recorder, mut calls, _refused) = start_recorders(&config.record)?;
        let dump = StateDump::collect_all(config.record.of_memory());
        let classes = KernelClasses::compile(&recorder.formats());
        let classes = classes.carrying(&config.record.contexts.on(capabilities));
        let classes = classes.in_channels(channel_names(&config.record.channels));
        let of = OfKernel {
            capabilities,
            command_line: &config.command_line,
            classes: Arc::new(classes),
            groups: Arc::new(ThreadGroups::new(dump.thread_groups())),
            calls: calls
                .as_ref()
                .map(|calls| calls.classes().to_vec())
                .unwrap_or_default(),
            cpus: recorder.cpus(),
            rings: recorder.rings(),
            filters: &config.record.filters,
            track: config.record.track.clone(),
            functions: Functions::read(&config.output),
            of_memory: config.record.of_memory(),
        };
        archive.begin_kernel(&of)?;
        if let (Some(calls), Some(trace)) = (&mut calls, archive.kernel()) {
            let (streams, first_class) = trace.calls(&of.cpus)?;
            calls.write_to(streams, first_class, archive.begin)?;
        }
        if of.track.is_some() {
            archive.tracked(archive.begin, &recorder.tracked()?)?;
        }
        archive.dump(&dump)?;
        Ok(Kernel {
            recorder,
            calls,
            quotas,
            of,
        })
    }

    /// Runs the readers and the desk; ends both.
    fn run(
        mut self,
        desk: &mut Desk<'_>,
        capabilities: &Capabilities,
        mut begun: Begun<'_>,
    ) -> Over {
        let (instances, rings) = self.recorder.parts();
        let fills = Fills::default();
        let (drained, failed) = (AtomicBool::new(false), begun.failed);
        let record = &desk.config.record;
        let cpus = housekeeping::cpus(&capabilities.machine, record.cpus.as_deref());
        let written = Written {
            fills: &fills,
            drained: &drained,
            failed,
            cpus: &cpus,
        };
        std::thread::scope(|scope| {
            let lanes = match written.lanes(rings, &mut begun.archive, &self.of) {
                Ok(lanes) => lanes,
                Err(error) => return (Err(error), begun.archive, Got::default()),
            };
            let calls = self.calls.take();
            let of_functions = (&instances[..], !record.functions.is_empty());
            let tracker = |track| Tracker::new(track, of_functions, calls.as_ref());
            let tracker = match record.track.as_ref().map(tracker).transpose() {
                Ok(tracker) => tracker,
                Err(error) => return (Err(error), begun.archive, Got::default()),
            };
            let readers = written.start(scope, (lanes, calls), &begun.archive);
            let mut session = Session {
                archive: begun.archive,
                user: begun.user,
                kernel: Some((&mut self.of, &readers)),
                tracker,
                leaving: Leaving::default(),
                quotas: self.quotas.take(),
                ended: Some(&readers.ended),
                fills: Some(&fills),
                record,
                failed,
                rotated: StdInstant::now(),
                sized: StdInstant::now(),
                size_bytes: 0,
                looked: StdInstant::now(),
            };
            let ran = desk.run(&mut session, failed);
            let stopped = channels::stop(&instances);
            let ran = ran.and(session.look_at_quotas(Instant::MAX));
            let archive = session.archive;
            drained.store(true, Ordering::Release);
            let mut got = Got::default();
            let joined = readers.join(&mut got);
            // What a reader says is why the desk ended.
            let ran = joined.and(ran).and(stopped);
            (ran, archive, got)
        })
    }
}

impl Begun<'_> {
    /// The same of applications alone.
    fn run(self, desk: &mut Desk<'_>) -> Over {
        let mut session = Session {
            archive: self.archive,
            user: self.user,
            kernel: None,
            tracker: None,
            leaving: Leaving::default(),
            quotas: None,
            ended: None,
            fills: None,
            record: &desk.config.record,
            failed: self.failed,
            rotated: StdInstant::now(),
            sized: StdInstant::now(),
            size_bytes: 0,
            looked: StdInstant::now(),
        };
        let ran = desk.run(&mut session, self.failed);
        (ran, session.archive, Got::default())
    }
}

/// A session that writes archives.
struct Session<'s, 'k> {
    archive: Archive,
    user: Option<&'s UserRecorder>,
    kernel: Option<(&'s mut OfKernel<'k>, &'s Readers<'s>)>,
    /// Looks for newcomers where some tasks alone are recorded.
    tracker: Option<Tracker<'s>>,
    /// Those of them who are to be recorded no more, in the next archive.
    leaving: Leaving,
    /// None where nobody knows whom quotas keep.
    quotas: Option<QuotaLog>,
    ended: Option<&'s Receiver<Ended>>,
    fills: Option<&'s Fills>,
    record: &'s RecordConfig,
    failed: &'s AtomicBool,
    /// When the last turn was, and when the size was last looked at.
    rotated: StdInstant,
    sized: StdInstant,
    size_bytes: u64,
    /// When it was looked for last.
    looked: StdInstant,
}

impl Engine for Session<'_, '_> {
    fn figures(&mut self) -> Figures {
        self.size_bytes = stream_bytes(self.archive.root());
        let mut figures = Figures {
            writing: Some(self.archive.path().to_owned()),
            writing_bytes: self.size_bytes,
            ..Figures::default()
        };
        if let Some(fills) = self.fills {
            let kernel = self.kernel.as_ref();
            figures.cpus = cpu_status(fills, self.record);
            figures.events = figures.cpus.iter().map(|cpu| cpu.events).sum();
            figures.lost = figures.cpus.iter().map(|cpu| cpu.lost).sum();
            let (calls, lost) = fills.calls();
            figures.events += calls;
            figures.lost += lost;
            let has_calls = kernel.is_some_and(|(of, _)| !of.calls.is_empty());
            figures.calls = has_calls.then_some(CallsStatus {
                events: calls,
                lost,
            });
        }
        if let Some(user) = self.user {
            let of_user = user_status(&user.figures());
            figures.events += of_user.events;
            figures.lost += of_user.lost;
            figures.user = Some(of_user);
        }
        figures
    }

    fn act(
        &mut self,
        request: Request,
        desk: &mut Desk<'_>,
    ) -> Result<Option<ArchiveFacts>, Trouble> {
        match request {
            Request::Rotate => self.rotate(desk, false),
            Request::Clear => self.rotate(desk, true),
            Request::Dump if self.kernel.is_none() => Err(Trouble::Refused(
                Error::new(
                    ErrorKind::Unsupported,
                    "a state dump is of the kernel's trace",
                )
                .found("the session records applications alone")
                .fix("start it with --events, as in --events default"),
            )),
            Request::Dump => {
                let dump = StateDump::collect_all(desk.config.record.of_memory());
                self.archive.dump(&dump).map_err(Trouble::Fatal)?;
                Ok(None)
            }
            Request::Track(words) => self.mean(desk, |known| track::with(known, &words)),
            Request::Untrack(words) => self.mean(desk, |known| track::without(known, &words)),
            Request::Snapshot => Err(Trouble::Refused(
                Error::new(
                    ErrorKind::Unsupported,
                    "this session writes all that it records",
                )
                .found("it is no flight recorder")
                .fix(format!(
                    "rtscope record rotate {} gives an archive of it",
                    desk.config.name
                )),
            )),
            Request::Status | Request::Stop => Ok(None),
        }
    }

    fn tick(&mut self, desk: &mut Desk<'_>) -> Result<(), Trouble> {
        if self.looked.elapsed() >= SIZE_PERIOD {
            self.looked = StdInstant::now();
            if self.archive.is_gone() {
                return Err(Trouble::Refused(folder_is_gone(desk)));
            }
        }
        if let Some(tracker) = &mut self.tracker {
            let newcomers = tracker.newcomers().map_err(Trouble::Fatal)?;
            if !newcomers.is_empty() {
                let told = self.archive.tracked(clock::monotonic(), &newcomers);
                told.map_err(Trouble::Fatal)?;
            }
        }
        if self.quotas.as_ref().is_some_and(QuotaLog::is_due) {
            self.look_at_quotas(Instant::MAX).map_err(Trouble::Fatal)?;
        }
        let every = desk.config.rotate_every;
        let every = every.map(|every| StdDuration::from_nanos(every.as_ns_unsigned()));
        let mut is_due = every.is_some_and(|every| self.rotated.elapsed() >= every);
        if let Some(limit) = desk.config.rotate_size_bytes
            && self.sized.elapsed() >= SIZE_PERIOD
        {
            self.sized = StdInstant::now();
            self.size_bytes = stream_bytes(self.archive.root());
            is_due |= self.size_bytes >= limit;
        }
        match is_due {
            true => self.rotate(desk, false).map(|_| ()),
            false => Ok(()),
        }
    }
}

impl Session<'_, '_> {
    /// Ends the archive, or throws it away, and goes on in another.
    fn rotate(
        &mut self,
        desk: &mut Desk<'_>,
        is_thrown_away: bool,
    ) -> Result<Option<ArchiveFacts>, Trouble> {
        // Also when it fails: what cannot be done now is not tried again at once.
        self.rotated = StdInstant::now();
        if self.archive.is_gone() {
            return Err(Trouble::Fatal(folder_is_gone(desk)));
        }
        // All that can be refused comes first: until the readers turn, nothing has changed.
        let mut next = self.begin_next(desk).map_err(Trouble::Refused)?;
        let mut got = Got::default();
        let at = self.turn(&mut next, &mut got).map_err(Trouble::Fatal)?;
        self.look_at_quotas(at).map_err(Trouble::Fatal)?;
        let ended = std::mem::replace(&mut self.archive, next);
        // What could not be done before is over.
        desk.error = None;
        if is_thrown_away {
            ended.forget();
            return Ok(None);
        }
        let ended = ended.finish(at, got).map_err(Trouble::Fatal)?;
        if let Some(facts) = &ended {
            desk.book.add(facts.clone()).map_err(Trouble::Refused)?;
        }
        Ok(ended)
    }

    /// Records from now on alone what those do that `change` makes of the words of now, in another
    /// archive: each says whose events it has.
    fn mean(
        &mut self,
        desk: &mut Desk<'_>,
        change: impl FnOnce(&[String]) -> Result<(Vec<String>, Vec<String>)>,
    ) -> Result<Option<ArchiveFacts>, Trouble> {
        let Some(tracker) = &mut self.tracker else {
            return Err(Trouble::Refused(track::nobody_alone(
                &desk.config.name.to_string(),
            )));
        };
        let track_of = |words: &[String]| (desk.config.track_of)(words);
        let meant = change(&tracker.track().words).and_then(|(words, gone)| {
            let (track, gone) = (track_of(&words)?, track_of(&gone)?);
            let leaving = tracker.mean(track.clone(), &gone)?;
            Ok((track, leaving))
        });
        let (track, leaving) = meant.map_err(Trouble::Refused)?;
        desk.tracks.clone_from(&track.words);
        if let Some((of, _)) = &mut self.kernel {
            of.track = Some(track);
        }
        self.leaving = leaving;
        let rotated = self.rotate(desk, false);
        // Behind the turn: the archive before has what they did to its end.
        let leaving = std::mem::take(&mut self.leaving);
        if let Some(tracker) = &self.tracker {
            tracker.leave(&leaving).map_err(Trouble::Fatal)?;
        }
        rotated
    }

    fn look_at_quotas(&mut self, until: Instant) -> Result<()> {
        match &mut self.quotas {
            Some(quotas) => self.archive.quotas(quotas, until),
            None => Ok(()),
        }
    }

    fn begin_next(&mut self, desk: &mut Desk<'_>) -> Result<Archive> {
        let mut next = desk.next_archive()?;
        if let Some((of, _)) = &mut self.kernel {
            of.functions.refresh(&desk.config.output);
            next.begin_kernel(of)?;
        }
        Ok(next)
    }

    /// Lets all readers turn to `next`; gives when.
    fn turn(&mut self, next: &mut Archive, got: &mut Got) -> Result<Instant> {
        let mut turns = Vec::new();
        if let Some((of, readers)) = &self.kernel {
            turns = readers.turns(next, of)?;
        }
        let at = clock::monotonic();
        let count = turns.len();
        for (desk, turn) in turns {
            // A reader that is gone has raised the flag.
            let _ = desk.send(Turn { at, ..turn });
        }
        if let Some(user) = self.user {
            let turn = UserTurn {
                root: next.root().to_owned(),
                trace_name: next.name(),
                outlet: next.outlet(),
                wall_offset_ns: next.wall_offset_ns,
                progress: next.progress(),
            };
            add_user(got, &user.turn_over(turn)?);
        }
        for _ in 0..count {
            match self.next_ended()? {
                Ended::Cpus(cpus) => cpus
                    .iter()
                    .for_each(|cpu| got.add(cpu.events, cpu.discarded, cpu.size_bytes)),
                Ended::Calls(calls) => got.add(calls.events, calls.lost, calls.size_bytes),
            }
        }
        let dump = match self.kernel {
            Some((ref of, _)) => StateDump::collect_all(of.of_memory),
            None => StateDump::default(),
        };
        next.begin = at;
        if let Some(tracker) = &self.tracker {
            let mut tracked = tracker.tracked()?;
            tracked.retain(|task| !self.leaving.has(*task));
            next.tracked(at, &tracked)?;
        }
        next.dump(&dump)?;
        Ok(at)
    }

    fn next_ended(&self) -> Result<Ended> {
        loop {
            let Some(ended) = self.ended else {
                return Err(readers_ended());
            };
            match ended.recv_timeout(SIZE_PERIOD) {
                Ok(ended) => return Ok(ended),
                Err(RecvTimeoutError::Timeout) if !self.failed.load(Ordering::Acquire) => (),
                Err(_) => return Err(readers_ended()),
            }
        }
    }
}

fn folder_is_gone(desk: &Desk<'_>) -> Error {
    let what = "the folder that the session writes to was removed";
    Error::new(ErrorKind::NotFound, what)
        .found(desk.config.output.display().to_string())
        .fix(format!(
            "rtscope record stop {0}, and start it again",
            desk.config.name
        ))
}

fn readers_ended() -> Error {
    let what = "the recording could not go on in another archive";
    Error::new(ErrorKind::Interrupted, what)
}
