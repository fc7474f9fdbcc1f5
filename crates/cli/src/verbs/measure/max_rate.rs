//! `rtscope measure loop --find-max-rate`: the highest rate at which the loop's events are recorded
//! without a loss. Each attempt is a recording of its own by this program, as anybody would make.

use std::io::Write;
use std::process::Command;

use event::{Error, ErrorKind, Result};
use report::LossFreeRate;
use serde_json::Value;

use crate::exit::{Outcome, stdout_error};
use crate::flags::{Loop, Tracer};
use crate::live::Live;
use crate::signals::{self, Request};

/// Where the search begins, in events per second.
const FIRST: u64 = 100_000;
/// No loop is faster than this.
const LAST: u64 = 1 << 30;
/// How long an attempt lasts: longer than a ring can hide a reader that is too slow.
const ATTEMPT_S: f64 = 0.5;
/// A loop that reaches less than this of its rate is itself the limit.
const REACHED_MIN: f64 = 0.95;
/// So often in a row, because a busy machine makes a loop slow too.
const SLOW_MAX: u32 = 3;
/// The search ends when what is known and what is too much are so near.
const NEAR: f64 = 1.05;
/// What each CPU's events have space in, whoever records them: as many sub-buffers of one size as
/// LTTng has in `measure loop`.
const SUBBUFFERS: u64 = 32;
const BUFFER_BYTES: u64 = SUBBUFFERS << 20;
/// What the kernel records beside, in the second search and in the third.
const KERNEL: [&str; 2] = ["sched,irq,raw_syscalls:*", "raw_syscalls:*"];

/// How an attempt ended.
enum Attempt {
    /// All events were recorded, at this rate.
    Whole(f64),
    /// Some were lost.
    Lossy,
    /// The loop did not get so fast; all was recorded, at this rate.
    Slow(f64),
}

/// Runs the verb.
pub(super) fn run(typed: &Loop) -> Result<Outcome> {
    if matches!(typed.tracer, Tracer::None | Tracer::Clock) {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "without events there is no rate of events",
        )
        .found(format!("--tracer {}", typed.tracer.name()))
        .fix("rtscope measure loop --tracer rtscope --find-max-rate"));
    }
    signals::take_over()?;
    let mut rates = vec![search(typed, None)?];
    // LTTng's kernel tracer is a module, which we do not ask for.
    if typed.tracer == Tracer::Rtscope && rustix::process::geteuid().is_root() {
        for events in KERNEL {
            rates.push(search(typed, Some(events))?);
        }
    }
    if signals::discarded() {
        return Ok(Outcome::Fine);
    }
    let name = typed.tracer.name();
    let text = match typed.json {
        true => report::rates_json(name, BUFFER_BYTES, &rates),
        false => report::rates_text(name, BUFFER_BYTES, &rates),
    };
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).map_err(stdout_error)?;
    Ok(Outcome::Fine)
}

/// Doubles the rate until events are lost, then halves what is between.
fn search(typed: &Loop, kernel: Option<&'static str>) -> Result<LossFreeRate> {
    let live = Live::new(!typed.json);
    let mut found = LossFreeRate {
        beside: kernel,
        per_second: 0.0,
        lossy_per_second: None,
    };
    let (mut rate, mut slow) = (FIRST, 0);
    while rate < LAST && signals::request() == Request::GoOn {
        live.line(&format!("looking for losses at {rate} events per second"));
        match attempt(typed, kernel, rate)? {
            Attempt::Whole(reached) => found.per_second = found.per_second.max(reached),
            Attempt::Lossy => found.lossy_per_second = Some(rate as f64),
            Attempt::Slow(reached) => {
                found.per_second = found.per_second.max(reached);
                slow += 1;
                if slow == SLOW_MAX {
                    break;
                }
                continue;
            }
        }
        slow = 0;
        match found.lossy_per_second {
            None => rate *= 2,
            Some(lossy) if lossy < found.per_second * NEAR || lossy < 2.0 => break,
            Some(lossy) => rate = f64::midpoint(found.per_second, lossy) as u64,
        }
    }
    Ok(found)
}

