//! What each CPU does, stretch by stretch; followed only when a question wants it.

use super::waker::CpuWhat;
use super::{Change, Kernel, ProcId, Sink};

/// A CPU does this since then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stretch {
    what: CpuWhat,
    process: Option<ProcId>,
    since_ns: i64,
}

impl Kernel {
    /// Tells what a CPU did until now, if that is over.
    pub(super) fn settle<S: Sink>(&mut self, cpu: u32, sink: &mut S) {
        let Some(state) = self.cpus.get(cpu as usize) else {
            return;
        };
        let process = state.current;
        let task = || match process {
            Some(id) if self.processes.get(id).call.is_some() => CpuWhat::Call,
            Some(_) => CpuWhat::Task,
            None if state.switched => CpuWhat::Idle,
            None => CpuWhat::Unknown,
        };
        let what = state.handlers.what().unwrap_or_else(task);
        let before = state.stretch;
        if (before.what, before.process) == (what, process) {
            return;
        }
        self.cpus[cpu as usize].stretch = Stretch {
            what,
            process,
            since_ns: self.now_ns,
        };
        let change = Change::CpuStayed {
            cpu,
            what: before.what,
            process: before.process,
            since_ns: before.since_ns,
        };
        sink.change(self, &change);
    }

    /// What each CPU does now: its number, what, the task on it, since when.
    pub fn cpu_states(&self) -> impl Iterator<Item = (u32, CpuWhat, Option<ProcId>, i64)> {
        let seen = |(_, state): &(usize, &super::CpuState)| state.seen;
        let cpus = self.cpus.iter().enumerate().filter(seen);
        cpus.map(|(cpu, state)| {
            let Stretch {
                what,
                process,
                since_ns,
            } = state.stretch;
            (cpu as u32, what, process, since_ns)
        })
    }
}
