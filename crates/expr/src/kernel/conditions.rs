//! Conditions: code that goes one way when they hold and another way when not.

use std::cmp::Ordering;

use super::asm::{Alu, FRAME, Jump, Label, R0, R1};
use super::coder::{Coded, Coder, SLOTS, Ways, refuse};
use super::numbers::Range;
use crate::ast::CompareOp;
use crate::number::Num;
use crate::program::{Number, Test};

impl Coder<'_> {
    /// Code for a test; it never falls out of its end.
    pub(super) fn condition(&mut self, test: &Test, ways: Ways) -> Coded<()> {
        match test {
            Test::Const(true) => self.assembler.goto(ways.yes),
            Test::Const(false) => self.assembler.goto(ways.no),
            Test::All(tests) => return self.row(tests, ways, true),
            Test::Any(tests) => return self.row(tests, ways, false),
            Test::Not(test) => return self.condition(test, ways.when(false)),
            Test::Field {
                field,
                signed,
                op,
                value,
            } => {
                let field = Number::Integer {
                    field: *field,
                    signed: *signed,
                };
                let value = Number::Const(Num::Int(*value));
                return self.compare(*op, &field, &value, ways);
            }
            Test::Compare(op, left, right) => return self.compare(*op, left, right, ways),
            Test::Ranges {
                number,
                ranges,
                inside,
            } => return self.ranges(number, ranges, *inside, ways),
            Test::Equal {
                text,
                bytes,
                wanted,
            } => return self.equal(text, bytes, *wanted, ways),
            Test::Matches {
                text,
                matcher,
                wanted,
            } => return self.matches(text, matcher, *wanted, ways),
            Test::NotZero(number) => {
                self.number(number, 0, ways.no)?;
                self.assembler.branch_by(Jump::NotEqual, R0, 0, ways.yes);
                self.assembler.goto(ways.no);
            }
            Test::HasNumber(number) => {
                self.number(number, 0, ways.no)?;
                self.assembler.goto(ways.yes);
            }
            Test::HasText(_) => self.assembler.goto(ways.yes),
            Test::CompareTexts(..) => {
                return refuse(
                    "it asks which of two texts comes first, or compares two fields",
                    "compare a text with == and != with one in double quotes",
                );
            }
            Test::HasNested(_) => {
                return refuse(
                    "whether an element is there only the whole event says",
                    "leave 'present' away",
                );
            }
        }
        Ok(())
    }

    /// All tests, or any: one after the other until one settles it.
    fn row(&mut self, tests: &[Test], ways: Ways, all: bool) -> Coded<()> {
        for test in tests {
            let next = self.assembler.label();
            let on = match all {
                true => Ways {
                    yes: next,
                    no: ways.no,
                },
                false => Ways {
                    yes: ways.yes,
                    no: next,
                },
            };
            self.condition(test, on)?;
            self.assembler.place(next);
        }
        self.assembler.goto(if all { ways.yes } else { ways.no });
        Ok(())
    }

    fn compare(&mut self, op: CompareOp, left: &Number, right: &Number, ways: Ways) -> Coded<()> {
        let (left_range, right_range) = (self.range(left)?, self.range(right)?);
        let is_sure = !left.may_be_missing() && !right.may_be_missing();
        if let Some(holds) = settled(op, left_range, right_range).filter(|_| is_sure) {
            let test = Test::Const(holds);
            return self.condition(&test, ways);
        }
        self.both(left, right, 0, ways.no)?;
        let signed = match (left_range.min < 0, right_range.min < 0) {
            (false, false) => false,
            _ if left_range.is_signed() && right_range.is_signed() => true,
            (true, _) => {
                // Less than every number without a sign.
                let way = if op.holds(Ordering::Less) {
                    ways.yes
                } else {
                    ways.no
                };
                self.assembler.branch_by(Jump::SignedLess, R0, 0, way);
                false
            }
            (false, true) => {
                let way = if op.holds(Ordering::Greater) {
                    ways.yes
                } else {
                    ways.no
                };
                self.assembler.branch_by(Jump::SignedLess, R1, 0, way);
                false
            }
        };
        self.assembler.branch(jump(op, signed), R0, R1, ways.yes);
        self.assembler.goto(ways.no);
        Ok(())
    }

    /// The left number into the first register, the right one into the second.
    pub(super) fn both(
        &mut self,
        left: &Number,
        right: &Number,
        depth: usize,
        missing: Label,
    ) -> Coded<()> {
        if let Number::Const(Num::Int(value)) = right {
            self.number(left, depth, missing)?;
            let bits = Range::of(*value).bits()?;
            self.assembler.constant(R1, bits);
            return Ok(());
        }
        if depth >= SLOTS {
            return refuse("it nests too deep", "write it with fewer parentheses");
        }
        let slot = self.frame.slots + 8 * depth as i16;
        self.number(left, depth, missing)?;
        self.assembler.store(FRAME, slot, R0);
        self.number(right, depth + 1, missing)?;
        self.assembler.alu(Alu::Mov, R1, R0);
        self.assembler.load(R0, FRAME, slot, 8);
        Ok(())
    }

    fn ranges(
        &mut self,
        number: &Number,
        ranges: &[(i128, i128)],
        inside: bool,
        ways: Ways,
    ) -> Coded<()> {
        let whole = self.number(number, 0, ways.no)?;
        let signed = whole.min < 0;
        let ways = ways.when(inside);
        for (first, last) in ranges {
            let (first, last) = ((*first).max(whole.min), (*last).min(whole.max));
            if first > last {
                continue;
            }
            let next = self.assembler.label();
            let below = if signed { Jump::SignedLess } else { Jump::Less };
            let above = if signed {
                Jump::SignedLessEqual
            } else {
                Jump::LessEqual
            };
            self.assembler.constant(R1, Range::of(first).bits()?);
            self.assembler.branch(below, R0, R1, next);
            self.assembler.constant(R1, Range::of(last).bits()?);
            self.assembler.branch(above, R0, R1, ways.yes);
            self.assembler.place(next);
        }
        self.assembler.goto(ways.no);
        Ok(())
    }
}

/// The answer that both ranges give already.
fn settled(op: CompareOp, left: Range, right: Range) -> Option<bool> {
    let order = if left.max < right.min {
        Ordering::Less
    } else if left.min > right.max {
        Ordering::Greater
    } else if left.min == left.max && left == right {
        Ordering::Equal
    } else {
        return None;
    };
    Some(op.holds(order))
}

fn jump(op: CompareOp, signed: bool) -> Jump {
    match (op, signed) {
        (CompareOp::Equal, _) => Jump::Equal,
        (CompareOp::NotEqual, _) => Jump::NotEqual,
        (CompareOp::Less, false) => Jump::Less,
        (CompareOp::LessEqual, false) => Jump::LessEqual,
        (CompareOp::Greater, false) => Jump::Greater,
        (CompareOp::GreaterEqual, false) => Jump::GreaterEqual,
        (CompareOp::Less, true) => Jump::SignedLess,
        (CompareOp::LessEqual, true) => Jump::SignedLessEqual,
        (CompareOp::Greater, true) => Jump::SignedGreater,
        (CompareOp::GreaterEqual, true) => Jump::SignedGreaterEqual,
    }
}