/// A recording of the loop at `rate`.
fn attempt(typed: &Loop, kernel: Option<&str>, rate: u64) -> Result<Attempt> {
    let folder = tempfile::tempdir()
        .map_err(|error| Error::io("cannot make a folder for the recording", error))?;
    let own = std::env::current_exe().map_err(|error| Error::io("where we are", error))?;
    let mut command = Command::new(&own);
    command.env("RTSCOPE_RING_SIZE", BUFFER_BYTES.to_string());
    command.env("RTSCOPE_SUBBUFFERS", SUBBUFFERS.to_string());
    if typed.tracer == Tracer::Rtscope {
        command.args(["record", "--user", "npt", "-o"]);
        command.arg(folder.path().join("trace"));
        if let Some(events) = kernel {
            command.args(["--events", events]);
        }
        command.arg("--").arg(&own);
    }
    command.args(["measure", "loop", "--json", "--tracer", typed.tracer.name()]);
    command.args(["--drop", "0", "--events-per-second", &rate.to_string()]);
    let loops = ((rate as f64 * ATTEMPT_S) as u64).max(1);
    command.args(["--loops", &loops.to_string()]);
    for (flag, value) in [("--cpu", typed.cpu), ("--prio", typed.prio)] {
        if let Some(value) = value {
            command.args([flag, &value.to_string()]);
        }
    }
    let output = command
        .output()
        .map_err(|error| Error::io("cannot run ourselves", error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    read(&said, rate).ok_or_else(|| {
        let why = String::from_utf8_lossy(&output.stderr);
        Error::new(ErrorKind::Io, "an attempt failed").found(format!("{said}{why}"))
    })
}

/// From what the loop and the recorder say.
fn read(said: &str, rate: u64) -> Option<Attempt> {
    let begin = said.find('{')?;
    let mut values = serde_json::Deserializer::from_str(&said[begin..]).into_iter::<Value>();
    let found = values.next()?.ok()?;
    let reached = found["loops_per_second"].as_f64()?;
    // LTTng's losses are told by the loop, ours by the recorder.
    let lost = match found["lost"].as_u64() {
        Some(lost) => lost,
        None => user_lost(said)?,
    };
    Some(match lost {
        0 if reached < rate as f64 * REACHED_MIN => Attempt::Slow(reached),
        0 => Attempt::Whole(reached),
        _ => Attempt::Lossy,
    })
}

/// `NAME (PID): N events, L lost, …`, a line for each process: there is one.
fn user_lost(said: &str) -> Option<u64> {
    let process = |line: &str| -> Option<u64> {
        let (_, figures) = line.split_once("): ")?;
        let lost = figures.split(", ").nth(1)?;
        lost.strip_suffix(" lost")?.parse().ok()
    };
    said.lines().find_map(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_whole_lossy_or_slow() {
        let check = |loops: f64, lost: &str, said: &str, expect: &str| {
            let json = format!("{{\"loops_per_second\": {loops}, \"lost\": {lost}}}\n");
            let found = match read(&format!("{json}{said}"), 1000) {
                Some(Attempt::Whole(_)) => "whole",
                Some(Attempt::Lossy) => "lossy",
                Some(Attempt::Slow(_)) => "slow",
                None => "nothing",
            };
            assert_eq!(found, expect, "{json}{said}");
        };
        let recorded = |lost: u64| {
            format!(
                "rtscope (7): 9 events, {lost} lost, 0.1 MB\nrecorded 9 events of 1 processes\n"
            )
        };
        check(999.0, "null", &recorded(0), "whole");
        check(999.0, "null", &recorded(3), "lossy");
        check(500.0, "null", &recorded(0), "slow");
        check(999.0, "0", "", "whole");
        check(999.0, "7", "", "lossy");
        check(999.0, "null", "", "nothing");
    }
}
