//! The trees of definitions of periods and of what is kept of them.

use crate::ast::{CompareOp, FieldScope, Step, Text};

/// The definition of a period.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    /// Its name; without one it has no captures and no children.
    pub name: Option<String>,
    /// The name of the period inside of which it lies.
    pub parent: Option<String>,
    /// What opens it.
    pub begin: PeriodCond,
    /// What closes it.
    pub end: PeriodCond,
    /// What to keep when it begins.
    pub begin_captures: Vec<Capture>,
    /// What to keep when it ends.
    pub end_captures: Vec<Capture>,
}

/// What to keep of the periods of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Captures {
    /// The name of the period.
    pub period: String,
    /// When it begins.
    pub begin: Vec<Capture>,
    /// When it ends.
    pub end: Vec<Capture>,
}

/// A value to keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// Its alias, or the value as it is written.
    pub name: String,
    /// The value.
    pub value: EventValue,
}

/// Something that holds for an event, or does not.
#[derive(Clone, Debug, PartialEq)]
pub enum PeriodCond {
    /// All hold (`&&`): at least two, none of them an `All`.
    All(Vec<PeriodCond>),
    /// At least one holds (`||`): at least two, none of them an `Any`.
    Any(Vec<PeriodCond>),
    /// It does not hold.
    Not(Box<PeriodCond>),
    /// Two values compare so.
    Compare(CompareOp, EventValue, PeriodValue),
    /// A text matches a shell pattern ([`crate::Glob::new`]).
    Glob(EventValue, Text),
}

/// What a value of an event is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum PeriodValue {
    /// `-42`, `0x2a`; from -(2^64 - 1) to 2^64 - 1.
    Integer(i128),
    /// `4.2`, `-42e-1`; finite.
    Float(f64),
    /// `25ms`, in nanoseconds.
    DurationNs(i64),
    /// `"jackd"`: exactly these bytes, also where one is a star.
    Text(Vec<u8>),
    /// Another value of an event.
    Event(EventValue),
}

/// A value of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventValue {
    /// Of which event.
    pub of: EventOf,
    /// Which value.
    pub part: EventPart,
}

/// The events that a definition speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventOf {
    /// `$evt`: the event at hand.
    Current,
    /// `$begin.$evt`: the event that opened the period.
    Begin,
    /// `$parent.$begin.$evt`: the event that opened the parent.
    ParentBegin,
}

/// A part of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EventPart {
    /// `$name`: the event's name.
    Name,
    /// A field.
    Field {
        /// Where it is; none: the first scope that has it, in the order of [`event::Scope`].
        scope: Option<FieldScope>,
        /// Its name.
        name: String,
        /// Further in: members and elements.
        steps: Vec<Step>,
    },
}
