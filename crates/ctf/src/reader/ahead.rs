//! Headers read ahead: most events of most traces have one of LTTng's headers and a body of a fixed
//! size, so that many headers are read in one go, with all that it takes in registers.

use super::header::{ByteHeader, Said};
use super::layout::{ClassLayout, StreamLayout};
use super::scale::TimeScale;

/// So many events at once: few enough that those of many streams stay in the cache.
const HEADS_MAX: usize = 32;

/// What is known of an event before its fields are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub class: &'a ClassLayout,
    /// The clock of its stream.
    pub ticks: u64,
    pub time_ns: i64,
    /// The byte of the content where its body begins.
    pub body_at: usize,
}

/// The events that were read ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead<'a> {
    heads: Vec<Head<'a>>,
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
    /// Takes the next of the events.
    #[inline]
    pub fn take(&mut self) -> Option<Head<'a>> {
        let head = *self.heads.get(self.next)?;
        self.next += 1;
        Some(head)
    }

    /// Reads the events behind `reached`, up to the first that takes a closer look: another header,
    /// a body whose size depends on data, an unknown id, a time beyond all time, the end of the
    /// bytes. Returns how far that is.
    pub fn fill(&mut self, manner: Manner<'a>, bytes: &[u8], reached: Reached) -> Reached {
        self.next = 0;
        self.heads.clear();
        self.heads.reserve(HEADS_MAX);
        manner.header.or_usual(|header| {
            let manner = Manner { header, ..manner };
            self.fill_by(manner, bytes, reached)
        })
    }

    /// Whether nothing is left to take.
    pub fn is_empty(&self) -> bool {
        self.next >= self.heads.len()
    }

    #[inline(always)]
    fn fill_by(&mut self, manner: Manner<'a>, bytes: &[u8], mut reached: Reached) -> Reached {
        let by_id = &manner.layout.by_id[..];
        while self.heads.len() < HEADS_MAX {
            let said = manner.header.read(bytes, reached.at, reached.ticks);
            let Some(Said { id, ticks, body_at }) = said else {
                break;
            };
            let Some(Some(class)) = by_id.get(id as usize) else {
                break;
            };
            let class: &ClassLayout = class;
            let Some(packed) = &class.packed else {
                break;
            };
            let at = body_at.saturating_add(packed.size_bytes);
            let time_ns = manner.scale.ns(ticks);
            if at > bytes.len() || time_ns == i64::MAX {
                break;
            }
            self.heads.push(Head {
                class,
                ticks,
                time_ns,
                body_at,
            });
            reached = Reached { at, ticks };
        }
        reached
    }
}
