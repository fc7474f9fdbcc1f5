//! CTF traces behind the trace's face: what is opened, merged, lost, damaged and refused.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ctf::writer::{PayloadWriter, TraceMeta, TraceWriter};
use event::{
    ClassId, Clock, Cpu, Duration, ErrorKind, EventClass, Field, FieldType, Instant, Integer,
    TimeRange,
};
use testkit::{event_class, one_stream_class};
use trace::{Item, OpenOptions, Root, Trace};

/// A trace in `dir` with one class, `tick { value }`: CPUs with the times of their events. A time
/// after a negative count comes after that many lost events.
fn write(dir: &Path, wall_offset_ns: i64, domain: &str, cpus: &[(u32, &[i64])]) {
    let value = Field::payload("value", FieldType::Integer(Integer::le(64, true)));
    let comm = Field::payload("comm", FieldType::Text { size_bytes: 16 });
    let class = event_class(0, &format!("{domain}_tick"), vec![value, comm]);
    let meta = TraceMeta {
        environment: vec![
            ("hostname".to_owned(), "vm".into()),
            ("domain".to_owned(), domain.into()),
        ],
        ..one_stream_class(vec![class], wall_offset_ns)
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
    assert!(cursor.event().is_none(), "nothing was handed out yet");
    while let Some(item) = cursor.next().unwrap() {
        let is_event = matches!(item, Item::Event(_));
        words.push(match item {
            Item::Event(event) => {
                let class = &trace.classes()[event.class().0 as usize];
                assert_eq!(event.i64(class.field("value").unwrap()) % 10, 0);
                assert_eq!(event.text(class.field("comm").unwrap()), b"hog");
                format!("{}@{}", event.cpu().unwrap().0, event.time().as_ns())
            }
            Item::Lost(lost) => {
                let (begin, end) = (lost.range.begin.as_ns(), lost.range.end.as_ns());
                match lost.count {
                    Some(count) => format!("lost {count} {begin}-{end}"),
                    None => format!("{:?} {begin}-{end}", lost.cause),
                }
            }
            Item::Damage(damage) => format!("damage {}", damage.file),
        });
        let again = cursor.event().map(|event| {
            let cpu = event.cpu().unwrap().0;
            format!("{cpu}@{}", event.time().as_ns())
        });
        assert_eq!(again.as_ref(), is_event.then_some(words.last()).flatten());
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
fn equal_times_are_in_the_order_of_stream_ids_whatever_the_files_are_called() {
    let root = tempfile::tempdir().unwrap();
    let cpus: [(u32, &[i64]); 3] = [(10, &[1, 5]), (2, &[5]), (0, &[5, 6])];
    write(root.path(), 0, "kernel", &cpus);
    let trace = Trace::open(root.path()).unwrap();
    let expect = ["10@1", "0@5", "2@5", "10@5", "0@6"];
    assert_eq!(walk(&trace, TimeRange::ALL), expect);
}

#[test]
fn a_loss_stands_at_its_begin() {
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
        ["0@1", "lost 3 1-8", "1@2", "1@7", "lost 4 7-7", "0@8"]
    );
    assert_eq!(walk(&trace, range(8, 9)), ["lost 3 1-8", "0@8"]);
}

#[test]
fn losses_are_told_also_where_no_event_is_wanted() {
    let root = tempfile::tempdir().unwrap();
    let cpus: [(u32, &[i64]); 2] = [(0, &[1, -3, 8]), (1, &[2, 7, -4])];
    write(root.path(), 0, "kernel", &cpus);
    let trace = Trace::open(root.path()).unwrap();
    let check = |range, expect: &[&str]| {
        let mut cursor = trace.cursor_of(range, |_| false);
        let mut losses = Vec::new();
        while let Some(item) = cursor.next().unwrap() {
            let Item::Lost(lost) = item else {
                panic!("{item:?}");
            };
            losses.push(format!(
                "{}-{}",
                lost.range.begin.as_ns(),
                lost.range.end.as_ns()
            ));
        }
        assert_eq!(losses, expect);
    };
    check(TimeRange::ALL, &["1-8", "7-7"]);
    check(range(8, 9), &["1-8"]);
    check(range(1, 5), &[]);
}

#[test]
fn a_walk_that_is_asked_to_stop_ends_also_where_it_hands_out_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut times: Vec<i64> = (0..100_000).collect();
    // The loss stands at the end, where only a walk comes that did not stop.
    times.extend([-3, 100_000]);
    write(root.path(), 0, "kernel", &[(0, &times), (1, &times)]);
    let mut trace = Trace::open(root.path()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    trace.stop_when(&stop);
    let count = |range, is_wanted, raised_after: usize| {
        stop.store(raised_after == 0, Ordering::Relaxed);
        let mut cursor = trace.cursor_of(range, |_| is_wanted);
        let mut items = 0;
        while cursor.next().unwrap().is_some() {
            items += 1;
            stop.fetch_or(items == raised_after, Ordering::Relaxed);
        }
        items
    };
    let late = range(99_990, i64::MAX);
    assert_eq!(count(TimeRange::ALL, true, usize::MAX), 200_004);
    assert_eq!(count(TimeRange::ALL, false, usize::MAX), 2);
    assert_eq!(count(late, true, usize::MAX), 24);
    for is_wanted in [true, false] {
        assert_eq!(count(TimeRange::ALL, is_wanted, 0), 0);
        assert_eq!(count(late, is_wanted, 0), 0);
    }
    let after_one = count(TimeRange::ALL, true, 1);
    assert!((1..200_004).contains(&after_one), "{after_one}");
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
        ["0@1", "damage kernel/channel0_0", "Cut 1-10", "1@2", "1@9"]
    );
}

#[test]
fn the_time_that_all_streams_share_is_cut_out_when_asked() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        0,
        "kernel",
        &[(0, &[1, 5, 9]), (1, &[4, 5, 7])],
    );
    let options = OpenOptions {
        intersection: true,
        ..OpenOptions::default()
    };
    let shared = Trace::open_with(root.path(), &options).unwrap();
    assert_eq!(walk(&shared, TimeRange::ALL), ["1@4", "0@5", "1@5", "1@7"]);
    assert_eq!(walk(&shared, range(5, 6)), ["0@5", "1@5"]);
    assert_eq!(shared.range(), Some(range(4, 8)));
    assert_eq!(
        Trace::open(root.path()).unwrap().range(),
        Some(range(1, 10))
    );
    let apart = tempfile::tempdir().unwrap();
    write(apart.path(), 0, "kernel", &[(0, &[1, 2]), (1, &[4, 5])]);
    let shared = Trace::open_with(apart.path(), &options).unwrap();
    assert_eq!(walk(&shared, TimeRange::ALL), [""; 0]);
}

