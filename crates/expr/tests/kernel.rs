//! Check that a filter says the same of an event in the kernel's code as in the program, on random
//! filters and events: a small machine runs the code.

mod machine;

use event::{
    ClassId, Cpu, EventClass, Field, FieldId, FieldType, Instant, Integer, Record, Scope, Value,
};
use expr::kernel::{Compiled, Frame, KeyPart, Layout, Place, Written, compile};
use expr::{Expr, Key, Program, RunningTask};
use machine::{FRAME_BYTES, Machine};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

const FRAME: Frame = Frame {
    now: 0,
    prio: 8,
    numbers: 16,
    text: 32,
    slots: 48,
    looked_at: 96,
};

fn integer(name: &str, bits: u8, signed: bool) -> Field {
    payload(name, FieldType::Integer(Integer::le(bits, signed)))
}

fn payload(name: &str, ty: FieldType) -> Field {
    Field {
        name: name.into(),
        scope: Scope::Payload,
        ty,
    }
}

fn layout() -> Layout {
    let plain = |at, bytes, signed| Place::Integer {
        at,
        bytes,
        signed,
        plus: 0,
    };
    let array = FieldType::Array {
        element: FieldType::Integer(Integer::le(64, false)).into(),
        count: 3,
    };
    let fields = [
        (integer("big", 64, false), plain(8, 8, false)),
        (integer("whole", 64, true), plain(16, 8, true)),
        (integer("small", 32, true), plain(24, 4, true)),
        (integer("half", 16, false), plain(28, 2, false)),
        (integer("byte", 8, true), plain(30, 1, true)),
        (
            payload("comm", FieldType::Text { size_bytes: 16 }),
            Place::Text { at: 32, size: 16 },
        ),
        (payload("args", array), Place::Elements { at: 48 }),
        (
            payload("name", FieldType::String),
            Place::Dynamic {
                at: 72,
                relative: false,
            },
        ),
        // A wider integer than the record has, and a narrower one.
        (
            integer("prio", 32, true),
            Place::Integer {
                at: 24,
                bytes: 4,
                signed: true,
                plus: -100,
            },
        ),
        (integer("cut", 8, false), plain(28, 2, false)),
        (
            payload("far", FieldType::String),
            Place::Dynamic {
                at: 76,
                relative: true,
            },
        ),
    ];
    let (fields, places): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    Layout {
        class: EventClass {
            id: ClassId(0),
            name: "test".into(),
            stream: 0,
            fields: fields.into(),
        },
        places,
        in_frame: false,
    }
}

/// The record that the kernel would have.
#[derive(Clone, Debug)]
struct Event {
    bytes: Vec<u8>,
    time_ns: i64,
    cpu: u32,
    tid: i32,
    prio: i64,
    procname: &'static str,
}

impl Event {
    fn at<const N: usize>(&self, at: usize) -> [u8; N] {
        self.bytes[at..at + N].try_into().expect("inside")
    }

    fn small(&self) -> i32 {
        i32::from_le_bytes(self.at(24))
    }

    fn half(&self) -> u16 {
        u16::from_le_bytes(self.at(28))
    }

    fn text_at(&self, at: usize, size: usize) -> &[u8] {
        let text = &self.bytes[at..at + size];
        text.split(|byte| *byte == 0).next().expect("one piece")
    }

    fn dynamic(&self, at: usize, from: usize) -> &[u8] {
        let word = u32::from_le_bytes(self.at(at));
        self.text_at(from + (word & 0xffff) as usize, (word >> 16) as usize)
    }
}

