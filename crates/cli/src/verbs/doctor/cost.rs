//! `--cost`: what watching and recording take from this machine, measured on it.

use std::fmt::Write as _;
use std::time::Duration;

use bpf_host::{MeasuredCost, Targets, WatchConfig, measure_cost};
use capture::EventCost;
use event::Result;
use host::capabilities::{Capabilities, Verb};
use serde_json::{Value, json};

/// Long enough for a hundred thousand calls of the busy programs.
const DURATION: Duration = Duration::from_secs(2);
/// For one figure of the busiest program.
const STACK_DURATION: Duration = Duration::from_secs(1);
/// The program that may take a stack.
const WAKING: &str = "sched_waking";
/// What runs meanwhile, so that the programs have something to do.
const LOAD: &str = "threads that wake each other through pipes, and a 1 kHz timer";

/// What was measured.
pub struct Costs {
    programs: Vec<MeasuredCost>,
    /// A wake-up of a target, with the waker's stack.
    waking_with_stack_ns: Option<f64>,
    event: EventCost,
}

impl Costs {
    /// Runs a watch on every task, without a hit, and then a recorder.
    ///
    /// # Errors
    /// When this machine allows no watch or no recording, and what they return.
    pub fn measure(capabilities: &Capabilities) -> Result<Costs> {
        capabilities.require(Verb::Watch)?;
        capabilities.require(Verb::Record)?;
        note!("measuring for {} s", (DURATION + STACK_DURATION).as_secs());
        let config = |waker_stacks| WatchConfig {
            targets: Targets::All,
            threshold: event::Duration::MAX,
            waker_stacks,
            ..WatchConfig::default()
        };
        let with_stacks = measure_cost(&config(true), STACK_DURATION, true)?;
        let waking = with_stacks
            .iter()
            .find(|cost| cost.program == WAKING && cost.changed);
        Ok(Costs {
            programs: measure_cost(&config(false), DURATION, true)?,
            waking_with_stack_ns: waking.map(|cost| cost.average_over_empty_ns),
            event: capture::measure_event_cost()?,
        })
    }

    /// Integers in nanoseconds.
    pub fn json(&self) -> Value {
        let program = |cost: &MeasuredCost| {
            json!({
                "program": cost.program,
                "changed": cost.changed,
                "calls": cost.calls,
                "calls_per_s": whole(cost.calls_per_s),
                "average_over_empty_ns": whole(cost.average_over_empty_ns),
                "p99_ns": cost.p99_ns,
                "max_ns": cost.max_ns,
            })
        };
        json!({
            "load": LOAD,
            "duration_ns": DURATION.as_nanos() as u64,
            "programs": self.programs.iter().map(program).collect::<Vec<_>>(),
            "changed_average_over_empty_ns": self.average_ns(true).map(whole),
            "unchanged_average_over_empty_ns": self.average_ns(false).map(whole),
            "waking_with_stack_over_empty_ns": self.waking_with_stack_ns.map(whole),
            "recorded_event": {
                "event": self.event.event,
                "rounds": self.event.rounds,
                "calls": self.event.calls,
                "median_ns": whole(self.event.median_ns),
                "least_ns": whole(self.event.least_ns),
                "most_ns": whole(self.event.most_ns),
            },
        })
    }

    /// A table, and what it comes to.
    pub fn text(&self) -> String {
        let mut text = format!(
            "\nwhat watching every task costs here\n  load: {LOAD}, for {} s\n\n\
             program                    state     calls/s  over empty      p99      max\n\
             {:44}        [ns]     [ns]     [ns]\n",
            DURATION.as_secs(),
            ""
        );
        // Writing to a String cannot fail, here and below.
        for cost in &self.programs {
            let state = if cost.changed { "changed" } else { "-" };
            let _ = writeln!(
                text,
                "{:26} {state:7} {:9.0}  {:10.0} {:8} {:8}",
                cost.program,
                cost.calls_per_s,
                cost.average_over_empty_ns,
                cost.p99_ns,
                cost.max_ns
            );
        }
        for (changed, what) in [(true, "changes state"), (false, "does not")] {
            if let Some(average_ns) = self.average_ns(changed) {
                let _ = writeln!(text, "a call that {what:13} costs {average_ns:4.0} ns");
            }
        }
        if let Some(stack_ns) = self.waking_with_stack_ns {
            let _ = writeln!(
                text,
                "a wake-up of a watched task, with its waker's stack, costs {stack_ns:.0} ns"
            );
        }
        text.push_str("p99 and max include the measuring, and what interrupted the program\n\n");
        let event = &self.event;
        let _ = writeln!(
            text,
            "one recorded event costs {:.0} ns ({:.0} to {:.0} ns in {} rounds of {} {})",
            event.median_ns, event.least_ns, event.most_ns, event.rounds, event.calls, event.event
        );
        text
    }

    /// The average over an empty program's, of all calls that changed state, or of all others.
    fn average_ns(&self, changed: bool) -> Option<f64> {
        let is_asked = |cost: &&MeasuredCost| cost.changed == changed && cost.program != "empty";
        let asked = || self.programs.iter().filter(is_asked);
        let calls: u64 = asked().map(|cost| cost.calls).sum();
        let total_ns: f64 = asked()
            .map(|cost| cost.average_over_empty_ns * cost.calls as f64)
            .sum();
        (calls > 0).then(|| total_ns / calls as f64)
    }
}

fn whole(value: f64) -> i64 {
    value.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Costs {
        let program = |program, changed, calls, average_over_empty_ns| MeasuredCost {
            program,
            changed,
            calls,
            calls_per_s: calls as f64 / 3.0,
            average_over_empty_ns,
            p99_ns: 200,
            max_ns: 9_000,
        };
        Costs {
            programs: vec![
                program("empty", false, 1_000, 0.0),
                program("sched_switch", true, 300, 80.0),
                program("sched_switch", false, 50, 20.0),
                program("sched_waking", true, 100, 40.0),
            ],
            waking_with_stack_ns: Some(1_400.0),
            event: EventCost {
                event: "task:task_rename".into(),
                rounds: 15,
                calls: 20_000,
                median_ns: 61.4,
                least_ns: 58.0,
                most_ns: 70.0,
            },
        }
    }

    #[test]
    fn averages_weigh_each_program_by_its_calls_and_leave_the_empty_one_out() {
        assert_eq!(costs().average_ns(true), Some(70.0));
        assert_eq!(costs().average_ns(false), Some(20.0));
        let none = Costs {
            programs: Vec::new(),
            ..costs()
        };
        assert_eq!(none.average_ns(true), None);
    }

    #[test]
    fn text_and_json_say_the_same_with_units() {
        let text = costs().text();
        assert!(text.contains("changes state costs   70 ns"), "{text}");
        assert!(
            text.contains("one recorded event costs 61 ns (58 to 70 ns"),
            "{text}"
        );
        let json = costs().json();
        assert_eq!(json["changed_average_over_empty_ns"], 70);
        assert_eq!(json["recorded_event"]["median_ns"], 61);
        assert_eq!(json["programs"][1]["p99_ns"], 200);
    }
}
