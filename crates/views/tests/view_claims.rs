//! What LTTV's and Trace Compass's views must find in small traces whose truth is known.

mod tables;

use event::Value;
use expr::Expr;
use tables::{named, process, rows};
use testkit::{SyntheticTrace, Task};
use views::reports::{Cell, ReportOptions, RtRule};

const A: Task = Task::fair(7, "a");
const B: Task = Task::rt(8, "b", 60);

fn us(us: i64) -> Cell {
    Cell::Duration(us * 1_000)
}

fn range(begin_us: i64, end_us: i64) -> Cell {
    Cell::Range(begin_us * 1_000, end_us * 1_000)
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn call(trace: SyntheticTrace, name: &str, fields: &[(&str, u64)]) -> SyntheticTrace {
    let fields = fields
        .iter()
        .map(|(key, value)| (*key, Value::Unsigned(*value)));
    trace.event(
        &format!("syscall_entry_{name}"),
        &fields.collect::<Vec<_>>(),
    )
}

fn returns(trace: SyntheticTrace, name: &str, ret: i64) -> SyntheticTrace {
    trace.event(
        &format!("syscall_exit_{name}"),
        &[("ret", Value::Signed(ret))],
    )
}

/// A trace that shows what timers do: what wakes in none of their handlers is the task.
fn with_timers() -> SyntheticTrace {
    SyntheticTrace::new().at(0).timer_irq().timer_irq_end()
}

#[test]
fn without_timers_in_the_trace_a_thread_outside_of_calls_is_not_accused() {
    let check = |trace: SyntheticTrace, expect: &str| {
        let trace = trace
            .at(1)
            .run(A)
            .cpu(1)
            .run(B)
            .cpu(0)
            .at(10)
            .block(A, Task::IDLE)
            .cpu(1)
            .at(40)
            .waking(A, 0)
            .cpu(0)
            .at(45)
            .run(A)
            .build();
        let found = rows(&trace, "dependency", &ReportOptions::default(), "blocked");
        assert_eq!(found[0][2], text(expect));
    };
    check(with_timers(), "b (8)");
    check(SyntheticTrace::new(), "while b (8) ran");
}

/// `a` runs from 0 and sleeps in a call from 30 to 60, when interrupt 24 wakes it; the CPU idles
/// meanwhile, and `b` has it from 70 to 90 while `a` waits.
fn story() -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(0).run(A).at(20);
    let trace = call(trace, "nanosleep", &[]);
    let trace = trace
        .at(30)
        .block(A, Task::IDLE)
        .at(60)
        .irq(24, "sound")
        .at(62)
        .waking(A, 0)
        .at(64)
        .irq_end(24)
        .at(66)
        .run(A)
        .at(68)
        .waking(B, 0)
        .at(70)
        .preempt(A, B)
        .at(90)
        .block(B, A);
    returns(trace.at(95), "nanosleep", 0)
        .at(100)
        .block(A, Task::IDLE)
}

#[test]
fn states_of_a_thread_and_of_its_cpu_add_up_to_the_window() {
    let trace = story().build();
    let options = ReportOptions::default();
    let threads = rows(&trace, "states", &options, "threads");
    let a = threads
        .iter()
        .find(|row| row[0] == process(A))
        .expect("a is there");
    // Own run 0 to 20 and 95 to 100, in the call 20 to 30, 66 to 70 and 90 to 95.
    let expect = [
        us(25),
        us(19),
        us(0),
        us(24),
        us(32),
        us(0),
        us(0),
        Cell::Count(3),
    ];
    assert_eq!(a[1..], expect);
    let b = threads
        .iter()
        .find(|row| row[0] == process(B))
        .expect("b is there");
    assert_eq!(b[1], us(20));
    assert_eq!(b[4], us(2), "woken at 68, on the CPU at 70");
    let cpus = rows(&trace, "states", &options, "cpus");
    let busy = [Cell::Cpu(0), us(32), us(45), us(19), us(4), us(0), us(0)];
    let unseen = [Cell::Cpu(1), us(0), us(0), us(0), us(0), us(0), us(100)];
    assert_eq!(cpus, [busy, unseen]);
}

#[test]
fn states_are_cut_to_the_range() {
    let options = ReportOptions {
        begin_ns: Some(62_000),
        end_ns: Some(90_000),
        ..ReportOptions::default()
    };
    let cpus = rows(&story().build(), "states", &options, "cpus");
    let sum_ns: i64 = cpus[0][1..]
        .iter()
        .map(|cell| match cell {
            Cell::Duration(ns) => *ns,
            _ => 0,
        })
        .sum();
    assert_eq!(sum_ns, 28_000);
}

