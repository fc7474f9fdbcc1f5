//! What a filter becomes: for each event class a test whose fields are bound.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use event::{ClassId, Error, FieldId, Record, Value};

use crate::ast::{BinaryOp, CompareOp, Pseudo, Step, UnaryOp};
use crate::number::Num;
use crate::pattern::Matcher;
use crate::tasks::RunningTask;

/// A filter, compiled against the classes of a trace.
#[derive(Debug)]
pub struct Program {
    /// By class.
    pub(crate) tests: Vec<Test>,
    pub(crate) needs_tasks: bool,
    pub(crate) notes: Vec<Error>,
}

/// What a program says of all events of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wants {
    /// None matches: they need not be decoded.
    Never,
    /// Some may match.
    Maybe,
    /// Each matches.
    Always,
}

impl Program {
    /// What is known of a class before its events are seen.
    pub fn wants(&self, class: ClassId) -> Wants {
        match self.tests.get(class.0 as usize) {
            None | Some(Test::Const(false)) => Wants::Never,
            Some(Test::Const(true)) => Wants::Always,
            Some(_) => Wants::Maybe,
        }
    }

    /// Whether it asks for the running task in a class that does not itself say which it is.
    pub fn needs_tasks(&self) -> bool {
        self.needs_tasks
    }

    /// What looks like a mistake, though it has a meaning: fields and events that the trace does
    /// not have.
    pub fn notes(&self) -> &[Error] {
        &self.notes
    }

    /// Whether an event matches; `task` is the task that ran then, when it is known. Allocates
    /// nothing, except where the filter reaches into compound fields.
    #[inline]
    pub fn matches(&self, record: &impl Record, task: Option<&RunningTask>) -> bool {
        match self.tests.get(record.class().0 as usize) {
            None => false,
            Some(Test::Const(result)) => *result,
            Some(test) => test.holds(&Moment { record, task }),
        }
    }
}

/// An event and what is known at its time.
pub(crate) struct Moment<'r, R> {
    record: &'r R,
    task: Option<&'r RunningTask>,
}

/// A condition on the events of one class.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Const(bool),
    All(Box<[Test]>),
    Any(Box<[Test]>),
    Not(Box<Test>),
    /// An integer field beside a constant: what most filters ask.
    Field {
        field: FieldId,
        signed: bool,
        op: CompareOp,
        value: i128,
    },
    Compare(CompareOp, Number, Number),
    /// Whether an integer lies in one of the ranges is what `inside` says.
    Ranges {
        number: Number,
        ranges: Box<[(i128, i128)]>,
        inside: bool,
    },
    Equal {
        text: TextLoad,
        bytes: Box<[u8]>,
        wanted: bool,
    },
    Matches {
        text: TextLoad,
        matcher: Arc<Matcher>,
        wanted: bool,
    },
    CompareTexts(CompareOp, TextLoad, TextLoad),
    NotZero(Number),
    /// A number has a value.
    HasNumber(Number),
    /// A text has a value.
    HasText(TextLoad),
    HasNested(Box<Nested>),
}

/// A number of an event.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    Const(Num),
    Integer { field: FieldId, signed: bool },
    Float(FieldId),
    Nested(Box<Nested>),
    Pseudo(Pseudo),
    Unary(UnaryOp, Box<Number>),
    Binary(BinaryOp, Box<(Number, Number)>),
}

/// A text of an event.
#[derive(Clone, Debug)]
pub(crate) enum TextLoad {
    Const(Box<[u8]>),
    Field(FieldId),
    Nested(Box<Nested>),
    Procname,
}

/// A value inside of a compound field.
#[derive(Clone, Debug)]
pub(crate) struct Nested {
    pub field: FieldId,
    pub steps: Box<[Step]>,
    /// Whether its integers are signed; labels of enumerations do not say.
    pub signed: bool,
}

