//! A loop that sleeps for a length of time in the midst of its cycle, recorded: that may be a
//! part of its work, and no verb says that it was in time.

use std::fmt::Write;
use std::process::Command;

const IDLE: &str = "swapper/1:0:120";
const LOOP: &str = "loop:70:59";
const CYCLES: u32 = 12;

/// What is done in one cycle of 20 ms, in microseconds: until when, and how the sleep after it is
/// set.
type Steps<'a> = &'a [(u32, &'a str)];

fn of(task: &str) -> (&str, &str, &str) {
    let mut parts = task.split(':');
    let mut next = || parts.next().expect("name, id, priority");
    (next(), next(), next())
}

fn line(us: u32, task: &str, flags: &str, event: &str) -> String {
    let (name, tid, _) = of(task);
    let (s, us) = (100 + us / 1_000_000, us % 1_000_000);
    format!(" {name}-{tid} [001] {flags} {s}.{us:06}: {event}\n")
}

fn switch(us: u32, prev: &str, state: &str, next: &str) -> String {
    let ((name, tid, prio), (to, to_tid, to_prio)) = (of(prev), of(next));
    let event = format!(
        "sched_switch: prev_comm={name} prev_pid={tid} prev_prio={prio} prev_state={state} ==> \
         next_comm={to} next_pid={to_tid} next_prio={to_prio}"
    );
    line(us, prev, "d..2.", &event)
}

/// The loop runs 5 µs after each of its timers, and each cycle is one of `steps`, in turn.
fn recording(cycles: u32, steps: &[Steps<'_>]) -> String {
    let mut text = String::from("# tracer: nop\n");
    let (name, tid, prio) = of(LOOP);
    text += &switch(0, IDLE, "R", LOOP);
    for cycle in 0..cycles {
        let turn = steps[cycle as usize % steps.len()];
        for (place, (until_us, mode)) in turn.iter().enumerate() {
            let now = cycle * 20_000 + until_us;
            let next = turn.get(place + 1);
            let due = match next {
                // A sleep inside of the cycle is over 300 us before the next step of it.
                Some((next_us, _)) => cycle * 20_000 + next_us - 300,
                None => (cycle + 1) * 20_000,
            };
            // The kernel draws where a stack begins.
            let timer = format!("hrtimer={cycle:x}{place:x}f0 function=hrtimer_wakeup");
            let at = format!("{}{:06}000", 100 + due / 1_000_000, due % 1_000_000);
            let set = format!("hrtimer_start: {timer} expires={at} softexpires={at} mode={mode}");
            let called = format!("hrtimer_expire_entry: {timer} now={at}");
            let task = format!("comm={name} pid={tid} prio={prio} target_cpu=001");
            text += &line(now - 5, LOOP, "d..2.", &set);
            text += &switch(now, LOOP, "S", IDLE);
            text += &line(due, IDLE, "d.h1.", &called);
            for event in ["sched_waking", "sched_wakeup"] {
                text += &line(due + 1, IDLE, "dNh2.", &format!("{event}: {task}"));
            }
            text += &switch(due + 5, IDLE, "R", LOOP);
        }
    }
    let _ = write!(text, "{}", switch(cycles * 20_000 + 100, LOOP, "S", IDLE));
    text
}

/// Asks `diagnose` and `check` whether the loop was more than 5 ms late.
#[track_caller]
fn check(steps: &[Steps<'_>], code: i32, says: &str) {
    check_for(CYCLES, steps, code, says);
}

/// The same of so many cycles.
#[track_caller]
fn check_for(cycles: u32, steps: &[Steps<'_>], code: i32, says: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.txt");
    std::fs::write(&file, recording(cycles, steps)).expect("a file");
    let diagnose = ["diagnose", "--task", "loop", "--over", "5ms"];
    let check = ["check", "--rule", "response of loop within 5ms"];
    for words in [&diagnose[..], &check] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        let output = program.args(words).arg(&file).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        assert!(text.contains(says), "{words:?}: {text}");
    }
}

const SHORT: Steps<'_> = &[(600, "ABS|HARD")];
const LONG: Steps<'_> = &[(300, "REL|HARD"), (12_600, "ABS|HARD")];

#[test]
fn a_sleep_for_a_length_of_time_may_be_inside_the_work_of_a_cycle() {
    check(&[LONG], 3, "worst");
    check(&[LONG], 3, "12.599 ms");
    check(&[SHORT, SHORT, SHORT, LONG], 3, "12.599 ms");
    check(&[SHORT], 0, "12 activations");
    // Short naps, which make nothing late.
    check(&[&[(300, "REL"), (1_100, "ABS")]], 0, "24 activations");
}

#[test]
fn a_loop_that_is_paced_by_lengths_of_time_sleeps_for_its_next_work() {
    let paced: Steps<'_> = &[(600, "REL|HARD")];
    check(&[paced], 0, "12 activations");
    // From its first sleep on, also where it has so many that these are its steady pace.
    check_for(60, &[paced], 0, "60 activations");
    // The kernel's own words of a sleep until a moment, as a time-out of poll has them.
    check(&[&[(300, "ABS"), (12_600, "ABS")]], 0, "24 activations");
}
