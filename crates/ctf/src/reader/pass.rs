//! Passing over events that nobody wants, without looking at their fields.
//!
//! A filter knows before the first event which classes cannot match. Their events cost a header and
//! an addition where the class has one size, else a look at what its size depends on.

use std::sync::Arc;

use super::bits::align_up;
use super::header::{self, ByteHeader, Said};
use super::layout::{BodyLayout, ClassLayout, QuickHeader, StreamLayout};
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
    /// By event id: how many bytes the bodies have that are all of one size.
    sizes: Vec<Option<u32>>,
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
            sizes: Vec::new(),
        }
    }

    /// Makes ready for packets of the stream class `id`.
    pub fn enter(&mut self, id: Option<u64>, layout: &StreamLayout) {
        if self.of == id && !self.bodies.is_empty() {
            return;
        }
        self.of = id;
        let bodies = layout.by_id.iter().map(|class| self.body(class.as_ref()));
        self.bodies = bodies.collect();
        let size = |body: &Body| match body {
            Body::Bytes(bytes) => u32::try_from(*bytes).ok(),
            _ => None,
        };
        self.sizes = self.bodies.iter().map(size).collect();
    }

    fn body(&self, class: Option<&ClassLayout>) -> Body {
        let Some(class) = class.filter(|class| !self.wants(class)) else {
            return Body::Look;
        };
        match &class.body.packed {
            Some(packed) => Body::Bytes(packed.size_bytes),
            None => class.body.steps.clone().map_or(Body::Walk, Body::Steps),
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

    /// As many events as have a simple header and a simple body on whole bytes: most of a kernel's
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
        let Some(header) = ByteHeader::of(quick).filter(|_| position & 7 == 0) else {
            return position;
        };
        let Ok(mut at) = usize::try_from(position / 8) else {
            return position;
        };
        loop {
            (at, state.clock) = match header == ByteHeader::USUAL {
                true => self.run_of_sizes(ByteHeader::USUAL, bytes, at, state.clock),
                false => self.run_of_sizes(header, bytes, at, state.clock),
            };
            let Some(said) = header.read(bytes, at, state.clock) else {
                break;
            };
            let end = match self.bodies.get(said.id as usize) {
                Some(Body::Bytes(count)) => said.body_at.checked_add(*count),
                Some(Body::Steps(steps)) => steps.end(bytes, said.body_at, &mut state.slots),
                _ => None,
            };
            let Some(end) = end.filter(|end| *end <= bytes.len()) else {
                break;
            };
            state.clock = said.ticks;
            at = end;
        }
        at as u64 * 8
    }

    /// As many events as have bodies of fixed sizes: where the next is, and the clock before it.
    #[inline(always)]
    fn run_of_sizes(
        &self,
        header: ByteHeader,
        bytes: &[u8],
        mut at: usize,
        mut clock: u64,
    ) -> (usize, u64) {
        while let Some(Said { id, ticks, body_at }) = header.read(bytes, at, clock) {
            let Some(Some(size)) = self.sizes.get(id as usize) else {
                break;
            };
            let end = body_at.saturating_add(*size as usize);
            if end > bytes.len() {
                break;
            }
            (at, clock) = (end, ticks);
        }
        (at, clock)
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
            Some(class) if !self.wants(class) => {
                end_of_body(&class.body, content, body, state).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// The end of an event whose body begins at `position`, by its types alone.
fn end_of_body(
    layout: &BodyLayout,
    content: &Content<'_>,
    mut position: u64,
    state: &mut State,
) -> Result<u64, Stop> {
    for scope in layout.scopes.iter().flatten() {
        let start = align_up(position, scope.node.align_bits);
        position = content.skip(&scope.node, start, state)?;
    }
    Ok(position)
}
