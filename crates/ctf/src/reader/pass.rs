//! Passing over events that nobody wants, without looking at their fields.
//!
//! A filter knows before the first event which classes cannot match. Their events cost a header and
//! an addition where the class has one size, else a look at what its size depends on.

use std::sync::Arc;

use super::bits::align_up;
use super::header;
use super::layout::{ClassLayout, HeaderForm, QuickHeader, StreamLayout};
use super::sizes::BodySteps;
use super::walk::{Content, State, Stop};

/// Which classes are wanted, by their numbers in the schema.
#[derive(Clone, Debug)]
pub(super) struct Passing {
    wanted: Arc<[bool]>,
    /// The stream class that `bodies` are of.
    of: Option<u64>,
    /// By event id.
    bodies: Vec<Body>,
}

/// What is known of the bodies of a class.
#[derive(Clone, Debug)]
enum Body {
    /// Somebody must look at it.
    Look,
    /// Its size in bytes.
    Bytes(usize),
    /// Steps that lead to its end.
    Steps(BodySteps),
    /// Only a walk along its types finds the end.
    Walk,
}

impl Passing {
    pub fn new(wanted: Arc<[bool]>) -> Passing {
        Passing {
            wanted,
            of: None,
            bodies: Vec::new(),
        }
    }

    /// Makes ready for packets of the stream class `id`.
    pub fn enter(&mut self, id: Option<u64>, layout: &StreamLayout) {
        if self.of == id && !self.bodies.is_empty() {
            return;
        }
        self.of = id;
        let bodies = layout.by_id.iter().map(|class| self.body(class.as_deref()));
        self.bodies = bodies.collect();
    }

    fn body(&self, class: Option<&ClassLayout>) -> Body {
        let Some(class) = class.filter(|class| !self.wants(class)) else {
            return Body::Look;
        };
        let size_bytes = class.packed.as_ref().map(|packed| packed.size_bits / 8);
        match size_bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
            Some(bytes) => Body::Bytes(bytes),
            None => BodySteps::of(class).map_or(Body::Walk, Body::Steps),
        }
    }

    fn wants(&self, class: &ClassLayout) -> bool {
        let wanted = self.wanted.get(class.class.0 as usize);
        wanted.is_none_or(|wanted| *wanted)
    }

    /// The position of the first event from `position` on that somebody must look at: because it is
    /// wanted, unknown, damaged or not whole in memory.
    pub fn over(
        &self,
        layout: &StreamLayout,
        content: &Content<'_>,
        mut position: u64,
        state: &mut State,
    ) -> u64 {
        while position < content.end_bits {
            if let Some(quick) = &layout.quick_header {
                position = self.run(quick, content, position, state);
            }
            match self.event(layout, content, position, state) {
                Ok(Some(end)) if end > position => position = end,
                _ => break,
            }
        }
        position
    }

    /// As many events as have a short header and a simple body on whole bytes: most of a kernel's
    /// trace, so that an event costs a few loads.
    fn run(
        &self,
        quick: &QuickHeader,
        content: &Content<'_>,
        position: u64,
        state: &mut State,
    ) -> u64 {
        let end = usize::try_from(content.end_bits / 8).unwrap_or(usize::MAX);
        let bytes = &content.bytes[..end.min(content.bytes.len())];
        let Some(short) = ShortHeader::of(quick).filter(|_| position & 7 == 0) else {
            return position;
        };
        let Ok(mut at) = usize::try_from(position / 8) else {
            return position;
        };
        while let Some((id, time, body)) = short.read(bytes, at) {
            let end = match self.bodies.get(id as usize) {
                Some(Body::Bytes(count)) => body.checked_add(*count),
                Some(Body::Steps(steps)) => steps.end(bytes, body, &mut state.slots),
                _ => None,
            };
            let Some(end) = end.filter(|end| *end <= bytes.len()) else {
                break;
            };
            state.advance_clock(short.time_bits, time);
            at = end;
        }
        at as u64 * 8
    }

    /// The end of the event at `position`; none when somebody must look at it.
    #[inline]
    fn event(
        &self,
        layout: &StreamLayout,
        content: &Content<'_>,
        position: u64,
        state: &mut State,
    ) -> Result<Option<u64>, Stop> {
        // Reading a header twice is as good as once: the clock is there already.
        let body = header::read(layout, content, position, state)?;
        match layout.class(state.event_id) {
            Some(class) if !self.wants(class) => end_of_body(class, content, body, state).map(Some),
            _ => Ok(None),
        }
    }
}

/// LTTng's headers where all parts begin with a byte.
#[derive(Clone, Copy)]
struct ShortHeader {
    is_compact: bool,
    big_endian: bool,
    time_bits: u32,
    align_mask: usize,
    time_align_mask: usize,
}

impl ShortHeader {
    fn of(quick: &QuickHeader) -> Option<ShortHeader> {
        let mask = |align_bits: u32| match align_bits.is_multiple_of(8) {
            true => usize::try_from(align_bits / 8 - 1).ok(),
            false => None,
        };
        let (is_compact, time_bits, time_align_bits) = match quick.form {
            HeaderForm::Compact => (true, 27, 8),
            HeaderForm::Large { time_align_bits } => (false, 32, time_align_bits),
        };
        Some(ShortHeader {
            is_compact,
            big_endian: quick.big_endian,
            time_bits,
            align_mask: mask(quick.align_bits)?,
            time_align_mask: mask(time_align_bits)?,
        })
    }

    /// The id, the time's low bits and where the body begins; none when the header is a long one or
    /// reaches beyond the bytes.
    #[inline]
    fn read(self, bytes: &[u8], at: usize) -> Option<(u32, u64, usize)> {
        let start = (at + self.align_mask) & !self.align_mask;
        let word = |at: usize| {
            let word = bytes.get(at..)?.first_chunk::<4>()?;
            Some(match self.big_endian {
                true => u32::from_be_bytes(*word),
                false => u32::from_le_bytes(*word),
            })
        };
        if self.is_compact {
            let word = word(start)?;
            let (id, time) = match self.big_endian {
                false => (word & 31, word >> 5),
                true => (word >> 27, word & 0x7ff_ffff),
            };
            return (id != 31).then_some((id, time.into(), start + 4));
        }
        let id = bytes.get(start..)?.first_chunk::<2>()?;
        let id = match self.big_endian {
            true => u16::from_be_bytes(*id),
            false => u16::from_le_bytes(*id),
        };
        let time_at = (start + 2 + self.time_align_mask) & !self.time_align_mask;
        (id != u16::MAX).then_some(())?;
        Some((id.into(), word(time_at)?.into(), time_at + 4))
    }
}

/// The end of an event whose body begins at `position`, by its types alone.
fn end_of_body(
    class: &ClassLayout,
    content: &Content<'_>,
    mut position: u64,
    state: &mut State,
) -> Result<u64, Stop> {
    for scope in class.scopes.iter().flatten() {
        let start = align_up(position, scope.node.align_bits);
        position = content.skip(&scope.node, start, state)?;
    }
    Ok(position)
}
