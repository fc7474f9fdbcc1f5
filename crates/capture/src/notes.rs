//! What a recording notes of the machine while it runs, beside its events: who joins those that are
//! tracked, whom quotas keep, what new processes have in their memory.

use std::process::Child;

use ctf::writer::StreamWriter;
use event::{Instant, Result, Tid};

use crate::clock;
use crate::kernel_trace::KernelTrace;
use crate::program_log::ProgramLog;
use crate::quotas::QuotaLog;
use crate::track::Tracker;

/// Those whose events alone are recorded, and where newcomers among them are written down.
pub(crate) struct Tracked<'r> {
    /// None where everybody's events are recorded.
    pub tracker: Option<Tracker<'r>>,
    /// None where nobody knows whom quotas keep.
    pub quotas: Option<QuotaLog>,
    /// None where nobody asks what lies in memory.
    pub programs: Option<ProgramLog>,
    /// Events of quotas and programs so far.
    pub told: u64,
    pub trace: &'r KernelTrace,
    pub dumped: &'r mut StreamWriter,
}

impl Tracked<'_> {
    pub fn look(&mut self) -> Result<()> {
        if let Some(quotas) = self.quotas.as_mut().filter(|quotas| quotas.is_due()) {
            self.told += quotas.write(self.trace, self.dumped)?;
        }
        if let Some(programs) = self.programs.as_mut().filter(|programs| programs.is_due()) {
            self.told += programs.write(self.trace, self.dumped, false)?;
        }
        let newcomers = self.tracker.as_mut().map(Tracker::newcomers);
        let newcomers = newcomers.transpose()?.unwrap_or_default();
        match newcomers.is_empty() {
            true => Ok(()),
            false => self.write(clock::monotonic(), &newcomers),
        }
    }

    /// A last look, once no more events come in. Gives how many events all looks wrote.
    pub fn end(&mut self) -> Result<u64> {
        if let Some(programs) = &mut self.programs {
            self.told += programs.write(self.trace, self.dumped, true)?;
        }
        let quotas = self.quotas.as_mut();
        let last = quotas.map(|quotas| quotas.write(self.trace, self.dumped));
        Ok(self.told + last.transpose()?.unwrap_or_default())
    }

    /// Says that what these do from `at` on is recorded.
    fn write(&mut self, at: Instant, tasks: &[Tid]) -> Result<()> {
        self.trace.tracked(self.dumped, (at, tasks))?;
        self.dumped.gap()
    }

    /// The same of the command, if it is meant.
    pub fn write_command(&mut self, at: Instant, command: &Child) -> Result<()> {
        match &self.tracker {
            Some(tracker) if tracker.has_command() => {
                self.write(at, &[Tid(command.id().cast_signed())])
            }
            _ => Ok(()),
        }
    }
}
