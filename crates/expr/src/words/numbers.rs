//! Numbers in the kernel's words: which values of the kernel's field are meant, in its own width
//! and on its own scale.

use event::{EventClass, FieldId, FieldType};

use super::source::{Kind, Source, Worded};
use super::tree::Words;
use crate::ast::{BinaryOp, CompareOp, Pseudo, UnaryOp};
use crate::number::Num;
use crate::program::{Number, Test};

/// Beyond all integers of 64 bits, times all that is multiplied with them here.
const BOTTOM: i128 = -TOP;
const TOP: i128 = 1 << 100;
/// What a field may be multiplied with, and what may be added.
const FACTOR_MAX: i128 = 1 << 32;
const SUMMAND_MAX: i128 = 1 << 96;

/// First and last values.
type Range = (i128, i128);

/// An integer that the kernel's filter compares, and what the recording makes of it.
#[derive(Clone, Copy, Debug)]
struct Integer<'a> {
    name: &'a str,
    bits: u32,
    signed: bool,
    plus: i128,
    /// Width and sign in the recording.
    to_bits: u32,
    to_signed: bool,
    /// It can only be compared: it is no field of the record.
    no_bits: bool,
}

/// A factor times an integer, and a number more.
struct Linear<'a> {
    integer: Integer<'a>,
    factor: i128,
    summand: i128,
}

/// A test of numbers.
pub(super) fn words(test: &Test, class: &EventClass, sources: &[Source]) -> Worded<Words> {
    let fields = Fields { class, sources };
    match test {
        Test::Field {
            field, op, value, ..
        } => Ok(fields.integer(*field)?.within(&holding(*op, *value))),
        Test::Compare(op, left, Number::Const(right)) => fields.compare(*op, left, *right),
        Test::Compare(op, Number::Const(left), right) => {
            fields.compare(op.mirrored(), right, *left)
        }
        Test::Compare(..) => Err("it compares a field with a number, not with another field"),
        Test::Ranges {
            number,
            ranges,
            inside,
        } => Ok(fields.linear(number)?.within(ranges).when(*inside)),
        Test::NotZero(number) => fields.compare(CompareOp::NotEqual, number, Num::Int(0)),
        _ => Err("it has no such number"),
    }
}

struct Fields<'a> {
    class: &'a EventClass,
    sources: &'a [Source],
}

impl<'a> Fields<'a> {
    fn integer(&self, field: FieldId) -> Worded<Integer<'a>> {
        let at = usize::from(field.0);
        let ty = match &self.class.fields[at].ty {
            FieldType::Integer(ty) | FieldType::Enum(ty, _) => ty,
            _ => return Err("it has no such number"),
        };
        let source = &self.sources[at];
        let Kind::Integer { bits, signed, plus } = source.kind else {
            return Err("it has no such number");
        };
        let (bits, to_bits) = (u32::from(bits), u32::from(ty.size_bits));
        if bits > to_bits && plus != 0 {
            return Err("the recording has this number on another scale");
        }
        Ok(Integer {
            name: &source.name,
            bits,
            signed,
            plus: plus.into(),
            to_bits,
            to_signed: ty.signed,
            no_bits: false,
        })
    }

    fn compare(&self, op: CompareOp, left: &Number, right: Num) -> Worded<Words> {
        let Num::Int(right) = right else {
            return Err("it has no fractions");
        };
        if let Number::Binary(BinaryOp::And, sides) = left
            && let (Number::Integer { field, .. }, Number::Const(Num::Int(mask)))
            | (Number::Const(Num::Int(mask)), Number::Integer { field, .. }) = &**sides
        {
            return self.integer(*field)?.masked(*mask, op, right);
        }
        Ok(self.linear(left)?.within(&holding(op, right)))
    }

    fn linear(&self, number: &Number) -> Worded<Linear<'a>> {
        const NOT_SO: &str = "it compares a field, or some of its bits, with a number";
        let linear = match number {
            Number::Integer { field, .. } => self.integer(*field)?.into(),
            Number::Pseudo(Pseudo::Cpu) => Integer::cpu(self.sources)?.into(),
            Number::Unary(UnaryOp::Negate, value) => self.linear(value)?.times(-1),
            Number::Unary(UnaryOp::Invert, value) => self.linear(value)?.times(-1).plus(-1),
            Number::Binary(op, sides) => match (op, &**sides) {
                (BinaryOp::Add, (value, Number::Const(Num::Int(by))))
                | (BinaryOp::Add, (Number::Const(Num::Int(by)), value)) => {
                    self.linear(value)?.plus(*by)
                }
                (BinaryOp::Subtract, (value, Number::Const(Num::Int(by)))) => {
                    self.linear(value)?.plus(by.saturating_neg())
                }
                (BinaryOp::Subtract, (Number::Const(Num::Int(from)), value)) => {
                    self.linear(value)?.times(-1).plus(*from)
                }
                (BinaryOp::Multiply, (value, Number::Const(Num::Int(by))))
                | (BinaryOp::Multiply, (Number::Const(Num::Int(by)), value)) => {
                    self.linear(value)?.times(*by)
                }
                _ => return Err(NOT_SO),
            },
            Number::Const(_) | Number::Float(_) => return Err("it has no fractions"),
            _ => return Err(NOT_SO),
        };
        let is_small = linear.factor.abs() <= FACTOR_MAX && linear.summand.abs() <= SUMMAND_MAX;
        match is_small && linear.factor != 0 {
            true => Ok(linear),
            false => Err("its numbers have 64 bits"),
        }
    }
}

