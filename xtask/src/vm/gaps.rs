//! Gaps: what `measure hw`, hwlat and osnoise saw of the stalls of the emulator, and of a storm of
//! interrupts.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::claim::Claim;
use super::judge::spans;

/// Stalls while one of them looks.
const STALLS: usize = 8;
/// So many of them must be seen. A busy host has stalls of its own, and moves ours into the pauses
/// of whoever looks.
const SEEN_MIN: usize = 4;
/// What a gap may be longer than its stall: the host takes its time to go on with the emulator.
const LONGER_NS_MAX: i64 = 50_000_000;
/// And shorter than was asked for: the emulator's threads do not stop at the instant of the signal.
const SHORTER_NS_MAX: i64 = 2_000_000;
/// Of a stall's gap, at least so much must be put to the account of what lies below the kernel.
const BELOW_SHARE_MIN: f64 = 0.9;
/// A handler's length as seen over the one logged: the host may take the CPU in between.
const LONGER_FACTOR_MAX: i64 = 2;

/// How long a stall was to last, and did at most, in ns: whoever stops the emulator may not run at
/// once when it goes on.
type Stood = (i64, i64);

/// Compares `result/stood` and the files of the truth with what each of them wrote.
pub fn judge(result: &Path) -> Result<Vec<Claim>> {
    let read = |name: &str| {
        std::fs::read_to_string(result.join(name))
            .with_context(|| format!("the guest left no '{name}'"))
    };
    let stood = stalls(&read("stood")?)?;
    ensure!(
        stood.len() == 3 * STALLS,
        "{} stalls of {}",
        stood.len(),
        3 * STALLS
    );
    let json = |name: &str| -> Result<Value> { Ok(serde_json::from_str(&read(name)?)?) };
    let (ours, storm) = (json("stalls.json")?, json("storm.json")?);
    let osnoise = read("osnoise")?;
    let logged = |name: &str| -> Result<Vec<i64>> {
        let truth = read(name)?;
        Ok(spans(&truth).map(|(begin, end)| end - begin).collect())
    };
    let mut claims = Vec::new();
    let seen: [(&str, Vec<i64>); 3] = [
        ("measure hw", below(&ours)),
        ("hwlat", hwlat(&read("hwlat")?)),
        ("osnoise", samples(&osnoise)),
    ];
    for ((who, mut gaps), stood) in seen.into_iter().zip(stood.chunks(STALLS)) {
        claims.push(all_found(who, &mut gaps, stood));
    }
    let (to_us, to_osnoise) = (logged("truth")?, logged("truth-osnoise")?);
    let seen = noise(&storm, "lab_device");
    claims.push(handlers("measure hw", seen, &to_us));
    let seen = irq_noise(&osnoise, "lab_device");
    claims.push(handlers("osnoise", seen, &to_osnoise));
    Ok(claims)
}

/// How long the emulator was to stand, and did at most, each time.
fn stalls(text: &str) -> Result<Vec<Stood>> {
    let stood = |line: &str| {
        let (asked, most) = line.split_once(' ')?;
        Some((asked.parse().ok()?, most.parse().ok()?))
    };
    let all = text.lines().map(stood).collect::<Option<Vec<Stood>>>();
    all.context("the file of stalls is not ours")
}

/// Lengths of the gaps that lie below the kernel.
fn below(found: &Value) -> Vec<i64> {
    let of_gap = |gap: &Value| {
        let parts = gap["parts"].as_array()?.iter();
        let below = parts.filter(|part| part["taker"] == "below_kernel");
        let below_ns: i64 = below.filter_map(|part| part["duration_ns"].as_i64()).sum();
        let whole_ns = gap["duration_ns"].as_i64()?;
        (below_ns as f64 >= BELOW_SHARE_MIN * whole_ns as f64).then_some(whole_ns)
    };
    let gaps = found["gaps"].as_array().into_iter().flatten();
    gaps.filter_map(of_gap).collect()
}

/// Of lines like `#1 inner/outer(us): 3/60123 ts:…` the longer.
fn hwlat(trace: &str) -> Vec<i64> {
    let us = |line: &str| {
        let pair = line.split_once("inner/outer(us):")?.1;
        let (inner, outer) = pair.split_whitespace().next()?.split_once('/')?;
        let ns = |text: &str| Some(text.parse::<i64>().ok()? * 1_000);
        Some(ns(inner)?.max(ns(outer)?))
    };
    trace.lines().filter_map(us).collect()
}

/// Of lines like `sample_threshold: start 1.5 duration 60123456 ns interference 2`.
fn samples(trace: &str) -> Vec<i64> {
    let lines = trace
        .lines()
        .filter(|line| line.contains("sample_threshold:"));
    lines.filter_map(duration_ns).collect()
}

fn duration_ns(line: &str) -> Option<i64> {
    let words = line.split_once(" duration ")?.1;
    words.split_whitespace().next()?.parse().ok()
}

/// Number and sum of what an interrupt took.
type Taken = (i64, i64);

