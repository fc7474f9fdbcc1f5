//! The longest of each phase of the last interval beside the bucket that has it: OpenMetrics'
//! exemplars, which say who was late and in which interval of the store.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::interval::{Interval, Worst};
use crate::task::Task;

/// The histograms of phases.
pub(crate) const FAMILY: &str = "rtscope_phase_seconds";
const BUCKETS: &str = "rtscope_phase_seconds_bucket{";
/// All labels of one together may have 128 letters.
const NAME_MAX: usize = 18;

/// The same metrics with exemplars; `last` is the interval that was closed last.
pub(crate) fn with_exemplars(told: &str, last: &Interval) -> String {
    let mut text = String::with_capacity(told.len() + 1024);
    let mut done = BTreeSet::new();
    for line in told.lines() {
        text += line;
        let labels = line
            .strip_prefix(BUCKETS)
            .and_then(|rest| rest.split_once("} "));
        if let Some((labels, _)) = labels {
            for (place, worst) in last.worst.iter().enumerate() {
                let series = [
                    format!("scope=\"{}\"", worst.scope.name()),
                    format!("phase=\"{}\"", worst.phase.name()),
                ];
                let seconds = worst.value.as_ns() as f64 / 1e9;
                let is_of = series
                    .iter()
                    .all(|label| labels.split(',').any(|l| l == label));
                // The bound belongs to the next bucket.
                if is_of && seconds < bound(labels) && done.insert(place) {
                    let at = worst.at_ns as f64 / 1e9;
                    let labels: Vec<_> = self::labels(last, worst)
                        .iter()
                        .map(|(name, value)| format!("{name}=\"{}\"", quoted(value)))
                        .collect();
                    let _ = write!(text, " # {{{}}} {seconds} {at:.3}", labels.join(","));
                }
            }
        }
        text.push('\n');
    }
    text
}

/// The upper bound of a bucket in seconds.
fn bound(labels: &str) -> f64 {
    let mut labels = labels.split(',');
    let le = labels.find_map(|label| label.strip_prefix("le=\"")?.strip_suffix('"'));
    match le {
        Some("+Inf") => f64::INFINITY,
        le => le.and_then(|le| le.parse().ok()).unwrap_or(0.0),
    }
}

/// Who was late, who had the CPU, and where that is told: which interval, which snapshot.
pub(crate) fn labels(last: &Interval, worst: &Worst) -> Vec<(&'static str, String)> {
    let short = |text: &str| text.chars().take(NAME_MAX).collect::<String>();
    let name = |task: &Option<Task>| {
        task.as_ref()
            .map_or_else(String::new, |task| short(&task.name))
    };
    let mut labels = vec![
        ("victim", name(&worst.victim)),
        ("running", name(&worst.culprit)),
        ("interval", last.head.begin_ns.to_string()),
    ];
    // The last part of its path is what `diagnose` is asked with.
    let late = last.late_of(worst);
    let path = late.and_then(|late| late.snapshot.as_deref());
    let snapshot = path.and_then(|path| path.rsplit('/').next());
    labels.extend(snapshot.map(|name| ("snapshot", short(name))));
    labels
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    escaped.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use event::Duration;

    use super::*;
    use crate::late::Late;
    use crate::test_data::sample;

    fn bucket(le: &str, phase: &str) -> String {
        format!("{BUCKETS}le=\"{le}\",scope=\"realtime\",phase=\"{phase}\"}} 3")
    }

    #[test]
    fn the_longest_stands_beside_the_first_bucket_that_has_it_and_nowhere_else() {
        let bounds = ["0.000004", "0.000005", "0.000006", "+Inf"];
        let lines = bounds
            .iter()
            .flat_map(|le| [bucket(le, "switch"), bucket(le, "timer")]);
        let told = lines.collect::<Vec<_>>().join("\n") + "\n# EOF\n";
        let mut last = sample(3);
        let check = |last: &Interval, le: &str, expect: &str| {
            let text = with_exemplars(&told, last);
            let with: Vec<_> = text.lines().filter(|line| line.contains(" # {")).collect();
            let line = format!("{} # {expect}", bucket(le, "switch"));
            assert_eq!(with, [line.as_str()], "{text}");
            assert!(text.ends_with("\n# EOF\n"));
        };
        let begin_ns = last.head.begin_ns;
        let names = |victim: &str| {
            format!("{{victim=\"{victim}\",running=\"task3\",interval=\"{begin_ns}\"}}")
        };
        // Five microseconds are not below that bound.
        check(
            &last,
            "0.000006",
            &format!("{} 0.000005 900.000", names("task7")),
        );
        last.worst[0].value = Duration::from_ms(7);
        check(&last, "+Inf", &format!("{} 0.007 900.000", names("task7")));
        let mut caught = last.clone();
        caught.add_late(Late {
            at_ns: last.worst[0].at_ns,
            victim: last.worst[0].victim.clone(),
            snapshot: Some("/s/hit-0001".to_owned()),
            ..Late::default()
        });
        let with = names("task7").replace('}', ",snapshot=\"hit-0001\"}");
        check(&caught, "+Inf", &format!("{with} 0.007 900.000"));
        if let Some(victim) = &mut last.worst[0].victim {
            victim.name = "a\"b\\".to_owned();
        }
        check(
            &last,
            "+Inf",
            &format!("{} 0.007 900.000", names("a\\\"b\\\\")),
        );
    }
}
