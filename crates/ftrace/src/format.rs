//! `events/SYSTEM/NAME/format`: an event's number and its typed fields.

use event::{Error, ErrorKind, Result};

use crate::decl::{self, Location};

/// No record is larger: places inside of one have 16 bits.
const RECORD_BYTES_MAX: u32 = 1 << 16;
/// No event has more fields.
const FIELDS_MAX: usize = 512;

/// One element of a field: an integer of one, two, four or eight bytes, or so many plain bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// An integer.
    Integer {
        /// Width: 1, 2, 4 or 8.
        size_bytes: u8,
        /// Whether it is signed.
        signed: bool,
        /// Whether it is an address.
        pointer: bool,
    },
    /// A character of a text.
    Character,
    /// Something nested (a structure, an IPv6 address): its bytes.
    Byte,
}

impl Scalar {
    /// Width in bytes.
    pub fn size_bytes(self) -> u32 {
        match self {
            Scalar::Integer { size_bytes, .. } => u32::from(size_bytes),
            Scalar::Character | Scalar::Byte => 1,
        }
    }
}

/// What a field's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One element at the field's offset.
    One(Scalar),
    /// A fixed number of elements at the field's offset. Characters make a text.
    Array {
        /// Each element.
        element: Scalar,
        /// How many.
        count: u32,
    },
    /// A word of four bytes at the field's offset: offset in its low half, length in bytes in its
    /// high half.
    Dynamic {
        /// Each element.
        element: Scalar,
        /// The offset counts from the end of the word (`__rel_loc`) instead of the record's begin.
        relative: bool,
    },
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatField {
    /// Its name.
    pub name: String,
    /// Its C type, without brackets and location.
    pub c_type: String,
    /// Offset from the record's begin.
    pub offset_bytes: u32,
    /// Size of its slot.
    pub size_bytes: u32,
    /// What the bytes are.
    pub kind: Kind,
}

/// One event of this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// The system, such as `sched`.
    pub system: String,
    /// The event, such as `sched_switch`.
    pub name: String,
    /// Its number: the first two bytes of each record.
    pub id: u16,
    /// The fields that all events have (`common_*`).
    pub common: Vec<FormatField>,
    /// The event's own fields, in order.
    pub fields: Vec<FormatField>,
}

impl EventFormat {
    /// Reads the text of a `format` file.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] names the line that makes no sense.
    pub fn parse(system: &str, text: &str) -> Result<Self> {
        EventFormat::parse_for(system, text, size_of::<usize>())
    }

    /// The same of a kernel whose `long` has so many bytes.
    ///
    /// # Errors
    /// As [`EventFormat::parse`].
    pub fn parse_for(system: &str, text: &str, long_bytes: usize) -> Result<Self> {
        let mut name = None;
        let mut id = None;
        let (mut common, mut fields) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some(rest) = trimmed.strip_prefix("name:") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = trimmed.strip_prefix("ID:") {
                id = rest.trim().parse().ok();
            } else if trimmed.starts_with("print fmt:") {
                of_probe(&mut fields, trimmed);
                break;
            } else if trimmed.starts_with("field:") {
                let field =
                    parse_field(trimmed, long_bytes).ok_or_else(|| corrupt(system, line))?;
                if common.len() + fields.len() >= FIELDS_MAX {
                    return Err(corrupt(system, "more fields than any event has"));
                }
                let list = if field.name.starts_with("common_") {
                    &mut common
                } else {
                    &mut fields
                };
                list.push(field);
            }
        }
        let name = name.ok_or_else(|| corrupt(system, "no line 'name:'"))?;
        let id = id.ok_or_else(|| corrupt(system, "no line 'ID:' with a number below 65536"))?;
        Ok(EventFormat {
            system: system.to_owned(),
            name,
            id,
            common,
            fields,
        })
    }

    /// The field `name`, common fields included.
    pub fn field(&self, name: &str) -> Option<&FormatField> {
        self.fields
            .iter()
            .chain(&self.common)
            .find(|field| field.name == name)
    }

    /// `sched:sched_switch`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.system, self.name)
    }
}

