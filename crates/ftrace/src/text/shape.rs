//! Lines of one shape: the same event with the same keys. Their class, and their values.
//!
//! A shape's types are those of LTTng's table where every line agrees with them, else what all its
//! lines have in common: decimal, hexadecimal, text.

use std::borrow::Cow;

use event::{ClassId, EventClass, Field, FieldType, Integer, Scope, Value};

use super::flags::Flags;
use super::line::{self, Line, Rest};
use super::plugin;
use crate::lttng::names::{self, FieldWriting};

/// What LTTng subtracts from the kernel's priorities.
const PRIO_OFFSET: i64 = 100;
/// Bytes of a task's name.
const COMM_BYTES: u32 = 16;
/// `TASK_REPORT_MAX`: LTTng's state of a task that was preempted.
const PREEMPTED: i64 = 0x100;

/// A field of a shape, as its lines gave it so far.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    /// How the table writes it.
    writing: Option<FieldWriting>,
    kind: Kind,
    /// Digits are of base 16, marked or not.
    is_base_16: bool,
}

/// What all values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Decimal,
    /// Numbers of base 16, and others.
    Hexadecimal,
    Text,
}

/// The class of lines that have the same event and keys.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    name: String,
    columns: Vec<Column>,
    /// Whether its lines have flags.
    has_flags: bool,
}

/// What tells shapes apart: the text's name of the event, and its keys.
pub(super) fn key(line: &Line<'_>, pairs: &[(Cow<'_, str>, &str)]) -> String {
    let mut key = String::from(line.name);
    key.push(match line.rest {
        Rest::Fields(_) => ':',
        Rest::Call(_) => '(',
        Rest::Return(_) => '>',
        Rest::Function(_) => '<',
    });
    if line.flags.is_empty() {
        key.push('-');
    }
    for (name, _) in pairs {
        key.push_str(name);
        key.push('=');
    }
    key
}

/// The fields of a line, by name.
pub(super) fn fields<'a>(line: &Line<'a>) -> Vec<(Cow<'a, str>, &'a str)> {
    let plain = |(key, value): (&'a str, &'a str)| (Cow::Borrowed(key), value);
    match line.rest {
        Rest::Fields(text) if line.name.starts_with("sys_enter_") => arguments(text),
        Rest::Fields(text) if line.name.starts_with("sys_exit_") => {
            vec![(Cow::Borrowed("ret"), text)]
        }
        Rest::Fields(text) => match plugin::pairs(line.name, text) {
            Some(pairs) => pairs.into_iter().map(plain).collect(),
            None => by_keys(line.name, text),
        },
        Rest::Call(text) => arguments(text),
        Rest::Return(value) => vec![(Cow::Borrowed("ret"), value.trim())],
        Rest::Function(caller) => vec![
            (Cow::Borrowed("func"), line.name),
            (Cow::Borrowed("parent"), caller.trim()),
        ],
    }
}

/// `key=value …`, or a text as it is.
fn by_keys<'a>(name: &str, text: &'a str) -> Vec<(Cow<'a, str>, &'a str)> {
    match line::pairs(text) {
        pairs if pairs.is_empty() => {
            raw_syscall(name, text).unwrap_or_else(|| vec![(Cow::Borrowed("msg"), text)])
        }
        pairs => {
            let plain = |(key, value): (&'a str, &'a str)| (Cow::Borrowed(key), value);
            pairs.into_iter().map(plain).collect()
        }
    }
}

/// `fd: 3, buf: 7ff`: the arguments of a system call.
fn arguments(text: &str) -> Vec<(Cow<'_, str>, &str)> {
    let argument = |text| str::split_once(text, ": ");
    let arguments = text.split(", ").map(str::trim).map_while(argument);
    let plain = |(name, value)| (Cow::Borrowed(name), value);
    arguments.map(plain).take(ARGUMENTS_MAX).collect()
}

/// No system call has more arguments.
const ARGUMENTS_MAX: usize = 6;

/// `NR 1 (b, 1, …)` and `NR 1 = 2`, as raw_syscalls print themselves.
fn raw_syscall<'a>(name: &str, text: &'a str) -> Option<Vec<(Cow<'a, str>, &'a str)>> {
    let rest = text.strip_prefix("NR ")?;
    let (id, rest) = rest.split_once(' ')?;
    let second = match name {
        "sys_enter" => ("args", rest.strip_prefix('(')?.strip_suffix(')')?),
        "sys_exit" => ("ret", rest.strip_prefix("= ")?),
        _ => return None,
    };
    Some(vec![
        (Cow::Borrowed("id"), id),
        (Cow::Borrowed(second.0), second.1),
    ])
}

