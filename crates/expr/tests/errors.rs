//! Golden messages: what people see when a filter or a period means nothing.
//! `RTSCOPE_BLESS=1 cargo test -p expr --test errors` rewrites the golden file; review the diff.

use std::fmt::Write;
use std::path::PathBuf;

use expr::Expr;
use expr::period::{Captures, Period};

const FILTERS: &[&str] = &[
    "",
    "prev_prio ==",
    "prev_tid == \"jackd",
    "comm == 'jackd'",
    "prev_tid == 5 && (next_tid == 6",
    "prev_tid == 5) && next_tid == 6",
    "prev_tid 5",
    "0 < prio < 10",
    "!prio == 5",
    "$procname > 5",
    "\"jackd\"",
    "comm == \"a\" + 1",
    "prio & (comm == \"x\")",
    "$pid == 5",
    "$ctx == 5",
    "$app.shop == 5",
    "delay > 25parsec",
    "irq == 0xzz",
    "irq == 089",
    "irq == 99999999999999999999",
    "ratio > 1e999",
    "comm =~ \"a(\"",
    "comm =~ jack",
    "5 =* \"5\"",
    "comm == \"\\d\"",
    "irq in 5",
    "irq in (5, \"a\"",
    "$tid in (\"a\")",
    "args[x] == 1",
    "args[-1] == 1",
    "msg. == 1",
    "(a + 1) present",
    "a == 1 # comment",
    "`` == 1",
    "$",
    "a == 1 &&\n b ==\t== 2",
    "next_comm == \"a rather long text that moves the mistake far to the right\" && next_prio =< 5 \
     && prev_comm == \"and goes on\"",
];

const PERIODS: &[&str] = &[
    "",
    "switch",
    "switch : ",
    "switch(: $evt.x == 1",
    "switch : next_tid == 5",
    "switch : $evt == 5",
    "switch : $evt.x",
    "switch : $evt.x == y",
    "switch : $evt.$name == 5",
    "switch : $evt.x < \"a\"",
    "switch : $evt.x =* 5",
    "switch : $begin.x == 5",
    "switch : $evt.$tid == 5",
    "switch : $evt.x == $parent.$begin.$evt.x",
    "irq(switch) : $evt.x == $parent.$evt.x",
    "switch : $evt.x == 1 : $evt.x == 2 : $evt.x == 3",
    "switch : ($evt.x == 1",
];

const CAPTURES: &[&str] = &[
    ": $evt.x",
    "switch : tid $evt.x",
    "switch : a = $evt.x, a = $evt.y",
    "switch : a = 5",
    "switch : $evt.x $evt.y",
];

fn render(kind: &str, texts: &[&str], parse: impl Fn(&str) -> event::Result<()>) -> String {
    let mut all = String::new();
    for text in texts {
        let error = parse(text).expect_err(text);
        assert!(
            error.value_found().is_some() && error.fixed_by().is_some(),
            "{text}"
        );
        writeln!(all, "{kind} {text:?}\n{error:#}\n").expect("text has room");
    }
    all
}

#[test]
fn messages_point_at_the_place_and_say_what_to_write_instead() {
    let all = [
        render("filter", FILTERS, |text| Expr::parse(text).map(drop)),
        render("period", PERIODS, |text| Period::parse(text).map(drop)),
        render("captures", CAPTURES, |text| Captures::parse(text).map(drop)),
    ];
    let all = all.concat();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/errors.txt");
    if std::env::var_os("RTSCOPE_BLESS").is_some() {
        std::fs::write(&path, &all).expect("golden file written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(all, golden, "the messages differ from {}", path.display());
}
