//! What filters match, subject by subject.

mod common;

use common::{IRQ, SWITCH, WORK, classes, irq, rename, switch, work};
use event::{ClassId, Cpu, Value};
use expr::{Expr, Filter, Program, Wants};

fn program(filter: &str) -> Program {
    let expr = Expr::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error:#}"));
    Program::compile(&expr, &classes()).expect("it compiles")
}

/// Whether the filter matches the work event.
fn check(filter: &str, expect: bool) {
    assert_eq!(program(filter).matches(&work(), None), expect, "{filter}");
}

#[test]
fn integers_compare_by_value_whatever_their_sign() {
    check("big == 18446744073709551615", true);
    check("big == 0xffffffffffffffff", true);
    check("big == -1", false);
    check("big > small", true);
    check("small < 0 && -1 == small", true);
    check("small == big", false);
    check("5 > small", true);
    check("big + 1 == 0", false);
    check("big + 1 > big", true);
    check("small == -01", true);
}

#[test]
fn floats_compare_exactly_with_floats_and_integers() {
    check("ratio == 0.5", true);
    check("ratio < 1 && ratio > 0", true);
    check("ratio == 5e-1", true);
    check("delay_us == 1500.0", true);
    check("delay_us < 1500.5", true);
    check("ratio * 2 == 1", true);
    check("big < 18446744073709551616.0", true);
}

#[test]
fn what_is_not_a_number_is_unequal_to_every_number() {
    let mut event = work();
    event.values[2] = Value::Float(f64::NAN);
    let check = |filter: &str, expect: bool| {
        assert_eq!(program(filter).matches(&event, None), expect, "{filter}");
    };
    check("ratio != 0.5 && ratio != ratio && ratio", true);
    check(
        "ratio == ratio || ratio < 1 || ratio >= 1 || ratio in (ratio, 1)",
        false,
    );
}

#[test]
fn arithmetic_and_bits_bind_tighter_than_comparisons() {
    check("2 & 2 == 2", true);
    check("delay_us & 0xff == 0xdc", true);
    check("1 + 2 * 3 == 7", true);
    check("(1 + 2) * 3 == 9", true);
    check("1 << 4 | 1 == 17", true);
    check("delay_us >> 2 == 375", true);
    check("~small == 0", true);
    check("7 ^ 2 == 5", true);
    check("-7 / 2 == -3 && -7 % 2 == -1", true);
    check("7 - 2 - 1 == 4", true);
    check("~0 & 0xff == 0xff", true);
}

#[test]
fn what_has_no_result_makes_its_comparison_false() {
    check("delay_us / 0 == 1", false);
    check("delay_us / 0 != 1", false);
    check("delay_us % (small + 1) != 1", false);
    check("1 << 64 != 0", false);
    check("delay_us << 64 != 0", false);
    check("delay_us << small != 0", false);
    check("ratio & 1 == 0", false);
    check("-((0 - (1 << 63)) * (1 << 63) * 2) != 0", false);
    check("(0 - (1 << 63)) * (1 << 63) * 2 < 0", true);
    check("!(delay_us / 0 == 1)", true);
}

#[test]
fn a_missing_field_makes_its_comparison_false_whatever_the_operator() {
    for op in ["==", "!=", "<", "<=", ">", ">="] {
        check(&format!("nothing {op} 1"), false);
        check(&format!("nothing + 1 {op} 1"), false);
        check(&format!("irq {op} delay_us"), false);
    }
    check("nothing == \"a\" || nothing != \"a\"", false);
    check("nothing in (1, 2) || nothing =* \"*\" || nothing", false);
    check("!(nothing == 1)", true);
}

#[test]
fn values_of_different_kinds_are_neither_equal_nor_unequal() {
    check("comm == 1", false);
    check("comm != 1", false);
    check("comm < delay_us", false);
    check("delay_us == \"1500\"", false);
    check("delay_us != \"1500\"", false);
    check("msg == 1 || msg != 1", false);
    check("comm + 1 == 1", false);
}

#[test]
fn texts_compare_by_bytes_and_a_star_is_anything() {
    check("comm == \"jackd\"", true);
    check("\"jackd\" == comm", true);
    check("comm != \"jack\"", true);
    check("comm == \"jack*\"", true);
    check("comm != \"jack*\"", false);
    check("comm == \"*c*d\"", true);
    check("comm == \"jack\\*\"", false);
    check("comm == \"jack?\"", false);
    check("comm < \"jackz\" && comm > \"jack\"", true);
    check("comm == \"\\x6aackd\"", true);
    check("$procname == \"worker\" && comm != $procname", true);
}

