//! Filters to programs: for each class names become fields, constants are folded, patterns are
//! made once.

use std::collections::HashMap;
use std::sync::Arc;

use event::{Error, ErrorKind, EventClass, Integer, IntegerMapping, Result};

use crate::ast::{
    BinaryOp, CompareOp, Cond, Expr, FieldRef, Literal, MatchOp, Operand, Pseudo, Text, UnaryOp,
};
use crate::bind::{Target, Use, resolve};
use crate::notes;
use crate::number::Num;
use crate::pattern::Matcher;
use crate::program::{Nested, Number, Program, Test, TextLoad, compare, in_ranges, integer};
use crate::units::Unit;

/// Parts of all classes' tests together.
const PARTS_MAX: usize = 1 << 20;

impl Program {
    /// Compiles a filter for events of these classes, each at the index of its id.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when the program would be beyond all bounds.
    pub fn compile(expr: &Expr, classes: &[EventClass]) -> Result<Program> {
        let mut shared = Shared::default();
        let mut tests = Vec::with_capacity(classes.len());
        for class in classes {
            let mut compiler = Compiler {
                class,
                shared: &mut shared,
            };
            tests.push(compiler.cond(&expr.root));
            if shared.parts > PARTS_MAX {
                let what = "the filter is too large for this trace";
                let found = format!("{} classes, more than {PARTS_MAX} tests", classes.len());
                let error = Error::new(ErrorKind::InvalidInput, what).found(found);
                return Err(error.fix("begin it with the events meant: $name in (…) && …"));
            }
        }
        Ok(Program {
            tests,
            needs_tasks: shared.needs_tasks,
            notes: notes::of(expr, classes),
        })
    }
}

/// What an operand is by itself, in events of one class.
pub(crate) enum Value {
    Number(Number),
    Text(TextLoad),
    Neither,
}

pub(crate) fn value(operand: &Operand, class: &EventClass) -> Value {
    let mut shared = Shared::default();
    let mut compiler = Compiler {
        class,
        shared: &mut shared,
    };
    match compiler.operand(operand).0 {
        Bound::Number(number) | Bound::Enum(number, ..) => Value::Number(number),
        Bound::Text(text) => Value::Text(text),
        Bound::Missing | Bound::Compound => Value::Neither,
    }
}

/// What the classes share.
#[derive(Default)]
struct Shared {
    /// By operator, none for the stars of `==`.
    matchers: HashMap<(Option<MatchOp>, Text), Arc<Matcher>>,
    needs_tasks: bool,
    parts: usize,
}

struct Compiler<'a> {
    class: &'a EventClass,
    shared: &'a mut Shared,
}

/// What an operand is in a class.
enum Bound<'c> {
    Missing,
    Number(Number),
    Enum(Number, &'c Integer, &'c [IntegerMapping]),
    Text(TextLoad),
    Compound,
}

impl Bound<'_> {
    fn into_number(self) -> Option<Number> {
        match self {
            Bound::Number(number) | Bound::Enum(number, ..) => Some(number),
            _ => None,
        }
    }
}

impl<'a> Compiler<'a> {
    fn cond(&mut self, cond: &Cond) -> Test {
        self.shared.parts += 1;
        match cond {
            Cond::All(parts) => self.many(parts, false),
            Cond::Any(parts) => self.many(parts, true),
            Cond::Not(part) => match self.cond(part) {
                Test::Const(result) => Test::Const(!result),
                test => Test::Not(Box::new(test)),
            },
            Cond::Compare(op, left, right) => self.compare(*op, left, right),
            Cond::Match(op, left, pattern) => self.pattern(*op, left, &pattern.text),
            Cond::In(left, list) => self.list(left, list),
            Cond::Present(field) => self.present(field),
            Cond::True(value) => match self.operand(value).0.into_number() {
                Some(Number::Const(value)) => Test::Const(!value.is_zero()),
                Some(number) => Test::NotZero(number),
                None => Test::Const(false),
            },
        }
    }

