//! One run of `rtscope measure loop`, alone or recorded.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use measure::looping::lttng::Library;
use serde_json::Value;

use crate::child;

/// Iterations that the loop leaves out of its figures.
pub(super) const DROPPED: u64 = 1000;
/// Room for all events of a run: a lost one would cost less.
pub(super) const RING: &str = "128M";
const LTTNG: &[&str] = &["lttng", "lttng-sessiond"];

/// A way to run the loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tracer {
    /// Nobody, and no event.
    None,
    /// A second reading of the clock.
    Clock,
    /// Events are compiled in and switched off.
    Off,
    /// A flight recorder: nobody reads.
    Rtscope,
    /// `rtscope record` reads.
    Recorded,
    /// LTTng-UST, whose consumer is woken by the traced thread.
    Lttng,
    /// LTTng-UST, whose consumer looks every 100 ms.
    LttngTimer,
}

impl Tracer {
    pub fn is_lttng(self) -> bool {
        matches!(self, Tracer::Lttng | Tracer::LttngTimer)
    }

    /// As `measure loop --tracer` calls it.
    fn word(self) -> &'static str {
        match self {
            Tracer::None => "none",
            Tracer::Clock => "clock",
            Tracer::Off | Tracer::Rtscope | Tracer::Recorded => "rtscope",
            Tracer::Lttng => "lttng",
            Tracer::LttngTimer => "lttng-timer",
        }
    }
}

/// What every run needs.
pub(super) struct Scene<'a> {
    pub rtscope: &'a Path,
    pub folder: &'a Path,
    pub shared: &'a Path,
    /// The loop with LTTng's tracepoint, where LTTng-UST is installed.
    pub lttng: Option<PathBuf>,
    pub cpu: usize,
    pub loops: u64,
}

/// Builds the loop for LTTng-UST; none where that is not installed.
pub(super) fn lttng_library(folder: &Path) -> Option<PathBuf> {
    let is_there = LTTNG.iter().all(|program| child::exists(program));
    is_there.then(|| Library::build(folder).ok()).flatten()
}

impl Scene<'_> {
    /// Runs the loop; what it found, as `measure loop --json` says it.
    pub fn run(&self, tracer: Tracer, event: &str, per_second: Option<u64>) -> Result<Value> {
        let trace = self.folder.join("trace");
        let mut command = Command::new(self.rtscope);
        if tracer == Tracer::Recorded {
            command.args(["record", "--user", "npt", "-o"]).arg(&trace);
            command.arg("--").arg(self.rtscope);
            command.env("RTSCOPE_RING_SIZE", RING);
        }
        self.add_loop(&mut command, tracer, event);
        if let Some(rate) = per_second {
            command.args(["--events-per-second", &rate.to_string()]);
        }
        if tracer == Tracer::Off {
            command.env("RTSCOPE_EVENTS", "nothing");
        }
        let said = child::output(&mut command)?;
        if tracer == Tracer::Recorded {
            std::fs::remove_dir_all(&trace)?;
        }
        self.remove_rings()?;
        let found = figures(&said);
        let mut found = found.with_context(|| format!("the loop said no figures: {said}"))?;
        if tracer == Tracer::Recorded {
            found["lost"] = lost(&said).into();
        }
        Ok(found)
    }

    /// The loop's own words, with rings in a folder of ours.
    pub fn add_loop(&self, command: &mut Command, tracer: Tracer, event: &str) {
        command.args(["measure", "loop", "--json", "--tracer", tracer.word()]);
        command.args(["--event", event, "--cpu", &self.cpu.to_string()]);
        command.args(["--loops", &self.loops.to_string()]);
        command.args(["--drop", &DROPPED.to_string()]);
        if let (true, Some(library)) = (tracer.is_lttng(), &self.lttng) {
            command.arg("--lttng-loop").arg(library);
        }
        command.env("RTSCOPE_DIR", self.shared);
        command.env_remove("RTSCOPE_EVENTS");
    }

    /// A flight recorder leaves its rings for whoever wants to read them.
    pub fn remove_rings(&self) -> Result<()> {
        for entry in std::fs::read_dir(self.shared)? {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(())
    }
}

/// The loop's JSON, before or between what a recorder says.
fn figures(said: &str) -> Result<Value> {
    let begin = said.find('{').context("no JSON")?;
    let mut values = serde_json::Deserializer::from_str(&said[begin..]).into_iter::<Value>();
    let found = values.next().context("no JSON")??;
    ensure!(found["schema"] == "rtscope.measure.loop", "another schema");
    Ok(found)
}

/// What the recorder lost: `NAME (PID): N events, L lost, …`, a line for each process.
fn lost(said: &str) -> Option<u64> {
    let lost = |line: &str| {
        let (_, figures) = line.split_once("): ")?;
        let lost = figures.split(", ").nth(1)?.strip_suffix(" lost")?;
        lost.parse().ok()
    };
    said.lines().find_map(lost)
}
