//! Who could not be recorded, with the reason: said once each, and so many at most.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind};
use ring::{Directory, EventDescription, Layout, Note, WithoutRings};
use rustix::io::Errno;

use super::wanted::{self, EventRule, Verdict};

/// So many are told in full, the others counted.
const SAID_MAX: usize = 20;
/// The provider under which a process speaks of itself.
const OF_PROCESS: &str = "rtscope_probe";
/// The largest that Linux gives back (`MAX_ERRNO`).
const ERRNO_MAX: i32 = 4095;
/// So many files are remembered as bad before those that are gone are forgotten.
const KNOWN_MAX: usize = 8192;

/// The refusals of a recording.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    said: Vec<String>,
    /// By directories: the processes of one user silence nobody else's.
    counts: BTreeMap<PathBuf, usize>,
    known: HashSet<PathBuf>,
    /// So many of them were there when it was last asked.
    known_there: usize,
}

impl Refusals {
    /// Takes a reason that comes from `directory`.
    pub fn say(&mut self, directory: &Path, reason: String) {
        let count = self.counts.entry(directory.to_owned()).or_default();
        *count += 1;
        if *count <= SAID_MAX && !self.said.contains(&reason) {
            self.said.push(reason);
        }
    }

    /// Takes an error that comes from `directory`.
    pub fn add(&mut self, directory: &Path, error: &Error) {
        self.say(directory, format!("{error:#}"));
    }

    /// The same of a file, which is not looked at again.
    pub fn add_at(&mut self, path: PathBuf, error: &Error) {
        self.add(path.parent().unwrap_or(&path), error);
        // Twice as many each time: who keeps thousands of them does not have all asked about again
        // for each that is new.
        if self.known.len() >= KNOWN_MAX.max(self.known_there.saturating_mul(2)) {
            self.known.retain(|path| path.symlink_metadata().is_ok());
            self.known_there = self.known.len();
        }
        self.known.insert(path);
    }

    /// Whether a file was refused before.
    pub fn knows(&self, path: &Path) -> bool {
        self.known.contains(path)
    }

    /// Takes what `processes` left in `directory` that could make no rings: those that are there,
    /// and those that came since `begin_ns`. What the dead left is removed.
    pub fn without_rings(
        &mut self,
        directory: &Directory,
        processes: Vec<WithoutRings>,
        begin_ns: u64,
    ) {
        for process in processes {
            let path = directory.path().join(&process.link);
            let is_dead = !Path::new("/proc").join(process.pid.to_string()).exists();
            if !self.knows(&path)
                && (!is_dead || process.began_ns >= begin_ns)
                && let Some(error) = explained(&process, directory)
            {
                self.add_at(path, &error);
            }
            if is_dead {
                // What stays is known by now.
                let _ = directory.remove(&process.link);
            }
        }
    }

    /// All of them, as lines for people.
    pub fn into_said(mut self) -> Vec<String> {
        let more = self.counts.iter().filter(|(_, count)| **count > SAID_MAX);
        let more =
            more.map(|(path, count)| format!("{} more in {}", count - SAID_MAX, path.display()));
        self.said.extend(more);
        self.said
    }
}

/// None for a reason that the kernel does not have: whose folder it is writes what they like.
fn explained(process: &WithoutRings, directory: &Directory) -> Option<Error> {
    if !(1..=ERRNO_MAX).contains(&process.errno) {
        return None;
    }
    let errno = Errno::from_raw_os_error(process.errno);
    let folder = directory.path().display();
    let who = format!("{} ({}) has no rings", process.name, process.pid);
    let error = Error::new(ErrorKind::Unsupported, who)
        .found(format!("{errno} in {folder}"))
        .fix(helps_against(errno, directory.path()));
    Some(error)
}

/// What lets a process make its rings in `folder` that could not for this reason.
fn helps_against(errno: Errno, folder: &Path) -> String {
    let folder = folder.display();
    match errno {
        Errno::NOSPC | Errno::DQUOT => {
            format!("make room there (df {folder}), or set RTSCOPE_RING_SIZE=64K; start it again")
        }
        Errno::NOMEM => {
            "raise its 'ulimit -v', or set RTSCOPE_RING_SIZE=64K; start it again".to_owned()
        }
        Errno::FBIG => "raise its 'ulimit -f', and start it again".to_owned(),
        Errno::MFILE | Errno::NFILE => "raise 'ulimit -n', and start it again".to_owned(),
        // What is said here because it could be said nowhere else.
        Errno::NOTDIR => "its RTSCOPE_DIR is no folder that it can use: give it one of its user, \
                          or unset it; start it again"
            .to_owned(),
        Errno::OVERFLOW => "its rings would take more than half of the memory that it has left \
                            (of the machine, or of its control group): set RTSCOPE_RING_SIZE=64K, \
                            or record with a smaller --ring; start it again"
            .to_owned(),
        _ => format!("let its user write to {folder}, and start it again"),
    }
}