impl Shape {
    /// A shape that no line was shown to yet.
    pub fn new(line: &Line<'_>, pairs: &[(Cow<'_, str>, &str)]) -> Shape {
        let row = names::lookup_name(line.name);
        let name = match line.rest {
            Rest::Call(_) => lttng_call(line.name, "sys_", "syscall_entry_"),
            Rest::Return(_) => lttng_call(line.name, "sys_", "syscall_exit_"),
            Rest::Function(_) => "function".to_owned(),
            Rest::Fields(_) if line.name.starts_with("sys_enter_") => {
                lttng_call(line.name, "sys_enter_", "syscall_entry_")
            }
            Rest::Fields(_) if line.name.starts_with("sys_exit_") => {
                lttng_call(line.name, "sys_exit_", "syscall_exit_")
            }
            Rest::Fields(_) => row
                .as_ref()
                .map_or_else(|| line.name.to_owned(), |row| row.name.clone()),
        };
        let rows = row.and_then(|row| row.fields).unwrap_or_default();
        let column = |(key, _): &(Cow<'_, str>, &str)| {
            let row = rows
                .iter()
                .find(|row| row.source == key.as_ref() && row.writing != FieldWriting::ThreadGroup);
            let kind = match line.rest {
                // System calls print their arguments in base 16.
                Rest::Call(_) => Kind::Hexadecimal,
                _ => row.map_or(Kind::Decimal, |row| kind_of(row.writing)),
            };
            Column {
                name: row.map_or(key.as_ref(), |row| row.name).to_owned(),
                writing: row.map(|row| row.writing),
                kind,
                is_base_16: kind == Kind::Hexadecimal,
            }
        };
        Shape {
            name,
            columns: pairs.iter().map(column).collect(),
            has_flags: !line.flags.is_empty(),
        }
    }

    /// Whether all values of a line that was not learned from are what those of the others are.
    pub fn fits(&self, pairs: &[(Cow<'_, str>, &str)]) -> bool {
        let mut columns = self.columns.iter().zip(pairs);
        columns
            .all(|(column, (_, text))| column.kind == Kind::Text || column.number(text).is_some())
    }

    /// Learns from a line of this shape what its values are.
    pub fn learn(&mut self, pairs: &[(Cow<'_, str>, &str)]) {
        for (column, (_, text)) in self.columns.iter_mut().zip(pairs) {
            while column.kind != Kind::Text && column.number(text).is_none() {
                column.kind = match column.kind {
                    Kind::Decimal => Kind::Hexadecimal,
                    _ => Kind::Text,
                };
            }
        }
    }

    /// The class; the fields that every line has come last.
    pub fn class(&self, id: ClassId) -> EventClass {
        let payload = |column: &Column| Field::payload(&column.name, column.ty());
        let mut fields: Vec<Field> = self.columns.iter().map(payload).collect();
        let comm = FieldType::Text {
            size_bytes: COMM_BYTES,
        };
        let context = [
            (Scope::PacketContext, "cpu_id", integer(32, false)),
            (Scope::StreamContext, "tid", integer(32, true)),
            (Scope::StreamContext, "procname", comm),
        ];
        // As the records of the ring have them.
        let hex = FieldType::Integer(Integer::hex(8));
        let flags = [
            (Scope::StreamContext, "common_flags", hex),
            (
                Scope::StreamContext,
                "common_preempt_count",
                integer(8, false),
            ),
        ];
        let flags = flags.into_iter().filter(|_| self.has_flags);
        fields.extend(
            context
                .into_iter()
                .chain(flags)
                .map(|(scope, name, ty)| Field {
                    name: name.into(),
                    scope,
                    ty,
                }),
        );
        EventClass {
            id,
            name: self.name.clone(),
            stream: 0,
            fields: fields.into(),
        }
    }

    /// The values of a line, in the order of the class's fields.
    pub fn values(&self, line: &Line<'_>, pairs: &[(Cow<'_, str>, &str)]) -> Vec<Value<'static>> {
        let value = |(column, (_, text)): (&Column, &(Cow<'_, str>, &str))| column.value(text);
        let mut values: Vec<_> = self.columns.iter().zip(pairs).map(value).collect();
        values.extend([
            Value::Unsigned(u64::from(line.cpu)),
            Value::Signed(i64::from(line.tid)),
            text(line.comm),
        ]);
        if self.has_flags {
            let Flags {
                bits,
                preempt_count,
            } = Flags::parse(line.flags);
            values.extend([bits, preempt_count].map(|byte| Value::Unsigned(u64::from(byte))));
        }
        values
    }
}

/// `sys_read` → `syscall_entry_read`.
fn lttng_call(name: &str, prefix: &str, lttng: &str) -> String {
    let call = name.strip_prefix(prefix);
    call.map_or_else(|| name.to_owned(), |call| format!("{lttng}{call}"))
}

fn kind_of(writing: FieldWriting) -> Kind {
    match writing {
        FieldWriting::Integer {
            hexadecimal: true, ..
        }
        | FieldWriting::Addresses => Kind::Hexadecimal,
        FieldWriting::Text16 | FieldWriting::Text | FieldWriting::Rwbs => Kind::Text,
        _ => Kind::Decimal,
    }
}

impl Column {
    fn ty(&self) -> FieldType {
        match (self.kind, self.writing) {
            (Kind::Text, Some(FieldWriting::Text16)) => FieldType::Text {
                size_bytes: COMM_BYTES,
            },
            (Kind::Text, _) => FieldType::String,
            (Kind::Hexadecimal, _) => FieldType::Integer(Integer::hex(64)),
            (
                Kind::Decimal,
                Some(FieldWriting::Integer {
                    size_bits, signed, ..
                }),
            ) => integer(size_bits, signed),
            (Kind::Decimal, Some(FieldWriting::Prio | FieldWriting::Current)) => integer(32, true),
            (Kind::Decimal, _) => integer(64, true),
        }
    }

    fn value(&self, value: &str) -> Value<'static> {
        match (self.kind, self.number(value)) {
            (Kind::Decimal, Some(number)) => match self.ty() {
                FieldType::Integer(integer) if !integer.signed => Value::Unsigned(number as u64),
                _ => Value::Signed(number),
            },
            (Kind::Hexadecimal, Some(number)) => Value::Unsigned(number as u64),
            _ => text(value),
        }
    }

    /// The number that a value of this column is; none when it is no number of its kind. What a
    /// narrower kind takes, a wider one takes too.
    fn number(&self, value: &str) -> Option<i64> {
        if self.kind == Kind::Text {
            return None;
        }
        let word = match self.name.as_str() {
            "prev_state" => state(value),
            _ => None,
        };
        let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
        let number = match value.strip_prefix("0x").or(value.strip_prefix("0X")) {
            Some(digits) if self.kind == Kind::Hexadecimal => hexadecimal(digits)? as i64,
            _ if self.is_base_16 => hexadecimal(value)? as i64,
            _ => word.or_else(|| value.parse().ok())?,
        };
        match self.writing {
            Some(FieldWriting::Prio) => number.checked_sub(PRIO_OFFSET),
            _ => Some(number),
        }
    }
}

/// The letters of a task's state as the bits that they stand for (`TASK_STATE_TO_CHAR_STR` and
/// `__task_state_index` of the kernel; kernels before 4.14 have more of them). A letter that we do
/// not know is no `R`: such a task sleeps.
fn state(text: &str) -> Option<i64> {
    let (letters, is_preempted) = match text.strip_suffix('+') {
        Some(letters) => (letters, true),
        None => (text, false),
    };
    let is_letter = |b: u8| b.is_ascii_alphabetic() || b == b'|';
    if letters.is_empty() || !letters.bytes().all(is_letter) {
        return None;
    }
    let bit = |letter| match letter {
        "R" => 0,
        "S" => 0x1,
        "D" => 0x2,
        "T" => 0x4,
        "t" => 0x8,
        "X" | "x" => 0x10,
        "Z" => 0x20,
        "P" => 0x40,
        "I" => 0x80,
        // `D|K`: a signal that kills ends the sleep, too.
        "K" => 0,
        // `D|N`: nothing to do.
        "N" => 0x400,
        _ => 0x1,
    };
    let bits = letters.split('|').map(bit).fold(0, |bits, bit| bits | bit);
    Some(bits | if is_preempted { PREEMPTED } else { 0 })
}

fn integer(size_bits: u8, signed: bool) -> FieldType {
    FieldType::Integer(Integer::le(size_bits, signed))
}

fn text(text: &str) -> Value<'static> {
    Value::Text(Cow::Owned(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The class's name and the payload of the last of some lines of one shape.
    fn check(lines: &[&str], name: &str, expect: &[(&str, Value<'_>)]) {
        let mut shape: Option<Shape> = None;
        for line in lines {
            let line = line::parse(line).expect("an event");
            let pairs = fields(&line);
            shape
                .get_or_insert_with(|| Shape::new(&line, &pairs))
                .learn(&pairs);
        }
        let shape = shape.expect("a line");
        let class = shape.class(ClassId(0));
        let line = line::parse(lines[lines.len() - 1]).expect("an event");
        let values = shape.values(&line, &fields(&line));
        assert_eq!(values.len(), class.fields.len());
        let found: Vec<_> = class
            .fields
            .iter()
            .map(|f| f.name.as_str())
            .zip(values)
            .collect();
        assert_eq!(class.name, name);
        assert_eq!(&found[..expect.len()], expect);
    }

    fn word(text: &str) -> Value<'_> {
        Value::Text(text.into())
    }

    #[test]
    fn a_switch_has_lttngs_names_and_values() {
        check(
            &[
                "a-1 [000] d..2. 8.9: sched_switch: prev_comm=a b prev_pid=1 prev_prio=120 \
               prev_state=R+ ==> next_comm=irq/24 next_pid=172 next_prio=49",
            ],
            "sched_switch",
            &[
                ("prev_comm", word("a b")),
                ("prev_tid", Value::Signed(1)),
                ("prev_prio", Value::Signed(20)),
                ("prev_state", Value::Signed(0x100)),
                ("next_comm", word("irq/24")),
                ("next_tid", Value::Signed(172)),
                ("next_prio", Value::Signed(-51)),
                ("cpu_id", Value::Unsigned(0)),
            ],
        );
    }

    #[test]
    fn every_kernels_letters_of_a_state_are_bits() {
        let check = |text: &str, expect: Option<i64>| assert_eq!(state(text), expect, "{text}");
        check("R", Some(0));
        check("R+", Some(0x100));
        check("S", Some(0x1));
        check("I", Some(0x80));
        // Before 4.14.
        check("D|K", Some(0x2));
        check("D|N", Some(0x402));
        check("x", Some(0x10));
        // No kernel's, and it is not running.
        check("Q", Some(0x1));
        check("130", None);
        check("", None);
        check("+", None);
    }

    #[test]
    fn other_names_and_calls_are_lttngs_too() {
        let softirq = ["a-1 [000] 8.9: softirq_entry: vec=9 [action=RCU]"];
        let vec = [("vec", Value::Unsigned(9)), ("action", word("RCU"))];
        check(&softirq, "irq_softirq_entry", &vec);
        let call = ["a-1 [000] 8.9: sys_read(fd: 3, buf: 7ff)"];
        check(
            &call,
            "syscall_entry_read",
            &[("fd", Value::Unsigned(3)), ("buf", Value::Unsigned(0x7ff))],
        );
        let exit = ["a-1 [000] 8.9: sys_read -> 0x5"];
        check(&exit, "syscall_exit_read", &[("ret", Value::Unsigned(5))]);
        let report = ["a-1 [000] 8.9: sys_enter_read: fd: 0x3, buf: 0x7ff"];
        check(&report, "syscall_entry_read", &[("fd", Value::Unsigned(3))]);
        let report = ["a-1 [000] 8.9: sys_exit_read: 0xfffffffffffffff2"];
        let ret = [("ret", Value::Unsigned(-14i64 as u64))];
        check(&report, "syscall_exit_read", &ret);
        let function = ["a-1 [000] 8.9: sys_close <-system_call"];
        check(
            &function,
            "function",
            &[("func", word("sys_close")), ("parent", word("system_call"))],
        );
        let timer = ["a-1 [000] 8.9: hrtimer_cancel: hrtimer=00000000467067e5"];
        check(
            &timer,
            "timer_hrtimer_cancel",
            &[("hrtimer", Value::Unsigned(0x4670_67e5))],
        );
        let irq = ["a-1 [000] 8.9: irq_handler_exit: irq=24 ret=handled"];
        check(
            &irq,
            "irq_handler_exit",
            &[("irq", Value::Signed(24)), ("ret", word("handled"))],
        );
    }

    #[test]
    fn a_column_is_what_all_its_values_are() {
        let line = |value: &str| format!("a-1 [000] 8.9: new_event: key={value}");
        let (one, hex, word_line) = (line("1"), line("0xff"), line("up"));
        check(&[&one], "new_event", &[("key", Value::Signed(1))]);
        check(&[&hex], "new_event", &[("key", Value::Unsigned(255))]);
        check(
            &[&one, &hex, &one],
            "new_event",
            &[("key", Value::Unsigned(1))],
        );
        check(
            &[&one, &word_line, &one],
            "new_event",
            &[("key", word("1"))],
        );
    }

    #[test]
    fn a_message_without_keys_is_kept_as_it_is() {
        let mark = ["a-1 [000] 8.9: tracing_mark_write: B|12|do it"];
        check(&mark, "tracing_mark_write", &[("msg", word("B|12|do it"))]);
        let exit = ["a-1 [000] 8.9: sys_exit: NR 1 = -2"];
        check(
            &exit,
            "sys_exit",
            &[("id", Value::Signed(1)), ("ret", Value::Signed(-2))],
        );
    }
}
