//! Which plan and which class an event of ftrace gets: its format, by the table of LTTng's names.

use event::{Base, EventClass, Field, FieldType, Integer};

use super::names::{self, FieldRow, FieldWriting};
use super::plan::{ArgumentNames, Bytes, Plan, Step, Width};
use crate::{EventFormat, FormatField, Kind, Scalar};

/// Bytes of a task's name.
const COMM_BYTES: u32 = 16;
/// What LTTng subtracts from the kernel's priorities.
const PRIO_OFFSET: i64 = 100;

impl Plan {
    /// Compiles the plan and the class of an event. The class's number is for the caller to set.
    pub fn compile(format: &EventFormat) -> (Plan, EventClass) {
        Plan::compile_with(format, &|_, _| None)
    }

    /// The same; arguments of system calls have the names and types that `named` gives them.
    pub(super) fn compile_with(
        format: &EventFormat,
        named: ArgumentNames<'_>,
    ) -> (Plan, EventClass) {
        let mut plan = Plan::default();
        let mut fields = Vec::new();
        let row = names::lookup(&format.full_name());
        let name = match &row {
            Some(row) => row.name.clone(),
            None => plain_name(&format.system, &format.name),
        };
        match row.and_then(|row| row.fields) {
            Some(rows) => rows
                .iter()
                .for_each(|row| plan.add_row(format, row, &mut fields)),
            None if format.system == "syscalls" => plan.add_syscall(format, named, &mut fields),
            None => {
                for field in &format.fields {
                    let name = name_of(format, &field.name);
                    plan.add_native(field, name, &mut fields);
                    show_in_hexadecimal(field, fields.last_mut());
                    plan.tell_unreadable(format);
                }
            }
        }
        plan.joined = joined(&plan.steps);
        (
            plan,
            EventClass {
                id: event::ClassId(0),
                name,
                stream: 0,
                fields: fields.into(),
            },
        )
    }

    fn add_row(&mut self, format: &EventFormat, row: &FieldRow, fields: &mut Vec<Field>) {
        let source = match row.writing {
            FieldWriting::Current => format.field("common_pid"),
            _ => format.field(row.source),
        };
        let Some(source) = source else { return };
        if let FieldWriting::Since(begin) = row.writing {
            let Some(begin) = format.field(begin) else {
                return;
            };
            fields.push(Field::payload(row.name, integer(64, false)));
            self.steps.push(Step::Between {
                begin_at: begin.offset_bytes,
                end_at: source.offset_bytes,
            });
            return;
        }
        if row.writing == FieldWriting::Addresses {
            let from = Bytes::Rest {
                at: source.offset_bytes,
            };
            return self.add_sequence(from, address_in(source), row.name, fields);
        }
        let typed = match width_of(source) {
            Some(from) => integer_row(row.writing, source.offset_bytes, from),
            None => text_row(row.writing, bytes_of(source)),
        };
        match typed {
            Some((ty, step)) => {
                fields.push(Field::payload(row.name, ty));
                self.steps.push(step);
            }
            None => self.add_native(source, row.name, fields),
        }
    }

    /// Of a probe, texts that it could not read are told from empty ones.
    fn tell_unreadable(&mut self, format: &EventFormat) {
        let is_probe = format.fields.iter().any(is_of_probe);
        if let Some(last) = self.steps.last_mut().filter(|_| is_probe)
            && let Step::String { from } = *last
        {
            *last = Step::ProbeString { from };
        }
    }

    /// A field as its format types it.
    fn add_native(&mut self, field: &FormatField, name: &str, fields: &mut Vec<Field>) {
        let at = field.offset_bytes;
        let from = bytes_of(field);
        match field.kind {
            Kind::One(scalar) => {
                fields.push(Field::payload(name, scalar_type(scalar)));
                self.steps.push(Step::Copy {
                    at,
                    size: scalar.size_bytes(),
                });
            }
            Kind::Array { element, count: 0 } => self.add_sequence(from, element, name, fields),
            Kind::Array {
                element: Scalar::Character,
                count,
            } => {
                let size = count;
                fields.push(Field::payload(name, FieldType::Text { size_bytes: size }));
                self.steps.push(Step::Text { from, size });
            }
            Kind::Array { element, count } => {
                let size = count * element.size_bytes();
                let element = scalar_type(element).into();
                fields.push(Field::payload(name, FieldType::Array { element, count }));
                self.steps.push(Step::Copy { at, size });
            }
            Kind::Dynamic { element, .. } => self.add_sequence(from, element, name, fields),
        }
    }

