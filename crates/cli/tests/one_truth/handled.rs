//! Small texts of ftrace with handlers in them, of which every report says the same.

use std::collections::BTreeMap;

use testkit::{SyntheticTrace, Task};
use trace::Trace;
use views::reports::{Cell, ReportOptions};

use crate::answers::{Answers, CpuStates, rows};
use crate::cases::{A, IDLE, VIC, line, open, switch, wake};

const MS: i64 = 1_000_000;
const US: i64 = 1_000;

/// An event of an interrupt, or of a softirq, in A.
fn irq(at: &str, edge: &str, number: u32) -> String {
    let rest = match edge {
        "entry" => "name=device",
        _ => "ret=handled",
    };
    let what = format!("irq_handler_{edge}: irq={number} {rest}");
    line(at, A, "d.h1.", &what)
}

fn softirq(at: &str, task: (&str, i32, i32), edge: &str, vec: u32) -> String {
    let what = format!("softirq_{edge}: vec={vec} [action=NET_RX]");
    line(at, task, "..s1.", &what)
}

/// How long each handler ran, by its number, as a report says.
type Handled = BTreeMap<i64, i64>;

fn add(handled: &mut Handled, cell: &Cell, total: &Cell) {
    let Cell::Irq { nr, .. } = cell else {
        panic!("no interrupt: {cell:?}");
    };
    let ns = match total {
        Cell::Duration(ns) => *ns,
        Cell::DurationFloat(ns) => ns.round() as i64,
        Cell::Range(begin_ns, end_ns) => end_ns - begin_ns,
        other => panic!("no time: {other:?}"),
    };
    *handled.entry(*nr).or_default() += ns;
}

/// What `irqstats` says, where each handler ran once, and `irqs` and `resources` say the same.
fn handled(trace: &Trace, class: &str) -> Handled {
    let options = ReportOptions::default();
    let (mut stats, mut by_cpu) = (Handled::new(), Handled::new());
    for row in rows(trace, "irqstats", class, &options) {
        add(&mut stats, &row[0], &row[3]);
    }
    for row in rows(trace, "irqs", "irqs", &options) {
        let is_hard = matches!(row[0], Cell::Irq { hard: true, .. });
        if is_hard == (class == "hard-stats") {
            add(&mut by_cpu, &row[0], &row[7]);
        }
    }
    assert_eq!(stats, by_cpu, "irqstats, irqs");
    let busy = rows(trace, "resources", "resources", &options);
    let busy = busy.iter().filter_map(|row| match (&row[0], &row[1]) {
        (Cell::Text(name), Cell::Duration(ns)) if !name.starts_with("CPU") => {
            (name.starts_with("IRQ") == (class == "hard-stats")).then_some(*ns)
        }
        _ => None,
    });
    let busy: Vec<i64> = busy.collect();
    assert_eq!(
        stats.values().copied().collect::<Vec<_>>(),
        busy,
        "resources"
    );
    stats
}

/// What the one CPU did, which adds up to the range and is what the threads on it had.
fn cpu(answers: &Answers) -> CpuStates {
    let states = answers.cpus[&0];
    let sum_ns = states.busy_ns() + states.idle_ns + states.unknown_ns;
    assert_eq!(sum_ns, answers.window.ns(), "{states:?}");
    for (tid, thread) in answers.threads() {
        let top_ns = answers.top_ns.get(tid).copied().unwrap_or(0);
        assert_eq!(thread.on_cpu_ns(), top_ns, "thread {tid}");
    }
    states
}

#[test]
fn an_interrupt_goes_on_behind_the_one_that_interrupts_it() {
    let text = [
        switch("100.000000", IDLE, "R", A),
        irq("100.001000", "entry", 36),
        irq("100.001100", "entry", 37),
        irq("100.001300", "exit", 37),
        irq("100.005400", "exit", 36),
        switch("100.006000", A, "S", IDLE),
    ];
    let (_dir, trace, answers) = open(&text.concat());
    let expect = Handled::from([(36, 4_400 * US), (37, 200 * US)]);
    assert_eq!(handled(&trace, "hard-stats"), expect);
    let log = rows(&trace, "irqlog", "log", &ReportOptions::default());
    let mut logged = Handled::new();
    log.iter()
        .for_each(|row| add(&mut logged, &row[3], &row[0]));
    assert_eq!(logged, expect);
    let states = cpu(&answers);
    assert_eq!((states.irq_ns, states.run_ns), (4_400 * US, 1_600 * US));
}

