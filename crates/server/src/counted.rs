//! A counter that was walked for, kept for the next tiles that are asked for.

use timeline::Series;

/// The numbers of a counter.
pub(crate) struct Counted {
    pub(crate) series: Series,
    /// There are more.
    pub(crate) cut: bool,
    /// The least and the greatest.
    pub(crate) extent: Option<(i64, i64)>,
}
