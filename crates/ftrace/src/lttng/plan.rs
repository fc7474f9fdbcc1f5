//! How one tracepoint's record becomes LTTng's fields: steps that are run for each event.

use event::Integer;

use super::rwbs;
use crate::bytes::{Order, until_zero};
use crate::{EventFormat, FormatField};

/// What an argument of a system call is to be called, and as what it is to be written.
pub type ArgumentNames<'n> = &'n dyn Fn(&EventFormat, &FormatField) -> Option<(String, Integer)>;

/// A task's number.
const TID: Width = Width {
    bytes: 4,
    signed: true,
};
/// What the kernel prints for a text that a probe could not read.
const FAULT: &[u8] = b"(fault)";
/// An instant of the kernel's.
const INSTANT: Width = Width {
    bytes: 8,
    signed: false,
};

/// The steps from a record to a payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// One for each field.
    pub(super) steps: Vec<Step>,
    /// The same with neighbouring copies joined: what a writer runs.
    pub(super) joined: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes as they are.
    Copy { at: u32, size: u32 },
    /// An integer, widened or narrowed, plus a number.
    Integer {
        at: u32,
        from: Width,
        to_bytes: u8,
        plus: i64,
    },
    /// A text in a fixed number of bytes.
    Text { from: Bytes, size: u32 },
    /// A text that ends with a zero byte.
    String { from: Bytes },
    /// The same of a probe, which leaves nothing of a text, not even its end, that it cannot read.
    ProbeString { from: Bytes },
    /// The number of elements of a sequence.
    Count { from: Bytes, element_bytes: u32 },
    /// Its elements.
    Elements { from: Bytes, element_bytes: u32 },
    /// Block request letters as flags.
    Rwbs { from: Bytes },
    /// The thread group of the task at this place.
    Group { at: u32 },
    /// The time between two instants of eight bytes; none when the later one is the smaller.
    Between { begin_at: u32, end_at: u32 },
}

/// Where a record has what becomes a field, for whoever reads it without a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An integer, as wide as this, and the number that is added to it.
    Integer {
        /// Offset from the record's begin.
        at: u32,
        /// Width there.
        bytes: u8,
        /// Whether it has a sign there.
        signed: bool,
        /// What is added.
        plus: i64,
    },
    /// Bytes that stay as they are.
    Bytes {
        /// Offset from the record's begin.
        at: u32,
        /// How many.
        size: u32,
    },
    /// A text that ends with a zero byte or its room.
    Text {
        /// Offset from the record's begin.
        at: u32,
        /// Its room.
        size: u32,
    },
    /// A text where the word at this offset says.
    Dynamic {
        /// Offset of the word.
        at: u32,
        /// Its own end is what the place counts from.
        relative: bool,
    },
    /// What only the plan can make.
    Made,
}

/// Width and sign of an integer in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width {
    pub bytes: u8,
    pub signed: bool,
}

/// Where the bytes of a text or array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bytes {
    Here {
        at: u32,
        size: u32,
    },
    /// All up to the record's end.
    Rest {
        at: u32,
    },
    Dynamic {
        at: u32,
        relative: bool,
    },
}

