//! What a filter found, kept for the next rows that are asked for.

/// The rows, among all, of the events that match a filter.
pub(crate) struct Matches {
    /// In their order.
    pub(crate) rows: Vec<u32>,
    /// There are more.
    pub(crate) cut: bool,
}
