//! ftrace's text in its forms: events with LTTng's names and typed fields, messages kept.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use event::{Instant, TimeRange};
use trace::{Item, Trace};

const TRACE: &str = "\
# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0       [000] d.h1.     8.910849: irq_handler_entry: irq=24 name=snd:card0
          <idle>-0       [000] d..2.     8.911233: sched_switch: prev_comm=swapper/0 prev_pid=0 \
prev_prio=120 prev_state=R ==> next_comm=my task next_pid=172 next_prio=49
         my task-172     [000] .....     8.911300: tracing_mark_write: hello = world
 CPU:1 [LOST 12 EVENTS]
            init-1       [001] .....     8.912000: kernel_stack: <stack trace>
 => do_syscall_64
 => entry_SYSCALL_64_after_hwframe
";

fn open(dir: &Path, text: &str) -> event::Result<Trace> {
    let path = dir.join("some-text");
    std::fs::write(&path, text).expect("a file");
    Trace::open(path)
}

/// Each item as a line: time, CPU, task, name and payload.
fn lines(trace: &Trace) -> Vec<String> {
    let mut lines = Vec::new();
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("readable") {
        lines.push(match item {
            Item::Event(event) => {
                let class = &trace.classes()[event.class().0 as usize];
                let payload = class
                    .fields
                    .iter()
                    .filter(|f| f.scope == event::Scope::Payload);
                let values: Vec<String> = payload
                    .map(|field| {
                        let id = class.field(&field.name).expect("its own field");
                        format!("{}={:?}", field.name, event.value(id))
                    })
                    .collect();
                let tid = event.i64(class.field("tid").expect("a task"));
                let cpu = event.cpu().map_or(-1, |cpu| i64::from(cpu.0));
                let time_ns = event.time().as_ns();
                format!("{time_ns} {cpu} {tid} {} {}", class.name, values.join(" "))
            }
            other => format!("{other:?}"),
        });
    }
    lines
}

#[test]
fn a_text_becomes_events_with_typed_fields_and_losses_at_their_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let trace = open(dir.path(), TRACE).expect("a text");
    let found = lines(&trace);
    let expect = [
        "8910849000 0 0 irq_handler_entry irq=Signed(24) name=Text(\"snd:card0\")",
        "8911233000 0 0 sched_switch prev_comm=Text(\"swapper/0\") prev_tid=Signed(0) \
         prev_prio=Signed(20) prev_state=Signed(0) next_comm=Text(\"my task\") \
         next_tid=Signed(172) next_prio=Signed(-51)",
        "8911300000 0 172 tracing_mark_write msg=Text(\"hello = world\")",
        "Lost(Lost { cpu: Some(Cpu(1)), range: TimeRange { begin: Instant(8910849000), \
         end: Instant(8912000000) }, count: Some(12), cause: Unknown, from: Recording })",
        "8912000000 1 1 kernel_stack msg=Text(\"<stack trace>\")",
    ];
    assert_eq!(found, expect);
    let part = &trace.parts()[0];
    assert_eq!((part.format, trace.info().cpus.len()), ("ftrace text", 2));
    assert_eq!(
        trace.range().map(|range| range.begin.as_ns()),
        Some(8_910_849_000)
    );
}

/// The losses that a text tells: of which CPU, from when to when.
fn losses(text: &str) -> Vec<(Option<u32>, i64, i64)> {
    let dir = tempfile::tempdir().expect("a directory");
    let trace = open(dir.path(), text).expect("a text");
    let mut losses = Vec::new();
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("readable") {
        if let Item::Lost(lost) = item {
            let TimeRange { begin, end } = lost.range;
            losses.push((lost.cpu.map(|cpu| cpu.0), begin.as_ns(), end.as_ns()));
        }
    }
    losses
}

#[test]
fn losses_of_several_cpus_between_two_events_are_all_told() {
    let init = "            init-1       [001] .....     8.912000: kernel_stack: <stack trace>\n";
    let text = TRACE.replace(init, &format!(" CPU:0 [LOST 3 EVENTS]\n{init}"));
    let both = [
        (Some(1), 8_910_849_000, 8_912_000_000),
        (Some(0), 8_911_300_000, 8_912_000_000),
    ];
    assert_eq!(losses(&text), both);
}

