//! Which causes made whom late, how often and for how long: the end of a watch, ranked.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use event::Duration;
use serde_json::{Value, json};

/// Rows that are printed; the others are counted.
const ROWS_MAX: usize = 10;
/// Pairs of a victim and a cause that are told apart; what comes later is one row.
const PAIRS_MAX: usize = 1000;
const OTHERS: &str = "others";

/// A task and what made it late.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    victim: String,
    cause: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    count: u64,
    /// Of these, so many whose cause is proven by a snapshot.
    exact: u64,
    total: Duration,
    worst: Duration,
}

/// All late activations of a watch, by victim and cause.
#[derive(Debug, Default)]
pub(super) struct Causes {
    tallies: BTreeMap<Pair, Tally>,
}

impl Causes {
    /// One more.
    pub fn add(&mut self, victim: &str, cause: &str, latency: Duration, exact: bool) {
        let pair = Pair {
            victim: victim.to_owned(),
            cause: cause.to_owned(),
        };
        let is_new = !self.tallies.contains_key(&pair);
        let pair = match is_new && self.tallies.len() >= PAIRS_MAX {
            true => Pair {
                victim: OTHERS.to_owned(),
                cause: OTHERS.to_owned(),
            },
            false => pair,
        };
        let tally = self.tallies.entry(pair).or_default();
        tally.count += 1;
        tally.exact += u64::from(exact);
        tally.total += latency;
        tally.worst = tally.worst.max(latency);
    }

    /// The most late time first.
    fn ranked(&self) -> Vec<(&Pair, &Tally)> {
        let mut ranked: Vec<_> = self.tallies.iter().collect();
        ranked.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.total));
        ranked
    }

    /// As a table; empty when nothing was late.
    pub fn text(&self) -> String {
        let ranked = self.ranked();
        let mut text = String::new();
        if ranked.is_empty() {
            return text;
        }
        // Writing to a String cannot fail, here and below.
        let head = ("count", "exact", "late time", "worst", "victim");
        let (count, exact, total, worst, victim) = head;
        let _ = writeln!(
            text,
            "{count:>7} {exact:>6} {total:>12} {worst:>12}  {victim:<15}  cause"
        );
        for (pair, tally) in ranked.iter().take(ROWS_MAX) {
            let (total, worst) = (tally.total.to_string(), tally.worst.to_string());
            let _ = writeln!(
                text,
                "{:>7} {:>6} {total:>12} {worst:>12}  {:<15}  {}",
                tally.count, tally.exact, pair.victim, pair.cause
            );
        }
        if ranked.len() > ROWS_MAX {
            let _ = writeln!(text, "and {} more", ranked.len() - ROWS_MAX);
        }
        text
    }

    /// The same rows, all of them.
    pub fn json(&self) -> Value {
        let row = |(pair, tally): &(&Pair, &Tally)| {
            json!({
                "victim": pair.victim,
                "cause": pair.cause,
                "count": tally.count,
                "exact": tally.exact,
                "total_ns": tally.total.as_ns(),
                "worst_ns": tally.worst.as_ns(),
            })
        };
        self.ranked().iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_ranked_by_their_late_time_and_each_victim_stands_for_itself() {
        let mut causes = Causes::default();
        causes.add("loop", "own work", Duration::from_ms(6), true);
        causes.add("loop", "own work", Duration::from_ms(5), true);
        causes.add("loop", "run_queue_wait:hog", Duration::from_ms(150), true);
        causes.add("gui", "own work", Duration::from_ms(1), false);
        let rows: Vec<_> = causes.ranked();
        let rows = rows.iter().map(|(pair, tally)| {
            let worst = tally.worst.as_ns() / 1_000_000;
            (
                pair.victim.as_str(),
                pair.cause.as_str(),
                tally.count,
                tally.exact,
                worst,
            )
        });
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [
                ("loop", "run_queue_wait:hog", 1, 1, 150),
                ("loop", "own work", 2, 2, 6),
                ("gui", "own work", 1, 0, 1),
            ]
        );
        assert_eq!(causes.text().lines().count(), 4);
        assert_eq!(Causes::default().text(), "");
    }

    #[test]
    fn a_flood_of_names_is_one_row() {
        let mut causes = Causes::default();
        for number in 0..2 * PAIRS_MAX {
            causes.add(
                &format!("task-{number}"),
                "own work",
                Duration::from_ms(1),
                true,
            );
        }
        assert_eq!(causes.ranked().len(), PAIRS_MAX + 1);
        let (others, tally) = causes.ranked()[0];
        assert_eq!(
            (others.victim.as_str(), tally.count),
            (OTHERS, PAIRS_MAX as u64)
        );
    }
}
