//! What earlier runs of an evaluation measured, and whether this one may go on with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::Parser as _;
use event::{Duration, Error, ErrorKind, Result, Tid};
use host::capabilities::Capabilities;
use host::identity::Identity;
use measure::cyclic::{Reading, ThreadPlan};
use measure::histogram::Histogram;
use measure::journal::{self, Head, Part, Record, ThreadPortion};
use report::{Ended, RunPart, Series};

use super::folder::BUILD;
use crate::flags::{self, Arguments, Command, MeasureWhat};
use crate::options::EvalOptions;
use crate::verbs::measure::tally::Tally;

/// Flags of a run that say nothing of what is measured, and whether a word follows.
const ASIDE: [(&str, bool); 6] = [
    ("--resume", true),
    ("--allow-gap", true),
    ("--output", true),
    ("-o", true),
    ("--json", false),
    ("--port", true),
];

/// The words of a command line that say what is measured.
pub(super) fn said(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut said = Vec::new();
    let mut words = words.skip_while(|word| word != "eval").skip(1);
    while let Some(word) = words.next() {
        if word == "--" {
            // An application's own words.
            said.push(word);
            said.extend(words);
            break;
        }
        let aside = ASIDE.iter().find(|(flag, _)| {
            let rest = word.strip_prefix(flag);
            // -oDIR is one word.
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('=') || *flag == "-o")
        });
        match aside {
            None => said.push(word),
            Some((flag, true)) if word == *flag => drop(words.next()),
            Some(_) => {}
        }
    }
    said
}

/// Our own command line. A word that is no text is none that could go on.
fn words() -> impl Iterator<Item = String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned())
}

/// What was typed for the earlier runs, unless now the same was typed again.
pub(super) fn typed(record: &Record, typed: &flags::Eval) -> Result<flags::Eval> {
    let now = said(words());
    let before = &record.head.command;
    if !now.is_empty() && now != *before {
        let what = "this is not the measurement that is to go on";
        let (before, now) = (before.join(" "), now.join(" "));
        return Err(Error::new(ErrorKind::InvalidInput, what)
            .found(format!(
                "measure eval {now}, and it was measure eval {before}"
            ))
            .fix("type --resume FOLDER alone: the rest is in the folder"));
    }
    let words = ["rtscope", "measure", "eval"].map(str::to_owned);
    let parsed = Arguments::try_parse_from(words.iter().chain(before));
    let Ok(Some(Command::Measure(measured))) = parsed.map(|parsed| parsed.command) else {
        return Err(unread(before));
    };
    let MeasureWhat::Eval(eval) = measured.what else {
        return Err(unread(before));
    };
    Ok(flags::Eval {
        resume: typed.resume.clone(),
        allow_gap: typed.allow_gap.clone(),
        output: typed.resume.clone(),
        json: typed.json,
        port: typed.port,
        ..*eval
    })
}

fn unread(words: &[String]) -> Error {
    let what = "the command line of the earlier run means nothing here";
    Error::new(ErrorKind::Corrupt, what)
        .found(words.join(" "))
        .fix("measure anew, into another folder")
}

/// What makes two runs parts of one evaluation.
pub(super) fn head(
    typed: &flags::Eval,
    options: &EvalOptions,
    capabilities: &Capabilities,
) -> Head {
    let identity = Identity::read(Path::new("/"));
    let command_line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let budget = options
        .budget
        .map_or("none".to_owned(), |one| one.to_string());
    let machine = &capabilities.machine;
    // Where an application is looked for, and what it finds beside it.
    let folder = std::env::current_dir()
        .ok()
        .filter(|_| !typed.command.is_empty());
    let same = [
        ("host", identity.host),
        ("hardware", identity.hardware),
        ("board", identity.board),
        ("firmware", identity.firmware),
        ("CPU", identity.cpu_model),
        ("microcode", identity.microcode),
        ("kernel", identity.kernel),
        (
            "kernel's command line",
            Some(command_line.trim().to_owned()),
        ),
        ("CPUs", Some(host::shield::list(&machine.cpus_online))),
        ("clocksource", machine.clocksource.clone()),
        ("rtscope", Some(BUILD.to_owned())),
        ("budget", Some(budget)),
        ("folder", folder.map(|folder| folder.display().to_string())),
    ];
    let same = same.map(|(name, value)| (name.to_owned(), value.unwrap_or_default()));
    Head {
        schema: journal::SCHEMA.to_owned(),
        version: journal::VERSION,
        command: said(words()),
        same: BTreeMap::from(same),
    }
}

