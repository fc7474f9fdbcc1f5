//! Numbers: 64 bits in a register, and the range in which they lie, so that what those bits mean is
//! known while the code is made.

use event::{FieldId, FieldType, Integer};

use super::asm::{Alu, FRAME, Jump, Label, R0, R1, R2};
use super::coder::{Coded, Coder, Place, Refusal, refuse};
use crate::ast::{BinaryOp, Pseudo, Step, UnaryOp};
use crate::number::Num;
use crate::program::{Nested, Number};

/// Helpers of the kernel (`include/uapi/linux/bpf.h`).
const GET_SMP_PROCESSOR_ID: i32 = 8;
const GET_CURRENT_PID_TGID: i32 = 14;

/// The first bytes of a record are not the programs' to read.
const HIDDEN_BYTES: u32 = 8;

/// The least and the greatest value that a number may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub min: i128,
    pub max: i128,
}

const SIGNED: Range = Range {
    min: i64::MIN as i128,
    max: i64::MAX as i128,
};

impl Range {
    pub(super) fn of(value: i128) -> Range {
        Range {
            min: value,
            max: value,
        }
    }

    fn integer(ty: &Integer) -> Range {
        let bits = u32::from(ty.size_bits);
        match ty.signed {
            true => Range {
                min: -(1i128 << (bits - 1)),
                max: (1i128 << (bits - 1)) - 1,
            },
            false => Range {
                min: 0,
                max: (1i128 << bits) - 1,
            },
        }
    }

    /// As 64 bits with a sign.
    pub(super) fn is_signed(self) -> bool {
        SIGNED.min <= self.min && self.max <= SIGNED.max
    }

    /// Itself, when 64 bits hold every value.
    fn fits(self) -> Coded<Range> {
        match self.is_signed() || (self.min >= 0 && self.max <= i128::from(u64::MAX)) {
            true => Ok(self),
            false => refuse(
                "a number may be beyond 64 bits",
                "make it smaller first, as in (a & 0xffffffff) + b",
            ),
        }
    }

    /// The bits of a constant.
    pub(super) fn bits(self) -> Coded<u64> {
        self.fits().map(|range| range.min as u64)
    }

    /// From the results at its corners.
    fn corners(values: [i128; 4]) -> Range {
        let (mut min, mut max) = (values[0], values[0]);
        for value in values {
            min = min.min(value);
            max = max.max(value);
        }
        Range { min, max }
    }

    fn magnitude(self) -> i128 {
        self.min.abs().max(self.max.abs())
    }
}

impl Number {
    /// Whether an event may have no such number: it divides by zero, or shifts too far.
    pub(super) fn may_be_missing(&self) -> bool {
        match self {
            Number::Unary(_, value) => value.may_be_missing(),
            Number::Binary(op, sides) => {
                let divides = matches!(
                    op,
                    BinaryOp::Divide
                        | BinaryOp::Remainder
                        | BinaryOp::ShiftLeft
                        | BinaryOp::ShiftRight
                );
                divides || sides.0.may_be_missing() || sides.1.may_be_missing()
            }
            _ => false,
        }
    }
}

fn fraction<T>() -> Coded<T> {
    refuse(
        "the kernel has no fractions",
        "write whole numbers, as in 1500us",
    )
}

