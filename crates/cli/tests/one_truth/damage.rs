//! Recordings on disk whose bytes are overwritten or cut off.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use event::{Scope, TimeRange, Value};
use export::{Format, sink};
use proptest::prelude::*;
use tempfile::TempDir;
use trace::{EventView, Item, Trace};

/// What happens to the bytes of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All bits are set in so many bytes.
    Ones(usize),
    /// The rest is gone.
    Cut,
}

/// Damage to one stream's file.
#[derive(Clone, Copy, Debug)]
pub struct Damage {
    /// Which of the streams, modulo their number.
    pub stream: usize,
    /// Where, in thousandths of the file.
    pub at: usize,
    pub kind: Kind,
}

impl Damage {
    /// Any damage.
    pub fn any() -> impl Strategy<Value = Damage> {
        let kind = prop_oneof![
            Just(Kind::Ones(64)),
            Just(Kind::Ones(4096)),
            Just(Kind::Cut)
        ];
        (0usize..4, 0usize..1000, kind).prop_map(|(stream, at, kind)| Damage { stream, at, kind })
    }

    /// Does it to the bytes.
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        let at = bytes.len() * self.at / 1000;
        match self.kind {
            Kind::Ones(count) => {
                let end = bytes.len().min(at + count);
                bytes[at..end].fill(0xff);
            }
            Kind::Cut => bytes.truncate(at),
        }
    }
}

/// A trace, and the folder that it lies in, if it is on disk.
pub struct Opened {
    trace: Trace,
    _dir: Option<TempDir>,
}

impl Deref for Opened {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.trace
    }
}

impl From<Trace> for Opened {
    fn from(trace: Trace) -> Opened {
        Opened { trace, _dir: None }
    }
}

/// The files of a trace that hold events.
pub fn streams(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_file());
    let mut files: Vec<_> = files.filter(|path| !path.ends_with("metadata")).collect();
    files.sort();
    files
}

/// An event as text: when, where, what.
fn event_text(trace: &Trace, event: &EventView<'_>) -> String {
    let class = &trace.classes()[event.class().0 as usize];
    let payload = class
        .fields
        .iter()
        .filter(|field| field.scope == Scope::Payload);
    let ids = payload.filter_map(|field| class.field(&field.name));
    let values: Vec<Value<'_>> = ids.map(|id| event.value(id)).collect();
    let (at_ns, cpu) = (event.time().as_ns(), event.cpu());
    format!("{at_ns} {cpu:?} {} {values:?}", class.name)
}

fn events(trace: &Trace) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Ok(Some(item)) = cursor.next() {
        if let Item::Event(event) = item {
            texts.insert(event_text(trace, &event));
        }
    }
    texts
}

impl Opened {
    /// Whether all its events are those of the trace that was damaged: none reads as another.
    pub fn is_only_less_than(&self, whole: &Trace) -> bool {
        events(&self.trace).is_subset(&events(whole))
    }
}

/// The trace as CTF on disk, damaged.
///
/// # Panics
/// When it cannot be written or opened.
pub fn damaged(trace: &Trace, damage: &Damage) -> Opened {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("trace");
    let mut sink = sink(Format::Ctf1, trace, &path).expect("a sink");
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("memory can be walked") {
        match item {
            Item::Event(event) => sink.event(&event).expect("written"),
            Item::Lost(lost) => sink.lost(&lost).expect("written"),
            Item::Damage(_) => (),
        }
    }
    sink.finish().expect("written");
    let files = streams(&path);
    let file = &files[damage.stream % files.len()];
    let mut bytes = fs::read(file).expect("the stream");
    damage.apply(&mut bytes);
    fs::write(file, bytes).expect("damaged");
    let trace = Trace::open(&path).expect("a damaged stream is no reason to refuse");
    Opened {
        trace,
        _dir: Some(dir),
    }
}
