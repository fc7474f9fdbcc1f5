//! Small traces, and what the reports must find in them.

mod tables;

use event::Value;
use expr::period::Periods;
use tables::{named, process, rows, ticks};
use testkit::{SyntheticTrace, Task};
use views::reports::{
    Bins, Cell, Groups, REPORTS, Report, ReportOptions, Table, Tick, Views, run_reports,
};

const A: Task = Task::fair(7, "a");
const B: Task = Task::rt(8, "b", 60);

/// `a` runs for 60 of 100 us, `b` preempts it for 30.
fn preemption() -> SyntheticTrace {
    SyntheticTrace::new()
        .at(0)
        .run(A)
        .at(30)
        .waking(B, 0)
        .at(40)
        .preempt(A, B)
        .at(70)
        .block(B, A)
        .at(90)
        .block(A, Task::IDLE)
        .at(100)
        .run(A)
}

#[test]
fn cputop_gives_each_task_its_share_and_each_cpu_the_sum() {
    let trace = preemption().build();
    let options = ReportOptions::default();
    let share = |row: &Vec<Cell>, task: Task| {
        assert_eq!(row[0], process(task));
        match row[3] {
            Cell::Ratio(share) => (share * 100.0).round(),
            _ => panic!("{row:?}"),
        }
    };
    let threads = rows(&trace, "cputop", &options, "per-process");
    assert_eq!(share(&threads[0], A), 60.0);
    assert_eq!(share(&threads[1], B), 30.0);
    let cpus = rows(&trace, "cputop", &options, "per-cpu");
    assert_eq!(cpus, [vec![Cell::Cpu(0), Cell::Ratio(0.9)]]);
    let filtered = ReportOptions {
        tids: vec![B.tid],
        ..options
    };
    let cpus = rows(&trace, "cputop", &filtered, "per-cpu");
    assert_eq!(cpus, [vec![Cell::Cpu(0), Cell::Ratio(0.3)]]);
}

#[test]
fn in_a_trace_of_some_tasks_alone_nobody_else_gets_time() {
    let trace = |tracks: bool| {
        let trace = match tracks {
            true => SyntheticTrace::new().environment("rtscope_tracked_tasks", "b"),
            false => SyntheticTrace::new(),
        };
        let tracked = [("tid", Value::Signed(i64::from(B.tid)))];
        let trace = trace.event("rtscope_tracked", &tracked);
        // From 10 to 90, `a` may have had the CPU, and others too.
        let trace = trace.run(B).at(10).block(B, A).at(90).preempt(A, B);
        trace.at(100).block(B, A).build()
    };
    let shares = |tracks: bool| -> Vec<(Cell, f64)> {
        let options = ReportOptions::default();
        let threads = rows(&trace(tracks), "cputop", &options, "per-process");
        let share = |row: Vec<Cell>| match row[3] {
            Cell::Ratio(share) => (row[0].clone(), (share * 100.0).round()),
            _ => panic!("{row:?}"),
        };
        threads.into_iter().map(share).collect()
    };
    let of = |tracks: bool, task: Task| {
        let all = shares(tracks);
        let own = all.iter().find(|(who, _)| *who == process(task));
        own.map_or(0.0, |(_, share)| *share)
    };
    assert_eq!((of(false, A), of(false, B)), (80.0, 20.0));
    assert_eq!((of(true, A), of(true, B)), (0.0, 20.0));
}

#[test]
fn who_is_tracked_from_a_moment_on_had_no_cpu_before_it_that_anybody_knows() {
    let tracked = |task: Task| [("tid", Value::Signed(i64::from(task.tid)))];
    let trace = SyntheticTrace::new().environment("rtscope_tracked_tasks", "a,b");
    let trace = trace.event("rtscope_tracked", &tracked(A)).at(80);
    let trace = trace.event("rtscope_tracked", &tracked(B));
    let trace = trace.at(90).block(B, A).at(100).block(A, B).build();
    let threads = rows(&trace, "cputop", &ReportOptions::default(), "per-process");
    let share = |task: Task| {
        let own = threads.iter().find(|row| row[0] == process(task));
        match own.map(|row| &row[3]) {
            Some(Cell::Ratio(share)) => (share * 100.0).round(),
            _ => panic!("{threads:?}"),
        }
    };
    assert_eq!((share(A), share(B)), (10.0, 10.0));
}

