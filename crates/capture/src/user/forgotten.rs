//! What recorders that were killed left switched on: nobody records it any more, and the traced
//! programs must not go on paying for it.

use std::path::Path;
use std::rc::Rc;

use event::{ErrorKind, Result};
use ring::{Directory, EventDescription, Liveness, Mode, RecorderLock, RingFile, Switch};

use super::places;
use super::recorders::{self, Recorders};
use super::wanted::EventRule;
use crate::unfinished::Unfinished;

/// The line of a session's file that lets rings keep their newest events.
pub(super) const OVERWRITE: &str = "!overwrite";

/// How the line of a session's file begins that says where the trace is written.
const OUTPUT: &str = "!output ";

/// The line of a session's file that says where the trace is written.
pub(super) fn announced_output(root: &Path) -> String {
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    format!("{OUTPUT}{}", root.display())
}

/// Whether that is such a line.
pub(super) fn is_output(line: &str) -> bool {
    line.starts_with(OUTPUT)
}

/// The sessions that were left in a directory.
#[derive(Debug, Default)]
pub(super) struct Forgotten {
    rules: Vec<EventRule>,
    in_flight: bool,
}

impl Forgotten {
    /// Reads the session files that are left in `directory` without their recorders, and removes
    /// them.
    pub fn take(directory: &Directory, lock: &RecorderLock) -> Result<Forgotten> {
        let mut forgotten = Forgotten::default();
        for name in directory.sessions()? {
            // What stands there in place of a file, or keeps us out, is left alone.
            let is_live = directory.is_live(&name).unwrap_or(true);
            let (false, Ok(lines)) = (is_live, directory.session(&name)) else {
                continue;
            };
            // Recorders of before had no number, and were the first.
            if recorders::id_of(&lines).is_none() && !lock.is_first() {
                continue;
            }
            forgotten.in_flight |= lines.iter().any(|line| line == OVERWRITE);
            let rules = lines
                .iter()
                .filter_map(|line| EventRule::from_announced(line));
            forgotten.rules.extend(rules);
            let _ = directory.remove(&name);
        }
        Ok(forgotten)
    }

    /// Whether it switched this event on.
    pub fn names(&self, event: &EventDescription) -> bool {
        self.rules.iter().any(|rule| rule.names(event))
    }

    /// The mode of rings that were found in `mode`, when nobody records them.
    pub fn mode_behind(&self, mode: Mode) -> Mode {
        match mode {
            Mode::Overwrite if self.in_flight => Mode::Discard,
            mode => mode,
        }
    }

    /// Whether nothing was left.
    fn is_nothing(&self) -> bool {
        self.rules.is_empty() && !self.in_flight
    }

    /// Switches off what was left on in sets of rings that are not ours, whose events are those of
    /// the file's table. Their records stay, for who takes them next.
    pub fn switch_off_others(
        &self,
        file: &mut RingFile,
        is_live: &dyn Fn(u64) -> bool,
    ) -> Result<()> {
        if self.is_nothing() {
            return Ok(());
        }
        for set in 0..file.layout().sets() {
            file.with_forgotten(set, is_live, &mut |file| self.switch_off(file))?;
        }
        Ok(())
    }

    fn switch_off(&self, file: &RingFile) -> Result<()> {
        for event in file.table().events.iter().filter(|event| self.names(event)) {
            file.switch(event, Switch::Off)?;
        }
        let mode = file.mode()?;
        match self.mode_behind(mode) {
            behind if behind != mode => file.set_mode(behind),
            _ => Ok(()),
        }
    }
}

/// Switches off what recorders that were killed left on in the directory `path` of `owner`, and
/// removes their session files.
///
/// # Errors
/// [`event::ErrorKind::AlreadyExists`] when as many record there as can; otherwise what the
/// operating system says.
pub(crate) fn switch_off(path: &Path, owner: u32) -> Result<()> {
    let directory = Rc::new(Directory::open(path, owner)?);
    let lock = directory.lock()?;
    let forgotten = Forgotten::take(&directory, &lock)?;
    let recorders = Recorders::new(recorders::new_id(), lock.is_first(), Rc::clone(&directory));
    let mut first_error = Ok(());
    for name in directory.names()? {
        // A file that cannot be read has no switch that we could turn.
        if let Ok(Some(mut file)) = directory.rings(&name)
            && file.liveness() == Liveness::Alive
        {
            let switched = file.read_table().and_then(|_| {
                forgotten.switch_off_others(&mut file, &|id| recorders.is_live(id))?;
                match !file.layout().has_sets() && recorders.is_first {
                    true => forgotten.switch_off(&file),
                    false => Ok(()),
                }
            });
            // What one process did to its file keeps nobody else's on.
            first_error = first_error.and(switched);
        }
    }
    first_error
}

/// Switches off what the recorder `pid`, which is gone, left on in applications.
///
/// # Errors
/// What the operating system says.
pub(crate) fn switch_off_left_by(pid: u32) -> Result<()> {
    let begin = format!("session-{pid}-");
    for (path, owner, _) in places::directories(None) {
        let Ok(directory) = Directory::open(&path, owner) else {
            continue;
        };
        let sessions = directory.sessions().unwrap_or_default();
        if !sessions.iter().any(|session| session.starts_with(&begin)) {
            continue;
        }
        match switch_off(&path, owner) {
            // Whoever records there has done so.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => (),
            done => done?,
        }
    }
    Ok(())
}

/// The traces that recorders of applications left half written when they were killed, as long as
/// no other has come since: where it looks for rings itself, or in the folder `asked`.
pub fn left_by_killed_recorders(asked: Option<&Path>) -> Vec<Unfinished> {
    let mut left = Vec::new();
    for (path, owner, _) in places::directories(asked) {
        let Ok(directory) = Directory::open(&path, owner) else {
            continue;
        };
        for name in directory.sessions().unwrap_or_default() {
            let lines = directory.session(&name).unwrap_or_default();
            let outputs = lines.iter().filter_map(|line| line.strip_prefix(OUTPUT));
            left.extend(outputs.filter_map(|path| Unfinished::at(Path::new(path))));
        }
    }
    left
}
