//! All that the metadata says: environment, clocks, stream and event classes.

use std::collections::BTreeMap;
use std::sync::Arc;

use event::{ClassId, EventClass, Result};

use super::attributes::{AttributeValue, Block};
use super::compile::compile;
use super::ctf2;
use super::layout::StreamLayout;
use super::lexer::{Spot, refuse};
use super::metadata::Piece;
use super::parser::Parser;
use super::types::Type;
use super::violations::Violations;
use crate::writer::EnvValue;

/// A clock of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockInfo {
    /// Its name.
    pub name: String,
    /// Ticks per second.
    pub frequency_hz: u64,
    /// Whole seconds from 1970 to the clock's origin.
    pub offset_s: i64,
    /// Ticks to add to that.
    pub offset_cycles: i64,
}

const NS_PER_S: i128 = 1_000_000_000;

impl ClockInfo {
    /// Ticks as nanoseconds, cut to whole ones, exact for every frequency.
    pub fn ns(&self, cycles: i128) -> i64 {
        let hz = i128::from(self.frequency_hz);
        let ns = if hz == NS_PER_S {
            cycles
        } else {
            (cycles * NS_PER_S).div_euclid(hz)
        };
        ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Wall clock (since 1970, UTC) minus this clock, in nanoseconds.
    pub fn wall_offset_ns(&self) -> i64 {
        let seconds = i128::from(self.offset_s) * NS_PER_S;
        let ns = seconds + i128::from(self.ns(self.offset_cycles.into()));
        ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// A stream class as declared.
#[derive(Debug, Default)]
pub(crate) struct StreamDeclaration {
    pub header: Option<Arc<Type>>,
    pub packet_context: Option<Arc<Type>>,
    pub event_context: Option<Arc<Type>>,
}

/// An event class as declared.
#[derive(Debug)]
pub(crate) struct EventDeclaration {
    pub name: String,
    pub id: u64,
    pub stream_id: u64,
    pub context: Option<Arc<Type>>,
    pub fields: Option<Arc<Type>>,
    pub remarks: ClassRemarks,
}

/// What the metadata says of an event class besides its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassRemarks {
    /// How grave its events are, as the tracer counts it: LTTng's least is the gravest.
    pub log_level: Option<i64>,
    /// Where the Eclipse modelling framework describes it.
    pub emf_uri: Option<String>,
}

/// The understood metadata, ready to decode streams with.
#[derive(Debug)]
pub struct Schema {
    /// `1.8` or `2`.
    pub format_version: &'static str,
    /// The `env` block, in its order.
    pub environment: Vec<(String, EnvValue)>,
    /// The clocks, in their order.
    pub clocks: Vec<ClockInfo>,
    /// The trace's UUID.
    pub uuid: Option<[u8; 16]>,
    /// All event classes; ids are indexes into this list.
    pub classes: Arc<[EventClass]>,
    /// Which classes declare fields, be it none.
    pub(crate) has_payload: Vec<bool>,
    /// By class.
    pub(crate) remarks: Vec<ClassRemarks>,
    pub(crate) streams: BTreeMap<u64, StreamLayout>,
    pub(crate) packet_header: Option<super::layout::Node>,
    /// Where the metadata breaks the standard and was read all the same.
    pub violations: Violations,
}

/// What the blocks of the metadata say, before layouts are compiled.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    pub environment: Vec<(String, EnvValue)>,
    pub clocks: Vec<ClockInfo>,
    pub uuid: Option<[u8; 16]>,
    pub packet_header: Option<Arc<Type>>,
    pub streams: BTreeMap<u64, StreamDeclaration>,
    pub events: Vec<EventDeclaration>,
    pub violations: Violations,
}

impl Schema {
    /// Reads the metadata's text: TSDL of CTF 1.8, or the JSON fragments of CTF 2.
    ///
    /// # Errors
    /// [`event::ErrorKind::Corrupt`] with the line and what was found there.
    pub fn parse(text: &str) -> Result<Schema> {
        Schema::parse_pieces(text, &[], None)
    }

    /// The same of a text of which pieces lie in a file, in packets of this byte order.
    pub(crate) fn parse_pieces(
        text: &str,
        pieces: &[Piece],
        packets_are_big: Option<bool>,
    ) -> Result<Schema> {
        if ctf2::is_ctf2(text) {
            return compile(ctf2::declarations(text)?, "2");
        }
        let mut parser = Parser::new(text, pieces);
        let mut declared = Declarations::default();
        parser.check_text(packets_are_big);
        let read = declared.read(&mut parser);
        declared.violations = parser.take_violations();
        parser.into_failure().map_or(read, Err)?;
        if declared.streams.is_empty() {
            declared.streams.insert(0, StreamDeclaration::default());
        }
        compile(declared, "1.8")
    }

    /// The clock that all instants are on: the first.
    pub fn base_clock(&self) -> Option<&ClockInfo> {
        self.clocks.first()
    }

    /// Whether a class declares a payload, be it an empty one.
    pub fn has_payload(&self, class: ClassId) -> bool {
        self.has_payload
            .get(class.0 as usize)
            .copied()
            .unwrap_or(false)
    }

    /// Whether events of a class have a time.
    pub fn is_timed(&self, class: ClassId) -> bool {
        let class = self.classes.get(class.0 as usize);
        let stream = class.and_then(|class| self.streams.get(&u64::from(class.stream)));
        stream.is_some_and(|stream| stream.clock.is_some()) && self.base_clock().is_some()
    }

