//! CTF traces behind the trace's face: what is opened, merged, lost, damaged and refused.

use std::fs;
use std::path::Path;

use ctf::writer::{ClockMeta, HeaderKind, PayloadWriter, StreamMeta, TraceMeta, TraceWriter};
use event::{
    ClassId, Clock, Cpu, ErrorKind, EventClass, Field, FieldType, Instant, Integer, TimeRange,
};
use trace::{Item, Trace};

/// A trace in `dir` with one class, `tick { value }`: CPUs with the times of their events. A time
/// after a negative count comes after that many lost events.
fn write(dir: &Path, wall_offset_ns: i64, domain: &str, cpus: &[(u32, &[i64])]) {
    let value = Field::payload("value", FieldType::Integer(Integer::le(64, true)));
    let comm = Field::payload("comm", FieldType::Text { size_bytes: 16 });
    let name = format!("{domain}_tick");
    let class = EventClass {
        id: ClassId(0),
        name,
        stream: 0,
        fields: vec![value, comm],
    };
    let meta = TraceMeta {
        environment: vec![
            ("hostname".to_owned(), "vm".into()),
            ("domain".to_owned(), domain.into()),
        ],
        uuid: [1; 16],
        clock: ClockMeta::monotonic(wall_offset_ns),
        streams: vec![StreamMeta {
            name: "channel0".to_owned(),
            header: HeaderKind::Large,
            classes: vec![class],
            event_context: Vec::new(),
        }],
    };
    let mut trace = TraceWriter::create(dir, &meta).unwrap();
    for (cpu, times) in cpus {
        let mut stream = trace.stream(0, Cpu(*cpu)).unwrap();
        let mut lost = 0;
        for time in *times {
            if *time < 0 {
                lost += time.unsigned_abs();
                stream.discarded(lost).unwrap();
                continue;
            }
            let mut payload = PayloadWriter::new();
            payload.i64(time * 10).text16("hog");
            stream
                .event(0, Instant::from_ns(*time), payload.bytes())
                .unwrap();
        }
        stream.finish().unwrap();
    }
}

/// Every item inside of the range, a word each: `cpu@time`, `lost COUNT BEGIN-END`, `damage FILE`.
fn walk(trace: &Trace, range: TimeRange) -> Vec<String> {
    let mut cursor = trace.cursor(range);
    let mut words = Vec::new();
    while let Some(item) = cursor.next().unwrap() {
        words.push(match item {
            Item::Event(event) => {
                let class = &trace.classes()[event.class().0 as usize];
                assert_eq!(event.i64(class.field("value").unwrap()) % 10, 0);
                assert_eq!(event.text(class.field("comm").unwrap()), b"hog");
                format!("{}@{}", event.cpu().unwrap().0, event.time().as_ns())
            }
            Item::Lost(lost) => {
                let (begin, end) = (lost.range.begin.as_ns(), lost.range.end.as_ns());
                format!("lost {} {begin}-{end}", lost.count.unwrap())
            }
            Item::Damage(damage) => format!("damage {}", damage.file),
        });
    }
    words
}

fn range(begin: i64, end: i64) -> TimeRange {
    TimeRange {
        begin: Instant::from_ns(begin),
        end: Instant::from_ns(end),
    }
}

#[test]
fn streams_are_merged_by_time_and_equal_times_keep_their_streams_order() {
    let root = tempfile::tempdir().unwrap();
    write(
        &root.path().join("kernel"),
        100,
        "kernel",
        &[(0, &[1, 5, 5, 9]), (1, &[2, 5, 7])],
    );
    let trace = Trace::open(root.path()).unwrap();
    let expect = ["0@1", "1@2", "0@5", "0@5", "1@5", "1@7", "0@9"];
    assert_eq!(walk(&trace, TimeRange::ALL), expect);
    assert_eq!(walk(&trace, range(5, 9)), ["0@5", "0@5", "1@5", "1@7"]);
    assert_eq!(walk(&trace, range(10, 20)), [""; 0]);
    assert_eq!(trace.info().clock, Clock::Monotonic);
    assert_eq!(trace.info().wall_offset.as_ns(), 100);
    assert_eq!(trace.info().cpus, [Cpu(0), Cpu(1)]);
    assert_eq!(trace.info().environment["hostname"], "vm");
    assert!(trace.symbols().is_empty());
}