impl<'a> From<Integer<'a>> for Linear<'a> {
    fn from(integer: Integer<'a>) -> Self {
        Linear {
            integer,
            factor: 1,
            summand: 0,
        }
    }
}

impl Linear<'_> {
    fn times(self, by: i128) -> Self {
        Linear {
            factor: self.factor.saturating_mul(by),
            summand: self.summand.saturating_mul(by),
            ..self
        }
    }

    fn plus(self, by: i128) -> Self {
        let summand = self.summand.saturating_add(by);
        Linear { summand, ..self }
    }

    /// It lies in one of the ranges.
    fn within(&self, ranges: &[Range]) -> Words {
        let of_integer = ranges.iter().map(|(first, last)| {
            let first = first.clamp(&BOTTOM, &TOP) - self.summand;
            let last = last.clamp(&BOTTOM, &TOP) - self.summand;
            match self.factor > 0 {
                true => (ceiling(first, self.factor), floor(last, self.factor)),
                false => (ceiling(-last, -self.factor), floor(-first, -self.factor)),
            }
        });
        self.integer.within(&of_integer.collect::<Vec<_>>())
    }
}

fn floor(value: i128, by: i128) -> i128 {
    value.div_euclid(by)
}

fn ceiling(value: i128, by: i128) -> i128 {
    -(-value).div_euclid(by)
}

/// The values for which a comparison with a number holds.
fn holding(op: CompareOp, value: i128) -> Vec<Range> {
    let value = value.clamp(BOTTOM + 1, TOP - 1);
    match op {
        CompareOp::Equal => vec![(value, value)],
        CompareOp::NotEqual => vec![(BOTTOM, value - 1), (value + 1, TOP)],
        CompareOp::Less => vec![(BOTTOM, value - 1)],
        CompareOp::LessEqual => vec![(BOTTOM, value)],
        CompareOp::Greater => vec![(value + 1, TOP)],
        CompareOp::GreaterEqual => vec![(value, TOP)],
    }
}

