//! What people read on stderr beside the results. Who has closed it, or whose disk is full, is told
//! nothing: the standard library's `eprintln!` panics there, and the verdict's exit code is lost.

use std::fmt::Arguments;
use std::io::Write as _;

/// As `eprintln!`, to whoever still reads.
macro_rules! note {
    ($($words:tt)*) => {
        $crate::note::text(format_args!("{}\n", format_args!($($words)*)))
    };
}

/// As `eprint!`, to whoever still reads.
macro_rules! note_text {
    ($($words:tt)*) => {
        $crate::note::text(format_args!($($words)*))
    };
}

/// Writes to stderr, and is content where that is refused.
pub fn text(words: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(words);
}
