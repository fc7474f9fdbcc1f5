//! Writes a kernel's trace that is as large as one likes, to measure `rtscope view` by: switches,
//! wake-ups, interrupts and system calls of 8 CPUs and 400 threads, 100 ns to some 20 µs apart.
//!
//! `cargo run --release -p timeline --example large_trace -- 10000000 FOLDER`

use std::path::Path;

use ctf::writer::{ClockMeta, HeaderKind, PayloadWriter, StreamMeta, TraceMeta, TraceWriter};
use event::{ClassId, Cpu, EventClass, Field, FieldType, Instant, Integer, Result};

const CPUS: u32 = 8;
const THREADS: u64 = 400;

fn class(name: &str, numbers_before: &[&str], texts: &[&str], numbers: &[&str]) -> EventClass {
    let number = |name: &&str| Field::payload(*name, FieldType::Integer(Integer::le(32, true)));
    let text = |name: &&str| Field::payload(*name, FieldType::String);
    let fields = numbers_before.iter().map(number);
    let fields = fields
        .chain(texts.iter().map(text))
        .chain(numbers.iter().map(number));
    EventClass {
        id: ClassId(0),
        name: name.to_owned(),
        stream: 0,
        fields: fields.collect(),
    }
}

fn classes() -> Vec<EventClass> {
    let switch = [
        "prev_tid",
        "prev_prio",
        "prev_state",
        "next_tid",
        "next_prio",
    ];
    vec![
        class("sched_switch", &[], &["prev_comm", "next_comm"], &switch),
        class(
            "sched_waking",
            &[],
            &["comm"],
            &["tid", "prio", "target_cpu"],
        ),
        class("irq_handler_entry", &["irq"], &["name"], &[]),
        class("irq_handler_exit", &[], &[], &["irq", "ret"]),
        class("syscall_entry_read", &[], &[], &["fd"]),
        class("syscall_exit_read", &[], &[], &["ret"]),
    ]
}

/// Numbers without a pattern, the same each time.
struct Mixed(u64);

impl Mixed {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % below
    }
}

/// The thread of this number; zero is the idle task.
fn task(number: u64) -> (String, i32) {
    match number {
        0 => ("swapper".to_owned(), 0),
        _ => (format!("worker-{}", number % 40), 1_000 + number as i32),
    }
}

/// A round on a CPU: an interrupt wakes a thread, which runs, reads and blocks.
fn round(
    out: &mut ctf::writer::StreamWriter,
    at: &mut i64,
    mixed: &mut Mixed,
    cpu: u32,
) -> Result<u64> {
    let mut payload = PayloadWriter::new();
    let (name, tid) = task(1 + u64::from(cpu) + u64::from(CPUS) * mixed.next(THREADS / 8));
    let mut step = |at: &mut i64, longest: u64| {
        *at += 100 + mixed.next(longest) as i64;
        Instant::from_ns(*at)
    };
    out.event(
        2,
        step(at, 20_000),
        payload.clear().i32(36).string("disk").bytes(),
    )?;
    let woken = payload
        .clear()
        .string(&name)
        .i32(tid)
        .i32(20)
        .i32(cpu as i32);
    out.event(1, step(at, 2_000), woken.bytes())?;
    out.event(3, step(at, 1_000), payload.clear().i32(36).i32(1).bytes())?;
    payload.clear().string("swapper").string(&name);
    out.event(
        0,
        step(at, 3_000),
        payload.i32(0).i32(20).i32(0).i32(tid).i32(20).bytes(),
    )?;
    out.event(4, step(at, 5_000), payload.clear().i32(3).bytes())?;
    out.event(5, step(at, 4_000), payload.clear().i32(64).bytes())?;
    payload.clear().string(&name).string("swapper");
    out.event(
        0,
        step(at, 20_000),
        payload.i32(tid).i32(20).i32(1).i32(0).i32(20).bytes(),
    )?;
    Ok(7)
}

fn write(folder: &Path, events: u64) -> Result<()> {
    let meta = TraceMeta {
        uuid: [9; 16],
        clocks: vec![ClockMeta::monotonic(1_700_000_000_000_000_000)],
        environment: vec![("hostname".to_owned(), "generated".into())],
        streams: vec![StreamMeta {
            name: "kernel".to_owned(),
            header: HeaderKind::Compact,
            classes: classes(),
            ..StreamMeta::default()
        }],
        ..TraceMeta::default()
    };
    let mut trace = TraceWriter::create(folder, &meta)?;
    for cpu in 0..CPUS {
        let mut stream = trace.stream(0, Cpu(cpu))?;
        let (mut at, mut written, mut mixed) = (1_000_000, 0, Mixed(u64::from(cpu)));
        while written < events / u64::from(CPUS) {
            written += round(&mut stream, &mut at, &mut mixed, cpu)?;
        }
        stream.finish()?;
    }
    Ok(())
}

fn main() -> std::result::Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [events, folder] = words.as_slice() else {
        return Err("usage: large_trace EVENTS FOLDER".to_owned());
    };
    let events = events.parse().map_err(|_| "not a number of events")?;
    write(Path::new(folder), events).map_err(|error| format!("{error:#}"))
}
