//! A value that a probe takes along.

/// A value as the kernel fetches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fetch {
    /// A register, a word of the stack, a constant: in the kernel's words.
    Plain(String),
    /// The number of an argument.
    Argument(usize),
    /// The task's name.
    Comm,
    /// What lies in memory so many bytes beyond an address.
    Memory(Box<Fetch>, i64),
}
