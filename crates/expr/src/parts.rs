//! What a comparison is made of.

use crate::ast::{Cond, FieldRef, Literal, Operand};

/// The values of one comparison.
pub(crate) fn operands(cond: &Cond) -> Vec<&Operand> {
    match cond {
        Cond::Compare(_, left, right) => vec![left, right],
        Cond::Match(_, value, _) | Cond::True(value) => vec![value],
        Cond::In(left, list) => std::iter::once(left).chain(list).collect(),
        _ => Vec::new(),
    }
}

/// Whether one comparison has a text that was written down.
pub(crate) fn has_text(cond: &Cond) -> bool {
    let is_text = |operand: &&Operand| matches!(operand, Operand::Literal(Literal::Text(_), _));
    matches!(cond, Cond::Match(..)) || operands(cond).iter().any(is_text)
}

/// The fields of a value.
pub(crate) fn fields(operand: &Operand) -> Vec<&FieldRef> {
    match operand {
        Operand::Literal(..) => Vec::new(),
        Operand::Field(field) => vec![field],
        Operand::Unary(_, value, _) => fields(value),
        Operand::Binary(_, left, right) => [fields(left), fields(right)].concat(),
    }
}