    /// All or any of the parts; `decisive` is the result of one part that settles the whole.
    fn many(&mut self, parts: &[Cond], decisive: bool) -> Test {
        let mut tests = Vec::with_capacity(parts.len());
        for part in parts {
            match self.cond(part) {
                Test::Const(result) if result == decisive => return Test::Const(decisive),
                Test::Const(_) => {}
                test => tests.push(test),
            }
        }
        match (tests.len(), decisive) {
            (0, _) => Test::Const(!decisive),
            (1, _) => tests.remove(0),
            (_, false) => Test::All(tests.into()),
            (_, true) => Test::Any(tests.into()),
        }
    }

    fn compare(&mut self, op: CompareOp, left: &Operand, right: &Operand) -> Test {
        if let Operand::Literal(Literal::Text(text), _) = right {
            return self.compare_text(op, left, text);
        }
        if let Operand::Literal(Literal::Text(text), _) = left {
            return self.compare_text(op.mirrored(), right, text);
        }
        let ((left, left_unit), (right, right_unit)) = (self.operand(left), self.operand(right));
        match (left, right) {
            (Bound::Text(left), Bound::Text(right)) => Test::CompareTexts(op, left, right),
            (left, right) => match (left.into_number(), right.into_number()) {
                (Some(left), Some(right)) => {
                    let (left, right, _) = reconcile((left, left_unit), (right, right_unit));
                    self.compare_numbers(op, left, right)
                }
                _ => Test::Const(false),
            },
        }
    }

    fn compare_numbers(
        &mut self,
        op: CompareOp,
        left: Option<Number>,
        right: Option<Number>,
    ) -> Test {
        match (left, right) {
            (Some(Number::Const(left)), Some(Number::Const(right))) => {
                Test::Const(compare(op, left.order(right)))
            }
            (Some(Number::Integer { field, signed }), Some(Number::Const(Num::Int(value)))) => {
                Test::Field {
                    field,
                    signed,
                    op,
                    value,
                }
            }
            (Some(Number::Const(Num::Int(value))), Some(Number::Integer { field, signed })) => {
                Test::Field {
                    field,
                    signed,
                    op: op.mirrored(),
                    value,
                }
            }
            (Some(left), Some(right)) => Test::Compare(op, left, right),
            _ => Test::Const(false),
        }
    }

    /// A comparison with a text in quotes, which may hold stars, and for an enumeration is a label.
    fn compare_text(&mut self, op: CompareOp, operand: &Operand, text: &Text) -> Test {
        let equality = match op {
            CompareOp::Equal => Some(true),
            CompareOp::NotEqual => Some(false),
            _ => None,
        };
        match (self.operand(operand).0, equality) {
            (Bound::Enum(number, integer, mappings), Some(wanted)) => {
                let matcher = self.stars(text);
                let is_meant = |label: &[u8]| match &matcher {
                    Some(matcher) => matcher.matches(label),
                    None => label == text.bytes,
                };
                labels(number, integer, mappings, is_meant, wanted)
            }
            (Bound::Text(load), Some(wanted)) => match self.stars(text) {
                Some(matcher) => matches(load, matcher, wanted),
                None => match load {
                    TextLoad::Const(bytes) => Test::Const((*bytes == *text.bytes) == wanted),
                    text_load => Test::Equal {
                        text: text_load,
                        bytes: text.bytes.clone().into(),
                        wanted,
                    },
                },
            },
            (Bound::Text(TextLoad::Const(bytes)), None) => {
                Test::Const(op.holds((*bytes).cmp(&*text.bytes)))
            }
            (Bound::Text(load), None) => {
                Test::CompareTexts(op, load, TextLoad::Const(text.bytes.clone().into()))
            }
            _ => Test::Const(false),
        }
    }

    /// The pattern of a text with stars.
    fn stars(&mut self, text: &Text) -> Option<Arc<Matcher>> {
        if !text.has_star() {
            return None;
        }
        let entry = self.shared.matchers.entry((None, text.clone()));
        Some(
            entry
                .or_insert_with(|| Arc::new(Matcher::stars(text)))
                .clone(),
        )
    }

