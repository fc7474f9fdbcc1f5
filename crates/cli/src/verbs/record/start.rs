//! `rtscope record start`: a process of its own that records, and the one who starts it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use capture::capabilities;
use capture::session::{Refusal, SessionConfig, SessionStatus, Sessions};
use event::{Error, ErrorKind, Result};
use ftrace::Tracefs;
use host::capabilities::Verb;
use serde::{Deserialize, Serialize};

use super::config::{config as record_config, track};
use super::sessions::text;
use crate::exit::{Outcome, print};
use crate::flags::RecordStart;
use crate::options::{SessionOptions, TrackOptions};
use crate::signals;

/// What the session's process says to the one that started it: a line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Began {
    Ready(Box<SessionStatus>),
    Refused(Refusal),
}

/// Starts a session, and returns when it records.
pub(super) fn start(typed: &RecordStart) -> Result<Outcome> {
    let options = SessionOptions::new(typed)?;
    if typed.check_config {
        return check_config(options);
    }
    let name = &options.name;
    let sessions = Sessions::of_this_user();
    let mut session = spawn(&sessions)?;
    let mut line = String::new();
    if let Some(stdout) = session.stdout.take() {
        let read = BufReader::new(stdout).read_line(&mut line);
        read.map_err(|cause| Error::io("cannot hear from the session's process", cause))?;
    }
    match serde_json::from_str(&line) {
        Ok(Began::Ready(status)) => {
            print(&format!(
                "{}next:  rtscope record status {name}; rtscope record stop {name}\n",
                text(&status)
            ))?;
            Ok(Outcome::Fine)
        }
        Ok(Began::Refused(refusal)) => {
            // It ends by itself; nobody else waits for it.
            let _ = session.wait();
            Err(refusal.into_error())
        }
        Err(_) => {
            let ended = session.wait();
            let found = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            let what = format!("the session {name} ended before it began");
            Err(Error::new(ErrorKind::Io, what)
                .found(found)
                .fix("see the end of '.log' in the folder of sessions"))
        }
    }
}

/// Whether the settings make sense, and as far as that can be read here, whether this kernel has
/// the events.
fn check_config(options: SessionOptions) -> Result<Outcome> {
    let available = match options.record.kernel {
        true => Tracefs::find().and_then(|tracefs| tracefs.available_events()),
        false => Ok(Vec::new()),
    };
    match available {
        Ok(available) if !available.is_empty() => {
            config(options)?.record.require_events(&available)?;
        }
        Ok(_) => (),
        Err(error) => note!("whether this kernel has the events was not looked up: {error}"),
    }
    print("the settings make sense\n")?;
    Ok(Outcome::Fine)
}

/// This program again, with the same words but for one, away from the terminal.
fn spawn(sessions: &Sessions) -> Result<Child> {
    let failed = |cause| Error::io("cannot start the session's process", cause);
    let program = std::env::current_exe().map_err(failed)?;
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    // The first is `start` of `record start`: what is before it takes no value of that name.
    let begins = words.iter().position(|word| word == "start");
    if let Some(word) = begins.and_then(|place| words.get_mut(place)) {
        *word = "serve".into();
    }
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(sessions.log()?);
    // SAFETY: both calls are async-signal-safe; the child of the fork leads no group.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            // What whoever called us left open, as the lock of flock(1), is not the session's. A
            // kernel that cannot leaves it so.
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
            Ok(())
        });
    }
    command.spawn().map_err(failed)
}

/// The session's process.
pub(super) fn serve(typed: &RecordStart) -> Result<Outcome> {
    signals::outlive_terminal()?;
    // Before all that takes time: who is asked to stop meanwhile says so.
    signals::take_over()?;
    let say = |began: &Began| {
        let mut stdout = std::io::stdout().lock();
        let line = serde_json::to_string(began).unwrap_or_default();
        // Who started it may have gone away; it records all the same.
        let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    };
    let ran = run(typed, |status| {
        say(&Began::Ready(Box::new(status.clone())));
    });
    if let Err(error) = ran {
        say(&Began::Refused(Refusal::from(&error)));
    }
    Ok(Outcome::Fine)
}

fn run(typed: &RecordStart, ready: impl FnOnce(&SessionStatus)) -> Result<()> {
    let options = SessionOptions::new(typed)?;
    let capabilities = match options.record.kernel {
        true => capabilities::gather(),
        false => host::capabilities::gather_cpus(),
    };
    if options.record.kernel {
        capabilities.require(Verb::Record)?;
    }
    if options.record.user.is_some() {
        for moved in capture::require_ring_folder()? {
            note!("{moved:#}");
        }
    }
    let config = config(options)?;
    // It keeps no file system from being unmounted but that which it writes to.
    std::env::set_current_dir("/").map_err(|cause| Error::io("cannot go to /", cause))?;
    let sessions = Sessions::of_this_user();
    capture::session::serve(&config, &capabilities, &sessions, ready)
}

fn config(options: SessionOptions) -> Result<SessionConfig> {
    let output = absolute(&options.record.output)?;
    let settings = options.settings()?;
    let mut record = record_config(options.record)?;
    let rings = std::env::var_os("RTSCOPE_DIR").filter(|folder| !folder.is_empty());
    if let Some(folder) = rings {
        let folder = absolute(Path::new(&folder))?;
        record.user = record.user.map(|user| user.in_directory(folder));
    }
    Ok(SessionConfig {
        name: options.name,
        output,
        record,
        flight: options.flight,
        rotate_every: options.rotate_every,
        rotate_size_bytes: options.rotate_size_bytes,
        keep: options.keep,
        command_line: capture::own_command_line(),
        settings,
        track_of: |words| Ok(track(TrackOptions::of_session(words)?)),
    })
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path)
        .map_err(|cause| Error::io(format!("cannot find {}", path.display()), cause))
}
