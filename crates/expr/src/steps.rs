//! A filter as a row of steps, for whoever evaluates it elsewhere: in a traced process, say.
//!
//! Jumps lead forward alone, so that a row ends after at most as many steps as it has.

use event::{ClassId, Error, ErrorKind, FieldId, Result};

use crate::ast::{BinaryOp, CompareOp, Pseudo, Step as Inward, UnaryOp};
use crate::number::Num;
use crate::pattern::{GlobPart, Matcher};
use crate::program::{Number, Program, Test, TextLoad};

/// Registers that a row may use.
pub const REGISTERS: u8 = 8;

/// One step. A register holds a number or no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The event matches.
    Pass,
    /// It does not.
    Drop,
    /// A register takes the number of a field, or of an element of it.
    Field {
        /// The register.
        into: u8,
        /// The field.
        field: FieldId,
        /// The element of an array.
        index: Option<u32>,
    },
    /// A register takes an integer.
    Integer(u8, i128),
    /// A register takes a float.
    Float(u8, f64),
    /// A register takes the CPU.
    Cpu(u8),
    /// A register is replaced by what an operation makes of it.
    Unary(u8, UnaryOp),
    /// The first register is replaced by what an operation makes of both.
    Binary(u8, BinaryOp, u8),
    /// The text of a field is what the following tests ask.
    Text(FieldId),
    /// To the step `target` when the test's result is `when`.
    If {
        /// What is asked.
        test: Ask,
        /// The result that jumps.
        when: bool,
        /// A later step.
        target: usize,
    },
}

/// What a jump depends on.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Two registers compare so; false when one has no value.
    Compare(CompareOp, u8, u8),
    /// A register has a value that is not zero.
    NotZero(u8),
    /// A register has a value.
    HasValue(u8),
    /// The text and these bytes compare so.
    Text(CompareOp, Vec<u8>),
    /// The text holds these bytes.
    Contains(Vec<u8>),
    /// A shell pattern covers the text.
    Glob(Vec<GlobPart>),
}

impl Program {
    /// The test of one class as a row of steps.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for what only the whole language can: regular expressions, the
    /// task that ran, elements of sequences, two texts beside each other.
    pub fn steps(&self, class: ClassId) -> Result<Vec<Step>> {
        let mut row = Row::default();
        let (pass, drop) = (row.label(), row.label());
        match self.tests.get(class.0 as usize) {
            Some(test) => row.test(test, pass, drop)?,
            None => row.jump_always(drop),
        }
        row.place(pass);
        row.steps.push(Step::Pass);
        row.place(drop);
        row.steps.push(Step::Drop);
        row.resolve()
    }
}

/// A place that is not known yet.
#[derive(Clone, Copy)]
struct Label(usize);

#[derive(Default)]
struct Row {
    /// Targets are labels until all places are known.
    steps: Vec<Step>,
    labels: Vec<usize>,
}

fn refuse(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "a filter inside of an application cannot do this",
    )
    .found(what)
    .fix("record without it, and filter the trace: rtscope cat --filter")
}

fn pattern(matcher: &Matcher) -> Result<Ask> {
    Ok(match matcher {
        Matcher::Glob(glob) => Ask::Glob(glob.parts().to_vec()),
        Matcher::Contains(finder) => Ask::Contains(finder.needle().to_vec()),
        Matcher::Regex(_) => return Err(refuse("a regular expression")),
    })
}

impl Row {
    fn label(&mut self) -> Label {
        self.labels.push(usize::MAX);
        Label(self.labels.len() - 1)
    }

    fn place(&mut self, label: Label) {
        self.labels[label.0] = self.steps.len();
    }

    fn resolve(mut self) -> Result<Vec<Step>> {
        for place in 0..self.steps.len() {
            if let Step::If { target, .. } = &mut self.steps[place] {
                *target = self.labels[*target];
                if *target <= place {
                    return Err(refuse("a jump that leads nowhere"));
                }
            }
        }
        Ok(self.steps)
    }

    fn jump(&mut self, test: Ask, when: bool, Label(target): Label) {
        self.steps.push(Step::If { test, when, target });
    }

    /// A register that was just given a value has one.
    fn jump_always(&mut self, label: Label) {
        self.steps.push(Step::Integer(0, 0));
        self.jump(Ask::HasValue(0), true, label);
    }

    /// Goes to one of both, which are placed later.
    fn branch(&mut self, ask: Ask, yes: Label, no: Label) {
        self.jump(ask, false, no);
        self.jump_always(yes);
    }

