//! Programs and libraries of processes that come while call stacks of programs are recorded.

use std::time::{Duration as StdDuration, Instant as StdInstant};

use ctf::writer::StreamWriter;
use event::Result;

use crate::clock;
use crate::kernel_trace::KernelTrace;
use crate::statedump::Programs;

/// How often it is looked for new ones.
const LOOK_PERIOD: StdDuration = StdDuration::from_millis(100);

/// Looks for them from a recording's begin to its end.
#[derive(Default)]
pub(crate) struct ProgramLog {
    programs: Programs,
    looked: Option<StdInstant>,
}

impl ProgramLog {
    /// Whether it is time to look again.
    pub fn is_due(&self) -> bool {
        self.looked.is_none_or(|at| at.elapsed() >= LOOK_PERIOD)
    }

    /// Looks, and writes down what is new: so many events.
    pub fn write(
        &mut self,
        trace: &KernelTrace,
        stream: &mut StreamWriter,
        is_last: bool,
    ) -> Result<u64> {
        let found = self.programs.look(is_last);
        self.looked = Some(StdInstant::now());
        trace.programs(stream, clock::monotonic(), &found)?;
        stream.gap()?;
        Ok(found.len() as u64)
    }
}
