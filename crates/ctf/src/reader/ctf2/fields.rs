//! CTF 2's field classes as types.

use std::collections::HashMap;
use std::sync::Arc;

use event::{Base, Integer, Name, Result, Scope, WideEncoding};
use serde_json::Value as Json;

use super::super::compile::refuse;
use super::super::layout::Role;
use super::super::types::{
    Extent, IntType, Mapping, Member, Range, Reference, Storage, Type, TypeKind, base,
};
use super::object::{Object, brief};

/// Alignments are powers of two no larger than this.
const ALIGN_BITS_MAX: u64 = 1 << 15;

/// Reads the field classes of one scope.
#[derive(Clone, Copy)]
pub(super) struct FieldClasses<'a> {
    aliases: &'a HashMap<String, Json>,
    /// The clock that timestamps are of.
    clock: Option<&'a str>,
    scope: Scope,
}

impl<'a> FieldClasses<'a> {
    pub fn new(aliases: &'a HashMap<String, Json>, clock: Option<&'a str>, scope: Scope) -> Self {
        FieldClasses {
            aliases,
            clock,
            scope,
        }
    }

    /// The structure of the whole scope, when there is one.
    pub fn scope(&self, json: Option<&Json>) -> Result<Option<Arc<Type>>> {
        json.map(|json| self.read(json)).transpose()
    }

    /// The type of a field class, or of the alias that a text names.
    pub fn read(&self, json: &Json) -> Result<Arc<Type>> {
        if let Json::String(name) = json {
            let Some(class) = self.aliases.get(name) else {
                return Err(refuse(format!("the unknown alias '{name}'")));
            };
            return self.read(class);
        }
        let class = Object::new(json, "a field class")?;
        let kind = class.text("type")?;
        match kind {
            "structure" => self.structure(&class),
            "static-length-array" | "dynamic-length-array" => self.array(&class, kind),
            "optional" => self.optional(&class),
            "variant" => self.variant(&class),
            "null-terminated-string" | "static-length-string" | "dynamic-length-string" => {
                self.string(&class, kind)
            }
            "static-length-blob" | "dynamic-length-blob" => self.blob(&class),
            "fixed-length-floating-point-number" => float(&class),
            _ if kind.starts_with("variable-length-") => self.variable_integer(&class, kind),
            _ if kind.starts_with("fixed-length-") => self.fixed_integer(&class, kind),
            other => Err(refuse(format!("the unknown field class '{other}'"))),
        }
    }

    fn structure(&self, class: &Object<'_>) -> Result<Arc<Type>> {
        let members = class
            .list("member-classes")?
            .iter()
            .map(|json| {
                let member = Object::new(json, "a structure's member")?;
                Ok(Member {
                    name: member.text("name")?.into(),
                    ty: self.read(member.required("field-class")?)?,
                    escaped: false,
                })
            })
            .collect::<Result<_>>()?;
        make(
            TypeKind::Struct(members),
            alignment(class, "minimum-alignment")?,
        )
    }

    fn array(&self, class: &Object<'_>, kind: &str) -> Result<Arc<Type>> {
        let element = self.read(class.required("element-field-class")?)?;
        let align_bits = alignment(class, "minimum-alignment")?;
        let kind = match kind {
            "static-length-array" => TypeKind::Array {
                element,
                count: class.u64("length")?,
            },
            _ => TypeKind::Sequence {
                element,
                length: self.location(class.required("length-field-location")?)?,
            },
        };
        make(kind, align_bits)
    }

    fn optional(&self, class: &Object<'_>) -> Result<Arc<Type>> {
        let selector = self.location(class.required("selector-field-location")?)?;
        let content = self.read(class.required("field-class")?)?;
        let ranges = class.get("selector-field-ranges");
        let kind = TypeKind::Optional {
            selector,
            content,
            ranges: ranges.map(range_set).transpose()?,
        };
        make(kind, 1)
    }

