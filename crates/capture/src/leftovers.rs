//! What killed runs left behind, found by name and dead owner, removed on request; but for what a
//! living recorder still reads.

use std::fs;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use ftrace::Tracefs;
use ring::{Directory, Liveness};
use serde::Serialize;

use crate::Unfinished;
use crate::progress::{half_written, is_alive, is_written};
use crate::session::{DeadSession, Sessions, all_dead, bury};
use crate::user::{directories, switch_off};

/// What kind of thing was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A tracefs instance: it costs memory, and time for each event that it still records.
    TracefsInstance,
    /// A probe or synthetic event in tracefs.
    DynamicEvent,
    /// A shared-memory file.
    SharedMemory,
    /// The session of a recorder of applications: their events are still switched on.
    Session,
    /// A recording session whose process is gone: its archive is to be finished.
    RecordSession,
    /// A trace that was never finished. One with events is not removed: it gets its name.
    HalfWrittenTrace,
    /// A process or a folder of a load, beside which somebody measured. `measure` finds them.
    Load,
    /// Semaphores of System V. `measure` finds them.
    Semaphores,
    /// A shield whose command's keeper is dead. `shield` takes it down.
    Shield,
    /// What a trial of advice changed. The tune takes it back.
    Trial,
}

/// One thing that a dead process left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Leftover {
    /// What it is.
    pub kind: Kind,
    /// Where it is; the name for a dynamic event.
    pub path: String,
    /// The dead process that made it.
    pub pid: u32,
}

/// Shared memory of POSIX.
const SHARED_MEMORY: &str = "/dev/shm";

/// What [`clean`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// What is gone.
    pub removed: Vec<Leftover>,
    /// What dead processes left, as it seems, and somebody has open: a living recorder reads
    /// their rings, or it is one of another namespace, where their number means something else.
    pub in_use: Vec<Leftover>,
    /// Traces that a killed recorder was writing, with the names that they were to have.
    pub finished: Vec<PathBuf>,
}

/// Removes everything that dead processes of ours left in tracefs, in shared memory and in
/// `output`, but for what a living recorder still reads.
///
/// # Errors
/// When tracefs is mounted but refuses to be read, and when the operating system refuses to remove
/// something.
pub fn clean(output: &Path) -> Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    // First: what it recorded gets its name, and is not removed as half written.
    let sessions = Sessions::of_this_user();
    for dead in all_dead(&sessions) {
        if bury(&sessions, &dead.name)?.is_some() {
            cleaned.removed.push(dead_session(&dead));
        }
    }
    for unfinished in Unfinished::all_in(output) {
        if unfinished.holds_events() {
            cleaned.finished.push(unfinished.finish(None)?);
        }
    }
    for leftover in find(output)? {
        match leftover.remove()? {
            true => cleaned.removed.push(leftover),
            false => cleaned.in_use.push(leftover),
        }
    }
    let mut all = Ok(());
    for (path, owner, _) in directories(None) {
        // Nobody's folder, or one that is not to be trusted, has nothing of ours. What one user did
        // to theirs keeps nobody else's.
        if let Ok(folder) = Directory::open(&path, owner) {
            all = all.and(clean_rings(&folder, owner, &mut cleaned));
        }
    }
    cleaned.removed.sort();
    cleaned.in_use.sort();
    all.map(|()| cleaned)
}

/// Everything that dead processes of ours left in tracefs, in shared memory and in `output`. What
/// cannot be looked into is left out.
pub fn list(output: &Path) -> Vec<Leftover> {
    let mut found = find(output).unwrap_or_default();
    found.extend(all_dead(&Sessions::of_this_user()).iter().map(dead_session));
    for (path, owner, _) in directories(None) {
        if let Ok(folder) = Directory::open(&path, owner) {
            found.extend(files(folder.path(), session, Kind::Session));
            found.extend(left_among_rings(&folder));
        }
    }
    found.sort();
    found
}

fn dead_session(dead: &DeadSession) -> Leftover {
    Leftover {
        kind: Kind::RecordSession,
        path: format!("session {} in {}", dead.name, dead.output.display()),
        pid: dead.pid,
    }
}

