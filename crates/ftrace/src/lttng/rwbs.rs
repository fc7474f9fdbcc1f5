//! The letters of a block request (`WFSM`) as the flags that LTTng writes.

/// LTTng's flags (lttng-modules, `instrumentation/events/block.h`).
const WRITE: u32 = 1 << 0;
const DISCARD: u32 = 1 << 1;
const READ: u32 = 1 << 2;
const RAHEAD: u32 = 1 << 3;
const SYNC: u32 = 1 << 5;
const META: u32 = 1 << 6;
const SECURE: u32 = 1 << 7;
const FLUSH: u32 = 1 << 8;
const FUA: u32 = 1 << 9;
const PREFLUSH: u32 = 1 << 10;

/// From the kernel's text (`blk_fill_rwbs`): an optional F (flush before), the operation, then
/// flags. Letters that LTTng has no flag for are left out.
pub(crate) fn flags(text: &[u8]) -> u32 {
    let end = text
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(text.len());
    let text = &text[..end];
    let (mut flags, rest) = match text {
        // An F before an operation is a flush before it; alone, or before another F, it is one.
        [b'F', b'W' | b'R' | b'D' | b'N', ..] => (PREFLUSH, &text[1..]),
        [b'F', b'F', ..] => (PREFLUSH, &text[1..]),
        _ => (0, text),
    };
    let (operation, rest) = match rest {
        [b'D', b'E', rest @ ..] => (DISCARD | SECURE, rest),
        [b'D', rest @ ..] => (DISCARD, rest),
        [b'W', rest @ ..] => (WRITE, rest),
        [b'R', rest @ ..] => (READ, rest),
        [b'F', rest @ ..] => (FLUSH, rest),
        [b'N', rest @ ..] => (0, rest),
        rest => (0, rest),
    };
    flags |= operation;
    for letter in rest {
        flags |= match letter {
            b'F' => FUA,
            b'A' => RAHEAD,
            b'S' => SYNC,
            b'M' => META,
            _ => 0,
        };
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_is_read_at_its_place() {
        let check = |text: &[u8], expect: u32| assert_eq!(flags(text), expect, "{text:?}");
        check(b"WS\0\0\0", WRITE | SYNC);
        check(b"RA", READ | RAHEAD);
        check(b"FWFSM", PREFLUSH | WRITE | FUA | SYNC | META);
        check(b"FF", PREFLUSH | FLUSH);
        check(b"F", FLUSH);
        check(b"DE", DISCARD | SECURE);
        check(b"D", DISCARD);
        check(b"N", 0);
        check(b"", 0);
    }
}