    fn variant(&self, class: &Object<'_>) -> Result<Arc<Type>> {
        let selector = Some(self.location(class.required("selector-field-location")?)?);
        let mut choices = Vec::new();
        let mut ranges = Vec::new();
        for (place, json) in class.list("options")?.iter().enumerate() {
            let option = Object::new(json, "a variant's option")?;
            let name = option.optional_text("name")?;
            choices.push(Member {
                name: name.map_or_else(|| place.to_string().into(), Name::from),
                ty: self.read(option.required("field-class")?)?,
                escaped: false,
            });
            let set = range_set(option.required("selector-field-ranges")?)?;
            ranges.extend(set.into_iter().map(|(first, last)| Range {
                first,
                last,
                choice: place as u32,
            }));
        }
        let kind = TypeKind::Variant {
            selector,
            choices,
            ranges: Some(ranges),
        };
        make(kind, 1)
    }

    fn fixed_integer(&self, class: &Object<'_>, kind: &str) -> Result<Arc<Type>> {
        let length = class.u64("length")?;
        let align_bits = alignment(class, "alignment")?;
        let big_endian = big_endian(class)?;
        if length > 64 {
            return long_integer(length, align_bits);
        }
        if length == 0 {
            return Err(refuse(format!("'{kind}' of 0 bits")));
        }
        let natural = if big_endian {
            "last-to-first"
        } else {
            "first-to-last"
        };
        let storage = match class.optional_text("bit-order")? {
            None => Storage::Plain,
            Some(order) if order == natural => Storage::Plain,
            Some("first-to-last" | "last-to-first") => Storage::Reversed,
            Some(other) => return Err(refuse(format!("the bit order '{other}'"))),
        };
        // The bits lie in the order that is said; which of them is the first follows from it.
        let big_endian = big_endian != (storage == Storage::Reversed);
        let integer = Integer {
            size_bits: length as u8,
            align_bits: align_bits as u16,
            signed: kind.contains("-signed-"),
            big_endian,
            base: display_base(class, kind)?,
            text: false,
        };
        self.integer(class, kind, integer, storage)
    }

    fn variable_integer(&self, class: &Object<'_>, kind: &str) -> Result<Arc<Type>> {
        let integer = Integer {
            signed: kind.contains("-signed-"),
            base: display_base(class, kind)?,
            ..Integer::le(64, false)
        };
        self.integer(class, kind, integer, Storage::Leb128)
    }

    fn integer(
        &self,
        class: &Object<'_>,
        kind: &str,
        integer: Integer,
        storage: Storage,
    ) -> Result<Arc<Type>> {
        let mut int = IntType {
            storage,
            ..IntType::plain(integer)
        };
        self.roles(class, &mut int)?;
        let align_bits = u32::from(integer.align_bits);
        let labels = |key| class.get(key).map(mappings).transpose();
        let kind = match kind.split_once("-length-").map_or(kind, |(_, kind)| kind) {
            "boolean" => TypeKind::Bool(int),
            "bit-map" => TypeKind::Flags(int, labels("flags")?.unwrap_or_default().into()),
            "bit-array" => TypeKind::Integer(int),
            "unsigned-integer"
            | "signed-integer"
            | "unsigned-enumeration"
            | "signed-enumeration" => match labels("mappings")? {
                Some(labels) => TypeKind::Enum(int, labels.into()),
                None => TypeKind::Integer(int),
            },
            other => {
                return Err(refuse(format!(
                    "the unknown field class '…-length-{other}'"
                )));
            }
        };
        make(kind, align_bits)
    }

    fn extent(&self, class: &Object<'_>) -> Result<Extent> {
        match class.get("length-field-location") {
            Some(json) => Ok(Extent::Field(self.location(json)?)),
            None => Ok(Extent::Bytes(class.u64("length")?)),
        }
    }