    /// Elements whose number each record says: characters are a text, others a sequence.
    fn add_sequence(&mut self, from: Bytes, element: Scalar, name: &str, fields: &mut Vec<Field>) {
        if element == Scalar::Character {
            fields.push(Field::payload(name, FieldType::String));
            self.steps.push(Step::String { from });
            return;
        }
        let element_bytes = element.size_bytes();
        // LTTng's convention for the length of a sequence.
        let length = format!("_{name}_length");
        fields.push(Field::payload(&length, integer(32, false)));
        self.steps.push(Step::Count {
            from,
            element_bytes,
        });
        let ty = FieldType::Sequence {
            element: scalar_type(element).into(),
            length,
        };
        fields.push(Field::payload(name, ty));
        self.steps.push(Step::Elements {
            from,
            element_bytes,
        });
    }

    /// The arguments of a system call: slots of eight bytes that are as wide as their C type says.
    fn add_syscall(
        &mut self,
        format: &EventFormat,
        named: ArgumentNames<'_>,
        fields: &mut Vec<Field>,
    ) {
        for field in format
            .fields
            .iter()
            .filter(|field| field.name != "__syscall_nr")
        {
            let Some(from) = width_of(field) else {
                self.add_native(field, &field.name, fields);
                continue;
            };
            let (signed, bytes) = match field.c_integer() {
                Some((signed, bytes)) if bytes <= from.bytes => (signed, bytes),
                _ => (from.signed, from.bytes),
            };
            let ty = if field.is_pointer() {
                FieldType::Integer(Integer::hex(64))
            } else {
                integer(bytes * 8, signed)
            };
            let (name, ty, bytes) = match named(format, field) {
                Some((name, integer)) if integer.size_bits <= from.bytes * 8 => {
                    (name, FieldType::Integer(integer), integer.size_bits / 8)
                }
                _ => (field.name.clone(), ty, bytes),
            };
            fields.push(Field::payload(&name, ty));
            let at = field.offset_bytes;
            self.steps.push(Step::Integer {
                at,
                from,
                to_bytes: bytes,
                plus: 0,
            });
        }
    }
}

/// Turns integers that do not change into copies, and neighbouring copies into one.
fn joined(steps: &[Step]) -> Vec<Step> {
    let mut joined: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        let step = match *step {
            Step::Integer {
                at,
                from,
                to_bytes,
                plus: 0,
            } if from.bytes == to_bytes => Step::Copy {
                at,
                size: u32::from(to_bytes),
            },
            ref other => other.clone(),
        };
        match (joined.last_mut(), &step) {
            (
                Some(Step::Copy { at, size }),
                Step::Copy {
                    at: next,
                    size: more,
                },
            ) if *at + *size == *next => {
                *size += more;
            }
            _ => joined.push(step),
        }
    }
    joined
}

/// How the table writes an integer field; none when it does not say, or says text.
fn integer_row(writing: FieldWriting, at: u32, from: Width) -> Option<(FieldType, Step)> {
    let to = |to_bytes, plus| Step::Integer {
        at,
        from,
        to_bytes,
        plus,
    };
    Some(match writing {
        FieldWriting::Integer {
            size_bits,
            signed,
            hexadecimal,
        } => {
            let base = if hexadecimal {
                Base::Hexadecimal
            } else {
                Base::Decimal
            };
            let integer = Integer {
                base,
                ..Integer::le(size_bits, signed)
            };
            (FieldType::Integer(integer), to(size_bits / 8, 0))
        }
        FieldWriting::Prio => (integer(32, true), to(4, -PRIO_OFFSET)),
        FieldWriting::Current => (integer(32, true), to(4, 0)),
        FieldWriting::ThreadGroup => (integer(32, true), Step::Group { at }),
        _ => return None,
    })
}

