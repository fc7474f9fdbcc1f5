//! Classes and fields of an open trace, and what all events of a class share.

use std::collections::HashMap;
use std::sync::Arc;

use event::{EventClass, FieldId, FieldType, IntegerMapping, Scope};
use face::{Kind, visible_fields};
use pyo3::prelude::*;
use trace::Trace;

/// How a value is copied from an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Load {
    Unsigned,
    Signed,
    Bool,
    Float,
    Text,
    Other,
}

/// A field as events know it.
pub(crate) struct FieldInfo {
    pub name: String,
    pub id: FieldId,
    pub load: Load,
    scope: Scope,
    /// Labels of an enumeration.
    labels: Option<Arc<[IntegerMapping]>>,
    signed: bool,
}

/// What all events of a class share.
pub(crate) struct ClassInfo {
    pub name: String,
    pub fields: Vec<FieldInfo>,
    pub places: HashMap<String, usize>,
}

/// A trace and its classes.
pub(crate) struct Shared {
    pub trace: Arc<Trace>,
    pub classes: Vec<ClassInfo>,
}

impl Shared {
    pub fn new(trace: Trace) -> Shared {
        Shared {
            classes: trace.classes().iter().map(ClassInfo::new).collect(),
            trace: Arc::new(trace),
        }
    }
}

impl ClassInfo {
    fn new(class: &EventClass) -> ClassInfo {
        let fields: Vec<FieldInfo> = visible_fields(class)
            .map(|(id, field)| FieldInfo {
                name: field.name.to_string(),
                id,
                load: Load::of(&field.ty),
                scope: field.scope,
                labels: match &field.ty {
                    FieldType::Enum(_, labels) => Some(labels.clone()),
                    _ => None,
                },
                signed: Kind::of(&field.ty) == Kind::Signed,
            })
            .collect();
        let names = fields.iter().enumerate();
        ClassInfo {
            name: class.name.clone(),
            places: names
                .map(|(place, field)| (field.name.clone(), place))
                .collect(),
            fields,
        }
    }
}

impl Load {
    fn of(ty: &FieldType) -> Load {
        match (Kind::of(ty), ty) {
            (_, FieldType::Bool(_)) => Load::Bool,
            (Kind::Unsigned, _) => Load::Unsigned,
            (Kind::Signed, _) => Load::Signed,
            (Kind::Float, _) => Load::Float,
            (Kind::Text, _) => Load::Text,
            (Kind::Other, _) => Load::Other,
        }
    }
}

impl FieldInfo {
    /// The first label for an integer.
    pub fn label(&self, bits: u64) -> Option<&str> {
        let is_inside = |mapping: &&IntegerMapping| match self.signed {
            true => (mapping.first..=mapping.last).contains(&(bits as i64)),
            false => (mapping.first as u64..=mapping.last as u64).contains(&bits),
        };
        let mapping = self.labels.as_ref()?.iter().find(is_inside)?;
        Some(&mapping.label)
    }
}

/// A class of events.
#[pyclass(frozen, module = "rtscope")]
pub(crate) struct Class {
    pub shared: Arc<Shared>,
    pub number: usize,
}

#[pymethods]
impl Class {
    #[getter]
    fn number(&self) -> usize {
        self.number
    }

    #[getter]
    fn name(&self) -> &str {
        &self.shared.classes[self.number].name
    }

    #[getter]
    fn fields(&self) -> Vec<Field> {
        let count = self.shared.classes[self.number].fields.len();
        let field = |place| Field {
            shared: self.shared.clone(),
            class: self.number,
            place,
        };
        (0..count).map(field).collect()
    }

    fn __repr__(&self) -> String {
        let fields = &self.shared.classes[self.number].fields;
        let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        format!("<rtscope.Class {} {{ {} }}>", self.name(), names.join(", "))
    }
}

/// A field of a class.
#[pyclass(frozen, module = "rtscope")]
pub(crate) struct Field {
    shared: Arc<Shared>,
    class: usize,
    place: usize,
}

impl Field {
    fn info(&self) -> &FieldInfo {
        &self.shared.classes[self.class].fields[self.place]
    }
}

#[pymethods]
impl Field {
    #[getter]
    fn name(&self) -> &str {
        &self.info().name
    }

    #[getter]
    fn kind(&self) -> &'static str {
        match self.info().load {
            Load::Unsigned => "unsigned",
            Load::Signed => "signed",
            Load::Bool => "bool",
            Load::Float => "float",
            Load::Text => "text",
            Load::Other => "other",
        }
    }

    #[getter]
    fn scope(&self) -> &'static str {
        match self.info().scope {
            Scope::Payload => "payload",
            Scope::EventContext => "event_context",
            Scope::EventHeader => "event_header",
            Scope::StreamContext => "stream_context",
            Scope::PacketContext => "packet_context",
            Scope::PacketHeader => "packet_header",
        }
    }

    #[getter]
    fn labels(&self) -> Vec<(String, i64, i64)> {
        let labels = self.info().labels.iter().flat_map(|labels| labels.iter());
        labels.map(|l| (l.label.clone(), l.first, l.last)).collect()
    }

    fn __repr__(&self) -> String {
        format!("<rtscope.Field {} ({})>", self.name(), self.kind())
    }
}

/// A field bound by name once.
#[pyclass(frozen, module = "rtscope")]
pub(crate) struct BoundField {
    #[pyo3(get)]
    pub name: String,
    /// By class.
    pub places: Box<[Option<usize>]>,
}

impl BoundField {
    pub fn new(shared: &Shared, name: &str) -> BoundField {
        let classes = shared.classes.iter();
        BoundField {
            name: name.to_owned(),
            places: classes
                .map(|class| class.places.get(name).copied())
                .collect(),
        }
    }
}

#[pymethods]
impl BoundField {
    fn __repr__(&self) -> String {
        format!("<rtscope.BoundField {}>", self.name)
    }
}
