//! The period language: what is read, what is refused, what is printed.

use expr::period::{Captures, EventOf, EventPart, Period, PeriodCond, PeriodValue, Periods};
use expr::{CompareOp, FieldScope};

fn parse(text: &str) -> Period {
    Period::parse(text).unwrap_or_else(|error| panic!("{text}: {error:#}"))
}

#[test]
fn a_definition_reads_and_prints_with_all_its_parts() {
    let check = |text: &str, expect: &str| {
        let period = parse(text);
        assert_eq!(period.to_string(), expect, "{text}");
        assert_eq!(parse(expect), period, "{text}");
    };
    check(
        r#"switch : $evt.$name == "sched_switch""#,
        r#"switch : $evt.$name == "sched_switch" : $evt.$name == "sched_switch""#,
    );
    check(
        r#"irq(switch)
           : $evt.$name =* "irq_*_entry" && $evt.cpu_id == $parent.$begin.$evt.cpu_id
           : $evt.$name == "irq_handler_exit" && $evt.cpu_id == $begin.$evt.cpu_id"#,
        "irq(switch) : $evt.$name =* \"irq_*_entry\" && \
         $evt.cpu_id == $parent.$begin.$evt.cpu_id : \
         $evt.$name == \"irq_handler_exit\" && $evt.cpu_id == $begin.$evt.cpu_id",
    );
    check(
        ": $evt.$name == $begin.$evt.$name : $evt.$header.theid <= 231",
        ": $evt.$name == $begin.$evt.$name : $evt.$header.theid <= 231",
    );
    check(
        ": !($evt.a == 1 || $evt.b != -18.28) && $evt.c < 7.2e9 : $evt.$payload.a[1].b >= 25ms",
        ": !($evt.a == 1 || $evt.b != -18.28) && $evt.c < 7200000000.0 : \
         $evt.$payload.a[1].b >= 25000000ns",
    );
    check(
        r#"a : $evt.$pkt_ctx.x == "a\"b*" : !!$evt.y == 0x10"#,
        r#"a : $evt.$pkt_ctx.x == "a\"b*" : !(!($evt.y == 16))"#,
    );
}

#[test]
fn a_definition_is_a_tree_that_a_matcher_walks() {
    let period = parse("p : $evt.$ctx.vtid == 7 : $begin.$evt.x == $evt.$name");
    let PeriodCond::Compare(CompareOp::Equal, value, PeriodValue::Integer(7)) = &period.begin
    else {
        panic!("{:?}", period.begin);
    };
    let name = "vtid".to_owned();
    let scope = Some(FieldScope::Context);
    let steps = Vec::new();
    assert_eq!(value.part, EventPart::Field { scope, name, steps });
    let PeriodCond::Compare(_, left, PeriodValue::Event(right)) = &period.end else {
        panic!("{:?}", period.end);
    };
    assert_eq!((left.of, right.of), (EventOf::Begin, EventOf::Current));
}

#[test]
fn captures_have_an_alias_or_the_name_of_their_value() {
    let check = |text: &str, begin: &[&str], end: &[&str]| {
        let captures = Captures::parse(text).unwrap_or_else(|error| panic!("{text}: {error:#}"));
        let names = |list: &[expr::period::Capture]| -> Vec<String> {
            list.iter().map(|capture| capture.name.clone()).collect()
        };
        assert_eq!(names(&captures.begin), begin, "{text}");
        assert_eq!(names(&captures.end), end, "{text}");
        assert_eq!(
            Captures::parse(&captures.to_string()).ok(),
            Some(captures),
            "{text}"
        );
    };
    check(
        "irq : $evt.cpu_id, name = $evt.name : $evt.ret",
        &["$evt.cpu_id", "name"],
        &["$evt.ret"],
    );
    check("irq : e=$evt.$name", &["e"], &[]);
    check("irq : : $begin.$evt.$ctx.x", &[], &["$begin.$evt.$ctx.x"]);
    check("irq :", &[], &[]);
}

#[test]
fn definitions_fit_together_or_are_refused() {
    let switch = r#"switch : $evt.$name == "sched_switch""#;
    let irq = r#"irq(switch) : $evt.cpu_id == $parent.$begin.$evt.cpu_id"#;
    let none: [&str; 0] = [];
    let periods = Periods::parse(&[switch, irq, ": $evt.x == 1"], &["irq : $evt.irq"]);
    let periods = periods.expect("they fit");
    assert_eq!(periods.path(1), "switch/irq");
    assert_eq!(
        (periods.parent(0), periods.parent(1), periods.parent(2)),
        (None, Some(0), None)
    );
    assert_eq!(periods.list()[1].begin_captures.len(), 1);
    let check = |periods: &[&str], captures: &[&str], expect: &str| {
        let error = Periods::parse(periods, captures).expect_err(expect);
        assert_eq!(error.what(), expect);
        assert!(error.fixed_by().is_some(), "{expect}");
    };
    check(&[switch, switch], &none, "two periods are called 'switch'");
    check(&[irq], &none, "no period before this is called 'switch'");
    check(
        &[switch],
        &["irq : $evt.x"],
        "no period before this is called 'irq'",
    );
    check(
        &[switch],
        &["switch : $evt.x", "switch : $evt.y"],
        "the captures of 'switch' are given twice",
    );
    check(
        &[switch],
        &["switch : $parent.$begin.$evt.x"],
        "the period 'switch' has no parent",
    );
}