fn all_of(bits: u32, signed: bool) -> Range {
    match signed {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

/// In order, without what is outside of `whole`, and joined where they touch.
fn merged(ranges: impl IntoIterator<Item = Range>, whole: Range) -> Vec<Range> {
    let clipped = ranges
        .into_iter()
        .map(|(first, last)| (first.max(whole.0), last.min(whole.1)));
    let mut ranges: Vec<Range> = clipped.filter(|(first, last)| first <= last).collect();
    ranges.sort_unstable();
    let mut merged: Vec<Range> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// What of `whole` is in none of these, which are merged.
fn gaps(ranges: &[Range], whole: Range) -> Vec<Range> {
    let mut gaps = Vec::new();
    let mut next = whole.0;
    for (first, last) in ranges {
        if next < *first {
            gaps.push((next, first - 1));
        }
        next = last + 1;
    }
    if next <= whole.1 {
        gaps.push((next, whole.1));
    }
    gaps
}

impl<'a> Integer<'a> {
    /// The CPU, which the kernel calls so where no field has that name.
    fn cpu(sources: &[Source]) -> Worded<Integer<'a>> {
        if sources.iter().any(|source| source.name == "CPU") {
            return Err("a field of this event has the name by which it knows the CPU");
        }
        Ok(Integer {
            name: "CPU",
            bits: 32,
            signed: true,
            plus: 0,
            to_bits: 32,
            to_signed: true,
            no_bits: true,
        })
    }

    /// What the recording has of it lies in one of the ranges.
    fn within(&self, ranges: &[Range]) -> Words {
        let ranges = merged(ranges.iter().copied(), all_of(self.to_bits, self.to_signed));
        if self.bits > self.to_bits {
            return self.by_bits(&ranges);
        }
        // What the recording's width cuts off comes again at the other end.
        let turn = 1i128 << self.to_bits;
        let whole = all_of(self.bits, self.signed);
        let of_kernel = ranges.iter().flat_map(|(first, last)| {
            (-2..=2).map(move |turns| {
                let by = turns * turn - self.plus;
                (first + by, last + by)
            })
        });
        let ranges = merged(of_kernel, whole);
        let missing = gaps(&ranges, whole);
        match missing[..] {
            [] => Words::Always,
            [(first, last)] if first == last && ranges.len() > 1 => self.compared("!=", first),
            _ => Words::any(ranges.iter().map(|range| self.between(*range, whole))),
        }
    }

    fn between(&self, (first, last): Range, whole: Range) -> Words {
        if first == last {
            return self.compared("==", first);
        }
        let from = (first > whole.0).then(|| self.compared(">=", first));
        let to = (last < whole.1).then(|| self.compared("<=", last));
        Words::all(from.into_iter().chain(to))
    }

    fn compared(&self, operator: &str, value: i128) -> Words {
        Words::single(format!("{} {operator} {value}", self.name))
    }

    /// Some of these bits of the kernel's field are set.
    fn has_bits(&self, mask: u128) -> Words {
        if mask == 0 {
            return Words::Never;
        }
        // The kernel reads the number as the field is: with its sign.
        let is_negative = self.signed && mask >> (self.bits - 1) != 0;
        let value = mask as i128 - if is_negative { 1i128 << self.bits } else { 0 };
        self.compared("&", value)
    }

    /// The recording has fewer bits of it than the kernel: what it has is asked bit by bit.
    fn by_bits(&self, ranges: &[Range]) -> Words {
        let whole = all_of(self.to_bits, self.to_signed);
        let missing = gaps(ranges, whole);
        let (ranges, wanted) = match missing.len() < ranges.len() {
            true => (&missing[..], false),
            false => (ranges, true),
        };
        let each = ranges.iter().map(|(first, last)| {
            if first == last {
                let mask = (1u128 << self.to_bits) - 1;
                return self.equal_bits(mask, *first as u128 & mask);
            }
            // From 0 on, in the order of the numbers.
            let (from, to) = ((first - whole.0) as u128, (last - whole.0) as u128);
            let from = match from {
                0 => Words::Always,
                from => self.at_most(from - 1).not(),
            };
            Words::all([from, self.at_most(to)])
        });
        Words::any(each).when(wanted)
    }

    /// The number, counted from its least value, is this one or less: from the lowest bit up, a
    /// clear bit below a set one settles it.
    fn at_most(&self, limit: u128) -> Words {
        let mut words = Words::Always;
        let mut clear = 0;
        for place in 0..self.to_bits {
            let bit = 1u128 << place;
            // Numbers below 0 have the highest bit, and come first.
            let turned = self.to_signed && place + 1 == self.to_bits;
            if limit & bit == 0 && !turned {
                clear |= bit;
                continue;
            }
            words = Words::all([self.has_bits(clear).not(), words]);
            clear = 0;
            let lower = self.has_bits(bit).when(turned);
            words = match limit & bit {
                0 => Words::all([lower, words]),
                _ => Words::any([lower, words]),
            };
        }
        Words::all([self.has_bits(clear).not(), words])
    }

    /// Of the bits in `mask` of what the recording has, these are set and the others are not.
    fn equal_bits(&self, mask: u128, set: u128) -> Words {
        let mut words = Vec::new();
        let mut clear = 0;
        for place in (0..self.to_bits).filter(|place| mask >> place & 1 != 0) {
            // A wider number has the sign in all bits that the kernel's lacks.
            let bit = match place < self.bits {
                true => 1 << place,
                false if self.signed => 1 << (self.bits - 1),
                false => 0,
            };
            match set >> place & 1 {
                0 => clear |= bit,
                _ => words.push(self.has_bits(bit)),
            }
        }
        words.push(self.has_bits(clear).not());
        Words::all(words)
    }

    /// `field & mask` compared with a number.
    fn masked(&self, mask: i128, op: CompareOp, value: i128) -> Worded<Words> {
        let turn = 1i128 << self.to_bits;
        let (least, _) = all_of(self.to_bits, true);
        let keeps_sign = self.to_signed && mask < 0;
        if self.no_bits || self.plus != 0 || (self.to_signed && !(least..turn).contains(&mask)) {
            return Err("the recording has the bits of this number in other places");
        }
        let bits = mask.rem_euclid(turn) as u128;
        let wanted = match (op, value) {
            (CompareOp::Equal, _) => true,
            (CompareOp::NotEqual, _) => false,
            (CompareOp::Greater, 0) if !keeps_sign => false,
            _ => return Err("it tells whether bits are set, not which of two is more"),
        };
        let (first, last) = all_of(self.to_bits, keeps_sign);
        let set = value.rem_euclid(turn) as u128;
        let words = match (first..=last).contains(&value) && set & !bits == 0 {
            true => self.equal_bits(bits, set),
            false => Words::Never,
        };
        Ok(words.when(wanted))
    }
}
