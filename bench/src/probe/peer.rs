//! LTTng-UST's recorder beside ours, as its users have it: a session with the channel that it makes
//! by itself, and programs that are compiled with its tracepoint.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use measure::looping::lttng::Daemon;

use super::limits::{cpu_ns, process_named, until_idle};
use super::scene::Scene;
use crate::child;

/// Without it, LTTng-UST does not follow a process into its children.
pub(super) const FORK_LIBRARY: &str = "liblttng-ust-fork.so.1";
/// Its recorder is two processes.
const RECORDERS: [&str; 2] = ["lttng-sessiond", "lttng-consumerd"];

/// A session that records all events of npt.
pub(super) struct Peer {
    daemon: Daemon,
    folder: tempfile::TempDir,
}

/// What its recorder took until now.
pub(super) struct Took {
    pub cpu_s: f64,
    pub memory_mb: f64,
}

impl Peer {
    /// Starts a daemon and, in it, the session.
    pub fn start() -> Result<Peer> {
        let folder = tempfile::tempdir()?;
        let daemon = Daemon::start(folder.path())?;
        let peer = Peer { daemon, folder };
        let trace = peer.trace();
        peer.lttng([
            OsStr::new("create"),
            "npt".as_ref(),
            "-o".as_ref(),
            trace.as_ref(),
        ])?;
        peer.lttng(["enable-event", "-u", "npt:*"])?;
        peer.lttng(["start"])?;
        Ok(peer)
    }

    fn lttng<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<()> {
        let mut command = self.daemon.command("lttng");
        command.args(["--no-sessiond", "-q"]).args(words);
        child::output(&mut command).map(drop)
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// A program that it records, and that it follows into its children.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = self.daemon.command(program);
        command.env("LD_PRELOAD", FORK_LIBRARY);
        command
    }

    /// Waits until it has nothing to do.
    pub fn settle(&self) -> Result<()> {
        for name in RECORDERS {
            until_idle(process_named(name)?)?;
        }
        Ok(())
    }

    /// Ends the recording; what it took from the start of the daemon on.
    pub fn stop(&self) -> Result<Took> {
        self.lttng(["stop"])?;
        let mut took = Took {
            cpu_s: 0.0,
            memory_mb: 0.0,
        };
        for name in RECORDERS {
            let pid = process_named(name)?;
            took.cpu_s += cpu_ns(pid)? / 1e9;
            took.memory_mb += largest_bytes(pid)? / 1e6;
        }
        Ok(took)
    }

    /// Events in its trace.
    pub fn events(&self, scene: &Scene<'_>) -> Result<usize> {
        events_in(scene, &self.trace())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The daemon ends with us in any case.
        self.lttng(["destroy", "npt"]).ok();
    }
}

/// The events of npt in a trace, whoever wrote it.
pub(super) fn events_in(scene: &Scene<'_>, trace: &Path) -> Result<usize> {
    let mut command = Command::new(scene.rtscope);
    command.arg("cat").arg(trace);
    command.args(["--filter", "$name == \"npt:loop\""]);
    let said = child::output(&mut command)?;
    Ok(said
        .lines()
        .filter(|line| line.contains("npt:loop"))
        .count())
}

/// Compiles a program of `bench/probe` with LTTng-UST's tracepoint, or with none; the loop's
/// provider lies in the scene's folder.
pub(super) fn program(scene: &Scene<'_>, name: &str, is_traced: bool) -> Result<PathBuf> {
    let (define, ending) = match is_traced {
        true => ("-DTICK_LTTNG", "lttng"),
        false => ("-DTICK_NONE", "none"),
    };
    let program = scene.folder.join(format!("{name}-{ending}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("probe");
    let mut command = Command::new("cc");
    command.args(["-O2", "-pthread", define, "-I"]);
    command.arg(scene.folder).arg("-o").arg(&program);
    command.arg(source.join(name).with_extension("c"));
    if is_traced {
        command.args(["-llttng-ust", "-ldl"]);
    }
    child::output(&mut command)?;
    Ok(program)
}

/// The most that a process ever had in memory.
fn largest_bytes(pid: u32) -> Result<f64> {
    let said = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    kib_of(&said, "VmHWM:").map(|kib| kib * 1024.0)
}

/// The figure of a line such as `VmLck:  16 kB`.
pub(super) fn kib_of(status: &str, name: &str) -> Result<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib = kib.with_context(|| format!("no {name} in {status}"))?;
    Ok(kib.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_memory_is_read_by_its_name() {
        let status = "VmLck:\t     128 kB\nVmRSS:\t    2048 kB\n";
        assert_eq!(kib_of(status, "VmRSS:").expect("there"), 2048.0);
        assert!(kib_of(status, "VmHWM:").is_err());
    }
}
