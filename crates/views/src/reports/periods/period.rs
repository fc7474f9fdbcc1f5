//! One period.

use crate::periods::Captured;

/// A period.
#[derive(Clone, Debug)]
pub(super) struct Period {
    pub def: usize,
    pub begin_ns: i64,
    pub end_ns: i64,
    pub completed: bool,
    pub parent: Option<usize>,
    /// Those that completed, in the order of their ends.
    pub children: Vec<usize>,
    pub begin_captures: Captured,
    pub end_captures: Captured,
}

impl Period {
    pub fn new(def: usize) -> Period {
        Period {
            def,
            begin_ns: 0,
            end_ns: 0,
            completed: false,
            parent: None,
            children: Vec::new(),
            begin_captures: Vec::new(),
            end_captures: Vec::new(),
        }
    }

    pub fn duration_ns(&self) -> i64 {
        self.end_ns - self.begin_ns
    }
}
