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
        Ok(GapOptions {
            plan: Plan {
                cpus: listed.transpose()?.unwrap_or_else(|| allowed.to_vec()),
                policy: match typed.prio {
                    0 => Policy::Ordinary,
                    prio => Policy::Fifo(prio),
                },
                counter: Counter::choose(clocksource),
                threshold: positive_duration("--over", &typed.over)?,
                window: positive_duration("--window", &typed.window)?,
                width: positive_duration("--width", &typed.width)?,
                gaps_max: GAPS_MAX,
            },
            run_for: positive_duration("--for", &typed.length.run_for)?,
            events: (!typed.no_events).then(|| typed.output.clone()),
            limits: Limits {
                budget: optional("--budget", &typed.budget)?,
                hard: optional("--hardlimit", &typed.hardlimit)?,
            },
            json: typed.json,
        })
    }
}
