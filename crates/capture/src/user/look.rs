//! Rings as they are at one moment, into a trace: the snapshot of a flight recorder, and what dead
//! processes left. Nobody need be recording, and nothing in the rings changes.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration as StdDuration;

use ctf::writer::StagedDir;
use event::{Error, ErrorKind, Instant, Result};
use ring::{Directory, Liveness, Mode, RingFile};

use super::clock::CounterClock;
use super::contexts::{self, Context};
use super::metadata::Folders;
use super::places::directories;
use super::process::{Common, Process};
use super::session::{PARTS, UserSummary, Wanted};
use crate::clock;

/// Whose rings are looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All processes', also of those that are gone.
    All,
    /// Those of processes that are gone.
    Dead,
}

/// What a look found.
#[derive(Clone, Debug)]
pub struct LookSummary {
    /// Where the trace is.
    pub path: PathBuf,
    /// What the processes gave.
    pub user: UserSummary,
    /// Rings of dead processes that are in the trace and were removed.
    pub removed: usize,
}

/// Writes what the rings hold now to the trace `output`, from `directory` or else from where
/// recorders look. With `remove`, files of dead processes go when they are in the trace.
///
/// # Errors
/// [`ErrorKind::NotFound`] when no ring holds an event; [`ErrorKind::AlreadyExists`] when the
/// output is there; otherwise what the operating system says.
pub fn look(
    output: &Path,
    directory: Option<&Path>,
    whose: Whose,
    remove: bool,
) -> Result<LookSummary> {
    let held = Held {
        directory,
        since: Instant::MIN,
        recorder: None,
    };
    look_at(output, &held, whose, remove)
}

/// What of rings is looked at.
pub(crate) struct Held<'a> {
    /// Where they are, else where recorders look.
    pub directory: Option<&'a Path>,
    /// What was written before is left out.
    pub since: Instant,
    /// The recorder whose they are. None: where some keep their newest events, those; else all that
    /// hold something.
    pub recorder: Option<u64>,
}

/// The same of what some rings hold.
pub(crate) fn look_at(
    output: &Path,
    held: &Held<'_>,
    whose: Whose,
    remove: bool,
) -> Result<LookSummary> {
    let staged = StagedDir::create(output)?;
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let (user, dead) = write(staged.path(), &name, held, whose)?;
    if user.is_empty() {
        let found = match user.refused.as_slice() {
            [] => "none".to_owned(),
            refused => refused.join("; "),
        };
        return Err(Error::new(ErrorKind::NotFound, "no rings that hold events")
            .found(found)
            .fix("rtscope record --flight --user 'GLOB' fills rings that keep the newest"));
    }
    let path = staged.commit()?;
    let mut removed = 0;
    for (directory, name) in dead.iter().filter(|_| remove) {
        directory.remove(name)?;
        removed += 1;
    }
    Ok(LookSummary {
        path,
        user,
        removed,
    })
}

/// Dead processes' files: their directory, their name.
type Dead = Vec<(Rc<Directory>, String)>;

