//! What the writer writes, read by babeltrace2: no warning but for losses, and every value there.
//! Skipped, and said so, where babeltrace2 is not installed.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use ctf::writer::{
    ClockMeta, HeaderKind, PayloadWriter, StreamMeta, TraceMeta, TraceWriter, random_uuid,
};
use event::{
    ClassId, Cpu, ErrorKind, EventClass, Field, FieldType, Instant, Integer, IntegerMapping,
};

fn class(name: &str, fields: Vec<Field>) -> EventClass {
    EventClass {
        id: ClassId(0),
        name: name.to_owned(),
        stream: 0,
        fields: fields.into(),
    }
}

fn meta(header: HeaderKind) -> TraceMeta {
    let comm = FieldType::Text { size_bytes: 16 };
    let i32 = FieldType::Integer(Integer::le(32, true));
    let u32 = FieldType::Integer(Integer::le(32, false));
    let labels =
        [("switch_in", 0, 0), ("waiting", 3, 5)].map(|(label, first, last)| IntegerMapping {
            label: label.to_owned(),
            first,
            last,
        });
    let kind = FieldType::Enum(Integer::le(8, false), Arc::from(labels));
    let frame: Arc<[Field]> = Arc::from([
        Field::payload("address", FieldType::Integer(Integer::hex(64))),
        Field::payload("symbol", FieldType::String),
    ]);
    let stack = FieldType::Sequence {
        element: Arc::new(FieldType::Struct(frame)),
        length: "stack_length".to_owned(),
    };
    let waking = vec![
        Field::payload("comm", comm),
        Field::payload("tid", i32.clone()),
        Field::payload("_vtid", i32.clone()),
    ];
    let hit = vec![
        Field::payload("kind", kind),
        Field::payload("stack_length", u32),
        Field::payload("stack", stack),
    ];
    TraceMeta {
        environment: vec![
            ("hostname".to_owned(), "vm".into()),
            ("domain".to_owned(), "kernel".into()),
            ("tracer_name".to_owned(), "lttng-modules".into()),
            ("tracer_major".to_owned(), 2.into()),
            (
                "kernel_version".to_owned(),
                "#1 \"SMP\" \\ PREEMPT_RT".into(),
            ),
        ],
        uuid: random_uuid().unwrap(),
        clocks: vec![ClockMeta::monotonic(1_000_000_000_000_000_000)],
        streams: vec![StreamMeta {
            name: "channel0".to_owned(),
            header,
            classes: vec![class("sched_waking", waking), class("rtscope_hit", hit)],
            event_context: vec![Field::payload("prio", i32)],
            ..StreamMeta::default()
        }],
        ..TraceMeta::default()
    }
}

/// A trace with a loss of 7 events, a jump in time over every timestamp's width, and both classes.
fn write(dir: &Path, header: HeaderKind) {
    let mut trace = TraceWriter::create(dir, &meta(header)).unwrap();
    let mut stream = trace.stream(0, Cpu(3)).unwrap();
    let mut payload = PayloadWriter::new();
    let at = |ns| Instant::from_ns(ns);
    payload.i32(-61).text16("irq/24-snd").i32(77).i32(1);
    stream.event(0, at(5_000_000_000), payload.bytes()).unwrap();
    stream.gap().unwrap();
    stream.discarded(7).unwrap();
    payload
        .clear()
        .i32(20)
        .u8(4)
        .sequence(&[0xffff_ffff_8100_0000u64, 16], |out, address| {
            out.u64(*address).string("do_work+0x10");
        });
    stream.event(1, at(5_000_000_001), payload.bytes()).unwrap();
    stream.event(1, at(5_000_000_001), payload.bytes()).unwrap();
    stream
        .event(1, at(90_000_000_000), payload.bytes())
        .unwrap();
    let backwards = stream
        .event(1, at(89_999_999_999), payload.bytes())
        .unwrap_err();
    assert_eq!(backwards.kind(), ErrorKind::InvalidInput);
    let totals = stream.finish().unwrap();
    assert_eq!((totals.events, totals.discarded, totals.packets), (4, 7, 2));
    let idle = trace.stream(0, Cpu(0)).unwrap();
    assert_eq!(idle.finish().unwrap().packets, 0);
}

/// stdout and stderr of babeltrace2, or none when it is not installed.
fn babeltrace2(dir: &Path) -> Option<(String, String)> {
    let arguments = ["--clock-seconds", "--names=all"];
    let output = match Command::new("babeltrace2")
        .args(arguments)
        .arg(dir)
        .output()
    {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: babeltrace2 is not installed");
            return None;
        }
        output => output.unwrap(),
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Some((text(output.stdout), text(output.stderr)))
}

fn check(header: HeaderKind) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("kernel");
    write(&dir, header);
    let Some((stdout, stderr)) = babeltrace2(&dir) else {
        return;
    };
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{stdout}\n{stderr}");
    for part in [
        "1000000005.000000000",
        "prio = -61",
        "\"irq/24-snd\"",
        "_vtid = 1",
        "tid = 77",
    ] {
        assert!(lines[0].contains(part), "{part} is not in {}", lines[0]);
    }
    for part in [
        "1000000090.000000000",
        "kind = ( \"waiting\" : container = 4 )",
        "do_work+0x10",
    ] {
        assert!(lines[3].contains(part), "{part} is not in {}", lines[3]);
    }
    assert!(
        lines[3].contains("address = 0xFFFFFFFF81000000"),
        "{}",
        lines[3]
    );
    let warnings: Vec<&str> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    assert_eq!(warnings.len(), 1, "{stderr}");
    assert!(
        warnings[0].contains("Tracer discarded 7 events"),
        "{stderr}"
    );
}

#[test]
fn babeltrace2_reads_a_trace_with_large_headers_and_counts_its_loss() {
    check(HeaderKind::Large);
}

#[test]
fn babeltrace2_reads_a_trace_with_compact_headers_and_counts_its_loss() {
    check(HeaderKind::Compact);
}
