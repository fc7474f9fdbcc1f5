//! How a record becomes the fields of its event: compiled once for each call and direction.

use abi::syscalls as raw;
use abi::syscalls::{RawCall, RawContent, RawSyscall};
use ctf::writer::PayloadWriter;
use event::{Base, ClassId, EventClass, Field, FieldType, Integer};

use super::address::SocketAddress;
use super::bytes::escape;
use super::names::{self, NameSet};
use super::table::{Call, CallField, CallType, Length, Source};

/// As many bytes of a buffer as strace shows.
const HEAD_BYTES: u8 = 32;
/// What fits of any socket's address.
const ADDRESS_BYTES: u8 = raw::BLOCK_BYTES as u8;
/// In place of a time that is not given or could not be read.
const NO_TIME_NS: i64 = -1;

/// Whether a call begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// It begins.
    Entry,
    /// It ends.
    Exit,
}

/// The steps from a record to a payload.
#[derive(Clone, Debug, Default)]
pub(super) struct CallPlan {
    steps: Vec<Step>,
    /// What the kernel has to read for them, in their order.
    contents: Vec<RawContent>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Argument {
        argument: u8,
        bytes: u8,
    },
    Result {
        bytes: u8,
    },
    /// Each of these takes the next content.
    Text,
    Head,
    Address,
    Socket,
    Time {
        per_unit_ns: i64,
        at: usize,
    },
    Pair,
    Names {
        argument: u8,
        set: &'static NameSet,
    },
    Error,
    /// All arguments of a call that no table knows, and its number.
    Number,
    Arguments,
}

/// The classes of one call.
#[derive(Clone, Debug)]
pub(super) struct CallClasses {
    /// Its entry.
    pub entry: (CallPlan, EventClass),
    /// Its exit.
    pub exit: (CallPlan, EventClass),
}

impl CallClasses {
    /// Of a call in the table; `compat` is what its classes are called in programs of the other
    /// word size. Structures there are others: their contents are left out.
    pub(super) fn compile(call: &Call, compat: bool) -> CallClasses {
        CallClasses {
            entry: compile(call.name, &call.entry, Direction::Entry, compat),
            exit: compile(call.name, &call.exit, Direction::Exit, compat),
        }
    }

    /// Of a call that no table knows.
    pub(super) fn unknown(compat: bool) -> CallClasses {
        let id = Field::payload("id", FieldType::Integer(Integer::le(32, true)));
        let element = FieldType::Integer(Integer::le(64, false)).into();
        let count = raw::ARGUMENTS as u32;
        let arguments = Field::payload("args", FieldType::Array { element, count });
        let result = Field::payload("ret", FieldType::Integer(Integer::le(64, true)));
        let plan = |steps: Vec<Step>| CallPlan {
            steps,
            contents: Vec::new(),
        };
        let entry = vec![id.clone(), arguments.clone()];
        let exit = vec![id, result, error_field(), arguments];
        let bytes = 8;
        let result = Step::Result { bytes };
        CallClasses {
            entry: (
                plan(vec![Step::Number, Step::Arguments]),
                class("unknown", Direction::Entry, compat, entry),
            ),
            exit: (
                plan(vec![Step::Number, result, Step::Error, Step::Arguments]),
                class("unknown", Direction::Exit, compat, exit),
            ),
        }
    }

    /// Of a page fault that a program serves, from when it begins to wait for that.
    pub(super) fn faults() -> CallClasses {
        let address = Field::payload(
            "address",
            FieldType::Integer(Integer {
                base: Base::Hexadecimal,
                ..Integer::le(64, false)
            }),
        );
        let both = |way| {
            let (argument, bytes) = (0, 8);
            let plan = CallPlan {
                steps: vec![Step::Argument { argument, bytes }],
                contents: Vec::new(),
            };
            let class = EventClass {
                id: ClassId(0),
                name: format!("rtscope_userfault_{way}"),
                stream: 0,
                fields: vec![address.clone()].into(),
            };
            (plan, class)
        };
        CallClasses {
            entry: both("entry"),
            exit: both("exit"),
        }
    }

    /// What the kernel is asked to read, and to send: a bit for the entry and one for the exit.
    pub(super) fn wanted(&self, wanted: u8) -> RawCall {
        let contents = |plan: &CallPlan| {
            let mut list = [RawContent::default(); raw::CONTENTS_MAX];
            for (place, content) in list.iter_mut().zip(&plan.contents) {
                *place = *content;
            }
            list
        };
        let entry = contents(&self.entry.0);
        let is_text = |content: &RawContent| content.kind == raw::CONTENT_TEXT;
        RawCall {
            wanted,
            again: u8::from(wanted & raw::WANTED_EXIT != 0 && entry.iter().any(is_text)),
            padding: [0; 2],
            entry,
            exit: contents(&self.exit.0),
        }
    }
}

