//! Filters and keys as code for the kernel: what a filter says of one class of events, in
//! instructions of BPF that read the event where it lies.
//!
//! # Design constraints
//! - The same answer as [`crate::Program`], always. What the kernel could answer only nearly (a
//!   fraction, a regular expression, a number of more than 64 bits) is refused.
//! - No loop, no stack, no map: the code stands inside of a program that has been compiled before,
//!   in place of instructions that do nothing, and falls out of its end.
//! - A field that the class lacks is an error with its column: in the kernel nobody would see that
//!   a filter never matches.

mod asm;
mod coder;
mod conditions;
mod kinds;
mod numbers;
mod texts;

use event::{Error, ErrorKind, EventClass, Result};

use crate::ast::{Cond, Expr, FieldRef, Operand, Root};
use crate::bind::{Target, resolve};
use crate::compile::{Value, value};
use crate::notes::nearest;
use crate::program::Program;
use crate::span::{Span, pointed};
use asm::{Alu, Assembler, FRAME, R0, R1, R2, RECORD};
use coder::{Coder, Refusal, Ways};
pub use coder::{Frame, KEY_NUMBERS, KEY_TEXT_BYTES, Layout, Place, SLOTS, TEXT_BYTES};

/// What a part of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// A number, with or without a sign.
    Number {
        /// Whether it has one.
        signed: bool,
    },
    /// A text.
    Text,
}

/// What a side of a pair is made of.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Instructions that leave 1 in the first register when the event matches, and its key in the
    /// frame; 0 when not. The record is their first argument, the frame the second.
    pub code: Vec<u64>,
    /// The parts of the key.
    pub parts: Vec<KeyPart>,
}

/// Where a filter or a key was written: the whole text, and where in it its own begins.
#[derive(Clone, Copy, Debug)]
pub struct Written<'t> {
    /// What was typed.
    pub text: &'t str,
    /// Where the filter or key begins.
    pub at: usize,
}

impl Written<'_> {
    /// An error that points at all of it.
    fn error(self, kind: ErrorKind, what: String, fix: &str) -> Error {
        let span = Span {
            start: self.at as u32,
            end: self.text.len() as u32,
        };
        Error::new(kind, what)
            .found(pointed(self.text, span))
            .fix(fix)
    }
}

