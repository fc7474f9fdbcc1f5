//! One record's fields by their places: compiled once, read without a copy.

use std::borrow::Cow;

use event::{EventClass, Field, FieldId, FieldType, Integer, Scope, Value};

use super::plan::{self, Bytes, Plan, Step, Width};
use super::rwbs;
use crate::bytes::{Order, narrowed, until_zero};
use crate::recording::Tables;
use crate::{EventFormat, Kind, Scalar};

/// Bytes of a task's name.
const COMM_BYTES: u32 = 16;

/// Where the fields of one class are.
#[derive(Debug)]
pub(crate) struct Reading {
    accesses: Vec<Access>,
}

/// Where one field is.
#[derive(Clone, Copy, Debug)]
enum Access {
    Integer {
        at: u32,
        from: Width,
        plus: i64,
        /// Width and sign of the field; what does not fit is cut off.
        bits: u8,
        signed: bool,
    },
    Text(Bytes),
    Count {
        from: Bytes,
        element_bytes: u32,
    },
    Elements {
        from: Bytes,
        element: Width,
    },
    Rwbs(Bytes),
    Between {
        begin_at: u32,
        end_at: u32,
    },
    /// A text of the kernel at the address that stands here.
    Pointed {
        at: u32,
        from: Width,
    },
    /// The name of the task whose number stands here.
    Comm {
        at: u32,
    },
    Cpu,
}

impl Reading {
    /// How the fields of `class`, which `plan` fills, are found in a record; adds the fields that
    /// every event has, and takes away those that the record alone cannot say.
    pub fn new(format: &EventFormat, plan: &Plan, mut class: EventClass) -> (Reading, EventClass) {
        let mut fields = Vec::with_capacity(class.fields.len() + 4);
        let mut accesses = Vec::with_capacity(class.fields.len() + 4);
        for (step, field) in plan.steps().iter().zip(class.fields.iter().cloned()) {
            let pointed = pointed(format, step, &field.name);
            if let Some(access) = pointed {
                let ty = FieldType::String;
                fields.push(Field { ty, ..field });
                accesses.push(access);
            } else if let Some(access) = access(step, &field.ty) {
                fields.push(field);
                accesses.push(access);
            }
        }
        let mut reading = Reading { accesses };
        reading.add_context(format, &mut fields);
        class.fields = fields.into();
        (reading, class)
    }

    /// The CPU, and what every record begins with.
    fn add_context(&mut self, format: &EventFormat, fields: &mut Vec<Field>) {
        let mut add = |scope, name: &str, ty, access| {
            let name = name.into();
            fields.push(Field { name, scope, ty });
            self.accesses.push(access);
        };
        let cpu = FieldType::Integer(Integer::le(32, false));
        add(Scope::PacketContext, "cpu_id", cpu, Access::Cpu);
        for field in &format.common {
            let Kind::One(Scalar::Integer {
                size_bytes, signed, ..
            }) = field.kind
            else {
                continue;
            };
            let at = field.offset_bytes;
            let integer = |ty| Access::Integer {
                at,
                from: Width {
                    bytes: size_bytes,
                    signed,
                },
                plus: 0,
                bits: bits_of(&ty),
                signed: is_signed(&ty),
            };
            match field.name.as_str() {
                "common_type" => {}
                "common_pid" => {
                    let ty = FieldType::Integer(Integer::le(32, true));
                    add(Scope::StreamContext, "tid", ty.clone(), integer(ty));
                    let ty = FieldType::Text {
                        size_bytes: COMM_BYTES,
                    };
                    add(Scope::StreamContext, "procname", ty, Access::Comm { at });
                }
                name => {
                    let ty = FieldType::Integer(Integer {
                        base: match name {
                            "common_flags" => event::Base::Hexadecimal,
                            _ => event::Base::Decimal,
                        },
                        ..Integer::le(size_bytes * 8, signed)
                    });
                    add(Scope::StreamContext, name, ty.clone(), integer(ty));
                }
            }
        }
    }
}

/// What `trace_printk` points to is kept in a table of the recording.
fn pointed(format: &EventFormat, step: &Step, name: &str) -> Option<Access> {
    let is_text = format.system == "ftrace"
        && format.field(name)?.is_pointer()
        && format.field(name)?.c_type.contains("char");
    match *step {
        Step::Copy { at, size } if is_text => Some(Access::Pointed {
            at,
            from: Width {
                bytes: size as u8,
                signed: false,
            },
        }),
        _ => None,
    }
}