fn noise(found: &Value, name: &str) -> Taken {
    let rows = found["noise"].as_array().into_iter().flatten();
    let rows = rows.filter(|row| {
        row["taker"] == "hardirq" && row["name"].as_str().is_some_and(|own| own.contains(name))
    });
    let number = |row: &Value, key: &str| row[key].as_i64().unwrap_or(0);
    rows.fold((0, 0), |(gaps, total), row| {
        (gaps + number(row, "gaps"), total + number(row, "total_ns"))
    })
}

/// Of lines like `irq_noise: lab_device:24 start 1.5 duration 1000123 ns`.
fn irq_noise(trace: &str, name: &str) -> Taken {
    let lines = trace
        .lines()
        .filter(|line| line.contains(&format!("irq_noise: {name}:")));
    lines
        .filter_map(duration_ns)
        .fold((0, 0), |(count, total), ns| (count + 1, total + ns))
}

fn all_found(who: &str, gaps: &mut Vec<i64>, stood_ns: &[Stood]) -> Claim {
    let seen: Vec<Option<i64>> = stood_ns.iter().map(|stood| found(gaps, *stood)).collect();
    let count = seen.iter().flatten().count();
    let pairs = stood_ns.iter().zip(&seen);
    let pairs: Vec<String> = pairs
        .map(|((asked, most), seen)| match seen {
            Some(seen) => format!("{asked} to {most} ns as {seen} ns"),
            None => format!("{asked} to {most} ns not"),
        })
        .collect();
    let text = format!(
        "the machine stood, below the kernel; {who} sees {count} of {}: {}",
        stood_ns.len(),
        pairs.join(", ")
    );
    (text, count >= SEEN_MIN)
}

/// Takes the gap of a stall out of `gaps`: it is no other's.
fn found(gaps: &mut Vec<i64>, (asked_ns, most_ns): Stood) -> Option<i64> {
    let fits = (asked_ns - SHORTER_NS_MAX)..=(most_ns + LONGER_NS_MAX);
    let place = gaps.iter().position(|gap| fits.contains(gap))?;
    Some(gaps.remove(place))
}

fn handlers(who: &str, (count, total_ns): Taken, logged_ns: &[i64]) -> Claim {
    let (expect, sum_ns) = (logged_ns.len() as i64, logged_ns.iter().sum::<i64>());
    let text = format!(
        "{expect} interrupts of lab_device for {sum_ns} ns; {who} sees {count} for {total_ns} ns"
    );
    let holds =
        expect > 0 && count == expect && (sum_ns..=sum_ns * LONGER_FACTOR_MAX).contains(&total_ns);
    (text, holds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_gap_is_a_stalls_when_it_is_as_long_and_below_the_kernel() {
        let check = |gap_ns: i64, below_ns: i64, expect: bool| {
            let gap = json!({"duration_ns": gap_ns, "parts": [
                {"taker": "below_kernel", "duration_ns": below_ns},
                {"taker": "task", "duration_ns": gap_ns - below_ns}]});
            let mut gaps = below(&json!({ "gaps": [gap] }));
            let seen = found(&mut gaps, (60_000_000, 60_000_000));
            assert_eq!(seen.is_some(), expect, "{gap_ns} {below_ns}");
            assert_eq!(
                found(&mut gaps, (60_000_000, 60_000_000)),
                None,
                "one gap, two stalls"
            );
        };
        check(60_000_000, 60_000_000, true);
        check(70_000_000, 65_000_000, true);
        check(57_000_000, 57_000_000, false);
        check(111_000_000, 111_000_000, false);
        check(61_000_000, 50_000_000, false);
    }

    #[test]
    fn most_stalls_must_be_seen() {
        let check = |gaps: &[i64], expect: bool| {
            let (text, holds) = all_found(
                "hwlat",
                &mut gaps.to_vec(),
                &[(100_000_000, 107_000_000); STALLS],
            );
            assert_eq!(holds, expect, "{text}");
        };
        check(&[100_000_000; STALLS], true);
        check(&[100_000_000; SEEN_MIN], true);
        check(&[100_000_000, 100_000_000, 20_000_000], false);
    }

    #[test]
    fn the_tracers_words_are_read() {
        let hwlat_line = "<...>-55 [000] d..1. 9.1: #1 inner/outer(us): 3/60123 ts:12.5 count:1";
        assert_eq!(hwlat(hwlat_line), [60_123_000]);
        let osnoise = "osnoise/0-9 [000] d.h.. 9.1: sample_threshold: start 1.5 duration 60 ns \
                       interference 2\nosnoise/0-9 [000] d.h.. 9.2: irq_noise: lab_device:24 start \
                       1.5 duration 70 ns\nirq_noise: other:25 start 1.5 duration 80 ns";
        assert_eq!(samples(osnoise), [60]);
        assert_eq!(irq_noise(osnoise, "lab_device"), (1, 70));
    }

    #[test]
    fn every_handler_is_seen_with_its_length() {
        let check = |seen: Taken, expect: bool| {
            let (text, holds) = handlers("osnoise", seen, &[1_000, 1_000]);
            assert_eq!(holds, expect, "{text}");
        };
        check((2, 2_100), true);
        check((2, 1_900), false);
        check((3, 2_100), false);
        check((2, 4_100), false);
    }
}
