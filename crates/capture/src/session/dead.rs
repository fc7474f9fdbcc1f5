//! Sessions whose process is gone: what they left, and how that is finished.

use std::fs;
use std::path::PathBuf;

use event::{ErrorKind, Result};
use ftrace::{DynamicEvents, Tracefs};

use super::place::Facts;
use super::{SessionName, Sessions};
use crate::unfinished::Unfinished;
use crate::{progress, user};

/// A session whose process is gone without having ended it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadSession {
    /// Its name.
    pub name: SessionName,
    /// The process that was.
    pub pid: u32,
    /// The folder of its archives.
    pub output: PathBuf,
    /// When it began, by the wall clock of then.
    pub begin_wall_ns: i64,
    /// Archives that it did not finish: what is in them is whole up to an instant.
    pub unfinished: Vec<Unfinished>,
}

/// All sessions of ours whose process is gone; none in a folder that is not ours alone.
pub fn all_dead(sessions: &Sessions) -> Vec<DeadSession> {
    let names = match sessions.is_there() {
        Ok(true) => sessions.names(),
        _ => Vec::new(),
    };
    names
        .into_iter()
        .filter_map(|name| {
            // Who lives holds the lock.
            let place = sessions.lock(&name).ok()??;
            let facts = sessions.facts(&name);
            place.leave();
            Some(dead(name, &facts?))
        })
        .collect()
}

fn dead(name: SessionName, facts: &Facts) -> DeadSession {
    DeadSession {
        name,
        pid: facts.pid,
        unfinished: unfinished(facts),
        output: facts.output.clone(),
        begin_wall_ns: facts.begin_wall_ns,
    }
}

/// The archives that it was writing. Its lock is free: its number may be another's by now.
fn unfinished(facts: &Facts) -> Vec<Unfinished> {
    let entries = fs::read_dir(&facts.output).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(progress::half_written) == Some(facts.pid) && progress::is_marked(path)
        })
        .map(|path| Unfinished {
            written_until: progress::read(&path),
            pid: facts.pid,
            path,
        })
        .collect();
    found.sort();
    found
}

/// Clears away the dead session `name`: its archives get their names, and keep the mark of a
/// recorder that could not finish them; its instance in tracefs goes, and what it switched on in
/// applications. Gives it with the archives' paths; none when there is no such session, or it
/// lives.
///
/// # Errors
/// What the operating system says; the rest is then still to be cleared away. As
/// [`Sessions::is_there`].
pub fn bury(
    sessions: &Sessions,
    name: &SessionName,
) -> Result<Option<(DeadSession, Vec<PathBuf>)>> {
    if !sessions.is_there()? || sessions.facts(name).is_none() {
        return Ok(None);
    }
    let Some(place) = sessions.lock(name)? else {
        return Ok(None);
    };
    let Some(facts) = sessions.facts(name) else {
        return Ok(None);
    };
    let dead = dead(name.clone(), &facts);
    let mut finished = Vec::new();
    for unfinished in &dead.unfinished {
        let ended = match unfinished.is_empty() {
            true => unfinished.remove().map(|()| None),
            false => unfinished.finish(None).map(Some),
        };
        match ended {
            Ok(path) => finished.extend(path),
            Err(error) => {
                place.leave();
                return Err(error);
            }
        }
    }
    if let Err(error) = clear_after(facts.pid) {
        place.leave();
        return Err(error);
    }
    drop(place);
    Ok(Some((dead, finished)))
}

/// Removes what a process that is known to be gone left in the kernel and in applications. Whether
/// all of it is gone: somebody may have files of it open.
///
/// # Errors
/// What the operating system refuses; a tracefs out of reach has nothing of it.
pub fn clear_after(pid: u32) -> Result<bool> {
    let mut is_gone = true;
    match Tracefs::find() {
        Ok(tracefs) => {
            for instance in ftrace::Leftover::of(&tracefs, pid)? {
                is_gone &= instance.remove()?;
            }
            // Behind the instance, which had them enabled.
            DynamicEvents::remove_of(&tracefs, pid)?;
        }
        // A session of applications alone needs none.
        Err(error) if is_out_of_reach(error.kind()) => (),
        Err(error) => return Err(error),
    }
    user::switch_off_left_by(pid)?;
    Ok(is_gone)
}

fn is_out_of_reach(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::PermissionDenied)
}