/// Whether the machine is still the one of the earlier runs.
///
/// # Errors
/// What differs.
pub(super) fn check(before: &Head, now: &Head) -> Result<()> {
    let names = before.same.keys().chain(now.same.keys());
    let names: BTreeSet<&String> = names.collect();
    let value = |head: &Head, name: &str| head.same.get(name).cloned().unwrap_or_default();
    let differs = names.into_iter().filter_map(|name| {
        let (before, now) = (value(before, name), value(now, name));
        (before != now).then(|| format!("{name} was '{before}' and is '{now}'"))
    });
    let differs: Vec<String> = differs.collect();
    if differs.is_empty() {
        return Ok(());
    }
    let what = "the machine is not the one that was measured";
    Err(Error::new(ErrorKind::InvalidInput, what)
        .found(differs.join("; "))
        .fix("measure anew, without --resume"))
}

/// A thread as portions have it.
fn reading(plan: &ThreadPlan, options: &EvalOptions) -> Reading {
    let cyclic = &options.cyclic.plan;
    Reading {
        tid: Tid(0),
        plan: plan.clone(),
        latency: Histogram::empty(cyclic.bucket, cyclic.buckets),
        missed: 0,
        unmeasured: 0,
        lost_cpu: false,
        phases: None,
    }
}

fn add(reading: &mut Reading, portion: Option<&ThreadPortion>) -> Result<()> {
    let Some(portion) = portion else {
        return Ok(());
    };
    reading.missed += portion.missed;
    reading.lost_cpu |= portion.lost_cpu;
    reading.latency.add(&portion.latency)
}

/// The threads of the plain part.
pub(super) fn plain(record: &Record, options: &EvalOptions) -> Result<Vec<Reading>> {
    let threads = options.cyclic.plan.threads.iter().enumerate();
    let portions = record.plain.iter().flat_map(|plain| &plain.threads);
    let portions: Vec<&ThreadPortion> = portions.collect();
    threads
        .map(|(place, plan)| {
            let mut one = reading(plan, options);
            add(&mut one, portions.get(place).copied())?;
            Ok(one)
        })
        .collect()
}

/// The threads of all earlier runs, each with what the last one found behind it.
pub(super) fn joined(
    record: &Record,
    options: &EvalOptions,
    last: Vec<Reading>,
) -> Result<Vec<Reading>> {
    let one = |(place, last): (usize, Reading)| {
        let mut all = reading(&last.plan, options);
        for part in &record.parts {
            let mut own = reading(&last.plan, options);
            for interval in &part.intervals {
                add(&mut own, interval.threads.get(place))?;
            }
            all.latency.join(&own.latency);
            all.missed += own.missed;
            all.lost_cpu |= own.lost_cpu;
        }
        all.latency.join(&last.latency);
        Ok(Reading {
            latency: all.latency,
            missed: all.missed + last.missed,
            lost_cpu: all.lost_cpu | last.lost_cpu,
            ..last
        })
    };
    last.into_iter().enumerate().map(one).collect()
}

/// The longest of each stretch until now, for each thread, after a plain part of that length.
pub(super) fn series(
    record: Option<&Record>,
    options: &EvalOptions,
    plain: Duration,
) -> Vec<Series> {
    let threads = 0..options.cyclic.plan.threads.len();
    let of_thread = |thread: usize| {
        let (mut points, mut begin) = (Vec::new(), plain);
        for part in record.iter().flat_map(|record| &record.parts) {
            let own = part.series(thread, options.stretch).into_iter();
            points.extend(own.map(|(at, longest)| (begin + at, longest)));
            begin += part.elapsed();
        }
        Series::after(points)
    };
    threads.map(of_thread).collect()
}

