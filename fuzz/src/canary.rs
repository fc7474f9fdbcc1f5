//! Bugs that were planted: a harness that does not find them finds nothing.

use crate::guard;

/// What ends a panic's canary.
const WORD: &[u8; 3] = b"rtf";

/// Panics when the input begins with a certain word: a byte at a time, so that coverage leads there
/// long before chance does.
pub fn panics(input: &[u8]) {
    let mut known = 0;
    if input.first() == Some(&WORD[0]) {
        known += 1;
        if input.get(1) == Some(&WORD[1]) {
            known += 1;
            if input.get(2) == Some(&WORD[2]) {
                panic!("the planted bug");
            }
        }
    }
    std::hint::black_box(known);
}

/// Believes a length: more memory than a run may have.
pub fn hoards(input: &[u8]) {
    if let [b'L', low, high, ..] = input {
        let length = usize::from(u16::from_le_bytes([*low, *high])) << 13;
        std::hint::black_box(Vec::<u8>::with_capacity(length));
    }
}

/// Goes around in a circle, as long as a run may and a little longer.
pub fn loops(input: &[u8]) {
    if input.starts_with(b"X\0") {
        let begin_ms = guard::cpu_ms();
        while guard::cpu_ms() < begin_ms + guard::RUN_MS_MAX + 100 {
            std::hint::spin_loop();
        }
    }
}
