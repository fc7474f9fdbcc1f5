//! What all code is made with: where the fields are, what memory there is, where to go on.

use event::EventClass;

use super::asm::{Assembler, FRAME, Label, RECORD};

/// Where a field's value is, while the event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An integer in the record; the class says how wide it becomes, after `plus` was added.
    Integer {
        /// Offset from the record's begin.
        at: u32,
        /// Width there: 1, 2, 4 or 8.
        bytes: u8,
        /// Whether it has a sign there.
        signed: bool,
        /// What the field is more than that.
        plus: i64,
    },
    /// The tid of the task that runs.
    Current,
    /// A text that ends with a zero byte, or with its room.
    Text {
        /// Offset from the record's begin.
        at: u32,
        /// Its room.
        size: u32,
    },
    /// A text behind a word that says where it lies and how long it is.
    Dynamic {
        /// Offset of the word.
        at: u32,
        /// Its own end is what the place counts from, instead of the record's begin.
        relative: bool,
    },
    /// The first element of an array.
    Elements {
        /// Offset from the record's begin.
        at: u32,
    },
    /// An address in the memory of a program; the recording has what lies there.
    Address,
    /// An argument of a mark that its program passes in a way that cannot be read.
    Unreadable,
    /// Not where the kernel can read it.
    Nowhere,
}

/// A class of events whose records the code reads.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Its name and fields.
    pub class: EventClass,
    /// Where each field is.
    pub places: Vec<Place>,
    /// They lie in the frame, not in the record.
    pub in_frame: bool,
}

/// Offsets in the memory that the code's caller lends it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Now, in nanoseconds.
    pub now: i16,
    /// The priority of the task that runs, real-time below 0.
    pub prio: i16,
    /// The key's numbers, eight bytes each.
    pub numbers: i16,
    /// The key's text, of [`KEY_TEXT_BYTES`] zero bytes.
    pub text: i16,
    /// [`SLOTS`] numbers that are set aside, eight bytes each.
    pub slots: i16,
    /// A text that is looked at, of [`TEXT_BYTES`].
    pub looked_at: i16,
}

/// Numbers of a key.
pub const KEY_NUMBERS: usize = 2;
/// Bytes of a key's text, the zero byte after it included.
pub const KEY_TEXT_BYTES: usize = 16;
/// How deep an expression may set numbers aside.
pub const SLOTS: usize = 6;
/// Bytes of a text whose length varies that are looked at.
pub const TEXT_BYTES: usize = 48;

/// Why the kernel cannot do it, and what it can do.
#[derive(Debug)]
pub(super) struct Refusal {
    pub what: &'static str,
    pub fix: &'static str,
}

pub(super) type Coded<T> = std::result::Result<T, Refusal>;

pub(super) fn refuse<T>(what: &'static str, fix: &'static str) -> Coded<T> {
    Err(Refusal { what, fix })
}

/// Code in the making.
pub(super) struct Coder<'a> {
    pub assembler: Assembler,
    pub layout: &'a Layout,
    pub frame: &'a Frame,
    /// What is made now is a part of the key.
    pub is_key: bool,
}

/// Where to go on. What is missing goes the way of what does not hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways {
    pub yes: Label,
    pub no: Label,
}

impl Ways {
    pub(super) fn when(self, wanted: bool) -> Ways {
        match wanted {
            true => self,
            false => Ways {
                yes: self.no,
                no: self.yes,
            },
        }
    }
}

impl Coder<'_> {
    /// Where the fields are: the record or the frame.
    pub(super) fn base(&self) -> u8 {
        match self.layout.in_frame {
            true => FRAME,
            false => RECORD,
        }
    }
}
