//! Numbers of things, in words.

/// `1 hit`, `2 hits`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    counted_with(count, what, &format!("{what}s"))
}

/// The same for words whose plural has more than an s: `1 class`, `2 classes`.
pub(crate) fn counted_with(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}
