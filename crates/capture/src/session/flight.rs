//! A session in flight: the rings of the kernel and of applications keep their newest events, and a
//! snapshot writes what they hold.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use event::{Error, ErrorKind, Instant, Result, TimeRange};
use ftrace::Tracefs;
use host::capabilities::Capabilities;

use super::book::stream_bytes;
use super::desk::{Desk, Engine, Figures, Trouble, cpu_status, user_status};
use super::status::ArchiveFacts;
use super::talk::Request;
use crate::channels::RingId;
use crate::pages::History;
use crate::probes::Probes;
use crate::record::with_probes;
use crate::recorder::{Mode, Recorder, RecorderConfig};
use crate::snapshot::{Seen, SnapshotFacts, write_snapshot};
use crate::turn::Fills;
use crate::user::{self, Held, UserRecorder, UserTarget, Whose};
use crate::{RecordConfig, clock, housekeeping};

/// Keeps the newest events until the desk says that it is over.
///
/// # Errors
/// Why it could not begin, or could not go on.
pub(super) fn run(desk: &mut Desk<'_>, capabilities: &Capabilities) -> Result<()> {
    let record = &desk.config.record;
    let failed = Arc::new(AtomicBool::new(false));
    let cpus = housekeeping::cpus(&capabilities.machine, record.cpus.as_deref());
    let target = UserTarget::in_flight(cpus, Arc::clone(&failed));
    let user = record.user.as_ref();
    let user = user.map(|user| UserRecorder::start(user, target));
    let user = user.transpose()?;
    let ran = Flight::start(desk, capabilities, user.as_ref())
        .and_then(|mut flight| desk.run(&mut flight, &failed));
    // Also after an error: no process may be left switched on.
    let finished = user.map(UserRecorder::finish).transpose();
    ran.and(finished.map(|_| ()))
}

struct Flight<'s> {
    kernel: Option<OfKernel>,
    record: &'s RecordConfig,
    user: Option<&'s UserRecorder>,
    /// What was recorded before is forgotten.
    cleared: Instant,
}

struct OfKernel {
    recorder: Recorder,
    /// What snapshots took out of the rings, for those that come soon behind.
    history: History,
    history_bytes: usize,
    facts: SnapshotFacts,
    fills: Fills,
}