    /// What is said of a class besides its fields.
    pub fn remarks(&self, class: ClassId) -> Option<&ClassRemarks> {
        self.remarks.get(class.0 as usize)
    }

    /// Whether the tracer wrote an end into packets that their last event may lie behind: LTTng
    /// before 2.11 read the clock for it too early.
    pub(crate) fn ends_packets_early(&self) -> bool {
        let number = |key| match self.env(key) {
            Some(EnvValue::Integer(number)) => Some(*number),
            _ => None,
        };
        let is_lttng = matches!(self.env("tracer_name"),
            Some(EnvValue::Text(name)) if name.starts_with("lttng-"));
        let version = number("tracer_major").zip(number("tracer_minor"));
        is_lttng && version.is_some_and(|version| version < (2, 11))
    }

    /// An entry of the environment.
    pub fn env(&self, name: &str) -> Option<&EnvValue> {
        self.environment
            .iter()
            .find_map(|(key, value)| (key == name).then_some(value))
    }
}

impl Declarations {
    /// All blocks of TSDL.
    fn read(&mut self, parser: &mut Parser<'_>) -> Result<()> {
        if parser.at_end() {
            return Err(refuse(parser.spot(), "no declaration at all"));
        }
        let mut without_stream = Vec::new();
        while !parser.at_end() {
            if parser.accept(";") || parser.declaration()? {
                continue;
            }
            let at = parser.next_at();
            let name = parser.word()?;
            let block = parser.block()?;
            parser.check_block(name, &block);
            if name == "event" && block.value("stream_id").is_none() {
                without_stream.push(at);
            }
            self.add(name, &block, &|| parser.spot_of(at))?;
        }
        for at in without_stream {
            if self.streams.len() > 1 {
                parser.violates(at, "an event without a stream_id where streams are several");
            }
        }
        Ok(())
    }

    /// Adds a block that begins at `spot`: a line is counted only where something is wrong.
    fn add(&mut self, name: &str, block: &Block<'_>, spot: &dyn Fn() -> Spot) -> Result<()> {
        let id = |key: &str| {
            block
                .number(key)
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or(0)
        };
        match name {
            "trace" => {
                let number = |key: &str, unsaid| block.number(key).unwrap_or(unsaid);
                let (major, minor) = (number("major", 1), number("minor", 8));
                if (major, minor) != (1, 8) {
                    let found = format!("version {major}.{minor} of CTF, not 1.8");
                    return Err(refuse(spot(), found));
                }
                self.packet_header = block.ty("packet.header").cloned();
                self.uuid = block.text("uuid").and_then(uuid);
            }
            "env" => self
                .environment
                .extend(block.values.iter().map(|(key, value)| {
                    let value = match value {
                        AttributeValue::Number(number) => EnvValue::Integer(*number as i64),
                        AttributeValue::Text(text) | AttributeValue::Path(text) => {
                            EnvValue::Text(text.clone().into_owned())
                        }
                    };
                    (key.clone().into_owned(), value)
                })),
            "clock" => self.clocks.push(clock(block, spot)?),
            "stream" => {
                let stream = StreamDeclaration {
                    header: block.ty("event.header").cloned(),
                    packet_context: block.ty("packet.context").cloned(),
                    event_context: block.ty("event.context").cloned(),
                };
                if self.streams.insert(id("id"), stream).is_some() {
                    return Err(refuse(spot(), format!("the stream {} twice", id("id"))));
                }
            }
            "event" => {
                let only = self.streams.keys().next().copied().unwrap_or(0);
                let stream_id = block
                    .number("stream_id")
                    .and_then(|n| u64::try_from(n).ok());
                self.events.push(EventDeclaration {
                    name: block.text("name").unwrap_or_default().to_owned(),
                    id: id("id"),
                    stream_id: stream_id.unwrap_or(only),
                    context: block.ty("context").cloned(),
                    fields: block.ty("fields").cloned(),
                    remarks: ClassRemarks {
                        log_level: block.number("loglevel").and_then(|n| n.try_into().ok()),
                        emf_uri: block.text("model.emf.uri").map(str::to_owned),
                    },
                });
            }
            "callsite" => {}
            other => return Err(refuse(spot(), format!("the unknown block '{other}'"))),
        }
        Ok(())
    }
}

fn clock(block: &Block<'_>, spot: &dyn Fn() -> Spot) -> Result<ClockInfo> {
    let signed = |key| {
        block
            .number(key)
            .and_then(|n| i64::try_from(n).ok())
            .unwrap_or(0)
    };
    let frequency = block.number("freq").unwrap_or(NS_PER_S);
    let Some(frequency_hz) = u64::try_from(frequency).ok().filter(|hz| *hz > 0) else {
        return Err(refuse(spot(), format!("a clock of {frequency} Hz")));
    };
    let name = block.text("name").unwrap_or_default().to_owned();
    let (offset_s, offset_cycles) = (signed("offset_s"), signed("offset"));
    Ok(ClockInfo {
        name,
        frequency_hz,
        offset_s,
        offset_cycles,
    })
}

pub(super) fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    let mut uuid = [0; 16];
    for (byte, place) in uuid.iter_mut().zip((0..32).step_by(2)) {
        *byte = u8::from_str_radix(&digits[place..place + 2], 16).ok()?;
    }
    Some(uuid)
}
