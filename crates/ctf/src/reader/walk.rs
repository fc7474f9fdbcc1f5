//! Walks over data along a layout: skips it, and keeps what later parts refer to.

use event::{Value, WideEncoding};

use super::bits::{IntLoad, LEB128_BYTES_MAX, Order, align_up, first_zero, lossy, until_zero};
use super::float;
use super::layout::{IntNode, MemberNode, Node, NodeKind, Role, Shows, Span};
use super::packet_facts::PacketFacts;
use super::schema::Schema;
use super::types::Range;

/// Why a walk ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The data reaches beyond the packet's content.
    Truncated,
    /// No choice of a variant belongs to the selector's value.
    NoChoice(i64),
    /// More parts than a packet of this size can hold.
    TooManyParts,
    /// An integer of variable length that does not end within 64 bits.
    LongInteger,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Truncated => f.write_str("a field reaches beyond the packet's content"),
            Stop::NoChoice(value) => write!(f, "the selector {value} means no choice of a variant"),
            Stop::LongInteger => {
                f.write_str("an integer of variable length that does not end within 64 bits")
            }
            Stop::TooManyParts => f.write_str("more parts than a packet of this size can hold"),
        }
    }
}

/// What a walk learns. One per stream, used again for each event.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// Values that lengths and selectors refer to.
    pub slots: Vec<u64>,
    /// The id that the last header gave.
    pub event_id: u64,
    /// The stream's clock, in ticks.
    pub clock: u64,
    /// Whether the packet's context has set the clock.
    pub clock_is_set: bool,
    /// The clock's bits at the packet's end, and how many there are.
    pub end: Option<(u32, u64)>,
    /// What the packet's header and context said.
    pub facts: PacketFacts,
    /// Parts that may still be walked in this packet.
    pub fuel: u64,
}

/// Parts that may be walked in a packet of any size, and for each of its bits.
const FUEL_MIN: u64 = 1 << 16;
const FUEL_PER_BIT: u64 = 16;

impl State {
    /// For the streams of a trace, with a slot for each value that is referred to.
    pub fn new(schema: &Schema) -> State {
        let slots = schema.streams.values().map(|stream| stream.slot_count);
        State {
            slots: vec![0; slots.max().unwrap_or(0)],
            ..State::default()
        }
    }

    /// Allows as many parts as a packet of `bits` can sensibly hold.
    pub fn refuel(&mut self, bits: u64) {
        self.fuel = FUEL_MIN.saturating_add(bits.saturating_mul(FUEL_PER_BIT));
    }

    fn burn(&mut self) -> Result<(), Stop> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Stop::TooManyParts)?;
        Ok(())
    }

    /// Keeps the value of an integer of `bits` for those who asked.
    fn keep(&mut self, int: &IntNode, value: u64, bits: u32) {
        for slot in [int.slot, int.later_slot].into_iter().flatten() {
            if let Some(kept) = self.slots.get_mut(usize::from(slot)) {
                *kept = value;
            }
        }
        let facts = &mut self.facts;
        match int.role {
            Role::None => {}
            Role::EventId => self.event_id = value,
            Role::Clock(_) => self.advance_clock(bits, value),
            Role::PacketEnd => self.end = Some((bits, value)),
            Role::Magic => facts.magic = Some(value),
            Role::StreamClassId => facts.stream_class = Some(value),
            Role::StreamId => facts.stream = Some(value),
            Role::PacketBits => facts.packet_bits = Some(value),
            Role::ContentBits => facts.content_bits = Some(value),
            Role::Discarded => facts.discarded = Some((value, low_bits(bits))),
            Role::Sequence => facts.sequence = Some(value),
            Role::Cpu => facts.cpu = u32::try_from(value).ok(),
        }
    }

    /// The clock moves forward to the next instant whose low `bits` are `value`.
    #[inline]
    pub fn advance_clock(&mut self, bits: u32, value: u64) {
        self.clock = self.extended(bits, value);
        self.clock_is_set = true;
    }

    /// The next instant from the clock on whose low `bits` are `value`.
    #[inline]
    pub fn extended(&self, bits: u32, value: u64) -> u64 {
        extended(self.clock, bits, value)
    }

    fn slot(&self, slot: u16) -> u64 {
        self.slots.get(usize::from(slot)).copied().unwrap_or(0)
    }
}

