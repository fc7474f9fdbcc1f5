//! CTF 2's metadata: a sequence of JSON fragments, each begun by a record separator.
//!
//! Both the final form of the specification and the dialect of its release candidates are read:
//! they differ in a few names (`default-clock-class-name`, `uuid` in place of `uid`, locations as
//! plain lists, enumerations as a type of their own), never in the meaning of one.

mod fields;
mod object;

use std::collections::HashMap;

use event::{Error, ErrorKind, Result, Scope};
use serde_json::Value as Json;

use self::fields::FieldClasses;
use self::object::Object;
use super::compile::refuse;
use super::schema::{
    ClassRemarks, ClockInfo, Declarations, EventDeclaration, StreamDeclaration, uuid,
};
use crate::writer::EnvValue;

/// Begins each fragment.
const RECORD_SEPARATOR: char = '\u{1e}';

/// Whether this text is CTF 2's metadata: it begins with a fragment.
pub(super) fn is_ctf2(text: &str) -> bool {
    text.trim_start().starts_with([RECORD_SEPARATOR, '{'])
}

/// What the fragments declare.
///
/// # Errors
/// [`ErrorKind::Corrupt`] with the number of the fragment, its place and what was found in it;
/// [`ErrorKind::Unsupported`] for extensions, which change the format in ways that nobody knows.
pub(super) fn declarations(text: &str) -> Result<Declarations> {
    let mut reader = Fragments::default();
    let begin = text.as_ptr() as usize;
    let texts = text
        .split(RECORD_SEPARATOR)
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let count = texts.clone().count();
    for (place, text) in texts.enumerate() {
        let number = place + 1;
        let name = || {
            format!(
                "fragment {number} at byte {}",
                text.as_ptr() as usize - begin
            )
        };
        let json: Json = match serde_json::from_str(text) {
            Ok(json) => json,
            // A trace that is still being written may end inside of a fragment.
            Err(cause) if cause.is_eof() && number == count && number > 1 => break,
            Err(cause) => return Err(refuse(format!("{}: {cause}", name()))),
        };
        let within = |found: Error| {
            let reason = found.value_found().unwrap_or_default();
            let named = Error::new(found.kind(), found.what());
            let named = named.found(format!("{}: {reason}", name()));
            match found.fixed_by() {
                Some(fix) => named.fix(fix),
                None => named,
            }
        };
        let fragment = Object::new(&json, "a fragment").map_err(within)?;
        reader.add(&fragment, number).map_err(within)?;
    }
    let mut declared = reader.declared;
    if declared.streams.is_empty() {
        return Err(refuse("no data stream class".to_owned()));
    }
    declared.uuid = reader.uuid.or(declared.uuid);
    Ok(declared)
}

#[derive(Default)]
struct Fragments {
    declared: Declarations,
    /// The metadata's own, which packets repeat.
    uuid: Option<[u8; 16]>,
    aliases: HashMap<String, Json>,
    /// Clocks by what stream classes call them.
    clocks: HashMap<String, String>,
    has_trace_class: bool,
}

impl Fragments {
    fn add(&mut self, fragment: &Object<'_>, number: usize) -> Result<()> {
        let kind = fragment.text("type")?;
        if (kind == "preamble") != (number == 1) {
            return Err(refuse(format!("'{kind}', not the preamble at the begin")));
        }
        match kind {
            "preamble" => self.preamble(fragment),
            "field-class-alias" => self.alias(fragment),
            "trace-class" => self.trace_class(fragment),
            "clock-class" => self.clock_class(fragment),
            "data-stream-class" => self.stream_class(fragment),
            "event-record-class" => self.event_class(fragment),
            other => Err(refuse(format!("the unknown type '{other}'"))),
        }
    }