/// Everything that dead processes left elsewhere than among rings.
fn find(output: &Path) -> Result<Vec<Leftover>> {
    let mut found = Vec::new();
    match Tracefs::find() {
        Ok(tracefs) => {
            found.extend(
                ftrace::Leftover::list(&tracefs)?
                    .into_iter()
                    .map(|instance| Leftover {
                        kind: Kind::TracefsInstance,
                        path: tracefs
                            .root()
                            .join("instances")
                            .join(&instance.name)
                            .display()
                            .to_string(),
                        pid: instance.pid,
                    }),
            );
            let events = fs::read_to_string(tracefs.root().join("dynamic_events"));
            found.extend(dynamic_events(&events.unwrap_or_default(), is_dead));
        }
        // Not mounted: nothing can be left in it.
        Err(error) if error.kind() == ErrorKind::NotFound => (),
        Err(error) => return Err(error),
    }
    found.extend(files(
        Path::new(SHARED_MEMORY),
        shared_memory,
        Kind::SharedMemory,
    ));
    let half_written = files(output, half_written, Kind::HalfWrittenTrace).into_iter();
    // The number of a recorder of another namespace says nothing here.
    found.extend(half_written.filter(|left| !is_written(Path::new(&left.path))));
    Ok(found)
}

/// Removes what dead processes left in a folder of rings, unless somebody records there.
fn clean_rings(folder: &Directory, owner: u32, cleaned: &mut Cleaned) -> Result<()> {
    let sessions = files(folder.path(), session, Kind::Session);
    if !sessions.is_empty() {
        // Also switches off what they left on in applications.
        unless_recorded(switch_off(folder.path(), owner))?;
        // A recorder that is alive keeps its own.
        let stays = |left: &Leftover| Path::new(&left.path).exists();
        let (in_use, removed): (Vec<_>, Vec<_>) = sessions.into_iter().partition(stays);
        cleaned.removed.extend(removed);
        cleaned.in_use.extend(in_use);
    }
    let left = left_among_rings(folder);
    if left.is_empty() {
        return Ok(());
    }
    // Held while they are removed: no recorder begins to read them meanwhile.
    let Some(_lock) = unless_recorded(folder.lock_alone())? else {
        cleaned.in_use.extend(left);
        return Ok(());
    };
    for leftover in left {
        match leftover.remove()? {
            true => cleaned.removed.push(leftover),
            false => cleaned.in_use.push(leftover),
        }
    }
    Ok(())
}

/// None where somebody records. A recorder reads the rings of who died, and in flight keeps them
/// for a snapshot; it also lives where its id means nothing to us.
fn unless_recorded<T>(taken: Result<T>) -> Result<Option<T>> {
    match taken {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        taken => taken.map(Some),
    }
}

impl Leftover {
    /// Removes it, and says whether it is gone: not where somebody has it open. A session goes
    /// another way ([`switch_off`]).
    ///
    /// # Errors
    /// When the operating system refuses.
    fn remove(&self) -> Result<bool> {
        let path = Path::new(&self.path);
        let removed = match self.kind {
            Kind::TracefsInstance => return self.remove_instance(),
            Kind::DynamicEvent => return self.remove_dynamic_event().map(|()| true),
            Kind::HalfWrittenTrace | Kind::Load if path.is_dir() => fs::remove_dir_all(path),
            // Whoever knows the changes takes them back.
            Kind::Trial | Kind::RecordSession | Kind::Semaphores | Kind::Shield => Ok(()),
            Kind::SharedMemory | Kind::Session | Kind::HalfWrittenTrace | Kind::Load => {
                fs::remove_file(path)
            }
        };
        self.unless_gone(removed).map(|()| true)
    }

    fn remove_instance(&self) -> Result<bool> {
        let tracefs = Tracefs::find()?;
        let left = ftrace::Leftover::list(&tracefs)?;
        let instance = left.iter().find(|instance| {
            tracefs.root().join("instances").join(&instance.name) == Path::new(&self.path)
        });
        instance.map_or(Ok(true), ftrace::Leftover::remove)
    }

    fn remove_dynamic_event(&self) -> Result<()> {
        let path = Tracefs::find()?.root().join("dynamic_events");
        let file = fs::OpenOptions::new().append(true).open(&path);
        let written = file
            .and_then(|mut file| std::io::Write::write_all(&mut file, self.removal().as_bytes()));
        self.unless_gone(written)
    }

    /// What is gone meanwhile needs nobody: somebody else cleaned too, or a recorder has read the
    /// rings of a process that had died.
    fn unless_gone(&self, removed: std::io::Result<()>) -> Result<()> {
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| self.refused(error)),
        }
    }

    /// The line that takes this event out of `dynamic_events`.
    fn removal(&self) -> String {
        format!("-:{}\n", self.path)
    }

    fn refused(&self, error: std::io::Error) -> Error {
        Error::io(format!("cannot remove {}", self.path), error).fix("run it with sudo")
    }
}

