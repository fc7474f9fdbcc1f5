//! Check that a filter says the same of an event in the kernel's words as in the program, on random
//! filters and values: a model of the kernel's filter reads the words.

mod tracefs;

use event::{ClassId, Cpu, ErrorKind, FieldId, FieldType, Instant, Integer, Record};
use expr::words::{Kind, Layout, Source, in_kernel_words};
use expr::{Expr, Program};
use proptest::prelude::*;
use tracefs::Value;

type Number = (&'static str, &'static str, (u8, bool), (u8, bool), i64);

/// Each number: its name in the recording and in the kernel, bits and sign there and here, and what
/// it is more here.
const NUMBERS: &[Number] = &[
    ("prio", "k_prio", (32, true), (32, true), -100),
    ("tid", "pid", (32, true), (32, true), 0),
    ("flags", "flags", (64, false), (32, false), 0),
    ("dfd", "dfd", (64, false), (32, true), 0),
    ("mode", "mode", (64, true), (16, false), 0),
    ("state", "state", (64, true), (64, true), 0),
    ("wider", "wider", (32, true), (64, false), 0),
    ("up", "up", (32, false), (64, false), 0),
    ("turned", "turned", (32, false), (32, true), 0),
    ("byte", "byte", (8, false), (8, false), 0),
    ("delay_us", "delay_us", (64, false), (64, false), 0),
];
const TEXTS: &[&str] = &[
    "", "a", "jackd", "jack", "ab", "aab", "5ab", "!ab", "it's", "a*b", "x[1]",
];
/// Longer than a name of a task has room.
const LONG: &str = "a text of more bytes";

fn layout() -> Layout {
    let mut layout = Layout::new("test");
    for (name, own, (bits, signed), (to_bits, to_signed), plus) in NUMBERS {
        let ty = || FieldType::Integer(Integer::le(*to_bits, *to_signed));
        let source = |name: &str| Source {
            name: name.to_owned(),
            kind: Kind::Integer {
                bits: *bits,
                signed: *signed,
                plus: *plus,
            },
        };
        layout.add(name, ty(), source(own));
        layout.add_alias(own, ty(), source(own));
    }
    let comm = Source {
        name: "comm".to_owned(),
        kind: Kind::Text { size: 16 },
    };
    layout.add("comm", FieldType::Text { size_bytes: 16 }, comm);
    let name = Source {
        name: "path".to_owned(),
        kind: Kind::Dynamic,
    };
    layout.add("path", FieldType::String, name);
    for (name, kind) in [("filename", Kind::Address), ("error", Kind::Other)] {
        let source = Source {
            name: name.to_owned(),
            kind,
        };
        layout.add(name, FieldType::String, source);
    }
    layout
}

/// What the kernel has.
#[derive(Clone, Debug)]
struct Event {
    numbers: Vec<u64>,
    /// With what was in the room before, behind the text.
    comm: Vec<u8>,
    path: Vec<u8>,
    cpu: u32,
    layout: Layout,
}

fn value(bits: u64, width: u8, signed: bool) -> i64 {
    let up = 64 - u32::from(width);
    match signed {
        true => ((bits << up) as i64) >> up,
        false => ((bits << up) >> up) as i64,
    }
}

impl Event {
    fn record(&self) -> Vec<(&'static str, Value)> {
        let numbers = NUMBERS.iter().zip(&self.numbers);
        let numbers = numbers.map(|((_, own, (bits, signed), ..), value)| {
            (*own, Value::Integer(*value, u32::from(*bits), *signed))
        });
        let others = [
            ("comm", Value::Text(self.comm.clone())),
            ("path", Value::Text(self.path.clone())),
            ("CPU", Value::Integer(self.cpu.into(), 32, true)),
        ];
        numbers.chain(others).collect()
    }

    fn name(&self, field: FieldId) -> &str {
        &self.layout.class().fields[usize::from(field.0)].name
    }
}

impl Record for Event {
    fn class(&self) -> ClassId {
        ClassId(0)
    }
    fn instant(&self) -> Option<Instant> {
        Some(Instant::from_ns(0))
    }
    fn cpu(&self) -> Option<Cpu> {
        Some(Cpu(self.cpu))
    }
    fn i64(&self, field: FieldId) -> i64 {
        let name = self.name(field);
        let place = NUMBERS
            .iter()
            .position(|row| row.0 == name || row.1 == name);
        let place = place.expect("a number");
        let (_, _, (bits, signed), (to_bits, to_signed), plus) = NUMBERS[place];
        let own = value(self.numbers[place], bits, signed);
        value(own.wrapping_add(plus) as u64, to_bits, to_signed)
    }
    fn f64(&self, _: FieldId) -> f64 {
        0.0
    }
    fn text(&self, field: FieldId) -> &[u8] {
        let text = match self.name(field) {
            "comm" => &self.comm,
            _ => &self.path,
        };
        text.split(|byte| *byte == 0).next().expect("one piece")
    }
    fn value(&self, _: FieldId) -> event::Value<'_> {
        event::Value::Unsigned(0)
    }
}

