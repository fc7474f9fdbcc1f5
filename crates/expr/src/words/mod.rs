//! Filters in the words of the kernel's own filter: what a filter says of one class of events, as
//! the text that tracefs takes in an event's `filter` file.
//!
//! # Design constraints
//! - The same answer as [`crate::Program`], always. What the kernel's words cannot say exactly is
//!   refused with its column, and with the command that asks it of the recording afterwards.
//! - The kernel compares one field with one number or text. What a recording has in another width
//!   or on another scale than the kernel becomes the numbers, or the bits, that mean the same.
//! - Texts are taken for texts of C, as the kernel's filter takes them: a zero byte ends them.

mod numbers;
mod source;
mod texts;
mod tree;

use event::{ClassId, Error, ErrorKind, EventClass, Field, FieldType, Result, Scope};

use crate::ast::{Cond, Expr, FieldRef, Operand, Pseudo, Root};
use crate::bind::{SWITCH, Target, Use, alias, resolve};
use crate::kernel::check_cond;
use crate::parts::{fields, has_text, operands};
use crate::program::{Program, Test, TextLoad};
use crate::span::{Span, pointed};
use source::Worded;
pub use source::{Kind, Source};
use tree::Words;

/// The kernel takes a page, with the zero byte behind the text.
const TEXT_BYTES_MAX: usize = 4095;

/// A class of events, and what the kernel has of each of its fields.
#[derive(Clone, Debug)]
pub struct Layout {
    class: EventClass,
    sources: Vec<Source>,
}

impl Layout {
    /// A class without fields.
    pub fn new(name: &str) -> Layout {
        let class = EventClass {
            id: ClassId(0),
            name: name.to_owned(),
            stream: 0,
            fields: Vec::new().into(),
        };
        Layout {
            class,
            sources: Vec::new(),
        }
    }

    /// Adds a field; not another one of its name, and none whose name means a part of all events.
    pub fn add(&mut self, name: &str, ty: FieldType, source: Source) {
        self.add_in(Scope::Payload, name, ty, source);
    }

    /// Adds what the kernel knows of the task that runs at an event, under the context's name; not
    /// where the event itself says which task that is.
    pub fn add_context(&mut self, name: &str, ty: FieldType, source: Source) {
        if self.class.kernel_name() != SWITCH {
            self.add_in(Scope::EventContext, name, ty, source);
        }
    }

    fn add_in(&mut self, scope: Scope, name: &str, ty: FieldType, source: Source) {
        let is_taken = self.class.field_in(scope, name).is_some();
        let field = Field {
            name: name.into(),
            scope,
            ty,
        };
        if !is_taken {
            self.class.fields = self.class.fields.iter().cloned().chain([field]).collect();
            self.sources.push(source);
        }
    }

    /// Adds a second name of a field, unless the name means a part of all events.
    pub fn add_alias(&mut self, name: &str, ty: FieldType, source: Source) {
        if alias(&Root::Auto(name.to_owned()), &[]).is_none() {
            self.add(name, ty, source);
        }
    }

    /// The class.
    pub fn class(&self) -> &EventClass {
        &self.class
    }
}

/// A filter in the kernel's words; none when every event matches.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a field that the class lacks, [`ErrorKind::InvalidInput`] for a
/// filter that no event can match, [`ErrorKind::Unsupported`] for what the kernel cannot answer;
/// all with the place.
pub fn in_kernel_words(expr: &Expr, text: &str, layout: &Layout) -> Result<Option<String>> {
    check_cond(&expr.root, &layout.class, text)?;
    let writer = Writer { layout, text };
    let whole = Span {
        start: 0,
        end: text.len() as u32,
    };
    let words = match writer.cond(&expr.root)? {
        Words::Always => return Ok(None),
        Words::Never => {
            let what = format!("no {} can match this filter", layout.class.name);
            let error = Error::new(ErrorKind::InvalidInput, what).found(pointed(text, whole));
            return Err(error.fix("docs/filter.md says what each comparison means"));
        }
        words => words.to_string(),
    };
    match words.len() > TEXT_BYTES_MAX {
        true => Err(writer.refused(whole, "it is too long in its words")),
        false => Ok(Some(words)),
    }
}

struct Writer<'a> {
    layout: &'a Layout,
    text: &'a str,
}

