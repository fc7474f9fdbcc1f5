//! The meaning of a filter, said a second time and slowly: names are looked up for each event,
//! every value is decoded whole, nothing is folded.

use std::cmp::Ordering;

use event::{EventClass, FieldId, FieldType, Integer, IntegerMapping, Record, Scope, Value};
use expr::{
    BinaryOp, CompareOp, Cond, FieldRef, FieldScope, Literal, MatchOp, Operand, Pseudo, Root, Step,
    Text, UnaryOp,
};

use super::TestEvent;

/// A value with all that a comparison may ask of it.
#[derive(Clone, Debug)]
enum Meaning {
    Missing,
    Int(i128),
    Float(f64),
    Labelled(i128, Vec<String>),
    Text(Vec<u8>),
    Compound,
}

/// Nanoseconds of one, and whether it was written as a duration.
type Unit = Option<(i128, bool)>;

/// Whether `event` matches, while it is not known which task runs.
pub fn holds(cond: &Cond, classes: &[EventClass], event: &TestEvent) -> bool {
    Reference {
        class: &classes[event.class.0 as usize],
        event,
    }
    .cond(cond)
}

struct Reference<'a> {
    class: &'a EventClass,
    event: &'a TestEvent,
}

impl Reference<'_> {
    fn cond(&self, cond: &Cond) -> bool {
        match cond {
            Cond::All(parts) => parts.iter().all(|part| self.cond(part)),
            Cond::Any(parts) => parts.iter().any(|part| self.cond(part)),
            Cond::Not(part) => !self.cond(part),
            Cond::Compare(op, left, right) => self.compare(*op, left, right),
            Cond::In(left, list) => list
                .iter()
                .any(|value| self.compare(CompareOp::Equal, left, value)),
            Cond::Match(op, left, pattern) => {
                let is_meant = |text: &[u8]| match op {
                    MatchOp::Regex => regex(&pattern.text.bytes, text),
                    MatchOp::Glob => glob(&pattern.text, 0, text, true),
                    MatchOp::Contains => {
                        let needle = &pattern.text.bytes[..];
                        (0..=text.len()).any(|start| text[start..].starts_with(needle))
                    }
                };
                match self.operand(left).0 {
                    Meaning::Text(text) => is_meant(&text),
                    Meaning::Labelled(_, labels) => labels.iter().any(|l| is_meant(l.as_bytes())),
                    _ => false,
                }
            }
            Cond::Present(field) => !matches!(self.field(field), Meaning::Missing),
            Cond::True(value) => match number(self.operand(value).0) {
                Some(Meaning::Int(value)) => value != 0,
                Some(Meaning::Float(value)) => value != 0.0,
                _ => false,
            },
        }
    }

    fn compare(&self, op: CompareOp, left: &Operand, right: &Operand) -> bool {
        for (text, other, op) in [(right, left, op), (left, right, op.mirrored())] {
            if let Operand::Literal(Literal::Text(text), _) = text {
                return self.compare_text(op, other, text);
            }
        }
        let ((left, left_unit), (right, right_unit)) = (self.operand(left), self.operand(right));
        if let (Meaning::Text(left), Meaning::Text(right)) = (&left, &right) {
            return ordered(op, Some(left.cmp(right)));
        }
        let (Some(left), Some(right)) = (number(left), number(right)) else {
            return false;
        };
        match in_one_unit(left, left_unit, right, right_unit) {
            Some((left, right, _)) => ordered(op, order(&left, &right)),
            None => false,
        }
    }

    fn compare_text(&self, op: CompareOp, other: &Operand, text: &Text) -> bool {
        let is_meant = |value: &[u8]| match text.has_star() {
            true => glob(text, 0, value, false),
            false => value == text.bytes,
        };
        match (op, self.operand(other).0) {
            (CompareOp::Equal, Meaning::Text(value)) => is_meant(&value),
            (CompareOp::NotEqual, Meaning::Text(value)) => !is_meant(&value),
            (op, Meaning::Text(value)) => ordered(op, Some(value.cmp(&text.bytes))),
            (CompareOp::Equal, Meaning::Labelled(_, labels)) => {
                labels.iter().any(|label| is_meant(label.as_bytes()))
            }
            (CompareOp::NotEqual, Meaning::Labelled(_, labels)) => {
                !labels.iter().any(|label| is_meant(label.as_bytes()))
            }
            _ => false,
        }
    }

    fn operand(&self, operand: &Operand) -> (Meaning, Unit) {
        match operand {
            Operand::Literal(Literal::Integer(value), _) => (Meaning::Int((*value).into()), None),
            Operand::Literal(Literal::Float(value), _) => (Meaning::Float(*value), None),
            Operand::Literal(Literal::Duration(value), _) => {
                (Meaning::Int(value.as_ns().into()), Some((1, true)))
            }
            Operand::Literal(Literal::Text(text), _) => (Meaning::Text(text.bytes.clone()), None),
            Operand::Field(field) => (self.field(field), unit(field)),
            Operand::Unary(op, value, _) => {
                let (value, unit) = self.operand(value);
                match (op, number(value)) {
                    (UnaryOp::Negate, Some(Meaning::Int(value))) => (
                        value.checked_neg().map_or(Meaning::Missing, Meaning::Int),
                        unit,
                    ),
                    (UnaryOp::Negate, Some(Meaning::Float(value))) => {
                        (Meaning::Float(-value), unit)
                    }
                    (UnaryOp::Invert, Some(Meaning::Int(value))) => (Meaning::Int(!value), None),
                    _ => (Meaning::Missing, None),
                }
            }
            Operand::Binary(op, left, right) => self.binary(*op, left, right),
        }
    }

    fn binary(&self, op: BinaryOp, left: &Operand, right: &Operand) -> (Meaning, Unit) {
        let ((left, left_unit), (right, right_unit)) = (self.operand(left), self.operand(right));
        let (Some(left), Some(right)) = (number(left), number(right)) else {
            return (Meaning::Missing, None);
        };
        let (left, right, unit) = match op {
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Remainder => {
                match in_one_unit(left, left_unit, right, right_unit) {
                    Some(both) => both,
                    None => return (Meaning::Missing, None),
                }
            }
            BinaryOp::Multiply if left_unit.is_none() => (left, right, right_unit),
            BinaryOp::Multiply | BinaryOp::Divide if right_unit.is_none() => {
                (left, right, left_unit)
            }
            _ => (left, right, None),
        };
        let result = match (left, right) {
            (Meaning::Int(left), Meaning::Int(right)) => {
                integers(op, left, right).map(Meaning::Int)
            }
            (left, right) => floats(op, as_float(&left), as_float(&right)).map(Meaning::Float),
        };
        (result.unwrap_or(Meaning::Missing), unit)
    }

    fn field(&self, field: &FieldRef) -> Meaning {
        use Scope::{
            EventContext, EventHeader, PacketContext, PacketHeader, Payload, StreamContext,
        };
        let (scopes, name): (&[Scope], &str) = match &field.root {
            Root::Auto(name) => (
                &[
                    Payload,
                    EventContext,
                    EventHeader,
                    StreamContext,
                    PacketContext,
                    PacketHeader,
                ],
                name,
            ),
            Root::Scoped(FieldScope::Payload, name) => (&[Payload], name),
            Root::Scoped(FieldScope::Context, name) => (&[EventContext, StreamContext], name),
            Root::Scoped(FieldScope::PacketContext, name) => (&[PacketContext], name),
            Root::Pseudo(pseudo) => return self.pseudo(*pseudo),
            other => panic!("the generator makes no {other:?}"),
        };
        for scope in scopes {
            let is_meant = |field: &event::Field| field.scope == *scope && field.name == name;
            if let Some(place) = self.class.fields.iter().position(is_meant) {
                let value = self.event.value(FieldId(place as u16));
                return inside(&self.class.fields[place].ty, value, &field.steps);
            }
        }
        if matches!(&field.root, Root::Scoped(scope, _) if *scope != FieldScope::Context) {
            return Meaning::Missing;
        }
        match (name, &field.steps[..]) {
            ("name", []) => self.pseudo(Pseudo::Name),
            ("cpu" | "cpu_id", []) => self.pseudo(Pseudo::Cpu),
            ("tid", []) => self.pseudo(Pseudo::Tid),
            _ => Meaning::Missing,
        }
    }

    fn pseudo(&self, pseudo: Pseudo) -> Meaning {
        let of_switch = match pseudo {
            Pseudo::Tid => "prev_tid",
            Pseudo::Procname if self.class.name != "sched_switch" => "procname",
            Pseudo::Procname => "prev_comm",
            Pseudo::Prio => "prev_prio",
            Pseudo::Name => return Meaning::Text(self.class.name.clone().into_bytes()),
            Pseudo::Cpu => {
                return self
                    .event
                    .cpu
                    .map_or(Meaning::Missing, |cpu| Meaning::Int(cpu.0.into()));
            }
            Pseudo::Time => {
                let time = self.event.time;
                return time.map_or(Meaning::Missing, |time| Meaning::Int(time.as_ns().into()));
            }
        };
        match self.class.field(of_switch) {
            Some(field) => {
                let ty = &self.class.fields[usize::from(field.0)].ty;
                inside(ty, self.event.value(field), &[])
            }
            None => Meaning::Missing,
        }
    }
}

