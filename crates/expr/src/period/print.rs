//! Definitions as text that reads back as the same definition.

use std::fmt::{Display, Formatter, Result, Write};

use super::{Capture, Captures, EventOf, EventPart, EventValue, Period, PeriodCond, PeriodValue};
use crate::ast::{Step, Text};
use crate::print::{write_joined, write_name};

impl Display for Period {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(name) = &self.name {
            write_name(f, name)?;
            if let Some(parent) = &self.parent {
                f.write_char('(')?;
                write_name(f, parent)?;
                f.write_char(')')?;
            }
            f.write_char(' ')?;
        }
        write!(f, ": {} : {}", self.begin, self.end)
    }
}

impl Display for Captures {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write_name(f, &self.period)?;
        f.write_str(" : ")?;
        write_captures(f, &self.begin)?;
        f.write_str(" : ")?;
        write_captures(f, &self.end)
    }
}

fn write_captures(f: &mut Formatter<'_>, captures: &[Capture]) -> Result {
    for (place, Capture { name, value }) in captures.iter().enumerate() {
        f.write_str(if place > 0 { ", " } else { "" })?;
        if *name != value.to_string() {
            write_name(f, name)?;
            f.write_str(" = ")?;
        }
        value.fmt(f)?;
    }
    Ok(())
}

impl Display for PeriodCond {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            PeriodCond::All(parts) => write_joined(f, parts, " && ", is_joined),
            PeriodCond::Any(parts) => write_joined(f, parts, " || ", is_joined),
            PeriodCond::Not(part) => write!(f, "!({part})"),
            PeriodCond::Compare(op, left, right) => write!(f, "{left} {op} {right}"),
            PeriodCond::Glob(left, pattern) => write!(f, "{left} =* {pattern}"),
        }
    }
}

fn is_joined(part: &PeriodCond) -> bool {
    matches!(part, PeriodCond::All(_) | PeriodCond::Any(_))
}

impl Display for PeriodValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            PeriodValue::Integer(value) => value.fmt(f),
            PeriodValue::Float(value) => write!(f, "{value:?}"),
            PeriodValue::DurationNs(value) => write!(f, "{value}ns"),
            PeriodValue::Text(bytes) => Text::new(bytes.clone()).fmt(f),
            PeriodValue::Event(value) => value.fmt(f),
        }
    }
}

/// As lttng-analyses names a capture without an alias.
impl Display for EventValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self.of {
            EventOf::Current => "$evt.",
            EventOf::Begin => "$begin.$evt.",
            EventOf::ParentBegin => "$parent.$begin.$evt.",
        })?;
        let EventPart::Field { scope, name, steps } = &self.part else {
            return f.write_str("$name");
        };
        if let Some(scope) = scope {
            write!(f, "{scope}.")?;
        }
        write_name(f, name)?;
        for step in steps {
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
