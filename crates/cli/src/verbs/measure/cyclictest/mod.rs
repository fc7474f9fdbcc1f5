//! The same measurement under cyclictest's name: its options, its output, so that scripts go on.

mod beside;
mod files;
mod resolution;
mod shown;

use std::io::IsTerminal;

use capture::capabilities;
use event::{Duration, Result};
use host::capabilities::{Capabilities, Preemption, Verb};
use host::power::WakeLatency;
use report::{CyclictestFacts, cyclictest_histogram, cyclictest_json, cyclictest_status};
use signal_hook::consts::SIGPIPE;
use signal_hook::low_level;

use self::beside::Beside;
use self::shown::{Shown, figure};
use super::session::{Found, Session};
use crate::exit::{self, Outcome, write_file};
use crate::flags::{Cyclictest, Refusal, USAGE};
use crate::options::{CyclicOptions, CyclicOutput, CyclictestOutput};
use crate::signals;

/// What it says to who may make no thread urgent.
const NO_PRIVILEGES: [&str; 2] = [
    "Unable to change scheduling policy!",
    "Probably missing capabilities, either run as root or increase RLIMIT_RTPRIO limits.",
];
/// How often what is new is printed.
const PRINT_INTERVAL: std::time::Duration = std::time::Duration::from_millis(10);

/// Runs with the words that cyclictest would get. Whose reader has gone dies of it, as there: a
/// shell with `pipefail` sees that.
pub(super) fn run_as(words: &[String]) -> Result<Outcome> {
    let ran = run(words);
    if ran.as_ref().is_err_and(exit::is_broken_pipe) {
        low_level::emulate_default_handler(SIGPIPE).ok();
    }
    ran
}

fn run(words: &[String]) -> Result<Outcome> {
    let typed = match Cyclictest::read(words) {
        Ok(typed) => typed,
        Err(refusal) => return refuse(refusal),
    };
    let capabilities = capabilities::gather();
    let command_line = format!("cyclictest {}", words.join(" "));
    let machine = &capabilities.machine;
    let (online, allowed) = (&machine.cpus_online, &machine.cpus_allowed);
    // Also where its threads are not urgent.
    let is_privileged = capabilities.require(Verb::Measure).is_ok();
    let no_privileges = || refuse(Refusal::Fatal(NO_PRIVILEGES.map(str::to_owned).to_vec()));
    let options = match CyclicOptions::cyclictest(&typed, command_line, online, allowed) {
        Err(Refusal::Failed(_)) if !is_privileged => return no_privileges(),
        Err(refusal) => {
            if matches!(refusal, Refusal::Fatal(_)) {
                // That comes behind this there.
                exit::print(&limit_idle(&typed))?;
            }
            return refuse(refusal);
        }
        Ok(options) => options,
    };
    if typed.smi {
        return refuse(Refusal::Fatal(vec![no_smi_counter().to_owned()]));
    }
    let CyclicOutput::Cyclictest(output) = &options.output else {
        unreachable!("cyclictest's options ask for its output");
    };
    if !is_privileged {
        return no_privileges();
    }
    if let Some(outcome) = files::refused(output) {
        return Ok(outcome);
    }
    output.warnings.iter().for_each(|line| note!("{line}"));
    let start_time = date();
    let found = measure(&options, output, &capabilities)?;
    // Not where scripts read cyclictest's lines.
    for line in found.disturbances() {
        note!("# {line}");
    }
    if let Some(path) = &output.json_file {
        let about = about(output, &capabilities, start_time);
        write_file(path, &cyclictest_json(&found.readings, &about))?;
    }
    Ok(Outcome::Fine)
}

/// What is said of idle states where they are limited, which they are no longer when this returns.
fn limit_idle(typed: &Cyclictest) -> String {
    let latency_us = typed.latency;
    let limit = || {
        WakeLatency::request(Duration::from_us(latency_us))
            .ok()
            .flatten()
    };
    let limited = (!typed.default_system).then(limit).flatten();
    limited.map_or(String::new(), |_| dma_latency(latency_us))
}

fn dma_latency(latency_us: i64) -> String {
    format!("# /dev/cpu_dma_latency set to {latency_us}us\n")
}

/// Why SMIs are not counted: Intel's processors could.
fn no_smi_counter() -> &'static str {
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    match about.contains("GenuineIntel") {
        true => "FATAL: SMIs are not counted under this name: rtscope measure eval does it",
        false => "FATAL: SMI counter is not supported on this processor",
    }
}

/// Ends as cyclictest does where it refuses or cannot go on.
fn refuse(refusal: Refusal) -> Result<Outcome> {
    match refusal {
        Refusal::Usage(said, code) => {
            said.iter().for_each(|line| note!("{line}"));
            exit::print(USAGE)?;
            Ok(Outcome::Code(code))
        }
        Refusal::Fatal(said) => {
            said.iter().for_each(|line| note!("{line}"));
            Ok(Outcome::Code(1))
        }
        Refusal::Failed(error) => Err(error),
    }
}

