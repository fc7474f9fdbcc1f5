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

use crate::syscalls::SyscallRecorder;

/// How often newcomers are looked for.
const LOOK_PERIOD: StdDuration = StdDuration::from_millis(100);
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
        (self.find)()
    }
}

/// Keeps a running recording to those that are meant.
pub(crate) struct Tracker<'r> {
    track: &'r Track,
    instance: &'r Instance,
    /// Functions are recorded, too.
    functions: bool,
    calls: Option<CallTracker>,
    /// When newcomers were looked for last; none before the first time.
    looked: Option<StdInstant>,
}

impl<'r> Tracker<'r> {
    pub(crate) fn new(
        track: &'r Track,
        (instance, functions): (&'r Instance, bool),
        calls: Option<&SyscallRecorder>,
    ) -> Result<Tracker<'r>> {
        Ok(Tracker {
            track,
            instance,
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
        let known: BTreeSet<Tid> = self.instance.tracked()?.into_iter().collect();
        let mut found = (self.track.find)()?;
        found.retain(|task| !known.contains(task));
        self.instance.track(&found, self.functions)?;
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

    /// All that are tracked now.
    pub(crate) fn tracked(&self) -> Result<Vec<Tid>> {
        self.instance.tracked()
    }

    /// Starts a process that is tracked from its first instruction on, if the command is meant.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<std::process::Child> {
        if !self.track.command {
            return command.spawn();
        }
        let lists = self.instance.tracked_files(self.functions);
        let lists = lists.map_err(|error| io::Error::other(error.to_string()))?;
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
