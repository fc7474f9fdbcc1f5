//! Random trees and random events.

use event::Duration;
use event::{ClassId, Cpu, Instant, Value};
use expr::{
    BinaryOp, CompareOp, Cond, FieldRef, FieldScope, Literal, MatchOp, Operand, Pattern, Pseudo,
    Root, Span, Step, Text, UnaryOp,
};
use proptest::prelude::*;

use super::{TestEvent, irq, switch, text as text_value, work};

fn member(name: &str) -> Step {
    Step::Member(name.to_owned())
}

/// Fields of all kinds, some of them of no class.
fn field() -> impl Strategy<Value = FieldRef> + Clone {
    let auto = |name: &str, steps: Vec<Step>| (Root::Auto(name.to_owned()), steps);
    let scoped = |scope, name: &str| (Root::Scoped(scope, name.to_owned()), Vec::new());
    let mut fields = vec![
        scoped(FieldScope::Payload, "small"),
        scoped(FieldScope::Context, "small"),
        scoped(FieldScope::PacketContext, "cpu_id"),
        auto("msg", vec![member("size")]),
        auto("msg", vec![member("to")]),
        auto("msg", vec![member("level")]),
        auto("msgs", vec![Step::Index(1), member("level")]),
        auto("msgs", vec![Step::Index(2), member("to")]),
        auto("args", vec![Step::Index(0)]),
        auto("args", vec![Step::Index(1)]),
        auto("choice", vec![member("number")]),
        auto("choice", vec![member("word")]),
        (Root::Pseudo(Pseudo::Cpu), Vec::new()),
        (Root::Pseudo(Pseudo::Time), Vec::new()),
        (Root::Pseudo(Pseudo::Tid), Vec::new()),
        (Root::Pseudo(Pseudo::Prio), Vec::new()),
    ];
    for name in [
        "big",
        "small",
        "ratio",
        "delay_us",
        "level",
        "comm",
        "msg",
        "irq",
        "name",
        "next_tid",
        "prev_comm",
        "cpu",
        "cpu_id",
        "tid",
        "nothing",
    ] {
        fields.push(auto(name, Vec::new()));
    }
    proptest::sample::select(fields).prop_map(|(root, steps)| FieldRef {
        root,
        steps,
        span: Span::default(),
    })
}

fn literal(literal: Literal) -> Operand {
    Operand::Literal(literal, Span::default())
}

/// A number, or a field of which the parser cannot say that it is none.
fn number() -> impl Strategy<Value = Operand> + Clone {
    let small = prop_oneof![0u64..20, Just(1_500), Just(u64::MAX), Just(1 << 63)];
    let floats = proptest::sample::select(vec![0.0, 0.5, 1.5, 1e-7, 12.0, 1.8446744073709552e19]);
    let leaf = prop_oneof![
        4 => field().prop_map(Operand::Field),
        3 => small.prop_map(|value| literal(Literal::Integer(value))),
        1 => floats.prop_map(|value| literal(Literal::Float(value))),
        1 => (0i64..3_000_000).prop_map(|ns| literal(Literal::Duration(Duration::from_ns(ns)))),
    ];
    leaf.prop_recursive(4, 12, 2, |inner| {
        let ops = vec![
            BinaryOp::Add,
            BinaryOp::Subtract,
            BinaryOp::Multiply,
            BinaryOp::Divide,
            BinaryOp::Remainder,
            BinaryOp::And,
            BinaryOp::Or,
            BinaryOp::Xor,
            BinaryOp::ShiftLeft,
            BinaryOp::ShiftRight,
        ];
        let unary = proptest::sample::select(vec![UnaryOp::Negate, UnaryOp::Invert]);
        prop_oneof![
            (unary, inner.clone()).prop_map(|(op, value)| Operand::Unary(
                op,
                Box::new(value),
                Span::default()
            )),
            (proptest::sample::select(ops), inner.clone(), inner)
                .prop_map(|(op, left, right)| Operand::Binary(op, Box::new(left), Box::new(right))),
        ]
    })
}

/// Bytes with marks of patterns, some of them escaped.
fn text() -> impl Strategy<Value = Text> + Clone {
    let words = [
        "jackd", "jack*", "*a*", "?ackd", "HIGH", "H*", "app:work", "", "tty", "worker",
    ];
    let word = proptest::sample::select(words.to_vec());
    let mark = proptest::sample::select(b"ad*?\"\\\n\xff\xc3".to_vec());
    let bytes = prop_oneof![
        3 => word.prop_map(|word| word.as_bytes().to_vec()),
        1 => proptest::collection::vec(mark, 0..6),
    ];
    (bytes, any::<u8>()).prop_map(|(bytes, choice)| {
        let is_mark = |(_, byte): &(usize, &u8)| matches!(byte, b'*' | b'?' | b'[');
        let is_chosen = |place: &u32| choice >> (place % 8) & 1 == 1;
        let marks = bytes
            .iter()
            .enumerate()
            .filter(is_mark)
            .map(|(place, _)| place as u32);
        let escaped = marks.filter(is_chosen).collect();
        Text { bytes, escaped }
    })
}

