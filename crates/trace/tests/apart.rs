//! Traces that are opened together and do not overlap: where the losses between them stand.

use std::path::Path;

use ctf::writer::{PayloadWriter, TraceWriter};
use event::{Cpu, Field, FieldType, Instant, Integer, TimeRange};
use testkit::{event_class, one_stream_class};
use trace::{Item, LossCause, OpenOptions, Root, Trace};

/// A trace of these CPUs, with an event of each at these times.
fn write_ctf(dir: &Path, domain: &str, uuid: u8, cpus: &[u32], times: &[i64]) {
    let value = Field::payload("value", FieldType::Integer(Integer::le(64, true)));
    let mut meta = one_stream_class(vec![event_class(0, "tick", vec![value])], 0);
    meta.uuid = [uuid; 16];
    meta.environment.push(("domain".into(), domain.into()));
    let mut trace = TraceWriter::create(dir, &meta).expect("a trace");
    for cpu in cpus {
        let mut stream = trace.stream(0, Cpu(*cpu)).expect("a stream");
        for time in times {
            let mut payload = PayloadWriter::new();
            let payload = payload.i64(*time);
            stream
                .event(0, Instant::from_ns(*time), payload.bytes())
                .expect("room");
        }
        stream.finish().expect("room");
    }
}

/// ftrace's text, with an event of CPU 0 at each of these microseconds.
fn write_text(path: &Path, times_us: &[i64]) {
    let line = |us: &i64| format!("  init-1  [000] .....  0.{us:06}: tracing_mark_write: a = b\n");
    let lines: String = times_us.iter().map(line).collect();
    std::fs::write(path, format!("# tracer: nop\n#\n{lines}")).expect("room");
}

/// Every item of `range`, a word each.
fn walk(trace: &Trace, range: TimeRange) -> Vec<String> {
    let mut words = Vec::new();
    let mut cursor = trace.cursor(range);
    while let Some(item) = cursor.next().expect("readable") {
        words.push(match item {
            Item::Event(event) => event.time().as_ns().to_string(),
            Item::Lost(lost) => {
                assert_eq!(lost.cause, LossCause::Silent);
                let cpu = lost.cpu.map_or("all".to_owned(), |cpu| cpu.0.to_string());
                let (begin, end) = (lost.range.begin.as_ns(), lost.range.end.as_ns());
                format!("{cpu} lost {begin}-{end}")
            }
            Item::Damage(damage) => format!("{damage:?}"),
        });
    }
    words
}

fn open(roots: &[&Path], options: OpenOptions) -> Trace {
    let roots: Vec<Root> = roots.iter().map(|path| Root::from(*path)).collect();
    Trace::open_all(&roots, &options).expect("traces")
}

#[track_caller]
fn check(roots: &[&Path], expect: &[&str]) {
    let trace = open(roots, OpenOptions::default());
    assert_eq!(walk(&trace, TimeRange::ALL), expect);
    // Walks of several threads hand out the same.
    let sliced = trace.map_slices(TimeRange::ALL, 4, |cursor| {
        let mut items = 0;
        while cursor.next()?.is_some() {
            items += 1;
        }
        Ok(items)
    });
    assert_eq!(
        sliced.expect("readable").iter().sum::<usize>(),
        expect.len()
    );
    let losses = expect.iter().filter(|word| word.contains("lost")).count();
    let found = trace.losses(TimeRange::ALL).expect("readable");
    assert_eq!(found.len(), losses);
}

#[test]
fn a_loss_of_all_cpus_stands_between_two_recordings_of_a_kernel() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    write_ctf(&at("one"), "kernel", 1, &[0, 1], &[100, 200]);
    write_ctf(&at("two"), "kernel", 2, &[0, 1], &[900, 950]);
    let (one, two) = (at("one"), at("two"));
    let expect = [
        "100",
        "100",
        "200",
        "200",
        "all lost 201-900",
        "900",
        "900",
        "950",
        "950",
    ];
    check(&[&one, &two], &expect);
    check(&[&two, &one], &expect);
    check(&[dir.path()], &expect);
    check(&[&one], &expect[..4]);
    // Inside of it, and at its edges.
    let trace = open(&[&one, &two], OpenOptions::default());
    let part = |begin, end| {
        let (begin, end) = (Instant::from_ns(begin), Instant::from_ns(end));
        walk(&trace, TimeRange { begin, end })
    };
    assert_eq!(part(300, 400), ["all lost 201-900"]);
    assert_eq!(part(300, 901), ["all lost 201-900", "900", "900"]);
    assert!(part(0, 200).iter().all(|word| word == "100"));
    assert!(part(901, 960).iter().all(|word| word == "950"));
    // Who writes still may write into it.
    let live = OpenOptions {
        live: true,
        ..OpenOptions::default()
    };
    assert_eq!(walk(&open(&[&one, &two], live), TimeRange::ALL).len(), 8);
}

#[test]
fn applications_say_nothing_of_cpus_and_so_lose_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    write_ctf(&at("one"), "ust", 1, &[0, 1], &[100, 200]);
    write_ctf(&at("two"), "ust", 2, &[0], &[900, 950]);
    write_ctf(&at("kernel"), "kernel", 3, &[0, 1], &[300, 400]);
    let (one, two, kernel) = (at("one"), at("two"), at("kernel"));
    check(&[&one, &two], &["100", "100", "200", "200", "900", "950"]);
    check(
        &[&one, &kernel, &two],
        &[
            "100", "100", "200", "200", "300", "300", "400", "400", "900", "950",
        ],
    );
}

#[test]
fn directories_of_one_trace_count_their_packets_themselves() {
    let dir = tempfile::tempdir().expect("a folder");
    write_ctf(&dir.path().join("1"), "kernel", 7, &[0], &[100]);
    write_ctf(&dir.path().join("2"), "kernel", 7, &[0], &[900]);
    check(&[dir.path()], &["100", "900"]);
}

#[test]
fn texts_and_ctf_are_silent_together() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    let (one, two, kernel) = (at("one"), at("two"), at("kernel"));
    write_text(&one, &[1, 2]);
    write_text(&two, &[8]);
    check(
        &[&one, &two],
        &["1000", "2000", "all lost 2001-8000", "8000"],
    );
    write_ctf(&kernel, "kernel", 3, &[0], &[5_000]);
    check(
        &[&one, &kernel, &two],
        &[
            "1000",
            "2000",
            "all lost 2001-5000",
            "5000",
            "all lost 5001-8000",
            "8000",
        ],
    );
}
