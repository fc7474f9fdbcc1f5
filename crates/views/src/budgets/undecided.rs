//! Wake-ups whose length is not certain when their thread is scheduled in, as it was moved before.

use kernel_state::ProcId;

/// One of them.
#[derive(Debug)]
pub(super) struct Undecided {
    pub process: ProcId,
    pub woken_ns: i64,
    pub at_ns: i64,
    /// The budgets that it is a sample of, by their places.
    pub budgets: Vec<usize>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct AllUndecided(Vec<Undecided>);

impl AllUndecided {
    /// A thread that was moved is scheduled in.
    pub fn add(&mut self, wait: Undecided) {
        self.0.push(wait);
    }

    /// It is known whether it ran before.
    pub fn take(&mut self, process: ProcId, at_ns: i64) -> Option<Undecided> {
        let is_it = |wait: &Undecided| wait.process == process && wait.at_ns == at_ns;
        let place = self.0.iter().position(is_it)?;
        Some(self.0.swap_remove(place))
    }
}
