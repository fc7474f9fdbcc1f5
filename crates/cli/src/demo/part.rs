//! One process of the demo: `rtscope demo-part ROLE …`, started by [`super::process::Part`].
//!
//! It writes `{"ready":true}` when it is in place, waits where it has a cue to wait for (a line on
//! stdin), and ends with one line of JSON that says what it measured of itself. When stdin closes
//! it ends early; when its parent dies the kernel kills it.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use event::{Cpu, Error, ErrorKind, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::exit::{Outcome, stdout_error};
use crate::flags::{DemoPart, PartRole};
use host::task::{self, Policy};

/// Longest run of a real-time part without blocking: longer means that something went wrong.
const LEASH_SPARE_US: u64 = 1_000_000;
/// Nothing may be asked for more: RT bandwidth is 950 ms/s where it is limited.
const LENGTH_MAX_US: u64 = 900_000;
/// A busy decoy ends by itself after this, even when nobody stops it.
const BUSY_MAX_NS: u64 = 60_000_000_000;
/// Of these, a decoy on another CPU runs the first: that CPU always comes back to others.
const BURST_NS: u64 = 2_000_000;
const BURST_PERIOD_NS: u64 = 5_000_000;

/// A hog lets its victim run for this long before it reports, as an ordinary task.
const AFTERWARDS_NS: u64 = 1_000_000;

/// What a part measured of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Its process name.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// CLOCK_MONOTONIC when its work began.
    pub start_ns: u64,
    /// CLOCK_MONOTONIC when its work ended.
    pub stop_ns: u64,
    /// CPU time of its work.
    pub cpu_ns: u64,
    /// Activations of a victim; bursts of a decoy.
    pub activations: u64,
    /// The late activations of a victim, at most [`LATE_MAX`], in time order.
    pub late: Vec<Late>,
}

/// One late activation of a victim, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Late {
    /// When it was to run.
    pub due_ns: u64,
    /// When it ran.
    pub ran_ns: u64,
}

/// A victim notes activations that were later than this.
const LATE_NS: u64 = 500_000;
/// It notes so many, and forgets the least late of them for a later one.
const LATE_MAX: usize = 32;

/// Runs one part to its end.
pub fn run(typed: &DemoPart) -> Result<Outcome> {
    if typed.role == PartRole::Run {
        // Asked politely, another program tidies up after itself.
        task::die_with_parent(typed.parent, Signal::TERM)?;
        task::stay_on(Cpu(typed.cpu))?;
    } else {
        task::die_with_parent(typed.parent, Signal::KILL)?;
        get_into_place(typed)?;
    }
    let length_ns = typed.length_us * 1000;
    let mut truth = match typed.role {
        PartRole::Victim => victim(length_ns),
        PartRole::Hog => hog(length_ns)?,
        PartRole::Busy => busy(),
        PartRole::Bursts => bursts(length_ns)?,
        PartRole::Run => return Err(become_program(&typed.command)),
    };
    truth.name = task::own_name();
    truth.pid = std::process::id();
    say(&serde_json::json!(truth))?;
    Ok(Outcome::Fine)
}

fn get_into_place(typed: &DemoPart) -> Result<()> {
    if typed.length_us > LENGTH_MAX_US {
        let what = "a hog longer than 900 ms would hit the real-time limit of the kernel";
        let found = format!("{} ms", typed.length_us / 1000);
        let error = Error::new(ErrorKind::InvalidInput, what).found(found);
        return Err(error.fix("give it 900 ms or less"));
    }
    task::call_yourself(&typed.name)?;
    task::stay_on(Cpu(typed.cpu))?;
    task::lock_memory()?;
    task::become_real_time(policy(typed), typed.length_us + LEASH_SPARE_US)?;
    say(&serde_json::json!({ "ready": true }))
}

/// Becomes the program `words`; returns only when that fails.
fn become_program(words: &[OsString]) -> Error {
    let [program, arguments @ ..] = words else {
        return Error::new(ErrorKind::InvalidInput, "no program to become");
    };
    let cause = Command::new(program).args(arguments).exec();
    Error::io(format!("cannot start {}", program.display()), cause)
}

fn policy(typed: &DemoPart) -> Policy {
    match (typed.prio, typed.round_robin) {
        (0, _) => Policy::Ordinary,
        (prio, false) => Policy::Fifo(prio),
        (prio, true) => Policy::RoundRobin(prio),
    }
}

fn say(line: &serde_json::Value) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(stdout_error)
}

