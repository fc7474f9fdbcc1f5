//! The same measurement under cyclictest's name: its options, its output, so that scripts go on.

use capture::capabilities;
use clap::Parser;
use event::{Error, ErrorKind, Result};
use host::capabilities::{Capabilities, Preemption, Verb};
use report::{CyclictestFacts, cyclictest_histogram, cyclictest_json, cyclictest_status};

use super::session::{Found, Session};
use crate::exit::{self, Outcome, stdout_error, write_file};
use crate::flags::Cyclictest;
use crate::live::Live;
use crate::options::{CyclicOptions, CyclicOutput, CyclictestOutput};

/// Runs with the words that cyclictest would get.
pub(super) fn run_as(words: &[String]) -> Result<Outcome> {
    let named = std::iter::once("cyclictest").chain(words.iter().flat_map(|word| parts(word)));
    let typed = match Cyclictest::try_parse_from(named) {
        Ok(typed) => typed,
        Err(error) if error.exit_code() == 0 => {
            error.print().map_err(stdout_error)?;
            return Ok(Outcome::Fine);
        }
        Err(error) => {
            let what = "not what cyclictest understands here";
            let found = error.render().to_string();
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found(found.trim().to_owned())
                .fix("rtscope measure cyclic --cyclictest --help"));
        }
    };
    let capabilities = capabilities::gather();
    let command_line = format!("cyclictest {}", words.join(" "));
    let machine = &capabilities.machine;
    let (online, allowed) = (&machine.cpus_online, &machine.cpus_allowed);
    let options = CyclicOptions::cyclictest(&typed, command_line, online, allowed)?;
    let CyclicOutput::Cyclictest(output) = &options.output else {
        unreachable!("cyclictest's options ask for its output");
    };
    if options.is_urgent() {
        capabilities.require(Verb::Measure)?;
    }
    // Nobody waits for hours to learn that a file has no place.
    for path in output.histogram_file.iter().chain(&output.json_file) {
        write_file(path, "")?;
    }
    if !output.quiet {
        let dma = if options.wake_latency.is_some() {
            "set"
        } else {
            "left"
        };
        eprintln!("# /dev/cpu_dma_latency {dma}");
    }
    let start_time = date();
    let mut session = Session::start(&options, &capabilities)?;
    let live = Live::new(!output.quiet);
    session.until_over(|session| {
        live.table(|_| cyclictest_status(&session.run.read(), output.in_ns));
    });
    live.clear();
    let found = session.finish();
    print_found(&found, output)?;
    // Not where scripts read cyclictest's lines.
    for line in found.disturbances() {
        eprintln!("# {line}");
    }
    if let Some(path) = &output.json_file {
        let about = about(output, &capabilities, start_time);
        let json = cyclictest_json(&found.readings, &about, output.in_ns);
        write_file(path, &format!("{json:#}\n"))?;
    }
    Ok(Outcome::Fine)
}

/// An option and its number in one word, as in `-h 3500`, which getopt takes; as two words.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let is_short = word.starts_with('-') && !word.starts_with("--");
    let (option, value) = match word.split_once(' ').filter(|_| is_short) {
        Some((option, value)) if option.len() == 2 => (option, Some(value.trim())),
        _ => (word, None),
    };
    std::iter::once(option).chain(value)
}

fn print_found(found: &Found, output: &CyclictestOutput) -> Result<()> {
    let mut text = String::new();
    let histogram = output
        .histogram
        .map(|sums| cyclictest_histogram(&found.readings, sums, output.in_ns));
    match (histogram, &output.histogram_file) {
        (Some(histogram), Some(path)) => write_file(path, &histogram)?,
        (Some(histogram), None) => text += &histogram,
        (None, _) => text += &cyclictest_status(&found.readings, output.in_ns),
    }
    if let Some(broken) = found.broken {
        let tids = found
            .readings
            .iter()
            .map(|reading| format!("{:05}", reading.tid.0));
        let tids: Vec<String> = tids.collect();
        let thread = &found.readings[broken.thread];
        let value = if output.in_ns {
            broken.latency.as_ns()
        } else {
            broken.latency.as_ns() / 1000
        };
        text += &format!(
            "# Thread Ids: {}\n# Break thread: {}\n# Break value: {value}\n",
            tids.join(" "),
            thread.tid.0
        );
    }
    exit::print(&text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_with_its_number_in_one_word_is_two() {
        let check = |word: &str, expect: &[&str]| {
            assert_eq!(parts(word).collect::<Vec<_>>(), expect, "{word}");
        };
        check("-h 3500", &["-h", "3500"]);
        check("-i100", &["-i100"]);
        check("--histfile=a b", &["--histfile=a b"]);
        check("-q", &["-q"]);
        check("my file", &["my file"]);
    }
}
