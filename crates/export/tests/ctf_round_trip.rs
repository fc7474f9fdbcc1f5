//! read → write CTF 1.8 and CTF 2 → read: equal events and losses; babeltrace2 reads it too.
//!
//! Always over a sample trace; over all traces of a corpus when RTSCOPE_CORPUS names its directory.

use std::path::Path;
use std::process::Command;

use ctf::is_packet_bookkeeping;
use ctf::writer::{ClockMeta, StreamMeta, TraceMeta, TraceWriter};
use event::{ClassId, Cpu, EventClass, FieldId, Instant, TimeRange, Value};
use export::Format;
use testkit::Corpus;
use trace::{EventView, Item, Trace};

/// What a format keeps of an item, as a text.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    /// All of a value.
    Whole,
    /// What CTF 1.8 has words for: a number of a truth value, bytes of a blob, no label of a
    /// selector.
    Plain,
}

fn plain(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Bool(_) | Value::Flags { .. } | Value::Enum { .. } => {
            out.push_str(&value.as_i64().unwrap_or(0).to_string());
        }
        Value::Unsigned(number) => out.push_str(&(*number as i64).to_string()),
        Value::Signed(number) => out.push_str(&number.to_string()),
        Value::Blob(bytes) => bytes.iter().for_each(|b| out.push_str(&format!("{b},"))),
        Value::Array(elements) => {
            for element in elements {
                plain(element, out);
                out.push(',');
            }
        }
        Value::Struct(members) => match &members[..] {
            [("none", _)] => out.push_str("absent"),
            [("some", value)] => plain(value, out),
            members => {
                for (name, value) in members {
                    out.push_str(name);
                    out.push('=');
                    plain(value, out);
                    out.push(';');
                }
            }
        },
        Value::Absent => out.push_str("absent"),
        Value::Float(number) => out.push_str(&format!("{:x}", number.to_bits())),
        Value::Text(text) => out.push_str(&format!("{text:?}")),
    }
}

fn describe(trace: &Trace, event: &EventView<'_>, detail: Detail) -> String {
    let class = &trace.classes()[event.class().0 as usize];
    let cpu = event.cpu().map(|cpu| cpu.0);
    let time = event.is_timed().then(|| trace.wall_ns(event.time()));
    let mut out = format!("{time:?} {cpu:?} {}", class.name);
    for (place, field) in class.fields.iter().enumerate() {
        if is_packet_bookkeeping(field) {
            continue;
        }
        let value = event.value(FieldId(place as u16));
        out.push_str(&format!(" {:?}.", field.scope));
        match detail {
            Detail::Whole => match value {
                // The bits, so that one NaN is like the other.
                Value::Float(number) => out.push_str(&format!("{:x}", number.to_bits())),
                value => out.push_str(&format!("{}={value:?}", field.name)),
            },
            Detail::Plain => plain(&value, &mut out),
        }
    }
    out
}

/// All that a walk over a trace gives.
#[derive(Default)]
struct Walked {
    events: Vec<String>,
    /// CPU and number of those that were lost, in order.
    losses: Vec<String>,
    damages: usize,
}

fn walk(path: &Path, detail: Detail) -> event::Result<Walked> {
    let trace = Trace::open(path)?;
    let mut walked = Walked::default();
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next()? {
        match item {
            Item::Event(event) => walked.events.push(describe(&trace, &event, detail)),
            Item::Lost(lost) => walked
                .losses
                .push(format!("{:?} {:?}", lost.cpu, lost.count)),
            Item::Damage(_) => walked.damages += 1,
        }
    }
    // Streams of one instant may come in another order, and time that went backwards is put right.
    walked.events.sort();
    walked.losses.sort();
    Ok(walked)
}

fn convert(from: &Path, to: &Path, format: Format) -> event::Result<()> {
    let trace = Trace::open(from)?;
    let mut sink = export::sink(format, &trace, to)?;
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next()? {
        match item {
            Item::Event(event) => sink.event(&event)?,
            Item::Lost(lost) => sink.lost(&lost)?,
            Item::Damage(damage) => sink.damage(&damage)?,
        }
    }
    sink.finish()
}

