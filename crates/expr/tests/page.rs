//! The page about the languages, docs/filter.md: its examples are read and asked here.

mod common;

use std::path::PathBuf;

use common::{classes, work};
use expr::period::{Captures, Period};
use expr::{Expr, Program};

/// The page's boxes: what stands behind the fence, and the lines within.
fn boxes() -> Vec<(String, Vec<String>)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/filter.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let mut boxes: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(kind) => {
                inside = !inside;
                if inside {
                    boxes.push((kind.to_owned(), Vec::new()));
                }
            }
            None if inside => boxes
                .last_mut()
                .expect("a box is open")
                .1
                .push(line.to_owned()),
            None => {}
        }
    }
    boxes
}

/// Lines of all boxes of a kind; there must be some.
fn lines(kind: &str) -> Vec<String> {
    let of_kind = boxes().into_iter().filter(|(own, _)| own == kind);
    let lines: Vec<String> = of_kind.flat_map(|(_, lines)| lines).collect();
    assert!(!lines.is_empty(), "no box '{kind}'");
    lines
}

fn matches(filter: &str) -> bool {
    let expr = Expr::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error:#}"));
    let program = Program::compile(&expr, &classes()).expect("it compiles");
    program.matches(&work(), None)
}

#[test]
fn the_pages_event_matches_what_the_page_says() {
    for line in lines("matches") {
        assert!(matches(&line), "{line}");
    }
    for line in lines("does not match") {
        assert!(!matches(&line), "{line}");
    }
}

#[test]
fn what_the_page_calls_refused_is_refused() {
    for line in lines("refused") {
        assert!(Expr::parse(&line).is_err(), "{line}");
    }
}

#[test]
fn the_pages_commands_periods_and_captures_are_read() {
    for line in lines("sh") {
        let filter = line
            .split_once("--filter '")
            .and_then(|(_, rest)| rest.strip_suffix('\''));
        let filter = filter.expect("a filter");
        let of_event = line.contains(" record ").then(|| filter.split_once(": "));
        let filter = of_event.map_or(filter, |parts| parts.expect("EVENT: EXPR").1);
        Expr::parse(filter).expect("it is read");
    }
    for line in lines("period") {
        Period::parse(&line).expect("it is read");
    }
    for line in lines("captures") {
        Captures::parse(&line).expect("it is read");
    }
}

#[test]
fn the_page_has_no_box_of_another_kind() {
    let known = [
        "sh",
        "text",
        "matches",
        "does not match",
        "refused",
        "period",
        "captures",
    ];
    for (kind, _) in boxes() {
        assert!(known.contains(&kind.as_str()), "{kind}");
    }
}

#[test]
fn names_that_the_page_calls_the_same_are() {
    let aliases = [
        ("$name", &["name", "event.name", "$evt.$name"][..]),
        (
            "$cpu",
            &["cpu", "CPU", "cpu_id", "state.cpu", "$ctx.cpu_id"],
        ),
        ("$time", &["time", "timestamp", "Timestamp", "event.time"]),
        (
            "$procname",
            &[
                "procname",
                "process_name",
                "state.process_name",
                "$ctx.procname",
            ],
        ),
    ];
    for (pseudo, names) in aliases {
        for name in names {
            assert!(matches(&format!("{name} == {pseudo}")), "{name}");
        }
    }
}
