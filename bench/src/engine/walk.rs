//! A walk over a trace in a process of its own:
//! `bench --walk TRACE fields|fields-by-all|middle|NAME`.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use event::{ClassId, EventClass, FieldId, FieldType, Integer, Scope, TimeRange, Value};
use serde_json::json;
use trace::{Cursor, EventView, Item, Trace};

/// The word that asks for it.
pub const WORD: &str = "--walk";
/// Every field with one thread.
pub const FIELDS: &str = "fields";
/// Every field with a thread for each CPU.
pub const FIELDS_BY_ALL: &str = "fields-by-all";
/// Events between two looks at the memory.
const LOOK_EVENTS: u64 = 1 << 20;

/// What a walk found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Walked {
    /// How many events were handed out.
    pub events: u64,
    /// Of all fields, in their order.
    pub checksum: u64,
    /// The most private memory.
    pub private_bytes_max: u64,
    /// To open, index and go to the middle.
    pub open_seek_ms: f64,
    /// To go there again.
    pub seek_again_ms: f64,
}

impl Walked {
    /// Reads what a walking process said.
    ///
    /// # Errors
    /// When it said something else.
    pub fn parse(said: &str) -> Result<Walked> {
        let json: serde_json::Value =
            serde_json::from_str(said).with_context(|| format!("said: {said}"))?;
        let number = |key: &str| {
            json[key]
                .as_u64()
                .with_context(|| format!("no {key}: {said}"))
        };
        let ms = |key: &str| {
            json[key]
                .as_f64()
                .with_context(|| format!("no {key}: {said}"))
        };
        Ok(Walked {
            events: number("events")?,
            checksum: number("checksum")?,
            private_bytes_max: number("private_bytes_max")?,
            open_seek_ms: ms("open_seek_ms")?,
            seek_again_ms: ms("seek_again_ms")?,
        })
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "events": self.events,
            "checksum": self.checksum,
            "private_bytes_max": self.private_bytes_max,
            "open_seek_ms": self.open_seek_ms,
            "seek_again_ms": self.seek_again_ms,
        })
    }
}

/// Walks as the words say, and prints what was found.
///
/// # Errors
/// When the trace cannot be opened or read.
pub fn run(words: &[String]) -> Result<()> {
    let [path, what] = words else {
        anyhow::bail!("{WORD} takes a trace and what to read");
    };
    let walked = match what.as_str() {
        "middle" => middle(Path::new(path))?,
        what => whole(Path::new(path), what)?,
    };
    println!("{}", walked.json());
    Ok(())
}

/// To the middle of the time, twice.
fn middle(path: &Path) -> Result<Walked> {
    let start = Instant::now();
    let trace = Trace::open(path)?;
    let mut walked = Walked::default();
    let range = trace.range().context("the trace has no time")?;
    let half = event::Duration::from_ns(range.end.since(range.begin).as_ns() / 2);
    let rest = TimeRange {
        begin: range.begin + half,
        end: range.end,
    };
    for took_ms in [&mut walked.open_seek_ms, &mut walked.seek_again_ms] {
        let again = Instant::now();
        let mut cursor = trace.cursor(rest);
        while let Some(item) = cursor.next()? {
            if let Item::Event(event) = item {
                anyhow::ensure!(event.time() >= rest.begin, "an event before the middle");
                walked.events += 1;
                break;
            }
        }
        let begin = if walked.events == 1 { start } else { again };
        *took_ms = begin.elapsed().as_secs_f64() * 1e3;
    }
    walked.private_bytes_max = private_bytes();
    Ok(walked)
}

/// Every field of all events, with one thread or with one for each CPU, or of those of one name.
fn whole(path: &Path, what: &str) -> Result<Walked> {
    let trace = Trace::open(path)?;
    let fields = Fields::of(&trace);
    let parts = match what {
        FIELDS => vec![fields.walk(&mut trace.cursor(TimeRange::ALL))?],
        FIELDS_BY_ALL => {
            let threads = std::thread::available_parallelism()?.get();
            trace.map_slices(TimeRange::ALL, threads, |cursor| fields.walk(cursor))?
        }
        name => {
            let has_name = |class: ClassId| trace.classes()[class.0 as usize].name == name;
            vec![fields.walk(&mut trace.cursor_of(TimeRange::ALL, has_name))?]
        }
    };
    // This process ends: the system takes all memory back at once.
    std::mem::forget(trace);
    let sum = parts.iter().map(|part| part.sum);
    let private = parts.iter().map(|part| part.private_bytes_max);
    Ok(Walked {
        events: parts.iter().map(|part| part.events).sum(),
        checksum: sum.fold(Sum::default(), Sum::then).value,
        private_bytes_max: private.max().unwrap_or(0),
        ..Walked::default()
    })
}

/// A checksum that depends on order: a polynomial, so that the sums of parts make that of all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    value: u64,
    terms: u64,
}

impl Sum {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

    #[inline]
    fn add(&mut self, term: u64) {
        self.value = self.value.wrapping_mul(Sum::BASE).wrapping_add(term);
        self.terms += 1;
    }

    /// The sum of all terms of both, these first.
    fn then(self, after: Sum) -> Sum {
        let (mut power, mut factor, mut left) = (1u64, Sum::BASE, after.terms);
        while left > 0 {
            if left & 1 == 1 {
                power = power.wrapping_mul(factor);
            }
            factor = factor.wrapping_mul(factor);
            left >>= 1;
        }
        Sum {
            value: self.value.wrapping_mul(power).wrapping_add(after.value),
            terms: self.terms + after.terms,
        }
    }
}

/// What was found of a part of the time.
struct Part {
    events: u64,
    sum: Sum,
    private_bytes_max: u64,
}

