//! Units of time: a duration that is written down meets fields whose names say their unit.

use crate::ast::{BinaryOp, FieldRef, Root, Step, UnaryOp};

/// What is known of a number's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    None,
    /// A duration, in nanoseconds.
    Duration,
    /// A field of which one is so many nanoseconds.
    Scale(i64),
}

/// How names of fields end, with the nanoseconds of the unit.
const SUFFIXES: [(&str, i64); 8] = [
    ("_ns", 1),
    ("_us", 1_000),
    ("_ms", 1_000_000),
    ("_s", 1_000_000_000),
    ("_nsec", 1),
    ("_usec", 1_000),
    ("_msec", 1_000_000),
    ("_sec", 1_000_000_000),
];

impl Unit {
    /// As the name of a field says.
    pub fn of(reference: &FieldRef) -> Unit {
        let member = reference.steps.iter().rev().find_map(|step| match step {
            Step::Member(name) => Some(name),
            Step::Index(_) => None,
        });
        let root = match &reference.root {
            Root::Auto(name) | Root::Scoped(_, name) | Root::App(_, name) => Some(name),
            Root::Pseudo(_) => None,
        };
        let name = member.or(root).map(String::as_str).unwrap_or_default();
        let suffix = SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix));
        suffix.map_or(Unit::None, |(_, ns)| Unit::Scale(*ns))
    }

    /// What to multiply two numbers with before they are added or compared, and their unit then.
    pub fn reconcile(self, other: Unit) -> (i64, i64, Unit) {
        match (self, other) {
            (Unit::Scale(ns), Unit::Duration) => (ns, 1, Unit::Duration),
            (Unit::Duration, Unit::Scale(ns)) => (1, ns, Unit::Duration),
            (Unit::Duration, _) | (_, Unit::Duration) => (1, 1, Unit::Duration),
            (Unit::Scale(left), Unit::Scale(right)) if left != right => (1, 1, Unit::None),
            (Unit::Scale(ns), _) | (_, Unit::Scale(ns)) => (1, 1, Unit::Scale(ns)),
            (Unit::None, Unit::None) => (1, 1, Unit::None),
        }
    }

    pub fn after_unary(self, op: UnaryOp) -> Unit {
        match op {
            UnaryOp::Negate => self,
            UnaryOp::Invert => Unit::None,
        }
    }

    /// After a multiplication, a division, or an operation on bits.
    pub fn after_scaling(self, op: BinaryOp, other: Unit) -> Unit {
        match (op, self, other) {
            (BinaryOp::Multiply, unit, Unit::None)
            | (BinaryOp::Multiply, Unit::None, unit)
            | (BinaryOp::Divide, unit, Unit::None) => unit,
            _ => Unit::None,
        }
    }
}