fn events() -> impl Strategy<Value = Event> {
    let number = prop_oneof![
        3 => 0u64..9,
        2 => 90u64..110,
        2 => (-110i64..3).prop_map(|value| value as u64),
        1 => (1u64 << 31) - 3..(1 << 31) + 3,
        1 => (1u64 << 32) - 3..(1 << 32) + 103,
        1 => proptest::sample::select(vec![u64::MAX, 1 << 63, (1 << 63) - 1, 1500]),
        1 => any::<u64>(),
    ];
    let texts = proptest::sample::select(TEXTS.to_vec());
    let paths = proptest::sample::select([TEXTS, &[LONG]].concat());
    let numbers = proptest::collection::vec(number, NUMBERS.len());
    (numbers, texts, paths, 0u32..4).prop_map(|(numbers, comm, path, cpu)| {
        let mut room = b"xjackd5abjackdb\0".to_vec();
        room[..comm.len()].copy_from_slice(comm.as_bytes());
        room[comm.len()] = 0;
        Event {
            numbers,
            comm: room,
            path: [path.as_bytes(), b"\0"].concat(),
            cpu,
            layout: layout(),
        }
    })
}

fn field() -> impl Strategy<Value = String> {
    let names = NUMBERS.iter().flat_map(|row| [row.0, row.1]);
    let names = names.chain(["$cpu", "cpu_id"]).map(str::to_owned);
    proptest::sample::select(names.collect::<Vec<_>>())
}

fn constant() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (-6i64..12).prop_map(|value| value.to_string()),
        2 => (-103i64..-97).prop_map(|value| value.to_string()),
        2 => proptest::sample::select(vec![
            "0xffffff9c", "2147483647", "-2147483648", "2147483648", "4294967295", "4294967296",
            "18446744073709551615", "-9223372036854775808", "9223372036854775807", "1500",
            "0x8000000000000000", "65535", "255", "-1 - 18446744073709551615",
        ]).prop_map(str::to_owned),
        1 => any::<u64>().prop_map(|value| value.to_string()),
    ]
}

fn operator() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec!["==", "!=", "<", "<=", ">", ">="])
}

/// What is always answered.
fn plain() -> impl Strategy<Value = String> {
    let compare = (field(), operator(), constant());
    let list = proptest::collection::vec(constant(), 1..4);
    prop_oneof![
        6 => compare.prop_map(|(field, op, value)| format!("{field} {op} {value}")),
        1 => (constant(), operator(), field())
            .prop_map(|(value, op, field)| format!("{value} {op} {field}")),
        1 => (field(), list).prop_map(|(field, list)| format!("{field} in ({})", list.join(", "))),
        1 => (field(), operator(), 0u64..3)
            .prop_map(|(field, op, value)| format!("-{field} * 3 + 1 {op} {value}")),
        1 => field(),
    ]
}

fn single() -> impl Strategy<Value = String> {
    let mask = prop_oneof![
        3 => 0i64..8,
        1 => -8i64..0,
        1 => proptest::sample::select(vec![0x8000_0000, 0xffff_ffff, -2_147_483_648]),
        1 => any::<i64>(),
    ];
    let bits = (field(), mask, operator(), constant());
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
        "a text of more b",
        "a text of more bytes",
        "*",
        "aab",
        "*ab",
        "5*",
        "!a*",
        "a\\*b",
        "*'*",
        "x[[]1]",
        "x[1]",
        "*]",
        "[]]",
        "a\\x62",
        "?",
        "*?",
        "*5*",
        "\\x22*",
    ];
    let text = proptest::sample::select(vec!["comm", "path"]);
    let ops = proptest::sample::select(vec!["==", "!=", "=*", "contains"]);
    let pattern = proptest::sample::select(patterns.to_vec());
    prop_oneof![
        4 => plain(),
        2 => bits.prop_map(|(field, mask, op, value)| format!("{field} & {mask} {op} {value}")),
        4 => (text, ops, pattern)
            .prop_map(|(text, op, pattern)| format!("{text} {op} \"{pattern}\"")),
        1 => Just("delay_us < 1.5ms".to_owned()),
        1 => Just("delay_us + 1 == 1501us".to_owned()),
    ]
}

