//! What `rtscope watch` was asked to do.

use std::ffi::OsString;
use std::path::PathBuf;

use bpf_host::Members;
use capture::{Keep, UserConfig};
use event::{Cpu, Duration, Error, ErrorKind, Prio, Result, TaskPattern};
use host::groups::Asked;

use super::keep::keep;
use super::tasks::{groups, processes, tasks};
use super::{BUFFER_DEFAULT_BYTES, known_cpus, parse_size, positive_duration};
use crate::flags::{self, Until};

/// What `--keep` takes.
const KEEP_FIX: &str = "give snapshots, room or both for each cause, as in 20, 200M or 20/200M";

/// Whom to watch.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// What one of these means.
    Tasks(Vec<TaskPattern>),
    /// Every real-time task.
    RealTime,
}

impl Target {
    /// What this means, too.
    pub fn add(&mut self, pattern: TaskPattern) {
        match self {
            Target::Tasks(patterns) => patterns.push(pattern),
            Target::RealTime => *self = Target::Tasks(vec![TaskPattern::RealTime, pattern]),
        }
    }
}

/// An interrupt by its number, or by a part of its name.
#[derive(Clone, Debug, PartialEq)]
pub enum IrqFilter {
    /// As in `/proc/interrupts`.
    Number(u32),
    /// Part of the handler's name.
    Name(String),
}

/// How an application says that it was late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// By a line that it prints, with this in it.
    Line(String),
    /// By SIGUSR1, sent to us.
    Signal,
}

/// At most so many reports in so much time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Reports.
    pub hits_max: u32,
    /// In this time.
    pub per: Duration,
}

/// The flight recorder and what it leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotOptions {
    /// The folder of snapshots.
    pub output: PathBuf,
    /// Kernel buffer of each CPU.
    pub buffer_bytes: u64,
    /// Sets, events and patterns; empty means the default set.
    pub events: Vec<String>,
    /// Events of applications.
    pub user: Option<UserConfig>,
    /// How many stay of each cause.
    pub keep: Keep,
    /// Those of earlier watches count too.
    pub keep_earlier: bool,
}

/// A watch, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchOptions {
    /// Whom to watch.
    pub target: Target,
    /// Control groups, units and containers, to be found.
    pub groups: Vec<Asked>,
    /// Who is meant by being in one, or below a command.
    pub members: Members,
    /// Run this, and watch it too.
    pub command: Vec<OsString>,
    /// Only tasks at least as urgent.
    pub prio_min: Option<Prio>,
    /// Only activations that end on these CPUs; empty means all.
    pub cpus: Vec<Cpu>,
    /// Only chains that this interrupt began.
    pub irq: Option<IrqFilter>,
    /// Only chains through this softirq vector.
    pub softirq: Option<u32>,
    /// Where an activation ends.
    pub until: Until,
    /// Report what took longer; none means that only `new_worst` decides.
    pub over: Option<Duration>,
    /// Report only what is worse than everything before.
    pub new_worst: bool,
    /// Report a task that still waits after this.
    pub timeout: Option<Duration>,
    /// Report what was late when one of these says so, and nothing else.
    pub triggers: Vec<Trigger>,
    /// Only what is worse than the least of so many, once there are so many.
    pub worst: Option<usize>,
    /// How many reports at most.
    pub rate: Rate,
    /// End after so many reports.
    pub hits_max: Option<u64>,
    /// End after this.
    pub run_for: Option<Duration>,
    /// Run this for each report.
    pub exec: Option<String>,
    /// Call the function of this object in the kernel at each hit.
    pub bpf_action: Option<PathBuf>,
    /// JSON lines.
    pub json: bool,
    /// None with `--no-snapshot`.
    pub snapshot: Option<SnapshotOptions>,
}