/// The earlier runs as parts; `boot` is the start of the machine that the next one saw.
pub(super) fn parts(record: &Record, boot: &str) -> Vec<RunPart> {
    let boots = record
        .parts
        .iter()
        .skip(1)
        .map(|part| part.begin.boot.as_str());
    let boots = boots.chain([boot]);
    let mut parts: Vec<RunPart> = record.parts.iter().zip(boots).map(part).collect();
    if let (Some(first), Some(plain)) = (parts.first_mut(), &record.plain) {
        first.excursions.extend(&plain.excursions);
        first.excursions_left_out += plain.excursions_left_out;
    }
    parts
}

fn part((part, next_boot): (&Part, &str)) -> RunPart {
    let samples = |one: &ThreadPortion| one.latency.samples;
    let intervals = || part.intervals.iter().flat_map(|one| &one.threads);
    let longest = intervals().filter_map(|one| one.latency.longest_ns).max();
    let (excursions, left_out) = part.excursions();
    let workload = Tally::of_intervals(part.intervals.iter());
    RunPart {
        wall_ns: part.wall_ns(),
        since_boot_ns: part.since_boot_ns(),
        clock_set: part.clock_set().copied().collect(),
        elapsed: part.elapsed(),
        samples: workload.judged + intervals().map(samples).sum::<u64>(),
        longest: longest.map(Duration::from_ns).max(workload.longest()),
        boot: part.begin.boot.clone(),
        ended: match part.ended {
            Some(true) => Ended::Complete,
            Some(false) => Ended::Interrupted,
            None if part.begin.boot != next_boot => Ended::Rebooted,
            None => Ended::Killed,
        },
        loads: part.loads().to_vec(),
        excursions: excursions.copied().collect(),
        excursions_left_out: left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_told_from_where_it_goes() {
        let check = |words: &str, expect: &str| {
            let words = words.split_whitespace().map(str::to_owned);
            assert_eq!(said(words).join(" "), expect);
        };
        check(
            "rtscope measure eval --for 7d --budget 1ms",
            "--for 7d --budget 1ms",
        );
        check("rtscope measure eval -o a --for 7d --json", "--for 7d");
        check(
            "rtscope measure eval -oa --output=b --for 7d --output c",
            "--for 7d",
        );
        check(
            "rtscope --color never measure eval --resume a --allow-gap 1m",
            "",
        );
        check(
            "rtscope measure eval --resume=a --for 7d --allow-gap=1m --port 9100",
            "--for 7d",
        );
        check("rtscope measure eval --over 1ms", "--over 1ms");
        check(
            "rtscope measure eval -o a --budget 1ms -- ./loop -o b --json",
            "--budget 1ms -- ./loop -o b --json",
        );
    }

    #[test]
    fn another_machine_kernel_or_budget_is_named() {
        let head = |kernel: &str, budget: &str| {
            let same = [("kernel", kernel), ("budget", budget), ("host", "robot")];
            let same = same.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Head {
                schema: journal::SCHEMA.to_owned(),
                version: journal::VERSION,
                command: Vec::new(),
                same: BTreeMap::from(same),
            }
        };
        let before = head("6.12", "100 us");
        assert!(check(&before, &head("6.12", "100 us")).is_ok());
        let told = |now: &Head| format!("{:#}", check(&before, now).expect_err("another"));
        let kernel = told(&head("6.13", "100 us"));
        assert!(
            kernel.contains("kernel was '6.12' and is '6.13'"),
            "{kernel}"
        );
        assert!(!kernel.contains("budget"), "{kernel}");
        let budget = told(&head("6.12", "200 us"));
        assert!(
            budget.contains("budget was '100 us' and is '200 us'"),
            "{budget}"
        );
    }
}
