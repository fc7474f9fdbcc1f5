//! `rtscope demo`: an experiment beside an ordinary watch, and what both say of it.
//!
//! The experiment runs in a thread of its own (its processes die with that thread); the watch, the
//! snapshot and the verdict are those of `rtscope watch`, which know nothing of the demo.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;
use std::time::Instant as StdInstant;

use bpf_host::Members;
use capture::Keep;
use capture::capabilities;
use capture::watch::{HitReport, Status, WatchObserver};
use event::{Cpu, Duration, Error, ErrorKind, Instant, Result, TaskPattern, Tid};
use host::capabilities::{Capabilities, Verb};
use serde::Serialize;
use serde_json::{Value, json};

use super::hog::{HogExperiment, HogOptions, HogTruth};
use super::jack::{JackExperiment, JackOptions, JackTruth};
use crate::exit::{Outcome, stdout_error};
use crate::flags::{Demo, DemoKind, Until};
use crate::options::{Rate, SnapshotOptions, Target, WatchOptions, known_cpus};
use crate::paint::Paint;
use crate::signals;
use crate::verbs::watch::{Observer, hit_value, session};

/// The schema of `--json`.
const SCHEMA: &str = "rtscope.demo";
const SCHEMA_VERSION: u32 = 1;
/// We are this program; its parts are too.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// The victim's period; half a hog's length where that is less, so that the hog meets it.
const PERIOD_MAX_US: u64 = 5_000;
/// Nobody's fault takes this long where nobody is at fault.
const QUIET_OVER: Duration = Duration::from_ms(10);
/// As in the published experiment.
const JACK_OVER: Duration = Duration::from_ms(25);
/// A snapshot that is being written when the experiment ends is waited for.
const REST: StdDuration = StdDuration::from_millis(500);
/// A broken experiment ends the watch, too.
const DEMO_MAX: Duration = Duration::from_ms(30_000);

/// What really happened, as the experiment measured it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Truth {
    Hog(HogTruth),
    Jack(JackTruth),
}

/// Runs the verb.
pub fn run(typed: &Demo, paint: Paint) -> Result<Outcome> {
    let capabilities = capabilities::gather();
    let is_jack = typed.kind == DemoKind::Jack;
    capabilities.require(if is_jack { Verb::DemoJack } else { Verb::Demo })?;
    let (cpu, other_cpu) = choose_cpus(typed, &capabilities)?;
    let over = threshold(typed);
    signals::take_over()?;
    let (tid_sender, tid) = channel();
    let (go, go_receiver) = channel();
    let experiment = if is_jack {
        start_jack(typed, &capabilities, cpu, tid_sender, go_receiver)?
    } else {
        start_hog(typed, cpu, other_cpu, tid_sender, go_receiver)
    };
    // Without a tid the experiment failed to start, and says why when joined.
    let Ok(tid) = tid.recv() else {
        return join(experiment).map(|_| Outcome::Inconclusive);
    };
    let options = watch_options(typed, tid, cpu, over);
    let inner = Observer::new(&options, paint, false);
    let mut observer = DemoObserver {
        inner,
        json: typed.json,
        go: Some(go),
        experiment: Some(experiment),
        ended: None,
        truth: None,
        hits: Vec::new(),
        snapshots: Vec::new(),
    };
    let command_line = capture::own_command_line();
    capture::watch::run(
        &session(&options)?,
        &capabilities,
        &command_line,
        &mut observer,
    )?;
    let truth = observer.join()?;
    let text = if typed.json {
        let value = json!({ "schema": SCHEMA, "version": SCHEMA_VERSION, "cpu": cpu.0,
            "truth": truth, "hits": observer.hits });
        format!("{value:#}\n")
    } else {
        ending(&truth, &observer.snapshots)
    };
    std::io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .map_err(stdout_error)?;
    let is_as_expected = observer.hits.is_empty() == (typed.faults == 0 && !is_jack);
    Ok(if is_as_expected {
        Outcome::Fine
    } else {
        Outcome::Inconclusive
    })
}