/// The next instant from `clock` on whose low `bits` are `value`.
#[inline]
pub(super) fn extended(clock: u64, bits: u32, value: u64) -> u64 {
    if bits >= 64 {
        return value;
    }
    let mask = low_bits(bits);
    let value = value & mask;
    let wrapped = value < clock & mask;
    let high = (clock & !mask).wrapping_add(if wrapped { mask + 1 } else { 0 });
    high | value
}

/// The lowest `bits`, of which there are 1 to 64.
#[inline]
fn low_bits(bits: u32) -> u64 {
    u64::MAX >> (64 - bits.clamp(1, 64))
}

/// The content of one packet, or the part of it that is in memory; positions are bits from the
/// first byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content<'p> {
    pub bytes: &'p [u8],
    pub end_bits: u64,
}

impl<'p> Content<'p> {
    /// The position `size_bits` after `start`, if the content reaches so far.
    #[inline]
    pub fn after(&self, start: u64, size_bits: u64) -> Result<u64, Stop> {
        let end = start
            .checked_add(size_bits)
            .filter(|end| *end <= self.end_bits);
        end.ok_or(Stop::Truncated)
    }

    #[inline]
    pub fn int(&self, load: IntLoad, start: u64) -> Result<u64, Stop> {
        self.after(start, u64::from(load.size_bits))?;
        load.read(self.bytes, start).ok_or(Stop::Truncated)
    }

    /// An integer of fixed or variable length: its value, its bits that count, and its end.
    fn integer(&self, load: IntLoad, start: u64) -> Result<(u64, u32, u64), Stop> {
        if load.order != Order::Leb128 {
            let end = self.after(start, u64::from(load.size_bits))?;
            let value = load.read(self.bytes, start).ok_or(Stop::Truncated)?;
            return Ok((value, u32::from(load.size_bits), end));
        }
        let Some((value, count)) = load.read_leb128(self.bytes, start) else {
            let longest = LEB128_BYTES_MAX as u64 * 8;
            return Err(match self.after(start, longest) {
                Ok(_) => Stop::LongInteger,
                Err(stop) => stop,
            });
        };
        let end = self.after(start, count as u64 * 8)?;
        Ok((value, count as u32 * 7, end))
    }

