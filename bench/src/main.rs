//! `bench SUBJECT…`: every figure of docs/benchmarks.md, with its command. Prints markdown, or with
//! `--json` one JSON document.

mod accounted;
mod against;
mod background;
mod build_time;
mod calls;
mod child;
mod diagnose;
mod engine;
mod hit;
mod late;
mod load;
mod machine;
mod measure;
mod options;
mod probe;
mod python;
mod record;
mod report;
mod reports;
mod snapshot;
mod stats;
mod trackers;
mod watch;
mod workloads;

use std::process::ExitCode;

use anyhow::Result;

use machine::Machine;
use options::{Options, Subject};
use report::Report;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<()> {
    if let Some((engine::walk::WORD, rest)) = words.split_first().map(|(w, r)| (w.as_str(), r)) {
        return engine::walk::run(rest);
    }
    if let Some((record::WORD, rest)) = words.split_first().map(|(w, r)| (w.as_str(), r)) {
        return record::run_load(rest);
    }
    let options = Options::parse(words)?;
    let machine = Machine::read(&options.rtscope)?;
    let mut reports = Vec::new();
    if !options.json {
        print!("{}", machine.markdown());
    }
    for subject in &options.subjects {
        eprintln!("measuring: {}", subject.name());
        let report = measure(*subject, &options)?;
        if !options.json {
            print!("\n{}", report.markdown());
        }
        reports.push(report);
    }
    if options.json {
        println!("{:#}", report::json(&machine, &reports));
    }
    Ok(())
}

fn measure(subject: Subject, options: &Options) -> Result<Report> {
    match subject {
        Subject::Calls => calls::measure(options),
        Subject::Watch => watch::measure(options),
        Subject::Trackers => trackers::report(options),
        Subject::Workloads => workloads::measure(options),
        Subject::Snapshot => snapshot::measure(options),
        Subject::Hit => hit::measure(options),
        Subject::Record => record::measure(options),
        Subject::Diagnose => diagnose::measure(options),
        Subject::Engine => engine::measure(options),
        Subject::Reports => reports::measure(options),
        Subject::Python => python::measure(options),
        Subject::Probe => probe::measure(options),
        Subject::Crowd => probe::measure_crowd(options),
        Subject::Measure => measure::measure(options),
        Subject::Build => build_time::measure(options),
        Subject::Against => against::measure(options),
    }
}