    fn preamble(&mut self, preamble: &Object<'_>) -> Result<()> {
        let version = preamble.u64("version")?;
        if version != 2 {
            return Err(refuse(format!("version {version} of CTF, not 2")));
        }
        if preamble.get("extensions").is_some() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "this trace uses extensions of CTF 2 that nobody here knows",
            )
            .found("'extensions' in its preamble"));
        }
        self.uuid = preamble.get("uuid").and_then(uuid_bytes);
        Ok(())
    }

    fn alias(&mut self, alias: &Object<'_>) -> Result<()> {
        let name = alias.text("name")?;
        let class = alias.required("field-class")?;
        // Read now, so that an alias can only name earlier ones: no circles.
        self.classes(None, Scope::Payload).read(class)?;
        match self.aliases.insert(name.to_owned(), class.clone()) {
            None => Ok(()),
            Some(_) => Err(refuse(format!("the alias '{name}' twice"))),
        }
    }

    fn classes<'a>(&'a self, clock: Option<&'a str>, scope: Scope) -> FieldClasses<'a> {
        FieldClasses::new(&self.aliases, clock, scope)
    }

    fn trace_class(&mut self, class: &Object<'_>) -> Result<()> {
        if std::mem::replace(&mut self.has_trace_class, true) {
            return Err(refuse("the trace class twice".to_owned()));
        }
        let header = class.get("packet-header-field-class");
        self.declared.packet_header = self.classes(None, Scope::PacketHeader).scope(header)?;
        let id = class.get("uid").or_else(|| class.get("uuid"));
        self.declared.uuid = id.and_then(uuid_bytes);
        let Some(Json::Object(environment)) = class.get("environment") else {
            return Ok(());
        };
        for (name, value) in environment {
            let value = match (value.as_i64(), value.as_str()) {
                (Some(number), _) => EnvValue::Integer(number),
                (_, Some(text)) => EnvValue::Text(text.to_owned()),
                _ => EnvValue::Text(value.to_string()),
            };
            self.declared.environment.push((name.clone(), value));
        }
        Ok(())
    }

    fn clock_class(&mut self, class: &Object<'_>) -> Result<()> {
        let id = class.optional_text("id")?;
        let name = class.optional_text("name")?;
        let Some(called) = id.or(name) else {
            return Err(refuse("a clock class without 'id'".to_owned()));
        };
        let frequency_hz = class.u64("frequency")?;
        if frequency_hz == 0 {
            return Err(refuse("a clock of 0 Hz".to_owned()));
        }
        let offset = class
            .get("offset-from-origin")
            .or_else(|| class.get("offset"));
        let offset = offset
            .map(|json| Object::new(json, "the offset of a clock"))
            .transpose()?;
        let part = |key| match &offset {
            Some(offset) => offset.i64_or(key, 0),
            None => Ok(0),
        };
        // Clocks without a common origin keep an identity of their own; two of one trace share it.
        if self.clocks.contains_key(called) {
            return Err(refuse(format!("the clock class '{called}' twice")));
        }
        let shown = name.unwrap_or(called).to_owned();
        let taken = self.declared.clocks.iter().any(|clock| clock.name == shown);
        let unique = if taken { called.to_owned() } else { shown };
        self.clocks.insert(called.to_owned(), unique.clone());
        self.declared.clocks.push(ClockInfo {
            name: unique,
            frequency_hz,
            offset_s: part("seconds")?,
            offset_cycles: part("cycles")?,
        });
        Ok(())
    }

    fn stream_class(&mut self, class: &Object<'_>) -> Result<()> {
        let id = class.u64_or("id", 0)?;
        let clock_id = match class.optional_text("default-clock-class-id")? {
            Some(id) => Some(id),
            None => class.optional_text("default-clock-class-name")?,
        };
        let clock = match clock_id {
            None => None,
            Some(id) => Some(
                self.clocks
                    .get(id)
                    .ok_or_else(|| refuse(format!("the unknown clock class '{id}'")))?,
            ),
        };
        let scope = |key: &str, scope| {
            let classes = self.classes(clock.map(String::as_str), scope);
            classes.scope(class.get(key))
        };
        let stream = StreamDeclaration {
            header: scope("event-record-header-field-class", Scope::EventHeader)?,
            packet_context: scope("packet-context-field-class", Scope::PacketContext)?,
            event_context: scope(
                "event-record-common-context-field-class",
                Scope::StreamContext,
            )?,
        };
        match self.declared.streams.insert(id, stream) {
            None => Ok(()),
            Some(_) => Err(refuse(format!("the data stream class {id} twice"))),
        }
    }

    fn event_class(&mut self, class: &Object<'_>) -> Result<()> {
        let scope = |key: &str, scope| self.classes(None, scope).scope(class.get(key));
        let event = EventDeclaration {
            name: class.optional_text("name")?.unwrap_or_default().to_owned(),
            id: class.u64_or("id", 0)?,
            stream_id: class.u64_or("data-stream-class-id", 0)?,
            context: scope("specific-context-field-class", Scope::EventContext)?,
            fields: scope("payload-field-class", Scope::Payload)?,
            remarks: remarks(class),
        };
        self.declared.events.push(event);
        Ok(())
    }
}

/// LTTng's attributes, and babeltrace 2's names for them.
fn remarks(class: &Object<'_>) -> ClassRemarks {
    let attribute = |namespace: &str, key: &str| {
        let attributes = class.get("attributes")?.get(namespace)?;
        attributes.get(key)
    };
    let either =
        |key| attribute("lttng.org,2009", key).or_else(|| attribute("babeltrace.org,2020", key));
    ClassRemarks {
        log_level: either("log-level").and_then(Json::as_i64),
        emf_uri: either("emf-uri").and_then(Json::as_str).map(str::to_owned),
    }
}

/// A UUID as sixteen numbers, or as text.
fn uuid_bytes(json: &Json) -> Option<[u8; 16]> {
    if let Some(text) = json.as_str() {
        return uuid(text);
    }
    let numbers = json.as_array()?;
    let bytes: Option<Vec<u8>> = numbers
        .iter()
        .map(|number| u8::try_from(number.as_u64()?).ok())
        .collect();
    bytes?.try_into().ok()
}
