//! What looks like a mistake: fields and events that no class of the trace has.

use event::{Error, ErrorKind, EventClass};

use crate::ast::{CompareOp, Cond, Expr, FieldRef, Literal, Operand, Pseudo, Root};
use crate::bind::{Target, alias, resolve};
use crate::span::{Span, pointed};

/// More would bury the first.
const NOTES_MAX: usize = 8;

/// All notes on a filter, in its order.
pub(crate) fn of(expr: &Expr, classes: &[EventClass]) -> Vec<Error> {
    let mut notes = Notes {
        text: &expr.text.0,
        classes,
        found: Vec::new(),
    };
    // A trace without events has nothing of any name.
    if !classes.is_empty() {
        notes.cond(&expr.root);
    }
    notes.found
}

struct Notes<'a> {
    text: &'a str,
    classes: &'a [EventClass],
    found: Vec<Error>,
}

impl Notes<'_> {
    fn cond(&mut self, cond: &Cond) {
        match cond {
            Cond::All(parts) | Cond::Any(parts) => parts.iter().for_each(|part| self.cond(part)),
            Cond::Not(part) => self.cond(part),
            Cond::Compare(op, left, right) => {
                self.operand(left);
                self.operand(right);
                if *op == CompareOp::Equal {
                    self.event(left, right);
                    self.event(right, left);
                }
            }
            Cond::Match(_, value, _) | Cond::True(value) => self.operand(value),
            Cond::In(left, list) => {
                self.operand(left);
                for value in list {
                    self.operand(value);
                    self.event(left, value);
                }
            }
            Cond::Present(field) => self.field(field),
        }
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Literal(..) => {}
            Operand::Field(field) => self.field(field),
            Operand::Unary(_, value, _) => self.operand(value),
            Operand::Binary(_, left, right) => {
                self.operand(left);
                self.operand(right);
            }
        }
    }

    fn field(&mut self, field: &FieldRef) {
        let is_missing = |class| matches!(resolve(class, field), Target::Missing);
        if !self.classes.iter().all(is_missing) {
            return;
        }
        let name = match &field.root {
            Root::Auto(name) | Root::Scoped(_, name) => name.as_str(),
            Root::App(..) | Root::Pseudo(_) => "",
        };
        let fields = self.classes.iter().flat_map(|class| class.fields.iter());
        let near = nearest(name, fields.map(|field| field.name.as_str()));
        let fix = match near {
            Some(near) if near == name => {
                "the field is there, but in another scope, or without this member".to_owned()
            }
            Some(near) => format!("perhaps '{near}' is meant"),
            None => "'rtscope cat' shows what the events have; texts stand in double quotes".into(),
        };
        self.note(
            format!("no event of the trace has a field '{field}'"),
            field.span,
            fix,
        );
    }

    /// `left` is the event's name, `right` a name that no event has.
    fn event(&mut self, left: &Operand, right: &Operand) {
        let (Operand::Field(field), Operand::Literal(Literal::Text(text), span)) = (left, right)
        else {
            return;
        };
        let is_name = field.root == Root::Pseudo(Pseudo::Name)
            || !field.steps.is_empty() && alias(&field.root, &field.steps) == Some(Pseudo::Name);
        let mut names = self.classes.iter().map(|class| class.name.as_str());
        if !is_name || text.has_star() || names.any(|name| name.as_bytes() == text.bytes) {
            return;
        }
        let typed = String::from_utf8_lossy(&text.bytes).into_owned();
        let names = self.classes.iter().map(|class| class.name.as_str());
        let fix = match nearest(&typed, names) {
            Some(near) => format!("perhaps '{near}' is meant"),
            None => "'rtscope cat' shows the names of the events".to_owned(),
        };
        self.note(
            format!("no event of the trace is called '{typed}'"),
            *span,
            fix,
        );
    }

    fn note(&mut self, what: String, span: Span, fix: String) {
        if self.found.len() < NOTES_MAX {
            let note = Error::new(ErrorKind::NotFound, what);
            self.found
                .push(note.found(pointed(self.text, span)).fix(fix));
        }
    }
}

/// Names further away are other names.
const DISTANCE_MAX: usize = 2;
/// Longer ones nobody mistypes.
const NAME_BYTES_MAX: usize = 64;

/// The name that differs least from what was typed; none when all are other names.
pub fn nearest<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let within = |name: &'n str| {
        let longest = typed.len().max(name.len());
        let shortest = typed.len().min(name.len());
        let plausible = longest <= NAME_BYTES_MAX && longest - shortest <= DISTANCE_MAX;
        let distance = plausible.then(|| edit_distance(typed, name))?;
        // Short names are all near to each other.
        (distance <= DISTANCE_MAX && distance * 2 < shortest).then_some((distance, name))
    };
    names.filter_map(within).min().map(|(_, name)| name)
}

/// How many bytes must be changed, added or removed; upper and lower case are the same.
pub fn edit_distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(!a.eq_ignore_ascii_case(b));
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
