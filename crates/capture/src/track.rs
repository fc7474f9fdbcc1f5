//! Recordings of some tasks alone: the kernel leaves out what others do. Who descends from one of
//! them is followed there; newcomers of other kinds are looked for here, now and then.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use bpf_host::CallTracker;
use event::{Error, ErrorKind, Result, Tid};
use ftrace::Instance;
use host::processes::{below, stats, threads};

use crate::syscalls::SyscallRecorder;

/// How often newcomers are looked for.
const LOOK_PERIOD: StdDuration = StdDuration::from_millis(100);
/// So often those are looked for who are to be left.
const LOOKS_AT_LEAVING: usize = 8;
/// No line of processes is longer.
const GENERATIONS_MAX: usize = 1000;
/// The digits of a process's number.
const DIGITS_MAX: usize = 10;

/// Finds the threads that are meant now.
type Find = Arc<dyn Fn() -> Result<Vec<Tid>> + Send + Sync>;

/// Whose events alone are recorded, with those of all that descend from them.
#[derive(Clone)]
pub struct Track {
    /// As they were asked for.
    pub words: Vec<String>,
    /// Whether the command is one of them, from its first instruction on.
    pub command: bool,
    /// Whether others than descendants may come.
    pub has_newcomers: bool,
    /// Finds those that are there.
    pub find: Find,
}

impl fmt::Debug for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Track").field(&self.words).finish()
    }
}

impl Track {
    /// Who is meant when the recording begins.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where our numbers of tasks are not the kernel's; as the finding.
    pub(crate) fn first(&self) -> Result<Vec<Tid>> {
        if host::namespace::is_inside() {
            let what = "the kernel tracks tasks by numbers that are not known here";
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found("this process is in a PID namespace of its own")
                .fix("run rtscope on the host, as in --track container:NAME"));
        }
        (self.find)().map(with_descendants)
    }
}

/// Keeps a running recording to those that are meant.
pub(crate) struct Tracker<'r> {
    track: Track,
    /// Those of all channels.
    instances: &'r [&'r Instance],
    /// Functions are recorded, too.
    functions: bool,
    calls: Option<CallTracker>,
    /// When newcomers were looked for last; none before the first time.
    looked: Option<StdInstant>,
}

