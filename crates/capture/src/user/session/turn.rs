//! From one trace to the next while applications are recorded, and what is shown meanwhile.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use ctf::writer::Outlet;
use event::{Error, ErrorKind, Result};

use super::{PARTS, Session, UserRecorder, UserSummary};
use crate::clock;
use crate::progress::{Progress, Source};
use crate::user::forgotten;
use crate::user::metadata::Folders;
use crate::user::place::{Place, Read};

/// The trace that takes over.
pub(crate) struct UserTurn {
    pub root: PathBuf,
    pub trace_name: String,
    pub outlet: Option<Arc<dyn Outlet>>,
    pub wall_offset_ns: i64,
    pub progress: (Arc<Progress>, Source),
}

/// How a recording goes on, as of its last turn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct UserFigures {
    /// Processes that are recorded now.
    pub processes: u64,
    /// Events and losses of all so far.
    pub events: u64,
    pub lost: u64,
    /// The fill of the fullest ring, now and at most: 0 to 1.
    pub fullest: f64,
    pub fullest_ever: f64,
    /// Those of traces that are whole.
    pub(super) before: (u64, u64),
}

impl UserFigures {
    /// The same when the recorder has ended, and got `last` for the traces that were open.
    pub fn ended(self, last: &UserSummary) -> UserFigures {
        UserFigures {
            events: self.before.0.saturating_add(last.events()),
            lost: self.before.1.saturating_add(last.lost()),
            ..self
        }
    }
}

/// What is asked, and who waits for the answer.
pub(super) type Asked = Receiver<(UserTurn, Sender<Result<UserSummary>>)>;

impl UserRecorder {
    /// Ends all traces and goes on in those of `turn`; gives what those before got, when they are
    /// whole. What a ring held when it was read then is in these, the rest in those.
    ///
    /// # Errors
    /// What the disk says; the recorder has then ended, or is about to.
    pub fn turn_over(&self, turn: UserTurn) -> Result<UserSummary> {
        let (reply, replied) = channel();
        let ended = || {
            Error::new(
                ErrorKind::Interrupted,
                "the recording of applications has ended",
            )
        };
        let sent = self.turns.send((turn, reply));
        sent.map_err(|_| ended())?;
        replied.recv().map_err(|_| ended())?
    }

    /// How it goes on.
    pub fn figures(&self) -> UserFigures {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Takes a turn that was asked for.
    pub(super) fn take_turn(&mut self, turns: &Asked, figures: &Mutex<UserFigures>) -> Result<()> {
        let Ok((turn, reply)) = turns.try_recv() else {
            return Ok(());
        };
        let turned = self.turn_over(turn);
        if let Ok(ended) = &turned {
            let mut figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
            figures.before.0 = figures.before.0.saturating_add(ended.events());
            figures.before.1 = figures.before.1.saturating_add(ended.lost());
        }
        let failed = turned.as_ref().err().map(|error| {
            let what = "applications could not be recorded in another trace";
            Error::new(error.kind(), what).found(error.to_string())
        });
        // Whoever asked may have given up.
        let _ = reply.send(turned);
        failed.map_or(Ok(()), Err)
    }

    /// Ends all traces, and goes on in others.
    fn turn_over(&mut self, turn: UserTurn) -> Result<UserSummary> {
        // Who is there by now belongs to what ends, also when nobody has looked since it came.
        self.find_all();
        self.clock.update();
        for place in &mut self.places {
            place.turn_over(&mut self.clock, &self.shared, &mut self.outcome)?;
        }
        let output = forgotten::announced_output(&turn.root);
        self.lines.retain(|line| !forgotten::is_output(line));
        self.lines.push(output);
        for place in &mut self.places {
            place.announce(&self.lines)?;
        }
        self.shared.folder = turn.root.join(PARTS);
        self.shared.trace_name = turn.trace_name;
        self.shared.outlet = turn.outlet;
        self.shared.wall_offset_ns = turn.wall_offset_ns;
        self.shared.wanted.begin_ns = clock::monotonic().as_ns().max(0) as u64;
        self.shared.folders = Folders::default();
        if let Some((progress, source)) = self.progress.replace(turn.progress) {
            progress.over(source)?;
        }
        Ok(self.outcome.take_ended())
    }

    /// Shows how it goes on.
    pub(super) fn show(&self, read: Read, figures: &Mutex<UserFigures>) {
        let (mut events, mut lost) = self.outcome.counts();
        let mut processes = 0;
        for (of_place, its_events, its_lost) in self.places.iter().map(Place::counts) {
            processes += of_place;
            events = events.saturating_add(its_events);
            lost = lost.saturating_add(its_lost);
        }
        let mut figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
        figures.processes = processes;
        figures.events = events.saturating_add(figures.before.0);
        figures.lost = lost.saturating_add(figures.before.1);
        figures.fullest = read.fullest;
        figures.fullest_ever = figures.fullest_ever.max(read.fullest);
    }
}