    fn blob(&self, class: &Object<'_>) -> Result<Arc<Type>> {
        let media_type = class.optional_text("media-type")?;
        let kind = TypeKind::Blob {
            length: self.extent(class)?,
            media_type: media_type.unwrap_or("application/octet-stream").to_owned(),
        };
        make(kind, 8)
    }

    fn string(&self, class: &Object<'_>, kind: &str) -> Result<Arc<Type>> {
        let length = match kind {
            "null-terminated-string" => Extent::Terminated,
            _ => self.extent(class)?,
        };
        let wide = |unit_bytes, big_endian| WideEncoding {
            unit_bytes,
            big_endian,
        };
        let encoding = match class.optional_text("encoding")?.unwrap_or("utf-8") {
            "utf-8" => None,
            "utf-16be" => Some(wide(2, true)),
            "utf-16le" => Some(wide(2, false)),
            "utf-32be" => Some(wide(4, true)),
            "utf-32le" => Some(wide(4, false)),
            other => return Err(refuse(format!("the encoding '{other}'"))),
        };
        if let Some(encoding) = encoding {
            return make(TypeKind::WideString { encoding, length }, 8);
        }
        let character = IntType::plain(Integer {
            text: true,
            ..Integer::le(8, false)
        });
        let element = make(TypeKind::Integer(character), 8)?;
        let kind = match length {
            Extent::Terminated => TypeKind::String,
            Extent::Bytes(count) => TypeKind::Array { element, count },
            Extent::Field(length) => TypeKind::Sequence { element, length },
        };
        make(kind, 8)
    }

    /// `{"origin": …, "path": […]}`; a plain list of the origin and the names in release
    /// candidates.
    fn location(&self, json: &Json) -> Result<Reference> {
        let (origin, path) = match json {
            Json::Array(names) => {
                let (origin, path) = names
                    .split_first()
                    .ok_or_else(|| refuse("an empty location".to_owned()))?;
                (Some(origin), path)
            }
            _ => {
                let location = Object::new(json, "a location")?;
                (location.get("origin"), location.list("path")?)
            }
        };
        let origin = origin.map(scope_of).transpose()?;
        let step = |json: &Json| match json {
            Json::Null => Ok(None),
            Json::String(name) => Ok(Some(name.clone())),
            other => Err(refuse(format!("{} in a location", brief(other)))),
        };
        let path: Vec<_> = path.iter().map(step).collect::<Result<_>>()?;
        Ok(Reference::Location {
            origin,
            path,
            is_elsewhere: origin.is_some_and(|origin| origin != self.scope),
        })
    }

    /// What the format itself wants to know of an integer. Roles have a meaning in their own
    /// scopes only.
    fn roles(&self, class: &Object<'_>, int: &mut IntType) -> Result<()> {
        for json in class.list("roles")? {
            let role = match (self.scope, json.as_str().unwrap_or_default()) {
                (Scope::PacketHeader, "packet-magic-number") => Role::Magic,
                (Scope::PacketHeader, "data-stream-class-id") => Role::StreamClassId,
                (Scope::PacketHeader, "data-stream-id") => Role::StreamId,
                (Scope::PacketContext, "packet-total-length") => Role::PacketBits,
                (Scope::PacketContext, "packet-content-length") => Role::ContentBits,
                (Scope::PacketContext, "packet-end-default-clock-timestamp") => Role::PacketEnd,
                (Scope::PacketContext, "discarded-event-record-counter-snapshot") => {
                    Role::Discarded
                }
                (Scope::PacketContext, "packet-sequence-number") => Role::Sequence,
                (Scope::EventHeader, "event-record-class-id") => Role::EventId,
                (Scope::PacketContext | Scope::EventHeader, "default-clock-timestamp") => {
                    int.clock = self.clock.map(str::to_owned);
                    if int.clock.is_none() {
                        return Err(refuse("a timestamp without a default clock".to_owned()));
                    }
                    continue;
                }
                _ => continue,
            };
            int.role = role;
        }
        Ok(())
    }
}

