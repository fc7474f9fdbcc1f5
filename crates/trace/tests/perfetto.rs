//! Traces of Perfetto, written by Perfetto's own Python package (`fuzz/seeds/write_perfetto.py`).

use std::path::{Path, PathBuf};

use event::{Cpu, TimeRange};
use trace::{Item, LossCause, Trace};

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(name)
}

/// Each event as a line: time after the first, CPU, name and payload; losses as they are.
fn lines(trace: &Trace) -> Vec<String> {
    let begin = trace.range().expect("events").begin;
    let mut lines = Vec::new();
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("readable") {
        match item {
            Item::Event(event) => {
                let class = &trace.classes()[event.class().0 as usize];
                let payload = class.fields.iter();
                let payload = payload.filter(|field| field.scope == event::Scope::Payload);
                let payload: Vec<_> = payload
                    .map(|field| {
                        let id = class.field_in(event::Scope::Payload, &field.name);
                        match event.value(id.expect("its own field")) {
                            event::Value::Text(text) => format!("{}={text}", field.name),
                            other => format!("{}={}", field.name, other.as_i64().unwrap_or(0)),
                        }
                    })
                    .collect();
                let after_us = (event.time() - begin).as_ns() / 1000;
                let cpu = event.cpu().map_or(u32::MAX, |cpu| cpu.0);
                lines.push(format!(
                    "{after_us} {cpu} {} {}",
                    class.name,
                    payload.join(" ")
                ));
            }
            Item::Lost(lost) => lines.push(format!("{:?} {:?}", lost.cpu, lost.cause)),
            Item::Damage(damage) => lines.push(format!("damage at {}", damage.offset_bytes)),
        }
    }
    lines
}

const EXPECT: &[&str] = &[
    "0 1 sched_switch prev_comm=swapper/1 prev_tid=0 prev_prio=20 prev_state=0 next_comm=hog \
     next_tid=700 next_prio=-61",
    "240 0 sched_waking comm=player tid=500 prio=-81 target_cpu=0",
    "310 0 sched_switch prev_comm=swapper/0 prev_tid=0 prev_prio=20 prev_state=0 \
     next_comm=player next_tid=500 next_prio=-81",
    "510 0 sched_switch prev_comm=player prev_tid=500 prev_prio=-81 prev_state=1 \
     next_comm=swapper/0 next_tid=0 next_prio=20",
    "990 1 irq_handler_entry irq=24 name=snd",
    "992 1 sched_waking comm=ctrl tid=600 prio=-51 target_cpu=1",
    "995 1 irq_handler_exit irq=24 ret=1",
    "1990 1 own_mark depth=3 change=-4",
    "Some(Cpu(0)) Unknown",
    "8990 0 power_cpu_idle state=1 cpu_id=0",
    "9992 1 sched_switch prev_comm=hog prev_tid=700 prev_prio=-61 prev_state=1 next_comm=ctrl \
     next_tid=600 next_prio=-51",
    "10490 1 sched_switch prev_comm=ctrl prev_tid=600 prev_prio=-51 prev_state=1 \
     next_comm=swapper/1 next_tid=0 next_prio=20",
];

#[test]
fn bundles_compact_ones_and_generic_events_have_lttngs_names_and_values() {
    for name in ["perfetto.pftrace", "perfetto-compressed.pftrace"] {
        let trace = Trace::open(seed(name)).expect("a trace");
        let mut found = lines(&trace);
        found.sort_by_key(|line| line.split(' ').next().and_then(|us| us.parse::<i64>().ok()));
        let mut expect = EXPECT.to_vec();
        expect.sort_by_key(|line| line.split(' ').next().and_then(|us| us.parse::<i64>().ok()));
        assert_eq!(found, expect, "{name}");
    }
}

#[test]
fn the_kernel_its_clock_and_the_wall_clock_are_known() {
    let trace = Trace::open(seed("perfetto.pftrace")).expect("a trace");
    let info = trace.info();
    let fact = |name: &str| info.environment.get(name).map(String::as_str);
    assert_eq!(fact("kernel_release"), Some("6.6.1-example"));
    assert_eq!(fact("trace_clock"), Some("boot"));
    assert_eq!(info.cpus, [Cpu(0), Cpu(1)]);
    let begin = trace.range().expect("events").begin;
    assert_eq!(trace.wall_ns(begin), 1_795_165_638_000_010_000);
}

#[test]
fn wherever_a_trace_is_cut_what_is_gone_is_a_loss() {
    let whole = std::fs::read(seed("perfetto.pftrace")).expect("the seed");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cut");
    let all = lines(&Trace::open(seed("perfetto.pftrace")).expect("a trace"));
    let is_event = |line: &&String| !line.starts_with("Some(") && !line.starts_with("damage");
    let events = all.iter().filter(is_event).count();
    let mut opened = 0;
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).expect("written");
        let Ok(trace) = Trace::open(&path) else {
            continue;
        };
        opened += 1;
        let mut cursor = trace.cursor(TimeRange::ALL);
        let (mut count, mut is_cut) = (0, false);
        while let Some(item) = cursor.next().expect("readable") {
            match item {
                Item::Event(_) => count += 1,
                Item::Lost(lost) => is_cut |= lost.cause == LossCause::Cut,
                Item::Damage(_) => {}
            }
        }
        // Between two packets nobody can tell.
        let is_between = trace.range().is_some() && !is_cut;
        assert!(
            count == events || is_cut || is_between && ends_a_packet(&whole, length),
            "{length}"
        );
    }
    assert!(opened > 100, "{opened}");
}

/// Whether a packet ends after so many bytes.
fn ends_a_packet(whole: &[u8], length: usize) -> bool {
    let mut at = 0;
    while at < length {
        let (mut size, mut place) = (0usize, at + 1);
        loop {
            let byte = whole[place];
            size |= usize::from(byte & 0x7f) << (7 * (place - at - 1));
            place += 1;
            if byte & 0x80 == 0 {
                break;
            }
        }
        at = place + size;
    }
    at == length
}

#[test]
fn a_byte_that_is_overwritten_is_no_panic_and_no_endless_walk() {
    let whole = std::fs::read(seed("perfetto.pftrace")).expect("the seed");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged");
    for place in 0..whole.len() {
        for byte in [0, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[place] = byte;
            std::fs::write(&path, &bytes).expect("written");
            if let Ok(trace) = Trace::open(&path) {
                assert!(lines_count(&trace) < 1000, "{place} {byte}");
            }
        }
    }
}

fn lines_count(trace: &Trace) -> usize {
    let mut cursor = trace.cursor(TimeRange::ALL);
    let mut count = 0;
    while cursor.next().expect("readable").is_some() {
        count += 1;
    }
    count
}
