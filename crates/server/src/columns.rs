//! Columns of the table of events that who looks chooses: each is a field's name.

use std::collections::HashMap;

use event::{ClassId, FieldId, Value};
use trace::{EventView, Trace};

/// Columns of one question.
const COLUMNS_MAX: usize = 16;

/// The columns of a question, bound in the classes that were met.
pub(crate) struct Columns<'a> {
    trace: &'a Trace,
    names: Vec<&'a str>,
    by_class: HashMap<ClassId, Vec<Option<FieldId>>>,
}

impl<'a> Columns<'a> {
    /// Of `a,b`.
    pub fn new(trace: &'a Trace, text: &'a str) -> Columns<'a> {
        let names = text.split(',').map(str::trim);
        Columns {
            trace,
            names: names
                .filter(|name| !name.is_empty())
                .take(COLUMNS_MAX)
                .collect(),
            by_class: HashMap::new(),
        }
    }

    /// The fields of an event as text; none for those that it does not have.
    pub fn cells(&mut self, event: &EventView<'_>) -> Vec<Option<String>> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let (trace, names) = (self.trace, &self.names);
        let bound = self.by_class.entry(event.class()).or_insert_with(|| {
            let class = trace.classes().get(event.class().0 as usize);
            let field = |name: &&str| class.and_then(|class| class.field(name));
            names.iter().map(field).collect()
        });
        let cell = |field: &Option<FieldId>| field.and_then(|field| text(&event.value(field)));
        bound.iter().map(cell).collect()
    }
}

/// A text is what it says, all others are as in JSON.
fn text(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Absent => None,
        Value::Text(text) => Some(text.clone().into_owned()),
        Value::Enum {
            label: Some(label), ..
        } => Some((*label).to_owned()),
        Value::Enum { value, label: None } => Some(value.to_string()),
        other => {
            let mut out = Vec::new();
            event::json::value(other, &mut out);
            Some(String::from_utf8_lossy(&out).into_owned())
        }
    }
}