/// Compiles a filter, if there is one, and the key of the events of a class.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a field that the class lacks, [`ErrorKind::Unsupported`] for what
/// the kernel cannot tell; both with the place.
pub fn compile(
    filter: Option<(&Expr, Written<'_>)>,
    key: (&[&Operand], Written<'_>),
    layout: &Layout,
    frame: &Frame,
) -> Result<Compiled> {
    let mut coder = Coder {
        assembler: Assembler::default(),
        layout,
        frame,
        is_key: false,
    };
    coder.assembler.alu(Alu::Mov, RECORD, R1);
    coder.assembler.alu(Alu::Mov, FRAME, R2);
    let (no, end) = (coder.assembler.label(), coder.assembler.label());
    if let Some((expr, written)) = filter {
        check_cond(&expr.root, &layout.class, written.text)?;
        kinds::check(&expr.root, layout, written.text)?;
        let program = Program::compile(expr, std::slice::from_ref(&layout.class))?;
        let yes = coder.assembler.label();
        let ways = Ways { yes, no };
        let coded = coder.condition(&program.tests[0], ways);
        coded.map_err(|refusal| {
            let what = format!("the kernel cannot ask this filter: {}", refusal.what);
            written.error(ErrorKind::Unsupported, what, refusal.fix)
        })?;
        coder.assembler.place(yes);
    }
    let parts = coder.key(key, no)?;
    coder.assembler.constant(R0, 1);
    coder.assembler.goto(end);
    coder.assembler.place(no);
    coder.assembler.constant(R0, 0);
    coder.assembler.place(end);
    let code = coder.assembler.finish();
    let code = code.ok_or_else(|| {
        let what = "the filter is too long for the kernel".to_owned();
        key.1.error(ErrorKind::Unsupported, what, "make it shorter")
    })?;
    Ok(Compiled { code, parts })
}

impl Coder<'_> {
    /// Writes the key into the frame.
    fn key(
        &mut self,
        (operands, written): (&[&Operand], Written<'_>),
        missing: asm::Label,
    ) -> Result<Vec<KeyPart>> {
        let class = &self.layout.class;
        self.is_key = true;
        let (mut parts, mut numbers) = (Vec::new(), 0);
        for operand in operands {
            check_operand(operand, class, written.text)?;
            let refused = |refusal: Refusal| {
                let what = format!("the kernel cannot take this key: {}", refusal.what);
                written.error(ErrorKind::Unsupported, what, refusal.fix)
            };
            let part = match value(operand, class) {
                Value::Number(number) => {
                    let at = self.frame.numbers + 8 * numbers as i16;
                    numbers += 1;
                    if numbers > KEY_NUMBERS {
                        return Err(refused(Refusal {
                            what: "it has too many numbers",
                            fix: "give at most two numbers and one text, as in --key dev,sector",
                        }));
                    }
                    let range = self.number(&number, 0, missing).map_err(refused)?;
                    self.assembler.store(FRAME, at, R0);
                    KeyPart::Number {
                        signed: range.min < 0,
                    }
                }
                Value::Text(text) if !parts.contains(&KeyPart::Text) => {
                    self.copy_text(&text, missing).map_err(refused)?;
                    KeyPart::Text
                }
                Value::Text(_) | Value::Neither => {
                    return Err(refused(Refusal {
                        what: "it is no number and no text, or a second text",
                        fix: "give at most two numbers and one text, as in --key tid",
                    }));
                }
            };
            parts.push(part);
        }
        Ok(parts)
    }
}

/// Whether the class has all fields that a condition names.
pub(crate) fn check_cond(cond: &Cond, class: &EventClass, text: &str) -> Result<()> {
    match cond {
        Cond::All(parts) | Cond::Any(parts) => {
            let mut parts = parts.iter();
            parts.try_for_each(|part| check_cond(part, class, text))
        }
        Cond::Not(part) => check_cond(part, class, text),
        Cond::Compare(_, left, right) => {
            check_operand(left, class, text)?;
            check_operand(right, class, text)
        }
        Cond::Match(_, value, _) | Cond::True(value) => check_operand(value, class, text),
        Cond::In(left, list) => {
            check_operand(left, class, text)?;
            let mut list = list.iter();
            list.try_for_each(|value| check_operand(value, class, text))
        }
        // That is what it asks.
        Cond::Present(_) => Ok(()),
    }
}

fn check_operand(operand: &Operand, class: &EventClass, text: &str) -> Result<()> {
    match operand {
        Operand::Literal(..) => Ok(()),
        Operand::Field(field) => check_field(field, class, text),
        Operand::Unary(_, value, _) => check_operand(value, class, text),
        Operand::Binary(_, left, right) => {
            check_operand(left, class, text)?;
            check_operand(right, class, text)
        }
    }
}

fn check_field(field: &FieldRef, class: &EventClass, text: &str) -> Result<()> {
    if !matches!(resolve(class, field), Target::Missing) {
        return Ok(());
    }
    let typed = match &field.root {
        Root::Auto(name) | Root::Scoped(_, name) => name.as_str(),
        Root::App(..) | Root::Pseudo(_) => "",
    };
    let names = || class.fields.iter().map(|field| field.name.as_str());
    let fix = match nearest(typed, names()) {
        Some(near) if near == typed => "the field is there, but without this member".to_owned(),
        Some(near) => format!("perhaps '{near}' is meant"),
        None if class.fields.is_empty() => "it has only $tid, $procname, $prio and $cpu".to_owned(),
        None => format!("choose from: {}", names().collect::<Vec<_>>().join(", ")),
    };
    let what = format!("{} has no field '{field}'", class.name);
    let error = Error::new(ErrorKind::NotFound, what);
    Err(error.found(pointed(text, field.span)).fix(fix))
}
