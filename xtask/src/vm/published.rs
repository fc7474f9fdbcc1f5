//! The published experiments: does the diagnosis tell what their authors found, with the numbers
//! that the guest knows?

use std::path::Path;

use anyhow::{Context, Result};

use super::claim::{Claim, fact};
use super::judge::spans;
use super::verdict::Verdict;

/// The tick of a kernel with CONFIG_HZ=250.
const TICK_US: i64 = 4_000;
/// How far a term may be from the whole run of the hog that it is due to.
const SHARE_OF_HOG_MIN: f64 = 0.95;

/// A hog at SCHED_RR 60 starves the thread of the sound card's interrupt.
pub fn jack(result: &Path) -> Result<Vec<Claim>> {
    let irq = fact(result, "irq")?;
    let folder = result.join("jack");
    let verdict = Verdict::first(&folder)?;
    // The kernel keeps fifteen letters of a name.
    let thread: String = format!("irq/{irq}-snd_hda_intel")
        .chars()
        .take(15)
        .collect();
    let mut claims = vec![claim(
        format!("interrupt {irq}, its thread's wake-up and switch, then jackd's"),
        verdict.has_steps(&[
            ("hardirq", &irq),
            ("waking", &thread),
            ("switch_in", &thread),
            ("waking", "jackd"),
            ("switch_in", "jackd"),
        ]),
    )];
    claims.extend(hog_is_named(&folder, &verdict)?);
    Ok(claims)
}

/// Packets go from the card's interrupt through its thread to the worker, and a hog is in the way.
pub fn memcached(result: &Path) -> Result<Vec<Claim>> {
    let irq = fact(result, "irq")?;
    let mut claims = Vec::new();
    for part in ["requests", "hog"] {
        let verdict = Verdict::first(&result.join(part))?;
        claims.push(packet_claim(part, &irq, &verdict));
    }
    let hog = result.join("hog");
    claims.extend(hog_is_named(&hog, &Verdict::first(&hog)?)?);
    Ok(claims)
}

/// A packet's chain waits for a CPU that a long interrupt of another driver has; and the handling
/// of a request for the device that its log goes to.
pub fn memcached_interrupt(result: &Path) -> Result<Vec<Claim>> {
    let irq = fact(result, "irq")?;
    let verdict = Verdict::first(&result.join("interrupt"))?;
    let logging = Verdict::first(&result.join("logging"))?;
    Ok(vec![
        packet_claim("logging", &irq, &logging),
        claim(
            format!("the log's device: {}", logging.sentence()),
            logging.is_conclusive() && logging.culprit()["kind"] == "block_io",
        ),
        packet_claim("interrupt", &irq, &verdict),
        claim(
            format!("the other driver's interrupt: {}", verdict.sentence()),
            verdict.is_conclusive() && verdict.culprit()["name"] == "lab_device",
        ),
    ])
}

fn packet_claim(part: &str, irq: &str, verdict: &Verdict) -> Claim {
    let steps = [
        ("hardirq", irq),
        ("softirq", "3"),
        ("waking", "mc-worker"),
        ("switch_in", "mc-worker"),
    ];
    claim(
        format!("{part}: interrupt {irq}, softirq NET_RX, mc-worker's wake-up and switch"),
        verdict.has_steps(&steps),
    )
}

/// A console that prints with interrupts off delays the tick; the verdict names its function.
pub fn printk(result: &Path) -> Result<Vec<Claim>> {
    let folder = result.join("printk");
    let truth = std::fs::read_to_string(folder.join("truth")).context("no truth")?;
    let (begin_ns, end_ns) = spans(&truth).next().context("no message was printed")?;
    let verdict = Verdict::first(&folder)?;
    let culprit = verdict.culprit();
    let function = culprit["function"].as_str().unwrap_or_default();
    let ticks = std::fs::read_to_string(folder.join("ticks")).context("no ticks")?;
    let ticks_us = instants_us(&ticks);
    let median_us = median_interval_us(&ticks_us);
    // An idle CPU has no tick: other intervals may be longer, and what lies before the message
    // counts for one tick at most.
    let since_us = begin_ns / 1_000 - TICK_US;
    let over = ticks_us.windows(2).filter(|pair| pair[0] < end_ns / 1_000);
    let over = over.filter(|pair| begin_ns / 1_000 < pair[1]);
    let over = over.map(|pair| pair[1] - pair[0].max(since_us));
    let over_us = over.max().unwrap_or(0);
    let message_us = (end_ns - begin_ns) / 1_000;
    Ok(vec![
        claim(
            format!("the console's function is named: {}", verdict.sentence()),
            verdict.is_conclusive()
                && culprit["kind"] == "interrupts_off"
                && function.starts_with("console_"),
        ),
        claim(
            format!(
                "of {} ticks the interval is {median_us} us",
                ticks.lines().count()
            ),
            (TICK_US - 50..=TICK_US + 50).contains(&median_us),
        ),
        claim(
            format!("and over the message of {message_us} us it is {over_us} us"),
            (message_us..=message_us + TICK_US + 200).contains(&over_us),
        ),
    ])
}

/// Lines that are instants in seconds, in whole microseconds.
fn instants_us(lines: &str) -> Vec<i64> {
    let seconds = lines.lines().filter_map(|line| line.parse::<f64>().ok());
    seconds
        .map(|instant| (instant * 1e6).round() as i64)
        .collect()
}

fn median_interval_us(instants_us: &[i64]) -> i64 {
    let mut intervals: Vec<i64> = instants_us
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect();
    intervals.sort_unstable();
    intervals.get(intervals.len() / 2).copied().unwrap_or(0)
}

/// The hog is the culprit, with at least 95 % of the time for which it really ran.
fn hog_is_named(folder: &Path, verdict: &Verdict) -> Result<Vec<Claim>> {
    let truth = std::fs::read_to_string(folder.join("truth")).context("no truth")?;
    let ran_ns = spans(&truth)
        .map(|(begin_ns, end_ns)| end_ns - begin_ns)
        .max()
        .context("the injector logged nothing")?;
    let culprit = verdict.culprit();
    let term_ns = verdict.culprit_ns();
    let share = term_ns as f64 / ran_ns as f64;
    Ok(vec![
        claim(
            format!("conclusively rt-hog at rt 60: {}", verdict.sentence()),
            verdict.is_conclusive()
                && culprit["task"]["comm"] == "rt-hog"
                && culprit["task"]["priority"] == "rt 60",
        ),
        claim(
            format!("the wait behind it, {term_ns} ns, is its run, {ran_ns} ns, within 5 %"),
            (SHARE_OF_HOG_MIN..=1.0 / SHARE_OF_HOG_MIN).contains(&share),
        ),
    ])
}

fn claim(text: String, holds: bool) -> Claim {
    (text, holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_interval_is_of_whole_microseconds() {
        let check = |lines: &str, expect: i64| {
            assert_eq!(median_interval_us(&instants_us(lines)), expect, "{lines}");
        };
        check("27.420010510\n27.424002\n27.428\n27.448\n", 3_998);
        check("27.4\n", 0);
        check("", 0);
    }
}
