//! What was declared of a trace that is being written, and the values that were set.

use ctf::LOSSES_BETWEEN;
use ctf::LOSSES_KEY;
use ctf::writer::{ClockMeta, Dialect, EnvValue, HeaderKind, PayloadWriter, StreamMeta, TraceMeta};
use event::{ClassId, Error, ErrorKind, EventClass, Field, FieldType, Integer, Result};

use super::{Given, spelling};

/// Field numbers have 16 bits.
const FIELDS_MAX: usize = 1 << 15;

/// Streams, events and fields.
#[derive(Debug, Default)]
pub(super) struct Declared {
    environment: Vec<(String, EnvValue)>,
    pub wall_offset_ns: i64,
    pub dialect: Dialect,
    /// Their names.
    streams: Vec<String>,
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    stream: u32,
    /// Its place among those of its stream.
    place: u32,
    name: String,
    fields: Vec<FieldPlan>,
}

#[derive(Debug)]
struct FieldPlan {
    name: String,
    ty: FieldType,
    slot: Slot,
}

/// The value that a field will have in the next event.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    Integer(Integer, u64),
    Float {
        size_bits: u8,
        value: f64,
    },
    Text(Vec<u8>),
    /// The bytes of the elements and their number.
    List {
        element: Element,
        bytes: Vec<u8>,
        count: u32,
    },
}

/// An element of a sequence.
#[derive(Clone, Copy, Debug)]
pub(super) enum Element {
    Integer(Integer),
    Float(u8),
}

impl Declared {
    pub fn environment(&mut self, key: &str, value: &str) {
        self.environment.retain(|(found, _)| found != key);
        self.environment.push((key.to_owned(), value.into()));
    }

    pub fn stream(&mut self, name: &str) -> Result<u32> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || !name.chars().all(is_name) || self.streams.iter().any(|n| n == name) {
            return Err(
                Error::new(ErrorKind::InvalidInput, "not the name of a new stream")
                    .found(format!("'{name}'"))
                    .fix("give each stream a name of its own, of letters, digits, - and _"),
            );
        }
        self.streams.push(name.to_owned());
        Ok(self.streams.len() as u32 - 1)
    }

    pub fn has_stream(&self, stream: u32) -> Result<()> {
        match (stream as usize) < self.streams.len() {
            true => Ok(()),
            false => Err(unknown("stream", stream, self.streams.len())),
        }
    }

    pub fn class(&mut self, stream: u32, name: &str) -> Result<u32> {
        self.has_stream(stream)?;
        let of_stream = self.classes.iter().filter(|class| class.stream == stream);
        self.classes.push(Class {
            stream,
            place: of_stream.count() as u32,
            name: name.to_owned(),
            fields: Vec::new(),
        });
        Ok(self.classes.len() as u32 - 1)
    }

    pub fn field(&mut self, class: u32, name: &str, spelling: &str) -> Result<u32> {
        let count = self.classes.len();
        let Some(class) = self.classes.get_mut(class as usize) else {
            return Err(unknown("event", class, count));
        };
        let refuse = |what: &str| {
            Err(Error::new(ErrorKind::InvalidInput, what)
                .found(format!("'{name}' of the event '{}'", class.name)))
        };
        let mut letters = name.chars();
        let begins = letters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return refuse("not a name of a field: letters, digits and _, no digit first");
        }
        if class.fields.iter().any(|field| field.name == name) {
            return refuse("an event has two fields of one name");
        }
        if class.fields.len() == FIELDS_MAX {
            return refuse("an event has too many fields");
        }
        let mut ty = spelling::read(spelling)?;
        if let FieldType::Sequence { length, .. } = &mut ty {
            *length = length_name(name);
        }
        class.fields.push(FieldPlan {
            name: name.to_owned(),
            slot: Slot::of(&ty),
            ty,
        });
        Ok(class.fields.len() as u32 - 1)
    }

    pub fn field_number(&self, class: u32, name: &str) -> Option<u32> {
        let class = self.classes.get(class as usize)?;
        let place = class.fields.iter().position(|field| field.name == name)?;
        Some(place as u32)
    }

    pub fn slot(&mut self, class: u32, field: u32) -> Result<&mut Slot> {
        let count = self.classes.len();
        let Some(class) = self.classes.get_mut(class as usize) else {
            return Err(unknown("event", class, count));
        };
        let count = class.fields.len();
        match class.fields.get_mut(field as usize) {
            Some(field) => Ok(&mut field.slot),
            None => Err(unknown("field", field, count)),
        }
    }

    /// Appends the values of the next event and clears them; returns its stream and its place
    /// there.
    pub fn encode(&mut self, class: u32, payload: &mut PayloadWriter) -> Result<(u32, u32)> {
        let count = self.classes.len();
        let Some(class) = self.classes.get_mut(class as usize) else {
            return Err(unknown("event", class, count));
        };
        for field in &mut class.fields {
            field.slot.encode(payload);
            field.slot.clear();
        }
        Ok((class.stream, class.place))
    }

    pub fn meta(&self) -> Result<TraceMeta> {
        let stream = |(number, name): (usize, &String)| {
            let of_stream = self.classes.iter();
            let of_stream = of_stream.filter(|class| class.stream as usize == number);
            let classes: Vec<EventClass> = of_stream.map(Class::event_class).collect();
            StreamMeta {
                name: name.clone(),
                header: HeaderKind::for_classes(classes.len()),
                classes,
                ..StreamMeta::default()
            }
        };
        let mut environment = self.environment.clone();
        environment.push((LOSSES_KEY.to_owned(), LOSSES_BETWEEN.into()));
        Ok(TraceMeta {
            environment,
            dialect: self.dialect,
            uuid: ctf::writer::random_uuid()?,
            clocks: vec![ClockMeta::monotonic(self.wall_offset_ns)],
            streams: self.streams.iter().enumerate().map(stream).collect(),
            ..TraceMeta::default()
        })
    }
}

