//! Filters: a Pratt parser that types as it goes, so that a mistake is found where it was made.

use crate::ast::{
    BinaryOp, CompareOp, Cond, Expr, FieldRef, Literal, MatchOp, Operand, Pattern, Pseudo, Root,
    Source, UnaryOp,
};
use crate::lexer::{SIGILS, Token};
use crate::pattern::Matcher;
use crate::span::{Fault, Parsed, Span};
use crate::tokens::{DEPTH_MAX, Tokens, regex, scope, text, too_deep};

impl Expr {
    /// Reads a filter; the language is on one page, `docs/filter.md`.
    ///
    /// # Errors
    /// [`event::ErrorKind::InvalidInput`]: what is wrong, the text with carets below the place, and
    /// what to write instead.
    pub fn parse(text: &str) -> event::Result<Expr> {
        Expr::parse_in(text, 0)
    }

    /// Reads the filter that begins at the byte `at` of a text; errors show the whole text.
    ///
    /// # Errors
    /// As [`Expr::parse`].
    pub fn parse_in(text: &str, at: usize) -> event::Result<Expr> {
        parse(text, at).map_err(|fault| fault.into_error("filter", text))
    }
}

/// Reads a filter.
fn parse(source: &str, at: usize) -> Parsed<Expr> {
    let mut parser = Parser {
        tokens: Tokens::new_in(source, at)?,
        patterns: 0,
    };
    if parser.tokens.peek() == Token::End {
        let fix = "write a condition, as in $name == \"sched_switch\" && prev_prio < 0";
        return Err(parser.tokens.fault("it is empty", fix));
    }
    let root = parser.parse(0)?.into_cond()?;
    match parser.tokens.peek() {
        Token::End => Ok(Expr {
            root,
            text: Source(source.to_owned()),
        }),
        Token::Mark(")") => Err(parser.tokens.fault("no '(' belongs to this", "remove it")),
        _ => {
            let fix = "join conditions with && or ||, and write texts in double quotes";
            Err(parser
                .tokens
                .fault("an operator is missing before this", fix))
        }
    }
}

/// Reads a key: values, or two that belong together, separated by commas.
pub(crate) fn parse_key(source: &str) -> Parsed<Vec<((Operand, Operand), Span)>> {
    const FIX: &str = "write fields, as in tid or dev,sector; tid=next_tid where they differ";
    let mut parser = Parser {
        tokens: Tokens::new(source)?,
        patterns: 0,
    };
    let mut parts = Vec::new();
    loop {
        let begin = parser.tokens.span();
        let from = parser.parse(VALUE_POWER)?.into_value()?;
        let to = match parser.tokens.accept("=") {
            true => parser.parse(VALUE_POWER)?.into_value()?,
            false => from.clone(),
        };
        parts.push(((from, to), begin.to(parser.tokens.last_span())));
        match parser.tokens.peek() {
            Token::End => return Ok(parts),
            Token::Mark(",") => drop(parser.tokens.next()),
            _ => {
                return Err(parser
                    .tokens
                    .fault("a key is values with commas between", FIX));
            }
        }
    }
}

/// Only what joins values binds tighter.
const VALUE_POWER: u8 = 3;

/// Each takes memory once it is compiled.
const PATTERNS_MAX: u32 = 64;

struct Parser<'t> {
    tokens: Tokens<'t>,
    patterns: u32,
}

/// A part of the tree while it is not yet clear what becomes of it.
struct Part {
    node: Node,
    span: Span,
    height: u32,
}

enum Node {
    Cond(Cond),
    Value(Operand),
}

impl Part {
    fn value(operand: Operand, span: Span) -> Part {
        Part {
            node: Node::Value(operand),
            span,
            height: 1,
        }
    }

    fn into_cond(self) -> Parsed<Cond> {
        match self.node {
            Node::Cond(cond) => Ok(cond),
            Node::Value(value) if is_text(&value) == Some(true) => {
                let fix = "compare it with something, as in comm == \"jackd\"";
                Err(Fault::new(self.span, "a text alone is no condition", fix))
            }
            Node::Value(value) => Ok(Cond::True(value)),
        }
    }

    fn into_value(self) -> Parsed<Operand> {
        match self.node {
            Node::Value(value) => Ok(value),
            Node::Cond(_) => {
                let fix =
                    "join conditions with &&, || and !(…); write a < b && b < c for a < b < c";
                Err(Fault::new(self.span, "a condition is no value", fix))
            }
        }
    }