impl<'r> Tracker<'r> {
    pub(crate) fn new(
        track: &Track,
        (instances, functions): (&'r [&'r Instance], bool),
        calls: Option<&SyscallRecorder>,
    ) -> Result<Tracker<'r>> {
        Ok(Tracker {
            track: track.clone(),
            instances,
            functions,
            calls: calls.map(SyscallRecorder::tracker).transpose()?,
            looked: None,
        })
    }

    /// Those that came since the last look and do not descend from others. Once also where only
    /// descendants may come: who was made while the first ones were found was made by nobody who
    /// was tracked then.
    pub(crate) fn newcomers(&mut self) -> Result<Vec<Tid>> {
        let is_soon =
            |looked: StdInstant| !self.track.has_newcomers || looked.elapsed() < LOOK_PERIOD;
        if self.looked.is_some_and(is_soon) {
            return Ok(Vec::new());
        }
        let known: BTreeSet<Tid> = self.tracked()?.into_iter().collect();
        let mut found = (self.track.find)()?;
        // The kernel follows those that are tracked; others had children before.
        if self.looked.is_some() {
            found.retain(|task| !known.contains(task));
        }
        let mut found = with_descendants(found);
        found.retain(|task| !known.contains(task));
        for instance in self.instances {
            instance.track(&found, self.functions)?;
        }
        if let Some(calls) = &self.calls {
            calls.track(&found)?;
        }
        self.looked = Some(StdInstant::now());
        Ok(found)
    }

    /// Whether the command is one of those that are meant.
    pub(crate) fn has_command(&self) -> bool {
        self.track.command
    }

    /// Whom it means, as they were asked for.
    pub(crate) fn track(&self) -> &Track {
        &self.track
    }

    /// Means `track` from now on: who is one of them is looked for at the next look. Gives those of
    /// `without` who are to be left, and none of whom it still means.
    pub(crate) fn mean(&mut self, track: Track, without: &Track) -> Result<Leaving> {
        let leaving = Leaving {
            gone: (without.find)()?,
            stay: (track.find)()?,
        };
        self.track = track;
        self.looked = None;
        Ok(leaving)
    }

    /// Records no more what these do.
    pub(crate) fn leave(&self, leaving: &Leaving) -> Result<()> {
        // Who is made meanwhile by one of them comes with the next look.
        for _ in 0..LOOKS_AT_LEAVING {
            let mut tasks = self.tracked()?;
            tasks.retain(|task| leaving.has(*task));
            if tasks.is_empty() {
                break;
            }
            if let Some(calls) = &self.calls {
                calls.leave(&tasks);
            }
            for instance in self.instances {
                instance.untrack(&tasks, self.functions)?;
            }
        }
        Ok(())
    }

    /// All that are tracked now.
    pub(crate) fn tracked(&self) -> Result<Vec<Tid>> {
        match self.instances {
            [first, ..] => first.tracked(),
            [] => Ok(Vec::new()),
        }
    }

    /// Starts a process that is tracked from its first instruction on, if the command is meant.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<std::process::Child> {
        if !self.track.command {
            return command.spawn();
        }
        let mut lists = Vec::new();
        for instance in self.instances {
            let files = instance.tracked_files(self.functions);
            lists.extend(files.map_err(|error| io::Error::other(error.to_string()))?);
        }
        let enlist = move || lists.iter().try_for_each(enlist);
        // SAFETY: between fork and exec it asks for its number and writes, and takes no memory.
        unsafe { command.pre_exec(enlist) };
        let Some(calls) = &self.calls else {
            return command.spawn();
        };
        // Whom a tracked task starts is one; our own calls are left out all the same.
        let own = [Tid(rustix::thread::gettid().as_raw_pid())];
        calls
            .track(&own)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let child = command.spawn();
        calls.leave(&own);
        child
    }
}

/// The words of a session that is to track `more` too, and none that it tracks no more.
pub(crate) fn with(known: &[String], more: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let new = more.iter().filter(|word| !known.contains(word));
    Ok((known.iter().chain(new).cloned().collect(), Vec::new()))
}

/// The words of a session that is to track `gone` no more, and these; all of them where none is
/// named.
///
/// # Errors
/// [`ErrorKind::NotFound`] for one that it does not track.
pub(crate) fn without(known: &[String], gone: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    if gone.is_empty() {
        return Ok((Vec::new(), known.to_vec()));
    }
    if let Some(stranger) = gone.iter().find(|word| !known.contains(word)) {
        return Err(
            Error::new(ErrorKind::NotFound, "the session does not track them")
                .found(format!("'{stranger}', and it tracks: {}", known.join(", ")))
                .fix("name whom it tracks, in the same words"),
        );
    }
    let stays = known.iter().filter(|word| !gone.contains(word));
    Ok((stays.cloned().collect(), gone.to_vec()))
}

/// Refuses to track some in a session that records all.
pub(crate) fn nobody_alone(session: &str) -> Error {
    let what = "the session records what everybody does";
    Error::new(ErrorKind::Unsupported, what)
        .found("it was started without --track")
        .fix(format!(
            "stop it, and: rtscope record start {session} --track WHOM ('nobody' begins with none)"
        ))
}

/// Who is to be recorded no more, with all that descend from them.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    gone: Vec<Tid>,
    /// But for these, and theirs.
    stay: Vec<Tid>,
}

impl Leaving {
    pub(crate) fn has(&self, task: Tid) -> bool {
        is_of(&self.gone, task) && !is_of(&self.stay, task)
    }
}