impl Writer<'_> {
    fn refused(&self, span: Span, why: &str) -> Error {
        let what = format!("the kernel cannot answer this filter exactly: {why}");
        let fix = format!(
            "record without it, then: rtscope cat TRACE --filter '$name == \"{}\" && ({})'",
            self.layout.class.name, self.text
        );
        let error = Error::new(ErrorKind::Unsupported, what);
        error.found(pointed(self.text, span)).fix(fix)
    }

    fn cond(&self, cond: &Cond) -> Result<Words> {
        let each = |parts: &[Cond]| -> Result<Vec<Words>> {
            parts.iter().map(|part| self.cond(part)).collect()
        };
        match cond {
            Cond::All(parts) => Ok(Words::all(each(parts)?)),
            Cond::Any(parts) => Ok(Words::any(each(parts)?)),
            Cond::Not(part) => self.cond(part).map(Words::not),
            single => self.single(single),
        }
    }

    /// One comparison.
    fn single(&self, cond: &Cond) -> Result<Words> {
        let operands = operands(cond);
        let has_text = has_text(cond);
        let mut names_field = false;
        for field in operands.iter().flat_map(|operand| fields(operand)) {
            names_field |= self.check_field(field, has_text)?;
        }
        let expr = Expr::new(cond.clone());
        let program = Program::compile(&expr, std::slice::from_ref(&self.layout.class))?;
        let test = &program.tests[0];
        let is_asked = matches!(cond, Cond::Present(_));
        let words = match test {
            Test::Const(_) if names_field && !is_asked => {
                Err("every event gives the same answer, as it compares what never is equal")
            }
            test => self.test(test),
        };
        words.map_err(|why| self.refused(span_of(cond), why))
    }

    /// Refuses a field that the kernel's filter does not see as the recording has it; says whether
    /// it is a field at all.
    fn check_field(&self, reference: &FieldRef, has_text: bool) -> Result<bool> {
        let refused = |why| Err(self.refused(reference.span, why));
        match resolve(&self.layout.class, reference) {
            Target::Missing => Ok(true),
            Target::Pseudo(Pseudo::Name) => Ok(false),
            Target::Pseudo(Pseudo::Cpu) => Ok(true),
            Target::Pseudo(Pseudo::Time) => refused("it does not know the trace's time"),
            Target::Pseudo(_) => refused("which task ran is known from the switches of the trace"),
            Target::Field { field, ty, .. } => {
                let source = &self.layout.sources[usize::from(field.0)];
                match (source.kind, Use::of(ty)) {
                    (Kind::Address, _) => refused(
                        "this field is an address in the program's memory there, and what lies at \
                         it is known to the recording alone",
                    ),
                    (Kind::Other, _) | (_, Use::Compound) => {
                        refused("it has no such number and no such text")
                    }
                    (_, Use::Integer(_)) if has_text => {
                        refused("this field is a number, and it knows no names of functions")
                    }
                    _ => Ok(true),
                }
            }
        }
    }

    fn test(&self, test: &Test) -> Worded<Words> {
        let each = |tests: &[Test]| -> Worded<Vec<Words>> {
            tests.iter().map(|test| self.test(test)).collect()
        };
        match test {
            Test::Const(true) => Ok(Words::Always),
            Test::Const(false) => Ok(Words::Never),
            Test::All(tests) => Ok(Words::all(each(tests)?)),
            Test::Any(tests) => Ok(Words::any(each(tests)?)),
            Test::Not(test) => self.test(test).map(Words::not),
            Test::Equal {
                text,
                bytes,
                wanted,
            } => Ok(texts::equal(self.source(text)?, bytes)?.when(*wanted)),
            Test::Matches {
                text,
                matcher,
                wanted,
            } => Ok(texts::matches(self.source(text)?, matcher)?.when(*wanted)),
            Test::CompareTexts(..) => Err("it does not know which of two texts comes first"),
            Test::HasNumber(_) | Test::HasText(_) | Test::HasNested(_) => {
                Err("it does not know what an event lacks")
            }
            numbers => numbers::words(numbers, &self.layout.class, &self.layout.sources),
        }
    }

    fn source(&self, text: &TextLoad) -> Worded<&Source> {
        match text {
            TextLoad::Field(field) => Ok(&self.layout.sources[usize::from(field.0)]),
            _ => Err("it has no such text"),
        }
    }
}

/// Where a comparison was written.
fn span_of(cond: &Cond) -> Span {
    let mut spans: Vec<Span> = operands(cond).into_iter().flat_map(spans).collect();
    match cond {
        Cond::Match(_, _, pattern) => spans.push(pattern.span),
        Cond::Present(field) => spans.push(field.span),
        _ => {}
    }
    Span {
        start: spans.iter().map(|span| span.start).min().unwrap_or(0),
        end: spans.iter().map(|span| span.end).max().unwrap_or(0),
    }
}

fn spans(operand: &Operand) -> Vec<Span> {
    match operand {
        Operand::Literal(_, span) => vec![*span],
        Operand::Field(field) => vec![field.span],
        Operand::Unary(_, value, span) => [vec![*span], spans(value)].concat(),
        Operand::Binary(_, left, right) => [spans(left), spans(right)].concat(),
    }
}
