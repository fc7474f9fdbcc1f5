//! Numbers without silent wrapping: integers of either sign side by side, floats beside them.

use std::cmp::Ordering;

use crate::ast::{BinaryOp, UnaryOp};

/// A number of an event or of a filter. Fields have 64 bits, so that their sums, differences and
/// products fit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Num {
    Int(i128),
    Float(f64),
}

impl Num {
    pub fn is_zero(self) -> bool {
        match self {
            Num::Int(value) => value == 0,
            Num::Float(value) => value == 0.0,
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Num::Int(value) => value as f64,
            Num::Float(value) => value,
        }
    }

    /// The exact order, also between an integer and a float; none when one is not a number.
    pub fn order(self, other: Num) -> Option<Ordering> {
        match (self, other) {
            (Num::Int(left), Num::Int(right)) => Some(left.cmp(&right)),
            (Num::Float(left), Num::Float(right)) => left.partial_cmp(&right),
            (Num::Int(left), Num::Float(right)) => order_mixed(left, right),
            (Num::Float(left), Num::Int(right)) => order_mixed(right, left).map(Ordering::reverse),
        }
    }

    /// The result of an operation; none when it has none.
    pub fn unary(op: UnaryOp, value: Num) -> Option<Num> {
        match (op, value) {
            (UnaryOp::Negate, Num::Int(value)) => value.checked_neg().map(Num::Int),
            (UnaryOp::Negate, Num::Float(value)) => Some(Num::Float(-value)),
            (UnaryOp::Invert, Num::Int(value)) => Some(Num::Int(!value)),
            (UnaryOp::Invert, Num::Float(_)) => None,
        }
    }

    /// The result of an operation; none when it has none: a division by zero, a shift by less than
    /// 0 or more than 63 bits, bits of a float, more than 128 bits.
    pub fn binary(op: BinaryOp, left: Num, right: Num) -> Option<Num> {
        match (left, right) {
            (Num::Int(left), Num::Int(right)) => integers(op, left, right).map(Num::Int),
            _ => floats(op, left.as_f64(), right.as_f64()).map(Num::Float),
        }
    }
}

/// The greatest power of two that an `i128` holds no more.
const I128_END: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;

fn order_mixed(left: i128, right: f64) -> Option<Ordering> {
    if right.is_nan() {
        return None;
    }
    if right >= I128_END {
        return Some(Ordering::Less);
    }
    if right < -I128_END {
        return Some(Ordering::Greater);
    }
    // Cutting the fraction is exact here, and what is cut decides between equals.
    let whole = right.trunc();
    let order = left.cmp(&(whole as i128));
    order
        .then_with(|| whole.partial_cmp(&right).unwrap_or(Ordering::Equal))
        .into()
}

/// More moves every bit of a field out.
const SHIFT_MAX: i128 = 63;

fn integers(op: BinaryOp, left: i128, right: i128) -> Option<i128> {
    let shift = || (0..=SHIFT_MAX).contains(&right).then_some(right as u32);
    match op {
        BinaryOp::Add => left.checked_add(right),
        BinaryOp::Subtract => left.checked_sub(right),
        BinaryOp::Multiply => left.checked_mul(right),
        BinaryOp::Divide => left.checked_div(right),
        BinaryOp::Remainder => left.checked_rem(right),
        BinaryOp::And => Some(left & right),
        BinaryOp::Or => Some(left | right),
        BinaryOp::Xor => Some(left ^ right),
        BinaryOp::ShiftLeft => left.checked_mul(1 << shift()?),
        BinaryOp::ShiftRight => Some(left >> shift()?),
    }
}

fn floats(op: BinaryOp, left: f64, right: f64) -> Option<f64> {
    match op {
        BinaryOp::Add => Some(left + right),
        BinaryOp::Subtract => Some(left - right),
        BinaryOp::Multiply => Some(left * right),
        BinaryOp::Divide => (right != 0.0).then(|| left / right),
        BinaryOp::Remainder => (right != 0.0).then(|| left % right),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_and_a_float_compare_exactly() {
        let check = |left: i128, right: f64, expect: Option<Ordering>| {
            assert_eq!(
                Num::Int(left).order(Num::Float(right)),
                expect,
                "{left} {right}"
            );
            let reversed = Num::Float(right).order(Num::Int(left));
            assert_eq!(reversed, expect.map(Ordering::reverse), "{right} {left}");
        };
        check(1, 1.0, Some(Ordering::Equal));
        check(1, 1.5, Some(Ordering::Less));
        check(2, 1.5, Some(Ordering::Greater));
        check(-1, -1.5, Some(Ordering::Greater));
        check(0, -0.0, Some(Ordering::Equal));
        // The float nearest to 2^53 + 1 is 2^53.
        check(
            (1 << 53) + 1,
            9_007_199_254_740_992.0,
            Some(Ordering::Greater),
        );
        check(
            i128::from(u64::MAX),
            18_446_744_073_709_551_616.0,
            Some(Ordering::Less),
        );
        check(i128::MAX, 1e300, Some(Ordering::Less));
        check(i128::MIN, f64::NEG_INFINITY, Some(Ordering::Greater));
        check(0, f64::NAN, None);
    }

    #[test]
    fn what_has_no_result_gives_none() {
        let check = |op, left: i128, right: i128, expect: Option<i128>| {
            let result = Num::binary(op, Num::Int(left), Num::Int(right));
            let result = result.map(|num| match num {
                Num::Int(value) => value,
                Num::Float(_) => panic!("integers give integers"),
            });
            assert_eq!(result, expect, "{op} {left} {right}");
        };
        check(BinaryOp::Divide, 7, 0, None);
        check(BinaryOp::Remainder, 7, 0, None);
        check(BinaryOp::Divide, -7, 2, Some(-3));
        check(BinaryOp::Remainder, -7, 2, Some(-1));
        check(BinaryOp::Divide, i128::MIN, -1, None);
        check(BinaryOp::Add, i128::MAX, 1, None);
        check(BinaryOp::ShiftLeft, 1, 64, None);
        check(BinaryOp::ShiftLeft, 1, -1, None);
        check(BinaryOp::ShiftLeft, 1, 63, Some(1 << 63));
        check(BinaryOp::ShiftRight, -8, 1, Some(-4));
        check(BinaryOp::And, -1, 0xff, Some(0xff));
        assert!(Num::binary(BinaryOp::And, Num::Float(1.0), Num::Int(1)).is_none());
        assert!(Num::binary(BinaryOp::Divide, Num::Float(1.0), Num::Int(0)).is_none());
    }
}