/// What a probe was told to show in hexadecimal (`x64`) is of an ordinary type, and only the text
/// that prints it says so: kernel/trace/trace_probe.c. Its type becomes what was asked for.
fn of_probe(fields: &mut [FormatField], print: &str) {
    let is_probe = |field: &FormatField| field.name.starts_with("__probe_");
    if !fields.iter().any(is_probe) {
        return;
    }
    for field in fields {
        let is_asked = print.contains(&format!(" {}=0x%", field.name));
        if is_asked && matches!(field.kind, Kind::One(Scalar::Integer { .. })) {
            field.c_type = format!("x{}", field.size_bytes * 8);
        }
    }
}

fn corrupt(system: &str, found: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("cannot understand a format file of '{system}'"),
    )
    .found(found.trim())
    .fix("rtscope doctor")
}

/// `field:char comm[16];\toffset:8;\tsize:16;\tsigned:0;`
fn parse_field(line: &str, long_bytes: usize) -> Option<FormatField> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = decl::parse(parts.next()?.strip_prefix("field:")?)?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        let Some((key, value)) = part.split_once(':') else {
            continue;
        };
        match key {
            "offset" => offset = value.parse().ok(),
            "size" => size = value.parse().ok(),
            "signed" => signed = value == "1",
            _ => {}
        }
    }
    let (offset_bytes, size_bytes): (u32, u32) = (offset?, size?);
    let end_bytes = offset_bytes.checked_add(size_bytes)?;
    (end_bytes <= RECORD_BYTES_MAX).then_some(())?;
    let kind = match declaration.location {
        Location::Here => kind_here(&declaration, size_bytes, signed),
        location => {
            if size_bytes != 4 {
                return None;
            }
            let element = element_of(&declaration.ty, None, signed, long_bytes);
            Kind::Dynamic {
                element,
                relative: location == Location::Relative,
            }
        }
    };
    let name = declaration.name.to_owned();
    Some(FormatField {
        name,
        c_type: declaration.ty,
        offset_bytes,
        size_bytes,
        kind,
    })
}

fn kind_here(declaration: &decl::Declaration<'_>, size_bytes: u32, signed: bool) -> Kind {
    let Some(count) = declaration.count else {
        let element = element_of(&declaration.ty, Some(size_bytes), signed, 0);
        let plain = element == Scalar::Byte;
        return if plain {
            Kind::Array {
                element,
                count: size_bytes,
            }
        } else {
            Kind::One(element)
        };
    };
    let width = size_bytes.checked_div(count);
    let mut element = element_of(&declaration.ty, width, signed, 0);
    if !size_bytes.is_multiple_of(element.size_bytes()) {
        element = Scalar::Byte;
    }
    Kind::Array {
        element,
        count: size_bytes / element.size_bytes(),
    }
}

/// The element of type `ty`. Where `width` is known (from the size column) it wins, except that a
/// text's characters stay characters. Where it is not, a long has `long_bytes`.
fn element_of(ty: &str, width: Option<u32>, signed: bool, long_bytes: usize) -> Scalar {
    if ty == "char" && width.is_none_or(|width| width == 1) {
        return Scalar::Character;
    }
    let pointer = ty.ends_with('*') || ty.ends_with("*const");
    let known = if pointer {
        Some((false, 8))
    } else {
        decl::c_integer(ty)
    };
    let is_long = pointer || ty.ends_with("long") && !ty.ends_with("long long");
    let known = known.map(|(signed, bytes)| match is_long && long_bytes == 4 {
        true => (signed, 4),
        false => (signed, bytes),
    });
    match width.or(known.map(|(_, bytes)| u32::from(bytes))) {
        Some(bytes @ (1 | 2 | 4 | 8)) if !ty.starts_with("struct ") || pointer => {
            // The signed column is right for events; `c_integer` serves elements of dynamic arrays,
            // whose column speaks of the location word.
            let signed = if width.is_some() {
                signed
            } else {
                known.is_some_and(|(s, _)| s)
            };
            Scalar::Integer {
                size_bytes: bytes as u8,
                signed,
                pointer,
            }
        }
        _ => Scalar::Byte,
    }
}

impl FormatField {
    /// The signedness and width in bytes that this field's C type has on 64-bit Linux, whatever
    /// its slot is; none for pointers and types that are no plain integers. System call arguments
    /// need it: their slots are all eight bytes wide.
    pub fn c_integer(&self) -> Option<(bool, u8)> {
        decl::c_integer(&self.c_type)
    }

