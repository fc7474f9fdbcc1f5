//! The phases of a cyclic measurement: the kernel's side of it, from the crate that drives BPF.

use std::sync::Arc;

use bpf_host::PhaseProbe;
use event::{Duration, Result, Tid};
use measure::cyclic::{PhaseSource, Stamps};

use crate::options::CyclicOptions;

/// The programs that note instants, as the measuring threads see them.
#[derive(Debug)]
pub(super) struct Phases(PhaseProbe);

/// Starts them when phases were asked for.
///
/// # Errors
/// When this kernel, or our privileges, do not allow it.
pub(super) fn arm(options: &mut CyclicOptions) -> Result<Option<Arc<Phases>>> {
    if !options.phases {
        return Ok(None);
    }
    let phases = Arc::new(Phases(PhaseProbe::start()?));
    options.plan.phases = Some(phases.clone());
    Ok(Some(phases))
}

impl Phases {
    /// CPU time that they took, on all CPUs; none where the kernel does not count it.
    pub(super) fn cost(&self) -> Option<Duration> {
        let run_ns: u64 = self.0.costs().iter().map(|program| program.run_ns).sum();
        (run_ns > 0).then(|| Duration::from_ns(run_ns.cast_signed()))
    }
}

impl PhaseSource for Phases {
    fn follow(&self, number: usize, tid: Tid) -> Result<()> {
        self.0.follow(number, tid)
    }

    fn last(&self, number: usize) -> Stamps {
        let bpf_host::Stamps {
            entry_ns,
            wakeup_ns,
            switch_ns,
        } = self.0.last(number);
        Stamps {
            entry_ns,
            wakeup_ns,
            switch_ns,
        }
    }
}