/// Measures, and prints what is asked for meanwhile and at the end.
fn measure(
    options: &CyclicOptions,
    output: &CyclictestOutput,
    capabilities: &Capabilities,
) -> Result<Found> {
    if output.resolution {
        resolution::look(options.plan.clock, output.every.is_some());
    }
    if output.every.is_some() {
        let online = capabilities.machine.cpus_online.len();
        exit::print(&format!("Max CPUs = {online}\nOnline CPUs = {online}\n"))?;
    }
    signals::outlive_alarm()?;
    let mut session = Session::start(options, capabilities)?;
    let mut first = String::new();
    if let Some(latency_us) = output.dma_latency_us.filter(|_| session.limits_idle()) {
        first = dma_latency(latency_us);
    }
    // In a pipe it comes with the rest, as from stdio: `| head -1` ends nobody before the figures.
    let all_at_end = output.quiet && output.every.is_none();
    let waits = all_at_end && !output.unbuffered && !std::io::stdout().is_terminal();
    if !waits {
        exit::print(&std::mem::take(&mut first))?;
    }
    if output.every.is_some() {
        exit::print(&about_threads(options, output))?;
    }
    let beside = Beside::start(output, session.run.reader())?;
    let mut shown = Shown::new(output, session.run.tids().len());
    let mut one_was_done = false;
    // Who has its samples first ends it for all, as there; those of the same interval are with it.
    while !session.is_over() && !one_was_done {
        one_was_done = session.run.has_one_done();
        std::thread::sleep(PRINT_INTERVAL.min(session.left()));
        session.look();
        shown.look(&session.run)?;
        beside.look();
    }
    session.run.stop();
    shown.end(&session.run)?;
    drop(beside);
    let found = session.finish();
    print_found(&found, output, &shown, first)?;
    Ok(found)
}

/// What stands above the samples.
fn about_threads(options: &CyclicOptions, output: &CyclictestOutput) -> String {
    let mut text = String::new();
    for (number, thread) in options.plan.threads.iter().enumerate() {
        // That of the next one: so it is there.
        let next = thread.interval + output.distance;
        let interval_us = next.as_ns() / 1000;
        text += &format!("Thread {number} Interval: {interval_us}\n");
    }
    text
}

/// Behind `text`, which waited for it.
fn print_found(
    found: &Found,
    output: &CyclictestOutput,
    shown: &Shown,
    mut text: String,
) -> Result<()> {
    if output.quiet && output.histogram.is_none() {
        text += &cyclictest_status(&found.readings, output.in_ns);
    }
    text += &shown.spikes();
    let histogram = output
        .histogram
        .map(|sums| cyclictest_histogram(&found.readings, sums, output.in_ns));
    match (histogram, &output.histogram_file) {
        (Some(histogram), Some(path)) => write_file(path, &histogram)?,
        (Some(histogram), None) => text += &histogram,
        (None, _) => {}
    }
    if output.tids {
        text += &ended(found, output.in_ns);
    }
    exit::print(&text)
}

/// The threads' ids and, where a sample ended it, whose and how late.
fn ended(found: &Found, in_ns: bool) -> String {
    let readings = found.readings.iter();
    let tids: String = readings.map(|one| format!(" {:05}", one.tid.0)).collect();
    let mut text = format!("# Thread Ids:{tids}\n");
    if let Some(broken) = found.broken {
        let thread = &found.readings[broken.thread];
        let value = figure(broken.latency, in_ns);
        text += &format!("# Break thread: {}\n# Break value: {value}\n", thread.tid.0);
    }
    text
}

fn about(
    output: &CyclictestOutput,
    capabilities: &Capabilities,
    start_time: String,
) -> CyclictestFacts {
    let uname = rustix::system::uname();
    let parts = [
        uname.sysname(),
        uname.nodename(),
        uname.release(),
        uname.version(),
        uname.machine(),
    ];
    CyclictestFacts {
        command_line: output.command_line.clone(),
        start_time,
        end_time: date(),
        return_code: 0,
        uname: parts.map(|part| part.to_string_lossy().into_owned()),
        realtime: capabilities.scheduler.preemption == Preemption::Rt,
        in_ns: output.in_ns,
        histogram: output.histogram.is_some(),
    }
}

/// The wall clock as cyclictest's JSON has it: `Fri, 20 Nov 2026 14:00:00 +0000`, in UTC.
pub(super) fn date() -> String {
    let now = std::time::SystemTime::now();
    let since = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    // SAFETY: both structures are written whole before they are read; the text ends with a zero.
    unsafe {
        let seconds = since.as_secs() as libc::time_t;
        let mut parts: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&raw const seconds, &raw mut parts);
        let mut text = [0u8; 64];
        let format = c"%a, %d %b %Y %H:%M:%S +0000".as_ptr();
        let length = libc::strftime(
            text.as_mut_ptr().cast(),
            text.len(),
            format,
            &raw const parts,
        );
        String::from_utf8_lossy(&text[..length]).into_owned()
    }
}
