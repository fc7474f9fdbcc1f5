//! Waits of packets as a table for people, and as JSON, schema rtscope.queuelat version 1.

use event::{Cpu, Duration};
use measure::histogram::Histogram;
use measure::queue::Reading;
use serde_json::{Value, json};

use crate::cyclic::{carried, latency_json, us};

const SCHEMA: &str = "rtscope.queuelat";
const SCHEMA_VERSION: u32 = 1;

/// What packets found.
#[derive(Clone, Debug)]
pub struct Queue<'a> {
    /// The packets.
    pub reading: &'a Reading,
    /// Where they were sent and where read.
    pub cpus: (Cpu, Cpu),
    /// How long.
    pub elapsed: Duration,
    /// Whether that was as long as was asked.
    pub complete: bool,
    /// The longest that a packet may wait, when that was asked.
    pub over: Option<Duration>,
    /// The kernel's release, and how it preempts itself.
    pub kernel: (&'a str, &'a str),
    /// What makes the figures doubtful.
    pub warnings: &'a [String],
}

impl Queue<'_> {
    /// Whether a packet waited longer than it may, or never came.
    pub fn exceeded(&self) -> bool {
        let longest = self.reading.queued.extremes.map(|extremes| extremes.max);
        self.reading.lost > 0 || self.over.is_some_and(|over| longest > Some(over))
    }
}

/// A row for each way, and what it rests on.
pub fn queue_text(found: &Queue) -> String {
    let mut text = format!(
        "{:<27} {:>5} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9}\n",
        "a packet", "CPU", "samples", "min", "avg", "p50", "p99", "max"
    );
    let (sender, reader) = found.cpus;
    let mut row = |what: &str, latency: &Histogram| {
        let extremes = latency.extremes;
        text += &format!(
            "{what:<27} {:>5} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9}\n",
            format!("{}>{}", sender.0, reader.0),
            latency.samples,
            us(extremes.map(|extremes| extremes.min)),
            us(latency.mean()),
            us(carried(latency, 0.5)),
            us(carried(latency, 0.99)),
            us(extremes.map(|extremes| extremes.max)),
        );
    };
    row("  waits for its reader", &found.reading.queued);
    row("  from its sender to there", &found.reading.whole);
    let Reading {
        sent,
        lost,
        waiting_max,
        ..
    } = found.reading;
    text +=
        &format!("in us\n\n{sent} sent, {lost} lost; at most {waiting_max} waited behind one\n");
    text += match found.exceeded() {
        true => {
            "a packet waited too long: sudo rtscope watch --task rtscope-read --over DUR while it \
             runs says why\n"
        }
        false => "",
    };
    let (kernel, preemption) = found.kernel;
    let seconds = found.elapsed.as_ns() as f64 / 1e9;
    text += &format!("{seconds:.1} s, Linux {kernel}, preemption {preemption}\n");
    for warning in found.warnings {
        text += &format!("doubtful: {warning}\n");
    }
    text
}

/// Everything that was found.
pub fn queue_json(found: &Queue) -> Value {
    let reading = found.reading;
    json!({
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "complete": found.complete,
        "elapsed_ns": found.elapsed.as_ns(),
        "kernel": found.kernel.0,
        "preemption": found.kernel.1,
        "over_ns": found.over.map(Duration::as_ns),
        "exceeded": found.exceeded(),
        "sender_cpu": found.cpus.0.0,
        "reader_cpu": found.cpus.1.0,
        "sent": reading.sent,
        "lost": reading.lost,
        "unmeasured": reading.unmeasured,
        "waiting_max": reading.waiting_max,
        "queued": latency_json(&reading.queued),
        "whole": latency_json(&reading.whole),
        "warnings": found.warnings,
    })
}

#[cfg(test)]
mod tests {
    use measure::histogram::Recorder;

    use super::*;

    #[test]
    fn a_packet_that_is_lost_or_waits_too_long_exceeds() {
        let check = |lost: u64, over_us: Option<i64>, expect: bool| {
            let latency = Recorder::new(Duration::from_us(1), 100);
            latency.add(7_000);
            let reading = Reading {
                queued: latency.read(),
                whole: latency.read(),
                sent: 1 + lost,
                lost,
                unmeasured: 0,
                waiting_max: 3,
            };
            let found = Queue {
                reading: &reading,
                cpus: (Cpu(0), Cpu(1)),
                elapsed: Duration::from_ms(10),
                complete: true,
                over: over_us.map(Duration::from_us),
                kernel: ("6.18", "none"),
                warnings: &[],
            };
            assert_eq!(found.exceeded(), expect, "{lost} {over_us:?}");
            assert_eq!(queue_json(&found)["exceeded"], expect);
            assert_eq!(queue_text(&found).contains("too long"), expect);
        };
        check(0, None, false);
        check(0, Some(7), false);
        check(0, Some(6), true);
        check(1, None, true);
    }
}
