//! The filter and the period language.

use std::sync::OnceLock;

use event::{TimeRange, Value};
use expr::period::{Captures, Period, Periods};
use expr::{Expr, Filter};
use testkit::SyntheticTrace;
use trace::{Item, Trace};

use crate::engine::Reader;
use crate::random::Random;

/// Filters: parsed, printed, compiled, asked.
pub const FILTER: Reader = Reader {
    name: "filter",
    what: "the filter language, compiled and asked about events",
    seeds: filter_seeds,
    grammar: Some(include_str!("../../grammars/filter.txt")),
    run: filter,
};

/// Definitions of periods.
pub const PERIOD: Reader = Reader {
    name: "period",
    what: "the period language",
    seeds: period_seeds,
    grammar: Some(include_str!("../../grammars/period.txt")),
    run: period,
};

fn filter_seeds(_: &mut Random) -> Vec<Vec<u8>> {
    let texts = [
        "$name == \"sched_switch\" && next_comm == \"jack*\" && next_prio < 0",
        "$time >= 11.0025s && $time < 11.5s && !(irq in (19, 24))",
        "$name =~ \"^(timer|hrtimer)_\" && $cpu == 1",
        "msg.size == 4096 || msgs[1].to == \"tty\" && args[0] == 0x7",
        "present(level) && delay_us > 25ms ^ (big & ~7) << 2 == -1.5e3",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// A few events to ask about.
fn events() -> &'static Trace {
    static TRACE: OnceLock<Trace> = OnceLock::new();
    TRACE.get_or_init(|| {
        SyntheticTrace::new()
            .event(
                "app:work",
                &[
                    ("big", Value::Unsigned(u64::MAX)),
                    ("small", Value::Signed(-1)),
                    ("comm", Value::Text("jackd".into())),
                ],
            )
            .irq(19, "eth0")
            .build()
    })
}

fn filter(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(expr) = Expr::parse(&text) else {
        return;
    };
    let printed = expr.to_string();
    let again = Expr::parse(&printed);
    let again = again.unwrap_or_else(|error| panic!("its own text is refused: {printed}: {error}"));
    assert_eq!(
        again.to_string(),
        printed,
        "its own text means something else"
    );
    let trace = events();
    let Ok(mut filter) = Filter::new(&expr, trace.classes()) else {
        return;
    };
    std::hint::black_box(filter.program().notes());
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Ok(Some(item)) = cursor.next() {
        if let Item::Event(event) = item {
            std::hint::black_box(filter.matches(&event));
        }
    }
}

fn period_seeds(_: &mut Random) -> Vec<Vec<u8>> {
    let texts = [
        "work : $evt.$name == \"begin\" : $evt.$name == \"end\" && $begin.$evt.id == $evt.id",
        "inner(work) : $evt.$name == \"a\" : $evt.$name == \"b\"",
        "$evt.$name == \"a\" : $evt.$name == \"b\"",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

fn period(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    if let Ok(period) = Period::parse(first) {
        std::hint::black_box(period.to_string());
    }
    if let Ok(captures) = Captures::parse(second) {
        std::hint::black_box(captures);
    }
    std::hint::black_box(Periods::parse(&[first, second], &[second]).is_ok());
}