impl Coder<'_> {
    /// In which range a number lies.
    pub(super) fn range(&self, number: &Number) -> Coded<Range> {
        match number {
            Number::Const(Num::Int(value)) => Ok(Range::of(*value)),
            Number::Const(Num::Float(_)) | Number::Float(_) => fraction(),
            Number::Integer { field, .. } => {
                self.field_integer(*field).map(|ty| Range::integer(&ty))
            }
            Number::Nested(nested) => self.element(nested).map(|(_, ty)| Range::integer(&ty)),
            Number::Pseudo(Pseudo::Cpu) => Ok(Range::integer(&Integer::le(32, false))),
            Number::Pseudo(Pseudo::Time) => Ok(Range {
                min: 0,
                max: SIGNED.max,
            }),
            Number::Pseudo(_) => Ok(Range::integer(&Integer::le(32, true))),
            Number::Unary(op, value) => {
                let range = self.range(value)?;
                let inverted = i128::from(*op == UnaryOp::Invert);
                let range = Range {
                    min: -range.max - inverted,
                    max: -range.min - inverted,
                };
                self.kept(range)
            }
            Number::Binary(op, sides) => {
                let (left, right) = (self.range(&sides.0)?.fits()?, self.range(&sides.1)?.fits()?);
                self.kept(binary_range(*op, left, right)?)
            }
        }
    }

    /// What 64 bits keep of a result. Of a key they are enough: both sides are cut alike.
    fn kept(&self, range: Range) -> Coded<Range> {
        match range.fits() {
            Err(_) if self.is_key => Ok(SIGNED),
            result => result,
        }
    }

    /// A number into the first register; goes to `missing` when the event has none.
    pub(super) fn number(&mut self, number: &Number, depth: usize, missing: Label) -> Coded<Range> {
        let range = self.range(number)?.fits()?;
        match number {
            Number::Const(_) => self.assembler.constant(R0, range.bits()?),
            Number::Float(_) => return fraction(),
            Number::Integer { field, .. } => {
                let ty = self.field_integer(*field)?;
                self.load_field(self.layout.places[usize::from(field.0)], &ty)?;
            }
            Number::Nested(nested) => {
                let (place, ty) = self.element(nested)?;
                self.load_field(place, &ty)?;
            }
            Number::Pseudo(Pseudo::Cpu) => self.assembler.call(GET_SMP_PROCESSOR_ID),
            Number::Pseudo(Pseudo::Time) => self.assembler.load(R0, FRAME, self.frame.now, 8),
            Number::Pseudo(Pseudo::Prio) => self.assembler.load(R0, FRAME, self.frame.prio, 8),
            Number::Pseudo(_) => self.load_tid(),
            Number::Unary(op, value) => {
                self.number(value, depth, missing)?;
                match op {
                    UnaryOp::Negate => self.assembler.negate(R0),
                    UnaryOp::Invert => self.assembler.alu_by(Alu::Xor, R0, -1),
                }
            }
            Number::Binary(op, sides) => {
                let (left, right) = (self.range(&sides.0)?, self.range(&sides.1)?);
                self.both(&sides.0, &sides.1, depth, missing)?;
                self.binary(*op, left, right, missing);
            }
        }
        Ok(range)
    }

    fn load_tid(&mut self) {
        self.assembler.call(GET_CURRENT_PID_TGID);
        self.extend(&Integer::le(32, true));
    }

    /// The type of an integer field.
    fn field_integer(&self, field: FieldId) -> Coded<Integer> {
        let fields = &self.layout.class.fields;
        let ty = fields.get(usize::from(field.0)).map(|field| &field.ty);
        ty.and_then(integer_of).ok_or(NO_NUMBER)
    }

    /// An element of an array of integers.
    fn element(&self, nested: &Nested) -> Coded<(Place, Integer)> {
        let at = usize::from(nested.field.0);
        let ty = self.layout.class.fields.get(at).map(|field| &field.ty);
        let (Some(FieldType::Array { element, .. }), Place::Elements { at }, [Step::Index(index)]) =
            (ty, self.layout.places[at], &*nested.steps)
        else {
            return Err(NO_NUMBER);
        };
        let integer = integer_of(element).ok_or(NO_NUMBER)?;
        let bytes = integer.size_bits / 8;
        let place = Place::Integer {
            at: at + index * u32::from(bytes),
            bytes,
            signed: integer.signed,
            plus: 0,
        };
        Ok((place, integer))
    }

    /// The integer of a field into the first register.
    fn load_field(&mut self, place: Place, ty: &Integer) -> Coded<()> {
        let (at, bytes, signed, plus) = match place {
            Place::Current => {
                self.load_tid();
                return Ok(());
            }
            Place::Integer {
                at,
                bytes,
                signed,
                plus,
            } => (at, bytes, signed, plus),
            Place::Unreadable => return Err(UNREADABLE),
            _ => return Err(NO_NUMBER),
        };
        let hidden = !self.layout.in_frame && at < HIDDEN_BYTES;
        let (Ok(offset), false, true) = (
            i16::try_from(at),
            hidden,
            at.is_multiple_of(u32::from(bytes)),
        ) else {
            return Err(NO_NUMBER);
        };
        let base = self.base();
        self.assembler.load(R0, base, offset, bytes);
        if signed && bytes < 8 {
            self.extend(&Integer::le(bytes * 8, true));
        }
        if plus != 0 {
            let Ok(plus) = i32::try_from(plus) else {
                return Err(NO_NUMBER);
            };
            self.assembler.alu_by(Alu::Add, R0, plus);
        }
        let as_it_is = plus == 0 && signed == ty.signed && bytes * 8 == ty.size_bits;
        if !as_it_is && ty.size_bits < 64 {
            self.extend(ty);
        }
        Ok(())
    }

    /// Keeps as many bits as the type has, with its sign.
    fn extend(&mut self, ty: &Integer) {
        let surplus = 64 - i32::from(ty.size_bits);
        self.assembler.alu_by(Alu::Lsh, R0, surplus);
        let back = if ty.signed { Alu::Arsh } else { Alu::Rsh };
        self.assembler.alu_by(back, R0, surplus);
    }

    /// `R0 = R0 OP R1`
    fn binary(&mut self, op: BinaryOp, left: Range, right: Range, missing: Label) {
        let asm = &mut self.assembler;
        match op {
            BinaryOp::Add => asm.alu(Alu::Add, R0, R1),
            BinaryOp::Subtract => asm.alu(Alu::Sub, R0, R1),
            BinaryOp::Multiply => asm.alu(Alu::Mul, R0, R1),
            BinaryOp::And => asm.alu(Alu::And, R0, R1),
            BinaryOp::Or => asm.alu(Alu::Or, R0, R1),
            BinaryOp::Xor => asm.alu(Alu::Xor, R0, R1),
            BinaryOp::ShiftLeft => {
                asm.branch_by(Jump::Greater, R1, 63, missing);
                asm.alu(Alu::Lsh, R0, R1);
            }
            BinaryOp::ShiftRight => {
                asm.branch_by(Jump::Greater, R1, 63, missing);
                let shift = if left.min < 0 { Alu::Arsh } else { Alu::Rsh };
                asm.alu(shift, R0, R1);
            }
            BinaryOp::Divide => self.divide(Alu::Div, left, right, missing),
            BinaryOp::Remainder => self.divide(Alu::Mod, left, right, missing),
        }
    }

    /// Division cuts towards zero; the kernel's own knows no sign.
    fn divide(&mut self, op: Alu, left: Range, right: Range, missing: Label) {
        let asm = &mut self.assembler;
        asm.branch_by(Jump::Equal, R1, 0, missing);
        if left.min >= 0 && right.min >= 0 {
            return asm.alu(op, R0, R1);
        }
        // The result's sign: a remainder has that of what is divided.
        asm.alu(Alu::Mov, R2, R0);
        if op == Alu::Div {
            asm.alu(Alu::Xor, R2, R1);
        }
        for (register, range) in [(R0, left), (R1, right)] {
            if range.min < 0 {
                let positive = asm.label();
                asm.branch_by(Jump::SignedGreaterEqual, register, 0, positive);
                asm.negate(register);
                asm.place(positive);
            }
        }
        asm.alu(op, R0, R1);
        let positive = asm.label();
        asm.branch_by(Jump::SignedGreaterEqual, R2, 0, positive);
        asm.negate(R0);
        asm.place(positive);
    }
}

