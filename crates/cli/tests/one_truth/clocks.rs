//! Small texts of ftrace in which a clock goes back.

use trace::Trace;
use views::reports::{Cell, ReportOptions};

use crate::answers::{Answers, rows};
use crate::cases::{A, B, HOG, IDLE, VIC, line, open, switch, wake};

const US: i64 = 1_000;

/// Every CPU's time is the range, once; no thread had more of it, and nothing takes less than no
/// time.
fn check(text: &str) -> (Trace, Answers) {
    let (_dir, trace, answers) = open(text);
    let range_ns = answers.window.ns();
    for (cpu, states) in &answers.cpus {
        let sum_ns = states.busy_ns() + states.idle_ns + states.unknown_ns;
        assert_eq!(sum_ns, range_ns, "CPU {cpu}: {states:?}");
        for (report, unknown_ns) in &answers.unknown_ns {
            let said_ns = unknown_ns.get(cpu).copied().unwrap_or(0);
            assert!(said_ns >= states.unknown_ns, "{report}, CPU {cpu}");
        }
    }
    for (tid, thread) in answers.threads() {
        let off_ns = thread.waiting_ns + thread.blocked_ns;
        assert!(
            thread.on_cpu_ns() + off_ns <= range_ns,
            "thread {tid}: {thread:?}"
        );
        let top_ns = answers.top_ns.get(tid).copied().unwrap_or(0);
        assert_eq!(thread.on_cpu_ns(), top_ns, "thread {tid}");
    }
    for (report, class) in [
        ("dependency", "blocked"),
        ("dependency", "cpu"),
        ("schedlog", "log"),
        ("syscallstats", "per-tid"),
        ("irqs", "irqs"),
        ("resources", "resources"),
    ] {
        for row in rows(&trace, report, class, &ReportOptions::default()) {
            let is_negative = |cell: &Cell| match cell {
                Cell::Duration(ns) => *ns < 0,
                Cell::Range(begin_ns, end_ns) => end_ns < begin_ns,
                _ => false,
            };
            assert!(!row.iter().any(is_negative), "{report}: {row:?}");
        }
    }
    (trace, answers)
}

fn on_1(text: &str) -> String {
    text.replace("[000]", "[001]")
}

#[test]
fn a_cpu_has_its_time_once_where_its_clock_goes_back() {
    for back in ["100.000000", "100.000480", "100.000530"] {
        let text = [
            switch("100.000011", A, "X", B),
            switch("100.000531", B, "D", IDLE),
            switch(back, IDLE, "R", IDLE),
        ];
        let (_, answers) = check(&text.concat());
        assert_eq!(answers.cpus[&0].run_ns, 520 * US, "{back}");
    }
}

#[test]
fn nothing_is_known_of_the_time_over_which_a_clock_goes_back() {
    let text = [
        switch("100.000000", IDLE, "R", HOG),
        switch("100.020000", HOG, "S", VIC),
        switch("100.020500", VIC, "S", IDLE),
        on_1(&switch("100.000000", IDLE, "R", B)),
        on_1(&wake(["100.000100", "100.000101"], B, "dN.2.", VIC)),
        on_1(&switch("100.021000", B, "S", IDLE)),
    ];
    let (_, answers) = check(&text.concat());
    let states = answers.cpus[&1];
    assert_eq!((states.run_ns, states.unknown_ns), (500 * US, 20_500 * US));
    assert!(answers.waits.is_empty(), "{:?}", answers.waits);
}

#[test]
fn what_goes_on_while_a_clock_goes_back_twice_is_counted_nowhere() {
    let irq = |at: &str, edge: &str| {
        let rest = if edge == "entry" {
            "name=eth0"
        } else {
            "ret=handled"
        };
        line(
            at,
            A,
            "d.h1.",
            &format!("irq_handler_{edge}: irq=36 {rest}"),
        )
    };
    let call = |at: &str, what: &str| line(at, A, ".....", what);
    let text = [
        switch("100.000000", IDLE, "R", A),
        call("100.001000", "sys_write(fd: 1, buf: 7f, count: 3)"),
        irq("100.004000", "entry"),
        irq("100.003500", "exit"),
        wake(["100.003600", "100.003601"], A, "dN.2.", VIC),
        call("100.003700", "sys_write -> 0x3"),
        switch("100.004200", A, "S", VIC),
        switch("100.003900", VIC, "S", IDLE),
        switch("100.006000", IDLE, "R", A),
        switch("100.007000", A, "S", IDLE),
    ];
    let (trace, answers) = check(&text.concat());
    assert_eq!(answers.cpus[&0].irq_ns, 0);
    let calls = rows(&trace, "syscallstats", "total", &ReportOptions::default());
    assert!(calls.is_empty(), "{calls:?}");
}

#[test]
fn lines_of_two_cpus_that_are_a_little_out_of_order_make_no_wait_less_than_none() {
    let text = [
        switch("100.000000", IDLE, "R", B),
        on_1(&switch("100.000000", IDLE, "R", HOG)),
        on_1(&wake(["100.002000", "100.002001"], HOG, "dN.2.", VIC)),
        switch("100.001500", B, "S", VIC),
        switch("100.003000", VIC, "S", B),
        on_1(&switch("100.003000", HOG, "S", IDLE)),
    ];
    let (_, answers) = check(&text.concat());
    assert!(answers.waits.is_empty(), "{:?}", answers.waits);
}