    fn test(&mut self, test: &Test, yes: Label, no: Label) -> Result<()> {
        match test {
            Test::Const(true) => self.jump_always(yes),
            Test::Const(false) => self.jump_always(no),
            Test::All(parts) => self.many(parts, yes, no, false)?,
            Test::Any(parts) => self.many(parts, yes, no, true)?,
            Test::Not(part) => self.test(part, no, yes)?,
            Test::Field {
                field, op, value, ..
            } => {
                self.field(0, *field);
                self.steps.push(Step::Integer(1, *value));
                self.branch(Ask::Compare(*op, 0, 1), yes, no);
            }
            Test::Compare(op, left, right) => {
                self.number(left, 0)?;
                self.number(right, 1)?;
                self.branch(Ask::Compare(*op, 0, 1), yes, no);
            }
            Test::Ranges {
                number,
                ranges,
                inside,
            } => self.ranges(
                number,
                ranges,
                if *inside { (yes, no) } else { (no, yes) },
                no,
            )?,
            Test::Equal {
                text,
                bytes,
                wanted,
            } => {
                self.text(text)?;
                let op = if *wanted {
                    CompareOp::Equal
                } else {
                    CompareOp::NotEqual
                };
                self.branch(Ask::Text(op, bytes.to_vec()), yes, no);
            }
            Test::Matches {
                text,
                matcher,
                wanted,
            } => {
                self.text(text)?;
                let (yes, no) = if *wanted { (yes, no) } else { (no, yes) };
                self.branch(pattern(matcher)?, yes, no);
            }
            Test::CompareTexts(op, text, TextLoad::Const(bytes)) => {
                self.text(text)?;
                self.branch(Ask::Text(*op, bytes.to_vec()), yes, no);
            }
            Test::CompareTexts(..) => return Err(refuse("two texts beside each other")),
            Test::NotZero(number) => {
                self.number(number, 0)?;
                self.branch(Ask::NotZero(0), yes, no);
            }
            Test::HasNumber(number) => {
                self.number(number, 0)?;
                self.branch(Ask::HasValue(0), yes, no);
            }
            Test::HasText(_) | Test::HasNested(_) => {
                return Err(refuse("whether a part of a field is there"));
            }
        }
        Ok(())
    }

    /// All or any of the parts; `decisive` is the result of one part that settles the whole.
    fn many(&mut self, parts: &[Test], yes: Label, no: Label, decisive: bool) -> Result<()> {
        for part in parts {
            let next = self.label();
            let (part_yes, part_no) = if decisive { (yes, next) } else { (next, no) };
            self.test(part, part_yes, part_no)?;
            self.place(next);
        }
        self.jump_always(if decisive { no } else { yes });
        Ok(())
    }

    /// What has no value is in no range, and outside of none.
    fn ranges(
        &mut self,
        number: &Number,
        ranges: &[(i128, i128)],
        (inside, outside): (Label, Label),
        no: Label,
    ) -> Result<()> {
        self.number(number, 0)?;
        self.jump(Ask::HasValue(0), false, no);
        for (first, last) in ranges {
            let next = self.label();
            self.steps.push(Step::Integer(1, *first));
            self.jump(Ask::Compare(CompareOp::Less, 0, 1), true, next);
            self.steps.push(Step::Integer(1, *last));
            self.jump(Ask::Compare(CompareOp::LessEqual, 0, 1), true, inside);
            self.place(next);
        }
        self.jump_always(outside);
        Ok(())
    }

    fn field(&mut self, into: u8, field: FieldId) {
        self.steps.push(Step::Field {
            into,
            field,
            index: None,
        });
    }

    /// A number into a register; those above it may change.
    fn number(&mut self, number: &Number, into: u8) -> Result<()> {
        if into >= REGISTERS {
            return Err(refuse("an expression so deep"));
        }
        match number {
            Number::Const(Num::Int(value)) => self.steps.push(Step::Integer(into, *value)),
            Number::Const(Num::Float(value)) => self.steps.push(Step::Float(into, *value)),
            Number::Integer { field, .. } | Number::Float(field) => self.field(into, *field),
            Number::Nested(nested) => match &*nested.steps {
                [Inward::Index(index)] => self.steps.push(Step::Field {
                    into,
                    field: nested.field,
                    index: Some(*index),
                }),
                _ => return Err(refuse("a part of a structure")),
            },
            Number::Pseudo(Pseudo::Cpu) => self.steps.push(Step::Cpu(into)),
            Number::Pseudo(_) => return Err(refuse("the time, or the task that ran")),
            Number::Unary(op, value) => {
                self.number(value, into)?;
                self.steps.push(Step::Unary(into, *op));
            }
            Number::Binary(op, sides) => {
                self.number(&sides.0, into)?;
                self.number(&sides.1, into + 1)?;
                self.steps.push(Step::Binary(into, *op, into + 1));
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &TextLoad) -> Result<()> {
        match text {
            TextLoad::Field(field) => self.steps.push(Step::Text(*field)),
            TextLoad::Procname => return Err(refuse("the task that ran")),
            TextLoad::Const(_) | TextLoad::Nested(_) => {
                return Err(refuse("a text that is no field"));
            }
        }
        Ok(())
    }
}