/// Wakes up every period until stdin closes, and notes when it was late.
fn victim(period_ns: u64) -> Truth {
    let start_ns = task::monotonic_ns();
    let mut truth = Truth {
        start_ns,
        late: Vec::with_capacity(LATE_MAX + 1),
        ..Truth::default()
    };
    let mut due_ns = start_ns + period_ns;
    while !stdin_has_something() {
        task::sleep_until(due_ns);
        let now_ns = task::monotonic_ns();
        truth.activations += 1;
        if now_ns.saturating_sub(due_ns) > LATE_NS {
            note(
                &mut truth.late,
                Late {
                    due_ns,
                    ran_ns: now_ns,
                },
            );
        }
        due_ns += period_ns;
        if due_ns <= now_ns {
            // Periods that it slept through are over: as a driver does, it starts anew.
            due_ns = now_ns + period_ns;
        }
    }
    truth.stop_ns = task::monotonic_ns();
    truth.cpu_ns = task::thread_cpu_ns();
    truth
}

/// Keeps the latest of the late, in time order; never allocates.
fn note(late: &mut Vec<Late>, activation: Late) {
    late.push(activation);
    if late.len() > LATE_MAX {
        let least = late
            .iter()
            .enumerate()
            .min_by_key(|(_, late)| late.ran_ns - late.due_ns);
        if let Some((at, _)) = least {
            late.remove(at);
        }
    }
}

/// Waits for its cue, then uses `length_ns` of CPU time without a pause.
fn hog(length_ns: u64) -> Result<Truth> {
    if !cue()? {
        return Ok(Truth::default());
    }
    let start_ns = task::monotonic_ns();
    let start_cpu_ns = task::thread_cpu_ns();
    let mut cpu_ns = 0;
    while cpu_ns < length_ns {
        cpu_ns = task::thread_cpu_ns() - start_cpu_ns;
    }
    let stop_ns = task::monotonic_ns();
    // Off the CPU at once, still at its priority: what follows is no part of what it measured.
    task::sleep_until(stop_ns + AFTERWARDS_NS);
    task::become_ordinary()?;
    Ok(Truth {
        start_ns,
        stop_ns,
        cpu_ns,
        activations: 1,
        ..Truth::default()
    })
}

/// Uses the CPU until stdin closes.
fn busy() -> Truth {
    let start_ns = task::monotonic_ns();
    let mut stop_ns = start_ns;
    while !stdin_has_something() && stop_ns - start_ns < BUSY_MAX_NS {
        let pause_ns = stop_ns + 200_000;
        while stop_ns < pause_ns {
            stop_ns = task::monotonic_ns();
        }
    }
    Truth {
        start_ns,
        stop_ns,
        cpu_ns: task::thread_cpu_ns(),
        ..Truth::default()
    }
}

/// Waits for its cue, then runs in bursts for `length_ns`.
fn bursts(length_ns: u64) -> Result<Truth> {
    if !cue()? {
        return Ok(Truth::default());
    }
    let start_ns = task::monotonic_ns();
    let start_cpu_ns = task::thread_cpu_ns();
    let (mut begin_ns, mut activations) = (start_ns, 0);
    while begin_ns < start_ns + length_ns {
        while task::monotonic_ns() < begin_ns + BURST_NS {}
        begin_ns += BURST_PERIOD_NS;
        activations += 1;
        task::sleep_until(begin_ns);
    }
    let cpu_ns = task::thread_cpu_ns() - start_cpu_ns;
    Ok(Truth {
        start_ns,
        stop_ns: task::monotonic_ns(),
        cpu_ns,
        activations,
        ..Truth::default()
    })
}

/// Waits for a line on stdin; false when stdin is closed instead.
fn cue() -> Result<bool> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map(|length| length > 0)
        .map_err(|error| Error::io("cannot wait for the cue", error))
}

/// Whether stdin is closed or holds a line, without waiting.
fn stdin_has_something() -> bool {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_victim_forgets_the_least_late_of_too_many() {
        let mut late = Vec::new();
        for due_ns in 0..LATE_MAX as u64 + 1 {
            let lateness_ns = if due_ns == 3 { 1 } else { 2 };
            note(
                &mut late,
                Late {
                    due_ns,
                    ran_ns: due_ns + lateness_ns,
                },
            );
        }
        assert_eq!(late.len(), LATE_MAX);
        assert!(late.iter().all(|late| late.due_ns != 3));
        assert!(late.is_sorted_by_key(|late| late.due_ns));
    }
}
