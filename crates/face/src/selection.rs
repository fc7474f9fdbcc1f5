//! The part of a trace that is asked for.

use event::{Cpu, Error, ErrorKind, Result, TimeRange};
use expr::Expr;
use trace::Trace;

/// The part of a trace that is asked for; the default is all of it.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Only items inside.
    pub range: TimeRange,
    /// Only events of these CPUs; empty means all.
    pub cpus: Vec<Cpu>,
    /// Only events that match, in the language of `docs/filter.md`.
    pub filter: Option<Expr>,
}

impl Default for Selection {
    fn default() -> Self {
        Selection {
            range: TimeRange::ALL,
            cpus: Vec::new(),
            filter: None,
        }
    }
}

impl Selection {
    /// Refuses what no event of `trace` can be.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for an empty range, [`ErrorKind::NotFound`] for a CPU that the
    /// trace does not have.
    pub(crate) fn check(&self, trace: &Trace) -> Result<()> {
        if self.range.begin >= self.range.end {
            return Err(
                Error::new(ErrorKind::InvalidInput, "the time range is empty")
                    .found(format!("from {} to {}", self.range.begin, self.range.end))
                    .fix("let begin lie before end"),
            );
        }
        let cpus = &trace.info().cpus;
        let Some(stranger) = self.cpus.iter().find(|cpu| !cpus.contains(cpu)) else {
            return Ok(());
        };
        let names: Vec<String> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
        let what = format!("the trace has no {stranger}");
        let error =
            Error::new(ErrorKind::NotFound, what).found(format!("CPUs {}", names.join(",")));
        Err(error.fix("choose among those"))
    }

    /// Whether events of a CPU are asked for.
    #[inline]
    pub(crate) fn wants_cpu(&self, cpu: Option<Cpu>) -> bool {
        self.cpus.is_empty() || cpu.is_some_and(|cpu| self.cpus.contains(&cpu))
    }
}
