//! Where a session's requests come in: who answers them, and when it ends.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use event::{Cpu, Error, ErrorKind, Result};
use relay::{Delivered, Delivery};

use super::SessionConfig;
use super::archive::Archive;
use super::book::Book;
use super::status::{
    ArchiveFacts, CallsStatus, CpuStatus, Refusal, SessionState, SessionStatus, StreamStatus,
    UserStatus,
};
use super::talk::{Asked, Reply, Request};
use crate::channels::{self, RingId};
use crate::turn::{Fill, Fills};
use crate::user::UserFigures;
use crate::{RecordConfig, clock, stream};

/// Between two looks at whether to end.
const TICK: StdDuration = StdDuration::from_millis(50);

/// What changes while a session runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub cpus: Vec<CpuStatus>,
    pub calls: Option<CallsStatus>,
    pub user: Option<UserStatus>,
    /// Events and losses of what is no archive yet.
    pub events: u64,
    pub lost: u64,
    pub writing: Option<PathBuf>,
    pub writing_bytes: u64,
}

/// What could not be done.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The session goes on as it was.
    Refused(Error),
    /// It cannot go on.
    Fatal(Error),
}

/// Whoever records.
pub(super) trait Engine {
    /// How it is.
    fn figures(&mut self) -> Figures;

    /// Does what was asked.
    fn act(
        &mut self,
        request: Request,
        desk: &mut Desk<'_>,
    ) -> Result<Option<ArchiveFacts>, Trouble>;

    /// Does what is due.
    fn tick(&mut self, desk: &mut Desk<'_>) -> Result<(), Trouble>;
}

type Ready<'c> = Box<dyn FnOnce(&SessionStatus) + 'c>;

/// Where requests come in.
pub(super) struct Desk<'c> {
    pub config: &'c SessionConfig,
    asked: Receiver<Asked>,
    /// Who asked it to stop, and is told when it has.
    stoppers: Vec<Sender<Reply>>,
    pub book: Book,
    begin: StdInstant,
    begin_wall_ns: i64,
    pub error: Option<Refusal>,
    is_ready: bool,
    ready: Option<Ready<'c>>,
    /// As they were last.
    figures: Figures,
    /// Whose events alone are recorded; nobody is named where all are.
    pub tracks: Vec<String>,
    /// To another host.
    delivery: Option<Delivery>,
    delivered: Option<Delivered>,
}