/// How a step's field is read; none when the record does not say it.
fn access(step: &Step, ty: &FieldType) -> Option<Access> {
    let integer = |at, from, plus| Access::Integer {
        at,
        from,
        plus,
        bits: bits_of(ty),
        signed: is_signed(ty),
    };
    Some(match *step {
        Step::Copy { at, size } => match ty {
            FieldType::Array { element, .. } => Access::Elements {
                from: Bytes::Here { at, size },
                element: width_of(element),
            },
            ty => integer(at, width_of(ty), 0),
        },
        Step::Integer { at, from, plus, .. } => integer(at, from, plus),
        Step::Text { from, .. } | Step::String { from } | Step::ProbeString { from } => {
            Access::Text(from)
        }
        Step::Count {
            from,
            element_bytes,
        } => Access::Count {
            from,
            element_bytes,
        },
        Step::Elements { from, .. } => match ty {
            FieldType::Sequence { element, .. } => Access::Elements {
                from,
                element: width_of(element),
            },
            _ => return None,
        },
        Step::Rwbs { from } => Access::Rwbs(from),
        Step::Between { begin_at, end_at } => Access::Between { begin_at, end_at },
        // Which process a thread belongs to, only the recorder could ask.
        Step::Group { .. } => return None,
    })
}

fn width_of(ty: &FieldType) -> Width {
    Width {
        bytes: bits_of(ty) / 8,
        signed: is_signed(ty),
    }
}

fn bits_of(ty: &FieldType) -> u8 {
    match ty {
        FieldType::Integer(integer) => integer.size_bits,
        _ => 8,
    }
}

fn is_signed(ty: &FieldType) -> bool {
    matches!(ty, FieldType::Integer(integer) if integer.signed)
}

/// One event, borrowed from the reader that stands on it.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'r> {
    pub(crate) reading: &'r Reading,
    pub(crate) tables: &'r Tables,
    pub(crate) record: &'r [u8],
    pub(crate) order: Order,
    pub(crate) cpu: u32,
}

impl<'r> RecordRef<'r> {
    fn access(&self, field: FieldId) -> Option<&'r Access> {
        self.reading.accesses.get(usize::from(field.0))
    }

    /// The CPU of its stream.
    #[inline]
    pub fn cpu(&self) -> event::Cpu {
        event::Cpu(self.cpu)
    }

    /// An integer, sign-extended when it is signed; zero when the field is no integer or lies
    /// outside of the record.
    #[inline]
    pub fn i64(&self, field: FieldId) -> i64 {
        match self.access(field) {
            Some(Access::Integer {
                at,
                from,
                plus,
                bits,
                signed,
            }) => {
                let value = from.read(self.record, *at, self.order).wrapping_add(*plus);
                narrowed(value, u32::from(*bits), *signed)
            }
            Some(Access::Cpu) => i64::from(self.cpu),
            Some(Access::Count {
                from,
                element_bytes,
            }) => {
                let bytes = from.read(self.record, self.order).len();
                bytes.checked_div(*element_bytes as usize).unwrap_or(0) as i64
            }
            Some(Access::Rwbs(from)) => i64::from(rwbs::flags(from.read(self.record, self.order))),
            Some(Access::Between { begin_at, end_at }) => {
                plan::between(self.record, (*begin_at, *end_at), self.order) as i64
            }
            _ => 0,
        }
    }

    /// The bytes of a text up to its end; empty when the field is no text.
    #[inline]
    pub fn text(&self, field: FieldId) -> &'r [u8] {
        match self.access(field) {
            Some(Access::Text(from)) => until_zero(from.read(self.record, self.order)),
            Some(Access::Comm { at }) => {
                let tid = self.order.integer_at(self.record, *at as usize, 4, true);
                self.tables.task(tid.unwrap_or(0) as i32).as_bytes()
            }
            Some(Access::Pointed { at, from }) => {
                let address = from.read(self.record, *at, self.order) as u64;
                self.tables.text(address).unwrap_or_default().as_bytes()
            }
            _ => &[],
        }
    }

    /// Any field of the class, decoded whole.
    pub fn value(&self, class: &EventClass, field: FieldId) -> Value<'r> {
        match self.access(field) {
            Some(Access::Text(_) | Access::Comm { .. } | Access::Pointed { .. }) => {
                Value::Text(String::from_utf8_lossy(self.text(field)))
            }
            Some(Access::Elements { from, element }) => {
                let bytes = from.read(self.record, self.order);
                let element_bytes = usize::from(element.bytes.max(1));
                let elements = bytes.chunks_exact(element_bytes).map(|bytes| {
                    let value = element.read(bytes, 0, self.order);
                    integer_value(value, element.signed)
                });
                Value::Array(elements.collect())
            }
            Some(_) => {
                let ty = class
                    .fields
                    .get(usize::from(field.0))
                    .map(|field| &field.ty);
                integer_value(self.i64(field), ty.is_some_and(is_signed))
            }
            None => Value::Text(Cow::Borrowed("")),
        }
    }
}

fn integer_value(value: i64, signed: bool) -> Value<'static> {
    match signed {
        true => Value::Signed(value),
        false => Value::Unsigned(value as u64),
    }
}
