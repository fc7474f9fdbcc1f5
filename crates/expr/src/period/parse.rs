//! Definitions of periods and their captures: a parser of its own, on the tokens of filters.

use super::{Capture, Captures, EventOf, EventPart, EventValue, Period, PeriodCond, PeriodValue};
use crate::ast::{CompareOp, Text, flat};
use crate::lexer::{Number, Token};
use crate::span::{Fault, Parsed, Span};
use crate::tokens::{Tokens, scope, text};

const VALUE: &str = "write $evt.field, $evt.$name, $begin.$evt.field or $parent.$begin.$evt.field";
const DEFINITION: &str = "write NAME(PARENT) : BEGIN : END, as in switch : $evt.$name == \
                          \"sched_switch\"";
const CAPTURES: &str = "write NAME : alias = $evt.field, … : $evt.field, …";

impl Period {
    /// Reads `[NAME[(PARENT)]] : BEGIN [: END]`; captures come with [`Captures::parse`], whether
    /// the parent exists is for [`super::Periods`] to say.
    ///
    /// # Errors
    /// [`event::ErrorKind::InvalidInput`]: what is wrong, the text with carets below the place, and
    /// what to write instead.
    pub fn parse(text: &str) -> event::Result<Period> {
        period(text).map_err(|fault| fault.into_error("period", text))
    }
}

impl Captures {
    /// Reads `NAME : [ALIAS=]VALUE, … [: [ALIAS=]VALUE, …]`.
    ///
    /// # Errors
    /// As [`Period::parse`].
    pub fn parse(text: &str) -> event::Result<Captures> {
        captures(text).map_err(|fault| fault.into_error("list of captures", text))
    }
}

/// Reads `[NAME[(PARENT)]] : BEGIN [: END]`.
fn period(source: &str) -> Parsed<Period> {
    let mut parser = Parser {
        tokens: Tokens::new(source)?,
        parent_used: None,
    };
    let (name, parent) = parser.heading()?;
    let tokens = &mut parser.tokens;
    tokens.expect(
        ":",
        "':' is missing before the condition that begins",
        DEFINITION,
    )?;
    let begin = parser.any()?;
    let end = match parser.tokens.accept(":") {
        true => parser.any()?,
        false => begin.clone(),
    };
    parser.end(
        "an operator is missing before this",
        "join comparisons with && or ||",
    )?;
    if let (Some(span), None) = (parser.parent_used, &parent) {
        let fix = "name the period and its parent, as in irq(switch) : …";
        return Err(Fault::new(span, "this period has no parent", fix));
    }
    Ok(Period {
        name,
        parent,
        begin,
        end,
        begin_captures: Vec::new(),
        end_captures: Vec::new(),
    })
}

/// Reads `NAME : VALUE, … [: VALUE, …]`.
fn captures(source: &str) -> Parsed<Captures> {
    let mut parser = Parser {
        tokens: Tokens::new(source)?,
        parent_used: None,
    };
    let period = parser
        .tokens
        .name("the name of a period is missing here", CAPTURES)?;
    let tokens = &mut parser.tokens;
    tokens.expect(":", "':' is missing before the captures", CAPTURES)?;
    let begin = parser.captures()?;
    let end = match parser.tokens.accept(":") {
        true => parser.captures()?,
        false => Vec::new(),
    };
    parser.end("',' is missing before this", CAPTURES)?;
    Ok(Captures {
        period: period.to_owned(),
        begin,
        end,
    })
}

struct Parser<'t> {
    tokens: Tokens<'t>,
    /// Where the parent was spoken of first.
    parent_used: Option<Span>,
}