/// Writes what rings hold below `root`.
pub(crate) fn write(
    root: &Path,
    trace_name: &str,
    held: &Held<'_>,
    whose: Whose,
) -> Result<(UserSummary, Dead)> {
    let (mut summary, mut dead) = (UserSummary::default(), Vec::new());
    let folders = Folders::default();
    let mut clock = CounterClock::start();
    let folder = root.join(PARTS);
    let wall_offset_ns = clock::wall_offset_ns();
    for (path, owner, _) in directories(held.directory) {
        let (opened, contexts, names) = match opened(&path, owner) {
            Ok(opened) => opened,
            // A user of whom nobody is traced.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                summary.refused.push(error.to_string());
                continue;
            }
        };
        let wanted = Wanted {
            rules: Vec::new(),
            contexts,
            app_contexts: Vec::new(),
            begin_ns: held.since.as_ns().max(0) as u64,
            ring_bytes: None,
            user_bytes: None,
        };
        let common = Common {
            folder: &folder,
            folders: &folders,
            wanted: &wanted,
            wall_offset_ns,
            trace_name,
            outlet: None,
            in_flight: false,
            keeps_the_dead: true,
            look_period: StdDuration::ZERO,
            late_room: None,
        };
        for name in names {
            let file = match opened.rings(&name) {
                Ok(Some(file)) => file,
                Ok(None) => continue,
                Err(error) => {
                    summary.refused.push(error.to_string());
                    continue;
                }
            };
            let is_dead = file.liveness() == Liveness::Dead;
            if whose == Whose::Dead && !is_dead {
                continue;
            }
            match all_of(&opened, file, held, (&mut clock, &common)) {
                Ok(processes) => summary.processes.extend(processes),
                Err(error) => {
                    summary.refused.push(error.to_string());
                    continue;
                }
            }
            if is_dead {
                dead.push((Rc::clone(&opened), name));
            }
        }
    }
    Ok((summary, dead))
}

/// A directory, the contexts that its flight recorder was asked for, and the names of its rings.
fn opened(path: &Path, owner: u32) -> Result<(Rc<Directory>, Vec<Context>, Vec<String>)> {
    let directory = Rc::new(Directory::open(path, owner)?);
    let (contexts, names) = (announced_contexts(&directory)?, directory.names()?);
    Ok((directory, contexts, names))
}

/// The contexts that the flight recorder of a directory was asked for. What cannot be read there is
/// none of a recorder's.
fn announced_contexts(directory: &Directory) -> Result<Vec<Context>> {
    let sessions = directory.sessions()?;
    let read = sessions.iter().map(|name| directory.session(name));
    let lines: Vec<_> = read.flat_map(Result::unwrap_or_default).collect();
    Ok(contexts::from_announced(&lines))
}

/// What a process gave, by each set of its rings that is meant.
fn all_of(
    directory: &Rc<Directory>,
    file: RingFile,
    held: &Held<'_>,
    (clock, common): (&mut CounterClock, &Common),
) -> Result<Vec<super::UserProcess>> {
    let mut processes = Vec::new();
    let name = file.name().to_owned();
    let sets = sets_of(&file, held.recorder)?;
    let mut opened = Some(file);
    for set in sets {
        let again = || directory.rings(&name);
        let Some(mut file) = opened.take().map_or_else(again, |file| Ok(Some(file)))? else {
            break;
        };
        file.choose(set);
        processes.extend(one(directory, file, clock, common)?);
    }
    Ok(processes)
}

/// The sets of rings that are meant: those of a recorder, else those that keep their newest events,
/// else all that hold something.
fn sets_of(file: &RingFile, recorder: Option<u64>) -> Result<Vec<u32>> {
    let (mut of_recorder, mut newest, mut holding) = (Vec::new(), Vec::new(), Vec::new());
    if !file.layout().has_sets() {
        return Ok(vec![0]);
    }
    for set in 0..file.layout().sets() {
        if recorder.is_some_and(|id| file.session_of(set).is_ok_and(|owner| owner == id)) {
            of_recorder.push(set);
        }
        if file.holds_something(set)? {
            holding.push(set);
            if file.mode_of(set)? == Mode::Overwrite {
                newest.push(set);
            }
        }
    }
    Ok(match (recorder, newest.is_empty()) {
        (Some(_), _) => of_recorder,
        (None, false) => newest,
        (None, true) => holding,
    })
}

/// A process by a set of its rings, when it gave anything.
fn one(
    directory: &Rc<Directory>,
    file: RingFile,
    clock: &mut CounterClock,
    common: &Common,
) -> Result<Option<super::UserProcess>> {
    clock.update();
    let process = Process::look(Rc::clone(directory), file, clock, common)?;
    Ok(process.has_something().then_some(process))
}