#[test]
fn patterns_are_shell_patterns_regular_expressions_or_parts() {
    check("comm =* \"j?ck[a-d]\"", true);
    check("comm =* \"jack\"", false);
    check("comm =~ \"^jack\"", true);
    check("comm =~ \"ack\"", true);
    check("comm matches \"^ack\"", false);
    check(r#"comm =~ "\w{5}""#, true);
    check("comm contains \"ack\"", true);
    check("comm contains \"\"", true);
    check("comm contains \"a*\"", false);
    check("$name =* \"app:*\" && $name contains \"work\"", true);
}

#[test]
fn an_enumeration_is_a_number_and_has_labels() {
    check("level == 12", true);
    check("level == \"HIGH\"", true);
    check("level != \"HIGH\"", false);
    check("level != \"LOW\"", true);
    check("level == \"NONE\"", false);
    check("level != \"NONE\"", true);
    check("level =* \"HI*\"", true);
    check("level == \"*\"", true);
    check("level contains \"G\"", true);
    check("level =~ \"^L\"", false);
    check("level in (\"LOW\", \"HIGH\")", true);
    check("level < \"LOW\"", false);
    check("level + 1 == 13", true);
    check(
        "msgs[1].level == \"HUGE\" && msgs[1].level == 0xffffffffffffffff",
        true,
    );
}

#[test]
fn members_elements_and_choices_are_reached() {
    check("msg.size == 4096 && msg.to == \"disk\"", true);
    check("msg.to =* \"d*\" && msg.to contains \"is\"", true);
    check("msgs[0].to == \"net\" && msgs[1].size == 2", true);
    check("msgs[2].size == 2 || msgs[2].size != 2", false);
    check("args[0] == 7 && args[1] == -8", true);
    check("args[2] == 0 || args[2] != 0", false);
    check("choice.number == 5", true);
    check("choice.word == \"x\" || choice.word != \"x\"", false);
    check("msg.size.more == 1 || comm[0] == 106", false);
    check("$payload.msgs[0].level == \"HIGH\"", true);
    check("`msg`.size > 1", true);
}

#[test]
fn a_field_is_present_or_not() {
    check("comm present && msg present && msgs[1].to present", true);
    check("nothing present || irq present || msgs[2] present", false);
    check("args[1] present && choice.number present", true);
    check("args[2] present || choice.word present", false);
    check(
        "$cpu present && $time present && $name present && $procname present",
        true,
    );
    check("$tid present", false);
}

#[test]
fn scopes_are_searched_in_order_or_named() {
    check("small == -1", true);
    check("$payload.small == -1", true);
    check("$ctx.small == 99", true);
    check("$evt.$ctx.small == 99 && $evt.small == -1", true);
    check(
        "$ctx.procname == \"worker\" && $stream_ctx.procname == \"worker\"",
        true,
    );
    check("$stream_ctx.small == 99", false);
    check(
        "$header.id == 1 || $pkt_header.magic == 1 || $pkt_ctx.cpu_id == 1",
        false,
    );
    check("$app.shop:till == 4", true);
    check("$ctx.cpu_id == 3", true);
}

#[test]
fn every_event_has_a_name_a_cpu_and_a_time() {
    check(
        "$name == \"app:work\" && $evt.$name == \"app:*\" && event.name == \"app:work\"",
        true,
    );
    check("$cpu == 3 && cpu == 3 && CPU == 3 && state.cpu == 3", true);
    check(
        "$time == 11.0025s && time < 12s && event.time >= 11s && timestamp == 11002500us",
        true,
    );
}

#[test]
fn a_duration_meets_the_unit_in_a_fields_name() {
    check("delay_us == 1500us", true);
    check("delay_us == 1500", true);
    check("delay_us > 1ms && delay_us <= 1.5ms", true);
    check(
        "1.5ms == delay_us && 1ms < delay_us && 2ms > delay_us",
        true,
    );
    check("1ms + delay_us == 2500us", true);
    check("delay_us * 2 == 3ms", true);
    check("delay_us + 500us == 2ms", true);
    check("-delay_us < 0s", true);
    check("delay_us - delay_us == 0ms", true);
    check("delay_us in (1ms, 1500us)", true);
    check("small + 1ms > 0s", true);
    check("delay_us == small + 1501ns", false);
}

#[test]
fn conditions_join_and_lists_hold_values() {
    check("!small || small == 5", false);
    check("!(small == 5) && small", true);
    check("small in (1, -1)", true);
    check("small in (1, 2)", false);
    check("comm in (\"bash\", \"jack*\")", true);
    check("delay_us in (msg.size, 1500)", true);
    check("(small == -1) & (ratio > 0) | (small == 7)", true);
    check("small = -1", true);
}

#[test]
fn classes_that_cannot_match_are_known_before() {
    let check = |filter: &str, expect: [Wants; 3]| {
        let program = program(filter);
        let wants = [SWITCH, IRQ, WORK].map(|class| program.wants(ClassId(class)));
        assert_eq!(wants, expect, "{filter}");
    };
    use Wants::{Always, Maybe, Never};
    check("$name == \"sched_switch\"", [Always, Never, Never]);
    check(
        "$name == \"sched_switch\" && next_tid == 5",
        [Maybe, Never, Never],
    );
    check("irq in (1, 2)", [Never, Maybe, Never]);
    check("$name =* \"*_*\" || $cpu == 0", [Always, Always, Maybe]);
    check("1 + 1 == 2", [Always, Always, Always]);
    check("irq present", [Never, Always, Never]);
    check("level == \"NONE\"", [Never, Never, Never]);
    check(
        "name == \"timer\" || name == \"sched_switch\"",
        [Always, Maybe, Never],
    );
    assert_eq!(program("irq").wants(ClassId(99)), Never);
}

#[test]
fn the_running_task_is_known_from_contexts_and_switches() {
    let expr = Expr::parse("$procname == \"hog\" && $tid == 7 && $prio == -61").expect("a filter");
    let mut filter = Filter::new(&expr, &classes()).expect("it compiles");
    assert!(filter.program().needs_tasks());
    let (hog, idle) = (("hog", 7, -61), ("swapper/0", 0, 20));
    assert!(
        !filter.matches(&irq(0, 1, "timer")),
        "nothing is known at the start"
    );
    assert!(!filter.matches(&switch(0, idle, hog)));
    assert!(filter.matches(&irq(0, 1, "timer")));
    assert!(!filter.matches(&irq(1, 1, "timer")), "another CPU");
    filter.lost(Some(Cpu(1)));
    assert!(filter.matches(&irq(0, 1, "timer")));
    filter.lost(Some(Cpu(0)));
    assert!(
        !filter.matches(&irq(0, 1, "timer")),
        "what was lost may have been a switch"
    );
    assert!(
        filter.matches(&switch(0, hog, idle)),
        "a switch is of the task that it takes away"
    );
    assert!(!filter.matches(&irq(0, 1, "timer")));
}

#[test]
fn a_running_task_is_called_as_it_calls_itself_since() {
    let expr = Expr::parse("$procname == \"hog\" && $tid == 7 && $prio == -61").expect("a filter");
    let mut filter = Filter::new(&expr, &classes()).expect("it compiles");
    let (nobody, idle) = (("nobody", 7, -61), ("swapper/0", 0, 20));
    filter.matches(&switch(0, idle, nobody));
    // One that another thread renames, and one that does not run.
    filter.matches(&rename(0, 8, "hog"));
    assert!(!filter.matches(&irq(0, 1, "timer")));
    assert!(!filter.matches(&rename(1, 7, "hog")), "nobody runs there");
    assert!(filter.matches(&irq(0, 1, "timer")), "renamed by another");
    filter.matches(&rename(0, 7, "other"));
    assert!(!filter.matches(&irq(0, 1, "timer")));
}

#[test]
fn a_filter_that_asks_for_no_task_follows_none() {
    assert!(!program("next_tid == 5").needs_tasks());
    assert!(!program("$name == \"app:work\" && $procname == \"x\"").needs_tasks());
    assert!(program("state.process_name == \"x\"").needs_tasks());
    assert!(program("tid == 5").needs_tasks());
}

#[test]
fn names_that_the_trace_does_not_have_are_noted() {
    let check = |filter: &str, expect: &[&str]| {
        let program = program(filter);
        let notes: Vec<String> = program
            .notes()
            .iter()
            .map(|note| format!("{}: {}", note.what(), note.fixed_by().unwrap_or_default()))
            .collect();
        assert_eq!(notes, expect, "{filter}");
    };
    check(
        "prev_tid == 5 && $name == \"sched_switch\" && tid == 7",
        &[],
    );
    check(
        "prev_pid == 5",
        &["no event of the trace has a field 'prev_pid': perhaps 'prev_tid' is meant"],
    );
    check(
        "$name == \"sched_swich\"",
        &["no event of the trace is called 'sched_swich': perhaps 'sched_switch' is meant"],
    );
    check(
        "$ctx.irq == 5",
        &[
            "no event of the trace has a field '$ctx.irq': the field is there, but in another \
             scope, or without this member",
        ],
    );
    check("$name == \"nothing*\" || name == \"timer\"", &[]);
}