impl Record for Event {
    fn class(&self) -> ClassId {
        ClassId(0)
    }
    fn instant(&self) -> Option<Instant> {
        Some(Instant::from_ns(self.time_ns))
    }
    fn cpu(&self) -> Option<Cpu> {
        Some(Cpu(self.cpu))
    }
    fn i64(&self, field: FieldId) -> i64 {
        match field.0 {
            0 => u64::from_le_bytes(self.at(8)) as i64,
            1 => i64::from_le_bytes(self.at(16)),
            2 => self.small().into(),
            3 => self.half().into(),
            4 => i64::from(self.bytes[30] as i8),
            8 => self.small().wrapping_sub(100).into(),
            9 => i64::from(self.half() as u8),
            _ => 0,
        }
    }
    fn f64(&self, _: FieldId) -> f64 {
        0.0
    }
    fn text(&self, field: FieldId) -> &[u8] {
        match field.0 {
            5 => self.text_at(32, 16),
            7 => self.dynamic(72, 0),
            10 => self.dynamic(76, 80),
            _ => b"",
        }
    }
    fn value(&self, _: FieldId) -> Value<'_> {
        let element = |at| Value::Unsigned(u64::from_le_bytes(self.at(at)));
        Value::Array(vec![element(48), element(56), element(64)])
    }
}

const TEXTS: &[&str] = &[
    "",
    "a",
    "jackd",
    "jack",
    "ab",
    "aab",
    "abcdefghijklmnop",
    "xjackd",
];
const LONG: &str = "a text that has far more than forty-eight bytes: the end is cut";

fn events() -> impl Strategy<Value = Event> {
    let numbers = prop_oneof![
        3 => 0u64..4,
        1 => Just(u64::MAX),
        1 => Just(1 << 63),
        1 => (1u64 << 32) - 3..(1 << 32) + 3,
        1 => any::<u64>(),
    ];
    let texts = proptest::sample::select(TEXTS.to_vec());
    let names = proptest::sample::select([TEXTS, &[LONG]].concat());
    let rest = (0i64..30, 0u32..3, 0i32..5, -3i64..3);
    (proptest::collection::vec(numbers, 7), texts, names, rest).prop_map(
        |(numbers, comm, name, (time_ns, cpu, tid, prio))| {
            let mut bytes = vec![0; 240];
            for (place, number) in [8, 16, 24, 48, 56, 64].into_iter().zip(&numbers) {
                bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
            }
            bytes[32..32 + comm.len()].copy_from_slice(comm.as_bytes());
            let word = |from: u32| (from | (name.len() as u32 + 1) << 16).to_le_bytes();
            bytes[72..76].copy_from_slice(&word(80));
            bytes[76..80].copy_from_slice(&word(80));
            for at in [80, 160] {
                bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
            }
            Event {
                bytes,
                time_ns,
                cpu,
                tid,
                prio,
                procname: TEXTS[(numbers[6] % 6) as usize],
            }
        },
    )
}

fn numbers() -> impl Strategy<Value = String> {
    let names = [
        "big",
        "whole",
        "small",
        "half",
        "byte",
        "prio",
        "cut",
        "args[0]",
        "args[2]",
        "$cpu",
        "$time",
        "$tid",
        "$prio",
        "0",
        "1",
        "2",
        "3",
        "63",
        "64",
        "7",
        "0xff",
        "4294967296",
        "18446744073709551615",
        "2ns",
        "args[1]",
    ];
    let leaf = proptest::sample::select(names.to_vec()).prop_map(str::to_owned);
    leaf.prop_recursive(3, 8, 2, |inner| {
        let ops = ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"];
        let op = proptest::sample::select(ops.to_vec());
        prop_oneof![
            4 => (inner.clone(), op, inner.clone())
                .prop_map(|(left, op, right)| format!("({left} {op} {right})")),
            1 => inner.clone().prop_map(|value| format!("-{value}")),
            1 => inner.prop_map(|value| format!("~{value}")),
        ]
    })
}

