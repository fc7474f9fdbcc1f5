//! One lock for everything that needs tracefs, BPF or real-time priorities for itself.

use std::fs::{File, OpenOptions};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use rustix::fs::FlockOperation;

/// The lock file; `testkit::privileged` takes the same one.
pub const PATH: &str = "/run/lock/rtscope-privileged.lock";
/// Set for children of a holder, so that `testkit::privileged` does not wait for its own parent.
pub const HELD: &str = "RTSCOPE_PRIVILEGED_LOCK_HELD";

/// Waits for the lock; it is free again when the file is closed.
pub fn acquire() -> Result<File> {
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(PATH);
    let file = file.with_context(|| format!("cannot open the lock {PATH}; run as root"))?;
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        eprintln!("waiting for {PATH}, held by another privileged test");
        rustix::fs::flock(&file, FlockOperation::LockExclusive).context("cannot lock")?;
    }
    Ok(file)
}

/// Runs `words` while holding the lock.
pub fn run(words: &[&str]) -> Result<ExitCode> {
    let _held = acquire()?;
    let mut command = Command::new(words[0]);
    let status = command.args(&words[1..]).env(HELD, "1").status();
    let status = status.with_context(|| format!("cannot start: {}", words[0]))?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1)
        .into())
}