    fn pattern(&mut self, op: MatchOp, operand: &Operand, text: &Text) -> Test {
        let key = (Some(op), text.clone());
        let matcher = match self.shared.matchers.get(&key) {
            Some(matcher) => matcher.clone(),
            None => {
                // Parsing has tried it; a tree that was put together by hand matches nothing.
                let Ok(matcher) = Matcher::new(op, text) else {
                    return Test::Const(false);
                };
                let matcher = Arc::new(matcher);
                self.shared.matchers.insert(key, matcher.clone());
                matcher
            }
        };
        match self.operand(operand).0 {
            Bound::Text(load) => matches(load, matcher, true),
            Bound::Enum(number, integer, mappings) => labels(
                number,
                integer,
                mappings,
                |label| matcher.matches(label),
                true,
            ),
            _ => Test::Const(false),
        }
    }

    fn list(&mut self, left: &Operand, list: &[Operand]) -> Test {
        let mut tests = Vec::new();
        for value in list {
            match self.compare(CompareOp::Equal, left, value) {
                Test::Const(true) => return Test::Const(true),
                Test::Const(false) => {}
                test => tests.push(test),
            }
        }
        if let Some(test) = as_ranges(&tests) {
            return test;
        }
        match tests.len() {
            0 => Test::Const(false),
            1 => tests.remove(0),
            _ => Test::Any(tests.into()),
        }
    }

    fn present(&mut self, field: &FieldRef) -> Test {
        match resolve(self.class, field) {
            Target::Missing => Test::Const(false),
            Target::Field {
                optional: false, ..
            }
            | Target::Pseudo(Pseudo::Name) => Test::Const(true),
            Target::Field { field, steps, .. } => Test::HasNested(Box::new(Nested {
                field,
                steps: steps.into(),
                signed: false,
            })),
            Target::Pseudo(pseudo) => match self.pseudo(pseudo) {
                Bound::Number(number) => Test::HasNumber(number),
                Bound::Text(text) => Test::HasText(text),
                _ => Test::Const(false),
            },
        }
    }

    fn operand(&mut self, operand: &Operand) -> (Bound<'a>, Unit) {
        self.shared.parts += 1;
        let number = |number: Option<Number>| number.map_or(Bound::Missing, Bound::Number);
        let constant = |value| Bound::Number(Number::Const(value));
        match operand {
            Operand::Literal(literal, _) => match literal {
                Literal::Integer(value) => (constant(Num::Int(i128::from(*value))), Unit::None),
                Literal::Float(value) => (constant(Num::Float(*value)), Unit::None),
                Literal::Duration(value) => (
                    constant(Num::Int(i128::from(value.as_ns()))),
                    Unit::Duration,
                ),
                Literal::Text(text) => (
                    Bound::Text(TextLoad::Const(text.bytes.clone().into())),
                    Unit::None,
                ),
            },
            Operand::Field(reference) => (self.field(reference), Unit::of(reference)),
            Operand::Unary(op, value, _) => {
                let (value, unit) = self.operand(value);
                let value = value.into_number().and_then(|value| unary(*op, value));
                (number(value), unit.after_unary(*op))
            }
            Operand::Binary(op, left, right) => {
                let ((left, left_unit), (right, right_unit)) =
                    (self.operand(left), self.operand(right));
                let (Some(left), Some(right)) = (left.into_number(), right.into_number()) else {
                    return (Bound::Missing, Unit::None);
                };
                match op {
                    BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Remainder => {
                        let (left, right, unit) = reconcile((left, left_unit), (right, right_unit));
                        (number(binary(*op, left, right)), unit)
                    }
                    _ => {
                        let unit = left_unit.after_scaling(*op, right_unit);
                        (number(binary(*op, Some(left), Some(right))), unit)
                    }
                }
            }
        }
    }

