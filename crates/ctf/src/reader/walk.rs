//! Walks over data along a layout: skips it, and keeps what later parts refer to.

use event::Value;

use super::bits::{IntLoad, align_up, lossy, until_zero};
use super::layout::{IntNode, MemberNode, Node, NodeKind, Range, Role};

/// Why a walk ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The data reaches beyond the packet's content.
    Truncated,
    /// No choice of a variant belongs to the selector's value.
    NoChoice(i64),
    /// More parts than a packet of this size can hold.
    TooManyParts,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Truncated => f.write_str("a field reaches beyond the packet's content"),
            Stop::NoChoice(value) => write!(f, "the selector {value} means no choice of a variant"),
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
    /// Parts that may still be walked in this packet.
    pub fuel: u64,
}

/// Parts that may be walked in a packet of any size, and for each of its bits.
const FUEL_MIN: u64 = 1 << 16;
const FUEL_PER_BIT: u64 = 16;

impl State {
    /// Allows as many parts as a packet of `bits` can sensibly hold.
    pub fn refuel(&mut self, bits: u64) {
        self.fuel = FUEL_MIN.saturating_add(bits.saturating_mul(FUEL_PER_BIT));
    }

    fn burn(&mut self) -> Result<(), Stop> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Stop::TooManyParts)?;
        Ok(())
    }

    fn keep(&mut self, int: &IntNode, value: u64) {
        if let Some(kept) = int
            .slot
            .and_then(|slot| self.slots.get_mut(usize::from(slot)))
        {
            *kept = value;
        }
        match int.role {
            Role::None => {}
            Role::EventId => self.event_id = value,
            Role::Clock(_) => self.advance_clock(int.load, value),
        }
    }

    /// The clock moves forward to the next instant whose low bits are `value`.
    pub fn advance_clock(&mut self, load: IntLoad, value: u64) {
        if load.size_bits >= 64 {
            self.clock = value;
            return;
        }
        let mask = (1u64 << load.size_bits) - 1;
        let value = value & mask;
        let wrapped = value < self.clock & mask;
        let high = (self.clock & !mask).wrapping_add(if wrapped { mask + 1 } else { 0 });
        self.clock = high | value;
    }

    fn slot(&self, slot: u16) -> u64 {
        self.slots.get(usize::from(slot)).copied().unwrap_or(0)
    }
}

/// The content of one packet; positions are bits from its first byte.
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

    pub fn int(&self, load: IntLoad, start: u64) -> Result<u64, Stop> {
        self.after(start, u64::from(load.size_bits))?;
        load.read(self.bytes, start).ok_or(Stop::Truncated)
    }

    /// The bytes from `start` up to the first zero, and the position after that.
    pub fn string(&self, start: u64) -> Result<(&'p [u8], u64), Stop> {
        let rest = usize::try_from(start / 8)
            .ok()
            .and_then(|at| self.bytes.get(at..));
        let rest = rest.ok_or(Stop::Truncated)?;
        let length = rest
            .iter()
            .position(|byte| *byte == 0)
            .ok_or(Stop::Truncated)?;
        let end = self.after(start, (length as u64 + 1) * 8)?;
        Ok((&rest[..length], end))
    }

    /// `size_bytes` bytes from a byte's border, up to the first zero.
    pub fn text(&self, start: u64, size_bytes: u64) -> Option<&'p [u8]> {
        let at = usize::try_from(start / 8).ok()?;
        let end = at.checked_add(usize::try_from(size_bytes).ok()?)?;
        self.bytes.get(at..end).map(until_zero)
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
                state.keep(int, self.int(int.load, start)?);
                self.after(start, u64::from(int.load.size_bits))
            }
            NodeKind::Float { load } => self.after(start, u64::from(load.size_bits)),
            NodeKind::String => self.string(start).map(|(_, end)| end),
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
                let raw = self.int(int.load, start)?;
                state.keep(int, raw);
                let end = self.after(start, u64::from(int.load.size_bits))?;
                Ok((integer_value(int, raw), end))
            }
            NodeKind::Float { load } => {
                let raw = self.int(*load, start)?;
                let float = match load.size_bits {
                    32 => f64::from(f32::from_bits(raw as u32)),
                    _ => f64::from_bits(raw),
                };
                Ok((
                    Value::Float(float),
                    self.after(start, u64::from(load.size_bits))?,
                ))
            }
            NodeKind::String => {
                let (text, end) = self.string(start)?;
                Ok((Value::Text(lossy(text)), end))
            }
            NodeKind::Struct(members) => {
                let mut position = start;
                let mut values = Vec::with_capacity(members.len());
                for member in members {
                    let (value, end) = self.value(&member.node, position, state)?;
                    values.push((member.shown(), value));
                    position = end;
                }
                Ok((Value::Struct(values), position))
            }
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
    let Some(mappings) = &int.mappings else {
        return if signed {
            Value::Signed(raw as i64)
        } else {
            Value::Unsigned(raw)
        };
    };
    let wide = widen(raw, signed);
    let label = mappings
        .iter()
        .find(|mapping| (mapping.first..=mapping.last).contains(&wide));
    Value::Enum {
        value: raw as i64,
        label: label.map(|mapping| &*mapping.label),
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
