//! Headers read ahead: most events of most traces have one of LTTng's headers and a body whose end
//! is found without looking at types, so that many headers are read in one go, with all that it
//! takes in registers.

use super::header::{ByteHeader, Said};
use event::ClassId;

use super::layout::{BodyLayout, StreamLayout};
use super::scale::TimeScale;

/// So many events at once: few enough that those of many streams stay in the cache.
const HEADS_MAX: usize = 32;

/// What is known of an event before its fields are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub layout: &'a BodyLayout,
    pub class: ClassId,
    /// The byte of the content where its body begins.
    pub body_at: u32,
    /// The clock of its stream.
    pub ticks: u64,
    pub time_ns: i64,
}

/// The events that were read ahead, and the current one.
#[derive(Debug, Default)]
pub(super) struct Ahead<'a> {
    heads: Vec<Head<'a>>,
    /// The place behind the current event; zero when there is none.
    next: usize,
}

/// Where reading ahead has come to.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    /// The byte of the content behind the last event.
    pub at: usize,
    pub ticks: u64,
}

/// How the events of a packet are read.
#[derive(Clone, Copy)]
pub(super) struct Manner<'a> {
    pub layout: &'a StreamLayout,
    pub header: ByteHeader,
    pub scale: TimeScale<'a>,
}

impl<'a> Ahead<'a> {
    /// Goes on to the next of the events; none when all are behind.
    #[inline]
    pub fn advance(&mut self) -> Option<&Head<'a>> {
        let head = self.heads.get(self.next)?;
        self.next += 1;
        Some(head)
    }

    /// The current event.
    #[inline]
    pub fn current(&self) -> Option<&Head<'a>> {
        self.heads.get(self.next.wrapping_sub(1))
    }

    /// Makes this the current event, read by itself, or none.
    pub fn set_current(&mut self, head: Option<Head<'a>>) {
        self.heads.clear();
        self.heads.extend(head);
        self.next = self.heads.len();
    }

    /// Reads the events behind `reached`, up to the first that takes a closer look: another header,
    /// a body of another kind, an unknown id, a time beyond all time, the end of the bytes. Returns
    /// how far that is. What lengths refer to goes through `slots`.
    pub fn fill(
        &mut self,
        manner: Manner<'a>,
        bytes: &[u8],
        reached: Reached,
        slots: &mut [u64],
    ) -> Reached {
        self.next = 0;
        // So that a place is a number of 32 bits.
        let bytes = &bytes[..bytes.len().min(u32::MAX as usize)];
        if manner.header == ByteHeader::USUAL {
            let header = ByteHeader::USUAL;
            let manner = Manner { header, ..manner };
            return self.fill_by(manner, bytes, reached, slots);
        }
        self.fill_by(manner, bytes, reached, slots)
    }

    /// Drops the events from the first on that is behind `end`, in ticks.
    #[cold]
    pub fn drop_behind(&mut self, end: u64) {
        let late = self.heads.iter().position(|head| head.ticks > end);
        self.heads.truncate(late.unwrap_or(self.heads.len()));
    }

    /// Whether nothing is left to take.
    pub fn is_empty(&self) -> bool {
        self.next >= self.heads.len()
    }

    #[inline(always)]
    fn fill_by(
        &mut self,
        manner: Manner<'a>,
        bytes: &[u8],
        mut reached: Reached,
        slots: &mut [u64],
    ) -> Reached {
        let by_id = &manner.layout.by_id[..];
        self.heads.clear();
        for _ in 0..HEADS_MAX {
            let said = manner.header.read(bytes, reached.at, reached.ticks);
            let Some(Said { id, ticks, body_at }) = said else {
                break;
            };
            let Some(Some(class)) = by_id.get(id as usize) else {
                break;
            };
            let layout = &*class.body;
            let end = match (&layout.packed, &layout.steps) {
                (Some(packed), _) => Some(body_at.saturating_add(packed.size_bytes)),
                (None, Some(steps)) => steps.end(bytes, body_at, slots),
                (None, None) => None,
            };
            let Some(at) = end else {
                break;
            };
            let time_ns = manner.scale.ns(ticks);
            if at > bytes.len() || time_ns == i64::MAX {
                break;
            }
            self.heads.push(Head {
                layout,
                class: class.class,
                body_at: body_at as u32,
                ticks,
                time_ns,
            });
            reached = Reached { at, ticks };
        }
        reached
    }
}
