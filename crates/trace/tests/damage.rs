//! What damage takes away is said: whatever is cut off or overwritten, a loss covers each event
//! that the whole recording has and the damaged one has not.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ctf::writer::{HeaderKind, PayloadWriter, TraceMeta, TraceWriter};
use event::{Cpu, Field, FieldType, Instant, Integer, TimeRange};
use testkit::dat::{self, DatPacking, SyntheticDat};
use testkit::{event_class, one_stream_class};
use trace::{Item, LossCause, Lost, Trace};

/// The classes and times of each CPU's events, in their order.
type Events = BTreeMap<Cpu, Vec<(String, i64)>>;

/// What a walk met.
#[derive(Default)]
struct Walked {
    events: Events,
    losses: Vec<Lost>,
    damages: u64,
    /// As far as the trace says it.
    begin_ns: i64,
    end_ns: i64,
}

fn walk(trace: &Trace) -> Walked {
    let range = trace.range();
    let mut walked = Walked {
        begin_ns: range.map_or(0, |range| range.begin.as_ns()),
        end_ns: range.map_or(0, |range| range.end.as_ns()),
        ..Walked::default()
    };
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("readable") {
        match item {
            Item::Event(event) => {
                let name = trace.classes()[event.class().0 as usize].name.clone();
                let cpu = event.cpu().expect("a CPU");
                let events = walked.events.entry(cpu).or_default();
                events.push((name, event.time().as_ns()));
            }
            Item::Lost(lost) => walked.losses.push(lost),
            Item::Damage(_) => walked.damages += 1,
        }
    }
    walked
}

/// The first event of `whole` that is neither in `damaged` nor covered by a loss there.
fn unsaid(whole: &Events, damaged: &Walked) -> Option<(Cpu, String, i64)> {
    for (cpu, events) in whole {
        let left = damaged.events.get(cpu).cloned().unwrap_or_default();
        let names =
            |events: &[(String, i64)]| events.iter().map(|e| e.0.clone()).collect::<Vec<_>>();
        // The same events in the same order: at most their values are others, which nobody can see.
        if names(events) == names(&left) {
            continue;
        }
        let mut left: Vec<_> = left.into_iter().map(Some).collect();
        for event in events {
            if let Some(found) = left.iter_mut().find(|found| found.as_ref() == Some(event)) {
                *found = None;
                continue;
            }
            let time_ns = event.1;
            let covers = |lost: &Lost| {
                let (begin, end) = (lost.range.begin.as_ns(), lost.range.end.as_ns());
                // The trace begins and ends where what is left of it does.
                let time_ns = time_ns.clamp(damaged.begin_ns, damaged.end_ns);
                let is_inside = begin <= time_ns && time_ns <= end;
                lost.cpu.is_none_or(|lost| lost == *cpu) && is_inside
            };
            if !damaged.losses.iter().any(covers) {
                return Some((*cpu, event.0.clone(), time_ns));
            }
        }
    }
    None
}

/// Every way to damage `bytes` that is tried: what it is called, and what is left. A cut where the
/// file may end, by `is_end`, is none that anybody could see.
fn damages(
    bytes: &[u8],
    part: Range<usize>,
    is_end: impl Fn(&[u8]) -> bool,
) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let step = (part.len() / 150).max(1) | 1;
    for at in part.clone().step_by(step) {
        if !is_end(&bytes[..at]) {
            all.push((format!("cut at {at}"), bytes[..at].to_vec()));
        }
        for (count, byte) in [(64, 0xff), (4096, 0xff), (64, 0), (4096, 0)] {
            let mut copy = bytes.to_vec();
            let end = (at + count).min(part.end);
            copy[at..end].fill(byte);
            all.push((format!("{count} bytes of {byte:#x} at {at}"), copy));
        }
    }
    all
}