impl<'s> Flight<'s> {
    fn start(
        desk: &Desk<'s>,
        capabilities: &Capabilities,
        user: Option<&'s UserRecorder>,
    ) -> Result<Flight<'s>> {
        let config = desk.config;
        let record = &config.record;
        let start = || -> Result<OfKernel> {
            let probes = (!record.probes.is_empty())
                .then(|| Probes::install(&Tracefs::find()?, &record.probes))
                .transpose()?;
            let recorder = Recorder::start(&RecorderConfig {
                events: with_probes(&record.events, probes.as_ref()),
                buffer_bytes_per_cpu: record.buffer_bytes_per_cpu,
                mode: Mode::Overwrite,
                cpus: record.cpus.clone(),
                filters: record.filters.clone(),
                functions: record.functions.clone(),
                contexts: record.contexts.clone(),
                ..RecorderConfig::default()
            })?;
            let recorder = recorder.with_probes(probes);
            let facts = SnapshotFacts::collect(capabilities, &config.command_line);
            let facts = facts.share_functions(&config.output);
            let facts = facts.with_filters(&record.filters);
            let facts = facts.with_contexts(record.contexts.on(capabilities));
            // What the last snapshot took, and as much again that came since.
            let history_bytes = recorder.drains_bytes(2);
            Ok(OfKernel {
                recorder,
                history: History::new(history_bytes),
                history_bytes,
                facts: facts.with_rings(record.user.as_ref().zip(user)),
                fills: Fills::default(),
            })
        };
        Ok(Flight {
            kernel: record.kernel.then(start).transpose()?,
            record,
            user,
            cleared: Instant::MIN,
        })
    }

    fn snapshot(&mut self, desk: &mut Desk<'_>) -> Result<ArchiveFacts> {
        let wall_ns = clock::wall_ns();
        let path = desk.book.next_snapshot(wall_ns);
        let facts = match &mut self.kernel {
            Some(kernel) => kernel.snapshot(path, self.cleared)?,
            None => {
                let directory = desk.config.record.user.as_ref();
                let directory = directory.and_then(|user| user.directory());
                let held = Held {
                    directory,
                    since: self.cleared,
                    recorder: self.user.map(UserRecorder::id),
                };
                let looked = user::look_at(&path, &held, Whose::All, false)?;
                ArchiveFacts {
                    size_bytes: stream_bytes(&looked.path),
                    path: looked.path,
                    begin_wall_ns: wall_ns,
                    end_wall_ns: wall_ns,
                    events: looked.user.events(),
                    lost: looked.user.lost(),
                }
            }
        };
        desk.book.add(facts.clone())?;
        Ok(facts)
    }

    fn clear(&mut self) -> Result<()> {
        self.cleared = clock::monotonic();
        match &mut self.kernel {
            Some(kernel) => {
                kernel.drain()?;
                kernel.history = History::new(kernel.history_bytes);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl OfKernel {
    /// Takes what the rings hold, which run on meanwhile.
    fn drain(&mut self) -> Result<Instant> {
        let now = clock::monotonic();
        self.history.push(self.recorder.drain(now)?);
        Ok(now)
    }

    fn snapshot(&mut self, path: PathBuf, cleared: Instant) -> Result<ArchiveFacts> {
        let end = self.drain()?;
        self.facts.refresh();
        self.facts.since(cleared);
        let all = TimeRange {
            begin: cleared,
            end,
        };
        let pages = self.history.overlapping(all);
        let formats = self.recorder.formats();
        let written = write_snapshot(&path, &pages, &formats, &Seen::default(), &self.facts)?;
        let windows: Vec<_> = written.cpus.iter().filter_map(|cpu| cpu.window).collect();
        let offset_ns = clock::wall_offset_ns();
        let begin = windows.iter().map(|window| window.begin).min();
        let end = windows.iter().map(|window| window.end).max();
        let wall = |at: Option<Instant>| {
            let at = at.unwrap_or_else(clock::monotonic);
            at.as_ns().saturating_add(offset_ns)
        };
        Ok(ArchiveFacts {
            size_bytes: stream_bytes(&written.path),
            begin_wall_ns: wall(begin),
            end_wall_ns: wall(end),
            events: written.events().saturating_add(written.user.events()),
            lost: written.discarded().saturating_add(written.user.lost()),
            path: written.path,
        })
    }
}

impl Engine for Flight<'_> {
    fn figures(&mut self) -> Figures {
        let mut figures = Figures::default();
        if let Some(kernel) = &mut self.kernel {
            // Counters that cannot be read now stay as they were.
            for counted in kernel.recorder.statistics().unwrap_or_default() {
                if let Some(cpu) = counted.cpu {
                    kernel.fills.note(RingId { channel: 0, cpu }, &counted);
                }
            }
            figures.cpus = cpu_status(&kernel.fills, self.record);
            figures.events = figures.cpus.iter().map(|cpu| cpu.events).sum();
        }
        figures.user = self.user.map(|user| user_status(&user.figures()));
        figures
    }

    fn act(
        &mut self,
        request: Request,
        desk: &mut Desk<'_>,
    ) -> Result<Option<ArchiveFacts>, Trouble> {
        match request {
            // Rings that hold nothing, a disk that is full: the next snapshot may be written.
            Request::Snapshot => self.snapshot(desk).map(Some).map_err(Trouble::Refused),
            Request::Clear => self.clear().map(|()| None).map_err(Trouble::Fatal),
            Request::Rotate | Request::Dump => {
                let what = "a session in flight writes nothing by itself";
                let error = Error::new(ErrorKind::Unsupported, what)
                    .found("it keeps the newest events, and snapshots have a state dump each")
                    .fix(format!("rtscope record snapshot {}", desk.config.name));
                Err(Trouble::Refused(error))
            }
            Request::Track(_) | Request::Untrack(_) => {
                let what = "a session in flight keeps everybody's events";
                let error = Error::new(ErrorKind::Unsupported, what)
                    .found("it tracks nobody alone")
                    .fix("start one without --flight, and with --track");
                Err(Trouble::Refused(error))
            }
            Request::Status | Request::Stop => Ok(None),
        }
    }

    fn tick(&mut self, _desk: &mut Desk<'_>) -> Result<(), Trouble> {
        Ok(())
    }
}