#[test]
fn a_resource_is_busy_as_long_as_it_works() {
    let found = rows(
        &story().build(),
        "resources",
        &ReportOptions::default(),
        "resources",
    );
    let cpu = &found[0];
    assert_eq!(cpu[..2], [text("CPU 0"), us(68)]);
    assert_eq!(cpu[3..], [Cell::Count(3), us(34), range(66, 100)]);
    let irq = &found[1];
    assert_eq!(irq[..2], [text("IRQ 24 sound"), us(4)]);
}

#[test]
fn a_wait_names_the_call_and_what_woke_it() {
    let found = rows(
        &story().build(),
        "dependency",
        &ReportOptions::default(),
        "blocked",
    );
    let call = Cell::Syscall("nanosleep".to_owned());
    let expect = [
        process(A),
        call,
        text("interrupt 24 sound"),
        Cell::Count(1),
        us(32),
    ];
    assert_eq!(found[0][..5], expect);
    assert_eq!(found[0][7], range(30, 62));
    let found = rows(
        &story().build(),
        "dependency",
        &ReportOptions::default(),
        "cpu",
    );
    assert_eq!(
        found[0][..4],
        [process(A), process(B), Cell::Count(1), us(20)]
    );
}

#[test]
fn an_interrupt_has_a_frequency_a_period_and_a_longest_handler() {
    let mut trace = SyntheticTrace::new().at(0).run(A);
    for (at_us, took_us) in [(100, 5), (200, 5), (300, 9), (400, 5)] {
        trace = trace.at(at_us).irq(24, "sound").after(took_us).irq_end(24);
    }
    let trace = trace.at(1_000).block(A, Task::IDLE).build();
    let found = rows(&trace, "irqs", &ReportOptions::default(), "irqs");
    let [irq] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        irq[1..4],
        [Cell::Cpu(0), Cell::Count(4), Cell::Float(4_000.0)]
    );
    assert_eq!(
        irq[4..7],
        [Cell::DurationFloat(1e5), Cell::DurationFloat(0.0), us(100)]
    );
    assert_eq!(irq[7..], [us(24), us(9), range(300, 309)]);
}

#[test]
fn a_tick_that_is_missing_is_the_longest_interval() {
    let mut trace = SyntheticTrace::new();
    for tick in (0..20).filter(|tick| *tick != 13) {
        trace = trace.at(tick * 4_000).irq(0, "timer").after(3).irq_end(0);
    }
    let trace = trace.build();
    let options = ReportOptions {
        events: Some(Expr::parse("$name == \"irq_handler_entry\"").expect("it parses")),
        limit: 1,
        ..ReportOptions::default()
    };
    let top = rows(&trace, "intervals", &options, "top");
    let expect = vec![range(48_000, 56_000), us(8_000), Cell::Cpu(0)];
    assert_eq!(top, [expect]);
    let stats = rows(&trace, "intervals", &options, "stats");
    assert_eq!(stats[0][..2], [Cell::Count(18), us(4_000)]);
    let all = ReportOptions::default();
    let stats = rows(&trace, "intervals", &all, "stats");
    assert_eq!(
        stats[0][0],
        Cell::Count(37),
        "without a filter between all events"
    );
}

#[test]
fn the_critical_path_goes_through_the_thread_that_woke() {
    // On CPU 1 `b` works from 0 to 40, interrupted by nobody, then wakes `a`.
    let trace = with_timers()
        .at(0)
        .run(A)
        .cpu(1)
        .run(B)
        .cpu(0)
        .at(10)
        .block(A, Task::IDLE)
        .cpu(1)
        .at(40)
        .waking(A, 0)
        .cpu(0)
        .at(45)
        .run(A)
        .at(60)
        .block(A, Task::IDLE)
        .build();
    let options = ReportOptions {
        tids: vec![A.tid],
        ..ReportOptions::default()
    };
    let steps = rows(&trace, "criticalpath", &options, "steps");
    let expect = [
        (range(0, 10), process(A), "runs"),
        (range(10, 40), process(B), "runs"),
        (range(40, 45), process(A), "waits for a CPU"),
        (range(45, 60), process(A), "runs"),
    ];
    let found: Vec<_> = steps
        .iter()
        .map(|row| (&row[0], &row[2], &row[3]))
        .collect();
    let expect_text = expect.clone().map(|(_, _, what)| text(what));
    for (place, (range, who, _)) in expect.iter().enumerate() {
        assert_eq!(found[place], (range, who, &expect_text[place]));
    }
    assert_eq!(found.len(), expect.len());
}

