//! What `rtscope measure hw` was asked to do.

use std::path::PathBuf;

use event::{Cpu, Duration, Result};
use host::task::Policy;
use measure::counter::Counter;
use measure::gaps::Plan;
use report::Limits;

use super::{known_cpus, positive_duration};
use crate::flags;

/// Gaps that are kept with their time, each CPU.
const GAPS_MAX: usize = 100_000;

/// A search for gaps, decided.
#[derive(Clone, Debug)]
pub struct GapOptions {
    /// What to look for.
    pub plan: Plan,
    /// For how long.
    pub run_for: Duration,
    /// Whether the kernel's events are recorded, and where they are kept, if they are.
    pub events: Option<Option<PathBuf>>,
    /// What may be found.
    pub limits: Limits,
    /// JSON instead of the tables.
    pub json: bool,
}

impl GapOptions {
    /// From what was typed, on a machine with the CPUs `online`, of which we may use `allowed`,
    /// and this clocksource.
    ///
    /// # Errors
    /// For a word without a meaning, or a CPU that is not there.
    pub fn new(
        typed: &flags::Hw,
        online: &[Cpu],
        allowed: &[Cpu],
        clocksource: Option<&str>,
    ) -> Result<Self> {
        let listed = typed.cpu.as_ref().map(|text| known_cpus(text, online));
        let optional = |flag: &str, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| positive_duration(flag, text)).transpose()
        };
        let limits = Limits {
            budget: optional("--budget", &typed.budget)?,
            hard: optional("--hardlimit", &typed.hardlimit)?,
        };
        let over = positive_duration("--over", &typed.over)?;
        Ok(GapOptions {
            plan: Plan {
                cpus: listed.transpose()?.unwrap_or_else(|| allowed.to_vec()),
                policy: match typed.prio {
                    0 => Policy::Ordinary,
                    prio => Policy::Fifo(prio),
                },
                counter: Counter::choose(clocksource),
                threshold: limits.least().map_or(over, |least| over.min(least)),
                window: positive_duration("--window", &typed.window)?,
                width: positive_duration("--width", &typed.width)?,
                gaps_max: GAPS_MAX,
            },
            run_for: positive_duration("--for", &typed.length.run_for)?,
            events: (!typed.no_events).then(|| typed.output.clone()),
            limits,
            json: typed.json,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        hw: flags::Hw,
    }

    #[test]
    fn a_gap_that_breaks_a_limit_is_never_too_short_to_be_looked_for() {
        let check = |words: &str, expect_us: i64| {
            let words = std::iter::once("hw").chain(words.split_whitespace());
            let typed = Typed::try_parse_from(words).expect("understood").hw;
            let options = GapOptions::new(&typed, &[Cpu(0)], &[Cpu(0)], Some("tsc"));
            let found = options.expect("decided").plan.threshold;
            assert_eq!(found, Duration::from_us(expect_us), "{typed:?}");
        };
        check("", 10);
        check("--budget 20us", 10);
        check("--budget 5us", 5);
        check("--over 50us --hardlimit 20us", 20);
        check("--over 50us --hardlimit 20us --budget 30us", 20);
        check("--over 2us --budget 5us --no-events", 2);
    }
}