fn make(kind: TypeKind, align_bits: u32) -> Result<Arc<Type>> {
    Type::new(kind, align_bits).ok_or_else(|| refuse("a type too large to read".to_owned()))
}

fn alignment(class: &Object<'_>, key: &str) -> Result<u32> {
    let bits = class.u64_or(key, 1)?;
    match bits.is_power_of_two() && bits <= ALIGN_BITS_MAX {
        true => Ok(bits as u32),
        false => Err(refuse(format!("an alignment of {bits} bits"))),
    }
}

fn big_endian(class: &Object<'_>) -> Result<bool> {
    match class.text("byte-order")? {
        "little-endian" => Ok(false),
        "big-endian" => Ok(true),
        other => Err(refuse(format!("the byte order '{other}'"))),
    }
}

fn display_base(class: &Object<'_>, kind: &str) -> Result<Base> {
    let default = if kind.ends_with("bit-array") || kind.ends_with("bit-map") {
        16
    } else {
        10
    };
    let number = class.u64_or("preferred-display-base", default)?;
    base(number).ok_or_else(|| refuse(format!("the display base {number}")))
}

/// An integer that is larger than any number of ours is read as its bytes.
fn long_integer(size_bits: u64, align_bits: u32) -> Result<Arc<Type>> {
    if !size_bits.is_multiple_of(8) || align_bits < 8 {
        let found = format!("{size_bits} bits that are not whole bytes");
        return Err(refuse(found));
    }
    let kind = TypeKind::Blob {
        length: Extent::Bytes(size_bits / 8),
        media_type: "application/octet-stream".to_owned(),
    };
    make(kind, align_bits)
}

fn float(class: &Object<'_>) -> Result<Arc<Type>> {
    let size_bits = match class.u64("length")? {
        bits @ (16 | 32 | 64 | 128) => bits as u8,
        other => return Err(refuse(format!("a float of {other} bits"))),
    };
    let kind = TypeKind::Float {
        size_bits,
        big_endian: big_endian(class)?,
    };
    make(kind, alignment(class, "alignment")?)
}

fn scope_of(json: &Json) -> Result<Scope> {
    match json.as_str().unwrap_or_default() {
        "packet-header" => Ok(Scope::PacketHeader),
        "packet-context" => Ok(Scope::PacketContext),
        "event-record-header" => Ok(Scope::EventHeader),
        "event-record-common-context" => Ok(Scope::StreamContext),
        "event-record-specific-context" => Ok(Scope::EventContext),
        "event-record-payload" => Ok(Scope::Payload),
        _ => Err(refuse(format!("the origin {} of a location", brief(json)))),
    }
}

/// `[[first, last], …]`
fn range_set(json: &Json) -> Result<Vec<(i128, i128)>> {
    let wrong = || refuse(format!("{} in place of ranges", brief(json)));
    let bound = |json: &Json| {
        let signed = json.as_i64().map(i128::from);
        signed.or(json.as_u64().map(i128::from))
    };
    let range = |json: &Json| match json.as_array().map(Vec::as_slice) {
        Some([first, last]) => Some((bound(first)?, bound(last)?)).filter(|(a, b)| a <= b),
        _ => None,
    };
    let ranges = json.as_array().ok_or_else(wrong)?.iter().map(range);
    ranges.collect::<Option<_>>().ok_or_else(wrong)
}

/// `{"label": [[first, last], …], …}`
fn mappings(json: &Json) -> Result<Vec<Mapping>> {
    let Json::Object(labels) = json else {
        return Err(refuse(format!("{} in place of labels", brief(json))));
    };
    let mut mappings = Vec::new();
    for (label, ranges) in labels {
        let ranges = range_set(ranges)?.into_iter();
        mappings.extend(ranges.map(|(first, last)| Mapping {
            label: label.clone(),
            first,
            last,
        }));
    }
    // Of several labels of one value the narrowest comes first.
    mappings.sort_by_key(|mapping| mapping.last - mapping.first);
    Ok(mappings)
}