#[test]
fn a_wait_goes_from_the_first_wake_up_to_the_switch_and_names_the_waker() {
    let trace = preemption().build();
    let found = rows(&trace, "schedlog", &ReportOptions::default(), "log");
    let [wake] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(wake[2], Cell::Duration(10_000));
    assert_eq!(wake[3], Cell::Number(-61));
    assert_eq!(wake[5..], [process(B), process(A)]);
    let longer = ReportOptions {
        min_ns: Some(10_001),
        ..ReportOptions::default()
    };
    assert!(rows(&trace, "schedlog", &longer, "log").is_empty());
}

#[test]
fn a_task_that_runs_is_not_woken() {
    let trace = SyntheticTrace::new()
        .at(0)
        .run(A)
        .at(10)
        .waking(A, 0)
        .at(20)
        .block(A, Task::IDLE)
        .at(25)
        .waking(A, 0)
        .at(30)
        .run(A)
        .build();
    let found = rows(&trace, "schedlog", &ReportOptions::default(), "log");
    let [wait] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(wait.contains(&Cell::Duration(5_000)), "{wait:?}");
}

#[test]
fn a_softirq_is_late_from_its_first_raise_in_both_generations_of_names() {
    let check = |prefix: &'static str| {
        let event = |trace: SyntheticTrace, at_us: i64, what: &str| {
            let fields = [("vec", Value::Unsigned(1))];
            trace.at(at_us).event(&format!("{prefix}{what}"), &fields)
        };
        let mut trace = SyntheticTrace::new();
        for (at_us, what) in [
            (0, "raise"),
            (5, "raise"),
            (10, "entry"),
            (12, "raise"),
            (13, "raise"),
            (30, "exit"),
            (40, "entry"),
            (41, "exit"),
            (50, "entry"),
            (51, "exit"),
        ] {
            trace = event(trace, at_us, what);
        }
        let trace = trace.build();
        let found = rows(&trace, "irqstats", &ReportOptions::default(), "soft-stats");
        let [timer] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(timer[1..3], [Cell::Count(3), Cell::Duration(1_000)]);
        // 0 to 10, and 12 to 40: the second handler's raises are one.
        assert_eq!(timer[6..8], [Cell::Count(2), Cell::Duration(10_000)]);
        assert_eq!(timer[9], Cell::Duration(28_000));
    };
    check("softirq_");
    check("irq_softirq_");
}

#[test]
fn a_refresh_cuts_time_into_windows_that_touch() {
    let options = ReportOptions {
        refresh_ns: Some(40_000),
        ..ReportOptions::default()
    };
    let found = ticks(&preemption().build(), "cputop", &options);
    let spans: Vec<_> = found.iter().map(|t| (t.begin_ns, t.end_ns)).collect();
    assert_eq!(spans, [(0, 40_000), (40_000, 90_000), (90_000, 100_000)]);
}

#[test]
fn a_range_begins_with_the_state_that_came_before() {
    let options = ReportOptions {
        begin_ns: Some(40_000),
        end_ns: Some(90_000),
        ..ReportOptions::default()
    };
    let found = rows(&preemption().build(), "schedlog", &options, "log");
    assert_eq!(found.len(), 1, "the wake-up lay before, the switch inside");
}

fn periods(definitions: &[&str], captures: &[&str]) -> ReportOptions {
    ReportOptions {
        periods: Periods::parse(definitions, captures).expect("they can be read"),
        bins: Bins::default(),
        groups: Groups::default(),
        ..ReportOptions::default()
    }
}

const RUN: &str = "run : $evt.$name == \"sched_switch\" && $evt.next_tid != 0 : \
                   $evt.$name == \"sched_switch\" && $evt.prev_tid == $begin.$evt.next_tid";