/// Whether `task` is one of `tasks`, or descends from one, as far as those live that are between.
fn is_of(tasks: &[Tid], task: Tid) -> bool {
    let mut line = std::iter::successors(Some(task), |task| parent(*task)).take(GENERATIONS_MAX);
    line.any(|task| tasks.contains(&task))
}

/// These, and the threads of all processes that descend from one of them now; but not our own.
fn with_descendants(mut tasks: Vec<Tid>) -> Vec<Tid> {
    if tasks.is_empty() {
        return tasks;
    }
    let mut known: BTreeSet<Tid> = tasks.iter().copied().collect();
    let of = tasks.iter().map(|task| task.0.cast_unsigned());
    let own = std::process::id();
    for process in below(&stats(), of).iter().filter(|one| one.pid != own) {
        let threads = threads(process.pid).map(|thread| Tid(thread.cast_signed()));
        tasks.extend(threads.filter(|thread| known.insert(*thread)));
    }
    tasks
}

/// The process of a thread, or the process that made that; none of the first one.
fn parent(task: Tid) -> Option<Tid> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", task.0)).ok()?;
    let number = |key: &str| -> Option<i32> {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse().ok()
    };
    let process = number("Tgid:")?;
    let of = if process == task.0 {
        number("PPid:")?
    } else {
        process
    };
    (of > 0).then_some(Tid(of))
}

/// Writes our number, in a process that is to become another program.
fn enlist(list: &File) -> io::Result<()> {
    let mut digits = [0; DIGITS_MAX];
    let mut begin = digits.len();
    let mut left = std::process::id();
    while left > 0 {
        begin -= 1;
        digits[begin] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    let text = &digits[begin..];
    // SAFETY: the bytes live for the call.
    match unsafe { libc::write(list.as_raw_fd(), text.as_ptr().cast(), text.len()) } {
        written if written == text.len() as isize => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_added_once_and_taken_only_where_they_are_known() {
        let words = |all: &[&str]| {
            all.iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let known = words(&["jackd", "pid:7"]);
        let (all, gone) = with(&known, &words(&["pid:7", "user:1"])).expect("words");
        assert_eq!(
            (all, gone),
            (words(&["jackd", "pid:7", "user:1"]), words(&[]))
        );
        let (left, gone) = without(&known, &words(&["jackd"])).expect("words");
        assert_eq!((left, gone), (words(&["pid:7"]), words(&["jackd"])));
        let (left, gone) = without(&known, &[]).expect("words");
        assert_eq!((left, gone), (words(&[]), known.clone()));
        let refused = without(&known, &words(&["pid:8"])).expect_err("unknown");
        let found = refused.value_found().unwrap_or_default();
        assert_eq!(found, "'pid:8', and it tracks: jackd, pid:7");
    }

    #[test]
    fn children_that_are_there_come_with_who_is_tracked() {
        let own = Tid(std::process::id().cast_signed());
        let mut child = Command::new("sleep").arg("1000").spawn().expect("a child");
        let tid = Tid(child.id().cast_signed());
        let mut all = with_descendants(vec![own]);
        assert!(all.contains(&tid), "{all:?}");
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count, "each once");
        assert_eq!(with_descendants(vec![tid]), [tid]);
        assert_eq!(with_descendants(Vec::new()), []);
        child.kill().and_then(|()| child.wait()).expect("it ends");
    }

    #[test]
    fn who_leaves_takes_its_children_along_but_not_those_that_stay() {
        let own = Tid(std::process::id().cast_signed());
        let mut child = Command::new("sleep").arg("1000").spawn().expect("a child");
        let tid = Tid(child.id().cast_signed());
        let leaving = |gone: &[Tid], stay: &[Tid]| Leaving {
            gone: gone.to_vec(),
            stay: stay.to_vec(),
        };
        assert!(leaving(&[own], &[]).has(tid) && leaving(&[tid], &[]).has(tid));
        assert!(!leaving(&[tid], &[]).has(own));
        assert!(!leaving(&[own], &[tid]).has(tid));
        child.kill().and_then(|()| child.wait()).expect("it ends");
    }
}