    fn into_number(self) -> Parsed<Operand> {
        let span = self.span;
        let value = self.into_value()?;
        match is_text(&value) {
            Some(true) => {
                let fix = "texts are compared, matched or searched: ==, <, =~, =*, contains, in";
                Err(Fault::new(span, "a text is no number", fix))
            }
            _ => Ok(value),
        }
    }

    fn is_cond(&self) -> bool {
        matches!(self.node, Node::Cond(_))
    }

    /// Whether the operator goes on with the row that this is.
    fn continues(&self, infix: Infix) -> bool {
        matches!(
            (&self.node, infix),
            (
                Node::Cond(Cond::All(_)),
                Infix::And | Infix::Binary(BinaryOp::And)
            ) | (
                Node::Cond(Cond::Any(_)),
                Infix::Or | Infix::Binary(BinaryOp::Or)
            )
        )
    }
}

/// Whether a value is a text; none when only the event's class knows.
fn is_text(value: &Operand) -> Option<bool> {
    match value {
        Operand::Literal(literal, _) => Some(matches!(literal, Literal::Text(_))),
        Operand::Field(FieldRef {
            root: Root::Pseudo(pseudo),
            ..
        }) => Some(matches!(pseudo, Pseudo::Name | Pseudo::Procname)),
        Operand::Field(_) => None,
        Operand::Unary(..) | Operand::Binary(..) => Some(false),
    }
}

/// What stands between two parts, or after one.
#[derive(Clone, Copy)]
enum Infix {
    Or,
    And,
    Compare(CompareOp),
    Match(MatchOp),
    In,
    Present,
    Binary(BinaryOp),
}

impl Infix {
    /// How tightly it binds: LTTng's order, in which bits bind tighter than comparisons.
    fn power(self) -> u8 {
        match self {
            Infix::Or => 1,
            Infix::And => 2,
            Infix::Compare(_) | Infix::Match(_) | Infix::In | Infix::Present => 3,
            Infix::Binary(BinaryOp::Or) => 4,
            Infix::Binary(BinaryOp::Xor) => 5,
            Infix::Binary(BinaryOp::And) => 6,
            Infix::Binary(BinaryOp::ShiftLeft | BinaryOp::ShiftRight) => 7,
            Infix::Binary(BinaryOp::Add | BinaryOp::Subtract) => 8,
            Infix::Binary(BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Remainder) => 9,
        }
    }
}

/// Prefixes bind tighter than everything else.
const PREFIX_POWER: u8 = 10;