/// Damages `part` of the file `name` of the recording at `root`, or all of it.
fn check(root: &Path, name: &str, part: Option<Range<usize>>, is_end: impl Fn(&[u8]) -> bool) {
    let open = |path: &Path| Trace::open(path);
    let whole = walk(&open(root).expect("a trace"));
    assert!(
        whole.losses.is_empty() && whole.damages == 0,
        "{:?}",
        whole.losses
    );
    let path: PathBuf = root.join(name);
    let path = if root.is_file() {
        root.to_owned()
    } else {
        path
    };
    let bytes = fs::read(&path).expect("a file");
    let (mut tried, mut noticed) = (0, 0);
    for (what, copy) in damages(&bytes, part.unwrap_or(0..bytes.len()), is_end) {
        fs::write(&path, copy).expect("written");
        // What cannot be opened at all is an error, which is said too.
        let Ok(trace) = open(root) else {
            continue;
        };
        let damaged = walk(&trace);
        tried += 1;
        noticed += u64::from(!damaged.losses.is_empty());
        let unsaid = unsaid(&whole.events, &damaged);
        let losses = &damaged.losses;
        assert_eq!(unsaid, None, "{}: {what}: {losses:?}", path.display());
        let is_told = damaged.damages == 0 || !losses.is_empty();
        assert!(is_told, "{}: {what}: damage without a loss", path.display());
    }
    fs::write(&path, bytes).expect("written");
    assert!(
        tried > 200 && noticed > 100,
        "{tried} tried, {noticed} noticed"
    );
}

/// Two CPUs, four packets each, of events in two classes.
fn write_ctf(dir: &Path, header: HeaderKind) {
    let value = Field::payload("value", FieldType::Integer(Integer::le(64, true)));
    let comm = Field::payload("comm", FieldType::Text { size_bytes: 16 });
    let classes = vec![
        event_class(0, "tick", vec![value.clone(), comm]),
        event_class(1, "tock", vec![value]),
    ];
    let mut meta: TraceMeta = one_stream_class(classes, 100);
    meta.streams[0].header = header;
    let mut trace = TraceWriter::create(dir, &meta).expect("a trace");
    for cpu in 0..2u32 {
        let mut stream = trace.stream(0, Cpu(cpu)).expect("a stream");
        for number in 0..400i64 {
            let mut payload = PayloadWriter::new();
            payload.i64(number);
            if number % 3 != 0 {
                payload.text16("hog");
            }
            let class = u32::from(number % 3 == 0);
            let time = Instant::from_ns(1_000_000 + number * 1000 + i64::from(cpu) * 300);
            stream.event(class, time, payload.bytes()).expect("written");
            if number % 100 == 99 {
                stream.gap().expect("a packet");
            }
        }
        stream.finish().expect("written");
    }
}

fn first_stream(dir: &Path) -> String {
    let names = fs::read_dir(dir).expect("a directory").map(|entry| {
        let name = entry.expect("an entry").file_name();
        name.to_string_lossy().into_owned()
    });
    let mut names: Vec<_> = names.filter(|name| name.starts_with("channel0")).collect();
    names.sort();
    names.swap_remove(0)
}

#[test]
fn a_damaged_stream_of_ctf_says_what_it_took_away() {
    for header in [HeaderKind::Large, HeaderKind::Compact] {
        let dir = tempfile::tempdir().expect("a directory");
        write_ctf(dir.path(), header);
        check(dir.path(), &first_stream(dir.path()), None, |_| false);
    }
}

fn synthetic(version: u32, packing: DatPacking, big_endian: bool) -> SyntheticDat {
    SyntheticDat {
        version,
        packing,
        big_endian,
        cpus: vec![dat::events(0, 300), dat::events(1, 250)],
        ..SyntheticDat::default()
    }
}

