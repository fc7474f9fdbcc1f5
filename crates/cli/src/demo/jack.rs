//! `jack`: the real jackd, made late by a real-time hog on its CPU, with jackd's own word for it.
//!
//! What `jackd -P 1 -d dummy` (1.9.21) does: one of its four threads, all called `jackd`, is
//! SCHED_FIFO 1; it sleeps on a timer of its own for a period of 1024 frames (21.3 ms at 48 kHz).
//! When it was late it says `JackTimedDriver::Process XRun = N usec`. For half a second's delay N
//! was seen as small as 19: it is shown as it is, and not taken for the lateness.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use event::{Cpu, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::part::Truth;
use super::process::{Part, PartSpec};
use crate::flags::PartRole;
use host::task::{self, StayOff};

/// The published experiment: a hog at SCHED_RR 60 for half a second.
const HOG_PRIO: u32 = 60;
const HOG_LENGTH_US: u64 = 500_000;
/// How long jackd may take until its real-time thread runs.
const START_MAX: Duration = Duration::from_secs(10);
/// A few periods, so that jackd has found its rhythm; afterwards, until it has said its word.
const REST: Duration = Duration::from_millis(500);
/// How long it may take to go when asked.
const STOP_MAX: Duration = Duration::from_secs(5);

/// The experiment, decided.
#[derive(Clone, Debug)]
pub struct JackOptions {
    /// The program that plays the hog.
    pub program: PathBuf,
    /// Where jackd is.
    pub jackd: PathBuf,
    /// Where jackd and the hog run.
    pub cpu: Cpu,
    /// The hog's process name.
    pub hog_name: String,
}

/// A line of jackd and when we read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidLine {
    /// CLOCK_MONOTONIC when it reached us.
    pub time_ns: u64,
    /// The line.
    pub text: String,
}

/// What happened, from those who did it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JackTruth {
    /// The hog.
    pub hog: Truth,
    /// What jackd said of missed periods from the hog's start on.
    pub xruns: Vec<SaidLine>,
}

/// The experiment while it runs; dropping it ends jackd and the hog.
pub struct JackExperiment {
    jackd: Jackd,
    hog: Part,
    _stay_off: StayOff,
}

impl JackExperiment {
    /// Starts jackd and waits until its real-time thread runs. The calling thread stays off
    /// the CPU as long as the experiment lives.
    ///
    /// # Errors
    /// When jackd cannot be started, with what it said itself.
    pub fn start(options: &JackOptions) -> Result<Self> {
        let stay_off = task::stay_off(options.cpu)?;
        let jackd = Jackd::start(options)?;
        let hog = Part::start(&PartSpec {
            program: options.program.clone(),
            role: PartRole::Hog,
            name: options.hog_name.clone(),
            cpu: options.cpu,
            prio: HOG_PRIO,
            round_robin: true,
            length_us: HOG_LENGTH_US,
        })?;
        Ok(JackExperiment {
            jackd,
            hog,
            _stay_off: stay_off,
        })
    }

    /// The process of jackd.
    pub fn jackd_pid(&self) -> u32 {
        self.jackd.child.id()
    }

    /// The real-time thread of jackd.
    pub fn victim_tid(&self) -> i32 {
        self.jackd.real_time_tid
    }

    /// Lets the hog loose once, and waits for its end and for jackd's word.
    ///
    /// # Errors
    /// When jackd or the hog died.
    pub fn provoke(&mut self) -> Result<JackTruth> {
        std::thread::sleep(REST);
        self.hog.cue()?;
        let hog = self.hog.truth()?;
        std::thread::sleep(REST);
        let is_xrun = |line: &SaidLine| {
            line.time_ns >= hog.start_ns && line.text.to_ascii_lowercase().contains("xrun")
        };
        let xruns = self.jackd.said().into_iter().filter(is_xrun).collect();
        Ok(JackTruth { hog, xruns })
    }
}

/// A running jackd.
struct Jackd {
    child: Child,
    said: Arc<Mutex<Vec<SaidLine>>>,
    real_time_tid: i32,
}