impl Plan {
    /// Where the record has each field of the class.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let of_text = |from, size_max| match from {
            Bytes::Here { at, size } => Source::Text {
                at,
                size: size.min(size_max),
            },
            Bytes::Dynamic { at, relative } => Source::Dynamic { at, relative },
            Bytes::Rest { .. } => Source::Made,
        };
        self.steps.iter().map(move |step| match *step {
            Step::Copy { at, size } => Source::Bytes { at, size },
            Step::Integer { at, from, plus, .. } => Source::Integer {
                at,
                bytes: from.bytes,
                signed: from.signed,
                plus,
            },
            Step::Text { from, size } => of_text(from, size),
            Step::String { from } | Step::ProbeString { from } => of_text(from, u32::MAX),
            _ => Source::Made,
        })
    }

    /// The step of each field of the class.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Appends the payload of `record`, as a little-endian kernel wrote it, to `out`. What lies
    /// outside of the record reads as zero; `group_of` gives the thread group of a task.
    pub fn run(&self, record: &[u8], group_of: impl Fn(i32) -> i32, out: &mut Vec<u8>) {
        for step in &self.joined {
            match *step {
                Step::Copy { at, size } => copy(record, at, size, out),
                Step::Integer {
                    at,
                    from,
                    to_bytes,
                    plus,
                } => {
                    let value = from.read(record, at, Order::Little).wrapping_add(plus);
                    out.extend_from_slice(&value.to_le_bytes()[..usize::from(to_bytes)]);
                }
                Step::Text { from, size } => {
                    let text = until_zero(from.read(record, Order::Little));
                    let kept = text.len().min(size as usize);
                    out.extend_from_slice(&text[..kept]);
                    out.resize(out.len() + size as usize - kept, 0);
                }
                Step::ProbeString { from } => {
                    let bytes = from.read(record, Order::Little);
                    let unreadable = bytes.is_empty();
                    out.extend_from_slice(if unreadable { FAULT } else { until_zero(bytes) });
                    out.push(0);
                }
                Step::String { from } => {
                    out.extend_from_slice(until_zero(from.read(record, Order::Little)));
                    out.push(0);
                }
                Step::Count {
                    from,
                    element_bytes,
                } => {
                    let count = from.read(record, Order::Little).len() / element_bytes as usize;
                    out.extend_from_slice(&(count as u32).to_le_bytes());
                }
                Step::Elements {
                    from,
                    element_bytes,
                } => {
                    let bytes = from.read(record, Order::Little);
                    let whole = bytes.len() - bytes.len() % element_bytes as usize;
                    out.extend_from_slice(&bytes[..whole]);
                }
                Step::Rwbs { from } => {
                    out.extend_from_slice(
                        &rwbs::flags(from.read(record, Order::Little)).to_le_bytes(),
                    );
                }
                Step::Group { at } => {
                    let tid = TID.read(record, at, Order::Little);
                    out.extend_from_slice(&group_of(tid as i32).to_le_bytes());
                }
                Step::Between { begin_at, end_at } => {
                    let ns = between(record, (begin_at, end_at), Order::Little);
                    out.extend_from_slice(&ns.to_le_bytes());
                }
            }
        }
    }
}

impl Width {
    /// The integer at `at`, sign-extended when it is signed; zero outside of the record.
    #[inline]
    pub fn read(self, record: &[u8], at: u32, order: Order) -> i64 {
        let value = order.integer_at(record, at as usize, self.bytes, self.signed);
        value.unwrap_or(0)
    }
}

impl Bytes {
    /// What of it lies inside of the record.
    #[inline]
    pub fn read(self, record: &[u8], order: Order) -> &[u8] {
        let range = |at: usize, size: usize| record.get(at..at.saturating_add(size));
        let found = match self {
            Bytes::Here { at, size } => range(at as usize, size as usize),
            Bytes::Rest { at } => record.get(at as usize..),
            Bytes::Dynamic { at, relative } => {
                let word = order.u32_at(record, at as usize).unwrap_or(0);
                let begin = (word & 0xffff) as usize + if relative { at as usize + 4 } else { 0 };
                range(begin, (word >> 16) as usize)
            }
        };
        found.unwrap_or_default()
    }
}

/// The time between two instants of a record.
pub(crate) fn between(record: &[u8], (begin_at, end_at): (u32, u32), order: Order) -> u64 {
    let at = |at| INSTANT.read(record, at, order) as u64;
    at(end_at).saturating_sub(at(begin_at))
}

fn copy(record: &[u8], at: u32, size: u32, out: &mut Vec<u8>) {
    let (at, size) = (at as usize, size as usize);
    let found = record.get(at..).unwrap_or_default();
    let found = &found[..found.len().min(size)];
    out.extend_from_slice(found);
    out.resize(out.len() + size - found.len(), 0);
}