fn inside(ty: &FieldType, value: Value<'_>, steps: &[Step]) -> Meaning {
    let Some((step, further)) = steps.split_first() else {
        return meaning(ty, &value);
    };
    match (ty, value, step) {
        (FieldType::Struct(members), Value::Struct(values), Step::Member(name))
        | (
            FieldType::Variant {
                choices: members, ..
            },
            Value::Struct(values),
            Step::Member(name),
        ) => {
            let ty = members.iter().find(|member| member.name == *name);
            let value = values.into_iter().find(|(member, _)| member == name);
            match (ty, value) {
                (Some(member), Some((_, value))) => inside(&member.ty, value, further),
                _ => Meaning::Missing,
            }
        }
        (
            FieldType::Array { element, .. } | FieldType::Sequence { element, .. },
            Value::Array(values),
            Step::Index(index),
        ) => match values.into_iter().nth(*index as usize) {
            Some(value) => inside(element, value, further),
            None => Meaning::Missing,
        },
        _ => Meaning::Missing,
    }
}

fn meaning(ty: &FieldType, value: &Value<'_>) -> Meaning {
    let wide = |integer: &Integer, bits: i64| match integer.signed {
        true => i128::from(bits),
        false => i128::from(bits as u64),
    };
    match (ty, value) {
        (FieldType::Integer(integer), value) => {
            Meaning::Int(wide(integer, value.as_i64().unwrap_or(0)))
        }
        (FieldType::Enum(integer, mappings), value) => {
            let value = wide(integer, value.as_i64().unwrap_or(0));
            let is_meant = |mapping: &&IntegerMapping| {
                wide(integer, mapping.first) <= value && value <= wide(integer, mapping.last)
            };
            let labels = mappings
                .iter()
                .filter(is_meant)
                .map(|mapping| mapping.label.clone());
            Meaning::Labelled(value, labels.collect())
        }
        (_, Value::Float(value)) => Meaning::Float(*value),
        (_, Value::Text(text)) => Meaning::Text(text.as_bytes().to_vec()),
        _ => Meaning::Compound,
    }
}