impl WatchOptions {
    /// From what was typed, on a machine with the CPUs `online`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word without a meaning, [`ErrorKind::NotFound`] for a CPU
    /// that is not there.
    pub fn new(typed: &flags::Watch, online: &[Cpu]) -> Result<Self> {
        let mut patterns = tasks(&typed.task, typed.tid)?.patterns;
        patterns.extend(processes(&typed.pid, &typed.process)?);
        if typed.all {
            patterns.push(TaskPattern::parse("*")?);
        }
        let groups = groups(&typed.cgroup, &typed.unit, &typed.container);
        let target = match patterns {
            // Who is found, and the command when it has an id, is added.
            patterns if !groups.is_empty() || !typed.command.is_empty() => Target::Tasks(patterns),
            patterns if patterns.is_empty() => Target::RealTime,
            patterns if patterns == [TaskPattern::RealTime] => Target::RealTime,
            patterns => Target::Tasks(patterns),
        };
        let duration = |flag: &str, text: &Option<String>| {
            text.as_ref()
                .map(|text| positive_duration(flag, text))
                .transpose()
        };
        let cpus = typed
            .cpu
            .as_ref()
            .map(|text| known_cpus(text, online))
            .transpose()?;
        let over = duration("--over", &typed.over)?;
        let timeout = duration("--timeout", &typed.timeout)?;
        if typed.max_hits == Some(0) {
            let error = Error::new(
                ErrorKind::InvalidInput,
                "--max-hits of zero reports nothing",
            );
            return Err(error
                .found("'0'")
                .fix("give --max-hits a number above zero"));
        }
        Ok(WatchOptions {
            target,
            groups,
            members: Members::default(),
            command: typed.command.clone(),
            prio_min: typed.min_prio.map(real_time_prio).transpose()?,
            cpus: cpus.unwrap_or_default(),
            irq: typed.irq.as_deref().map(irq),
            softirq: typed.softirq.as_deref().map(softirq).transpose()?,
            until: typed.until,
            new_worst: typed.new_worst
                || (over.is_none() && timeout.is_none() && typed.trigger.is_empty()),
            triggers: triggers(&typed.trigger)?,
            over,
            timeout,
            worst: None,
            rate: rate(&typed.rate)?,
            hits_max: typed.max_hits,
            run_for: duration("--for", &typed.run_for)?,
            exec: typed.exec.clone(),
            bpf_action: typed.bpf_action.clone(),
            json: typed.json,
            snapshot: snapshot(typed)?,
        })
    }
}

fn triggers(typed: &[String]) -> Result<Vec<Trigger>> {
    let trigger = |text: &String| match text.split_once(':') {
        Some(("line", line)) if !line.trim().is_empty() => Ok(Trigger::Line(line.to_owned())),
        None if text == "signal" => Ok(Trigger::Signal),
        _ => Err(Error::new(
            ErrorKind::InvalidInput,
            "--trigger is nothing that is known",
        )
        .found(format!("'{text}'"))
        .fix("line:TEXT for a line that the application prints, signal for SIGUSR1")),
    };
    typed.iter().map(trigger).collect()
}

fn snapshot(typed: &flags::Watch) -> Result<Option<SnapshotOptions>> {
    if typed.no_snapshot {
        return Ok(None);
    }
    let size = |text: &String| parse_size("--buffer", text);
    Ok(Some(SnapshotOptions {
        output: typed
            .output
            .clone()
            .unwrap_or_else(|| "rtscope-snapshots".into()),
        buffer_bytes: typed
            .buffer
            .as_ref()
            .map_or(Ok(BUFFER_DEFAULT_BYTES), size)?,
        events: typed.events.clone(),
        keep: keep("--keep", &typed.keep, "snapshots", KEEP_FIX)?,
        keep_earlier: typed.keep_earlier,
        user: (!typed.user.is_empty())
            .then(|| UserConfig::new(&typed.user))
            .transpose()?,
    }))
}

fn real_time_prio(prio: u32) -> Result<Prio> {
    if (1..=99).contains(&prio) {
        return Ok(Prio::from_rt(prio));
    }
    let error = Error::new(
        ErrorKind::InvalidInput,
        "--min-prio is not a real-time priority",
    );
    Err(error
        .found(format!("'{prio}'"))
        .fix("give 1 to 99, as chrt does"))
}

fn irq(text: &str) -> IrqFilter {
    text.parse()
        .map_or_else(|_| IrqFilter::Name(text.to_owned()), IrqFilter::Number)
}

