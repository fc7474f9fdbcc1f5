//! Processes that are measured: wall clock, CPU time, memory.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// What a finished process took.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// From its start until it was gone.
    pub wall: Duration,
    /// CPU time, user and system, its children's included.
    pub cpu: Duration,
    /// The most memory that it had at once.
    pub resident_bytes_max: u64,
}

/// rtscope's exit code when the answer is whole and rests on a trace with losses, or without some
/// events that it would like to have; of a watch, when nobody of whom it was asked was judged.
const INCONCLUSIVE: i32 = 3;

/// Runs a command to its end, its output thrown away.
///
/// # Errors
/// When it cannot be started, or gives no answer.
pub fn run(command: &mut Command) -> Result<Taken> {
    let begin = Instant::now();
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.with_context(|| format!("cannot start {}", name(command)))?;
    let waited = wait(&child).with_context(|| name(command))?;
    Ok(Taken {
        wall: begin.elapsed(),
        ..waited
    })
}

/// Waits for a process that was started; its wall clock is that of waiting.
///
/// # Errors
/// When it gives no answer.
pub fn wait(child: &Child) -> Result<Taken> {
    let begin = Instant::now();
    let (status, usage) = wait_with_usage(child.id())?;
    let wall = begin.elapsed();
    if !status.success() && status.code() != Some(INCONCLUSIVE) {
        bail!("it failed: {status}");
    }
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec as u64) + Duration::from_micros(value.tv_usec as u64)
    };
    Ok(Taken {
        wall,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        resident_bytes_max: usage.ru_maxrss as u64 * 1024,
    })
}

/// Runs a command to its end and gives what it wrote to stdout.
///
/// # Errors
/// When it cannot be started, or fails.
pub fn output(command: &mut Command) -> Result<String> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() && status.code() != Some(INCONCLUSIVE) {
        let said = String::from_utf8_lossy(&stderr);
        bail!("{} failed: {status}\n{said}", name(command));
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// Whether a program of this name can be started.
pub fn exists(program: &str) -> bool {
    which::which(program).is_ok()
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn wait_with_usage(pid: u32) -> Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    // SAFETY: all zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to locals that outlive the call.
    let waited = unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) };
    if waited < 0 {
        return Err(std::io::Error::last_os_error()).context("cannot wait for a child");
    }
    Ok((ExitStatus::from_raw(status), usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_measured_and_its_failure_is_ours() {
        let taken = run(&mut Command::new("true")).expect("true succeeds");
        assert!(taken.resident_bytes_max > 0);
        assert!(run(&mut Command::new("false")).is_err());
        assert!(run(&mut Command::new("no-such-program")).is_err());
        assert_eq!(output(Command::new("echo").arg("x")).expect("echo"), "x\n");
        assert!(exists("sh") && !exists("no-such-program"));
    }
}