fn compile(
    name: &str,
    rows: &[CallField],
    direction: Direction,
    compat: bool,
) -> (CallPlan, EventClass) {
    let mut plan = CallPlan::default();
    let mut fields = Vec::new();
    for row in rows {
        plan.add(row, compat, &mut fields);
        // Beside the result, where people look for it.
        if row.source == Source::Result && direction == Direction::Exit {
            plan.steps.push(Step::Error);
            fields.push(error_field());
        }
    }
    (plan, class(name, direction, compat, fields))
}

fn class(name: &str, direction: Direction, compat: bool, fields: Vec<Field>) -> EventClass {
    let word_size = if compat { "compat_" } else { "" };
    let way = match direction {
        Direction::Entry => "entry",
        Direction::Exit => "exit",
    };
    EventClass {
        id: ClassId(0),
        name: format!("{word_size}syscall_{way}_{name}"),
        stream: 0,
        fields: fields.into(),
    }
}

fn error_field() -> Field {
    Field::payload("error", FieldType::String)
}

impl CallPlan {
    fn add(&mut self, row: &CallField, compat: bool, fields: &mut Vec<Field>) {
        let argument = match row.source {
            Source::Argument(argument) => argument,
            Source::Result => 0,
        };
        let step = match row.ty {
            CallType::Integer { size_bits, .. } => match row.source {
                Source::Result => Step::Result {
                    bytes: size_bits / 8,
                },
                Source::Argument(argument) => Step::Argument {
                    argument,
                    bytes: size_bits / 8,
                },
            },
            CallType::Text => Step::Text,
            CallType::Head | CallType::Vector | CallType::Message => Step::Head,
            CallType::Address | CallType::Name => Step::Address,
            CallType::Socket => Step::Socket,
            CallType::Timespec => Step::Time {
                per_unit_ns: 1,
                at: 0,
            },
            CallType::Timeval => Step::Time {
                per_unit_ns: 1000,
                at: 0,
            },
            // The interval stands before it.
            CallType::Itimerspec => Step::Time {
                per_unit_ns: 1,
                at: 16,
            },
            CallType::Pair => Step::Pair,
            CallType::Names(set) => match names::set(set) {
                Some(set) => Step::Names { argument, set },
                None => return,
            },
        };
        if let Some(kind) = content(row) {
            let (length, size) = content_size(row);
            // Never read: it reads as nothing.
            let kind = if compat && is_other_in_compat(row.ty) {
                raw::CONTENT_NONE
            } else {
                kind
            };
            if kind == raw::CONTENT_NONE {
                return;
            }
            self.contents.push(RawContent {
                kind,
                argument,
                length,
                size,
            });
        }
        self.steps.push(step);
        add_fields(row, fields);
    }

    /// Appends the payload of `record`, whose contents are `contents`.
    pub fn run(&self, record: &RawSyscall, contents: &[u8], out: &mut PayloadWriter) {
        let mut contents = Contents::of(record, contents);
        for step in &self.steps {
            match *step {
                Step::Argument { argument, bytes } => {
                    let value = record.arguments[usize::from(argument) % raw::ARGUMENTS];
                    out.raw(&value.to_le_bytes()[..usize::from(bytes.min(8))]);
                }
                Step::Result { bytes } => {
                    out.raw(&record.result.to_le_bytes()[..usize::from(bytes.min(8))]);
                }
                Step::Text => {
                    out.string_bytes(contents.next().unwrap_or_default());
                }
                Step::Head => {
                    let mut text = String::new();
                    escape(contents.next().unwrap_or_default(), &mut text);
                    out.string(&text);
                }
                Step::Address => {
                    out.string(&SocketAddress(contents.next().unwrap_or_default()).text());
                }
                Step::Socket => {
                    let address = SocketAddress(contents.next().unwrap_or_default());
                    address.write(out);
                    out.string(&address.text());
                }
                Step::Time { per_unit_ns, at } => {
                    let bytes = contents.next().unwrap_or_default();
                    out.i64(time_ns(bytes.get(at..).unwrap_or_default(), per_unit_ns));
                }
                Step::Pair => {
                    let mut pair = [0xff; 8];
                    if let Some(bytes) = contents.next().filter(|bytes| bytes.len() == 8) {
                        pair.copy_from_slice(bytes);
                    }
                    out.raw(&pair);
                }
                Step::Names { argument, set } => {
                    let mut text = String::new();
                    set.write(
                        record.arguments[usize::from(argument) % raw::ARGUMENTS],
                        &mut text,
                    );
                    out.string(&text);
                }
                Step::Error => {
                    out.string(names::error_name(record.result));
                }
                Step::Number => {
                    out.i32(record.number);
                }
                Step::Arguments => {
                    for argument in record.arguments {
                        out.u64(argument);
                    }
                }
            }
        }
    }
}

