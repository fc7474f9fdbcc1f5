//! What holds for every filter, tried on random ones.

mod common;

use common::{TestEvent, classes, generate, reference};
use expr::period::{Captures, Period};
use expr::{Cond, Expr, Program, Tasks, Wants};
use proptest::prelude::*;

/// Compiles what can be read and asks it about every kind of event.
fn use_whole(text: &str) {
    let Ok(expr) = Expr::parse(text) else {
        return;
    };
    let again = Expr::parse(&expr.to_string());
    assert_eq!(again.expect("what was printed reads back"), expr, "{text}");
    let program = Program::compile(&expr, &classes()).expect("it compiles");
    let mut tasks = Tasks::new(&classes());
    let hog = ("hog", 7, -61);
    for event in [
        common::work(),
        common::irq(0, 1, "timer"),
        common::switch(0, hog, hog),
    ] {
        program.matches(&event, tasks.on(event.cpu));
        tasks.observe(&event);
    }
}

/// Words that the languages are made of, so that random rows of them often mean something.
const WORDS: &[&str] = &[
    "a",
    "comm",
    "small",
    "level",
    "msg",
    "$name",
    "$cpu",
    "$ctx",
    "$evt",
    "$begin",
    "$parent",
    "$app",
    ".",
    ":",
    "(",
    ")",
    "[",
    "]",
    ",",
    "&&",
    "||",
    "!",
    "==",
    "!=",
    "=",
    "<",
    "<=",
    "=~",
    "=*",
    "contains",
    "in",
    "present",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "~",
    "<<",
    ">>",
    "1",
    "0x1f",
    "1.5",
    "25ms",
    "\"a*\"",
    "\"^[a-z]+$\"",
    "`b c`",
    "0",
    "64",
];

/// A failure prints its input; nothing is kept beside the sources.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn check_against_reference(cond: &Cond, events: &[TestEvent]) -> Result<(), TestCaseError> {
    let classes = classes();
    let program = Program::compile(&Expr::new(cond.clone()), &classes).expect("it compiles");
    for event in events {
        let expect = reference::holds(cond, &classes, event);
        let matches = program.matches(event, None);
        prop_assert_eq!(matches, expect, "{} {:?}", cond, event);
        match program.wants(event.class) {
            Wants::Never => prop_assert!(!expect),
            Wants::Always => prop_assert!(expect),
            Wants::Maybe => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_printed_reads_back_as_the_same_tree(cond in generate::cond()) {
        let text = cond.to_string();
        let expr = Expr::parse(&text).map_err(|error| TestCaseError::fail(format!("{error:#}")))?;
        prop_assert_eq!(expr.root, cond, "{}", text);
    }

    #[test]
    fn each_test_of_an_event_means_what_the_slow_reference_means(
        conds in proptest::collection::vec(generate::single(), 1..12),
        events in proptest::collection::vec(generate::event(), 1..8),
    ) {
        for cond in conds {
            check_against_reference(&cond, &events)?;
        }
    }

    #[test]
    fn a_program_means_what_the_slow_reference_means(
        cond in generate::cond(),
        events in proptest::collection::vec(generate::event(), 1..8),
    ) {
        check_against_reference(&cond, &events)?;
    }

    #[test]
    fn no_row_of_words_makes_anything_panic(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..14),
    ) {
        let text = words.join(" ");
        use_whole(&text);
        use_whole(&words.concat());
        let child = format!("a(b) : {text} : {text}");
        for period in [&text, &child].into_iter().filter_map(|text| Period::parse(text).ok()) {
            let again = Period::parse(&period.to_string());
            prop_assert_eq!(again.expect("it reads back"), period);
        }
        let _ = Captures::parse(&text);
    }

    #[test]
    fn no_text_makes_anything_panic(text in ".{0,40}") {
        use_whole(&text);
        let _ = Period::parse(&text);
        let _ = Captures::parse(&text);
    }
}

#[test]
fn what_is_too_deep_or_too_long_is_refused() {
    let check = |text: &str, expect: &str| {
        let error = Expr::parse(text).expect_err(expect);
        assert!(error.what().contains(expect), "{}", error.what());
    };
    check(
        &format!("{}1{}", "(".repeat(500), ")".repeat(500)),
        "nests deeper",
    );
    check(&format!("{}1", "!".repeat(60_000)), "nests deeper");
    check(&format!("{}1", "-".repeat(60_000)), "nests deeper");
    check(&format!("1{}", "+1".repeat(1_000)), "nests deeper");
    check(&"a ".repeat(60_000), "are allowed");
    let many = |word: &str| vec![word; 65].join(" || ");
    check(&many("comm =~ \"x\""), "more than 64 patterns");
    let error = Period::parse(&format!(": {}$evt.a == 1", "!".repeat(60_000)));
    assert!(error.expect_err("too deep").what().contains("nests deeper"));
    assert!(Expr::parse(&vec!["small == 1"; 2_000].join(" || ")).is_ok());
}

#[test]
fn a_program_beyond_all_bounds_is_refused() {
    let text = vec!["small"; 5_000].join(" || ");
    let expr = Expr::parse(&text).expect("a filter");
    let mut many = classes();
    let work = many.remove(common::WORK as usize);
    let many = vec![work; 2_000];
    let error = Program::compile(&expr, &many).expect_err("too large");
    assert_eq!(error.what(), "the filter is too large for this trace");
}