fn number(value: Meaning) -> Option<Meaning> {
    match value {
        Meaning::Labelled(value, _) => Some(Meaning::Int(value)),
        Meaning::Int(_) | Meaning::Float(_) => Some(value),
        _ => None,
    }
}

fn as_float(value: &Meaning) -> f64 {
    match value {
        Meaning::Int(value) => *value as f64,
        Meaning::Float(value) => *value,
        other => panic!("{other:?} is no number"),
    }
}

fn unit(field: &FieldRef) -> Unit {
    field.to_string().ends_with("_us").then_some((1_000, false))
}

/// Both in nanoseconds when one is a duration; none when that is too large.
fn in_one_unit(
    left: Meaning,
    left_unit: Unit,
    right: Meaning,
    right_unit: Unit,
) -> Option<(Meaning, Meaning, Unit)> {
    let in_ns = |value: Meaning, unit: Unit| match (value, unit) {
        (Meaning::Int(value), Some((ns, _))) => value.checked_mul(ns).map(Meaning::Int),
        (Meaning::Float(value), Some((ns, false))) => Some(Meaning::Float(value * ns as f64)),
        (value, _) => Some(value),
    };
    let is_duration = |unit: Unit| unit.is_some_and(|(_, duration)| duration);
    if is_duration(left_unit) || is_duration(right_unit) {
        return Some((
            in_ns(left, left_unit)?,
            in_ns(right, right_unit)?,
            Some((1, true)),
        ));
    }
    Some((left, right, left_unit.or(right_unit)))
}

