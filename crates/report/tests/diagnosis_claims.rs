//! What a person reads and what a program reads about the same diagnosis.

use diagnosis::{Diagnosis, Query, TaskFilter, Until, diagnose};
use event::Duration;
use report::{TextStyle, diagnosis_json, diagnosis_text};
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const HOG: Task = Task::rt(200, "burner", 60);

fn late_behind_a_hog() -> Diagnosis {
    let trace = SyntheticTrace::new().at(20).block(VICTIM, HOG);
    let trace = trace
        .at(1000)
        .irq(9, "eth0")
        .after(2)
        .wake(VICTIM)
        .after(2)
        .irq_end(9);
    let trace = trace.at(9000).block(HOG, VICTIM);
    diagnose(&trace.build(), &Query::default()).expect("the trace can be diagnosed")
}

#[test]
fn the_short_answer_says_when_what_who_what_to_do_and_where_to_look() {
    let style = TextStyle {
        more: Some("rtscope diagnose snapshot -v".into()),
        wall_offset: Some(Duration::from_ns(1_795_165_638_000_000_000)),
        utc: true,
        ..TextStyle::default()
    };
    let text = diagnosis_text(&late_behind_a_hog(), &style);
    let expect = "\
2026-11-20 09:07:18.009  victim (tid 100, rt 50) was late by 8.000 ms on CPU 0: \
burner (tid 200, rt 60) ran ahead of it for 7.995 ms (99.9 %).
  do:    taskset -pc 1 200   # burner shares CPU 0 with victim
  or:    chrt -f -p 49 200
         # burner has rt 60, victim has rt 50; -r in place of -f where chrt -p says SCHED_RR
  check: rtscope watch --task victim --over 4ms
  look:  rtscope diagnose snapshot -v   # every step, ledger, stacks
";
    assert!(text.starts_with(expect), "{text}");
    assert!(text.lines().count() <= 10, "{text}");
}

#[test]
fn many_causes_make_the_short_answer_no_longer_than_ten_lines() {
    let mut diagnosis = late_behind_a_hog();
    let style = TextStyle {
        more: Some("rtscope diagnose snapshot -v".into()),
        ..TextStyle::default()
    };
    diagnosis.groups = vec![diagnosis.groups[0].clone(); 6];
    let text = diagnosis_text(&diagnosis, &style);
    let is_answer = |line: &&str| !line.starts_with("warning:");
    assert_eq!(text.lines().filter(is_answer).count(), 10, "{text}");
    assert!(text.contains("\n3 more causes, with -v.\n"), "{text}");
}

#[test]
fn on_a_terminal_no_line_of_the_short_answer_is_longer_than_it() {
    for columns in [80, 60] {
        let style = TextStyle {
            more: Some("rtscope diagnose snapshot -v".into()),
            wall_offset: Some(Duration::from_ns(1_795_165_638_000_000_000)),
            columns: Some(columns),
            ..TextStyle::default()
        };
        let text = diagnosis_text(&late_behind_a_hog(), &style);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns), "{text}");
    }
}

#[test]
fn without_a_task_the_users_longest_miss_comes_before_what_the_kernels_threads_waited_for() {
    let rcub = Task::rt(20, "rcub/0", 1);
    let user = Task::rt(100, "player", 50);
    let mut trace = SyntheticTrace::new().at(20).block(rcub, Task::IDLE);
    // The kernel's thread waits more often, and for longer.
    for turn in 0..3 {
        let trace_at = 1_000 + turn * 30_000;
        trace = trace
            .at(trace_at)
            .irq(9, "eth0")
            .after(2)
            .wake(HOG)
            .after(1)
            .irq_end(9);
        trace = trace
            .after(1)
            .block(Task::IDLE, HOG)
            .after(1)
            .irq(9, "eth0");
        trace = trace.wake(rcub).after(1).irq_end(9);
        trace = trace
            .after(20_000)
            .block(HOG, rcub)
            .after(5)
            .block(rcub, Task::IDLE);
    }
    trace = trace
        .at(100_000)
        .irq(9, "eth0")
        .wake(HOG)
        .after(1)
        .irq_end(9);
    trace = trace.after(1).block(Task::IDLE, HOG).after(1).irq(8, "snd");
    trace = trace.wake(user).after(1).irq_end(8);
    let trace = trace
        .after(9_000)
        .block(HOG, user)
        .after(5)
        .block(user, Task::IDLE);
    let found = diagnose(&trace.build(), &Query::default()).expect("a diagnosis");
    let first = found.groups.first().expect("a cause");
    let late = &found.activations[first.members[0]];
    assert_eq!(late.task.comm, "player", "{}", first.verdict.sentence);
}

