//! How much of what is written again and again stays.

/// How many stay, and in how much room. The newest always does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// At most so many.
    pub count: usize,
    /// In so much room; none: only the count decides.
    pub bytes: Option<u64>,
}

impl Keep {
    /// All of them.
    pub const ALL: Keep = Keep {
        count: usize::MAX,
        bytes: None,
    };
}