fn conditions() -> impl Strategy<Value = String> {
    let op = proptest::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let compare =
        (numbers(), op, numbers()).prop_map(|(left, op, right)| format!("{left} {op} {right}"));
    let list = (numbers(), proptest::collection::vec(0u64..4, 1..4)).prop_map(|(left, list)| {
        let list: Vec<_> = list.iter().map(u64::to_string).collect();
        format!("{left} in ({})", list.join(", "))
    });
    let field = proptest::sample::select(vec!["comm", "name", "far", "$procname"]);
    let ops = proptest::sample::select(vec!["==", "!=", "=*", "contains"]);
    let patterns = [
        "",
        "a",
        "jackd",
        "jack*",
        "*ack*",
        "*d",
        "?ackd",
        "*a*b*",
        "a*b",
        "[a-j]*",
        "[!a-j]*",
        "*[b-c]?",
        "abcdefghijklmnop",
        "abcdefghijklmnopq",
        "a text*",
        "*",
        "aab",
        "*ab",
    ];
    let pattern = proptest::sample::select(patterns.to_vec());
    let text = (field, ops, pattern)
        .prop_map(|(field, op, pattern)| format!("{field} {op} \"{pattern}\""));
    let leaf = prop_oneof![3 => compare, 1 => list, 3 => text, 1 => numbers()];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let join = proptest::sample::select(vec!["&&", "||"]);
        prop_oneof![
            4 => (inner.clone(), join, inner.clone())
                .prop_map(|(left, join, right)| format!("({left}) {join} ({right})")),
            1 => inner.prop_map(|cond| format!("!({cond})")),
        ]
    })
}

fn compiled(filter: &str, key: &str) -> event::Result<Compiled> {
    let layout = layout();
    let expr = Expr::parse(filter).expect(filter);
    let key_expr = Key::parse(key).expect(key);
    let written = |text| Written { text, at: 0 };
    let parts = key_expr.from();
    let filter = Some((&expr, written(filter)));
    compile(filter, (&parts, written(key)), &layout, &FRAME)
}

/// Runs the code; the frame afterwards when it matched.
fn run(code: &[u64], event: &Event) -> Option<[u8; FRAME_BYTES]> {
    let mut frame = [0; FRAME_BYTES];
    frame[..8].copy_from_slice(&event.time_ns.to_le_bytes());
    frame[8..16].copy_from_slice(&event.prio.to_le_bytes());
    let mut machine = Machine {
        record: &event.bytes,
        frame,
        cpu: event.cpu,
        tid: event.tid,
        procname: event.procname.as_bytes(),
    };
    match machine.run(code) {
        0 => None,
        1 => Some(machine.frame),
        other => panic!("it returned {other}"),
    }
}

/// Who runs, told the way in which the program learns it.
fn says(filter: &str, event: &Event) -> bool {
    let class = layout().class;
    let program = Program::compile(&Expr::parse(filter).expect("parsed"), &[class]);
    let task = RunningTask::new(
        event.tid.into(),
        event.procname.as_bytes(),
        Some(event.prio),
    );
    program.expect("compiles").matches(event, Some(&task))
}

fn check(filter: &str, event: &Event) -> Result<(), TestCaseError> {
    // What it cannot say exactly it does not say.
    let Ok(compiled) = compiled(filter, "$tid") else {
        return Ok(());
    };
    let found = run(&compiled.code, event).is_some();
    prop_assert_eq!(found, says(filter, event), "{}", filter);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn the_kernel_gives_the_programs_answer(
        filter in conditions(),
        events in proptest::collection::vec(events(), 4),
    ) {
        for event in &events {
            check(&filter, event)?;
        }
    }
}

#[test]
fn of_random_filters_the_kernel_can_ask_many() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut possible = 0;
    for _ in 0..300 {
        let tree = conditions().new_tree(&mut runner).expect("a filter");
        possible += u32::from(compiled(&tree.current(), "$tid").is_ok());
    }
    assert!(possible >= 100, "{possible} of 300");
}

fn event(comm: &str) -> Event {
    let mut bytes = vec![0; 240];
    bytes[8..16].copy_from_slice(&7u64.to_le_bytes());
    bytes[24..28].copy_from_slice(&(-5i32).to_le_bytes());
    bytes[32..32 + comm.len()].copy_from_slice(comm.as_bytes());
    Event {
        bytes,
        time_ns: 5,
        cpu: 1,
        tid: 42,
        prio: -51,
        procname: "worker",
    }
}