    /// `size_bytes` bytes from a byte's border.
    pub fn take(&self, start: u64, size_bytes: u64) -> Option<&'p [u8]> {
        let at = usize::try_from(start / 8).ok()?;
        let end = at.checked_add(usize::try_from(size_bytes).ok()?)?;
        self.bytes.get(at..end)
    }

    /// How many bytes a text or blob has and where it ends, its closing zero included.
    fn span(
        &self,
        span: Span,
        unit_bytes: u8,
        start: u64,
        state: &State,
    ) -> Result<(u64, u64), Stop> {
        let size_bytes = match span {
            Span::Bytes(bytes) => bytes,
            Span::Slot(slot) => state.slot(slot),
            Span::Terminated => {
                let at = usize::try_from(start / 8).map_err(|_| Stop::Truncated)?;
                let rest = self.bytes.get(at..).ok_or(Stop::Truncated)?;
                let unit = usize::from(unit_bytes.max(1));
                let is_zero = |unit: &[u8]| unit.iter().all(|byte| *byte == 0);
                let units = rest.chunks_exact(unit).position(is_zero);
                let size = (units.ok_or(Stop::Truncated)? * unit) as u64;
                return Ok((size, self.after(start, (size + unit as u64) * 8)?));
            }
        };
        let bits = size_bytes.checked_mul(8).ok_or(Stop::Truncated)?;
        Ok((size_bytes, self.after(start, bits)?))
    }

    /// The bytes from `start` up to the first zero, and the position after that.
    pub fn string(&self, start: u64) -> Result<(&'p [u8], u64), Stop> {
        let rest = usize::try_from(start / 8)
            .ok()
            .and_then(|at| self.bytes.get(at..));
        let rest = rest.ok_or(Stop::Truncated)?;
        let length = first_zero(rest).ok_or(Stop::Truncated)?;
        let end = self.after(start, (length as u64 + 1) * 8)?;
        Ok((&rest[..length], end))
    }

    /// `size_bytes` bytes from a byte's border, up to the first zero.
    pub fn text(&self, start: u64, size_bytes: u64) -> Option<&'p [u8]> {
        self.take(start, size_bytes).map(until_zero)
    }

    /// The position after `node`, which begins at the next place that its alignment allows.
    pub fn skip(&self, node: &Node, position: u64, state: &mut State) -> Result<u64, Stop> {
        let start = align_up(position, node.align_bits);
        if let Some(size) = node.size_bits.filter(|_| !node.keeps) {
            return self.after(start, size);
        }
        state.burn()?;
        match &node.kind {
            NodeKind::Int(int) => {
                let (value, bits, end) = self.integer(int.load, start)?;
                state.keep(int, value, bits);
                Ok(end)
            }
            NodeKind::Float { load } => self.after(start, u64::from(load.size_bits)),
            NodeKind::String => self.string(start).map(|(_, end)| end),
            NodeKind::Wide { encoding, span } => {
                let unit_bytes = encoding.unit_bytes;
                self.span(*span, unit_bytes, start, state)
                    .map(|(_, end)| end)
            }
            NodeKind::Blob(span) => self.span(*span, 1, start, state).map(|(_, end)| end),
            NodeKind::Optional {
                slot,
                signed,
                content,
                ranges,
            } => match is_present(ranges.as_deref(), state.slot(*slot), *signed) {
                true => self.skip(content, start, state),
                false => Ok(start),
            },
            NodeKind::Struct(members) => members.iter().try_fold(start, |position, member| {
                self.skip(&member.node, position, state)
            }),
            NodeKind::Array { element, count, .. } => {
                self.skip_elements(element, *count, start, state)
            }
            NodeKind::Sequence { element, slot, .. } => {
                self.skip_elements(element, state.slot(*slot), start, state)
            }
            NodeKind::Variant {
                slot,
                signed,
                choices,
                ranges,
            } => {
                let choice = choose(ranges, choices, state.slot(*slot), *signed)?;
                self.skip(&choice.node, start, state)
            }
        }
    }

    fn skip_elements(
        &self,
        element: &Node,
        count: u64,
        start: u64,
        state: &mut State,
    ) -> Result<u64, Stop> {
        if let Some(size) = element.size_bits.filter(|_| !element.keeps) {
            let stride = align_up(size, element.align_bits);
            let Some(before_last) = count.checked_sub(1) else {
                return Ok(start);
            };
            let all = stride
                .checked_mul(before_last)
                .and_then(|bits| bits.checked_add(size));
            return self.after(start, all.ok_or(Stop::Truncated)?);
        }
        let mut position = start;
        for _ in 0..count {
            position = self.skip(element, position, state)?;
        }
        Ok(position)
    }

    /// The decoded value of `node` and the position after it. A variant is a structure with the
    /// chosen member alone.
    pub fn value<'n>(
        &self,
        node: &'n Node,
        position: u64,
        state: &mut State,
    ) -> Result<(Value<'n>, u64), Stop>
    where
        'p: 'n,
    {
        state.burn()?;
        let start = align_up(position, node.align_bits);
        match &node.kind {
            NodeKind::Int(int) => {
                let (raw, bits, end) = self.integer(int.load, start)?;
                state.keep(int, raw, bits);
                Ok((integer_value(int, raw), end))
            }
            NodeKind::Float { load } => {
                let end = self.after(start, u64::from(load.size_bits))?;
                let float = float::read(self.bytes, *load, start).ok_or(Stop::Truncated)?;
                Ok((Value::Float(float), end))
            }
            NodeKind::String => {
                let (text, end) = self.string(start)?;
                Ok((Value::Text(lossy(text)), end))
            }
            NodeKind::Wide { encoding, span } => {
                let unit_bytes = encoding.unit_bytes;
                let (size, end) = self.span(*span, unit_bytes, start, state)?;
                let bytes = self.take(start, size).ok_or(Stop::Truncated)?;
                Ok((Value::Text(wide_text(bytes, *encoding).into()), end))
            }
            NodeKind::Blob(span) => {
                let (size, end) = self.span(*span, 1, start, state)?;
                let bytes = self.take(start, size).ok_or(Stop::Truncated)?;
                Ok((Value::Blob(bytes), end))
            }
            NodeKind::Optional {
                slot,
                signed,
                content,
                ranges,
            } => match is_present(ranges.as_deref(), state.slot(*slot), *signed) {
                true => self.value(content, start, state),
                false => Ok((Value::Absent, start)),
            },
            NodeKind::Struct(members) => self.members(members, start, state),
            NodeKind::Array {
                element,
                count,
                text,
            } => self.elements(element, *count, *text, start, state),
            NodeKind::Sequence {
                element,
                slot,
                text,
            } => self.elements(element, state.slot(*slot), *text, start, state),
            NodeKind::Variant {
                slot,
                signed,
                choices,
                ranges,
            } => {
                let choice = choose(ranges, choices, state.slot(*slot), *signed)?;
                let (value, end) = self.value(&choice.node, start, state)?;
                Ok((Value::Struct(vec![(choice.shown(), value)]), end))
            }
        }
    }

    fn members<'n>(
        &self,
        members: &'n [MemberNode],
        start: u64,
        state: &mut State,
    ) -> Result<(Value<'n>, u64), Stop>
    where
        'p: 'n,
    {
        let mut position = start;
        let mut values = Vec::with_capacity(members.len());
        for member in members {
            let (value, end) = self.value(&member.node, position, state)?;
            values.push((member.shown(), value));
            position = end;
        }
        Ok((Value::Struct(values), position))
    }

    fn elements<'n>(
        &self,
        element: &'n Node,
        count: u64,
        text: bool,
        start: u64,
        state: &mut State,
    ) -> Result<(Value<'n>, u64), Stop>
    where
        'p: 'n,
    {
        if text {
            let end = self.after(start, count.checked_mul(8).ok_or(Stop::Truncated)?)?;
            let bytes = self.text(start, count).ok_or(Stop::Truncated)?;
            return Ok((Value::Text(lossy(bytes)), end));
        }
        let mut position = start;
        let mut values = Vec::new();
        for _ in 0..count {
            let (value, end) = self.value(element, position, state)?;
            values.push(value);
            position = end;
        }
        Ok((Value::Array(values), position))
    }
}

