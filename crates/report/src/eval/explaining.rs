//! What explaining late samples costs, by samples of the same run without it, and what a sample
//! says of a budget then.

use event::Duration;
use measure::cyclic::Reading;
use measure::tail;
use serde_json::{Value, json};

use super::workload::present;

/// What explaining added to samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// To the median, on the CPU where that is most.
    /// None where a side has too few samples for one.
    median: Option<Duration>,
    /// At most, where a sample was late and noted.
    hit: Duration,
}

impl Cost {
    /// By the same threads without explaining, and the late samples that were explained.
    pub(super) fn of(plain: &[Reading], explained: &[Reading], hits: &[Value]) -> Cost {
        let median = |reading: &Reading| tail::percentile(&reading.latency, 0.5);
        let pairs = plain.iter().zip(explained);
        let added = pairs
            .filter_map(|(plain, explained)| Some(median(explained)?.value - median(plain)?.value));
        let hit_ns = |hit: &Value| hit["hit"]["cost_ns"].as_i64();
        Cost {
            median: added.max().map(|most| most.max(Duration::ZERO)),
            hit: Duration::from_ns(hits.iter().filter_map(hit_ns).max().unwrap_or(0)),
        }
    }

    /// By so much a sample may be longer only because it is explained.
    pub(super) fn most(self) -> Duration {
        self.median.unwrap_or_default().max(self.hit)
    }

    /// With how long it was measured without.
    pub(super) fn json(self, plain_for: Duration) -> Value {
        json!({
            "plain_ns": plain_for.as_ns(),
            "median_ns": self.median.map(Duration::as_ns),
            "hit_ns": self.hit.as_ns(),
        })
    }
}

/// The samples of a thread without explaining.
pub(super) fn plain_json(reading: &Reading) -> Value {
    let latency = &reading.latency;
    let ns = |share: f64| tail::percentile(latency, share).map(|one| one.value.as_ns());
    json!({
        "samples": latency.samples,
        "median_ns": ns(0.5),
        "p99_ns": ns(0.99),
        "max_ns": latency.extremes.map(|extremes| extremes.max.as_ns()),
    })
}

/// What a thread's longest samples say of a budget: one without explaining that is longer breaks
/// it, one that was explained only where it is longer by more than that costs.
pub(super) fn keeps(
    budget: Duration,
    (plain, explained): (Option<&Reading>, &Reading),
    cost: Cost,
) -> &'static str {
    let max = |reading: &Reading| reading.latency.extremes.map(|extremes| extremes.max);
    let (plain, explained) = (plain.and_then(max), max(explained));
    let allowed = Duration::from_ns(budget.as_ns() + cost.most().as_ns());
    match explained {
        _ if plain.is_some_and(|longest| longest > budget) => "fail",
        Some(longest) if longest > allowed => "fail",
        Some(longest) if longest > budget => "inconclusive",
        Some(_) => "pass",
        None => "inconclusive",
    }
}

/// As a sentence, when something was measured without.
pub(super) fn sentence(evaluation: &Value) -> Option<String> {
    let found = present(&evaluation["explaining"])?;
    let us = |key: &str| super::units::us(&found[key]);
    let seconds = found["plain_ns"].as_f64().unwrap_or(0.0) / 1e9;
    let median = match found["median_ns"].is_null() {
        true => "nobody knows how much of the median, as there are too few samples".to_owned(),
        false => format!("{} us of the median", us("median_ns")),
    };
    Some(format!(
        "explaining took {median}, and up to {} us of a late sample, by {seconds:.1} s without it \
         in the same run",
        us("hit_ns"),
    ))
}

/// Whether the longest sample of a thread came while nothing was explained.
pub(super) fn is_longest_plain(thread: &Value) -> bool {
    thread["plain"]["max_ns"].as_i64() > thread["max_ns"].as_i64()
}

/// The figures of a thread's samples without explaining, which are in no table.
pub(super) fn plain_sentence(thread: &Value) -> Option<String> {
    let plain = present(&thread["plain"])?;
    // What so few samples do not carry is left out.
    let figures = [
        ("median", "median_ns"),
        ("p99", "p99_ns"),
        ("the longest", "max_ns"),
    ];
    let known = figures.iter().filter(|(_, key)| !plain[*key].is_null());
    let us = |key: &str| super::units::us(&plain[key]);
    let figure = |(name, key): &(&str, &str)| format!("{name} {} us", us(key));
    let known: Vec<String> = known.map(figure).collect();
    let colon = if known.is_empty() { "" } else { ": " };
    Some(format!(
        "{} samples before anything was watched{colon}{}",
        plain["samples"],
        known.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cyclic::tests::reading;

    #[test]
    fn what_explaining_costs_breaks_no_budget_and_passes_none() {
        let hit = |cost_us: i64| json!({"hit": {"cost_ns": cost_us * 1_000}});
        // Of each, most of the samples, of which a median is known, and the longest.
        let samples = |(most, longest): (i64, i64)| {
            let most = std::iter::repeat_n(most, 40);
            reading(most.chain([longest]))
        };
        let check = |plain: (i64, i64), explained: (i64, i64), hit_us: i64, expect: &str| {
            let (plains, explaineds) = ([samples(plain)], [samples(explained)]);
            let cost = Cost::of(&plains, &explaineds, &[hit(hit_us)]);
            let found = keeps(Duration::from_us(6), (plains.first(), &explaineds[0]), cost);
            assert_eq!(found, expect, "{plain:?} {explained:?} {cost:?}");
        };
        check((1, 2), (1, 5), 2, "pass");
        // Over by less than the hit itself took.
        check((1, 2), (1, 7), 2, "inconclusive");
        check((1, 2), (1, 9), 2, "fail");
        // The median is three longer: 8 would have been 5.
        check((1, 2), (4, 8), 0, "inconclusive");
        check((1, 2), (4, 10), 0, "fail");
        // Without explaining there is no excuse.
        check((1, 7), (1, 2), 9, "fail");
        let (plain, none) = (samples((1, 2)), reading([]));
        let found = keeps(Duration::from_us(6), (Some(&plain), &none), Cost::default());
        assert_eq!(found, "inconclusive");
    }

    #[test]
    fn a_median_that_no_sample_carries_is_no_cost_of_nothing() {
        let few = [reading([1, 2])];
        let found = Cost::of(&few, &[reading([5; 40])], &[]);
        let said = sentence(&json!({"explaining": found.json(Duration::from_ms(500))}));
        let said = said.expect("a sentence");
        assert!(said.contains("too few samples"), "{said}");
        let plain = plain_sentence(&json!({"plain": plain_json(&few[0])}));
        let expect = "2 samples before anything was watched: the longest 2.0 us";
        assert_eq!(plain.as_deref(), Some(expect));
    }

    #[test]
    fn without_a_plain_part_a_sample_is_what_it_is() {
        let explained = reading([1, 7]);
        let found = keeps(Duration::from_us(6), (None, &explained), Cost::default());
        assert_eq!(found, "fail");
        assert_eq!(sentence(&json!({"explaining": null})), None);
    }
}