#[test]
fn most_filters_that_people_write_are_possible_in_the_kernel() {
    let jackd = event("jackd");
    for filter in [
        "comm == \"jackd\" && big >= 5",
        "comm =* \"j*k?\" || small > 0",
        "$tid == 42 && $prio < -50 && $procname == \"work*\" && $cpu == 1",
        "small in (-5, 3) && args[1] == 0 && big % 4 == 3",
        "prio == -105 && big & 4 != 0 && ~small == 4",
        "$time >= 5ns && comm contains \"ack\"",
    ] {
        let compiled = compiled(filter, "$tid").unwrap_or_else(|error| panic!("{error}"));
        assert!(run(&compiled.code, &jackd).is_some(), "{filter}");
        assert!(says(filter, &jackd), "{filter}");
    }
}

#[test]
fn a_key_is_left_in_the_frame_with_its_parts() {
    let check = |key: &str, parts: &[KeyPart], numbers: [i64; 2], text: &[u8]| {
        let compiled = compiled("1", key).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(compiled.parts, parts, "{key}");
        let frame = run(&compiled.code, &event("jackd")).expect("it matches");
        let number = |at: usize| i64::from_le_bytes(frame[at..at + 8].try_into().expect("eight"));
        assert_eq!([number(16), number(24)], numbers, "{key}");
        assert_eq!(&frame[32..32 + text.len()], text, "{key}");
    };
    let number = |signed| KeyPart::Number { signed };
    check("small", &[number(true)], [-5, 0], b"\0");
    check("big,small", &[number(false), number(true)], [7, -5], b"\0");
    check(
        "big - 8,~big",
        &[number(true), number(true)],
        [-1, -8],
        b"\0",
    );
    check(
        "comm,(big & 0xff) + 1",
        &[KeyPart::Text, number(false)],
        [8, 0],
        b"jackd\0\0\0",
    );
    check("$procname", &[KeyPart::Text], [0, 0], b"worker\0");
    check("$tid", &[number(true)], [42, 0], b"\0");
}

#[test]
fn what_the_kernel_cannot_say_is_refused_with_its_place() {
    let check = |filter: &str, key: &str, what: &str, found: &str| {
        let error = compiled(filter, key).expect_err(filter);
        assert!(error.what().contains(what), "{filter}: {error}");
        let pointed = error.value_found().expect("a place");
        assert!(pointed.contains(found), "{filter}: {pointed}");
        assert!(error.fixed_by().is_some(), "{filter}");
    };
    check(
        "bigg == 1",
        "$tid",
        "test has no field 'bigg'",
        "at column 1",
    );
    check(
        "1 && !(small == oops)",
        "$tid",
        "no field 'oops'",
        "at column 17",
    );
    check(
        "comm =~ \"^j\"",
        "$tid",
        "regular expression",
        "at column 1",
    );
    check("big * big > 3", "$tid", "beyond 64 bits", "at column 1");
    check("big > 0.5", "$tid", "fractions", "at column 1");
    check("name =* \"*d\"", "$tid", "varies", "at column 1");
    check("comm < \"x\"", "$tid", "which of two texts", "at column 1");
    check("1", "comm,$procname", "second text", "at column 1");
    check("1", "big,small,half", "too many numbers", "at column 1");
    check("1", "big / small", "joins", "at column 1");
    check("1", "args", "no number and no text", "at column 1");
    check("1", "smal", "has no field", "at column 1");
}

#[test]
fn a_key_that_cannot_be_read_is_shown_at_its_column() {
    let check = |key: &str, column: usize| {
        let error = Key::parse(key).expect_err(key);
        let found = error.value_found().expect("a place");
        assert!(
            found.starts_with(&format!("at column {column}\n")),
            "{key}: {found}"
        );
        assert!(error.fixed_by().is_some(), "{key}");
    };
    check("", 1);
    check("tid,", 5);
    check("tid next_tid", 5);
    check("tid == next_tid", 5);
    check("tid=", 5);
    check("a=b=c", 4);
    check("(a < b)", 1);
    let key = Key::parse("dev, sector = s + 1").expect("a key");
    assert_eq!((key.from().len(), key.to().len()), (2, 2));
    assert_ne!(key.from()[1], key.to()[1]);
    assert_eq!(key.from()[0], key.to()[0]);
}
