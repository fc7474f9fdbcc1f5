//! A file that the rules look at.

/// A source file: its path below the repository's root and its text.
pub struct Source<'a> {
    /// With `/` between the parts.
    pub path: &'a str,
    /// All of it.
    pub text: &'a str,
}