impl Parser<'_> {
    /// A part whose operators bind tighter than `power`.
    fn parse(&mut self, power: u8) -> Parsed<Part> {
        self.tokens.enter()?;
        let mut left = self.prefix()?;
        while let Some(infix) = self.peek_infix().filter(|infix| infix.power() > power) {
            let operator = self.tokens.next().1;
            left = self.infix(left, infix, operator)?;
            if left.height > DEPTH_MAX {
                return Err(too_deep(operator));
            }
        }
        self.tokens.leave();
        Ok(left)
    }

    fn peek_infix(&self) -> Option<Infix> {
        let mark = match self.tokens.peek() {
            Token::Mark(mark) => mark,
            Token::Name(word) => {
                return Some(match word {
                    "contains" => Infix::Match(MatchOp::Contains),
                    "matches" => Infix::Match(MatchOp::Regex),
                    "in" => Infix::In,
                    "present" => Infix::Present,
                    _ => return None,
                });
            }
            _ => return None,
        };
        Some(match mark {
            "||" => Infix::Or,
            "&&" => Infix::And,
            "==" | "=" => Infix::Compare(CompareOp::Equal),
            "!=" => Infix::Compare(CompareOp::NotEqual),
            "<" => Infix::Compare(CompareOp::Less),
            "<=" => Infix::Compare(CompareOp::LessEqual),
            ">" => Infix::Compare(CompareOp::Greater),
            ">=" => Infix::Compare(CompareOp::GreaterEqual),
            "=~" => Infix::Match(MatchOp::Regex),
            "=*" => Infix::Match(MatchOp::Glob),
            "+" => Infix::Binary(BinaryOp::Add),
            "-" => Infix::Binary(BinaryOp::Subtract),
            "*" => Infix::Binary(BinaryOp::Multiply),
            "/" => Infix::Binary(BinaryOp::Divide),
            "%" => Infix::Binary(BinaryOp::Remainder),
            "&" => Infix::Binary(BinaryOp::And),
            "|" => Infix::Binary(BinaryOp::Or),
            "^" => Infix::Binary(BinaryOp::Xor),
            "<<" => Infix::Binary(BinaryOp::ShiftLeft),
            ">>" => Infix::Binary(BinaryOp::ShiftRight),
            _ => return None,
        })
    }

    fn infix(&mut self, left: Part, infix: Infix, operator: Span) -> Parsed<Part> {
        let (span, height) = (left.span, left.height + 1);
        match infix {
            Infix::Match(op) => {
                let value = left.into_value()?;
                let cond = self.pattern(op, value, span)?;
                Ok(self.cond(cond, span, height))
            }
            Infix::In => {
                let value = left.into_value()?;
                let list = self.list(&value)?;
                Ok(self.cond(Cond::In(value, list), span, height))
            }
            Infix::Present => match left.into_value()? {
                Operand::Field(field) => Ok(self.cond(Cond::Present(field), span, height)),
                _ => {
                    let fix = "write the name of a field before it, as in ret present";
                    Err(Fault::new(span, "only a field can be present", fix))
                }
            },
            Infix::Or | Infix::And | Infix::Compare(_) | Infix::Binary(_) => {
                let right = self.parse(infix.power())?;
                let span = span.to(right.span);
                // A row of conditions lies side by side, however long it is.
                let height = match left.continues(infix) {
                    true => left.height.max(right.height + 1),
                    false => height.max(right.height + 1),
                };
                let node = join(left, infix, operator, right)?;
                Ok(Part { node, span, height })
            }
        }
    }

    /// A condition that ends with the token before the next.
    fn cond(&self, cond: Cond, start: Span, height: u32) -> Part {
        Part {
            node: Node::Cond(cond),
            span: start.to(self.tokens.last_span()),
            height,
        }
    }

    fn prefix(&mut self) -> Parsed<Part> {
        match self.tokens.next() {
            (Token::Number(number), span) => {
                Ok(Part::value(Operand::Literal(number.into(), span), span))
            }
            (Token::Quoted(quoted), span) => {
                let literal = Literal::Text(text(quoted, span)?);
                Ok(Part::value(Operand::Literal(literal, span), span))
            }
            (Token::Name(name), span) => self.field(Root::Auto(name.to_owned()), span),
            (Token::Sigil(word), span) => {
                let root = self.sigil(word, span)?;
                self.field(root, span)
            }
            (Token::Mark("("), span) => {
                let inner = self.parse(0)?;
                let fix = "close it with ')'";
                self.tokens.expect(")", "')' is missing here", fix)?;
                let span = span.to(self.tokens.last_span());
                Ok(Part { span, ..inner })
            }
            (Token::Mark("!"), span) => {
                let inner = self.parse(PREFIX_POWER)?;
                let (span, height) = (span.to(inner.span), inner.height + 1);
                let node = Node::Cond(Cond::Not(Box::new(inner.into_cond()?)));
                Ok(Part { node, span, height })
            }
            (Token::Mark("-"), span) => self.unary(Some(UnaryOp::Negate), span),
            (Token::Mark("~"), span) => self.unary(Some(UnaryOp::Invert), span),
            (Token::Mark("+"), span) => self.unary(None, span),
            (_, span) => {
                let fix = "write a field, a number, a text in double quotes, or '('";
                Err(Fault::new(span, "a value is missing here", fix))
            }
        }
    }

    fn unary(&mut self, op: Option<UnaryOp>, span: Span) -> Parsed<Part> {
        let inner = self.parse(PREFIX_POWER)?;
        let (whole, height) = (span.to(inner.span), inner.height + 1);
        let value = inner.into_number()?;
        let node = Node::Value(match op {
            Some(op) => Operand::Unary(op, Box::new(value), span),
            None => value,
        });
        Ok(Part {
            node,
            span: whole,
            height,
        })
    }

    fn field(&mut self, root: Root, start: Span) -> Parsed<Part> {
        let steps = match root {
            Root::Pseudo(_) => Vec::new(),
            _ => self.tokens.steps()?,
        };
        let span = start.to(self.tokens.last_span());
        let field = FieldRef { root, steps, span };
        Ok(Part::value(Operand::Field(field), span))
    }

    fn sigil(&mut self, word: &str, span: Span) -> Parsed<Root> {
        let fix = "write a name after it, as in $ctx.procname";
        if let Some(scope) = scope(word) {
            self.tokens.expect(".", "'.' is missing here", fix)?;
            let name = self
                .tokens
                .name("the name of a field is missing here", fix)?;
            return Ok(Root::Scoped(scope, name.to_owned()));
        }
        Ok(Root::Pseudo(match word {
            "name" => Pseudo::Name,
            "cpu" => Pseudo::Cpu,
            "tid" => Pseudo::Tid,
            "procname" => Pseudo::Procname,
            "prio" => Pseudo::Prio,
            "time" => Pseudo::Time,
            "app" => return self.application(),
            "evt" => {
                self.tokens.expect(".", "'.' is missing here", fix)?;
                return match self.tokens.next() {
                    (Token::Name(name), _) => Ok(Root::Auto(name.to_owned())),
                    (Token::Sigil(word), span) if word != "evt" => self.sigil(word, span),
                    (_, span) => Err(Fault::new(span, "the name of a field is missing here", fix)),
                };
            }
            _ => {
                return Err(Fault::new(
                    span,
                    format!("nothing is called '${word}'"),
                    SIGILS,
                ));
            }
        }))
    }

    /// `.provider:type` after `$app`.
    fn application(&mut self) -> Parsed<Root> {
        let fix = "write $app.PROVIDER:TYPE";
        let what = "an application's context has a provider and a type";
        self.tokens.expect(".", what, fix)?;
        let provider = self.tokens.name(what, fix)?;
        self.tokens.expect(":", what, fix)?;
        let context = self.tokens.name(what, fix)?;
        Ok(Root::App(provider.to_owned(), context.to_owned()))
    }

    fn pattern(&mut self, op: MatchOp, left: Operand, left_span: Span) -> Parsed<Cond> {
        if is_text(&left) == Some(false) {
            let fix = "compare numbers with == != < <= > >= or in (…)";
            return Err(Fault::new(left_span, "a number matches no pattern", fix));
        }
        let (token, span) = self.tokens.next();
        let Token::Quoted(quoted) = token else {
            let fix = "write it in double quotes, as in comm =* \"jack*\" or comm =~ \"^jack\"";
            return Err(Fault::new(span, "a pattern is missing here", fix));
        };
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            let what = format!("it has more than {PATTERNS_MAX} patterns");
            return Err(Fault::new(span, what, "join them, as in =~ \"^(a|b|c)\""));
        }
        let text = match op {
            MatchOp::Regex => regex(quoted),
            MatchOp::Glob | MatchOp::Contains => text(quoted, span)?,
        };
        Matcher::new(op, &text).map_err(|reason| {
            let what = format!("the regular expression means nothing: {reason}");
            Fault::new(
                span,
                what,
                "write \\. for a dot, \\( for a parenthesis; or use =* with * and ?",
            )
        })?;
        Ok(Cond::Match(op, left, Pattern { text, span }))
    }

    /// `(1, 2, 3)`
    fn list(&mut self, left: &Operand) -> Parsed<Vec<Operand>> {
        let fix = "write the values in parentheses, as in irq in (19, 24)";
        self.tokens.expect("(", "a list is missing here", fix)?;
        let mut list = Vec::new();
        loop {
            let value = self.parse(Infix::In.power())?;
            let span = value.span;
            let value = value.into_value()?;
            comparable(left, &value, span)?;
            list.push(value);
            if self.tokens.accept(")") {
                return Ok(list);
            }
            self.tokens.expect(",", "',' or ')' is missing here", fix)?;
        }
    }
}

