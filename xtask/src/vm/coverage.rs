//! How many of the sections with interrupts or preemption off a watch sees, and how many of those
//! that it sees it names right: by length, and by the period of a probe timer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::claim::Claim;
use super::verdict::{self, Verdict};

/// As in `tests/vm/guest/coverage.sh`.
const PERIODS_US: &[i64] = &[1_000, 4_000, 16_000];
const TASK: &str = "lab-probe";
const OVER_US: i64 = 120;
/// The threads that run the sections, and what in them calls the injector.
const RUNNER: &str = "kworker/";
const RUNNERS_CALLER: &str = "process_one_work";
/// The table, beside the results.
const TABLE: &str = "coverage.md";

/// One section that was injected.
#[derive(Debug, PartialEq)]
struct Section {
    kind: &'static str,
    function: String,
    length_us: i64,
    span: (i64, i64),
}

/// What became of the sections of one kind, length and probe period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    injected: u32,
    /// A verdict names its function.
    right: u32,
    /// A verdict names the thread that ran it, on a kernel without full preemption, and no function
    /// or the one that called it: that thread came to no preemption point, whatever it ran.
    open: u32,
    /// A verdict accuses somebody else of a delay that it made.
    wrong: u32,
}

type Counts = BTreeMap<(&'static str, i64, i64), Count>;

/// Diagnoses all snapshots in `result` with `program`, and writes the table.
pub fn judge(result: &Path, program: &Path) -> Result<Vec<Claim>> {
    let mut counts = Counts::new();
    for &period_us in PERIODS_US {
        let folder = result.join(period_us.to_string());
        let truth = std::fs::read_to_string(folder.join("truth")).context("no truth")?;
        let over = format!("{OVER_US}us");
        verdict::diagnose(program, &folder, &["--task", TASK, "--over", &over])?;
        let verdicts = Verdict::all(&folder)?;
        for section in truth.lines().filter_map(section) {
            let key = (section.kind, section.length_us, period_us);
            counts.entry(key).or_default().add(&section, &verdicts);
        }
    }
    let table = table(&counts);
    std::fs::write(result.join(TABLE), &table)?;
    eprint!("{table}");
    Ok(claims(&counts))
}

impl Count {
    fn add(&mut self, section: &Section, verdicts: &[Verdict]) {
        self.injected += 1;
        let touched = verdicts.iter().filter(|v| v.overlaps(section.span));
        let accusing: Vec<&Verdict> = touched.filter(|v| v.is_conclusive()).collect();
        let names = |verdict: &&&Verdict| {
            let culprit = verdict.culprit();
            let function = culprit["function"].as_str().unwrap_or_default();
            culprit["kind"] == section.kind && function.starts_with(&section.function)
        };
        let is_runner = |verdict: &&&Verdict| {
            let culprit = verdict.culprit();
            let comm = culprit["task"]["comm"].as_str().unwrap_or_default();
            let function = culprit["function"].as_str().unwrap_or(RUNNERS_CALLER);
            culprit["kind"] == "preemption_off"
                && comm.starts_with(RUNNER)
                && function.starts_with(RUNNERS_CALLER)
        };
        if accusing.iter().any(|verdict| names(&verdict)) {
            self.right += 1;
        } else if accusing.iter().any(|verdict| is_runner(&verdict)) {
            self.open += 1;
        } else if !accusing.is_empty() {
            self.wrong += 1;
        }
    }
}

/// Reads `KIND FUNCTION CPU BEGIN_ns END_ns`. The length is that which was asked for: the section
/// itself is a little longer.
fn section(line: &str) -> Option<Section> {
    let words: Vec<&str> = line.split(' ').collect();
    let [kind, function, _, begin_ns, end_ns] = words[..] else {
        return None;
    };
    let kind = match kind {
        "irqoff" => "interrupts_off",
        "preemptoff" => "preemption_off",
        _ => return None,
    };
    let span: (i64, i64) = (begin_ns.parse().ok()?, end_ns.parse().ok()?);
    Some(Section {
        kind,
        function: function.to_owned(),
        length_us: (span.1 - span.0) / 100_000 * 100,
        span,
    })
}

/// A line for each kind and length, a column for each period: seen of injected.
fn table(counts: &Counts) -> String {
    let mut text = String::from("| section | length |");
    // Writing to a String cannot fail, here and below.
    for period_us in PERIODS_US {
        let _ = write!(text, " probe every {} ms |", period_us / 1_000);
    }
    text += "\n|---|---:|";
    text += &"---:|".repeat(PERIODS_US.len());
    let mut rows: Vec<(&str, i64)> = counts.keys().map(|(kind, us, _)| (*kind, *us)).collect();
    rows.dedup();
    for (kind, length_us) in rows {
        let _ = write!(text, "\n| {} | {length_us} us |", kind.replace('_', " "));
        for &period_us in PERIODS_US {
            let count = counts.get(&(kind, length_us, period_us));
            let count = count.copied().unwrap_or_default();
            let _ = write!(text, " {} of {} |", count.right, count.injected);
        }
    }
    text + "\n"
}

fn claims(counts: &Counts) -> Vec<Claim> {
    let wrong: u32 = counts.values().map(|count| count.wrong).sum();
    let right: u32 = counts.values().map(|count| count.right).sum();
    let injected: u32 = counts.values().map(|count| count.injected).sum();
    // A section that holds a whole period holds an expiry of the timer, early enough to be late.
    let whole = |(_, length_us, period_us): &(&str, i64, i64)| *length_us >= period_us + OVER_US;
    let missed = counts.iter().filter(|(key, _)| whole(key));
    let missed: u32 = missed
        .map(|(_, count)| count.injected - count.right - count.open)
        .sum();
    let open: u32 = counts.values().map(|count| count.open).sum();
    vec![
        (
            format!(
                "of {right} sections named, and {open} of which only the thread is, none is \
                 misnamed: {wrong} are"
            ),
            wrong == 0 && right > 0,
        ),
        (
            format!(
                "of {injected}, none that is longer than the probe's period is missed: {missed} are"
            ),
            missed == 0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_the_length_that_was_asked_for() {
        let read = section("irqoff lab_drain_fifo 0 1000000 1504321").unwrap();
        assert_eq!((read.kind, read.length_us), ("interrupts_off", 500));
        assert_eq!(section("hardirq lab_device 0 1 2"), None);
        assert_eq!(section("garbage"), None);
    }

    #[test]
    fn a_row_says_how_many_were_seen_with_each_probe() {
        let count = |right, wrong| Count {
            injected: 10,
            right,
            open: 0,
            wrong,
        };
        let counts = Counts::from([
            (("interrupts_off", 500, 1_000), count(6, 0)),
            (("interrupts_off", 500, 4_000), count(1, 1)),
            (("interrupts_off", 2_000, 1_000), count(9, 0)),
        ]);
        let text = table(&counts);
        assert!(text.contains("| interrupts off | 500 us | 6 of 10 | 1 of 10 | 0 of 0 |\n"));
        assert_eq!(text.lines().count(), 4);
        let holds: Vec<bool> = claims(&counts).iter().map(|(_, holds)| *holds).collect();
        assert_eq!(holds, [false, false]);
    }
}
