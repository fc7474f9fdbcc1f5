//! The score of a run: what became of each cell, as a table and a list of what fell short.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::judge::Answer;

/// One scenario on one kernel.
pub struct Judged {
    /// The kernel's name.
    pub kernel: String,
    /// The profile's name.
    pub profile: &'static str,
    /// Whether lengths count.
    pub exact: bool,
    /// The row of the table.
    pub scenario: String,
    /// What was found.
    pub answer: Answer,
}

/// All cells of a run.
#[derive(Default)]
pub struct Score {
    cells: Vec<Judged>,
}

/// What a line of the table adds up.
#[derive(Default)]
struct Line {
    right: usize,
    silent: usize,
    unexplained: usize,
    wrong: usize,
    inexact: usize,
    errors_ns: Vec<i64>,
}

impl Score {
    /// Adds a cell.
    pub fn add(&mut self, cell: Judged) {
        self.cells.push(cell);
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The table, a line for each profile and kernel and one for all, and below it each cell that
    /// fell short with its reason.
    pub fn text(&self) -> String {
        let mut lines: BTreeMap<(&str, &str), Line> = BTreeMap::new();
        for cell in &self.cells {
            let keys = [(cell.profile, cell.kernel.as_str()), ("all", "")];
            for key in keys {
                lines.entry(key).or_default().add(cell);
            }
        }
        let all = lines.remove(&("all", "")).unwrap_or_default();
        let mut text = String::from(
            "| profile | kernel | cells | right | silent, as it must be | unexplained | \
             wrong culprits | inexact | error median | error p99 |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        for ((profile, kernel), line) in &lines {
            text += &line.row(profile, kernel);
        }
        text += &all.row("all", "");
        for cell in &self.cells {
            if let Some(why) = cell.shortfall() {
                let Judged {
                    kernel,
                    profile,
                    scenario,
                    ..
                } = cell;
                writeln!(text, "- {scenario} ({profile}, {kernel}): {why}").ok();
            }
        }
        text
    }
}

impl Judged {
    /// Why the cell is not as it should be.
    fn shortfall(&self) -> Option<String> {
        let holds = self.answer.holds(self.exact);
        (!holds).then(|| match &self.answer {
            Answer::Wrong(sentence) => format!("WRONG CULPRIT: {sentence}"),
            Answer::Missed(why) => format!("unexplained: {why}"),
            other => format!("inexact: {other:?}"),
        })
    }
}

impl Line {
    fn add(&mut self, cell: &Judged) {
        match &cell.answer {
            Answer::Right { error_ns, .. } => {
                self.right += 1;
                self.inexact += usize::from(!cell.answer.holds(cell.exact));
                self.errors_ns.push(error_ns.abs());
            }
            Answer::Silent => self.silent += 1,
            Answer::Missed(_) => self.unexplained += 1,
            Answer::Wrong(_) => self.wrong += 1,
        }
    }

    fn row(&self, profile: &str, kernel: &str) -> String {
        let Line {
            right,
            silent,
            unexplained,
            wrong,
            inexact,
            ..
        } = self;
        let cells = right + silent + unexplained + wrong;
        let (median, p99) = (self.quantile(50), self.quantile(99));
        format!(
            "| {profile} | {kernel} | {cells} | {right} | {silent} | {unexplained} | {wrong} | \
             {inexact} | {median} | {p99} |\n"
        )
    }

    /// The error that so many percent of the right cells do not exceed.
    fn quantile(&self, percent: usize) -> String {
        let mut errors_ns = self.errors_ns.clone();
        errors_ns.sort_unstable();
        let place = (errors_ns.len() * percent).div_ceil(100).max(1) - 1;
        let error_ns = errors_ns.get(place);
        error_ns.map_or_else(
            || "–".to_owned(),
            |ns| format!("{:.1} µs", *ns as f64 / 1000.0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_counts_once_for_its_kernel_and_once_for_all() {
        let mut score = Score::default();
        let mut add = |profile, scenario: &str, answer| {
            score.add(Judged {
                kernel: "6.1".into(),
                profile,
                exact: profile == "exact",
                scenario: scenario.into(),
                answer,
            });
        };
        let right = |error_ns| Answer::Right {
            term_ns: 1,
            error_ns,
            allowed_ns: 5_000,
        };
        add("exact", "a", right(-1_000));
        add("exact", "b", right(9_000));
        add("causal", "c", right(9_000));
        add("exact", "d", Answer::Silent);
        add("exact", "e", Answer::Missed("why".into()));
        add("exact", "f", Answer::Wrong("so".into()));
        let text = score.text();
        for line in [
            "| causal | 6.1 | 1 | 1 | 0 | 0 | 0 | 0 | 9.0 µs | 9.0 µs |\n",
            "| exact | 6.1 | 5 | 2 | 1 | 1 | 1 | 1 | 1.0 µs | 9.0 µs |\n",
            "| all |  | 6 | 3 | 1 | 1 | 1 | 1 | 9.0 µs | 9.0 µs |\n",
            "- e (exact, 6.1): unexplained: why\n- f (exact, 6.1): WRONG CULPRIT: so\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(text.contains("- b (exact, 6.1): inexact"), "{text}");
        assert!(!text.contains("- c "), "{text}");
    }
}
