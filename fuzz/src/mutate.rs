//! Changes of an input that do not know what it means.

use crate::random::Random;

/// No input grows larger.
pub const INPUT_BYTES_MAX: usize = 64 << 10;
/// Changes of one input at once.
const CHANGES_MAX: usize = 6;
/// Numbers at which readers tend to turn.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    7,
    8,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 32,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// Changes `input` in a few places; `others` are inputs to take pieces from, `words` belong to the
/// reader's language.
pub fn mutate(input: &mut Vec<u8>, others: &[Vec<u8>], words: &[&[u8]], random: &mut Random) {
    // One change as often as several: what was reached is easily lost again.
    for _ in 0..CHANGES_MAX {
        change(input, others, words, random);
        if random.one_in(2) {
            break;
        }
    }
    input.truncate(INPUT_BYTES_MAX);
}

fn change(input: &mut Vec<u8>, others: &[Vec<u8>], words: &[&[u8]], random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(10) {
        0 => flip_bit(input, at, random),
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.bits() as u8;
            }
        }
        2 | 3 => put_number(input, at, random),
        4 => {
            let end = (at + 1 + random.below(32)).min(input.len());
            input.drain(at.min(end)..end);
        }
        5 => {
            let end = (at + random.below(64)).min(input.len());
            let piece = input[at..end].to_vec();
            let to = random.below(input.len() + 1);
            input.splice(to..to, piece);
        }
        6 | 7 => {
            let word = random.pick(words).copied().unwrap_or(b"\0");
            // Over what is there as often as between.
            let over = if random.one_in(2) { word.len() } else { 0 };
            let end = (at + over).min(input.len());
            input.splice(at..end, word.iter().copied());
        }
        8 => splice(input, at, others, random),
        _ => {
            if random.one_in(4) {
                input.truncate(at);
            } else if let Some(byte) = input.get_mut(at) {
                *byte = byte.wrapping_add(random.below(35) as u8).wrapping_sub(17);
            }
        }
    }
}

fn flip_bit(input: &mut [u8], at: usize, random: &mut Random) {
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

/// Writes a number of 1, 2, 4 or 8 bytes in either order.
fn put_number(input: &mut [u8], at: usize, random: &mut Random) {
    let size = 1 << random.below(4);
    let mut number = *random.pick(&NUMBERS).unwrap_or(&0);
    if random.one_in(3) {
        number = random.below(input.len() * 2) as u64;
    }
    let mut bytes = number.to_le_bytes()[..size].to_vec();
    if random.one_in(2) {
        bytes.reverse();
    }
    for (byte, new) in input.iter_mut().skip(at).zip(bytes) {
        *byte = new;
    }
}

/// A piece of another input in the place of what follows.
fn splice(input: &mut Vec<u8>, at: usize, others: &[Vec<u8>], random: &mut Random) {
    let Some(other) = random.pick(others) else {
        return;
    };
    let from = random.below(other.len() + 1);
    let piece = &other[from..(from + random.below(512)).min(other.len())];
    let end = (at + random.below(piece.len() + 1)).min(input.len());
    input.splice(at..end, piece.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_many_repeatable_and_never_too_large() {
        let run = |seed| {
            let mut random = Random::new(seed);
            let others = vec![vec![9; 40], Vec::new()];
            let mut input = b"one two".to_vec();
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..500 {
                mutate(&mut input, &others, &[b"word"], &mut random);
                assert!(input.len() <= INPUT_BYTES_MAX);
                seen.insert(input.clone());
            }
            seen
        };
        assert!(run(1).len() > 300);
        assert_eq!(run(2), run(2));
    }
}
