//! How much of a path is kept and listed, and how its steps are called.

use kernel_state::Kernel;

use super::path::What;

/// So much is kept of what threads did; a trace that holds more is walked over again for what was
/// before. As many as 80 MB.
pub(super) const NODES_MAX: usize = 4 << 20;

/// So many steps are listed, the last ones. All are summed up.
pub(super) const STEPS_MAX: usize = 50_000;

pub(super) fn what_text(kernel: &Kernel, what: What) -> String {
    match what {
        What::Runs => "runs".to_owned(),
        What::WaitsForCpu => "waits for a CPU".to_owned(),
        What::Blocked(Some(by)) => format!("blocked until {}", kernel.waker_text(by)),
        What::Blocked(None) => "blocked".to_owned(),
        What::Unknown => "unknown".to_owned(),
    }
}
