//! Recordings of ftrace against the text that the kernel, or trace-cmd, made of the same events.
//! Needs `RTSCOPE_CORPUS`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use event::{FieldType, Scope, TimeRange, Value};
use testkit::Corpus;
use trace::{Item, Trace};

/// One event as both sides can show it.
#[derive(Debug)]
struct Seen {
    time_ns: i64,
    tid: i64,
    name: String,
    task: String,
    payload: BTreeMap<String, Value<'static>>,
}

/// A value that owns its text.
fn owned(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Text(text) => Value::Text(text.into_owned().into()),
        Value::Unsigned(bits) => Value::Signed(bits as i64),
        Value::Signed(number) => Value::Signed(number),
        other => Value::Text(format!("{other:?}").into()),
    }
}

/// The events of each CPU; checks that their times never go back.
fn events(path: &Path) -> BTreeMap<u32, Vec<Seen>> {
    let trace = Trace::open(path).unwrap_or_else(|error| panic!("{error:#}"));
    let mut cpus: BTreeMap<u32, Vec<Seen>> = BTreeMap::new();
    let mut cursor = trace.cursor(TimeRange::ALL);
    let mut last_ns = i64::MIN;
    while let Some(item) = cursor.next().expect("readable") {
        let event = match item {
            Item::Event(event) => event,
            other => panic!("{}: {other:?}", path.display()),
        };
        assert!(event.time().as_ns() >= last_ns, "{}", path.display());
        last_ns = event.time().as_ns();
        let class = &trace.classes()[event.class().0 as usize];
        let id = |name: &str| class.field(name).expect(name);
        let fields = class
            .fields
            .iter()
            .filter(|field| field.scope == Scope::Payload);
        let scalars = fields.filter(|field| !matches!(field.ty, FieldType::Array { .. }));
        let payload = scalars.map(|field| {
            let value = event.value(
                class
                    .field_in(Scope::Payload, &field.name)
                    .expect("its own"),
            );
            (field.name.to_string(), owned(value))
        });
        let tid = class.field_in(Scope::StreamContext, "tid").expect("a task");
        cpus.entry(event.cpu().expect("a CPU").0)
            .or_default()
            .push(Seen {
                time_ns: last_ns,
                tid: event.i64(tid),
                name: class.name.clone(),
                task: String::from_utf8_lossy(event.text(id("procname"))).into_owned(),
                payload: payload.collect(),
            });
    }
    cpus
}

/// The text does not say of which system an event is, so that some names lack their prefix.
fn is_same_name(found: &str, text: &str) -> bool {
    let found = if found == "print" {
        "tracing_mark_write"
    } else {
        found
    };
    let text = if text == "print" {
        "tracing_mark_write"
    } else {
        text
    };
    found == text || found.ends_with(&format!("_{text}")) || text == "bprint"
}

/// Fields that a text prints as something else than their value.
const PRINTED_OTHERWISE: [&str; 14] = [
    // pointers are hashed, functions are names, masks and constants are words
    "hrtimer",
    "timer",
    "function",
    "mode",
    "clockid",
    "flags",
    "softexpires",
    "args",
    "skbaddr",
    "gfp_flags",
    "work",
    "context",
    "rwbs",
    "protocol",
];

/// Texts round to the nearest microsecond.
const ROUNDED_NS: u64 = 500;

/// How many fields agree; panics where one does not.
fn same_fields(found: &Seen, text: &Seen, at: &str) -> u64 {
    let mut same = 0;
    for (name, expect) in &text.payload {
        let Some(value) = found.payload.get(name) else {
            continue;
        };
        let other_kind = std::mem::discriminant(value) != std::mem::discriminant(expect);
        // Arguments of system calls are printed as wide as their slots.
        let is_call = found.name.starts_with("syscall_");
        let low = |value: &Value<'_>| value.as_i64().map(|number| number as u32);
        let is_same = value == expect || is_call && low(value) == low(expect);
        if PRINTED_OTHERWISE.contains(&name.as_str()) || other_kind || is_same {
            same += u64::from(is_same);
            continue;
        }
        panic!("{at}: {name} of {}: {value:?}, text {expect:?}", found.name);
    }
    same
}

/// Compares a recording with a text of it; returns events and fields that agree.
fn check(recording: &Path, text: &Path) -> (u64, u64) {
    let found = events(recording);
    let expect = events(text);
    let (mut count, mut fields) = (0, 0);
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        expect.keys().collect::<Vec<_>>()
    );
    for (cpu, expect) in &expect {
        let found = &found[cpu];
        let at = |place: usize| format!("{}, CPU {cpu}, event {place}", recording.display());
        for (place, (found, expect)) in found.iter().zip(expect).enumerate() {
            let at = at(place);
            let apart_ns = found.time_ns.abs_diff(expect.time_ns);
            assert!(apart_ns <= ROUNDED_NS, "{at}: {found:?} {expect:?}");
            assert_eq!(found.tid, expect.tid, "{at}");
            assert!(
                is_same_name(&found.name, &expect.name),
                "{at}: {found:?} {expect:?}"
            );
            if expect.task != "<...>" && found.task != "<...>" {
                assert_eq!(found.task, expect.task, "{at}");
            }
            fields += same_fields(found, expect, &at);
        }
        assert_eq!(found.len(), expect.len(), "{}", at(0));
        count += found.len() as u64;
    }
    (count, fields)
}

#[test]
fn raw_pages_hold_what_their_kernel_printed() {
    let Some(corpus) = Corpus::find("raw pages against the kernel's text, field by field") else {
        return;
    };
    for name in ["jack-rt612-single-ftrace", "memcached-rt612-ftrace"] {
        let root = corpus.unpack(&format!("lab/{name}.tar.xz"));
        let (events, fields) = check(&root, &root.join("trace.txt"));
        println!("{name}: {events} events, {fields} fields as in the kernel's text");
        assert!(events > 10_000 && fields > events);
    }
}

#[test]
fn trace_dats_hold_what_trace_cmd_reported() {
    let Some(corpus) = Corpus::find("trace.dat against trace-cmd report, field by field") else {
        return;
    };
    let root = corpus.unpack("lab/jack-rt612-trace.dat.tar.xz");
    for name in ["trace", "trace-v6", "trace-func", "trace-timerlat"] {
        let (dat, text) = (format!("{name}.dat"), format!("{name}.report.txt"));
        let (events, fields) = check(&root.join(&dat), &root.join(text));
        println!("{dat}: {events} events, {fields} fields as in trace-cmd's report");
        assert!(events > 100);
    }
    for file in files(&corpus.path().join("kernelshark")) {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut texts = files(&corpus.path().join("expected"));
        texts.retain(|text| text.to_string_lossy().ends_with(&format!("{name}.txt")));
        let Some(text) = texts.first() else { continue };
        let (events, fields) = check(&file, text);
        println!("{name}: {events} events, {fields} fields as in trace-cmd's report");
        assert!(events > 100);
    }
}

/// The files of a directory, in order.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}