    fn field(&mut self, reference: &FieldRef) -> Bound<'a> {
        let (field, steps, ty) = match resolve(self.class, reference) {
            Target::Missing => return Bound::Missing,
            Target::Pseudo(pseudo) => return self.pseudo(pseudo),
            Target::Field {
                field, steps, ty, ..
            } => (field, steps, ty),
        };
        let nested = |signed| {
            let steps = (!steps.is_empty()).then(|| steps.clone().into_boxed_slice())?;
            Some(Box::new(Nested {
                field,
                steps,
                signed,
            }))
        };
        let number = |signed| match nested(signed) {
            Some(nested) => Number::Nested(nested),
            None => Number::Integer { field, signed },
        };
        match Use::of(ty) {
            Use::Integer(integer) => Bound::Number(number(integer.signed)),
            Use::Enum(integer, mappings) => Bound::Enum(number(integer.signed), integer, mappings),
            Use::Float => Bound::Number(nested(true).map_or(Number::Float(field), Number::Nested)),
            Use::Text => Bound::Text(nested(true).map_or(TextLoad::Field(field), TextLoad::Nested)),
            Use::Compound => Bound::Compound,
        }
    }

    fn pseudo(&mut self, pseudo: Pseudo) -> Bound<'a> {
        match pseudo {
            Pseudo::Name => Bound::Text(TextLoad::Const(self.class.name.as_bytes().into())),
            Pseudo::Cpu | Pseudo::Time => Bound::Number(Number::Pseudo(pseudo)),
            Pseudo::Tid | Pseudo::Prio => {
                self.shared.needs_tasks = true;
                Bound::Number(Number::Pseudo(pseudo))
            }
            Pseudo::Procname => {
                self.shared.needs_tasks = true;
                Bound::Text(TextLoad::Procname)
            }
        }
    }
}

/// Both sides in nanoseconds, where one is a duration and the other's name says its unit.
fn reconcile(
    (left, left_unit): (Number, Unit),
    (right, right_unit): (Number, Unit),
) -> (Option<Number>, Option<Number>, Unit) {
    let (left_scale, right_scale, unit) = left_unit.reconcile(right_unit);
    (scaled(left, left_scale), scaled(right, right_scale), unit)
}

fn scaled(number: Number, scale_ns: i64) -> Option<Number> {
    match scale_ns {
        1 => Some(number),
        _ => {
            let scale = Number::Const(Num::Int(i128::from(scale_ns)));
            binary(BinaryOp::Multiply, Some(number), Some(scale))
        }
    }
}

fn unary(op: UnaryOp, value: Number) -> Option<Number> {
    match value {
        Number::Const(value) => Num::unary(op, value).map(Number::Const),
        value => Some(Number::Unary(op, Box::new(value))),
    }
}

fn binary(op: BinaryOp, left: Option<Number>, right: Option<Number>) -> Option<Number> {
    match (left?, right?) {
        (Number::Const(left), Number::Const(right)) => {
            Num::binary(op, left, right).map(Number::Const)
        }
        (left, right) => Some(Number::Binary(op, Box::new((left, right)))),
    }
}

fn matches(text: TextLoad, matcher: Arc<Matcher>, wanted: bool) -> Test {
    match text {
        TextLoad::Const(bytes) => Test::Const(matcher.matches(&bytes) == wanted),
        text => Test::Matches {
            text,
            matcher,
            wanted,
        },
    }
}

/// Labels become the integers that they stand for.
fn labels(
    number: Number,
    ty: &Integer,
    mappings: &[IntegerMapping],
    is_meant: impl Fn(&[u8]) -> bool,
    inside: bool,
) -> Test {
    let meant = mappings
        .iter()
        .filter(|mapping| is_meant(mapping.label.as_bytes()));
    let range = |mapping: &IntegerMapping| {
        (
            integer(mapping.first, ty.signed),
            integer(mapping.last, ty.signed),
        )
    };
    let ranges: Box<[_]> = meant.map(range).collect();
    match (ranges.is_empty(), &number) {
        (true, _) if inside => Test::Const(false),
        (true, Number::Integer { .. }) => Test::Const(true),
        _ => Test::Ranges {
            number,
            ranges,
            inside,
        },
    }
}

/// One test instead of many, when all ask the same field for equality with a constant.
fn as_ranges(tests: &[Test]) -> Option<Test> {
    let mut ranges = Vec::with_capacity(tests.len());
    let mut asked = None;
    for test in tests {
        let Test::Field {
            field,
            signed,
            op: CompareOp::Equal,
            value,
        } = test
        else {
            return None;
        };
        if *asked.get_or_insert((*field, *signed)) != (*field, *signed) {
            return None;
        }
        if !in_ranges(&ranges, *value) {
            ranges.push((*value, *value));
        }
    }
    let (field, signed) = asked.filter(|_| tests.len() > 1)?;
    Some(Test::Ranges {
        number: Number::Integer { field, signed },
        ranges: ranges.into(),
        inside: true,
    })
}
