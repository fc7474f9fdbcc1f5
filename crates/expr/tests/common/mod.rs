//! Classes and events by hand.

// Each test file uses its own part.
#![allow(dead_code)]

pub mod generate;
pub mod reference;

use std::sync::Arc;

use event::{
    ClassId, Cpu, EventClass, Field, FieldId, FieldType, Instant, Integer, IntegerMapping, Record,
    Scope, Value,
};

/// An event with a value for each field of its class.
#[derive(Clone, Debug)]
pub struct TestEvent {
    pub class: ClassId,
    pub time: Option<Instant>,
    pub cpu: Option<Cpu>,
    pub values: Vec<Value<'static>>,
}

impl Record for TestEvent {
    fn class(&self) -> ClassId {
        self.class
    }

    fn instant(&self) -> Option<Instant> {
        self.time
    }

    fn cpu(&self) -> Option<Cpu> {
        self.cpu
    }

    fn i64(&self, field: FieldId) -> i64 {
        self.values[usize::from(field.0)].as_i64().unwrap_or(0)
    }

    fn f64(&self, field: FieldId) -> f64 {
        match self.values[usize::from(field.0)] {
            Value::Float(value) => value,
            _ => 0.0,
        }
    }

    fn text(&self, field: FieldId) -> &[u8] {
        self.values[usize::from(field.0)]
            .as_text()
            .unwrap_or_default()
            .as_bytes()
    }

    fn value(&self, field: FieldId) -> Value<'_> {
        self.values[usize::from(field.0)].clone()
    }
}

pub fn field(scope: Scope, name: &str, ty: FieldType) -> Field {
    Field {
        name: name.into(),
        scope,
        ty,
    }
}

pub fn signed() -> FieldType {
    FieldType::Integer(Integer::le(64, true))
}

pub fn unsigned() -> FieldType {
    FieldType::Integer(Integer::le(64, false))
}

pub fn float() -> FieldType {
    FieldType::Float {
        size_bits: 64,
        align_bits: 8,
        big_endian: false,
    }
}

pub fn text(value: &str) -> Value<'static> {
    Value::Text(value.to_owned().into())
}

fn mapping(label: &str, first: i64, last: i64) -> IntegerMapping {
    IntegerMapping {
        label: label.to_owned(),
        first,
        last,
    }
}

pub fn level() -> FieldType {
    let mappings = [
        mapping("LOW", 0, 9),
        mapping("HIGH", 10, 19),
        mapping("HUGE", 20, -1),
    ];
    FieldType::Enum(Integer::le(64, false), mappings.into())
}

fn class(id: u32, name: &str, fields: Vec<Field>) -> EventClass {
    EventClass {
        id: ClassId(id),
        name: name.to_owned(),
        stream: 0,
        fields: fields.into(),
    }
}

pub const SWITCH: u32 = 0;
pub const IRQ: u32 = 1;
pub const WORK: u32 = 2;
pub const RENAME: u32 = 3;

/// A switch, an interrupt, an event of an application with every kind of field, and a task that
/// gets another name.
pub fn classes() -> Vec<EventClass> {
    use Scope::{PacketContext, Payload};
    let comm = || FieldType::Text { size_bytes: 16 };
    let switch = vec![
        field(Payload, "prev_comm", comm()),
        field(Payload, "prev_tid", signed()),
        field(Payload, "prev_prio", signed()),
        field(Payload, "next_comm", comm()),
        field(Payload, "next_tid", signed()),
        field(Payload, "next_prio", signed()),
        field(PacketContext, "cpu_id", unsigned()),
    ];
    let irq = vec![
        field(Payload, "irq", signed()),
        field(Payload, "name", FieldType::String),
        field(PacketContext, "cpu_id", unsigned()),
    ];
    let rename = vec![
        field(Payload, "pid", signed()),
        field(Payload, "newcomm", comm()),
    ];
    vec![
        class(SWITCH, "sched_switch", switch),
        class(IRQ, "irq_handler_entry", irq),
        class(WORK, "app:work", work_fields()),
        class(RENAME, "task_rename", rename),
    ]
}