impl<'c> Desk<'c> {
    /// Of requests that come from `asked`; what goes to another host does so on `cpus`.
    pub fn new(
        config: &'c SessionConfig,
        cpus: Vec<Cpu>,
        asked: Receiver<Asked>,
        ready: Ready<'c>,
    ) -> Result<Desk<'c>> {
        let book = Book::open(&config.output, config.keep)?;
        let to = config.record.to.as_ref();
        let delivery = to.map(|to| stream::start(to, &config.output, cpus));
        Ok(Desk {
            config,
            asked,
            stoppers: Vec::new(),
            book,
            begin: StdInstant::now(),
            begin_wall_ns: clock::wall_ns(),
            error: None,
            is_ready: false,
            ready: Some(ready),
            figures: Figures::default(),
            tracks: config
                .record
                .track
                .as_ref()
                .map_or(Vec::new(), |track| track.words.clone()),
            delivery: delivery.transpose()?,
            delivered: None,
        })
    }

    /// Begins the next archive.
    pub fn next_archive(&mut self) -> Result<Archive> {
        let to = self.delivery.as_ref().map(|to| (to, &self.config.name));
        Archive::create(self.book.next_archive(clock::wall_ns()), to)
    }

    /// Waits until the other host has everything.
    pub fn deliver(&mut self) {
        let stop = &self.config.record.stop;
        let delivery = self.delivery.take();
        self.delivered = delivery.map(|delivery| {
            // Who asked for the end by a signal asks for it once.
            let is_asked = stop.swap(false, Ordering::AcqRel);
            let is_enough = || stop.load(Ordering::Acquire) && is_asked;
            delivery.finish(stream::PATIENCE, is_enough)
        });
    }

    /// How far the other host is.
    fn stream(&self) -> Option<StreamStatus> {
        match (&self.delivery, &self.delivered) {
            (Some(delivery), _) => Some(StreamStatus::of(delivery)),
            (None, Some(delivered)) => Some(StreamStatus::ended(delivered)),
            (None, None) => None,
        }
    }

    /// When it began, by the wall clock of then.
    pub fn begin_wall_ns(&self) -> i64 {
        self.begin_wall_ns
    }

    /// Whether all that was asked for was recorded at some time.
    pub fn was_ready(&self) -> bool {
        self.is_ready
    }

    /// Answers and lets `engine` work until somebody stops it, its time is over, or one of its
    /// threads has raised `failed`.
    ///
    /// # Errors
    /// Why it cannot go on.
    pub fn run(&mut self, engine: &mut dyn Engine, failed: &AtomicBool) -> Result<()> {
        self.is_ready = true;
        self.figures = engine.figures();
        if let Some(ready) = self.ready.take() {
            ready(&self.status(self.going()));
        }
        let record = &self.config.record;
        let limit = record
            .duration
            .map(|limit| StdDuration::from_nanos(limit.as_ns_unsigned()));
        loop {
            match self.asked.recv_timeout(TICK) {
                Ok(asked) if asked.request == Request::Stop => {
                    self.stoppers.push(asked.reply);
                    self.figures = engine.figures();
                    return Ok(());
                }
                Ok(asked) => self.answer(engine, asked)?,
                Err(RecvTimeoutError::Timeout) => (),
                // Nobody listens any more: it goes on until a signal ends it.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
            }
            let is_over = limit.is_some_and(|limit| self.begin.elapsed() >= limit);
            if is_over || record.stop.load(Ordering::Acquire) {
                self.figures = engine.figures();
                return Ok(());
            }
            if failed.load(Ordering::Acquire) {
                self.figures = engine.figures();
                let what = "the recording could not go on";
                return Err(Error::new(ErrorKind::Interrupted, what));
            }
            match engine.tick(self) {
                Ok(()) => (),
                Err(Trouble::Refused(error)) => self.error = Some(Refusal::from(&error)),
                Err(Trouble::Fatal(error)) => return Err(error),
            }
        }
    }

    fn answer(&mut self, engine: &mut dyn Engine, asked: Asked) -> Result<()> {
        let mut refused = None;
        let mut fatal = Ok(());
        let mut wrote = None;
        if asked.request != Request::Status {
            match engine.act(asked.request.clone(), self) {
                Ok(written) => wrote = written,
                Err(Trouble::Refused(error)) => refused = Some(Refusal::from(&error)),
                Err(Trouble::Fatal(error)) => {
                    refused = Some(Refusal::from(&error));
                    fatal = Err(error);
                }
            }
        }
        self.figures = engine.figures();
        let status = self.status(self.going());
        // Who went away needs no answer.
        let _ = asked.reply.send(Reply {
            status,
            wrote,
            refused,
        });
        fatal
    }

    fn going(&self) -> SessionState {
        match self.config.flight {
            true => SessionState::Flight,
            false => SessionState::Recording,
        }
    }

    fn status(&self, state: SessionState) -> SessionStatus {
        let record = &self.config.record;
        let figures = &self.figures;
        SessionStatus {
            name: self.config.name.to_string(),
            state,
            is_flight: self.config.flight,
            pid: std::process::id(),
            begin_wall_ns: self.begin_wall_ns,
            running_ns: self.begin.elapsed().as_nanos() as u64,
            output: self.config.output.clone(),
            buffer_bytes_per_cpu: match record.kernel {
                true => record.buffer_bytes_per_cpu as u64,
                false => 0,
            },
            cpus: figures.cpus.clone(),
            tracks: self.tracks.clone(),
            system_calls: figures.calls,
            user: figures.user,
            stream: self.stream(),
            events: figures.events,
            lost: figures.lost,
            writing: figures.writing.clone(),
            writing_bytes: figures.writing_bytes,
            archives: self.archives(),
            removed: self.book.removed,
            error: self.error.clone(),
        }
    }

    /// Archives that nobody took away; those on another host are not looked for.
    fn archives(&self) -> Vec<ArchiveFacts> {
        let is_there =
            |facts: &&ArchiveFacts| self.config.record.to.is_some() || facts.path.is_dir();
        let all = self.book.archives.iter();
        all.filter(is_there).cloned().collect()
    }

    /// What could not go on says so until somebody stops it.
    pub fn wait_to_be_stopped(&mut self) {
        if !self.stoppers.is_empty() {
            return;
        }
        self.figures.writing = None;
        if !self.config.flight {
            self.take_from_book();
        }
        let stop = &self.config.record.stop;
        while !stop.load(Ordering::Acquire) {
            match self.asked.recv_timeout(TICK) {
                Ok(asked) if asked.request == Request::Stop => {
                    self.stoppers.push(asked.reply);
                    return;
                }
                Ok(asked) => {
                    let refused = match asked.request {
                        Request::Status => None,
                        _ => self.error.clone(),
                    };
                    // Who went away needs no answer.
                    let _ = asked.reply.send(Reply {
                        status: self.status(SessionState::Failed),
                        wrote: None,
                        refused,
                    });
                }
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
            }
        }
    }

    /// What was read of applications until the very end, behind the last look.
    pub fn user_ended(&mut self, figures: Option<UserFigures>) {
        self.figures.user = figures.as_ref().map(user_status);
    }

    /// What its archives hold is what counts, once it has ended.
    fn take_from_book(&mut self) {
        self.figures.events = self.book.events;
        self.figures.lost = self.book.lost;
    }

    /// Tells all who wait that it has ended.
    pub fn answer_all(&mut self, state: SessionState) {
        self.figures.writing = None;
        if !self.config.flight || state != SessionState::Failed {
            self.take_from_book();
        }
        let status = self.status(state);
        let late = self.asked.try_iter().map(|asked| {
            let is_stop = matches!(asked.request, Request::Stop | Request::Status);
            (asked.reply, is_stop)
        });
        let stoppers = std::mem::take(&mut self.stoppers);
        let stoppers = stoppers.into_iter().map(|reply| (reply, true));
        for (reply, is_content) in stoppers.chain(late) {
            let stopped = || Refusal {
                what: format!("the session {} was stopped meanwhile", self.config.name),
                found: None,
                fix: Some(format!("rtscope record start {}", self.config.name)),
                is_there: false,
            };
            let _ = reply.send(Reply {
                status: status.clone(),
                wrote: None,
                refused: (!is_content).then(stopped),
            });
        }
    }
}

/// How full the rings of a recording's channels are.
pub(super) fn cpu_status(fills: &Fills, record: &RecordConfig) -> Vec<CpuStatus> {
    let first_bytes = record.buffer_bytes_per_cpu;
    let status = |(ring, fill): (&RingId, &Fill)| {
        let bytes = channels::buffer_bytes(&record.channels, ring.channel, first_bytes);
        let percent = |part: u64| (part as f64 * 100.0 / bytes.max(1) as f64).min(100.0);
        CpuStatus {
            channel: record.channel_name(ring.channel).to_owned(),
            buffer_bytes: bytes as u64,
            cpu: ring.cpu.0,
            filled_percent: percent(fill.now_bytes),
            fullest_percent: percent(fill.most_bytes),
            events: fill.offered,
            lost: fill.lost,
        }
    };
    fills.all().iter().map(status).collect()
}

/// The same of applications.
pub(super) fn user_status(figures: &UserFigures) -> UserStatus {
    UserStatus {
        processes: figures.processes,
        events: figures.events,
        lost: figures.lost,
        filled_percent: figures.fullest * 100.0,
        fullest_percent: figures.fullest_ever * 100.0,
    }
}
