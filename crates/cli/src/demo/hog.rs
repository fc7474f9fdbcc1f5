//! `hog`: a periodic real-time victim, and higher-priority hogs on its CPU.

use std::path::PathBuf;

use event::{Cpu, Result};
use serde::Serialize;

use super::part::Truth;
use super::process::{Part, PartSpec};
use crate::flags::PartRole;
use host::task::{self, StayOff};

/// Less urgent than every hog.
const VICTIM_PRIO: u32 = 20;
/// The first hog; the second is less urgent, so that it runs behind the first.
const HOG_PRIO: u32 = 70;
/// The decoy on the other CPU is more urgent than all, and yet innocent.
const DECOY_PRIO: u32 = 75;
/// Periods that the victim lives before and after the fault.
const QUIET_PERIODS: u32 = 20;

/// The experiment, decided.
#[derive(Clone, Debug)]
pub struct HogOptions {
    /// The program that plays the parts.
    pub program: PathBuf,
    /// Where the victim and the hogs run.
    pub cpu: Cpu,
    /// Where a decoy runs, which delays nobody.
    pub other_cpu: Cpu,
    /// The victim's process name.
    pub victim_name: String,
    /// The victim's period.
    pub period_us: u64,
    /// Process name and CPU time of each hog, in the order in which they run.
    pub hogs: Vec<(String, u64)>,
    /// An ordinary task that always wants the victim's CPU.
    pub decoy_low: bool,
    /// A real-time task more urgent than all, on the other CPU.
    pub decoy_other_cpu: bool,
}

/// What happened, from those who did it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HogTruth {
    /// The victim, with its worst activation.
    pub victim: Truth,
    /// The hogs in the order in which they ran.
    pub hogs: Vec<Truth>,
    /// Who ran and delayed nobody.
    pub decoys: Vec<Truth>,
}

/// The experiment while it runs; dropping it ends every part.
pub struct HogExperiment {
    victim: Part,
    hogs: Vec<Part>,
    busy: Option<Part>,
    bursts: Option<Part>,
    period_us: u64,
    _stay_off: StayOff,
}

impl HogExperiment {
    /// Starts every part; nothing bad happens yet. The calling thread stays off the
    /// CPU as long as the experiment lives.
    ///
    /// # Errors
    /// When a part cannot be started, or may not be what it is to be.
    pub fn start(options: &HogOptions) -> Result<Self> {
        let HogOptions {
            cpu,
            other_cpu,
            period_us,
            ..
        } = *options;
        let stay_off = task::stay_off(cpu)?;
        let part = |role, name: &str, cpu, prio, length_us| PartSpec {
            program: options.program.clone(),
            role,
            name: name.to_owned(),
            cpu,
            prio,
            round_robin: false,
            length_us,
        };
        let decoy_length_us = options.hogs.iter().map(|(_, length_us)| length_us).sum();
        let decoy = |wanted: bool, spec: PartSpec| {
            if wanted {
                Part::start(&spec).map(Some)
            } else {
                Ok(None)
            }
        };
        let hogs = (HOG_PRIO - 9..=HOG_PRIO)
            .rev()
            .zip(&options.hogs)
            .map(|(prio, hog)| Part::start(&part(PartRole::Hog, &hog.0, cpu, prio, hog.1)));
        Ok(HogExperiment {
            hogs: hogs.collect::<Result<_>>()?,
            busy: decoy(
                options.decoy_low,
                part(PartRole::Busy, "decoy-busy", cpu, 0, 0),
            )?,
            bursts: decoy(
                options.decoy_other_cpu,
                part(
                    PartRole::Bursts,
                    "decoy-bursts",
                    other_cpu,
                    DECOY_PRIO,
                    decoy_length_us,
                ),
            )?,
            // Last, so that nobody's start delays it.
            victim: Part::start(&part(
                PartRole::Victim,
                &options.victim_name,
                cpu,
                VICTIM_PRIO,
                period_us,
            ))?,
            period_us,
            _stay_off: stay_off,
        })
    }

    /// The victim's process.
    pub fn victim_pid(&self) -> u32 {
        self.victim.pid()
    }

    /// Lets the victim live in peace, lets the hogs loose, and waits until they are done and the
    /// victim has lived in peace again.
    ///
    /// # Errors
    /// When a part died.
    pub fn provoke(&mut self) -> Result<Vec<Truth>> {
        self.rest();
        // The hogs first: the decoy may keep us from our CPU.
        for part in self.hogs.iter_mut().chain(&mut self.bursts) {
            part.cue()?;
        }
        let truths = self.hogs.iter_mut().map(Part::truth).collect();
        self.rest();
        truths
    }

    /// Ends every part; `hogs` is what [`HogExperiment::provoke`] returned.
    ///
    /// # Errors
    /// When a part died.
    pub fn finish(self, hogs: Vec<Truth>) -> Result<HogTruth> {
        let victim = self.victim.stop()?;
        let mut decoys = Vec::new();
        if let Some(busy) = self.busy {
            decoys.push(busy.stop()?);
        }
        if let Some(bursts) = self.bursts {
            decoys.push(bursts.stop()?);
        }
        Ok(HogTruth {
            victim,
            hogs,
            decoys,
        })
    }

    fn rest(&self) {
        let period = std::time::Duration::from_micros(self.period_us);
        std::thread::sleep(period * QUIET_PERIODS);
    }
}
