//! The table of system calls, `calls.tsv`, as types.

/// The table, kept as data.
const TABLE: &str = include_str!("calls.tsv");

/// A call with the fields of its entry and its exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// As the kernel's tracepoints and LTTng call it.
    pub name: &'static str,
    /// Its number on x86-64; none where only programs of 32 bits have it.
    pub number: Option<u32>,
    /// Its number in programs of 32 bits on x86-64.
    pub compat_number: Option<u32>,
    /// Fields of its entry.
    pub entry: Vec<CallField>,
    /// Fields of its exit.
    pub exit: Vec<CallField>,
}

/// One field of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallField {
    /// Its name.
    pub name: &'static str,
    /// What it is taken from.
    pub source: Source,
    /// How many bytes are there.
    pub length: Length,
    /// What is made of it.
    pub ty: CallType,
}

/// What a field is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The argument of this number.
    Argument(u8),
    /// What the call returned.
    Result,
}

/// What says how long a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Its type.
    Fixed,
    /// The argument of this number.
    Argument(u8),
    /// The integer to which this argument points.
    Pointed(u8),
    /// What the call returned.
    Result,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallType {
    /// The value itself.
    Integer {
        size_bits: u8,
        signed: bool,
        hexadecimal: bool,
    },
    /// A path or another text.
    Text,
    /// The first bytes of a buffer.
    Head,
    /// An address of a socket, as a text.
    Address,
    /// The same with LTTng's fields before it; the port has the field's name.
    Socket,
    /// The first bytes of an array of buffers.
    Vector,
    /// The first bytes of a message.
    Message,
    /// The address of a message.
    Name,
    /// A time in nanoseconds, from a `struct timespec`.
    Timespec,
    /// The same from a `struct timeval`.
    Timeval,
    /// The first expiry of a timer, from a `struct itimerspec`.
    Itimerspec,
    /// Two descriptors.
    Pair,
    /// Names of the value, from a set of `flags.tsv`.
    Names(&'static str),
}

/// All rows, in the table's order.
pub(crate) fn calls() -> impl Iterator<Item = Call> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(call)
}

fn call(line: &'static str) -> Option<Call> {
    let mut columns = line.split('\t');
    let name = columns.next()?;
    let mut number = || columns.next().map(|text| text.parse().ok());
    let (number, compat_number) = (number()?, number()?);
    let mut fields = || -> Option<Vec<CallField>> {
        let text = columns.next()?;
        let words = text.split(' ').filter(|word| *word != "-");
        words.map(field).collect()
    };
    Some(Call {
        name,
        number,
        compat_number,
        entry: fields()?,
        exit: fields()?,
    })
}

/// `NAME=ARGUMENT[,LENGTH]:TYPE`, or `ret:TYPE`.
fn field(text: &'static str) -> Option<CallField> {
    let (place, ty) = text.split_once(':')?;
    let (name, place) = place.split_once('=').unwrap_or((place, "ret"));
    let (source, length) = place.split_once(',').unwrap_or((place, ""));
    let source = match source {
        "ret" => Source::Result,
        number => Source::Argument(argument(number)?),
    };
    let length = match length {
        "" => Length::Fixed,
        "ret" => Length::Result,
        text => match text.strip_prefix('*') {
            Some(pointer) => Length::Pointed(argument(pointer)?),
            None => Length::Argument(argument(text)?),
        },
    };
    Some(CallField {
        name,
        source,
        length,
        ty: call_type(ty)?,
    })
}

fn argument(text: &str) -> Option<u8> {
    let number: u8 = text.parse().ok()?;
    (usize::from(number) < abi::syscalls::ARGUMENTS).then_some(number)
}

fn call_type(text: &'static str) -> Option<CallType> {
    let integer = |kind: &str, bits: &str| {
        let size_bits = bits
            .parse()
            .ok()
            .filter(|bits| [8, 16, 32, 64].contains(bits))?;
        Some(CallType::Integer {
            size_bits,
            signed: matches!(kind, "i" | "X"),
            hexadecimal: matches!(kind, "x" | "X"),
        })
    };
    Some(match text {
        "string" => CallType::Text,
        "head" => CallType::Head,
        "address" => CallType::Address,
        "sockaddr" => CallType::Socket,
        "vector" => CallType::Vector,
        "message" => CallType::Message,
        "name" => CallType::Name,
        "timespec" => CallType::Timespec,
        "timeval" => CallType::Timeval,
        "itimerspec" => CallType::Itimerspec,
        "i32[2]" => CallType::Pair,
        other => match other.split_at_checked(1) {
            Some((kind @ ("i" | "u" | "x" | "X"), bits)) if bits.parse::<u8>().is_ok() => {
                integer(kind, bits)?
            }
            _ => CallType::Names(other),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::syscalls::names;

    #[test]
    fn every_line_of_the_table_makes_sense() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let (mut calls, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for line in lines {
            let Some(call) = call(line) else {
                panic!("{line}")
            };
            // One that is another call in programs of 32 bits has a line for each.
            assert!(calls.insert((call.name, call.number.is_some())), "{line}");
            let mut taken = |kind, number: Option<u32>| {
                number.is_none_or(|number| number < 1023 && numbers.insert((kind, number)))
            };
            assert!(taken("native", call.number), "{line}");
            assert!(taken("compat", call.compat_number), "{line}");
            assert!(call.number.or(call.compat_number).is_some(), "{line}");
            for field in call.entry.iter().chain(&call.exit) {
                if let CallType::Names(set) = field.ty {
                    assert!(names::set(set).is_some(), "{line}: {set}");
                }
            }
            assert_eq!(
                call.exit.first().map(|field| field.name),
                Some("ret"),
                "{line}"
            );
        }
        assert!(calls.len() > 400);
    }

    #[test]
    fn a_field_says_where_it_comes_from_and_what_it_is() {
        let check = |text, expect| assert_eq!(field(text), expect, "{text}");
        check(
            "buf_head=1,ret:head",
            Some(CallField {
                name: "buf_head",
                source: Source::Argument(1),
                length: Length::Result,
                ty: CallType::Head,
            }),
        );
        check(
            "sport=1,*2:sockaddr",
            Some(CallField {
                name: "sport",
                source: Source::Argument(1),
                length: Length::Pointed(2),
                ty: CallType::Socket,
            }),
        );
        check("x=6:i32", None);
        check("x=1,*9:head", None);
        check("x=1:i31", None);
        check("x", None);
    }
}