#[test]
fn a_critical_path_of_a_window_follows_the_waker_through_what_it_did_there() {
    // `a` sleeps when the window begins; `b`, which slept too, works from 40 to 50 and wakes it.
    let trace = with_timers()
        .at(0)
        .run(A)
        .at(5)
        .block(A, B)
        .at(10)
        .block(B, Task::IDLE)
        .at(38)
        .waking(B, 0)
        .at(40)
        .run(B)
        .at(50)
        .waking(A, 0)
        .at(52)
        .block(B, A)
        .at(60)
        .block(A, Task::IDLE)
        .build();
    let options = ReportOptions {
        tids: vec![A.tid],
        begin_ns: Some(20_000),
        ..ReportOptions::default()
    };
    let steps = rows(&trace, "criticalpath", &options, "steps");
    let found: Vec<_> = steps.iter().map(|row| (&row[0], &row[2])).collect();
    let expect = [
        (range(38, 40), process(B)),
        (range(40, 50), process(B)),
        (range(50, 52), process(A)),
        (range(52, 60), process(A)),
    ];
    let last = &found[found.len() - expect.len()..];
    for (found, (range, who)) in last.iter().zip(&expect) {
        assert_eq!(*found, (range, who), "{steps:?}");
    }
    let before: Vec<_> = steps[..steps.len() - expect.len()]
        .iter()
        .map(|row| &row[3])
        .collect();
    assert!(!before.contains(&&text("runs")), "{steps:?}");
}

#[test]
fn a_critical_path_of_threads_that_wake_each_other_ends() {
    let mut trace = with_timers().at(0).run(A).at(1).waking(B, 0);
    for turn in 0..100 {
        trace = trace.at(10 + 20 * turn).block(A, B).after(5).waking(A, 0);
        trace = trace.at(20 + 20 * turn).block(B, A).after(5).waking(B, 0);
    }
    let trace = trace.build();
    let options = ReportOptions {
        tids: vec![A.tid],
        ..ReportOptions::default()
    };
    let sums = rows(&trace, "criticalpath", &options, "sums");
    let total_ns: i64 = sums
        .iter()
        .map(|row| match row[2] {
            Cell::Duration(ns) => ns,
            _ => 0,
        })
        .sum();
    assert_eq!(
        total_ns,
        (20 + 20 * 99 + 5) * 1_000,
        "all of the window, once"
    );
}

#[test]
fn a_futex_names_waiter_and_waker_and_an_attempt_that_never_waits_is_none() {
    const WAIT: u64 = 128;
    check_futex("futex", &[("uaddr", 0xc0de), ("op", WAIT)]);
    // Of older programs of 32 bits.
    check_futex("futex_time32", &[("uaddr", 0xc0de), ("op", WAIT)]);
    check_futex(
        "futex_wait",
        &[("uaddr", 0xc0de), ("val", 1), ("timeout", 0)],
    );
}

fn check_futex(name: &str, futex: &[(&str, u64)]) {
    let trace = with_timers().at(0).run(A).cpu(1).run(B).cpu(0).at(10);
    let trace = call(trace, name, futex).at(12).block(A, Task::IDLE);
    let trace = trace.cpu(1).at(50).waking(A, 0).cpu(0).at(53).run(A).at(55);
    let trace = returns(trace, name, 0).at(60);
    // The value had changed: it returns at once.
    let trace = returns(call(trace, name, futex).at(61), name, -11).build();
    let found = rows(&trace, "futex", &ReportOptions::default(), "waits");
    let expect = vec![
        range(10, 55),
        us(45),
        text("0xc0de in 7"),
        process(A),
        text("b (8)"),
        Cell::Count(1),
    ];
    assert_eq!(found, [expect]);
    let locks = rows(&trace, "futex", &ReportOptions::default(), "locks");
    assert_eq!(locks[0][1..3], [Cell::Count(1), us(45)]);
}

#[test]
fn rtcheck_counts_the_periods_in_which_a_task_ran_too_little() {
    // `b` needs 10 of each 100 us. In the second period `a` keeps the CPU from it; in the fourth
    // it sleeps of its own will.
    let trace = SyntheticTrace::new()
        .at(0)
        .run(B)
        .at(20)
        .block(B, A)
        .at(100)
        .waking(B, 0)
        .at(195)
        .preempt(A, B)
        .at(215)
        .block(B, A)
        .at(420)
        .waking(B, 0)
        .at(421)
        .preempt(A, B)
        .at(450)
        .block(B, A)
        .at(500)
        .preempt(A, A)
        .build();
    let options = ReportOptions {
        rt_rules: vec![RtRule {
            task: event::TaskPattern::parse("b").expect("a task"),
            period_ns: 100_000,
            needed_ns: 10_000,
        }],
        ..ReportOptions::default()
    };
    let found = rows(&trace, "rtcheck", &options, "checks");
    // 20, 5, 15, 0, 29 us.
    let counts = [5, 0, 2, 1].map(Cell::Count);
    assert_eq!(found[0][3..7], counts);
    assert_eq!(found[0][7..], [us(0), range(300, 400)]);
}

