//! An evaluation as JUnit's XML, for machines that collect tests: a case for each CPU.

use serde_json::Value;

use super::html::escaped;
use super::{cpu, threads, us};

/// A suite with a case for each thread: it fails when a sample broke the budget, and is skipped
/// when there was none or no sample was taken.
pub fn eval_junit(evaluation: &Value) -> String {
    let budget_ns = evaluation["budget_ns"].as_i64();
    let (mut failures, mut skipped) = (0, 0);
    let mut cases = String::new();
    for thread in threads(evaluation) {
        let inside = match (budget_ns, thread["max_ns"].as_i64()) {
            (None, _) => {
                skipped += 1;
                "<skipped message=\"no budget was given\"/>".to_owned()
            }
            (Some(_), None) => {
                skipped += 1;
                "<skipped message=\"no sample was taken\"/>".to_owned()
            }
            (Some(budget_ns), Some(max_ns)) if max_ns > budget_ns => {
                failures += 1;
                let (max, budget) = (us(&thread["max_ns"]), us(&evaluation["budget_ns"]));
                format!("<failure message=\"{max} us is more than {budget} us\"/>")
            }
            _ => String::new(),
        };
        let name = escaped(&cpu(thread));
        cases += &format!(
            "  <testcase classname=\"rtscope.eval\" name=\"latency on {name}\">{inside}\
             </testcase>\n"
        );
    }
    let seconds = evaluation["elapsed_ns"].as_f64().unwrap_or(0.0) / 1e9;
    let tests = threads(evaluation).len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rtscope.eval\" \
         tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\" time=\"{seconds:.3}\">\n\
         {cases}</testsuite>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_over_the_budget_fails_and_without_one_nothing_passes() {
        let mut evaluation = super::super::tests::sample();
        let check = |evaluation: &Value, expect: &str| {
            let text = eval_junit(evaluation);
            assert!(text.contains(expect), "{expect}: {text}");
        };
        check(
            &evaluation,
            "tests=\"2\" failures=\"1\" skipped=\"0\" time=\"10.000\"",
        );
        check(
            &evaluation,
            "<failure message=\"900.0 us is more than 5.0 us\"/>",
        );
        evaluation["budget_ns"] = Value::Null;
        check(&evaluation, "tests=\"2\" failures=\"0\" skipped=\"2\"");
    }
}
