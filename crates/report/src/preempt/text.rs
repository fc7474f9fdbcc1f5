//! The three experiments as tables for people.

use measure::histogram::Histogram;
use measure::preempt::messages::Between;

use super::Preempt;
use crate::cyclic::{carried, us};

/// The quantiles of a row.
const SHOWN: [(f64, &str); 2] = [(0.5, "p50"), (0.99, "p99")];

/// What each step, lock and message took, then what is wrong, and what it rests on.
pub fn preempt_text(preempt: &Preempt) -> String {
    let mut text = String::new();
    let findings = preempt.findings;
    if !findings.chains.is_empty() {
        text += &heading("woken by a less urgent one", "not at once");
        for chain in &findings.chains {
            for step in &chain.steps {
                let what = format!("fifo {} by fifo {}", step.wakee_prio, step.waker_prio);
                text += &row(
                    &what,
                    &chain.cpu.0.to_string(),
                    &step.latency,
                    step.not_at_once,
                );
            }
        }
    }
    if let Some((protocol, locks)) = &findings.locks {
        text += &heading("waits for a lock", "inversions");
        for lock in locks {
            let what = format!("mutex, {}", protocol.name());
            text += &row(&what, &lock.cpu.0.to_string(), &lock.wait, lock.inversions);
        }
    }
    if !findings.messages.is_empty() || !findings.absent.is_empty() {
        text += &heading("gets a message", "lost");
        for one in &findings.messages {
            let cpus = format!("{}>{}", one.sender.0, one.receiver.0);
            let what = match one.between {
                Between::Threads => one.mechanism.name().to_owned(),
                Between::Processes => format!("{}, process", one.mechanism.name()),
            };
            text += &row(&what, &cpus, &one.latency, one.lost.into());
        }
        for (name, why) in &findings.absent {
            text += &format!("{name:<29} skipped: {why}\n");
        }
    }
    text + &verdict(preempt) + &basis(preempt)
}

fn heading(what: &str, last: &str) -> String {
    let gap = |(_, name): (f64, &str)| format!(" {name:>8}");
    let quantiles: String = SHOWN.map(gap).concat();
    format!(
        "{what:<29} {:>5} {:>8} {:>8} {:>8}{quantiles} {:>9} {last:>12}\n",
        "CPU", "samples", "min", "avg", "max"
    )
}

fn row(what: &str, cpu: &str, latency: &Histogram, last: u64) -> String {
    let extremes = latency.extremes;
    let quantile = |(share, _): (f64, &str)| format!(" {:>8}", us(carried(latency, share)));
    let quantiles: String = SHOWN.map(quantile).concat();
    format!(
        "  {what:<27} {cpu:>5} {:>8} {:>8} {:>8}{quantiles} {:>9} {last:>12}\n",
        latency.samples,
        us(extremes.map(|extremes| extremes.min)),
        us(latency.mean()),
        us(extremes.map(|extremes| extremes.max)),
    )
}

fn verdict(preempt: &Preempt) -> String {
    let defects = preempt.findings.defects();
    let mut text = String::from("in us\n\n");
    if defects.is_empty() && preempt.complete {
        text += "the urgent one ran at once, every time\n";
    }
    for defect in defects {
        text += &format!(
            "defect: {}\n  found: {}\n  fix:  {}\n",
            defect.what, defect.found, defect.fix
        );
    }
    if let (Some(over), Some(longest)) = (preempt.over, preempt.longest())
        && preempt.exceeded()
    {
        text += &format!("exceeded: {longest} is more than {over}\n");
    }
    if !preempt.complete {
        text += "interrupted: what stands here was measured until then\n";
    }
    text
}

fn basis(preempt: &Preempt) -> String {
    let seconds = preempt.elapsed.as_ns() as f64 / 1e9;
    let (kernel, preemption) = (preempt.kernel, preempt.preemption);
    let mut text = format!("{seconds:.1} s, Linux {kernel}, preemption {preemption}\n");
    for warning in preempt.warnings {
        text += &format!("doubtful: {warning}\n");
    }
    text
}