/// What the kernel reads for a field; none where its value is in the record.
fn content(row: &CallField) -> Option<u8> {
    Some(match row.ty {
        CallType::Integer { .. } | CallType::Names(_) => return None,
        CallType::Text => raw::CONTENT_TEXT,
        CallType::Head | CallType::Address | CallType::Socket => match row.length {
            Length::Argument(_) => raw::CONTENT_LENGTH,
            Length::Pointed(_) => raw::CONTENT_POINTED,
            Length::Result => raw::CONTENT_RESULT,
            Length::Fixed => raw::CONTENT_FIXED,
        },
        CallType::Vector => raw::CONTENT_VECTOR,
        CallType::Message => raw::CONTENT_MESSAGE,
        CallType::Name => raw::CONTENT_NAME,
        CallType::Timespec | CallType::Timeval | CallType::Itimerspec | CallType::Pair => {
            raw::CONTENT_FIXED
        }
    })
}

/// Which argument says its length, and how many bytes it has at most.
fn content_size(row: &CallField) -> (u8, u8) {
    let length = match row.length {
        Length::Argument(argument) | Length::Pointed(argument) => argument,
        Length::Fixed | Length::Result => 0,
    };
    let size = match row.ty {
        CallType::Address | CallType::Socket | CallType::Name => ADDRESS_BYTES,
        CallType::Timespec | CallType::Timeval => 16,
        CallType::Itimerspec => 32,
        CallType::Pair => 8,
        _ => HEAD_BYTES,
    };
    (length, size)
}

/// Whether programs of 32 bits have another structure there.
fn is_other_in_compat(ty: CallType) -> bool {
    matches!(
        ty,
        CallType::Vector
            | CallType::Message
            | CallType::Name
            | CallType::Timespec
            | CallType::Timeval
            | CallType::Itimerspec
    )
}

fn add_fields(row: &CallField, fields: &mut Vec<Field>) {
    let integer = |size_bits, signed| FieldType::Integer(Integer::le(size_bits, signed));
    let ty = match row.ty {
        CallType::Integer {
            size_bits,
            signed,
            hexadecimal,
        } => FieldType::Integer(Integer {
            base: if hexadecimal {
                Base::Hexadecimal
            } else {
                Base::Decimal
            },
            ..Integer::le(size_bits, signed)
        }),
        CallType::Timespec | CallType::Timeval | CallType::Itimerspec => integer(64, true),
        CallType::Pair => FieldType::Array {
            element: integer(32, true).into(),
            count: 2,
        },
        CallType::Socket => {
            fields.extend(socket_fields(row.name));
            fields.push(Field::payload("address", FieldType::String));
            return;
        }
        _ => FieldType::String,
    };
    fields.push(Field::payload(row.name, ty));
}

/// LTTng's fields of an address; the port is called `port`.
fn socket_fields(port: &str) -> Vec<Field> {
    let big_endian = |size_bits| {
        FieldType::Integer(Integer {
            big_endian: true,
            ..Integer::le(size_bits, false)
        })
    };
    let mut fields = vec![
        Field::payload("family", FieldType::Integer(Integer::le(16, false))),
        Field::payload(port, big_endian(16)),
    ];
    for (name, size_bits) in [("v4addr", 8), ("v6addr", 16)] {
        let length = format!("_{name}_length");
        fields.push(Field::payload(
            &length,
            FieldType::Integer(Integer::le(32, false)),
        ));
        let element = big_endian(size_bits).into();
        fields.push(Field::payload(
            name,
            FieldType::Sequence { element, length },
        ));
    }
    fields
}

/// The contents behind a record, in their order; none for one that could not be read.
#[derive(Clone, Debug)]
pub(super) struct Contents<'b> {
    lengths: [u16; raw::CONTENTS_MAX],
    place: usize,
    bytes: &'b [u8],
}

impl<'b> Contents<'b> {
    pub fn of(record: &RawSyscall, bytes: &'b [u8]) -> Self {
        Contents {
            lengths: record.lengths,
            place: 0,
            bytes,
        }
    }

    fn next(&mut self) -> Option<&'b [u8]> {
        let length = *self.lengths.get(self.place)?;
        self.place += 1;
        if length == raw::UNREADABLE {
            return None;
        }
        let (found, rest) = self.bytes.split_at_checked(usize::from(length))?;
        self.bytes = rest;
        Some(found)
    }
}

/// How many bytes of contents follow `record`.
pub(super) fn contents_bytes(record: &RawSyscall) -> usize {
    let lengths = record
        .lengths
        .iter()
        .filter(|length| **length != raw::UNREADABLE);
    lengths.map(|length| usize::from(*length)).sum()
}

/// Two words of eight bytes: seconds, and units of `per_unit_ns`.
fn time_ns(bytes: &[u8], per_unit_ns: i64) -> i64 {
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
        Some(i64::from_le_bytes(bytes))
    };
    let (Some(seconds), Some(units)) = (word(0), word(8)) else {
        return NO_TIME_NS;
    };
    let part = units.saturating_mul(per_unit_ns);
    seconds.saturating_mul(1_000_000_000).saturating_add(part)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