#[test]
fn a_damaged_trace_dat_says_what_it_took_away() {
    let kinds = [
        (6, DatPacking::None, false),
        (6, DatPacking::None, true),
        (7, DatPacking::None, false),
        (7, DatPacking::Zstd, false),
    ];
    for (version, packing, big_endian) in kinds {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("trace.dat");
        let dat = synthetic(version, packing, big_endian);
        let bytes = dat.bytes();
        fs::write(&path, &bytes).expect("written");
        // Where a table around them makes no sense, the file is refused, or names are others.
        check(&path, "", Some(pages(&dat, &bytes)), |_| false);
    }
}

/// Where the pages of a synthetic file are.
fn pages(dat: &SyntheticDat, bytes: &[u8]) -> Range<usize> {
    let find = |wanted: &[u8]| bytes.windows(wanted.len()).position(|part| part == wanted);
    if dat.packing == DatPacking::None {
        let [first, .., last] = &dat.cpus[..] else {
            panic!("two CPUs");
        };
        let (first, last) = (dat.pages(first), dat.pages(last));
        let begin = find(&first).expect("the first CPU");
        return begin..find(&last).expect("the last CPU") + last.len();
    }
    // A frame for each CPU, and one for the options behind them.
    let is_frame = |(_, part): &(usize, &[u8])| *part == [0x28, 0xb5, 0x2f, 0xfd];
    let frames = bytes.windows(4).enumerate().filter(is_frame);
    let frames: Vec<usize> = frames.map(|(at, _)| at).collect();
    frames[frames.len() - 3]..frames[frames.len() - 1] - 32
}

#[test]
fn damaged_pages_say_what_they_took_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let dat = synthetic(7, DatPacking::None, false);
    dat.write_directory(dir.path()).expect("written");
    check(dir.path(), "per_cpu/cpu0/trace_pipe_raw", None, |left| {
        !left.is_empty() && left.len().is_multiple_of(4096)
    });
}

fn text() -> String {
    let mut text = String::from("# tracer: nop\n#\n");
    for number in 0..400u64 {
        let (cpu, us) = (number % 2, 100 + number * 10);
        let event = match number % 3 {
            0 => "sched_waking: comm=hog pid=700 prio=19 target_cpu=001".to_owned(),
            1 => format!("irq_handler_entry: irq={} name=snd card", number % 24),
            _ => "sched_switch: prev_comm=hog prev_pid=700 prev_prio=19 prev_state=S ==> \
                  next_comm=burn next_pid=500 next_prio=120"
                .to_owned(),
        };
        writeln!(text, "  hog-700   [00{cpu}] d..2.  10.{us:06}: {event}").expect("a text");
    }
    text
}

#[test]
fn a_damaged_text_says_what_it_took_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("trace.txt");
    fs::write(&path, text()).expect("written");
    check(&path, "", None, |left| left.ends_with(b"\n"));
}

/// What is lost of `dir` after something was done to it, as CPU and cause.
fn lost_after(dir: &Path, change: impl FnOnce(&Path)) -> Vec<(Option<u32>, LossCause)> {
    change(dir);
    let trace = Trace::open(dir).expect("a trace");
    let walked = walk(&trace);
    let range = trace.range().expect("a range");
    let all = |lost: &Lost| lost.range == range;
    assert!(walked.losses.iter().all(all), "{:?}", walked.losses);
    let lost = walked
        .losses
        .iter()
        .map(|lost| (lost.cpu.map(|cpu| cpu.0), lost.cause));
    lost.collect()
}