impl Parser<'_> {
    fn end(&self, what: &str, fix: &str) -> Parsed<()> {
        match self.tokens.peek() {
            Token::End => Ok(()),
            Token::Mark(")") => Err(self.tokens.fault("no '(' belongs to this", "remove it")),
            Token::Mark(":") => Err(self.tokens.fault("this is one part too many", DEFINITION)),
            _ => Err(self.tokens.fault(what, fix)),
        }
    }

    fn heading(&mut self) -> Parsed<(Option<String>, Option<String>)> {
        let Token::Name(name) = self.tokens.peek() else {
            return Ok((None, None));
        };
        self.tokens.next();
        let mut parent = None;
        if self.tokens.accept("(") {
            let word = self
                .tokens
                .name("the name of the parent is missing here", DEFINITION)?;
            self.tokens.expect(")", "')' is missing here", DEFINITION)?;
            parent = Some(word.to_owned());
        }
        Ok((Some(name.to_owned()), parent))
    }

    fn any(&mut self) -> Parsed<PeriodCond> {
        let mut parts = vec![self.all()?];
        while self.tokens.accept("||") {
            parts.push(self.all()?);
        }
        Ok(PeriodCond::any(parts))
    }

    fn all(&mut self) -> Parsed<PeriodCond> {
        let mut parts = vec![self.atom()?];
        while self.tokens.accept("&&") {
            parts.push(self.atom()?);
        }
        Ok(PeriodCond::all(parts))
    }

    fn atom(&mut self) -> Parsed<PeriodCond> {
        self.tokens.enter()?;
        let cond = if self.tokens.accept("!") {
            PeriodCond::Not(Box::new(self.atom()?))
        } else if self.tokens.accept("(") {
            let cond = self.any()?;
            self.tokens
                .expect(")", "')' is missing here", "close it with ')'")?;
            cond
        } else {
            self.comparison()?
        };
        self.tokens.leave();
        Ok(cond)
    }

    fn comparison(&mut self) -> Parsed<PeriodCond> {
        let left = self.value()?;
        let (token, operator) = self.tokens.next();
        let op = match token {
            Token::Mark("=*") => {
                let pattern = self.quoted("a pattern in double quotes is missing here")?;
                return Ok(PeriodCond::Glob(left, pattern));
            }
            Token::Mark("==") => CompareOp::Equal,
            Token::Mark("!=") => CompareOp::NotEqual,
            Token::Mark("<") => CompareOp::Less,
            Token::Mark("<=") => CompareOp::LessEqual,
            Token::Mark(">") => CompareOp::Greater,
            Token::Mark(">=") => CompareOp::GreaterEqual,
            _ => {
                let fix = "compare it with ==, !=, <, <=, >, >= or =*";
                return Err(Fault::new(operator, "a comparison is missing here", fix));
            }
        };
        let right = self.right()?;
        let equality = matches!(op, CompareOp::Equal | CompareOp::NotEqual);
        match (&left.part, &right) {
            (_, PeriodValue::Text(_)) if !equality => {
                let fix = "compare a text with ==, != or =*";
                Err(Fault::new(
                    operator,
                    "a text is neither less nor greater",
                    fix,
                ))
            }
            (
                EventPart::Name,
                PeriodValue::Integer(_) | PeriodValue::Float(_) | PeriodValue::DurationNs(_),
            ) => {
                let fix = "compare it with a text in double quotes";
                Err(Fault::new(
                    operator,
                    "a name is never compared with a number",
                    fix,
                ))
            }
            _ => Ok(PeriodCond::Compare(op, left, right)),
        }
    }

    fn quoted(&mut self, what: &str) -> Parsed<Text> {
        match self.tokens.next() {
            (Token::Quoted(quoted), span) => text(quoted, span),
            (_, span) => Err(Fault::new(
                span,
                what,
                "as in $evt.$name =* \"irq_*_entry\"",
            )),
        }
    }

    fn right(&mut self) -> Parsed<PeriodValue> {
        let negative = self.tokens.accept("-");
        if !negative {
            self.tokens.accept("+");
        }
        let sign = if negative { -1 } else { 1 };
        match self.tokens.peek() {
            Token::Number(number) => {
                self.tokens.next();
                Ok(match number {
                    Number::Integer(value) => PeriodValue::Integer(i128::from(value) * sign),
                    Number::Float(value) => PeriodValue::Float(value * sign as f64),
                    Number::Duration(value) => PeriodValue::DurationNs(value.as_ns() * sign as i64),
                })
            }
            Token::Quoted(_) if !negative => Ok(PeriodValue::Text(
                self.quoted("a text is missing here")?.bytes,
            )),
            Token::Sigil(_) if !negative => self.value().map(PeriodValue::Event),
            _ => {
                let what = "a number, a text in double quotes or a value is missing here";
                Err(self.tokens.fault(what, VALUE))
            }
        }
    }

    /// `$evt.field` and its like.
    fn value(&mut self) -> Parsed<EventValue> {
        let start = self.tokens.span();
        let (mut of, mut word) = (EventOf::Current, self.sigil()?);
        if word == "parent" {
            self.parent_used.get_or_insert(start);
            self.dot()?;
            word = self.sigil()?;
            if word != "begin" {
                let what = "of a parent only the event that began it is known";
                return Err(Fault::new(self.tokens.last_span(), what, VALUE));
            }
            of = EventOf::ParentBegin;
        }
        if word == "begin" {
            if of == EventOf::Current {
                of = EventOf::Begin;
            }
            self.dot()?;
            word = self.sigil()?;
        }
        if word != "evt" {
            return Err(Fault::new(
                self.tokens.last_span(),
                "'$evt' is missing here",
                VALUE,
            ));
        }
        self.dot()?;
        let part = self.part()?;
        Ok(EventValue { of, part })
    }

    fn part(&mut self) -> Parsed<EventPart> {
        let mut within = None;
        if let Token::Sigil(word) = self.tokens.peek() {
            if word == "name" {
                self.tokens.next();
                return Ok(EventPart::Name);
            }
            within = scope(word);
            if within.is_none() {
                let fix = "write $name, or a field of $payload, $ctx, $header, $stream_ctx, \
                            $pkt_ctx or $pkt_header";
                let what = format!("events have nothing that is called '${word}'");
                return Err(self.tokens.fault(&what, fix));
            }
            self.tokens.next();
            self.dot()?;
        }
        let name = self
            .tokens
            .name("the name of a field is missing here", VALUE)?;
        Ok(EventPart::Field {
            scope: within,
            name: name.to_owned(),
            steps: self.tokens.steps()?,
        })
    }

    fn sigil(&mut self) -> Parsed<&str> {
        match self.tokens.next() {
            (Token::Sigil(word), _) => Ok(word),
            (_, span) => Err(Fault::new(
                span,
                "a value of an event is missing here",
                VALUE,
            )),
        }
    }

    fn dot(&mut self) -> Parsed<()> {
        self.tokens.expect(".", "'.' is missing here", VALUE)
    }

    /// Captures up to a colon or the end, which may be none.
    fn captures(&mut self) -> Parsed<Vec<Capture>> {
        let mut captures: Vec<Capture> = Vec::new();
        if matches!(self.tokens.peek(), Token::End | Token::Mark(":")) {
            return Ok(captures);
        }
        loop {
            let start = self.tokens.span();
            let mut alias = None;
            if let Token::Name(name) = self.tokens.peek() {
                self.tokens.next();
                self.tokens
                    .expect("=", "'=' is missing after the alias", CAPTURES)?;
                alias = Some(name.to_owned());
            }
            let value = self.value()?;
            let name = alias.unwrap_or_else(|| value.to_string());
            if captures.iter().any(|capture| capture.name == name) {
                let what = format!("two captures are called '{name}'");
                let span = start.to(self.tokens.last_span());
                return Err(Fault::new(
                    span,
                    what,
                    "give one an alias, as in other = $evt.field",
                ));
            }
            captures.push(Capture { name, value });
            if !self.tokens.accept(",") {
                return Ok(captures);
            }
        }
    }
}

impl PeriodCond {
    /// All of `conds`, those of inner `All`s pulled up.
    pub fn all(conds: Vec<PeriodCond>) -> PeriodCond {
        let mut parts = flat(conds, |cond| match cond {
            PeriodCond::All(parts) => Some(std::mem::take(parts)),
            _ => None,
        });
        match parts.len() {
            1 => parts.remove(0),
            _ => PeriodCond::All(parts),
        }
    }

    /// Any of `conds`, those of inner `Any`s pulled up.
    pub fn any(conds: Vec<PeriodCond>) -> PeriodCond {
        let mut parts = flat(conds, |cond| match cond {
            PeriodCond::Any(parts) => Some(std::mem::take(parts)),
            _ => None,
        });
        match parts.len() {
            1 => parts.remove(0),
            _ => PeriodCond::Any(parts),
        }
    }
}
