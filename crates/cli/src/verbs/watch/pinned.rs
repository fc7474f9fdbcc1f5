//! What `--tui` shows of a watch: each hit with its ledger, and the histogram of all activations.

use capture::watch::Status;
use diagnosis::Diagnosis;
use event::Duration;

use crate::screen::Kind;

/// Lines that are shown below a hit.
const LINES_SHOWN: usize = 6;

/// The first line of a hit's text, and some of those below.
pub(super) fn lines(text: &str) -> (String, Vec<String>) {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().to_owned();
    let below = lines.take(LINES_SHOWN).map(|line| line.trim().to_owned());
    (first, below.collect())
}

/// What made a hit late, in the words by which causes are told apart.
pub(super) fn culprit(diagnosis: Option<&Diagnosis>) -> Option<String> {
    let group = diagnosis?.groups.first()?;
    Some(group.signature.clone())
}

/// The one row of the table.
pub(super) fn kind(status: &Status) -> Kind {
    let statistics = &status.statistics;
    let at = |quantile: f64| {
        let duration = statistics.quantile(quantile);
        duration.map_or("-".to_owned(), Duration::short)
    };
    let least = statistics.histogram.counts().next();
    let least = least.map_or("-".to_owned(), |(from, ..)| from.short());
    let mut octaves: Vec<(u32, u64)> = Vec::new();
    for (from, _, count) in statistics.histogram.counts() {
        let octave = from.as_ns_unsigned().max(1).ilog2();
        match octaves.last_mut() {
            Some((last, sum)) if *last == octave => *sum += count,
            _ => octaves.push((octave, count)),
        }
    }
    Kind {
        name: "activations".to_owned(),
        cells: vec![
            statistics.samples.to_string(),
            least,
            at(0.5),
            at(0.99),
            at(0.999),
            statistics.worst.short(),
            status.hits.to_string(),
        ],
        octaves,
    }
}

/// The last row.
pub(super) fn foot(status: &Status) -> String {
    let (statistics, seconds) = (&status.statistics, status.elapsed.as_ns() as f64 / 1e9);
    let lost = statistics.lost + statistics.dropped + statistics.unjudged();
    let share = status.cost.share() * 100.0;
    let held_back = statistics.suppressed;
    format!("{seconds:.0} s  in short {held_back}  lost {lost}  cost {share:.2} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_is_its_first_line_and_some_below() {
        let text = "\nlate by 3 ms\n\n  do: this\n  or: that\n";
        let below = vec!["do: this".to_owned(), "or: that".to_owned()];
        assert_eq!(lines(text), ("late by 3 ms".to_owned(), below));
        let long = "x\n".repeat(50);
        assert_eq!(lines(&long).1.len(), LINES_SHOWN);
        assert_eq!(lines(""), (String::new(), vec![]));
    }
}