#[test]
fn a_period_keeps_what_was_asked_and_an_open_one_is_no_result() {
    let captures = "run : who = $evt.next_comm, nothing = $evt.missing : $evt.next_tid";
    let found = rows(
        &preemption().build(),
        "periodlog",
        &periods(&[RUN], &[captures]),
        "log",
    );
    let durations: Vec<_> = found.iter().map(|row| row[2].clone()).collect();
    let expect = [40_000, 30_000, 20_000].map(Cell::Duration);
    assert_eq!(durations, expect, "the last run does not end");
    let Cell::Captures(begin) = &found[1][4] else {
        panic!("{found:?}");
    };
    let text = |value: &Option<views::periods::Kept>| value.as_ref().map(ToString::to_string);
    assert_eq!(begin[0].0, "who");
    assert_eq!(text(&begin[0].1).as_deref(), Some("b"));
    assert_eq!(begin[1].1, None);
    let Cell::Captures(end) = &found[1][5] else {
        panic!("{found:?}");
    };
    assert_eq!(end[0].0, "$evt.next_tid");
    assert_eq!(text(&end[0].1).as_deref(), Some("7"));
}

#[test]
fn children_open_in_each_parent_and_end_with_it() {
    let trace = SyntheticTrace::new()
        .at(0)
        .run(A)
        .at(10)
        .irq(24, "sound")
        .at(15)
        .irq_end(24)
        .at(20)
        .irq(24, "sound")
        .at(30)
        .block(A, Task::IDLE)
        .at(40)
        .irq_end(24)
        .build();
    let irq = "irq(run) : $evt.$name == \"irq_handler_entry\" : \
               $evt.$name == \"irq_handler_exit\" && $evt.irq == $begin.$evt.irq";
    let options = periods(&[RUN, irq], &[]);
    let found = rows(&trace, "periodstats", &options, "per_period_stats");
    let counts: Vec<_> = found.iter().map(|row| (&row[0], &row[1])).collect();
    let name = |name: &str| Cell::Text(name.to_owned());
    let one = Cell::Count(1);
    assert_eq!(counts, [(&name("run"), &one), (&name("run/irq"), &one)]);
    let ratio = rows(&trace, "periodstats", &options, "per_parent_percentage");
    let Cell::Float(percent) = ratio[0][2] else {
        panic!("{ratio:?}");
    };
    assert_eq!((percent * 100.0).round(), 1667.0, "5 of 30 us");
}

#[test]
fn periods_are_grouped_by_what_was_kept_of_them() {
    let mut options = periods(&[RUN], &["run : who = $evt.next_comm"]);
    options.group_by = vec![("run".to_owned(), "who".to_owned())];
    let found = ticks(&preemption().build(), "periodstats", &options);
    let counts: Vec<_> = found[0]
        .tables
        .iter()
        .filter(|table| table.class.name == "per_period_stats")
        .map(|table| (table.group.as_deref(), table.rows[0][1].clone()))
        .collect();
    assert_eq!(
        counts,
        [
            (None, Cell::Count(3)),
            (Some("run.who = a"), Cell::Count(2)),
            (Some("run.who = b"), Cell::Count(1)),
        ]
    );
}

#[test]
fn a_trace_says_which_events_it_lacks_and_how_they_are_recorded() {
    let trace = preemption().build();
    let check = |name: &str, expect: &[&str]| {
        let missing = named(name).kind.missing(trace.classes());
        let sets: Vec<&str> = missing.iter().map(|need| need.set).collect();
        assert_eq!(sets, expect, "{name}");
    };
    check("cputop", &[]);
    check("schedtop", &[]);
    check("irqstats", &["irq,softirq"]);
    check("memtop", &["mm"]);
    check("syscallstats", &["syscall"]);
    check("periodtop", &[]);
}

#[test]
fn each_period_is_a_window_of_every_report() {
    let mut options = periods(&[RUN], &[]);
    options.tids = vec![B.tid];
    let found = ticks(&preemption().build(), "schedlog", &options);
    // Three that end, and the one that is cut by the end of the trace.
    assert_eq!(found.len(), 4);
    // The switch to `b` opens the period in which it is counted.
    let counts: Vec<_> = found.iter().map(|tick| tick.tables[0].rows.len()).collect();
    assert_eq!(counts, [0, 1, 0, 0]);
}

