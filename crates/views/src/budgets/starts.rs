//! Waits of threads in their start-ups, until it is known whether these end.

use std::collections::BTreeMap;

use kernel_state::ProcId;

use super::judge::End;

/// A wait for a CPU in a start-up.
#[derive(Debug)]
pub(super) struct Wait {
    pub since_ns: i64,
    pub end: End,
    /// Its thread, as it was called then.
    pub thread: (i32, String),
    /// The budgets that it is a sample of, by their places.
    pub budgets: Vec<usize>,
}

/// Those of all threads that have not slept so far, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Starts(BTreeMap<u32, Vec<Wait>>);

impl Starts {
    pub fn add(&mut self, process: ProcId, wait: Wait) {
        self.0.entry(process.0).or_default().push(wait);
    }

    /// A thread sleeps: its start-up was one.
    pub fn end(&mut self, process: ProcId) {
        self.0.remove(&process.0);
    }

    /// Those that are left, by thread.
    pub fn take(&mut self) -> impl Iterator<Item = Wait> + use<> {
        std::mem::take(&mut self.0).into_values().flatten()
    }
}
