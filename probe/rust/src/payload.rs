//! The fields of one event, laid out as `rtscope/layout.h` wants them.

/// Text and bytes of one event, together (`RTSCOPE_PAYLOAD_BYTES_MAX`).
const VARYING_BYTES_MAX: usize = 512;
/// Room for fields of fixed size, and for lengths.
const FIXED_BYTES_MAX: usize = 512;
const WORDS: usize = (VARYING_BYTES_MAX + FIXED_BYTES_MAX) / 8;

/// Codes of types, `enum rtscope_field` of layout.h.
const CODES: [(&str, u8); 16] = [
    ("u8", 1),
    ("u16", 2),
    ("u32", 3),
    ("u64", 4),
    ("i8", 5),
    ("i16", 6),
    ("i32", 7),
    ("i64", 8),
    ("x8", 9),
    ("x16", 10),
    ("x32", 11),
    ("x64", 12),
    ("f32", 13),
    ("f64", 14),
    ("text", 15),
    ("bytes", 16),
];

/// Fields on their way; on the stack, and written only as far as they go.
pub struct Payload {
    words: std::mem::MaybeUninit<[u64; WORDS]>,
    used: usize,
    varying_room: usize,
}

impl Default for Payload {
    fn default() -> Self {
        Payload::new()
    }
}

macro_rules! numbers {
    ($($name:ident: $type:ty),*) => {
        $(
            #[doc = concat!("Adds a number (`", stringify!($name), "`).")]
            #[inline(always)]
            pub fn $name(&mut self, value: $type) {
                self.put(&value.to_ne_bytes());
            }
        )*
    };
}

impl Payload {
    /// Without a field yet.
    #[inline(always)]
    pub const fn new() -> Payload {
        Payload {
            words: std::mem::MaybeUninit::uninit(),
            used: 0,
            varying_room: VARYING_BYTES_MAX,
        }
    }

    /// The code of a type; a word that is none does not compile.
    pub const fn code(kind: &str) -> u8 {
        let kind = kind.as_bytes();
        let mut place = 0;
        while place < CODES.len() {
            let known = CODES[place].0.as_bytes();
            let mut at = 0;
            while known.len() == kind.len() && at < kind.len() && known[at] == kind[at] {
                at += 1;
            }
            if at == kind.len() && at == known.len() {
                return CODES[place].1;
            }
            place += 1;
        }
        panic!("no type of a field")
    }

    numbers! {
        u8: u8, u16: u16, u32: u32, u64: u64, i8: i8, i16: i16, i32: i32, i64: i64,
        x8: u8, x16: u16, x32: u32, x64: u64, f32: f32, f64: f64
    }

    /// Adds a text, as far as there is room.
    #[inline]
    pub fn text(&mut self, text: &str) {
        let mut end = text.len().min(self.varying_room);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // A zero would end it for readers.
        let text = &text.as_bytes()[..end];
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(end);
        self.bytes(&text[..end]);
    }

    /// Adds bytes, as far as there is room.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let kept = &bytes[..bytes.len().min(self.varying_room)];
        self.varying_room -= kept.len();
        self.u16(kept.len() as u16);
        self.put(kept);
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        if bytes.len() > WORDS * 8 - self.used {
            // More fixed fields than an event may have: the record is then found to be malformed.
            return;
        }
        let begin = self.words.as_mut_ptr().cast::<u8>();
        // SAFETY: the room was looked at; both are valid, and they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), begin.add(self.used), bytes.len()) };
        self.used += bytes.len();
    }

    /// Where it begins, and its bytes.
    pub(crate) fn parts(&mut self) -> (*mut u64, usize) {
        (self.words.as_mut_ptr().cast(), self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(fill: impl FnOnce(&mut Payload)) -> Vec<u8> {
        let mut payload = Payload::new();
        fill(&mut payload);
        let (begin, used) = payload.parts();
        // SAFETY: so many bytes were written.
        unsafe { std::slice::from_raw_parts(begin.cast::<u8>(), used) }.to_vec()
    }

    #[test]
    fn fields_lie_one_behind_the_other_and_texts_behind_their_length() {
        let found = filled(|payload| {
            payload.u8(1);
            payload.text("ab");
            payload.x32(0x0403_0201);
        });
        assert_eq!(found, [1, 2, 0, b'a', b'b', 1, 2, 3, 4]);
    }

    #[test]
    fn texts_are_cut_at_a_character_and_later_numbers_keep_their_room() {
        let long = "é".repeat(300);
        let found = filled(|payload| {
            payload.u8(7);
            payload.text(&long);
            payload.text("more");
            payload.u64(9);
        });
        assert_eq!(found.len(), 1 + 2 + 512 + 2 + 8);
        assert_eq!(found[found.len() - 8..], 9_u64.to_ne_bytes());
        assert_eq!(filled(|payload| payload.text("a\0b")), [1, 0, b'a']);
    }
}