impl Jackd {
    fn start(options: &JackOptions) -> Result<Self> {
        let mut command = Command::new(&options.program);
        command.args(["demo-part", "run", "--name", "jackd"]);
        command.args(["--parent", &std::process::id().to_string()]);
        command
            .args(["--cpu", &options.cpu.0.to_string(), "--"])
            .arg(&options.jackd);
        // A server name of our own: a jackd that is already there is left alone.
        command.args(["-n", &format!("rtscope-{}", std::process::id())]);
        command.args(["-P", "1", "-v", "-d", "dummy"]);
        command.env("JACK_NO_AUDIO_RESERVATION", "1");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| Error::io("cannot start jackd", error))?;
        let said = Arc::new(Mutex::new(Vec::new()));
        if let Some(stdout) = child.stdout.take() {
            listen(stdout, said.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            listen(stderr, said.clone());
        }
        let mut jackd = Jackd {
            child,
            said,
            real_time_tid: 0,
        };
        jackd.real_time_tid = jackd.wait_for_real_time_thread()?;
        Ok(jackd)
    }

    fn wait_for_real_time_thread(&mut self) -> Result<i32> {
        let start = Instant::now();
        let tasks = PathBuf::from(format!("/proc/{}/task", self.child.id()));
        while start.elapsed() < START_MAX {
            if let Some(tid) = real_time_thread(&tasks) {
                return Ok(tid);
            }
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let said = self.said().pop().map_or("nothing".into(), |line| line.text);
        Err(
            Error::new(ErrorKind::Io, "jackd did not start in real-time mode")
                .found(format!("its last words: {said}"))
                .fix("sudo rtscope demo hog shows the same without jackd"),
        )
    }

    fn said(&self) -> Vec<SaidLine> {
        self.said
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Jackd {
    fn drop(&mut self) {
        // Asked politely it removes its own shared memory and sockets.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        }
        let start = Instant::now();
        while start.elapsed() < STOP_MAX && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Stamps each line of `stream` on a thread of its own, which ends with the stream.
fn listen(stream: impl Read + Send + 'static, said: Arc<Mutex<Vec<SaidLine>>>) {
    std::thread::spawn(move || {
        for text in BufReader::new(stream)
            .lines()
            .map_while(std::io::Result::ok)
        {
            let line = SaidLine {
                time_ns: task::monotonic_ns(),
                text: plain(&text),
            };
            said.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(line);
        }
    });
}

/// `text` without the colours that jackd gives its errors.
fn plain(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        plain + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

/// The first thread below `tasks` that is scheduled as real-time.
fn real_time_thread(tasks: &Path) -> Option<i32> {
    let entries = std::fs::read_dir(tasks).ok()?;
    entries.flatten().find_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let tid = entry.file_name().to_string_lossy().parse().ok()?;
        is_real_time(&stat).then_some(tid)
    })
}

/// Whether `/proc/PID/stat` shows a real-time priority: its field 40, counted from the state,
/// which is field 3 and follows the name in parentheses (proc(5)).
fn is_real_time(stat: &str) -> bool {
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let rt_priority = after_name.split(' ').nth(40 - 3);
    rt_priority
        .and_then(|text| text.parse::<u32>().ok())
        .is_some_and(|priority| priority > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_time_thread_is_known_by_its_stat() {
        let check = |priority: &str, expect: bool| {
            let filler = "0 ".repeat(36);
            let stat = format!("12 (a) b) S {filler}{priority} 1 0 0");
            assert_eq!(is_real_time(&stat), expect, "{stat}");
        };
        check("1", true);
        check("0", false);
        assert!(!is_real_time("rubbish"));
    }

    #[test]
    fn the_words_of_jackd_lose_their_colours() {
        assert_eq!(plain("\x1b[31mXRun\x1b[0m = 5 usec"), "XRun = 5 usec");
        assert_eq!(plain("Jack: start"), "Jack: start");
    }
}