/// Of a process whose rings have not the size that was asked for.
pub(super) fn of_another_size(layout: &Layout, asked_bytes: u64) -> String {
    let what = format!(
        "{} ({}) has other rings than --ring asks for",
        layout.name, layout.pid
    );
    let found = format!(
        "{} bytes for each CPU, not {asked_bytes}",
        layout.ring_bytes
    );
    let fix = "start it while the recording runs, without RTSCOPE_RING_SIZE: its rings have their \
               size by now";
    let error = Error::new(ErrorKind::Unsupported, what);
    format!("{:#}", error.found(found).fix(fix))
}

/// Of a process whose rings found no memory when its first event was switched on, in a folder where
/// all may have so much together.
pub(super) fn without_memory(
    layout: &Layout,
    errno: Errno,
    (folder, user_bytes): (&Path, Option<u64>),
) -> String {
    let what = format!("{} ({}) has no ring on some CPUs", layout.name, layout.pid);
    let folder = folder.display();
    let error = Error::new(ErrorKind::Unsupported, what);
    let error = match user_bytes {
        Some(bytes) if errno == Errno::DQUOT => error
            .found(format!(
                "less than {} bytes for each CPU is left of the {bytes} of --rings-per-user, in \
                 {folder}",
                layout.ring_bytes
            ))
            .fix("repeat with a larger --rings-per-user"),
        _ if errno == Errno::OVERFLOW => error
            .found("they would take more than half of the memory that is left here")
            .fix("record with a smaller --ring"),
        _ => error
            .found(format!("{errno} in {folder}"))
            .fix(format!("make room there (df {folder})")),
    };
    format!("{error:#}")
}

/// What a process says of an event that it cannot have, for people, where they want the event.
pub(super) fn noted(note: &Note, rules: &[EventRule]) -> Option<String> {
    let mut event = EventDescription::new(0, &note.provider, &note.name);
    event.level = 0;
    let is_wanted = wanted::verdict(rules, &event) != Verdict::Unwanted;
    is_wanted.then(|| explained_note(note))
}

/// Whether a note is about a process as a whole.
pub(super) fn is_of_process(note: &Note) -> bool {
    note.provider == OF_PROCESS
}

/// A note, for people.
pub(super) fn explained_note(note: &Note) -> String {
    let error = Error::new(ErrorKind::Unsupported, &note.what);
    format!("{:#}", error.found(&note.found).fix(&note.fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_told_to_whom_wants_the_event() {
        let note = Note {
            provider: "npt".to_owned(),
            name: "loop".to_owned(),
            what: "no loops of robot".to_owned(),
            found: "it stands".to_owned(),
            fix: "let it go".to_owned(),
        };
        let check = |rule: &str, is_told: bool| {
            let rules = wanted::parse(rule).expect("a rule");
            let told = noted(&note, &rules);
            assert_eq!(told.is_some(), is_told, "{rule}: {told:?}");
            let sound = told.is_none_or(|told| told.contains("it stands"));
            assert!(sound, "{rule}");
        };
        check("npt", true);
        check("npt:loop:emerg", true);
        check("npt:lo* i > 5", true);
        check("npt:stop", false);
        assert!(!is_of_process(&note));
        let own = Note {
            provider: OF_PROCESS.to_owned(),
            ..note
        };
        assert!(is_of_process(&own));
    }

    #[test]
    fn what_helps_a_process_without_rings_is_told_by_the_reason() {
        let check = |errno, expect: &str| {
            let told = helps_against(errno, Path::new("/shared"));
            assert!(told.contains(expect), "{errno}: {told}");
        };
        check(Errno::FBIG, "ulimit -f");
        check(Errno::NOMEM, "ulimit -v");
        check(Errno::MFILE, "ulimit -n");
        check(Errno::NOSPC, "df /shared");
        check(Errno::ACCESS, "write to /shared");
    }

    #[test]
    fn of_many_refusals_the_first_are_said_and_the_others_counted() {
        let mut refusals = Refusals::default();
        for number in 0..100 {
            refusals.say(Path::new("/one"), number.to_string());
        }
        refusals.say(Path::new("/other"), "another".to_owned());
        let said = refusals.into_said();
        assert_eq!(said.len(), SAID_MAX + 2);
        assert_eq!(said[SAID_MAX], "another");
        assert_eq!(said[SAID_MAX + 1], "80 more in /one");
    }
}
