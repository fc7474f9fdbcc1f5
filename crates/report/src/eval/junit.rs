//! An evaluation as JUnit's XML, for machines that collect tests: a case for each CPU and each
//! load.

use serde_json::Value;

use super::{cpu, interruptions, loads, longest_ns, threads, us, workload};
use crate::xml::escaped;

/// How many cases ended in which way.
#[derive(Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

/// A suite with a case for each thread: it fails when a sample broke the budget, is in error when
/// that cannot be said, and is skipped without a budget. A load that was none is in error.
pub fn eval_junit(evaluation: &Value) -> String {
    let mut counts = Counts::default();
    let mut cases = String::new();
    let mut case = |name: String, inside: String| {
        cases += &format!(
            "  <testcase classname=\"rtscope.eval\" name=\"{}\">{inside}</testcase>\n",
            escaped(&name)
        );
    };
    for load in loads::loads(evaluation) {
        counts.tests += 1;
        let complaint = loads::complaint(load);
        counts.errors += usize::from(complaint.is_some());
        let inside = complaint.map(|why| message("error", &why));
        case(
            format!("load {}", loads::name(load)),
            inside.unwrap_or_default(),
        );
    }
    for thread in threads(evaluation) {
        counts.tests += 1;
        case(
            format!("latency on {}", cpu(thread)),
            judged(evaluation, thread, &mut counts),
        );
    }
    if !evaluation["workload"].is_null() {
        counts.tests += 1;
        let inside = judged_workload(evaluation, &mut counts);
        case("application".to_owned(), inside);
    }
    if counts.tests == 0 {
        (counts.tests, counts.errors) = (1, 1);
        case("latency".into(), message("error", "nothing was measured"));
    }
    let seconds = evaluation["elapsed_ns"].as_f64().unwrap_or(0.0) / 1e9;
    let Counts {
        tests,
        failures,
        errors,
        skipped,
    } = counts;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rtscope.eval\" \
         tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" \
         time=\"{seconds:.3}\">\n{cases}</testsuite>\n"
    )
}

/// What stands in the case of a thread: nothing when it passed.
fn judged(evaluation: &Value, thread: &Value, counts: &mut Counts) -> String {
    let (budget_ns, max_ns) = (evaluation["budget_ns"].as_i64(), longest_ns(thread));
    if thread["verdict"] == "fail" {
        counts.failures += 1;
        let (max, budget) = (us(&max_ns.into()), us(&evaluation["budget_ns"]));
        return message("failure", &format!("{max} us is more than {budget} us"));
    }
    let why = interruptions(evaluation);
    if max_ns.is_none() || !why.is_empty() {
        counts.errors += 1;
        let why = match max_ns {
            None => "no sample was taken".to_owned(),
            Some(_) => format!("nothing is proved: {}", why.join("; ")),
        };
        return message("error", &why);
    }
    if budget_ns.is_none() {
        counts.skipped += 1;
        return message("skipped", "no budget was given");
    }
    if thread["verdict"] != "pass" {
        counts.errors += 1;
        return message("error", "nothing is proved: too little was measured");
    }
    String::new()
}

/// What stands in the case of an application.
fn judged_workload(evaluation: &Value, counts: &mut Counts) -> String {
    let said = workload::sentence(evaluation).unwrap_or_default();
    let why = interruptions(evaluation);
    match evaluation["workload"]["verdict"].as_str() {
        Some("fail") => {
            counts.failures += 1;
            message("failure", &said)
        }
        _ if !why.is_empty() => {
            counts.errors += 1;
            message("error", &format!("nothing is proved: {}", why.join("; ")))
        }
        Some("pass") => String::new(),
        _ => {
            counts.skipped += 1;
            message("skipped", "no budget was given")
        }
    }
}

fn message(kind: &str, text: &str) -> String {
    format!("<{kind} message=\"{}\"/>", escaped(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_over_the_budget_fails_and_without_its_loads_or_a_budget_nothing_passes() {
        let mut evaluation = super::super::tests::sample();
        let check = |evaluation: &Value, expect: &str| {
            let text = eval_junit(evaluation);
            assert!(text.contains(expect), "{expect}: {text}");
        };
        let counts = "tests=\"3\" failures=\"1\" errors=\"2\" skipped=\"0\" time=\"10.000\"";
        check(&evaluation, counts);
        check(
            &evaluation,
            "<failure message=\"900.0 us is more than 5.0 us\"/>",
        );
        let missing = "<error message=\"the load stress-ng did not run: there is no \
                       &lt;stress-ng&gt;\"/>";
        check(&evaluation, missing);
        check(
            &evaluation,
            "name=\"latency on CPU 0\"><error message=\"nothing is proved: ",
        );
        // What a load said may be coloured; XML has no way to write that.
        evaluation["loads"][0]["why"] = "said \u{1b}[31mno".into();
        check(&evaluation, "did not run: said \u{fffd}[31mno\"/>");
        evaluation["loads"][0]["state"] = "ran".into();
        check(
            &evaluation,
            "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"0\"",
        );
        evaluation["complete"] = false.into();
        check(&evaluation, "failures=\"1\" errors=\"1\"");
        evaluation["complete"] = true.into();
        evaluation["budget_ns"] = Value::Null;
        for place in 0..2 {
            evaluation["threads"][place]["verdict"] = "none".into();
        }
        check(&evaluation, "failures=\"0\" errors=\"0\" skipped=\"2\"");
        check(&Value::Null, "tests=\"1\" failures=\"0\" errors=\"1\"");
    }
}