#[test]
fn rtcheck_counts_no_periods_of_a_task_that_has_ended() {
    let trace = |ends: bool| {
        let trace = SyntheticTrace::new().at(0).run(B).at(50);
        let trace = match ends {
            true => trace.end(B, A),
            false => trace.block(B, A),
        };
        trace.at(1_000).preempt(A, A).build()
    };
    let options = ReportOptions {
        rt_rules: vec![RtRule {
            task: event::TaskPattern::parse("b").expect("a task"),
            period_ns: 20_000,
            needed_ns: 10_000,
        }],
        ..ReportOptions::default()
    };
    let counts = |ends: bool| {
        let found = rows(&trace(ends), "rtcheck", &options, "checks");
        found[0][3..6].to_vec()
    };
    assert_eq!(counts(true), [2, 0, 0].map(Cell::Count));
    assert_eq!(counts(false), [50, 0, 47].map(Cell::Count));
}

/// Events of the entry and the exit of functions in the thread 7, at microseconds.
fn called(events: &[(i64, &str, u64)]) -> SyntheticTrace {
    let function = |trace: SyntheticTrace, (at_us, what, address): &(i64, &str, u64)| {
        let fields = [
            ("addr", Value::Unsigned(*address)),
            ("vtid", Value::Signed(7)),
        ];
        let name = format!("lttng_ust_cyg_profile:func_{what}");
        trace.at(*at_us).event(&name, &fields)
    };
    events.iter().fold(SyntheticTrace::new(), function)
}

/// The own time of each stack, in microseconds.
fn check_stacks(trace: SyntheticTrace, expect: &[(&str, i64)]) {
    let options = ReportOptions::default();
    let found = rows(&trace.build(), "flamegraph", &options, "stacks");
    let own = found.iter().map(|row| (row[0].clone(), row[1].clone()));
    let expect = expect.iter().map(|(stack, ns)| (text(stack), us(*ns)));
    assert_eq!(own.collect::<Vec<_>>(), expect.collect::<Vec<_>>());
}

#[test]
fn a_stack_has_its_own_time_and_a_lost_exit_ends_with_its_caller() {
    let events = [
        (0, "entry", 1),
        (10, "entry", 2),
        (30, "exit", 2),
        (40, "entry", 2),
        (45, "entry", 3),
        // The exit of 3 is missing.
        (60, "exit", 2),
        (70, "exit", 1),
    ];
    let expect = [
        ("thread 7;0x1", 30),
        ("thread 7;0x1;0x2", 25),
        ("thread 7;0x1;0x2;0x3", 15),
    ];
    check_stacks(called(&events), &expect);
}

#[test]
fn no_stack_has_the_time_in_which_events_were_lost() {
    let events = [
        (0, "entry", 1),
        (10, "entry", 2),
        (70, "exit", 2),
        (90, "exit", 1),
    ];
    let expect = [("thread 7;0x1", 30), ("thread 7;0x1;0x2", 60)];
    check_stacks(called(&events), &expect);
    // The function may have been left and called again meanwhile; its exit shows its caller.
    let expect = [("thread 7;0x1", 30), ("thread 7;0x1;0x2", 10)];
    check_stacks(called(&events).lost(20, 50), &expect);
    // The exit of the function is lost.
    let events = [(0, "entry", 1), (10, "entry", 2), (90, "exit", 1)];
    let expect = [("thread 7;0x1", 10), ("thread 7;0x1;0x2", 10)];
    check_stacks(called(&events).lost(20, 50), &expect);
}

#[test]
fn views_say_which_events_they_lack() {
    let trace = SyntheticTrace::new().at(0).nmi(1).build();
    let check = |name: &str, expect: usize| {
        let missing = named(name).kind.missing(trace.classes());
        assert_eq!(missing.len(), expect, "{name}");
    };
    check("intervals", 0);
    check("irqs", 1);
    check("states", 1);
    check("dependency", 2);
    check("futex", 3);
    check("flamegraph", 1);
}