/// What is wrong after a round trip through `format`, if anything.
fn round_trip(from: &Path, format: Format, detail: Detail) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let to = folder.path().join("trace");
    let said = |error: event::Error| format!("{error:#}");
    let before = walk(from, detail).map_err(said)?;
    convert(from, &to, format).map_err(said)?;
    let after = walk(&to, detail).map_err(said)?;
    if after.damages > 0 {
        return Err(format!("{} damages in what was written", after.damages));
    }
    let pairs = before.events.iter().zip(&after.events);
    if let Some((a, b)) = pairs.into_iter().find(|(a, b)| a != b) {
        return Err(format!("an event differs\n  before {a}\n  after  {b}"));
    }
    let counts = (before.events.len(), after.events.len());
    if counts.0 != counts.1 {
        return Err(format!("{} events, then {}", counts.0, counts.1));
    }
    if before.losses != after.losses {
        return Err(format!(
            "losses {:?}, then {:?}",
            before.losses, after.losses
        ));
    }
    match format {
        // What the peer cannot read to its end before, it need not read after.
        Format::Ctf1 if peer_reads(from, &before).is_ok() => peer_reads(&to, &after),
        _ => Ok(()),
    }
}

/// babeltrace2 reads as many events, and warns of nothing but losses.
fn peer_reads(path: &Path, walked: &Walked) -> Result<(), String> {
    let output = match Command::new("babeltrace2").arg(path).output() {
        Ok(output) => output,
        Err(error) => {
            testkit::skip("babeltrace2 reads what is written", &error.to_string());
            return Ok(());
        }
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_fine = |line: &str| line.trim().is_empty() || line.contains("Tracer discarded");
    let warned: Vec<&str> = stderr.lines().filter(|line| !is_fine(line)).collect();
    if !output.status.success() || !warned.is_empty() {
        return Err(format!("babeltrace2 says {warned:?}"));
    }
    let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
    match lines == walked.events.len() {
        true => Ok(()),
        false => Err(format!(
            "babeltrace2 prints {lines} of {}",
            walked.events.len()
        )),
    }
}

const FORMATS: [(Format, Detail); 2] =
    [(Format::Ctf1, Detail::Plain), (Format::Ctf2, Detail::Whole)];

#[test]
fn a_trace_is_the_same_after_a_round_trip_and_its_losses_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("sample");
    testkit::write_sample(&trace).expect("a sample");
    for (format, detail) in FORMATS {
        round_trip(&trace, format, detail).unwrap_or_else(|wrong| panic!("{format:?}: {wrong}"));
    }
}