/// How the fields of all classes are read.
struct Fields(Vec<Vec<Reads>>);

impl Fields {
    fn of(trace: &Trace) -> Fields {
        let of_class = |class: &EventClass| {
            // The packet's context belongs to the packet, not to each of its events.
            let fields = class.fields.iter().enumerate();
            let own = fields.filter(|(_, field)| field.scope != Scope::PacketContext);
            own.map(|(place, field)| Reads::of(place, &field.ty))
                .collect()
        };
        Fields(trace.classes().iter().map(of_class).collect())
    }

    fn walk(&self, cursor: &mut Cursor<'_>) -> event::Result<Part> {
        let (mut events, mut sum, mut private_bytes_max) = (0u64, Sum::default(), 0);
        cursor.each(|item| {
            let Item::Event(event) = item else {
                return Ok(());
            };
            // In registers: what is measured is reading.
            let mut with_event = sum;
            for reads in &self.0[event.class().0 as usize] {
                with_event.add(reads.number(event));
            }
            sum = with_event;
            events += 1;
            if events.is_multiple_of(LOOK_EVENTS) {
                private_bytes_max = private_bytes().max(private_bytes_max);
            }
            Ok(())
        })?;
        Ok(Part {
            events,
            sum,
            private_bytes_max: private_bytes().max(private_bytes_max),
        })
    }
}

/// How a field adds to the checksum.
#[derive(Clone, Copy)]
enum Reads {
    Number(FieldId),
    Float(FieldId),
    Text(FieldId),
    Value(FieldId),
}

impl Reads {
    fn of(place: usize, ty: &FieldType) -> Reads {
        let id = FieldId(place as u16);
        let is_text = |ty: &FieldType| matches!(ty, FieldType::Integer(Integer { text: true, .. }));
        match ty {
            FieldType::Integer(_)
            | FieldType::Enum(..)
            | FieldType::Bool(_)
            | FieldType::Flags(..) => Reads::Number(id),
            FieldType::Float { .. } => Reads::Float(id),
            FieldType::String | FieldType::Text { .. } => Reads::Text(id),
            FieldType::Sequence { element, .. } if is_text(element) => Reads::Text(id),
            _ => Reads::Value(id),
        }
    }

    #[inline]
    fn number(self, event: &EventView<'_>) -> u64 {
        match self {
            Reads::Number(id) => event.u64(id),
            Reads::Float(id) => event.f64(id).to_bits(),
            Reads::Text(id) => text_sum(event.text(id)),
            Reads::Value(id) => value_sum(&event.value(id)),
        }
    }
}

/// Of all that a value holds, in its order.
fn value_sum(value: &Value<'_>) -> u64 {
    let mut sum = Sum::default();
    match value {
        Value::Unsigned(number) | Value::Flags { bits: number, .. } => sum.add(*number),
        Value::Signed(number) | Value::Enum { value: number, .. } => sum.add(*number as u64),
        Value::Float(number) => sum.add(number.to_bits()),
        Value::Text(text) => sum.add(text_sum(text.as_bytes())),
        Value::Bool(truth) => sum.add(u64::from(*truth)),
        Value::Blob(bytes) => sum.add(text_sum(bytes)),
        Value::Absent => sum.add(u64::MAX),
        Value::Array(values) => {
            sum.add(values.len() as u64);
            values.iter().for_each(|value| sum.add(value_sum(value)));
        }
        Value::Struct(members) => {
            let values = members.iter().map(|(_, value)| value_sum(value));
            values.for_each(|value| sum.add(value));
        }
    }
    sum.value
}

/// Of all bytes in their order, eight at a time.
fn text_sum(bytes: &[u8]) -> u64 {
    let mut sum = Sum::default();
    let mut words = bytes.chunks_exact(8);
    for word in words.by_ref().filter_map(<[u8]>::first_chunk) {
        sum.add(u64::from_le_bytes(*word));
    }
    let fold = |rest: u64, byte: &u8| rest << 8 | u64::from(*byte);
    sum.add(words.remainder().iter().fold(1, fold));
    sum.value
}

/// Memory of this process that no file backs, now.
fn private_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_parts_make_the_sum_of_all_in_this_order_alone() {
        let sum = |terms: &[u64]| {
            let mut sum = Sum::default();
            terms.iter().for_each(|term| sum.add(*term));
            sum
        };
        let all = [1, 7, 0, u64::MAX, 5];
        for cut in 0..=all.len() {
            let (first, second) = (sum(&all[..cut]), sum(&all[cut..]));
            assert_eq!(first.then(second), sum(&all), "{cut}");
        }
        assert_ne!(sum(&[1, 2]), sum(&[2, 1]));
        assert_ne!(text_sum(b"12345678a"), text_sum(b"a12345678"));
        assert_ne!(text_sum(b"a"), text_sum(b"a\0"));
        let array =
            |numbers: &[u64]| Value::Array(numbers.iter().copied().map(Value::Unsigned).collect());
        assert_ne!(value_sum(&array(&[1, 2])), value_sum(&array(&[2, 1])));
        assert_ne!(value_sum(&array(&[0])), value_sum(&array(&[0, 0])));
    }

    #[test]
    fn what_a_walk_says_is_what_is_read() {
        let walked = Walked {
            events: 3,
            checksum: u64::MAX,
            private_bytes_max: private_bytes(),
            open_seek_ms: 1.5,
            seek_again_ms: 0.25,
        };
        assert!(walked.private_bytes_max > 0);
        assert_eq!(Walked::parse(&walked.json().to_string()).unwrap(), walked);
        assert!(Walked::parse("{}").is_err());
    }
}