/// How the table writes a text; none when it does not say, or says integer.
fn text_row(writing: FieldWriting, from: Bytes) -> Option<(FieldType, Step)> {
    Some(match writing {
        FieldWriting::Text16 => {
            let ty = FieldType::Text {
                size_bytes: COMM_BYTES,
            };
            (
                ty,
                Step::Text {
                    from,
                    size: COMM_BYTES,
                },
            )
        }
        FieldWriting::Text => (FieldType::String, Step::String { from }),
        FieldWriting::Rwbs => (integer(32, false), Step::Rwbs { from }),
        _ => return None,
    })
}

/// LTTng's name for a tracepoint that the table does not list.
pub(super) fn plain_name(system: &str, name: &str) -> String {
    if system == "syscalls" {
        for (ours, theirs) in [
            ("sys_enter_", "syscall_entry_"),
            ("sys_exit_", "syscall_exit_"),
        ] {
            if let Some(call) = name.strip_prefix(ours) {
                return format!("{theirs}{call}");
            }
        }
    }
    name.to_owned()
}

fn bytes_of(field: &FormatField) -> Bytes {
    match field.kind {
        Kind::Dynamic { relative, .. } => Bytes::Dynamic {
            at: field.offset_bytes,
            relative,
        },
        Kind::Array { count: 0, .. } => Bytes::Rest {
            at: field.offset_bytes,
        },
        _ => Bytes::Here {
            at: field.offset_bytes,
            size: field.size_bytes,
        },
    }
}

fn width_of(field: &FormatField) -> Option<Width> {
    match field.kind {
        Kind::One(Scalar::Integer {
            size_bytes, signed, ..
        }) => Some(Width {
            bytes: size_bytes,
            signed,
        }),
        Kind::One(Scalar::Character) => Some(Width {
            bytes: 1,
            signed: true,
        }),
        _ => None,
    }
}

/// An address as wide as the elements of `field`.
fn address_in(field: &FormatField) -> Scalar {
    let element = match field.kind {
        Kind::One(element) | Kind::Array { element, .. } | Kind::Dynamic { element, .. } => element,
    };
    Scalar::Integer {
        size_bytes: if element.size_bytes() == 4 { 4 } else { 8 },
        signed: false,
        pointer: true,
    }
}

fn integer(size_bits: u8, signed: bool) -> FieldType {
    FieldType::Integer(Integer::le(size_bits, signed))
}

fn scalar_type(scalar: Scalar) -> FieldType {
    match scalar {
        Scalar::Integer {
            pointer: true,
            size_bytes,
            ..
        } => FieldType::Integer(Integer::hex(size_bytes * 8)),
        Scalar::Integer {
            size_bytes, signed, ..
        } => integer(size_bytes * 8, signed),
        Scalar::Character => integer(8, true),
        Scalar::Byte => FieldType::Integer(Integer::hex(8)),
    }
}

/// Whether it is what the kernel says of each of its probes.
fn is_of_probe(field: &FormatField) -> bool {
    field.name.starts_with("__probe_")
}

/// Shows the addresses of probes, and what they were told to show so (`x64`), in hexadecimal.
fn show_in_hexadecimal(field: &FormatField, shown: Option<&mut Field>) {
    let is_asked = matches!(field.c_type.as_str(), "x8" | "x16" | "x32" | "x64");
    if (is_asked || is_of_probe(field))
        && let (Kind::One(Scalar::Integer { size_bytes, .. }), Some(shown)) = (field.kind, shown)
    {
        shown.ty = FieldType::Integer(Integer::hex(size_bytes * 8));
    }
}

/// The name of a field: what the kernel says of each of its probes has LTTng's names, unless the
/// probe has a field of that name itself.
fn name_of<'f>(format: &EventFormat, name: &'f str) -> &'f str {
    let lttngs = match name {
        "__probe_ip" | "__probe_func" | "__probe_vaddr" => "ip",
        "__probe_ret_ip" => "parent_ip",
        _ => return name,
    };
    let is_taken = format.field(lttngs).is_some();
    let is_second = name == "__probe_vaddr" && format.field("__probe_ip").is_some();
    match is_taken || is_second {
        true => name,
        false => lttngs,
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
