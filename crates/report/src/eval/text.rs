//! An evaluation as a table for people.

use serde_json::Value;

use super::{
    PERCENTILES, cpu, exceedances_sentence, explaining, interruptions, loads, parts, tail_sentence,
    threads, us, verdict_sentence,
};

/// The latencies of each CPU, what the run shows of the tail, the verdict, the doubts.
pub fn eval_text(evaluation: &Value) -> String {
    let mut text = String::new();
    if !threads(evaluation).is_empty() {
        text += &table(evaluation);
    }
    text += &format!("{}\n", verdict_sentence(evaluation));
    if let Some(sentence) = exceedances_sentence(evaluation) {
        text += &format!("{sentence}\n");
    }
    if let Some(sentence) = explaining::sentence(evaluation) {
        text += &format!("{sentence}\n");
    }
    for line in interruptions(evaluation) {
        text += &format!("{line}\n");
    }
    for line in parts::sentences(evaluation) {
        text += &format!("{line}\n");
    }
    for load in loads::loads(evaluation) {
        if let Some(done) = loads::done(load) {
            text += &format!("load {}: {done}\n", loads::name(load));
        }
    }
    for doubt in evaluation["machine"]["doubts"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let word = |key: &str| doubt[key].as_str().unwrap_or_default();
        text += &format!(
            "doubtful: {} ({}); {}\n",
            word("what"),
            word("found"),
            word("fix")
        );
    }
    for (what, value) in [
        ("machine", &evaluation["machine"]["identity"]["host"]),
        ("note", &evaluation["annotation"]),
    ] {
        if let Some(value) = value.as_str() {
            text += &format!("{what}: {value}\n");
        }
    }
    text
}

/// A row for each thread, and what its run shows of the tail.
fn table(evaluation: &Value) -> String {
    let mut text = format!("{:<8} {:>9} {:>8} {:>8}", "", "samples", "min", "mean");
    for (_, name) in PERCENTILES {
        text += &format!(" {name:>8}");
    }
    text += &format!(" {:>10}\n", "max");
    for thread in threads(evaluation) {
        let samples = thread["samples"].to_string();
        let (min, mean) = (us(&thread["min_ns"]), us(&thread["mean_ns"]));
        text += &format!("{:<8} {samples:>9} {min:>8} {mean:>8}", cpu(thread));
        for (_, name) in PERCENTILES {
            let value = us(&thread["percentiles"][name]["value_ns"]);
            text += &format!(" {value:>8}");
        }
        text += &format!(" {:>10}\n", us(&thread["max_ns"]));
    }
    text += "in us\n\n";
    for thread in threads(evaluation) {
        text += &format!("{}: {}\n", cpu(thread), tail_sentence(thread));
        if let Some(sentence) = explaining::plain_sentence(thread) {
            text += &format!("{}: {sentence}\n", cpu(thread));
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_and_what_was_missing_are_said() {
        let text = eval_text(&super::super::tests::sample());
        let expect = [
            "fail: the budget was 5.0 us; the longest was 900.0 us on CPU 1",
            "the load stress-ng did not run: there is no <stress-ng>",
            "doubtful: slow (governor <powersave>); be quick",
            "machine: robot <7>",
            "note: before <the> fix",
        ];
        for line in expect {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(!text.contains("taken from"), "{text}");
    }

    #[test]
    fn a_longest_sample_that_is_in_no_table_is_said_to_be_of_the_time_before() {
        let mut evaluation = super::super::tests::sample();
        evaluation["threads"][0]["plain"] = serde_json::json!({
            "samples": 40, "median_ns": 1_000, "p99_ns": null, "max_ns": 950_000,
        });
        let text = eval_text(&evaluation);
        let before = "before anything was watched";
        let verdict = format!("the longest was 950.0 us on CPU 0, {before}\n");
        assert!(text.contains(&verdict), "{text}");
        let figures = format!("CPU 0: 40 samples {before}: median 1.0 us, the longest 950.0 us");
        assert!(text.contains(&figures), "{text}");
        assert!(super::super::eval_html(&evaluation).contains(&figures));
        // A shorter one leaves the verdict with the table's.
        evaluation["threads"][0]["plain"]["max_ns"] = 4_000.into();
        let text = eval_text(&evaluation);
        assert!(
            text.contains("the longest was 900.0 us on CPU 1\n"),
            "{text}"
        );
    }

    #[test]
    fn a_thread_that_lost_its_cpu_is_named_by_it() {
        let mut evaluation = super::super::tests::sample();
        evaluation["threads"][1]["lost_cpu"] = true.into();
        evaluation["complete"] = false.into();
        let text = eval_text(&evaluation);
        let lost = "CPU 1 was taken from its thread (offline, or no longer allowed)\n\
                    the load stress-ng did not run: there is no <stress-ng>\n\
                    interrupted: what stands here was measured until then\n";
        assert!(text.contains(lost), "{text}");
    }
}
