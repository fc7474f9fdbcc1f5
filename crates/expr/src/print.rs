//! Trees as text that reads back as the same tree.

use std::fmt::{Display, Formatter, Result, Write};

use crate::ast::{
    BinaryOp, CompareOp, Cond, Expr, FieldRef, FieldScope, Literal, MatchOp, Operand, Pseudo, Root,
    Step, Text, UnaryOp,
};
use crate::lexer::is_plain_name;

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.root.fmt(f)
    }
}

impl Display for Cond {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Cond::All(parts) => write_joined(f, parts, " && ", is_joined),
            Cond::Any(parts) => write_joined(f, parts, " || ", is_joined),
            Cond::Not(part) => write!(f, "!({part})"),
            Cond::Compare(op, left, right) => write!(f, "{left} {op} {right}"),
            Cond::Match(op, left, pattern) => {
                write!(f, "{left} {op} ")?;
                match op {
                    MatchOp::Regex => write_regex(f, &pattern.text.bytes),
                    MatchOp::Glob | MatchOp::Contains => pattern.text.fmt(f),
                }
            }
            Cond::In(left, list) => {
                write!(f, "{left} in (")?;
                for (place, value) in list.iter().enumerate() {
                    f.write_str(if place > 0 { ", " } else { "" })?;
                    value.fmt(f)?;
                }
                f.write_char(')')
            }
            Cond::Present(field) => write!(f, "{field} present"),
            Cond::True(value) => value.fmt(f),
        }
    }
}

fn is_joined(part: &Cond) -> bool {
    matches!(part, Cond::All(_) | Cond::Any(_))
}

/// Writes `parts` with `operator` between them, those that are joined themselves in brackets.
pub(crate) fn write_joined<T: Display>(
    f: &mut Formatter<'_>,
    parts: &[T],
    operator: &str,
    is_joined: fn(&T) -> bool,
) -> Result {
    for (place, part) in parts.iter().enumerate() {
        f.write_str(if place > 0 { operator } else { "" })?;
        if is_joined(part) {
            write!(f, "({part})")?;
        } else {
            part.fmt(f)?;
        }
    }
    Ok(())
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Operand::Literal(literal, _) => literal.fmt(f),
            Operand::Field(field) => field.fmt(f),
            Operand::Unary(op, value, _) => match **value {
                Operand::Unary(..) => write!(f, "{op}({value})"),
                _ => write!(f, "{op}{value}"),
            },
            Operand::Binary(op, left, right) => write!(f, "({left} {op} {right})"),
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Literal::Integer(value) => value.fmt(f),
            Literal::Float(value) => write!(f, "{value:?}"),
            Literal::Duration(value) => write!(f, "{}ns", value.as_ns()),
            Literal::Text(text) => text.fmt(f),
        }
    }
}

/// In quotes, with escapes.
impl Display for Text {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_char('"')?;
        let mut place = 0;
        for chunk in self.bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '"' | '\\' => write!(f, "\\{c}")?,
                    '\n' => f.write_str("\\n")?,
                    '\t' => f.write_str("\\t")?,
                    '*' | '?' | '[' if self.is_escaped(place) => write!(f, "\\{c}")?,
                    c if c.is_ascii_control() => write!(f, "\\x{:02x}", c as u32)?,
                    c => f.write_char(c)?,
                }
                place += c.len_utf8();
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
                place += 1;
            }
        }
        f.write_char('"')
    }
}

/// A regular expression in quotes: only the quote is escaped.
fn write_regex(f: &mut Formatter<'_>, regex: &[u8]) -> Result {
    f.write_char('"')?;
    let mut escaped = false;
    for c in String::from_utf8_lossy(regex).chars() {
        if c == '"' && !escaped {
            f.write_char('\\')?;
        }
        escaped = c == '\\' && !escaped;
        f.write_char(c)?;
    }
    f.write_char('"')
}

impl Display for FieldRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.root {
            Root::Auto(name) => write_name(f, name)?,
            Root::Scoped(scope, name) => {
                write!(f, "{scope}.")?;
                write_name(f, name)?;
            }
            Root::App(provider, context) => {
                f.write_str("$app.")?;
                write_name(f, provider)?;
                f.write_char(':')?;
                write_name(f, context)?;
            }
            Root::Pseudo(pseudo) => pseudo.fmt(f)?,
        }
        for step in &self.steps {
            match step {
                Step::Member(name) => {
                    f.write_char('.')?;
                    write_name(f, name)?;
                }
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

pub(crate) fn write_name(f: &mut Formatter<'_>, name: &str) -> Result {
    if is_plain_name(name) {
        f.write_str(name)
    } else {
        write!(f, "`{name}`")
    }
}

impl Display for FieldScope {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            FieldScope::Payload => "$payload",
            FieldScope::Context => "$ctx",
            FieldScope::Header => "$header",
            FieldScope::StreamContext => "$stream_ctx",
            FieldScope::PacketContext => "$pkt_ctx",
            FieldScope::PacketHeader => "$pkt_header",
        })
    }
}

impl Display for Pseudo {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Pseudo::Name => "$name",
            Pseudo::Cpu => "$cpu",
            Pseudo::Tid => "$tid",
            Pseudo::Procname => "$procname",
            Pseudo::Prio => "$prio",
            Pseudo::Time => "$time",
        })
    }
}

impl Display for CompareOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            CompareOp::Equal => "==",
            CompareOp::NotEqual => "!=",
            CompareOp::Less => "<",
            CompareOp::LessEqual => "<=",
            CompareOp::Greater => ">",
            CompareOp::GreaterEqual => ">=",
        })
    }
}

impl Display for MatchOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            MatchOp::Regex => "=~",
            MatchOp::Glob => "=*",
            MatchOp::Contains => "contains",
        })
    }
}

impl Display for UnaryOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            UnaryOp::Negate => "-",
            UnaryOp::Invert => "~",
        })
    }
}

impl Display for BinaryOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::Remainder => "%",
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::ShiftLeft => "<<",
            BinaryOp::ShiftRight => ">>",
        })
    }
}