/// The kernel's softirq vectors in their order (`include/linux/interrupt.h`).
const SOFTIRQS: [&str; 10] = [
    "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu",
];

fn softirq(text: &str) -> Result<u32> {
    let known = |vector: &u32| (*vector as usize) < SOFTIRQS.len();
    let by_name = SOFTIRQS
        .iter()
        .position(|name| name.eq_ignore_ascii_case(text));
    let by_number = text.parse().ok().filter(known);
    by_name
        .map(|vector| vector as u32)
        .or(by_number)
        .ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "no such softirq")
                .found(format!("'{text}'"))
                .fix(format!("choose from: {}", SOFTIRQS.join(", ")))
        })
}

/// Reads `1/s`, `10/m`, `100/h`.
fn rate(text: &str) -> Result<Rate> {
    let read = || {
        let (hits, unit) = text.split_once('/')?;
        let per = Duration::parse(&format!("1{unit}")).ok()?;
        let hits_max = hits.parse().ok().filter(|hits| *hits > 0)?;
        Some(Rate { hits_max, per })
    };
    read().ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, "--rate is not a rate")
            .found(format!("'{text}'"))
            .fix("give reports per time, as in 1/s or 10/m")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        watch: flags::Watch,
    }

    fn options(line: &str) -> Result<WatchOptions> {
        let words = std::iter::once("watch").chain(line.split_whitespace());
        let typed = Line::try_parse_from(words)
            .expect("parses at the first level")
            .watch;
        WatchOptions::new(&typed, &[Cpu(0), Cpu(1)])
    }

    #[test]
    fn without_flags_every_real_time_task_is_watched_for_a_new_worst() {
        let options = options("").expect("valid");
        assert_eq!(options.target, Target::RealTime);
        assert!(options.new_worst && options.over.is_none());
        assert_eq!(
            options.rate,
            Rate {
                hits_max: 1,
                per: Duration::from_ms(1000)
            }
        );
        let snapshot = options.snapshot.expect("a snapshot by default");
        assert_eq!(snapshot.buffer_bytes, 4 << 20);
    }

    #[test]
    fn each_flag_reaches_its_option() {
        let options = options(
            "--task jack* --task pw? --over 25ms --cpu 1 --irq 24 --softirq net_rx --min-prio 10 \
             --timeout 1s --rate 5/m --max-hits 3 --for 1h --until block --no-snapshot",
        )
        .expect("valid");
        assert_eq!(
            options.target,
            Target::Tasks(TaskPattern::parse_all(&["jack*", "pw?"]).expect("tasks"))
        );
        assert_eq!(options.over, Some(Duration::from_ms(25)));
        assert_eq!(options.cpus, [Cpu(1)]);
        assert_eq!(options.irq, Some(IrqFilter::Number(24)));
        assert_eq!(options.softirq, Some(3));
        assert_eq!(options.prio_min, Some(Prio::from_rt(10)));
        assert_eq!(
            options.rate,
            Rate {
                hits_max: 5,
                per: Duration::from_ms(60_000)
            }
        );
        assert_eq!((options.hits_max, options.until), (Some(3), Until::Block));
        assert!(options.snapshot.is_none() && !options.new_worst);
    }

    #[test]
    fn a_word_without_a_meaning_is_refused_with_a_remedy() {
        let check = |line: &str, found: &str| {
            let error = options(line).expect_err(line);
            assert_eq!(error.value_found(), Some(found), "{line}");
            assert!(error.fixed_by().is_some(), "{line}");
        };
        check("--over 0ms", "'0ms'");
        check("--over 25", "'25'");
        check("--over 25lightyears", "'25lightyears'");
        check("--cpu 7", "'7'");
        check("--softirq disk", "'disk'");
        check("--softirq 10", "'10'");
        check("--min-prio 100", "'100'");
        check("--tid 0", "'0'");
        check("--task prio:0", "'prio:0'");
        check("--rate 5", "'5'");
        check("--rate 0/s", "'0/s'");
        check("--max-hits 0", "'0'");
        check("--buffer 0", "'0'");
        check("--keep 0", "'0'");
        check("--keep 5/", "'5/'");
    }
}
