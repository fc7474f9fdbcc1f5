//! Bytes of programs as texts.

use std::fmt::Write as _;

/// What stands before the first zero byte.
pub(super) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Appends bytes, those that no text holds as C writes them. Readers show the others as they do in
/// any text: a new line is one here.
pub(super) fn escape(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        match byte {
            b'\n' | b'\t' | b'\r' | b' '..=b'~' => text.push(char::from(*byte)),
            // Writing to a String cannot fail. Two digits always: a letter may follow.
            other => drop(write!(text, "\\x{other:02x}")),
        }
    }
}