impl Test {
    fn holds<R: Record>(&self, moment: &Moment<'_, R>) -> bool {
        match self {
            Test::Const(result) => *result,
            Test::All(tests) => tests.iter().all(|test| test.holds(moment)),
            Test::Any(tests) => tests.iter().any(|test| test.holds(moment)),
            Test::Not(test) => !test.holds(moment),
            Test::Field {
                field,
                signed,
                op,
                value,
            } => op.holds(integer(moment.record.i64(*field), *signed).cmp(value)),
            Test::Compare(op, left, right) => {
                let (Some(left), Some(right)) = (left.load(moment), right.load(moment)) else {
                    return false;
                };
                compare(*op, left.order(right))
            }
            Test::Ranges {
                number,
                ranges,
                inside,
            } => match number.load(moment) {
                Some(Num::Int(value)) => in_ranges(ranges, value) == *inside,
                _ => false,
            },
            Test::Equal {
                text,
                bytes,
                wanted,
            } => text
                .load(moment)
                .is_some_and(|text| (*text == **bytes) == *wanted),
            Test::Matches {
                text,
                matcher,
                wanted,
            } => text
                .load(moment)
                .is_some_and(|text| matcher.matches(&text) == *wanted),
            Test::CompareTexts(op, left, right) => {
                let (Some(left), Some(right)) = (left.load(moment), right.load(moment)) else {
                    return false;
                };
                op.holds(left.cmp(&right))
            }
            Test::NotZero(number) => number.load(moment).is_some_and(|number| !number.is_zero()),
            Test::HasNumber(number) => number.load(moment).is_some(),
            Test::HasText(text) => text.load(moment).is_some(),
            Test::HasNested(nested) => {
                nested.value(moment.record, |value| Some(value.is_some())) == Some(true)
            }
        }
    }
}

/// What is no number is unequal to every number, and neither less nor greater.
pub(crate) fn compare(op: CompareOp, order: Option<Ordering>) -> bool {
    match order {
        Some(order) => op.holds(order),
        None => op == CompareOp::NotEqual,
    }
}

pub(crate) fn in_ranges(ranges: &[(i128, i128)], value: i128) -> bool {
    ranges
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&value))
}

/// The bits of a field as the number that they stand for.
#[inline]
pub(crate) fn integer(bits: i64, signed: bool) -> i128 {
    match signed {
        true => i128::from(bits),
        false => i128::from(bits as u64),
    }
}

impl Number {
    fn load<R: Record>(&self, moment: &Moment<'_, R>) -> Option<Num> {
        match self {
            Number::Const(value) => Some(*value),
            Number::Integer { field, signed } => {
                Some(Num::Int(integer(moment.record.i64(*field), *signed)))
            }
            Number::Float(field) => Some(Num::Float(moment.record.f64(*field))),
            Number::Nested(nested) => nested.value(moment.record, |value| {
                Some(match value? {
                    Value::Unsigned(value) => Num::Int(i128::from(*value)),
                    Value::Signed(value) => Num::Int(i128::from(*value)),
                    Value::Enum { value, .. } => Num::Int(integer(*value, nested.signed)),
                    Value::Float(value) => Num::Float(*value),
                    _ => return None,
                })
            }),
            Number::Pseudo(pseudo) => moment.pseudo(*pseudo).map(Num::Int),
            Number::Unary(op, value) => Num::unary(*op, value.load(moment)?),
            Number::Binary(op, sides) => {
                Num::binary(*op, sides.0.load(moment)?, sides.1.load(moment)?)
            }
        }
    }
}

impl<R: Record> Moment<'_, R> {
    fn pseudo(&self, pseudo: Pseudo) -> Option<i128> {
        match pseudo {
            Pseudo::Cpu => self.record.cpu().map(|cpu| i128::from(cpu.0)),
            Pseudo::Time => self.record.instant().map(|time| i128::from(time.as_ns())),
            Pseudo::Tid => self.task.map(|task| i128::from(task.tid)),
            Pseudo::Prio => self.task.and_then(|task| task.prio).map(i128::from),
            // These are texts; they are bound as such.
            Pseudo::Name | Pseudo::Procname => None,
        }
    }
}

impl TextLoad {
    fn load<'r, R: Record>(&'r self, moment: &Moment<'r, R>) -> Option<Cow<'r, [u8]>> {
        match self {
            TextLoad::Const(bytes) => Some(Cow::Borrowed(bytes)),
            TextLoad::Field(field) => Some(Cow::Borrowed(moment.record.text(*field))),
            TextLoad::Procname => moment.task.map(|task| Cow::Borrowed(task.comm())),
            TextLoad::Nested(nested) => nested.value(moment.record, |value| {
                let text = value?.as_text()?;
                Some(Cow::Owned(text.as_bytes().to_vec()))
            }),
        }
    }
}

impl Nested {
    /// Gives the value to `use_value`: none when this event has none.
    fn value<R: Record, T>(
        &self,
        record: &R,
        use_value: impl FnOnce(Option<&Value<'_>>) -> Option<T>,
    ) -> Option<T> {
        let whole = record.value(self.field);
        let mut value = Some(&whole);
        for step in &self.steps {
            value = value.and_then(|value| match step {
                Step::Member(name) => value.member(name),
                Step::Index(index) => value.as_array()?.get(*index as usize),
            });
        }
        use_value(value)
    }
}