fn conditions() -> impl Strategy<Value = String> {
    single().prop_recursive(3, 8, 2, |inner| {
        let join = proptest::sample::select(vec!["&&", "||"]);
        prop_oneof![
            4 => (inner.clone(), join, inner.clone())
                .prop_map(|(left, join, right)| format!("({left}) {join} ({right})")),
            1 => inner.prop_map(|cond| format!("!({cond})")),
        ]
    })
}

/// Both answers; the kernel's is none where it is refused.
fn check(filter: &str, events: &[Event]) -> Result<bool, TestCaseError> {
    let expr = Expr::parse(filter).map_err(|error| TestCaseError::fail(format!("{error:#}")))?;
    let layout = layout();
    let words = in_kernel_words(&expr, filter, &layout);
    let program =
        Program::compile(&expr, std::slice::from_ref(layout.class())).expect("it compiles");
    for event in events {
        let expect = program.matches(event, None);
        let answer = match &words {
            Ok(None) => true,
            Ok(Some(words)) => tracefs::holds(words, &event.record()),
            Err(error) if error.kind() == ErrorKind::InvalidInput => false,
            Err(error) => {
                prop_assert!(error.fixed_by().is_some() && error.value_found().is_some());
                return Ok(false);
            }
        };
        prop_assert_eq!(answer, expect, "{} is {:?}: {:?}", filter, words, event);
    }
    Ok(true)
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_kernels_words_mean_what_the_filter_means(
        filter in conditions(),
        events in proptest::collection::vec(events(), 1..8),
    ) {
        check(&filter, &events)?;
    }

    #[test]
    fn a_field_is_compared_with_any_number(
        filter in plain(),
        events in proptest::collection::vec(events(), 1..8),
    ) {
        prop_assert!(check(&filter, &events)?, "{} is refused", filter);
    }
}

fn words(filter: &str) -> Option<String> {
    let expr = Expr::parse(filter).unwrap_or_else(|error| panic!("{error:#}"));
    let words = in_kernel_words(&expr, filter, &layout());
    words.unwrap_or_else(|error| panic!("{filter}: {error:#}"))
}

#[test]
fn usual_filters_have_short_words() {
    let check = |filter: &str, expect: &str| {
        assert_eq!(words(filter).as_deref(), Some(expect), "{filter}");
    };
    check("prio < 0", "k_prio >= -2147483548 && k_prio <= 99");
    check("prio == -61", "k_prio == 39");
    check("tid in (1, 2, 7)", "(pid >= 1 && pid <= 2) || pid == 7");
    check("pid != 1", "pid != 1");
    check("comm == \"jack*\"", "comm ~ \"\\jack*\"");
    check(
        "!(comm == \"a\" || comm == \"b\")",
        "!(comm == \"a\") && !(comm == \"b\")",
    );
    check("dfd == 3", "dfd & 1 && dfd & 2 && !(dfd & 4294967292)");
    check("$cpu == 1 && $name == \"test\"", "CPU == 1");
    check("flags & 0x40 && mode", "flags & 64 && mode & 65535");
    assert_eq!(words("$name == \"t*\" || tid == 1"), None);
}

#[test]
fn what_the_kernel_cannot_answer_is_refused_at_its_column_with_what_helps() {
    let check = |filter: &str, what: &str, column: usize| {
        let expr = Expr::parse(filter).unwrap_or_else(|error| panic!("{error:#}"));
        let error = in_kernel_words(&expr, filter, &layout()).expect_err(filter);
        assert!(error.what().contains(what), "{filter}: {error}");
        let found = error.value_found().expect("a place");
        assert!(
            found.starts_with(&format!("at column {column}\n")),
            "{filter}: {found}"
        );
        assert!(error.fixed_by().is_some(), "{filter}");
    };
    check(
        "filename == \"/etc/*\"",
        "address in the program's memory",
        1,
    );
    check(
        "tid == 1 || !(error == \"\")",
        "no such number and no such text",
        15,
    );
    check("comm =~ \"^j\"", "regular expressions", 1);
    check("tid == 1 && comm < \"x\"", "which of two texts", 13);
    check("prio == tid", "not with another field", 1);
    check("tid > 0.5", "fractions", 1);
    check("tid >> 2 == 1", "some of its bits", 1);
    check("tid == 1 && $tid == 5", "which task ran", 13);
    check("$time > 5s", "the trace's time", 1);
    check("tid == \"a*\"", "a number", 1);
    check("comm != 5", "the same answer", 1);
    check("comm =* \"[!a]\"", "what is outside", 1);
    check("nothing == 1", "has no field 'nothing'", 1);
    check("tid == 1 && tid > 9999999999", "can match", 1);
}