fn text_operand() -> impl Strategy<Value = Operand> + Clone {
    let pseudo = proptest::sample::select(vec![Pseudo::Name, Pseudo::Procname]);
    prop_oneof![
        2 => text().prop_map(|text| literal(Literal::Text(text))),
        2 => field().prop_filter("a number matches no pattern", |field| {
            !matches!(field.root, Root::Pseudo(_))
        })
        .prop_map(Operand::Field),
        1 => pseudo.prop_map(|pseudo| Operand::Field(FieldRef {
            root: Root::Pseudo(pseudo),
            steps: Vec::new(),
            span: Span::default(),
        })),
    ]
}

fn pattern() -> impl Strategy<Value = (MatchOp, Pattern)> + Clone {
    let span = Span::default();
    let regexes = ["^jack", "ack", "d$", "^worker$", "G", "", "^"];
    let regex = proptest::sample::select(regexes.to_vec()).prop_map(Text::new);
    prop_oneof![
        regex.prop_map(move |text| (MatchOp::Regex, Pattern { text, span })),
        text().prop_map(move |text| (MatchOp::Glob, Pattern { text, span })),
        text().prop_map(move |text| (MatchOp::Contains, Pattern { text, span })),
    ]
}

fn compare_op() -> impl Strategy<Value = CompareOp> + Clone {
    proptest::sample::select(vec![
        CompareOp::Equal,
        CompareOp::NotEqual,
        CompareOp::Less,
        CompareOp::LessEqual,
        CompareOp::Greater,
        CompareOp::GreaterEqual,
    ])
}

/// A field beside a constant that it may well equal, on either side.
fn near() -> impl Strategy<Value = Cond> + Clone {
    let names = proptest::sample::select(vec!["ratio", "delay_us", "big", "small", "level"]);
    let value = prop_oneof![
        (0u64..4).prop_map(Literal::Integer),
        (0i64..8).prop_map(|half| Literal::Duration(Duration::from_ns(half * 500))),
        (0u8..6).prop_map(|half| Literal::Float(f64::from(half) / 2.0)),
    ];
    (compare_op(), names, value, any::<bool>()).prop_map(|(op, name, value, mirrored)| {
        let field = Operand::Field(FieldRef {
            root: Root::Auto(name.to_owned()),
            steps: Vec::new(),
            span: Span::default(),
        });
        match mirrored {
            true => Cond::Compare(op, literal(value), field),
            false => Cond::Compare(op, field, literal(value)),
        }
    })
}

/// One test of an event, as the parser could have made it.
pub fn single() -> impl Strategy<Value = Cond> + Clone {
    let ops = compare_op();
    let list = proptest::collection::vec(number(), 1..4);
    let texts = proptest::collection::vec(text_operand(), 1..4);
    prop_oneof![
        4 => near(),
        4 => (ops.clone(), number(), number()).prop_map(|(op, l, r)| Cond::Compare(op, l, r)),
        3 => (ops, text_operand(), text_operand()).prop_map(|(op, l, r)| Cond::Compare(op, l, r)),
        2 => (text_operand(), pattern()).prop_map(|(left, (op, p))| Cond::Match(op, left, p)),
        1 => (number(), list).prop_map(|(left, list)| Cond::In(left, list)),
        1 => (text_operand(), texts).prop_map(|(left, list)| Cond::In(left, list)),
        1 => field().prop_map(Cond::Present),
        1 => number().prop_map(Cond::True),
    ]
}

/// A condition, as the parser could have made it.
pub fn cond() -> impl Strategy<Value = Cond> {
    single().prop_recursive(3, 12, 3, |inner| {
        let many = proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            many.clone().prop_map(Cond::all),
            many.prop_map(Cond::any),
            inner.prop_map(|cond| Cond::Not(Box::new(cond))),
        ]
    })
}

/// An event of any class.
pub fn event() -> impl Strategy<Value = TestEvent> {
    let numbers =
        prop_oneof![4 => -3i64..20, 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => Just(-1)];
    let words = proptest::sample::select(vec!["jackd", "", "bad", "HIGH", "a*"]);
    let classes = prop_oneof![1 => Just(0u32), 1 => Just(1), 4 => Just(2)];
    let floats = proptest::sample::select(vec![0.0, 0.5, -1.5, f64::NAN, f64::INFINITY, 12.0]);
    (
        classes,
        proptest::collection::vec(numbers, 5),
        words,
        floats,
        any::<bool>(),
    )
        .prop_map(|(class, numbers, word, float, choice)| match class {
            0 => switch(
                numbers[0] as u32 % 4,
                (word, numbers[1], -1),
                ("hog", numbers[2], 20),
            ),
            1 => irq(numbers[0] as u32 % 4, numbers[1], word),
            _ => changed_work(&numbers, word, float, choice),
        })
}

fn changed_work(numbers: &[i64], word: &'static str, float: f64, choice: bool) -> TestEvent {
    let mut event = work();
    event.class = ClassId(super::WORK);
    event.values[0] = Value::Unsigned(numbers[0] as u64);
    event.values[1] = Value::Signed(numbers[1]);
    event.values[2] = Value::Float(float);
    event.values[3] = Value::Unsigned(numbers[2] as u64);
    event.values[4] = Value::Enum {
        value: numbers[3],
        label: None,
    };
    event.values[5] = text_value(word);
    event.values[8] = Value::Array(numbers.iter().take(1).map(|n| Value::Signed(*n)).collect());
    if choice {
        event.values[9] = Value::Struct(vec![("word", text_value(word))]);
        event.cpu = Some(Cpu(1));
        event.time = Some(Instant::from_ns(numbers[4]));
    } else {
        event.cpu = None;
        event.time = None;
    }
    event
}