#[test]
fn all_reports_can_be_asked_in_one_pass_and_of_a_trace_without_events() {
    // One of them is about several kernels, not about one.
    let of_one_host = |report: &Report| report.kind.name != "hosts";
    let reports = REPORTS.iter().map(|named| named.report);
    let reports: Vec<Report> = reports.filter(of_one_host).collect();
    let options = periods(&[RUN], &[]);
    let mut count = 0;
    for trace in [preemption().build(), SyntheticTrace::new().build()] {
        let pass = run_reports(&trace, &reports, &options, |_| {
            count += 1;
            Ok(())
        });
        assert!(pass.is_ok());
    }
    let of_periods = |report: &&Report| report.kind.name == "periods";
    let about_periods = reports.iter().filter(of_periods).count();
    assert_eq!(count, 4 * (reports.len() - about_periods) + about_periods);
}

#[test]
fn a_long_log_comes_in_parts_that_are_all_of_it() {
    let (a, b) = (Task::fair(7, "a"), Task::fair(8, "b"));
    let mut trace = SyntheticTrace::new().at(0).run(a);
    for turn in 0..12_500 {
        trace = trace.at(10 * turn + 1).wake(b).after(2).block(a, b);
        trace = trace.after(1).wake(a).after(3).block(b, a);
    }
    let trace = trace.build();
    let all = Report {
        kind: named("schedlog").kind,
        views: Views {
            log: true,
            top: true,
            stats: true,
            ..Views::default()
        },
    };
    let mut ticks: Vec<Tick> = Vec::new();
    run_reports(&trace, &[all], &ReportOptions::default(), |tick| {
        ticks.push(tick);
        Ok(())
    })
    .expect("a trace in memory can be walked");
    let name = |table: &Table| table.class.name;
    let names = |tick: &Tick| tick.tables.iter().map(name).collect::<Vec<_>>();
    let parts: Vec<_> = ticks
        .iter()
        .map(|tick| (tick.continues, tick.goes_on, names(tick)))
        .collect();
    let (head, tail) = (vec!["per_tid_stats", "log"], vec!["log", "top", "unknown"]);
    let expect = [
        (false, true, head),
        (true, true, vec!["log"]),
        (true, false, tail),
    ];
    assert_eq!(parts, expect);
    let of_log = |table: &&Table| table.class.name == "log";
    let log = |tick: &Tick| tick.tables.iter().find(of_log).expect("a log").rows.clone();
    let counts: Vec<_> = ticks.iter().map(|tick| log(tick).len()).collect();
    assert_eq!(counts, [10_000, 10_000, 5_000]);
    let starts = |tick: &Tick| log(tick).iter().map(|row| row[1].clone()).collect();
    let all: Vec<Vec<Cell>> = ticks.iter().map(starts).collect();
    assert!(all.concat().windows(2).all(|pair| match pair {
        [Cell::Time(one), Cell::Time(next)] => one < next,
        _ => false,
    }));
}

#[test]
fn a_task_that_events_show_had_the_cpu_up_to_the_last_of_them_and_unknown_is_the_rest() {
    let trace = SyntheticTrace::new()
        .at(0)
        .block(B, Task::IDLE)
        .at(5)
        .waking(A, 0)
        .wakeup(A, 0)
        .in_task(Some(A.tid))
        .at(10)
        .timer_irq()
        .at(11)
        .timer_irq_end()
        .at(50)
        .timer_irq()
        .at(51)
        .timer_irq_end()
        .in_task(None)
        .at(100)
        .cpu(1)
        .waking(B, 1)
        .build();
    let options = ReportOptions::default();
    let threads = rows(&trace, "cputop", &options, "per-process");
    assert_eq!(threads[0][3], Cell::Ratio(0.46), "{threads:?}");
    let unknown = rows(&trace, "cputop", &options, "unknown");
    assert_eq!(unknown[0][..2], [Cell::Cpu(0), Cell::Duration(49_000)]);
}