const UNREADABLE: Refusal = Refusal {
    what: "this argument of the mark is no number in a register or in memory",
    fix: "take another one; 'readelf -n FILE' shows how the program passes them",
};

const NO_NUMBER: Refusal = Refusal {
    what: "this field is no number that it can read",
    fix: "take another field of the event",
};

fn integer_of(ty: &FieldType) -> Option<Integer> {
    match ty {
        FieldType::Integer(integer) | FieldType::Enum(integer, _) => Some(*integer),
        _ => None,
    }
}

fn binary_range(op: BinaryOp, left: Range, right: Range) -> Coded<Range> {
    let both_positive = left.min >= 0 && right.min >= 0;
    let mixed = !(both_positive || left.is_signed() && right.is_signed());
    Ok(match op {
        BinaryOp::Add => Range {
            min: left.min + right.min,
            max: left.max + right.max,
        },
        BinaryOp::Subtract => Range {
            min: left.min - right.max,
            max: left.max - right.min,
        },
        // Of two numbers of 64 bits each product has fewer than 128.
        BinaryOp::Multiply => Range::corners([
            left.min.saturating_mul(right.min),
            left.min.saturating_mul(right.max),
            left.max.saturating_mul(right.min),
            left.max.saturating_mul(right.max),
        ]),
        BinaryOp::Divide if both_positive => Range {
            min: 0,
            max: left.max,
        },
        BinaryOp::Remainder if both_positive => Range {
            min: 0,
            max: left.max.min(right.max),
        },
        BinaryOp::Divide | BinaryOp::Remainder if mixed => return Err(MIXED),
        BinaryOp::Divide if right.min > 1 || right.max < -1 => {
            let largest = left.magnitude() / 2;
            Range {
                min: -largest,
                max: largest,
            }
        }
        BinaryOp::Divide => {
            let largest = left.magnitude();
            Range {
                min: -largest,
                max: largest,
            }
        }
        BinaryOp::Remainder => {
            let largest = right.magnitude() - 1;
            Range {
                min: if left.min < 0 { -largest } else { 0 },
                max: largest.max(0),
            }
        }
        BinaryOp::And => and_range(left, right)?,
        BinaryOp::Or | BinaryOp::Xor if both_positive => {
            let bits = 128 - (left.max | right.max).leading_zeros();
            Range {
                min: 0,
                max: (1i128 << bits) - 1,
            }
        }
        BinaryOp::Or | BinaryOp::Xor if mixed => return Err(MIXED),
        BinaryOp::Or | BinaryOp::Xor => SIGNED,
        BinaryOp::ShiftLeft => shift_range(left, right)?,
        BinaryOp::ShiftRight => Range {
            min: left.min.min(0),
            max: left.max.max(0),
        },
    })
}

const MIXED: Refusal = Refusal {
    what: "it joins a number below 0 with one of 64 bits without a sign",
    fix: "mask one of them first, as in a & 0xffffffff",
};

fn and_range(left: Range, right: Range) -> Coded<Range> {
    let max = match (left.min >= 0, right.min >= 0) {
        (true, true) => left.max.min(right.max),
        (true, false) => left.max,
        (false, true) => right.max,
        (false, false) if left.is_signed() && right.is_signed() => return Ok(SIGNED),
        (false, false) => return Err(MIXED),
    };
    Ok(Range { min: 0, max })
}

fn shift_range(left: Range, right: Range) -> Coded<Range> {
    if right.min != right.max {
        return refuse(
            "it shifts to the left by a number that it does not know",
            "shift by a number that is written down",
        );
    }
    // Too far: there is no result.
    if !(0..=63).contains(&right.min) {
        return Ok(Range::of(0));
    }
    Ok(Range {
        min: left.min << right.min,
        max: left.max << right.min,
    })
}
