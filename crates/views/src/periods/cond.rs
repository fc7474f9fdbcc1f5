//! Conditions of periods, made for one class of events: what no event of the class can fulfil is
//! known before the first.

use event::{EventClass, Record};
use expr::period::{EventOf, EventPart, EventValue, PeriodCond, PeriodValue};
use expr::{CompareOp, Glob};

use super::value::{Kept, Place};

/// The parts of events that periods of one definition keep from their begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Keeps(Vec<EventPart>);

impl Keeps {
    /// The place of a part, added when it is new.
    fn place(&mut self, part: &EventPart) -> usize {
        if let Some(place) = self.0.iter().position(|kept| kept == part) {
            return place;
        }
        self.0.push(part.clone());
        self.0.len() - 1
    }

    pub fn parts(&self) -> &[EventPart] {
        &self.0
    }
}

/// What a condition may ask of the period that it speaks of, and of that one's parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub begin: &'a [Option<Kept>],
    pub parent: &'a [Option<Kept>],
}

/// A value that a condition looks at.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Const(Kept),
    /// Of the event at hand.
    Event(Place),
    /// Of the begin of the period, by place.
    Begin(usize),
    /// Of the begin of its parent.
    Parent(usize),
}

impl Operand {
    /// The value, when there is one.
    pub fn load(&self, record: &impl Record, context: Context<'_>) -> Option<Kept> {
        match self {
            Operand::Const(value) => Some(value.clone()),
            Operand::Event(place) => place.load(record),
            Operand::Begin(place) => context.begin.get(*place)?.clone(),
            Operand::Parent(place) => context.parent.get(*place)?.clone(),
        }
    }
}

/// A condition for events of one class.
#[derive(Clone, Debug)]
pub(super) enum Cond {
    Always(bool),
    All(Vec<Cond>),
    Any(Vec<Cond>),
    Not(Box<Cond>),
    Compare(CompareOp, Operand, Operand),
    Glob(Operand, Glob),
}

/// Makes conditions for one class.
pub(super) struct Maker<'a> {
    pub class: &'a EventClass,
    /// While a begin is asked, its event is the event at hand.
    pub begins: bool,
    pub begin: &'a mut Keeps,
    pub parent: &'a mut Keeps,
}

impl Maker<'_> {
    /// A value; none when no event of the class has it.
    pub fn operand(&mut self, value: &EventValue) -> Option<Operand> {
        match value.of {
            EventOf::Begin if !self.begins => Some(Operand::Begin(self.begin.place(&value.part))),
            EventOf::ParentBegin => Some(Operand::Parent(self.parent.place(&value.part))),
            EventOf::Current | EventOf::Begin => {
                Some(match Place::bind(&value.part, self.class)? {
                    Place::Const(value) => Operand::Const(value),
                    place => Operand::Event(place),
                })
            }
        }
    }

    fn right(&mut self, value: &PeriodValue) -> Option<Operand> {
        Some(Operand::Const(match value {
            PeriodValue::Integer(value) => Kept::Integer(*value),
            PeriodValue::Float(value) => Kept::Float(*value),
            PeriodValue::DurationNs(ns) => Kept::Integer(i128::from(*ns)),
            PeriodValue::Text(text) => Kept::Text(text.as_slice().into()),
            PeriodValue::Event(value) => return self.operand(value),
        }))
    }

    /// A condition; what is the same for all events of the class is decided here.
    pub fn cond(&mut self, cond: &PeriodCond) -> Cond {
        match cond {
            PeriodCond::All(parts) => self.joined(parts, false),
            PeriodCond::Any(parts) => self.joined(parts, true),
            PeriodCond::Not(part) => match self.cond(part) {
                Cond::Always(truth) => Cond::Always(!truth),
                part => Cond::Not(Box::new(part)),
            },
            PeriodCond::Compare(op, left, right) => match (self.operand(left), self.right(right)) {
                (Some(Operand::Const(left)), Some(Operand::Const(right))) => {
                    Cond::Always(compares(*op, &left, &right))
                }
                (Some(left), Some(right)) => Cond::Compare(*op, left, right),
                _ => Cond::Always(false),
            },
            PeriodCond::Glob(value, pattern) => {
                let glob = Glob::new(pattern);
                match self.operand(value) {
                    Some(Operand::Const(Kept::Text(text))) => Cond::Always(glob.matches(&text)),
                    None | Some(Operand::Const(_)) => Cond::Always(false),
                    Some(operand) => Cond::Glob(operand, glob),
                }
            }
        }
    }

    /// Parts of which one decides: true for "any", false for "all".
    fn joined(&mut self, parts: &[PeriodCond], deciding: bool) -> Cond {
        let mut open = Vec::new();
        for part in parts {
            match self.cond(part) {
                Cond::Always(truth) if truth == deciding => return Cond::Always(deciding),
                Cond::Always(_) => {}
                part => open.push(part),
            }
        }
        match (open.len(), deciding) {
            (0, _) => Cond::Always(!deciding),
            (_, true) => Cond::Any(open),
            (_, false) => Cond::All(open),
        }
    }
}

fn compares(op: CompareOp, left: &Kept, right: &Kept) -> bool {
    left.order(right).is_some_and(|order| op.holds(order))
}

impl Cond {
    /// Whether an event can fulfil it at all.
    pub fn can_hold(&self) -> bool {
        !matches!(self, Cond::Always(false))
    }

    /// Whether an event fulfils it.
    pub fn holds(&self, record: &impl Record, context: Context<'_>) -> bool {
        match self {
            Cond::Always(truth) => *truth,
            Cond::All(parts) => parts.iter().all(|part| part.holds(record, context)),
            Cond::Any(parts) => parts.iter().any(|part| part.holds(record, context)),
            Cond::Not(part) => !part.holds(record, context),
            Cond::Compare(op, left, right) => {
                let (left, right) = (left.load(record, context), right.load(record, context));
                left.zip(right).is_some_and(|(l, r)| compares(*op, &l, &r))
            }
            Cond::Glob(value, glob) => match value.load(record, context) {
                Some(Kept::Text(text)) => glob.matches(&text),
                _ => false,
            },
        }
    }
}
