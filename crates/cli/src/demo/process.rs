//! A part of the demo seen from its parent: started, given its cue, asked for its truth, and gone
//! when dropped.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use event::{Cpu, Error, ErrorKind, Result};

use super::part::Truth;
use crate::flags::PartRole;

/// What to start.
#[derive(Clone, Debug)]
pub struct PartSpec {
    /// The program that plays it: rtscope itself.
    pub program: PathBuf,
    /// What it is.
    pub role: PartRole,
    /// Its process name.
    pub name: String,
    /// Where it stays.
    pub cpu: Cpu,
    /// Real-time priority; 0 = ordinary.
    pub prio: u32,
    /// SCHED_RR instead of SCHED_FIFO.
    pub round_robin: bool,
    /// Run of a hog, period of a victim.
    pub length_us: u64,
}

/// A running part.
pub struct Part {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    name: String,
}

impl Part {
    /// Starts it and waits until it is in place.
    ///
    /// # Errors
    /// When it cannot be started or could not become what it was to be; it says why itself.
    pub fn start(spec: &PartSpec) -> Result<Part> {
        let role = clap::ValueEnum::to_possible_value(&spec.role);
        let mut command = Command::new(&spec.program);
        command
            .arg("demo-part")
            .args(role.map(|role| role.get_name().to_owned()));
        // One word: a name may begin with a dash.
        command.arg(format!("--name={}", spec.name));
        command.args(["--cpu", &spec.cpu.0.to_string()]);
        command.args(["--parent", &std::process::id().to_string()]);
        command.args(["--prio", &spec.prio.to_string()]);
        command.args(["--length-us", &spec.length_us.to_string()]);
        if spec.round_robin {
            command.arg("--round-robin");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let cannot = |error| Error::io(format!("cannot start {}", spec.name), error);
        let mut child = command.spawn().map_err(cannot)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::new(
                ErrorKind::Io,
                format!("{} has no pipes", spec.name),
            ));
        };
        let stdout = BufReader::new(stdout);
        let mut part = Part {
            child,
            stdin: Some(stdin),
            stdout,
            name: spec.name.clone(),
        };
        part.line()?;
        Ok(part)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells it to begin.
    ///
    /// # Errors
    /// When it is gone.
    pub fn cue(&mut self) -> Result<()> {
        let sent = self
            .stdin
            .as_mut()
            .map_or(Ok(()), |stdin| stdin.write_all(b"go\n"));
        sent.map_err(|error| Error::io(format!("{} does not listen", self.name), error))
    }

    /// Waits for its end and what it measured.
    ///
    /// # Errors
    /// When it died before it could say.
    pub fn truth(&mut self) -> Result<Truth> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| {
            Error::new(
                ErrorKind::Corrupt,
                format!("{} said something else", self.name),
            )
            .found(line.trim())
            .cause(error)
        })
    }

    /// Tells it to end, and waits for what it measured.
    ///
    /// # Errors
    /// As [`Part::truth`].
    pub fn stop(mut self) -> Result<Truth> {
        self.stdin = None;
        self.truth()
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        match read {
            Ok(length) if length > 0 => Ok(line),
            Ok(_) => Err(
                Error::new(ErrorKind::Io, format!("{} ended too early", self.name))
                    .fix("rtscope doctor shows what is missing"),
            ),
            Err(error) => Err(Error::io(format!("cannot hear {}", self.name), error)),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Gone already is what is wanted.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