/// The CPU of the experiment, and another one.
fn choose_cpus(typed: &Demo, capabilities: &Capabilities) -> Result<(Cpu, Cpu)> {
    let allowed = &capabilities.machine.cpus_allowed;
    let none = || Error::new(ErrorKind::Unsupported, "the demo needs a second CPU");
    let cpu = match &typed.cpu {
        Some(text) => *known_cpus(text, allowed)?.first().ok_or_else(none)?,
        None => *allowed.last().ok_or_else(none)?,
    };
    let other = allowed
        .iter()
        .find(|other| **other != cpu)
        .ok_or_else(none)?;
    Ok((cpu, *other))
}

fn threshold(typed: &Demo) -> Duration {
    match (typed.kind, typed.faults) {
        (DemoKind::Jack, _) => JACK_OVER,
        (DemoKind::Hog, 0) => QUIET_OVER,
        (DemoKind::Hog, _) => Duration::from_us((typed.hog_ms * 1000 / 4).max(500) as i64),
    }
}

fn start_hog(
    typed: &Demo,
    cpu: Cpu,
    other_cpu: Cpu,
    tid: Sender<Tid>,
    go: Receiver<()>,
) -> JoinHandle<Result<Truth>> {
    let length_us = typed.hog_ms * 1000;
    let hogs = [
        (typed.hog_name.clone(), length_us),
        (typed.second_name.clone(), length_us / 2),
    ];
    let options = HogOptions {
        program: OWN_PROGRAM.into(),
        cpu,
        other_cpu,
        victim_name: typed.victim_name.clone(),
        period_us: PERIOD_MAX_US.min(length_us / 2),
        hogs: hogs[..usize::from(typed.faults)].to_vec(),
        decoy_low: typed.decoy_low,
        decoy_other_cpu: typed.decoy_other_cpu,
    };
    std::thread::spawn(move || {
        let mut experiment = HogExperiment::start(&options)?;
        tid.send(Tid(experiment.victim_pid() as i32))
            .map_err(|_| nobody_watches())?;
        go.recv().map_err(|_| nobody_watches())?;
        let hogs = experiment.provoke()?;
        experiment.finish(hogs).map(Truth::Hog)
    })
}

fn start_jack(
    typed: &Demo,
    capabilities: &Capabilities,
    cpu: Cpu,
    tid: Sender<Tid>,
    go: Receiver<()>,
) -> Result<JoinHandle<Result<Truth>>> {
    let options = JackOptions {
        program: OWN_PROGRAM.into(),
        jackd: capabilities
            .jackd_path
            .clone()
            .unwrap_or_else(|| "jackd".into())
            .into(),
        cpu,
        hog_name: typed.hog_name.clone(),
    };
    note!("starting jackd -P 1 -d dummy on {cpu}");
    Ok(std::thread::spawn(move || {
        let mut experiment = JackExperiment::start(&options)?;
        tid.send(Tid(experiment.victim_tid()))
            .map_err(|_| nobody_watches())?;
        go.recv().map_err(|_| nobody_watches())?;
        experiment.provoke().map(Truth::Jack)
    }))
}

fn nobody_watches() -> Error {
    Error::new(
        ErrorKind::Interrupted,
        "the watch ended before the experiment began",
    )
}

fn watch_options(typed: &Demo, tid: Tid, cpu: Cpu, over: Duration) -> WatchOptions {
    WatchOptions {
        target: Target::Tasks(vec![TaskPattern::Tid(tid)]),
        groups: Vec::new(),
        members: Members::default(),
        command: Vec::new(),
        prio_min: None,
        // Ours are then the other CPUs: no hog delays the watch.
        cpus: vec![cpu],
        irq: None,
        softirq: None,
        until: Until::SwitchIn,
        over: Some(over),
        new_worst: false,
        worst: None,
        timeout: None,
        triggers: Vec::new(),
        rate: Rate {
            // A delay that the machine makes itself must not hide the one that is shown.
            hits_max: 1_000,
            per: Duration::from_ms(1000),
        },
        hits_max: None,
        run_for: Some(DEMO_MAX),
        exec: None,
        bpf_action: None,
        json: false,
        snapshot: Some(SnapshotOptions {
            output: typed.output.clone(),
            buffer_bytes: crate::options::BUFFER_DEFAULT_BYTES,
            user: None,
            keep: Keep::ALL,
            keep_earlier: false,
            events: Vec::new(),
        }),
    }
}