    /// Whether the C type is a pointer.
    pub fn is_pointer(&self) -> bool {
        self.c_type.ends_with('*') || self.c_type.ends_with("*const")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name: e\nID: 7\nformat:\n\tfield:unsigned short common_type;\
                        \toffset:0;\tsize:2;\tsigned:0;\n\n";

    fn field(line: &str) -> Option<Kind> {
        let text = format!("{HEAD}\t{line}\n\nprint fmt: \"x\"\n");
        EventFormat::parse("s", &text)
            .ok()
            .map(|format| format.fields[0].kind)
    }

    #[test]
    fn every_kind_of_field_is_typed_from_its_line() {
        let integer = |size_bytes, signed| Scalar::Integer {
            size_bytes,
            signed,
            pointer: false,
        };
        let check = |line: &str, expect: Kind| assert_eq!(field(line), Some(expect), "{line}");
        check(
            "field:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;",
            Kind::One(integer(4, true)),
        );
        check(
            "field:bool armed;\toffset:8;\tsize:1;\tsigned:0;",
            Kind::One(integer(1, false)),
        );
        check(
            "field:enum mode m;\toffset:8;\tsize:4;\tsigned:0;",
            Kind::One(integer(4, false)),
        );
        check(
            "field:void * p;\toffset:8;\tsize:8;\tsigned:0;",
            Kind::One(Scalar::Integer {
                size_bytes: 8,
                signed: false,
                pointer: true,
            }),
        );
        check(
            "field:char comm[16];\toffset:8;\tsize:16;\tsigned:0;",
            Kind::Array {
                element: Scalar::Character,
                count: 16,
            },
        );
        check(
            "field:unsigned long args[6];\toffset:8;\tsize:48;\tsigned:0;",
            Kind::Array {
                element: integer(8, false),
                count: 6,
            },
        );
    }

    #[test]
    fn every_kind_of_dynamic_or_nested_field_is_typed_from_its_line() {
        let integer = |size_bytes, signed| Scalar::Integer {
            size_bytes,
            signed,
            pointer: false,
        };
        let check = |line: &str, expect: Kind| assert_eq!(field(line), Some(expect), "{line}");
        check(
            "field:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;",
            Kind::Dynamic {
                element: Scalar::Character,
                relative: false,
            },
        );
        check(
            "field:__rel_loc s64[] v;\toffset:8;\tsize:4;\tsigned:0;",
            Kind::Dynamic {
                element: integer(8, true),
                relative: true,
            },
        );
        check(
            "field:__data_loc cpumask_t mask;\toffset:8;\tsize:4;\tsigned:0;",
            Kind::Dynamic {
                element: Scalar::Byte,
                relative: false,
            },
        );
        check(
            "field:struct timespec t;\toffset:8;\tsize:16;\tsigned:0;",
            Kind::Array {
                element: Scalar::Byte,
                count: 16,
            },
        );
        check(
            "field:char odd;\toffset:8;\tsize:4;\tsigned:1;",
            Kind::One(integer(4, true)),
        );
    }

    #[test]
    fn a_line_that_makes_no_sense_is_an_error() {
        for line in [
            "field:int x;\toffset:a;\tsize:4;\tsigned:1;",
            "field:int;\toffset:8;\tsize:4;\tsigned:1;",
            "field:int x;\toffset:4294967295;\tsize:4;\tsigned:1;",
            "field:u64 args[6];\toffset:8;\tsize:4294967280;\tsigned:0;",
            "field:int x;\toffset:65533;\tsize:4;\tsigned:1;",
            "field:__data_loc char[] x;\toffset:8;\tsize:8;\tsigned:1;",
        ] {
            assert_eq!(field(line), None, "{line}");
        }
        assert!(EventFormat::parse("s", "").is_err());
        let line = "field:u8 x;\toffset:8;\tsize:1;\tsigned:0;\n";
        let many = format!("{HEAD}{}", line.repeat(FIELDS_MAX + 1));
        assert!(EventFormat::parse("s", &many).is_err());
        assert!(EventFormat::parse("s", "name: x\nID: 70000\n").is_err());
    }
}