#[test]
fn three_interrupts_in_a_softirq_and_one_that_comes_twice_in_another() {
    let text = [
        switch("100.000000", IDLE, "R", A),
        softirq("100.001000", A, "entry", 3),
        irq("100.001100", "entry", 1),
        irq("100.001200", "entry", 2),
        irq("100.001300", "entry", 3),
        irq("100.001400", "exit", 3),
        irq("100.001500", "entry", 3),
        irq("100.001600", "exit", 3),
        irq("100.001700", "exit", 2),
        irq("100.001900", "exit", 1),
        softirq("100.003000", A, "exit", 3),
        switch("100.004000", A, "S", IDLE),
    ];
    let (_dir, trace, answers) = open(&text.concat());
    let hard = rows(&trace, "irqs", "irqs", &ReportOptions::default());
    let total = |nr: i64| {
        let is_it =
            |row: &&Vec<Cell>| matches!(row[0], Cell::Irq { hard: true, nr: of, .. } if of == nr);
        hard.iter().find(is_it).map(|row| row[7].clone())
    };
    assert_eq!(total(1), Some(Cell::Duration(800 * US)));
    assert_eq!(total(2), Some(Cell::Duration(500 * US)));
    assert_eq!(total(3), Some(Cell::Duration(200 * US)));
    assert_eq!(handled(&trace, "soft-stats"), Handled::from([(3, 2 * MS)]));
    let states = cpu(&answers);
    assert_eq!((states.irq_ns, states.softirq_ns), (800 * US, 1_200 * US));
    assert_eq!(states.run_ns, 2 * MS);
}

const KSOFTIRQD: (&str, i32, i32) = ("ksoftirqd/0", 12, 120);

/// A softirq in a thread that is preempted in it from 2.01 to 3.1 ms, with an interrupt in it.
fn preempted_softirq() -> String {
    let in_softirq = |text: String| text.replace("               A-22", "     ksoftirqd/0-12");
    let text = [
        switch("100.000000", IDLE, "R", A),
        wake(["100.000300", "100.000301"], A, "dN.2.", KSOFTIRQD),
        switch("100.000400", A, "R", KSOFTIRQD),
        softirq("100.000410", KSOFTIRQD, "entry", 3),
        in_softirq(irq("100.001000", "entry", 9)),
        in_softirq(irq("100.001100", "exit", 9)),
        wake(["100.002000", "100.002001"], KSOFTIRQD, "dNh2.", VIC),
        switch("100.002010", KSOFTIRQD, "R", VIC),
        switch("100.003100", VIC, "S", KSOFTIRQD),
        softirq("100.006000", KSOFTIRQD, "exit", 3),
        switch("100.006010", KSOFTIRQD, "S", A),
        switch("100.007000", A, "S", IDLE),
    ];
    text.concat()
}

#[test]
fn a_softirq_runs_only_while_its_thread_has_the_cpu() {
    let (_dir, trace, answers) = open(&preempted_softirq());
    assert_eq!(
        handled(&trace, "soft-stats"),
        Handled::from([(3, 4_500 * US)])
    );
    let states = cpu(&answers);
    assert_eq!((states.irq_ns, states.softirq_ns), (100 * US, 4_400 * US));
    let thread = answers.threads[&KSOFTIRQD.1];
    assert_eq!(
        (thread.interrupted_ns, thread.run_ns),
        (4_500 * US, 20 * US)
    );
    assert_eq!(answers.threads[&VIC.1].interrupted_ns, 0);
}

#[test]
fn a_softirq_of_a_thread_is_not_that_of_the_one_that_preempts_it() {
    let text = preempted_softirq();
    // Vic has a softirq of its own, of the same vector.
    let own = softirq("100.002100", VIC, "entry", 3) + &softirq("100.003000", VIC, "exit", 3);
    let at = text.find("             vic-44").expect("vic leaves");
    let text = [&text[..at], &own, &text[at..]].concat();
    let (_dir, trace, answers) = open(&text);
    let stats = rows(&trace, "irqstats", "soft-stats", &ReportOptions::default());
    assert_eq!(stats[0][1], Cell::Count(2), "{stats:?}");
    assert_eq!(stats[0][4], Cell::Duration(4_500 * US), "{stats:?}");
    assert_eq!(answers.threads[&VIC.1].interrupted_ns, 900 * US);
    assert_eq!(cpu(&answers).softirq_ns, 5_300 * US);
}

#[test]
fn a_softirq_whose_thread_never_comes_back_to_it_is_none() {
    let text = preempted_softirq();
    let ends = text.find("softirq_exit").expect("it ends");
    let (ends, behind) = (text[..ends].rfind('\n').expect("a line"), &text[ends..]);
    let text = [&text[..ends], &behind[behind.find('\n').expect("a line")..]].concat();
    let (_dir, trace, answers) = open(&text);
    assert_eq!(handled(&trace, "soft-stats"), Handled::new());
    assert_eq!(cpu(&answers).softirq_ns, 0);
    assert_eq!(answers.threads[&KSOFTIRQD.1].run_ns, 4_420 * US);
}