/// The watch's own observer, with the experiment beside it.
struct DemoObserver {
    inner: Observer,
    json: bool,
    go: Option<Sender<()>>,
    experiment: Option<JoinHandle<Result<Truth>>>,
    ended: Option<StdInstant>,
    truth: Option<Truth>,
    hits: Vec<Value>,
    snapshots: Vec<PathBuf>,
}

impl DemoObserver {
    fn join(&mut self) -> Result<Truth> {
        self.go = None;
        match (self.truth.take(), self.experiment.take()) {
            (Some(truth), _) => Ok(truth),
            (None, Some(experiment)) => join(experiment),
            (None, None) => Err(nobody_watches()),
        }
    }
}

fn join(experiment: JoinHandle<Result<Truth>>) -> Result<Truth> {
    let broken = |_| Error::new(ErrorKind::Io, "the experiment broke");
    experiment.join().map_err(broken)?
}

impl WatchObserver for DemoObserver {
    fn armed(&mut self) -> Result<()> {
        self.inner.armed()?;
        if let Some(go) = &self.go {
            go.send(())
                .map_err(|_| Error::new(ErrorKind::Io, "the experiment is gone"))?;
        }
        Ok(())
    }

    fn hit(&mut self, report: &HitReport) -> Result<()> {
        self.hits.push(hit_value(report));
        self.snapshots.extend(
            report
                .snapshot
                .as_ref()
                .map(|snapshot| snapshot.path.clone()),
        );
        if self.json {
            Ok(())
        } else {
            self.inner.hit(report)
        }
    }

    fn status(&mut self, status: &Status) -> Result<bool> {
        if self
            .experiment
            .as_ref()
            .is_some_and(JoinHandle::is_finished)
        {
            self.truth = self.experiment.take().map(join).transpose()?;
            self.ended = Some(StdInstant::now());
        }
        let rested = self.ended.is_some_and(|ended| ended.elapsed() > REST);
        Ok(self.inner.status(status)? && !rested)
    }
}

/// What the experiment knows itself, beside the verdict above, and what to type next.
fn ending(truth: &Truth, snapshots: &[PathBuf]) -> String {
    let mut text = String::from("\nWhat the experiment measured itself:\n");
    let hogs = match truth {
        Truth::Hog(truth) => &truth.hogs[..],
        Truth::Jack(truth) => std::slice::from_ref(&truth.hog),
    };
    // Writing to a String cannot fail, here and below.
    for hog in hogs {
        let cpu_time = Duration::from_ns(hog.cpu_ns as i64);
        let (start, stop) = (instant(hog.start_ns), instant(hog.stop_ns));
        let _ = writeln!(
            text,
            "  {} ran {cpu_time}, from {start} to {stop}",
            hog.name
        );
    }
    match truth {
        Truth::Hog(truth) => {
            for late in &truth.victim.late {
                let (due, ran) = (instant(late.due_ns), instant(late.ran_ns));
                let name = &truth.victim.name;
                let _ = writeln!(
                    text,
                    "  {name} was due at {due} and ran {} later",
                    ran - due
                );
            }
        }
        Truth::Jack(truth) => {
            for line in &truth.xruns {
                let _ = writeln!(text, "  jackd at {}: {}", instant(line.time_ns), line.text);
            }
            if truth.xruns.is_empty() {
                text.push_str("  jackd reported no xrun\n");
            }
        }
    }
    text.push_str("\nNext:\n");
    for snapshot in snapshots {
        let _ = writeln!(text, "  rtscope diagnose {}", snapshot.display());
    }
    text.push_str("  sudo rtscope watch --task YOURS --over 25ms\n");
    text
}

fn instant(ns: u64) -> Instant {
    Instant::from_ns(ns as i64)
}