#[test]
fn traces_opened_together_lie_beside_each_other_by_their_wall_clocks() {
    let root = tempfile::tempdir().unwrap();
    let (one, two) = (root.path().join("one"), root.path().join("two"));
    write(&one, 1_000, "kernel", &[(0, &[5, 9])]);
    write(&two, 1_002, "kernel", &[(1, &[4, 6])]);
    let options = OpenOptions {
        clock_offset: Duration::from_ns(50),
        ..OpenOptions::default()
    };
    let check = |offset_ns, expect: &[&str]| {
        let mut second = Root::from(&two);
        second.clock_offset = Duration::from_ns(offset_ns);
        let trace = Trace::open_all(&[Root::from(&one), second], &options).unwrap();
        assert_eq!(walk(&trace, TimeRange::ALL), expect);
        assert_eq!(trace.wall_ns(Instant::from_ns(5)), 1_055);
    };
    // CPU 1 has no recording any more at 9.
    check(0, &["0@5", "1@6", "1@8", "Silent 9-10", "0@9"]);
    // By their own clocks both ran then: only CPU 0 has no recording from 10 on.
    let apart = ["0@5", "0@9", "Silent 10-19", "1@16", "1@18"];
    check(10, &apart);
    let none = Trace::open_all(&[], &options).map(|_| ());
    assert_eq!(none.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn packets_that_go_back_in_time_are_put_in_order_and_counted() {
    let root = tempfile::tempdir().unwrap();
    let times: [&[i64]; 4] = [&[10, 20], &[1, 12], &[21, 30], &[2, 3]];
    let cpus: Vec<(u32, &[i64])> = (0..).zip(times).collect();
    write(root.path(), 0, "kernel", &cpus);
    let mut all = Vec::new();
    for cpu in 0..4 {
        let path = root.path().join(format!("channel0_{cpu}"));
        all.extend(fs::read(&path).unwrap());
        fs::remove_file(path).unwrap();
    }
    fs::write(root.path().join("channel0_0"), all).unwrap();
    // An index without its stream says that this is missing.
    fs::remove_dir_all(root.path().join("index")).unwrap();
    let trace = Trace::open(root.path()).unwrap();
    let expect = ["1@1", "3@2", "3@3", "0@10", "1@12", "0@20", "2@21", "2@30"];
    assert_eq!(walk(&trace, TimeRange::ALL), expect);
    assert_eq!(walk(&trace, range(3, 21)), expect[2..6]);
    let mut cursor = trace.cursor(TimeRange::ALL);
    while cursor.next().unwrap().is_some() {}
    let disorder = cursor.disorder();
    assert_eq!((disorder.packets, disorder.events), (2, 0));
    let parts = trace.parts();
    let stream = &parts[0].streams[0];
    assert_eq!((stream.packets, stream.packets_back_in_time), (4, 2));
    assert_eq!(stream.range, Some(range(1, 31)));
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_damage_not_death() {
    let root = tempfile::tempdir().unwrap();
    let times: Vec<i64> = (0..200_000).collect();
    write(root.path(), 0, "kernel", &[(0, &times)]);
    let trace = Trace::open(root.path()).unwrap();
    let mut cursor = trace.cursor(TimeRange::ALL);
    for _ in 0..10 {
        assert!(matches!(cursor.next().unwrap(), Some(Item::Event(_))));
    }
    let path = root.path().join("channel0_0");
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(100).unwrap();
    let (mut events, mut damages) = (10, 0);
    while let Some(item) = cursor.next().unwrap() {
        events += u64::from(matches!(item, Item::Event(_)));
        damages += u64::from(matches!(item, Item::Damage(_)));
    }
    assert!(events < 200_000, "{events}");
    assert_eq!(damages, 1);
}

#[test]
fn any_range_gives_the_events_inside_of_it() {
    let root = tempfile::tempdir().unwrap();
    let times: Vec<i64> = (0..60_000).map(|n| n * 3).collect();
    write(
        root.path(),
        0,
        "kernel",
        &[(0, &times), (1, &times[30_000..])],
    );
    let trace = Trace::open(root.path()).unwrap();
    assert!(trace.parts()[0].streams[0].packets > 1);
    let all = walk(&trace, TimeRange::ALL);
    for (begin, end) in [
        (0, 1),
        (89_999, 90_010),
        (120_000, 130_000),
        (179_990, 999_999),
    ] {
        let inside = |word: &&String| {
            let time: i64 = word.split('@').nth(1).unwrap().parse().unwrap();
            (begin..end).contains(&time)
        };
        let expect: Vec<String> = all.iter().filter(inside).cloned().collect();
        assert_eq!(walk(&trace, range(begin, end)), expect, "{begin} to {end}");
    }
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
        assert!(error.fixed_by().is_some(), "{error:#}");
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
    fs::write(root.path().join("perf.data"), "PERFILE2 and more").unwrap();
    check("nowhere", ErrorKind::NotFound, "No such file");
    check("empty", ErrorKind::NotFound, "an empty directory");
    check("other", ErrorKind::NotFound, "none named 'metadata'");
    check("file", ErrorKind::NotFound, "a file");
    check("perf.data", ErrorKind::Unsupported, "a recording of perf");
    check(
        "cut",
        ErrorKind::Corrupt,
        "byte 31, line 1: the end of the text",
    );
    check("metadata_of_none", ErrorKind::Corrupt, "0 bytes");
}

#[test]
fn a_float_is_loaded_as_itself_and_every_field_through_the_common_face() {
    let root = tempfile::tempdir().unwrap();
    let float = |size_bits| FieldType::Float {
        size_bits,
        align_bits: 8,
        big_endian: false,
    };
    let fields = vec![
        Field::payload("name", FieldType::String),
        Field::payload("short", float(32)),
        Field::payload("long", float(64)),
        Field::payload("count", FieldType::Integer(Integer::le(8, true))),
    ];
    let meta = one_stream_class(vec![event_class(0, "load", fields)], 0);
    let mut writer = TraceWriter::create(root.path(), &meta).unwrap();
    let mut stream = writer.stream(0, Cpu(2)).unwrap();
    let mut payload = PayloadWriter::new();
    payload
        .string("disk")
        .raw(&1.5f32.to_le_bytes())
        .raw(&(-0.1f64).to_le_bytes())
        .i8(-3);
    stream
        .event(0, Instant::from_ns(7), payload.bytes())
        .unwrap();
    stream.finish().unwrap();

    fn claims(record: &impl event::Record, class: &EventClass) {
        let field = |name: &str| class.field(name).unwrap();
        assert_eq!(record.f64(field("short")), 1.5);
        assert_eq!(record.f64(field("long")), -0.1);
        assert_eq!(record.f64(field("name")), 0.0, "a text is no float");
        assert_eq!(record.i64(field("count")), -3);
        assert_eq!(record.text(field("name")), b"disk");
        assert_eq!(record.value(field("long")), event::Value::Float(-0.1));
        assert_eq!(
            (record.cpu(), record.instant()),
            (Some(Cpu(2)), Some(Instant::from_ns(7)))
        );
    }
    let trace = Trace::open(root.path()).unwrap();
    let mut cursor = trace.cursor(TimeRange::ALL);
    match cursor.next().unwrap() {
        Some(Item::Event(event)) => claims(&event, &trace.classes()[0]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_class_that_is_declared_and_never_happens_has_no_events() {
    let root = tempfile::tempdir().unwrap();
    let value = Field::payload("value", FieldType::Integer(Integer::le(64, true)));
    let class = |id, name: &str| event_class(id, name, vec![value.clone()]);
    let meta = one_stream_class(vec![class(0, "never"), class(1, "once")], 0);
    let mut trace = TraceWriter::create(root.path(), &meta).unwrap();
    let mut stream = trace.stream(0, Cpu(0)).unwrap();
    let mut payload = PayloadWriter::new();
    stream
        .event(1, Instant::from_ns(1), payload.i64(1).bytes())
        .unwrap();
    stream.finish().unwrap();
    let trace = Trace::open(root.path()).unwrap();
    let mut met = Vec::new();
    let mut look = |enough: bool| {
        met.clear();
        let meet = |class: event::ClassId| {
            met.push(class.0);
            enough
        };
        (trace.look(meet).unwrap(), met.clone())
    };
    assert_eq!(look(false), (true, vec![1]));
    assert_eq!(look(true), (false, vec![1]));
}

#[test]
fn several_integers_are_those_that_are_read_one_by_one() {
    let root = tempfile::tempdir().unwrap();
    let field = |name: &str, bits, signed| {
        Field::payload(name, FieldType::Integer(Integer::le(bits, signed)))
    };
    let fields = vec![
        field("a", 64, true),
        field("b", 8, false),
        field("c", 16, true),
    ];
    let meta = one_stream_class(vec![event_class(0, "numbers", fields)], 0);
    let mut trace = TraceWriter::create(root.path(), &meta).unwrap();
    let mut stream = trace.stream(0, Cpu(0)).unwrap();
    let mut payload = PayloadWriter::new();
    let bytes = payload.i64(-7).u8(200).u16(0xfffe).bytes();
    stream.event(0, Instant::from_ns(1), bytes).unwrap();
    stream.finish().unwrap();
    let trace = Trace::open(root.path()).unwrap();
    let class = &trace.classes()[0];
    let [a, b, c] = ["a", "b", "c"].map(|name| class.field(name).unwrap());
    let mut cursor = trace.cursor(TimeRange::ALL);
    let Some(Item::Event(event)) = cursor.next().unwrap() else {
        panic!("no event");
    };
    assert_eq!(event.integers([c, a, b, a]), [-2, -7, 200, -7]);
    assert_eq!([c, a, b].map(|field| event.i64(field)), [-2, -7, 200]);
}

#[test]
fn linked_folders_are_opened_once_each_also_in_a_circle() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    write(elsewhere.path(), 0, "kernel", &[(0, &[1, 5])]);
    let folder = root.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, folder.join(name)).unwrap();
    link(elsewhere.path(), "a-trace");
    link(elsewhere.path(), "same-again");
    link(root.path(), "circle");
    let trace = Trace::open(root.path()).unwrap();
    assert_eq!(walk(&trace, TimeRange::ALL), ["0@1", "0@5"]);
}