#[test]
fn a_softirq_whose_thread_goes_on_elsewhere_has_ended_unseen() {
    let text = [
        switch("100.000000", IDLE, "R", VIC),
        softirq("100.000100", VIC, "entry", 3),
        switch("100.000200", VIC, "R", IDLE),
        switch("100.000250", IDLE, "R", VIC).replace("[000]", "[001]"),
        softirq("100.000400", VIC, "exit", 3).replace("[000]", "[001]"),
        switch("100.000500", VIC, "S", IDLE).replace("[000]", "[001]"),
        switch("100.000600", IDLE, "R", A),
    ];
    let (_dir, trace, answers) = open(&text.concat());
    assert_eq!(handled(&trace, "soft-stats"), Handled::new());
    for states in answers.cpus.values() {
        assert_eq!(states.softirq_ns, 0, "{states:?}");
        let sum_ns = states.busy_ns() + states.idle_ns + states.unknown_ns;
        assert_eq!(sum_ns, answers.window.ns(), "{states:?}");
    }
    assert!(answers.cpus[&0].run_ns >= 200 * US);
}

#[test]
fn an_interrupt_of_a_cpu_of_which_nothing_is_known_does_not_go_on_to_the_end() {
    let entry = line(
        "100.024863",
        IDLE,
        "d.h1.",
        "irq_handler_entry: irq=37 name=eth0",
    );
    let text = entry.replace("[000]", "[001]") + &switch("100.025874", A, "S", IDLE);
    let (_dir, _, answers) = open(&text);
    let states = answers.cpus.get(&1).copied().unwrap_or_default();
    assert_eq!(states.irq_ns, 0, "{states:?}");
    for (report, unknown_ns) in &answers.unknown_ns {
        assert_eq!(unknown_ns.get(&1), Some(&(1_011 * US)), "{report}");
    }
}

#[test]
fn an_interrupt_whose_end_was_not_recorded_is_in_no_report() {
    let text = [
        switch("100.000000", IDLE, "R", A),
        irq("100.001000", "entry", 36),
        irq("100.001400", "exit", 36),
        irq("100.002000", "entry", 38),
        irq("100.003000", "entry", 37),
        irq("100.003500", "exit", 37),
        switch("100.009000", A, "R", VIC),
        // That of another one, which was not seen to begin.
        line(
            "100.009050",
            VIC,
            "d.h1.",
            "irq_handler_exit: irq=38 ret=handled",
        ),
        switch("100.010000", VIC, "S", IDLE),
    ];
    let (_dir, trace, answers) = open(&text.concat());
    let expect = Handled::from([(36, 400 * US), (37, 500 * US)]);
    assert_eq!(handled(&trace, "hard-stats"), expect);
    let states = cpu(&answers);
    assert_eq!((states.irq_ns, states.run_ns), (900 * US, 9_100 * US));
}

#[test]
fn an_interrupt_that_goes_on_at_the_end_counts_so_far() {
    let text = [
        switch("100.000000", IDLE, "R", A),
        irq("100.001000", "entry", 36),
        irq("100.003000", "entry", 37),
        irq("100.004000", "exit", 37),
    ];
    let (_dir, _, answers) = open(&text.concat());
    let states = cpu(&answers);
    assert_eq!((states.irq_ns, states.run_ns), (3 * MS, MS));
}

#[test]
fn an_interrupt_on_an_idle_cpu_is_none_of_its_idle_time_also_where_that_hides_who_comes() {
    const HOG: Task = Task::rt(102, "hog", 60);
    // Where the hog leaves the CPU, it had come there unseen.
    let hides = || {
        let trace = SyntheticTrace::new().cpus(2).at(0).cpu(1).timer_irq();
        let trace = trace.after(1).timer_irq_end().at(2).block(HOG, Task::IDLE);
        let trace = trace.cpu(0).at(30).run(Task::fair(103, "waker"));
        let trace = trace.at(40).wake_for(HOG, 1).cpu(1);
        trace.at(60).block(HOG, Task::IDLE).at(70).irq(24, "sound")
    };
    let check = |trace: SyntheticTrace| {
        let answers = Answers::of(&trace.build()).expect("all reports answer");
        let states = answers.cpus[&1];
        // The timer's, and this one.
        assert_eq!(states.irq_ns, 1_000 + 30_000, "{states:?}");
    };
    check(
        hides()
            .lost_on(Some(1), 100_000, 110_000)
            .at(120)
            .irq_end(24),
    );
    check(hides().cpu(0).at(100).timer_irq());
}