/// As LTTng calls the field that holds a sequence's length.
fn length_name(name: &str) -> String {
    format!("_{name}_length")
}

fn unknown(what: &str, number: u32, count: usize) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("no such {what} was declared in the trace"),
    )
    .found(format!("number {number} of {count}"))
    .fix("use the number that its declaration returned")
}

impl Class {
    fn event_class(&self) -> EventClass {
        let mut fields = Vec::new();
        for field in &self.fields {
            if let FieldType::Sequence { length, .. } = &field.ty {
                let count = FieldType::Integer(Integer::le(32, false));
                fields.push(Field::payload(length, count));
            }
            fields.push(Field::payload(&field.name, field.ty.clone()));
        }
        EventClass {
            id: ClassId(self.place),
            name: self.name.clone(),
            stream: self.stream,
            fields: fields.into(),
        }
    }
}

impl Slot {
    fn of(ty: &FieldType) -> Slot {
        match ty {
            FieldType::Integer(integer) | FieldType::Enum(integer, _) => Slot::Integer(*integer, 0),
            FieldType::Float { size_bits, .. } => Slot::Float {
                size_bits: *size_bits,
                value: 0.0,
            },
            FieldType::Sequence { element, .. } => Slot::List {
                element: match &**element {
                    FieldType::Integer(integer) => Element::Integer(*integer),
                    FieldType::Float { size_bits, .. } => Element::Float(*size_bits),
                    _ => Element::Float(64),
                },
                bytes: Vec::new(),
                count: 0,
            },
            _ => Slot::Text(Vec::new()),
        }
    }

