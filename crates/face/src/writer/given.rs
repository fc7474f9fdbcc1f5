//! What somebody gives for a field.

/// A value that somebody gives for a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Given<'a> {
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A float.
    Float(f64),
    /// A text.
    Text(&'a [u8]),
    /// Elements of a sequence of signed integers.
    SignedList(&'a [i64]),
    /// Elements of a sequence of unsigned integers.
    UnsignedList(&'a [u64]),
    /// Elements of a sequence of floats.
    FloatList(&'a [f64]),
}
