//! npt's loop under each tracer: a table of what it found, and in virtual time the worst that an
//! enabled event adds.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::claim::Claim;

/// In the order of the table; the first records nothing.
const TRACERS: [&str; 4] = ["none", "rtscope", "lttng", "lttng-timer"];
/// Virtual time of an instruction, where instructions are counted.
const INSTRUCTION_NS: f64 = 2.0;

/// What the loop found under a tracer.
struct Found {
    tracer: &'static str,
    /// All iterations.
    all: Value,
}

impl Found {
    fn read(result: &Path) -> Result<Vec<Found>> {
        let read = |tracer: &'static str| {
            let path = result.join(tracer).with_extension("json");
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            let all = serde_json::from_str(&text);
            let all = all.with_context(|| format!("{} is no JSON", path.display()))?;
            Ok(Found { tracer, all })
        };
        TRACERS.into_iter().map(read).collect()
    }

    /// Those that nothing hit.
    fn net(&self) -> &Value {
        &self.all["net_of_irqs"]
    }
}

fn figure(found: &Value, key: &str) -> f64 {
    found[key].as_f64().unwrap_or(f64::NAN)
}

/// The table of each tracer, and that nothing was lost.
pub fn judge(result: &Path) -> Result<Vec<Claim>> {
    let all = Found::read(result)?;
    std::fs::write(result.join("loops.md"), table(&all))?;
    Ok(all.iter().map(whole).collect())
}

/// The same, and the worst that an event adds to an iteration that nothing hit.
pub fn judge_exact(result: &Path) -> Result<Vec<Claim>> {
    let all = Found::read(result)?;
    let (text, worst) = worst(&all)?;
    std::fs::write(result.join("loops.md"), table(&all) + "\n" + &text)?;
    Ok(all.iter().map(whole).chain([worst]).collect())
}

/// What an event adds to the shortest iteration of the empty loop, as a table, and that ours adds
/// less than the peer's.
fn worst(all: &[Found]) -> Result<(String, Claim)> {
    let [none, events @ ..] = all else {
        bail!("no loop");
    };
    let empty_ns = figure(none.net(), "min_ns");
    let mut text = String::from(
        "| an event of | adds at least, ns | at most, ns | at most, instructions |\n\
         |---|---:|---:|---:|\n",
    );
    let mut most = Vec::new();
    for found in events {
        let [min_ns, max_ns] = ["min_ns", "max_ns"].map(|key| figure(found.net(), key) - empty_ns);
        let instructions = max_ns / INSTRUCTION_NS;
        let name = found.tracer;
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            text,
            "| {name} | {min_ns:.0} | {max_ns:.0} | {instructions:.0} |"
        );
        most.push(max_ns);
    }
    let [ours, writer, timer] = most[..] else {
        bail!("{} tracers", most.len());
    };
    let claim =
        format!("an event adds {ours:.0} ns at most, LTTng-UST's {writer:.0} or {timer:.0}");
    Ok((text, (claim, ours > 0.0 && ours < writer && ours < timer)))
}

fn whole(found: &Found) -> Claim {
    let (loops, net) = (figure(&found.all, "loops"), figure(found.net(), "loops"));
    let lost = found.all["lost"].as_u64().unwrap_or_default();
    (
        format!(
            "{}: {loops} iterations, {net} of them hit by nothing, {lost} events lost",
            found.tracer
        ),
        loops > 0.0 && net > 0.9 * loops && net <= loops && lost == 0,
    )
}

/// npt's figures, of all iterations and of those that nothing hit.
fn table(all: &[Found]) -> String {
    let mut text = String::from(
        "| npt under | min, ns | mean, ns | max, ns | std dev, ns | hit | max of the rest, ns |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for found in all {
        let [min, mean, max, deviation] =
            ["min_ns", "mean_ns", "max_ns", "deviation_ns"].map(|key| figure(&found.all, key));
        let hit = figure(&found.all, "loops") - figure(found.net(), "loops");
        let rest = figure(found.net(), "max_ns");
        let _ = writeln!(
            text,
            "| {} | {min:.1} | {mean:.1} | {max:.1} | {deviation:.1} | {hit} | {rest:.1} |",
            found.tracer
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// By the longest iteration that nothing hit under each tracer, and losses.
    fn check(max_ns: [f64; 4], lost: u64, expect: bool) {
        let found = |(tracer, max_ns): (&'static str, f64)| {
            let net = json!({"loops": 99, "min_ns": 10.0, "max_ns": max_ns});
            let all = json!({"loops": 100, "min_ns": 10.0, "lost": lost, "net_of_irqs": net});
            Found { tracer, all }
        };
        let all: Vec<Found> = TRACERS.into_iter().zip(max_ns).map(found).collect();
        let (text, worst) = worst(&all).expect("four tracers");
        assert!(text.contains("| rtscope | 0 |"), "{text}");
        let mut claims = all.iter().map(whole).chain([worst]);
        assert_eq!(claims.all(|(_, holds)| holds), expect, "{max_ns:?}");
    }

    #[test]
    fn the_worst_event_of_ours_is_shorter_than_both_of_lttngs() {
        check([10.0, 110.0, 900.0, 500.0], 0, true);
        check([10.0, 510.0, 900.0, 500.0], 0, false);
        check([10.0, 10.0, 900.0, 500.0], 0, false);
        check([10.0, 110.0, 900.0, 500.0], 1, false);
    }
}