#[test]
#[ignore = "needs the corpus of traces (RTSCOPE_CORPUS)"]
fn real_traces_are_the_same_after_a_round_trip() {
    let Some(corpus) = Corpus::find("real traces after a round trip") else {
        return;
    };
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (_, trace) in corpus.ctf_traces() {
        // What cannot be opened has nothing to convert.
        if Trace::open(&trace).is_err() {
            continue;
        }
        tried += 1;
        for (format, detail) in FORMATS {
            if let Err(why) = round_trip(&trace, format, detail) {
                wrong.push(format!("{} {format:?}: {why}", trace.display()));
            }
        }
    }
    println!("{tried} traces");
    assert!(tried > 0 && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A trace of two events at 100 and 200 ns, which was recorded from 50 to 300.
fn recorded_longer(path: &Path) {
    let class = EventClass {
        id: ClassId(0),
        name: "tick".to_owned(),
        stream: 0,
        fields: Vec::new().into(),
    };
    let meta = TraceMeta {
        clocks: vec![ClockMeta::monotonic(0)],
        streams: vec![StreamMeta {
            name: "channel0".to_owned(),
            classes: vec![class],
            ..StreamMeta::default()
        }],
        ..TraceMeta::default()
    };
    let mut writer = TraceWriter::create(path, &meta).expect("a trace");
    let mut stream = writer.stream(0, Cpu(0)).expect("a stream");
    stream.covers(Instant::from_ns(50)).expect("covered");
    for time in [100, 200] {
        let event = stream.event(0, Instant::from_ns(time), &[]);
        event.expect("written");
    }
    stream.covers(Instant::from_ns(300)).expect("covered");
    stream.finish().expect("finished");
}

#[test]
fn what_is_converted_was_recorded_from_when_to_when_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = folder.path().join("from");
    recorded_longer(&from);
    let at = |begin, end| TimeRange {
        begin: Instant::from_ns(begin),
        end: Instant::from_ns(end),
    };
    let range = |path: &Path| Trace::open(path).expect("a trace").range();
    assert_eq!(range(&from), Some(at(50, 301)));
    let check = |name: &str, window: TimeRange, expect: TimeRange| {
        for format in [Format::Ctf1, Format::Ctf2] {
            let to = folder.path().join(format!("{name}-{format:?}"));
            let trace = Trace::open(&from).expect("a trace");
            let mut sink = export::sink(format, &trace, &to).expect("a sink");
            sink.covers(window);
            let mut cursor = trace.cursor(window);
            while let Some(item) = cursor.next().expect("an item") {
                if let Item::Event(event) = item {
                    sink.event(&event).expect("written");
                }
            }
            sink.finish().expect("finished");
            assert_eq!(range(&to), Some(expect), "{name} {format:?}");
        }
    };
    check("all", TimeRange::ALL, at(50, 301));
    check("first", at(80, 150), at(80, 150));
    check("last", at(150, 900), at(150, 301));
}

/// Classes of different lengths, with a field of the packet's context behind their own.
#[test]
fn the_packets_context_is_taken_from_each_classs_own_places() {
    let metadata = "/* CTF 1.8 */
        typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
        typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
        typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
        trace { major = 1; minor = 8; byte_order = le; packet.header := struct {
          uint32_t magic; uint32_t stream_id; }; };
        clock { name = c; freq = 1000000000; offset = 0; };
        typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := ts_t;
        stream { id = 0; packet.context := struct {
            uint32_t content_size; uint32_t packet_size; uint32_t tenant; };
          event.header := struct { uint8_t id; ts_t timestamp; }; };
        event { id = 0; name = a; stream_id = 0; fields := struct { uint32_t x; }; };
        event { id = 1; name = b; stream_id = 0;
          fields := struct { uint32_t x; uint32_t y; uint32_t z; }; };\n";
    let packet = |tenant: u32, id: u8, time: u64, fields: &[u32]| {
        let fields: Vec<u8> = fields.iter().flat_map(|f| f.to_le_bytes()).collect();
        let bits = (29 + fields.len() as u32) * 8;
        let words = [0xc1fc_1fc1, 0, bits, bits, tenant];
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.push(id);
        bytes.extend(time.to_le_bytes());
        bytes.extend(fields);
        bytes
    };
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (root.path().join("from"), root.path().join("to"));
    std::fs::create_dir(&from).unwrap();
    std::fs::write(from.join("metadata"), metadata).unwrap();
    let stream = [packet(777, 0, 10, &[1]), packet(888, 1, 20, &[2, 3, 4])].concat();
    std::fs::write(from.join("s_0"), stream).unwrap();
    for format in [Format::Ctf1, Format::Ctf2] {
        let copy = to.join(format!("{format:?}"));
        convert(&from, &copy, format).unwrap();
        let trace = Trace::open(&copy).unwrap();
        let (mut cursor, mut tenants) = (trace.cursor(TimeRange::ALL), Vec::new());
        while let Some(item) = cursor.next().unwrap() {
            let Item::Event(event) = item else {
                panic!("{item:?}");
            };
            let class = &trace.classes()[event.class().0 as usize];
            tenants.push(event.u64(class.field("tenant").unwrap()));
        }
        assert_eq!(tenants, [777, 888]);
    }
}
