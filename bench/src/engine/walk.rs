//! A walk over a trace in a process of its own: `bench --walk TRACE fields|middle|NAME`.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use event::{FieldId, FieldType, Integer, Scope, TimeRange};
use serde_json::{Value, json};
use trace::{EventView, Item, Trace};

/// The word that asks for it.
pub const WORD: &str = "--walk";
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
        let json: Value = serde_json::from_str(said).with_context(|| format!("said: {said}"))?;
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

    fn json(&self) -> Value {
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

/// Every field of all events, or of those of one name.
fn whole(path: &Path, what: &str) -> Result<Walked> {
    let trace = Trace::open(path)?;
    let name = Some(what).filter(|what| *what != "fields");
    let reads: Vec<Vec<Reads>> = trace
        .classes()
        .iter()
        .map(|class| {
            // The packet's context belongs to the packet, not to each of its events.
            let fields = class.fields.iter().enumerate();
            let own = fields.filter(|(_, field)| field.scope != Scope::PacketContext);
            own.map(|(place, field)| Reads::of(place, &field.ty))
                .collect()
        })
        .collect();
    let mut walked = Walked::default();
    let mut cursor = trace.cursor_of(TimeRange::ALL, |class| {
        name.is_none_or(|name| trace.classes()[class.0 as usize].name == name)
    });
    while let Some(item) = cursor.next()? {
        let Item::Event(event) = item else { continue };
        for reads in &reads[event.class().0 as usize] {
            let more = reads.sum(&event);
            walked.checksum = walked.checksum.rotate_left(7).wrapping_add(more);
        }
        walked.events += 1;
        if walked.events.is_multiple_of(LOOK_EVENTS) {
            walked.private_bytes_max = walked.private_bytes_max.max(private_bytes());
        }
    }
    walked.private_bytes_max = walked.private_bytes_max.max(private_bytes());
    Ok(walked)
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

    fn sum(self, event: &EventView<'_>) -> u64 {
        match self {
            Reads::Number(id) => event.u64(id),
            Reads::Float(id) => event.f64(id).to_bits(),
            Reads::Text(id) => {
                let fold = |sum: u64, byte: &u8| sum.rotate_left(5) ^ u64::from(*byte);
                event.text(id).iter().fold(0, fold)
            }
            Reads::Value(id) => format!("{:?}", event.value(id)).len() as u64,
        }
    }
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