fn join(left: Part, infix: Infix, operator: Span, right: Part) -> Parsed<Node> {
    let both = left.is_cond() && right.is_cond();
    match infix {
        // LTTV joins conditions with a single mark.
        Infix::And | Infix::Binary(BinaryOp::And) if both || matches!(infix, Infix::And) => {
            Ok(Node::Cond(Cond::all(vec![
                left.into_cond()?,
                right.into_cond()?,
            ])))
        }
        Infix::Or | Infix::Binary(BinaryOp::Or) if both || matches!(infix, Infix::Or) => {
            Ok(Node::Cond(Cond::any(vec![
                left.into_cond()?,
                right.into_cond()?,
            ])))
        }
        Infix::Compare(op) => {
            let (left, right) = (left.into_value()?, right.into_value()?);
            comparable(&left, &right, operator)?;
            Ok(Node::Cond(Cond::Compare(op, left, right)))
        }
        Infix::Binary(op) => {
            let (left, right) = (left.into_number()?, right.into_number()?);
            Ok(Node::Value(Operand::Binary(
                op,
                Box::new(left),
                Box::new(right),
            )))
        }
        _ => Err(Fault::new(
            operator,
            "this joins nothing",
            "write a condition on both sides",
        )),
    }
}

fn comparable(left: &Operand, right: &Operand, span: Span) -> Parsed<()> {
    match (is_text(left), is_text(right)) {
        (Some(left), Some(right)) if left != right => {
            let fix = "compare texts with texts in double quotes, and numbers with numbers";
            Err(Fault::new(
                span,
                "a text is never compared with a number",
                fix,
            ))
        }
        _ => Ok(()),
    }
}