#[test]
fn the_text_holds_verdict_steps_ledger_advice_and_the_next_command() {
    let style = TextStyle {
        verbose: true,
        trace: Some("snapshot".into()),
        ..TextStyle::default()
    };
    let text = diagnosis_text(&late_behind_a_hog(), &style);
    let expect = "\
victim (tid 100, rt 50) was late by 8.000 ms on CPU 0: \
burner (tid 200, rt 60) ran ahead of it for 7.995 ms (99.9 %).

  time [s]                CPU     until next   share  step
  0.001000000               0       2 000 ns    0.0%  interrupt 9 eth0
  0.001002000               0   7 998 000 ns  100.0%  wakes victim (tid 100, rt 50)
  0.009000000               0           0 ns    0.0%  victim (tid 100, rt 50) runs

  where 8.000 ms went:
  run-queue wait behind burner (tid 200, rt 60)   7 995 000 ns   99.9%  ████████████████████████
  interrupt 9 eth0                                    4 000 ns    0.1%
  wake-up delivery                                    1 000 ns    0.0%

  why not the host?           nothing says that the machine is virtual
  why not an interrupt?       those that were recorded took 4.000 us of it, softirqs among them
  why not a limit or a quota? none was seen at work
  why not itself?             it did not run in it
  why not what was not seen?  its evidence is complete, and all of it is explained

  what to change (any one of these):
    taskset -pc 1 200
      because burner shares CPU 0 with victim
    chrt -f -p 49 200
      because burner has rt 60, victim has rt 50; -r in place of -f where chrt -p says SCHED_RR
  then check: rtscope watch --task victim --over 4ms
  look at it: rtscope cat snapshot --begin 0.000900000 --end 0.009100000
";
    assert!(text.starts_with(expect), "{text}");
    assert!(text.ends_with(
        "6 events in 8.980 ms, 0 lost; 1 activation of the tasks asked for, to the switch-in, \
         their work not judged\n"
    ));
    assert!(!text.contains('\x1b'), "colour only when asked for");
}

#[test]
fn what_speaks_against_other_causes_is_told_when_asked_for_and_always_in_json() {
    let text = |verbose: bool| {
        let style = TextStyle {
            verbose,
            ..TextStyle::default()
        };
        diagnosis_text(&late_behind_a_hog(), &style)
    };
    let expect = "

  why not the host?           nothing says that the machine is virtual
  why not an interrupt?       those that were recorded took 4.000 us of it, softirqs among them
  why not a limit or a quota? none was seen at work
  why not itself?             it did not run in it
  why not what was not seen?  its evidence is complete, and all of it is explained
";
    assert!(text(true).contains(expect), "{}", text(true));
    assert!(!text(false).contains("why not"));
    let json = diagnosis_json(&late_behind_a_hog());
    let excluded = &json["groups"][0]["verdict"]["excluded"];
    assert_eq!(excluded[0]["question"], "why not the host?", "{json:#}");
}

#[test]
fn advice_says_whether_one_of_it_is_enough() {
    let second = Task::rt(201, "second", 70);
    let trace = SyntheticTrace::new().at(20).block(VICTIM, HOG).at(1000);
    let trace = trace
        .irq(9, "eth0")
        .after(2)
        .wake(VICTIM)
        .after(2)
        .irq_end(9);
    let trace = trace.at(5000).block(HOG, second).at(8000);
    let steps = [(1_000_000, 3, 0, 9), (1_002_000, 7, 0, VICTIM.tid)];
    let trace = trace.block(second, VICTIM).hit(1, VICTIM, second, &steps);
    let diagnosis = diagnose(&trace.build(), &Query::default()).expect("a diagnosis");
    let text = |verbose: bool| {
        let style = TextStyle {
            verbose,
            ..TextStyle::default()
        };
        diagnosis_text(&diagnosis, &style)
    };
    let long = text(true);
    assert!(
        long.contains("what to change (one for each cause):"),
        "{long}"
    );
    let short = text(false);
    assert!(short.contains("\n  and:   "), "{short}");
}

#[test]
fn colour_marks_the_culprit_only_when_asked_for() {
    let style = TextStyle {
        verbose: true,
        color: true,
        ..TextStyle::default()
    };
    let text = diagnosis_text(&late_behind_a_hog(), &style);
    let red: Vec<_> = text
        .lines()
        .filter(|line| line.contains("\x1b[31m"))
        .collect();
    assert_eq!(red.len(), 1);
    assert!(red[0].contains("run-queue wait behind burner"));
}

#[test]
fn a_narrow_terminal_cuts_bars_first_and_then_names() {
    let check = |columns: usize, expect: &str| {
        let style = TextStyle {
            verbose: true,
            columns: Some(columns),
            ..TextStyle::default()
        };
        let text = diagnosis_text(&late_behind_a_hog(), &style);
        let line = text.lines().find(|line| line.contains("99.9%"));
        assert_eq!(line.map(str::trim_start), Some(expect), "{text}");
    };
    let name = "run-queue wait behind burner (tid 200, rt 60)";
    let numbers = "  7 995 000 ns   99.9%";
    check(200, &format!("{name} {numbers}  {}", "█".repeat(24)));
    check(80, &format!("{name} {numbers}  {}", "█".repeat(8)));
    check(
        60,
        "run-queue wait behind burner (ti…   7 995 000 ns   99.9%",
    );
}