#[test]
fn texts_of_cpus_behind_each_other_leave_what_is_in_both_unknown() {
    let line = |cpu: u32, at: &str| {
        format!("            init-1       [{cpu:03}] .....     {at}: kernel_stack: <stack trace>\n")
    };
    let text = |second: &str| {
        let lines = [line(0, "8.100000"), line(0, "8.900000"), line(1, second)];
        format!("# tracer: nop\n#\n{}", lines.concat())
    };
    assert_eq!(
        losses(&text("8.100000")),
        [(None, 8_100_000_000, 8_900_000_000)]
    );
    // Lines change places by a little.
    assert_eq!(losses(&text("8.899500")), []);
}

#[test]
fn pages_of_systrace_hold_the_same_events() {
    let dir = tempfile::tempdir().expect("a directory");
    let plain = lines(&open(dir.path(), TRACE).expect("a text"));
    let new = format!(
        "<!DOCTYPE html>\n<html><script>var x = '[0]';</script>\n\
         <script class=\"trace-data\" type=\"application/text\">\n{TRACE}</script></html>\n"
    );
    assert_eq!(lines(&open(dir.path(), &new).expect("a page")), plain);
    let old = format!(
        "<html><script>var linuxPerfData = \"\\\n{}\";</script></html>\n",
        TRACE.replace('\n', "\\n\\\n")
    );
    assert_eq!(lines(&open(dir.path(), &old).expect("a page")), plain);
}

#[test]
fn a_text_without_events_is_refused_by_what_is_in_it() {
    let dir = tempfile::tempdir().expect("a directory");
    for text in ["# tracer: nop\n#\n", "<html></html>", "hello\n", ""] {
        let error = open(dir.path(), text).err().expect("no trace");
        assert_eq!(
            error.kind(),
            event::ErrorKind::NotFound,
            "{text}: {error:#}"
        );
    }
}

#[test]
fn a_walk_over_a_text_that_is_asked_to_stop_ends_also_where_it_hands_out_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let line = |ms: u32, what: &str| {
        let (s, ms) = (ms / 1000, ms % 1000);
        format!("  init-1       [000] .....  {s:4}.{ms:03}000: tracing_mark_write: {what}\n")
    };
    let mut text = String::from("# tracer: nop\n#\n");
    text.extend((0..20_000).map(|ms| line(ms, "hello = world")));
    text += &line(20_000, "the end");
    let mut trace = open(dir.path(), &text).expect("a text");
    let stop = Arc::new(AtomicBool::new(false));
    trace.stop_when(&stop);
    let late = TimeRange {
        begin: Instant::from_ns(20_000_000_000),
        end: Instant::MAX,
    };
    let count = || {
        let mut items = 0;
        let mut cursor = trace.cursor(late);
        while cursor.next().expect("readable").is_some() {
            items += 1;
        }
        items
    };
    assert_eq!(count(), 1);
    stop.store(true, Ordering::Relaxed);
    assert_eq!(count(), 0);
}

#[test]
fn what_perf_script_prints_is_read_as_ftraces_text_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let perf = "\
         swapper     0 [001]    10.000000:       sched:sched_waking: comm=hog pid=700 prio=19 \
target_cpu=001\n\
\tffffffff8120 try_to_wake_up+0x3b ([kernel.kallsyms])\n\n\
         my task   690/700 [001]    10.000020:  1 sched:sched_switch: prev_comm=my task \
prev_pid=700 prev_prio=19 prev_state=S ==> next_comm=burn next_pid=500 next_prio=120\n";
    let found = lines(&open(dir.path(), perf).expect("a text"));
    let expect = [
        "10000000000 1 700 sched_waking comm=Text(\"hog\") tid=Signed(700) prio=Signed(-81) \
         target_cpu=Signed(1)",
        "10000020000 1 700 sched_switch prev_comm=Text(\"my task\") prev_tid=Signed(700) \
         prev_prio=Signed(-81) prev_state=Signed(1) next_comm=Text(\"burn\") \
         next_tid=Signed(500) next_prio=Signed(20)",
    ];
    assert_eq!(found, expect);
}

#[test]
fn letters_before_the_time_are_the_flags_of_the_record() {
    let dir = tempfile::tempdir().expect("a directory");
    let trace = open(dir.path(), TRACE).expect("a text");
    let mut cursor = trace.cursor(TimeRange::ALL);
    let Some(Item::Event(event)) = cursor.next().expect("readable") else {
        panic!("an event");
    };
    let class = &trace.classes()[event.class().0 as usize];
    let number = |name: &str| event.u64(class.field(name).expect("a flag"));
    assert_eq!(
        number("common_flags"),
        0x09,
        "interrupts off, in a hard interrupt"
    );
    assert_eq!(number("common_preempt_count"), 1);
}
