//! Waits of packets as a table for people, and as JSON, schema rtscope.queuelat version 1.

use event::Cpu;
use measure::histogram::Histogram;
use measure::queue::Reading;
use serde_json::{Value, json};

use crate::cyclic::{carried, latency_json, us};
use crate::measured::Measured;

const SCHEMA: (&str, u32) = ("rtscope.queuelat", 1);

/// What packets found.
#[derive(Clone, Debug)]
pub struct Queue<'a> {
    /// The packets.
    pub reading: &'a Reading,
    /// Where they were sent and where read.
    pub cpus: (Cpu, Cpu),
    /// On what that rests.
    pub measured: Measured<'a>,
}

impl Queue<'_> {
    /// Whether a packet waited longer than it may, or never came.
    pub fn exceeded(&self) -> bool {
        let longest = self.reading.queued.extremes.map(|extremes| extremes.max);
        self.reading.lost > 0 || self.measured.is_over(longest)
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
            "a packet was lost or waited too long: sudo rtscope watch --task rtscope-read --over \
             DUR while it runs says why\n"
        }
        false => "",
    };
    text + &found.measured.foot()
}

/// Everything that was found.
pub fn queue_json(found: &Queue) -> Value {
    let reading = found.reading;
    let figures = json!({
        "exceeded": found.exceeded(),
        "sender_cpu": found.cpus.0.0,
        "reader_cpu": found.cpus.1.0,
        "sent": reading.sent,
        "lost": reading.lost,
        "unmeasured": reading.unmeasured,
        "waiting_max": reading.waiting_max,
        "queued": latency_json(&reading.queued),
        "whole": latency_json(&reading.whole),
    });
    found.measured.json(SCHEMA, figures)
}

#[cfg(test)]
mod tests {
    use event::Duration;
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
                measured: Measured::sample(over_us),
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