fn integer_value(int: &IntNode, raw: u64) -> Value<'_> {
    let signed = int.load.signed;
    let mappings = int.mappings.as_deref().unwrap_or_default();
    match int.shows {
        Shows::Number if signed => Value::Signed(raw as i64),
        Shows::Number => Value::Unsigned(raw),
        Shows::Truth => Value::Bool(raw != 0),
        Shows::Label => {
            let wide = widen(raw, signed);
            let label = mappings
                .iter()
                .find(|mapping| (mapping.first..=mapping.last).contains(&wide));
            Value::Enum {
                value: raw as i64,
                label: label.map(|mapping| &*mapping.label),
            }
        }
        Shows::Flags => {
            let is_set = |first: i128, last: i128| {
                let mut bits = first.max(0)..=last.min(63);
                bits.any(|bit| raw >> bit & 1 == 1)
            };
            let mut labels = Vec::new();
            for mapping in mappings {
                let label = &*mapping.label;
                if is_set(mapping.first, mapping.last) && !labels.contains(&label) {
                    labels.push(label);
                }
            }
            Value::Flags { bits: raw, labels }
        }
    }
}

/// Whether an optional field is there.
fn is_present(ranges: Option<&[(i128, i128)]>, raw: u64, signed: bool) -> bool {
    let wide = widen(raw, signed);
    ranges.map_or(raw != 0, |ranges| {
        ranges
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&wide))
    })
}

/// UTF-16 or UTF-32 up to the first zero; what is neither is replaced.
fn wide_text(bytes: &[u8], encoding: WideEncoding) -> String {
    let unit = |bytes: &[u8]| {
        let fold = |word: u32, byte: &u8| word << 8 | u32::from(*byte);
        match encoding.big_endian {
            true => bytes.iter().fold(0, fold),
            false => bytes.iter().rev().fold(0, fold),
        }
    };
    let units = bytes
        .chunks_exact(usize::from(encoding.unit_bytes.max(1)))
        .map(unit)
        .take_while(|unit| *unit != 0);
    let or_replaced = |c: Option<char>| c.unwrap_or(char::REPLACEMENT_CHARACTER);
    match encoding.unit_bytes {
        2 => char::decode_utf16(units.map(|unit| unit as u16))
            .map(|c| or_replaced(c.ok()))
            .collect(),
        _ => units
            .map(|unit| or_replaced(char::from_u32(unit)))
            .collect(),
    }
}

fn widen(raw: u64, signed: bool) -> i128 {
    if signed {
        i128::from(raw as i64)
    } else {
        i128::from(raw)
    }
}

fn choose<'n>(
    ranges: &[Range],
    choices: &'n [MemberNode],
    raw: u64,
    signed: bool,
) -> Result<&'n MemberNode, Stop> {
    let wide = widen(raw, signed);
    let range = ranges
        .iter()
        .find(|range| (range.first..=range.last).contains(&wide));
    let choice = range.and_then(|range| choices.get(range.choice as usize));
    choice.ok_or(Stop::NoChoice(raw as i64))
}
