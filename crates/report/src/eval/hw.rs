//! What the search for gaps of an evaluation says of its budget: a CPU that was taken for longer
//! makes late whatever is due on it then, whether or not a sample was.

use event::Duration;
use serde_json::Value;

use super::units::us;

/// Why the budget is not proved: the longest gap over it. Throttling is the searching thread's own
/// doing, as it never sleeps, and while it is stopped nobody takes the CPU from it.
pub(super) fn complaint(hw: &Value, budget: Option<Duration>) -> Option<String> {
    let gaps = hw["gaps"].as_array().map_or(&[][..], Vec::as_slice);
    let longest = gaps.iter().max_by_key(|gap| taken_ns(gap))?;
    let taken_ns = taken_ns(longest);
    (taken_ns > budget?.as_ns()).then(|| {
        let (cpu, taken) = (&longest["cpu"], us(&taken_ns.into()));
        format!(
            "CPU {cpu} was taken for {taken} us while gaps were looked for ({}): what is due in \
             that is over the budget",
            most(longest)
        )
    })
}

fn parts(gap: &Value) -> impl Iterator<Item = &Value> {
    let parts = gap["parts"].as_array().into_iter().flatten();
    parts.filter(|part| part["taker"] != "throttled" && part["taker"] != "stopped")
}

fn part_ns(part: &Value) -> i64 {
    part["duration_ns"].as_i64().unwrap_or_default()
}

fn taken_ns(gap: &Value) -> i64 {
    parts(gap).map(part_ns).sum()
}

/// Who took most of it.
fn most(gap: &Value) -> &str {
    let most = parts(gap).max_by_key(|part| part_ns(part));
    most.and_then(|part| part["name"].as_str())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_gap_over_the_budget_is_told_with_its_taker_and_throttling_is_none() {
        let part = |(taker, us): &(&str, i64)| {
            let duration_ns = us * 1_000;
            json!({"taker": taker, "name": format!("the {taker}"), "duration_ns": duration_ns})
        };
        let gap = |parts: &[(&str, i64)]| {
            let parts: Value = parts.iter().map(part).collect();
            json!({"cpu": 1, "parts": parts})
        };
        let check = |gaps: &[Value], budget_us: Option<i64>, expect: Option<&str>| {
            let found = complaint(&json!({ "gaps": gaps }), budget_us.map(Duration::from_us));
            let is_told = match (&found, expect) {
                (Some(found), Some(expect)) => found.starts_with(expect),
                (found, expect) => found.is_none() && expect.is_none(),
            };
            assert!(is_told, "{gaps:?} {budget_us:?}: {found:?}");
        };
        let short = gap(&[("hardirq", 20)]);
        let long = gap(&[("hardirq", 20), ("below_kernel", 90)]);
        let expect = "CPU 1 was taken for 110.0 us while gaps were looked for (the below_kernel)";
        check(&[short.clone(), long.clone()], Some(100), Some(expect));
        check(&[short.clone(), long.clone()], Some(110), None);
        check(&[short, long], None, None);
        for own in ["throttled", "stopped"] {
            check(&[gap(&[(own, 50_000), ("nmi", 3)])], Some(100), None);
        }
        check(&[], Some(100), None);
        assert_eq!(complaint(&Value::Null, Some(Duration::from_us(1))), None);
    }
}