#[test]
fn a_loss_stands_between_the_events_around_it() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        0,
        "kernel",
        &[(0, &[1, -3, 8]), (1, &[2, 7, -4])],
    );
    let trace = Trace::open(root.path()).unwrap();
    assert_eq!(
        walk(&trace, TimeRange::ALL),
        ["0@1", "1@2", "1@7", "lost 4 7-7", "lost 3 1-8", "0@8"]
    );
    assert_eq!(walk(&trace, range(8, 9)), ["lost 3 1-8", "0@8"]);
}

#[test]
fn a_loss_before_the_first_event_is_a_loss_too() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 0, "kernel", &[(0, &[-3, 8])]);
    let trace = Trace::open(root.path()).unwrap();
    assert_eq!(walk(&trace, TimeRange::ALL), ["lost 3 8-8", "0@8"]);
}

#[test]
fn traces_below_one_root_are_one_trace_on_the_kernels_clock() {
    let root = tempfile::tempdir().unwrap();
    write(&root.path().join("app/ust"), 1_003, "ust", &[(0, &[1, 3])]);
    write(&root.path().join("kernel"), 1_000, "kernel", &[(0, &[5])]);
    fs::create_dir(root.path().join("rtscope")).unwrap();
    let kallsyms = "ffffffff81000000 T do_idle\n";
    fs::write(root.path().join("rtscope/kallsyms"), kallsyms).unwrap();
    let trace = Trace::open(root.path()).unwrap();
    assert_eq!(walk(&trace, TimeRange::ALL), ["0@4", "0@5", "0@6"]);
    assert_eq!(trace.info().environment["domain"], "kernel");
    let names: Vec<_> = trace
        .classes()
        .iter()
        .map(|class| class.name.as_str())
        .collect();
    assert_eq!(names, ["kernel_tick", "ust_tick"]);
    let domain = |class| trace.environment_of(ClassId(class))["domain"].as_str();
    assert_eq!((domain(0), domain(1)), ("kernel", "ust"));
    let found = Some(("do_idle", 4));
    assert_eq!(trace.symbols().lookup(0xffff_ffff_8100_0004), found);
    let kernel = Trace::open(root.path().join("kernel")).unwrap();
    assert_eq!(kernel.symbols().lookup(0xffff_ffff_8100_0004), found);
}

#[test]
fn a_cut_stream_gives_its_whole_events_then_names_its_file() {
    let root = tempfile::tempdir().unwrap();
    write(
        &root.path().join("kernel"),
        0,
        "kernel",
        &[(0, &[1, 5]), (1, &[2, 9])],
    );
    let path = root.path().join("kernel/channel0_0");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let trace = Trace::open(root.path()).unwrap();
    assert_eq!(
        walk(&trace, TimeRange::ALL),
        ["0@1", "damage kernel/channel0_0", "1@2", "1@9"]
    );
}

#[test]
fn what_is_no_trace_is_refused_in_three_parts() {
    let root = tempfile::tempdir().unwrap();
    let check = |name: &str, kind: ErrorKind, found: &str| {
        let Err(error) = Trace::open(root.path().join(name)) else {
            panic!("{name} was opened")
        };
        assert_eq!(error.kind(), kind, "{name}: {error:#}");
        assert!(
            error.value_found().is_some_and(|text| text.contains(found)),
            "{error:#}"
        );
        assert!(error.mended_by().is_some(), "{error:#}");
    };
    for name in ["empty", "other/below", "cut", "metadata_of_none"] {
        fs::create_dir_all(root.path().join(name)).unwrap();
    }
    fs::write(root.path().join("file"), "x").unwrap();
    fs::write(
        root.path().join("cut/metadata"),
        "/* CTF 1.8 */ trace { major = 1;",
    )
    .unwrap();
    fs::write(root.path().join("metadata_of_none/metadata"), "").unwrap();
    check("nowhere", ErrorKind::NotFound, "No such file");
    check("empty", ErrorKind::NotFound, "an empty directory");
    check("other", ErrorKind::NotFound, "none named 'metadata'");
    check("file", ErrorKind::NotFound, "a file");
    check("cut", ErrorKind::Corrupt, "line 1: the end of the text");
    check("metadata_of_none", ErrorKind::Corrupt, "0 bytes");
}
