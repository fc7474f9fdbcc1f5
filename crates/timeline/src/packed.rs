//! Numbers one behind the other, each in one, two, four or eight bytes: two bits of each say how
//! many, and stand before all of them. So where a number begins is known without a look at those
//! before it, and neither way has a jump that depends on a number.

/// Numbers whose lengths share a byte.
const FOUR: usize = 4;
/// Behind the last number stand as many zeros as let eight bytes be read wherever one begins.
const REST_BYTES: usize = 7;
const WORD_BYTES: usize = 8;
/// What of eight bytes is a number, by its two bits.
const MASKS: [u64; 4] = [0xff, 0xffff, 0xffff_ffff, u64::MAX];

/// Packs numbers, as many as are divisible by four, in place of what is in `out`.
pub(crate) fn pack(numbers: &[u64], out: &mut Vec<u8>) {
    let mut at = numbers.len() / FOUR;
    out.clear();
    out.resize(at + numbers.len() * WORD_BYTES + REST_BYTES, 0);
    for (place, four) in numbers.chunks_exact(FOUR).enumerate() {
        let mut lengths = 0;
        for (shift, number) in four.iter().enumerate() {
            let [one, two, four, _] = MASKS.map(|mask| u8::from(*number > mask));
            let length = one + two + four;
            lengths |= length << (2 * shift);
            // What of the word is no part of the number the next one is written over.
            if let Some(word) = out.get_mut(at..at + WORD_BYTES) {
                word.copy_from_slice(&number.to_le_bytes());
            }
            at += 1 << length;
        }
        out[place] = lengths;
    }
    out.truncate(at + REST_BYTES);
}

/// Takes apart what [`pack`] made of as many numbers; none where it is something else.
#[inline]
pub(crate) fn unpack(bytes: &[u8], numbers: &mut [u64]) -> Option<()> {
    let (lengths, bytes) = bytes.split_at_checked(numbers.len() / FOUR)?;
    let mut at = 0;
    for (lengths, four) in lengths.iter().zip(numbers.chunks_exact_mut(FOUR)) {
        for (shift, number) in four.iter_mut().enumerate() {
            let length = lengths >> (2 * shift) & 3;
            let word = bytes.get(at..)?.first_chunk::<WORD_BYTES>()?;
            *number = u64::from_le_bytes(*word) & MASKS[usize::from(length)];
            at += 1 << length;
        }
    }
    (bytes.len() == at + REST_BYTES).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_however_long_they_are() {
        let edges = [0, 1, 0xff, 0x100, 0xffff, 0x1_0000, 0xffff_ffff];
        let wide = [1 << 32, i64::MAX as u64, u64::MAX, 0xff];
        let all: Vec<u64> = edges.into_iter().chain(wide).collect();
        let mut bytes = Vec::new();
        for turn in 0..all.len() {
            let mut numbers = all.clone();
            numbers.rotate_left(turn);
            for count in [0, 4, 8] {
                pack(&numbers[..count], &mut bytes);
                let mut found = vec![7; count];
                assert_eq!(unpack(&bytes, &mut found), Some(()), "{turn} {count}");
                assert_eq!(found, numbers[..count]);
                let mut longer = vec![7; count + 4];
                assert_eq!(unpack(&bytes, &mut longer), None, "others are missing");
                bytes.push(0);
                assert_eq!(unpack(&bytes, &mut found), None, "a byte is left");
                bytes.truncate(bytes.len() - 2);
                assert_eq!(unpack(&bytes, &mut found), None, "it is cut");
            }
        }
        assert_eq!(unpack(&[], &mut [0; 4]), None);
    }
}
