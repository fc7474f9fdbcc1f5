//! Names to fields: what a field reference means in one event class.

use event::{EventClass, FieldId, FieldType, Integer, IntegerMapping, Scope};

use crate::ast::{FieldRef, FieldScope, Pseudo, Root, Step};

/// What a reference means in a class.
#[derive(Clone, Debug)]
pub(crate) enum Target<'c> {
    /// A value at the end of a path.
    Field {
        field: FieldId,
        /// From the field inwards; empty for the field itself.
        steps: Vec<Step>,
        ty: &'c FieldType,
        /// Whether an event of the class may lack it: a variant or a sequence lies on the path.
        optional: bool,
    },
    /// Of the event or of the task that ran.
    Pseudo(Pseudo),
    /// Events of this class have nothing of that name.
    Missing,
}

/// Resolves a reference.
pub(crate) fn resolve<'c>(class: &'c EventClass, reference: &FieldRef) -> Target<'c> {
    let steps = &reference.steps;
    let found = match &reference.root {
        Root::Pseudo(pseudo) => return resolve_pseudo(class, *pseudo),
        Root::Auto(name) => class.field(name),
        Root::Scoped(scope, name) => scope.scopes().iter().find_map(|s| class.field_in(*s, name)),
        Root::App(provider, context) => application(class, provider, context),
    };
    if let Some(field) = found {
        return walk(class, field, steps);
    }
    match alias(&reference.root, steps) {
        Some(pseudo) => resolve_pseudo(class, pseudo),
        None => Target::Missing,
    }
}

impl FieldScope {
    /// The scopes that it means, in order.
    pub fn scopes(self) -> &'static [Scope] {
        match self {
            FieldScope::Payload => &[Scope::Payload],
            FieldScope::Context => &[Scope::EventContext, Scope::StreamContext],
            FieldScope::Header => &[Scope::EventHeader],
            FieldScope::StreamContext => &[Scope::StreamContext],
            FieldScope::PacketContext => &[Scope::PacketContext],
            FieldScope::PacketHeader => &[Scope::PacketHeader],
        }
    }
}

/// LTTng's context of an application; tracers spell its dollar, dot and colon differently.
fn application(class: &EventClass, provider: &str, context: &str) -> Option<FieldId> {
    let letters = |name: &str| -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        name.chars()
            .map(plain)
            .collect::<String>()
            .trim_start_matches('_')
            .to_owned()
    };
    let wanted = letters(&format!("app.{provider}:{context}"));
    let is_context = |scope| matches!(scope, Scope::EventContext | Scope::StreamContext);
    let mut fields = class.fields.iter();
    let place = fields.position(|f| is_context(f.scope) && letters(&f.name) == wanted)?;
    Some(FieldId(place as u16))
}

/// Names without a dollar that mean a pseudo-field where no field has them: its own, LTTV's, Trace
/// Compass's, LTTng's contexts.
pub(crate) fn alias(root: &Root, steps: &[Step]) -> Option<Pseudo> {
    let (Root::Auto(first) | Root::Scoped(FieldScope::Context, first)) = root else {
        return None;
    };
    let in_context = matches!(root, Root::Scoped(..));
    let second = match steps {
        [] => None,
        [Step::Member(name)] => Some(name.as_str()),
        _ => return None,
    };
    Some(match (first.as_str(), second) {
        ("tid", None) => Pseudo::Tid,
        ("procname", None) => Pseudo::Procname,
        ("prio", None) => Pseudo::Prio,
        ("cpu_id", None) => Pseudo::Cpu,
        _ if in_context => return None,
        ("name", None) | ("event", Some("name")) => Pseudo::Name,
        ("cpu" | "CPU", None) | ("state", Some("cpu")) => Pseudo::Cpu,
        ("TID", None) | ("state", Some("pid")) => Pseudo::Tid,
        ("process_name", None) | ("state", Some("process_name")) => Pseudo::Procname,
        ("Prio", None) => Pseudo::Prio,
        ("time" | "timestamp" | "Timestamp", None) | ("event", Some("time")) => Pseudo::Time,
        _ => return None,
    })
}

/// The class itself may say which task ran: in a context, or as the task that a switch takes away.
fn resolve_pseudo(class: &EventClass, pseudo: Pseudo) -> Target<'_> {
    let (contexts, switch): (&[&str], &[&str]) = match pseudo {
        Pseudo::Tid => (&["tid", "vtid"], &["prev_tid", "prev_pid"]),
        Pseudo::Procname => (&["procname"], &["prev_comm"]),
        Pseudo::Prio => (&["prio"], &["prev_prio"]),
        Pseudo::Name | Pseudo::Cpu | Pseudo::Time => return Target::Pseudo(pseudo),
    };
    let in_context = |name: &&str| {
        let scopes = FieldScope::Context.scopes();
        scopes.iter().find_map(|scope| class.field_in(*scope, name))
    };
    let in_switch = |name: &&str| class.field_in(Scope::Payload, name);
    let mut found = contexts.iter().find_map(in_context);
    if class.kernel_name() == SWITCH {
        found = found.or_else(|| switch.iter().find_map(in_switch));
    }
    match found {
        Some(field) => walk(class, field, &[]),
        None => Target::Pseudo(pseudo),
    }
}

/// The event at which a CPU changes its task.
pub(crate) const SWITCH: &str = "sched_switch";

fn walk<'c>(class: &'c EventClass, field: FieldId, steps: &[Step]) -> Target<'c> {
    let Some(start) = class.fields.get(usize::from(field.0)) else {
        return Target::Missing;
    };
    let mut ty = &start.ty;
    let mut optional = false;
    for step in steps {
        let next = match (ty, step) {
            (FieldType::Struct(members), Step::Member(name)) => members
                .iter()
                .find(|member| member.name == *name)
                .map(|member| &member.ty),
            (FieldType::Variant { choices, .. }, Step::Member(name)) => {
                optional = true;
                choices
                    .iter()
                    .find(|choice| choice.name == *name)
                    .map(|choice| &choice.ty)
            }
            (FieldType::Array { element, count }, Step::Index(index)) => {
                (index < count).then_some(&**element)
            }
            (FieldType::Sequence { element, .. }, Step::Index(_)) if !is_character(element) => {
                optional = true;
                Some(&**element)
            }
            _ => None,
        };
        match next {
            Some(next) => ty = next,
            None => return Target::Missing,
        }
    }
    Target::Field {
        field,
        steps: steps.to_vec(),
        ty,
        optional,
    }
}

/// What values of a type can be used as.
pub(crate) enum Use<'c> {
    Integer(&'c Integer),
    Enum(&'c Integer, &'c [IntegerMapping]),
    Float,
    Text,
    /// It can only be present.
    Compound,
}

impl<'c> Use<'c> {
    pub fn of(ty: &'c FieldType) -> Use<'c> {
        match ty {
            FieldType::Integer(integer) => Use::Integer(integer),
            FieldType::Enum(integer, mappings) => Use::Enum(integer, mappings),
            FieldType::Float { .. } => Use::Float,
            FieldType::String | FieldType::Text { .. } => Use::Text,
            FieldType::Sequence { element, .. } if is_character(element) => Use::Text,
            _ => Use::Compound,
        }
    }
}

/// Whether a sequence of it is a text.
fn is_character(ty: &FieldType) -> bool {
    matches!(ty, FieldType::Integer(int) if int.text && int.size_bits == 8 && int.align_bits == 8)
}