#[test]
fn the_json_has_a_schema_a_version_and_integer_nanoseconds_that_add_up() {
    let json = diagnosis_json(&late_behind_a_hog());
    assert_eq!(json["schema"], "rtscope.diagnosis");
    assert_eq!(json["version"], 1);
    assert_eq!(json["verdict"]["culprits"][0]["task"]["comm"], "burner");
    let late = &json["activations"][0];
    let terms = late["ledger"]["terms"]
        .as_array()
        .expect("terms are an array");
    let sum: i64 = terms
        .iter()
        .filter_map(|term| term["duration_ns"].as_i64())
        .sum();
    assert_eq!(late["latency_ns"], sum);
    assert_eq!(late["ledger"]["total_ns"], sum);
    assert_eq!(late["steps"][1]["kind"], "waking");
    assert_eq!(json["groups"][0]["signature"], "run_queue_wait:burner");
}

#[test]
fn a_trace_in_which_nothing_was_late_says_so_and_one_without_activations_does_not() {
    let check = |trace: SyntheticTrace, query: &Query, expect: &str| {
        let diagnosis = diagnose(&trace.build(), query).expect("the trace can be diagnosed");
        let text = diagnosis_text(&diagnosis, &TextStyle::default());
        assert!(text.starts_with(expect), "{text}");
        assert!(diagnosis_json(&diagnosis)["verdict"].is_null());
    };
    let idle = SyntheticTrace::new().at(20).block(VICTIM, HOG);
    check(idle, &Query::default(), "Nothing to judge: ");
    let quick = || {
        let quick = SyntheticTrace::new().at(20).block(VICTIM, Task::IDLE);
        let quick = quick.at(100).irq(9, "eth0").wake(VICTIM);
        quick.after(2).irq_end(9)
    };
    let query = Query {
        threshold: Some(Duration::from_ms(1)),
        ..Query::default()
    };
    let scope = "No wait for a CPU above 1.000 ms in 1 wake-up of victim (tid 100, rt 50); work \
                 after the wake-up is not judged.\n";
    check(quick().after(5).run(VICTIM), &query, scope);
    let query = Query {
        until: Until::Block,
        ..query
    };
    let scope = "No activation above 1.000 ms from its origin to the end of its work, of 1 \
                 activation of victim (tid 100, rt 50). A sleep for a program's lock, semaphore or \
                 answer ends the work, too (record --events default,futex tells locks). What \
                 a fair task did before it woke one of them, and a real-time one before its last \
                 sleep, is not judged. 1 activation that had begun before: not judged.\n";
    let quick = quick().after(5).run(VICTIM).after(50);
    check(quick.block(VICTIM, Task::IDLE), &query, scope);
}

#[test]
fn a_process_that_is_named_by_its_script_is_told_how_a_recording_knows_processes() {
    let says = |word: &str| {
        let trace = SyntheticTrace::new().at(20).block(VICTIM, HOG).build();
        let query = Query {
            tasks: TaskFilter::parse(&[word]).expect("a pattern"),
            ..Query::default()
        };
        let diagnosis = diagnose(&trace, &query).expect("the trace can be diagnosed");
        let text = diagnosis_text(&diagnosis, &TextStyle::default());
        text.contains("not the script that it runs")
    };
    assert!(says("process:loop.py"));
    assert!(!says("loop.py"));
}

#[test]
fn a_cause_has_its_share_of_all_that_were_late_and_not_of_those_that_were_looked_at() {
    let mut trace = SyntheticTrace::new().at(20).block(VICTIM, HOG);
    for turn in 1..=4 {
        trace = trace.at(turn * 10_000).timer_irq().wake(VICTIM).after(1);
        trace = trace.timer_irq_end().after(3_000).block(HOG, VICTIM);
        trace = trace.after(100).block(VICTIM, HOG);
    }
    let trace = trace.build();
    let says = |worst: usize, threshold: Option<Duration>| {
        let query = Query {
            worst,
            threshold,
            ..Query::default()
        };
        let diagnosis = diagnose(&trace, &query).expect("the trace can be diagnosed");
        let short = diagnosis_text(&diagnosis, &TextStyle::default());
        let verbose = TextStyle {
            verbose: true,
            ..TextStyle::default()
        };
        (short, diagnosis_text(&diagnosis, &verbose))
    };
    let limit = Some(Duration::from_ms(1));
    let (short, long) = says(2, limit);
    let share = "2 of the 2 longest of 4 late";
    assert!(
        short.contains(&format!("{share} have this cause")),
        "{short}"
    );
    assert!(
        long.contains(&format!("{share} activations have")),
        "{long}"
    );
    let (short, _) = says(10, limit);
    assert!(short.contains("4 of 4 late have this cause"), "{short}");
    // Without a limit the others were not late.
    let (short, _) = says(2, None);
    assert!(short.contains("2 of 2 late have this cause"), "{short}");
}