/// A trace of two CPUs, of which one has records of another kind; who wrote it is `tracer`.
fn with_a_stream_of_one_cpu(dir: &Path, tracer: &[(&str, &str)]) {
    let value = Field::payload("value", FieldType::Integer(Integer::le(64, true)));
    let mut meta = one_stream_class(vec![event_class(0, "tick", vec![value.clone()])], 0);
    let mut evidence = one_stream_class(vec![event_class(0, "late", vec![value])], 0).streams;
    evidence[0].name = "evidence".to_owned();
    meta.streams.append(&mut evidence);
    for (key, value) in tracer {
        meta.environment
            .push(((*key).to_owned(), (*value).to_owned().into()));
    }
    let mut trace = TraceWriter::create(dir, &meta).expect("a trace");
    for (class, cpu) in [(0, 0), (0, 1), (1, 0)] {
        let mut stream = trace.stream(class, Cpu(cpu)).expect("a stream");
        let mut payload = PayloadWriter::new();
        payload.i64(7);
        let time = Instant::from_ns(1_000);
        stream.event(0, time, payload.bytes()).expect("written");
        stream.finish().expect("written");
    }
}

#[test]
fn evidence_of_one_cpu_is_no_missing_stream_of_the_others() {
    let check = |tracer: &[(&str, &str)], expect: &[(Option<u32>, LossCause)]| {
        let dir = tempfile::tempdir().expect("a directory");
        with_a_stream_of_one_cpu(dir.path(), tracer);
        assert_eq!(lost_after(dir.path(), |_| {}), expect, "{tracer:?}");
    };
    let lttng = ("tracer_name", "lttng-modules");
    check(&[lttng], &[(Some(1), LossCause::Missing)]);
    let ours = ("rtscope_version", "0.1.0");
    check(&[lttng, ours], &[]);
    check(&[lttng, ours, ("rtscope_cpus", "0,1")], &[]);
    let last = [(Some(2), LossCause::Missing)];
    check(&[lttng, ours, ("rtscope_cpus", "0,1,2")], &last);
    check(&[], &[]);
}

#[test]
fn a_stream_that_is_missing_is_a_loss_of_its_cpu_for_all_the_time() {
    let missing = [(Some(1), LossCause::Missing)];
    let ctf = || {
        let dir = tempfile::tempdir().expect("a directory");
        write_ctf(dir.path(), HeaderKind::Large);
        let stream = dir.path().join(first_stream(dir.path()).replace('0', "1"));
        let stream = stream.to_string_lossy().replace("channel1", "channel0");
        (dir, PathBuf::from(stream))
    };
    let (dir, stream) = ctf();
    assert_eq!(lost_after(dir.path(), |_| {}), []);
    assert_eq!(
        lost_after(dir.path(), |_| fs::write(&stream, "").unwrap()),
        missing
    );
    let (dir, stream) = ctf();
    let dangle = |_: &Path| {
        fs::remove_file(&stream).unwrap();
        std::os::unix::fs::symlink("nowhere", &stream).unwrap();
    };
    assert_eq!(lost_after(dir.path(), dangle), missing);
    // The file is gone, and its index is still there.
    let (dir, stream) = ctf();
    let index = dir.path().join("index");
    let write_index = |_: &Path| {
        fs::create_dir_all(&index).unwrap();
        let name = stream.file_name().unwrap().to_string_lossy();
        fs::write(index.join(format!("{name}.idx")), "").unwrap();
    };
    assert_eq!(lost_after(dir.path(), write_index), []);
    let remove = |_: &Path| fs::remove_file(&stream).unwrap();
    assert_eq!(lost_after(dir.path(), remove), missing);
    let dir = tempfile::tempdir().expect("a directory");
    synthetic(7, DatPacking::None, false)
        .write_directory(dir.path())
        .expect("written");
    let pages = dir.path().join("per_cpu/cpu1/trace_pipe_raw");
    assert_eq!(
        lost_after(dir.path(), |_| fs::write(&pages, "").unwrap()),
        missing
    );
    assert_eq!(
        lost_after(dir.path(), |_| fs::remove_file(&pages).unwrap()),
        missing
    );
    let silent = "entries: 0\nread events: 0\n";
    let stats = dir.path().join("per_cpu/cpu1/stats");
    fs::write(&pages, "").unwrap();
    assert_eq!(
        lost_after(dir.path(), |_| fs::write(&stats, silent).unwrap()),
        []
    );
}