/// Events in the group `rtscope_PID` of a dead process, from the text of `dynamic_events`.
fn dynamic_events(text: &str, is_dead: impl Fn(u32) -> bool) -> Vec<Leftover> {
    let event = |line: &str| {
        // `p:GROUP/NAME PLACE …`, `r4:GROUP/NAME …`, `s:GROUP/NAME …`
        let (_, rest) = line.split_once(':')?;
        let name = rest.split_whitespace().next()?;
        let pid = name
            .split_once('/')?
            .0
            .strip_prefix("rtscope_")?
            .parse()
            .ok()?;
        is_dead(pid).then(|| Leftover {
            kind: Kind::DynamicEvent,
            path: name.to_owned(),
            pid,
        })
    };
    text.lines().filter_map(event).collect()
}

/// Rings of processes that nobody maps any more, and what processes without rings left. Who maps a
/// file holds a lock on it, in whatever namespace it lives; its id says nothing.
fn left_among_rings(folder: &Directory) -> Vec<Leftover> {
    let mut found = files(folder.path(), without_rings, Kind::SharedMemory);
    for name in folder.names().unwrap_or_default() {
        let rings = folder.rings(&name).ok().flatten();
        let Some(rings) = rings.filter(|rings| rings.liveness() == Liveness::Dead) else {
            continue;
        };
        found.push(Leftover {
            kind: Kind::SharedMemory,
            path: display(&folder.path().join(name)),
            pid: u32::try_from(rings.layout().pid).unwrap_or_default(),
        });
    }
    found
}

/// The recorder in `session-PID-N`.
fn session(name: &str) -> Option<u32> {
    let (pid, _) = name.strip_prefix("session-")?.split_once('-')?;
    pid.parse().ok()
}

/// The process in `without-PID-TIME`.
fn without_rings(name: &str) -> Option<u32> {
    let (pid, _) = name.strip_prefix("without-")?.split_once('-')?;
    pid.parse().ok()
}

/// Entries of `folder` whose names have an owner, and that owner is dead.
fn files(folder: &Path, owner: fn(&str) -> Option<u32>, kind: Kind) -> Vec<Leftover> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = owner(&entry.file_name().to_string_lossy())?;
            let path = display(&entry.path());
            is_dead(pid).then_some(Leftover { kind, path, pid })
        })
        .collect()
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

/// The process in `rtscope-PID-…`; none when the name is not ours.
fn shared_memory(name: &str) -> Option<u32> {
    name.strip_prefix("rtscope-")?
        .split_once('-')?
        .0
        .parse()
        .ok()
}

fn is_dead(pid: u32) -> bool {
    !is_alive(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_our_own_patterns_with_a_process_are_ours() {
        let check = |owner: fn(&str) -> Option<u32>, name: &str, expect: Option<u32>| {
            assert_eq!(owner(name), expect, "{name}");
        };
        check(shared_memory, "rtscope-12-ring", Some(12));
        check(shared_memory, "rtscope-12", None);
        check(shared_memory, ".rtscope-12-ring", None);
        check(shared_memory, "rtscope-x-ring", None);
        check(half_written, ".trace.partial-12", Some(12));
        check(half_written, "trace.partial-12", None);
        check(half_written, "..partial-12", None);
        check(half_written, ".trace.partial-12.2", Some(12));
        check(half_written, ".trace.partial-12.x", None);
        check(session, "session-12-0", Some(12));
        check(session, "session-12", None);
        check(without_rings, "without-12-ab", Some(12));
        check(without_rings, "rings-12-ab", None);
        check(half_written, ".trace.partial-x", None);
    }

    #[test]
    fn only_dynamic_events_of_dead_processes_are_found() {
        let text = "p:rtscope_12/enter do_sys_open\nr4:rtscope_13/leave do_sys_open\n\
                    p:kprobes/mine vfs_read\ns:synthetic/wakeup u64 lat\nrubbish\n";
        let found = dynamic_events(text, |pid| pid == 13);
        let [event] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((event.pid, event.path.as_str()), (13, "rtscope_13/leave"));
        assert_eq!(event.removal(), "-:rtscope_13/leave\n");
    }

    #[test]
    fn a_half_written_trace_of_a_dead_process_is_found_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        // The largest process id of Linux is 2^22.
        let dead = folder.path().join(".trace.partial-99999999");
        let alive = folder
            .path()
            .join(format!(".trace.partial-{}", std::process::id()));
        for trace in [&dead, &alive] {
            fs::create_dir_all(trace.join("kernel")).expect("a trace");
        }
        let found = files(folder.path(), half_written, Kind::HalfWrittenTrace);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].remove().expect("removed");
        assert!(!dead.exists() && alive.exists());
        found[0].remove().expect("what is gone needs nobody");
    }
}