    /// Sets the value.
    pub fn set(&mut self, given: Given<'_>) -> Result<()> {
        match (self, given) {
            (Slot::Integer(ty, bits), given) => *bits = integer_bits(ty, given)?,
            (Slot::Float { value, .. }, Given::Float(float)) => *value = float,
            (Slot::Float { value, .. }, Given::Signed(number)) => *value = number as f64,
            (Slot::Float { value, .. }, Given::Unsigned(number)) => *value = number as f64,
            (Slot::Text(bytes), Given::Text(text)) => {
                if text.contains(&0) {
                    return Err(Error::new(
                        ErrorKind::InvalidInput,
                        "a text must not have a zero byte inside",
                    ));
                }
                bytes.clear();
                bytes.extend_from_slice(text);
            }
            (
                Slot::List {
                    element,
                    bytes,
                    count,
                },
                given,
            ) => {
                bytes.clear();
                *count = 0;
                let wanted = given_elements(given)?;
                for given in wanted {
                    element.append(given, bytes)?;
                    *count += 1;
                }
            }
            (Slot::Float { .. } | Slot::Text(_), given) => return Err(misfit(given)),
        }
        Ok(())
    }

    fn clear(&mut self) {
        match self {
            Slot::Integer(_, bits) => *bits = 0,
            Slot::Float { value, .. } => *value = 0.0,
            Slot::Text(bytes) => bytes.clear(),
            Slot::List { bytes, count, .. } => {
                bytes.clear();
                *count = 0;
            }
        }
    }

    fn encode(&self, payload: &mut PayloadWriter) {
        match self {
            Slot::Integer(ty, bits) => {
                let size_bytes = usize::from(ty.size_bits / 8).min(8);
                payload.raw(&bits.to_le_bytes()[..size_bytes]);
            }
            Slot::Float {
                size_bits: 32,
                value,
            } => {
                payload.f32(*value as f32);
            }
            Slot::Float { value, .. } => {
                payload.f64(*value);
            }
            Slot::Text(bytes) => {
                payload.string_bytes(bytes);
            }
            Slot::List { bytes, count, .. } => {
                payload.u32(*count).raw(bytes);
            }
        }
    }
}

impl Element {
    fn append(&self, given: Given<'_>, bytes: &mut Vec<u8>) -> Result<()> {
        match (self, given) {
            (Element::Integer(ty), given) => {
                let size_bytes = usize::from(ty.size_bits / 8).min(8);
                let bits = integer_bits(ty, given)?;
                bytes.extend_from_slice(&bits.to_le_bytes()[..size_bytes]);
            }
            (Element::Float(size_bits), Given::Float(float)) => match size_bits {
                32 => bytes.extend_from_slice(&(float as f32).to_le_bytes()),
                _ => bytes.extend_from_slice(&float.to_le_bytes()),
            },
            (Element::Float(_), given) => return Err(misfit(given)),
        }
        Ok(())
    }
}

/// The elements of a list, one by one.
fn given_elements<'a>(given: Given<'a>) -> Result<Box<dyn Iterator<Item = Given<'static>> + 'a>> {
    match given {
        Given::SignedList(list) => Ok(Box::new(list.iter().map(|n| Given::Signed(*n)))),
        Given::UnsignedList(list) => Ok(Box::new(list.iter().map(|n| Given::Unsigned(*n)))),
        Given::FloatList(list) => Ok(Box::new(list.iter().map(|n| Given::Float(*n)))),
        given => Err(misfit(given)),
    }
}

/// The bits of an integer that fits its type.
fn integer_bits(ty: &Integer, given: Given<'_>) -> Result<u64> {
    let value = match given {
        Given::Signed(number) => i128::from(number),
        Given::Unsigned(number) => i128::from(number),
        given => return Err(misfit(given)),
    };
    let (first, last) = match ty.signed {
        true => (
            -(1i128 << (ty.size_bits - 1)),
            (1i128 << (ty.size_bits - 1)) - 1,
        ),
        false => (0, (1i128 << ty.size_bits) - 1),
    };
    if !(first..=last).contains(&value) {
        return Err(
            Error::new(ErrorKind::InvalidInput, "a number does not fit its field")
                .found(format!("{value}, where {first} to {last} fit"))
                .fix("declare the field with a wider type"),
        );
    }
    Ok(value as u64)
}

fn misfit(given: Given<'_>) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        "a value is of another type than its field",
    )
    .found(format!("{given:?}"))
    .fix("set it as it was declared")
}