fn work_fields() -> Vec<Field> {
    use Scope::{EventContext, Payload, StreamContext};
    let members = [
        field(Payload, "size", unsigned()),
        field(Payload, "to", FieldType::String),
        field(Payload, "level", level()),
    ];
    let message = FieldType::Struct(members.into());
    let array = FieldType::Array {
        element: Arc::new(message.clone()),
        count: 2,
    };
    let sequence = FieldType::Sequence {
        element: Arc::new(signed()),
        length: "count".to_owned(),
    };
    let choices = [
        field(Payload, "number", signed()),
        field(Payload, "word", FieldType::String),
    ];
    let variant = FieldType::Variant {
        selector: "kind".to_owned(),
        choices: choices.into(),
        ranges: None,
    };
    vec![
        field(Payload, "big", unsigned()),
        field(Payload, "small", signed()),
        field(Payload, "ratio", float()),
        field(Payload, "delay_us", unsigned()),
        field(Payload, "level", level()),
        field(Payload, "comm", FieldType::String),
        field(Payload, "msg", message),
        field(Payload, "msgs", array),
        field(Payload, "args", sequence),
        field(Payload, "choice", variant),
        field(
            StreamContext,
            "procname",
            FieldType::Text { size_bytes: 16 },
        ),
        field(EventContext, "small", signed()),
        field(StreamContext, "_app_shop_till", signed()),
    ]
}

fn message(size: u64, to: &str, level: i64) -> Value<'static> {
    let level = Value::Enum {
        value: level,
        label: None,
    };
    Value::Struct(vec![
        ("size", Value::Unsigned(size)),
        ("to", text(to)),
        ("level", level),
    ])
}

/// The work event of most tests.
pub fn work() -> TestEvent {
    TestEvent {
        class: ClassId(WORK),
        time: Some(Instant::from_ns(11_002_500_000)),
        cpu: Some(Cpu(3)),
        values: vec![
            Value::Unsigned(u64::MAX),
            Value::Signed(-1),
            Value::Float(0.5),
            Value::Unsigned(1_500),
            Value::Enum {
                value: 12,
                label: Some("HIGH"),
            },
            text("jackd"),
            message(4096, "disk", 3),
            Value::Array(vec![message(1, "net", 15), message(2, "tty", -1)]),
            Value::Array(vec![Value::Signed(7), Value::Signed(-8)]),
            Value::Struct(vec![("number", Value::Signed(5))]),
            text("worker"),
            Value::Signed(99),
            Value::Signed(4),
        ],
    }
}

pub fn switch(cpu: u32, prev: (&str, i64, i64), next: (&str, i64, i64)) -> TestEvent {
    let task = |(comm, tid, prio)| [text(comm), Value::Signed(tid), Value::Signed(prio)];
    let mut values: Vec<_> = task(prev).into_iter().chain(task(next)).collect();
    values.push(Value::Unsigned(cpu.into()));
    TestEvent {
        class: ClassId(SWITCH),
        time: Some(Instant::from_ns(5)),
        cpu: Some(Cpu(cpu)),
        values,
    }
}

/// A task gets another name, by who runs on the CPU.
pub fn rename(cpu: u32, tid: i64, name: &str) -> TestEvent {
    TestEvent {
        class: ClassId(RENAME),
        time: Some(Instant::from_ns(6)),
        cpu: Some(Cpu(cpu)),
        values: vec![Value::Signed(tid), text(name)],
    }
}

pub fn irq(cpu: u32, irq: i64, name: &str) -> TestEvent {
    TestEvent {
        class: ClassId(IRQ),
        time: Some(Instant::from_ns(7)),
        cpu: Some(Cpu(cpu)),
        values: vec![Value::Signed(irq), text(name), Value::Unsigned(cpu.into())],
    }
}