fn order(left: &Meaning, right: &Meaning) -> Option<Ordering> {
    match (left, right) {
        (Meaning::Int(left), Meaning::Int(right)) => Some(left.cmp(right)),
        (Meaning::Float(left), Meaning::Float(right)) => left.partial_cmp(right),
        (Meaning::Float(_), Meaning::Int(_)) => order(right, left).map(Ordering::reverse),
        (Meaning::Int(left), Meaning::Float(right)) => {
            // Rounding keeps the order, except that it makes neighbours equal.
            let rounded = (*left as f64).partial_cmp(right)?;
            Some(rounded.then_with(|| left.cmp(&(*right as i128))))
        }
        _ => None,
    }
}

fn ordered(op: CompareOp, order: Option<Ordering>) -> bool {
    match (op, order) {
        (CompareOp::NotEqual, order) => order != Some(Ordering::Equal),
        (_, None) => false,
        (CompareOp::Equal, Some(order)) => order == Ordering::Equal,
        (CompareOp::Less, Some(order)) => order == Ordering::Less,
        (CompareOp::LessEqual, Some(order)) => order != Ordering::Greater,
        (CompareOp::Greater, Some(order)) => order == Ordering::Greater,
        (CompareOp::GreaterEqual, Some(order)) => order != Ordering::Less,
    }
}

fn integers(op: BinaryOp, left: i128, right: i128) -> Option<i128> {
    let bits = || u32::try_from(right).ok().filter(|bits| *bits < 64);
    match op {
        BinaryOp::Add => left.checked_add(right),
        BinaryOp::Subtract => left.checked_sub(right),
        BinaryOp::Multiply => left.checked_mul(right),
        BinaryOp::Divide => left.checked_div(right),
        BinaryOp::Remainder => left.checked_rem(right),
        BinaryOp::And => Some(left & right),
        BinaryOp::Or => Some(left | right),
        BinaryOp::Xor => Some(left ^ right),
        BinaryOp::ShiftLeft => (0..bits()?).try_fold(left, |value, _| value.checked_mul(2)),
        BinaryOp::ShiftRight => Some((0..bits()?).fold(left, |value, _| value.div_euclid(2))),
    }
}

fn floats(op: BinaryOp, left: f64, right: f64) -> Option<f64> {
    match op {
        BinaryOp::Add => Some(left + right),
        BinaryOp::Subtract => Some(left - right),
        BinaryOp::Multiply => Some(left * right),
        BinaryOp::Divide if right != 0.0 => Some(left / right),
        BinaryOp::Remainder if right != 0.0 => Some(left % right),
        _ => None,
    }
}

/// Only letters between two optional anchors: what the generator makes.
fn regex(pattern: &[u8], text: &[u8]) -> bool {
    let from_start = pattern.first() == Some(&b'^');
    let to_end = pattern.last() == Some(&b'$');
    let letters = &pattern[usize::from(from_start)..pattern.len() - usize::from(to_end)];
    let starts = 0..=text.len();
    starts
        .filter(|start| !from_start || *start == 0)
        .any(|start| match to_end {
            true => &text[start..] == letters,
            false => text[start..].starts_with(letters),
        })
}

/// By trying everything; sets are not generated.
fn glob(pattern: &Text, at: usize, text: &[u8], all: bool) -> bool {
    let Some(byte) = pattern.bytes.get(at) else {
        return text.is_empty();
    };
    let special = !pattern.escaped.contains(&(at as u32));
    match byte {
        b'*' if special => (0..=text.len()).any(|start| glob(pattern, at + 1, &text[start..], all)),
        b'?' if special && all => !text.is_empty() && glob(pattern, at + 1, &text[1..], all),
        byte => text.first() == Some(byte) && glob(pattern, at + 1, &text[1..], all),
    }
}
