//! Declarations and values at random: as C, and as what is to be read back.

use std::fmt::Write as _;

use super::traced::Event;

/// What stands before the functions with events.
pub const BEGIN: &str = r#"
#include <rtscope/event.h>
#include <stdlib.h>
RTSCOPE_ENUMERATION(red, RTSCOPE_LABEL("r", 1));
RTSCOPE_ENUMERATION(green, RTSCOPE_LABEL("g", 1), RTSCOPE_LABELS("more", 2, 9));
RTSCOPE_ENUMERATION(blue, RTSCOPE_LABEL("b", 1));
static unsigned char data[8192] __attribute__((aligned(8)));
#define AT(type, place) ((const type *)(const void *)(data + (place)))
"#;

/// The beginning of main: a filter that makes no sense lets its events pass.
pub const MAIN: &str = r#"
int main(void)
{
    const int filtered = getenv("FILTERED") != NULL;
    for (unsigned place = 0; place < sizeof data; place++)
        data[place] = (unsigned char)(place * 7u + (place >> 8));
    for (struct rtscope_switch *one = __start_rtscope_switches;
         filtered && one < __stop_rtscope_switches; one++)
        one->enabled |= RTSCOPE_FILTERED;
"#;

/// Bytes of an event with a field that varies, and of others.
const PAYLOAD_BYTES: usize = 512;
const FIXED_BYTES: usize = 4080;
const ELEMENTS_MAX: usize = 512;
const FIELDS_MAX: usize = 22;

/// A generator that needs nobody: the same numbers for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }
}

/// The words for numbers: their C type and their bytes.
const NUMBERS: [(&str, &str, usize); 20] = [
    ("u8", "uint8_t", 1),
    ("u16", "uint16_t", 2),
    ("u32", "uint32_t", 4),
    ("u64", "uint64_t", 8),
    ("i8", "int8_t", 1),
    ("i16", "int16_t", 2),
    ("i32", "int32_t", 4),
    ("i64", "int64_t", 8),
    ("x8", "uint8_t", 1),
    ("x16", "uint16_t", 2),
    ("x32", "uint32_t", 4),
    ("x64", "uint64_t", 8),
    ("f32", "float", 4),
    ("f64", "double", 8),
    ("n16", "uint16_t", 2),
    ("n32", "uint32_t", 4),
    ("n64", "uint64_t", 8),
    ("e8", "uint8_t", 1),
    ("e32", "int32_t", 4),
    ("e64", "int64_t", 8),
];
/// Those that can be elements are the first of them.
const ELEMENTS: usize = 14;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number(usize),
    Characters(usize),
    Array(usize, usize),
    Text,
    TextUpTo,
    Bytes,
    Sequence(usize),
}

struct Field {
    kind: Kind,
    hidden: bool,
}

impl Field {
    fn varies(&self) -> bool {
        use Kind::{Bytes, Sequence, Text, TextUpTo};
        matches!(self.kind, Text | TextUpTo | Bytes | Sequence(_))
    }

    /// Its bytes, or those of its length.
    fn fixed_bytes(&self) -> usize {
        match self.kind {
            Kind::Number(number) => NUMBERS[number].2,
            Kind::Characters(count) => count,
            Kind::Array(number, count) => NUMBERS[number].2 * count,
            _ => 2,
        }
    }
}

/// An event and the function that records it.
pub struct Declaration {
    number: usize,
    fields: Vec<Field>,
}

impl Declaration {
    pub fn draw(number: usize, random: &mut Random) -> Self {
        let with_varying = random.below(4) > 0;
        let mut left = if with_varying {
            PAYLOAD_BYTES
        } else {
            FIXED_BYTES
        } - 4;
        let mut fields = Vec::new();
        for _ in 0..random.below(FIELDS_MAX + 1) {
            // Often an array that takes all that is left, or nearly.
            let room = if random.below(4) == 0 {
                left
            } else {
                left.min(40)
            };
            let mut count = |bytes: usize| random.below((room / bytes).min(ELEMENTS_MAX) + 1);
            let kinds = if with_varying { 7 } else { 3 };
            let count_1 = count(1);
            let kind = match random.below(kinds) {
                0 => Kind::Number(random.below(NUMBERS.len())),
                1 => Kind::Characters(count_1),
                2 => {
                    let element = random.below(ELEMENTS);
                    let most = (room / NUMBERS[element].2).min(ELEMENTS_MAX);
                    let full = random.below(2) == 0;
                    Kind::Array(element, if full { most } else { random.below(most + 1) })
                }
                3 => Kind::Text,
                4 => Kind::TextUpTo,
                5 => Kind::Bytes,
                _ => Kind::Sequence(random.below(ELEMENTS)),
            };
            let hidden = random.below(5) == 0;
            let field = Field { kind, hidden };
            if field.fixed_bytes() <= left {
                left -= field.fixed_bytes();
                fields.push(field);
            }
        }
        Declaration { number, fields }
    }

    /// A function that records the event, with a parameter for each value.
    pub fn function(&self) -> String {
        let number = self.number;
        let mut parameters = "uint32_t serial".to_owned();
        let mut event = format!("RTSCOPE_EVENT(fuzz, event_{number}, u32(\"serial\", serial)");
        for (place, field) in self.fields.iter().enumerate() {
            let (typed, text) = match field.kind {
                Kind::Number(number) => {
                    let (word, of, _) = NUMBERS[number];
                    let labels = ["red, ", "green, ", "blue, "][place % 3];
                    let labels = if word.starts_with('e') { labels } else { "" };
                    (
                        format!("{of} v{place}"),
                        format!("{word}(\"f{place}\", {labels}v{place})"),
                    )
                }
                Kind::Characters(count) => (
                    format!("const char *v{place}"),
                    format!("chars(\"f{place}\", v{place}, {count})"),
                ),
                Kind::Array(element, count) => {
                    let (word, of, _) = NUMBERS[element];
                    let field = format!("array(\"f{place}\", {word}, v{place}, {count}u)");
                    (format!("const {of} *v{place}"), field)
                }
                Kind::Text => (
                    format!("const char *v{place}"),
                    format!("text(\"f{place}\", v{place})"),
                ),
                Kind::TextUpTo => (
                    format!("const char *v{place}, size_t n{place}"),
                    format!("text_n(\"f{place}\", v{place}, n{place})"),
                ),
                Kind::Bytes => (
                    format!("const void *v{place}, size_t n{place}"),
                    format!("bytes(\"f{place}\", v{place}, n{place})"),
                ),
                Kind::Sequence(element) => {
                    let (word, of, _) = NUMBERS[element];
                    let field = format!("sequence(\"f{place}\", {word}, v{place}, n{place})");
                    (format!("const {of} *v{place}, size_t n{place}"), field)
                }
            };
            let _ = write!(parameters, ", {typed}");
            let hidden = if field.hidden {
                ("nowrite(", ")")
            } else {
                ("", "")
            };
            let _ = write!(event, ",\n        {}{text}{}", hidden.0, hidden.1);
        }
        format!("static void record_{number}({parameters})\n{{\n    {event});\n}}\n")
    }

    /// A call with values, and the event that is to be read back.
    pub fn call(&self, serial: u32, random: &mut Random) -> (String, Event) {
        let fixed: usize = self.fields.iter().map(Field::fixed_bytes).sum();
        let mut room = PAYLOAD_BYTES.saturating_sub(4 + fixed);
        let mut call = format!("    record_{}({serial}u", self.number);
        let mut found = vec![format!("serial={:?}", serial.to_le_bytes())];
        for (place, field) in self.fields.iter().enumerate() {
            let (text, bytes) = value(field, &mut room, random);
            let _ = write!(call, ", {text}");
            if !field.hidden {
                found.push(format!("f{place}={bytes:?}"));
            }
        }
        (
            call + ");\n",
            (format!("fuzz:event_{}", self.number), found),
        )
    }
}

/// The program's data from `place` on.
fn data(place: usize, length: usize) -> Vec<u8> {
    let byte = |at: usize| (at * 7 + (at >> 8)) as u8;
    (place..place + length).map(byte).collect()
}

/// A length that is often near the border.
fn length(room: usize, random: &mut Random) -> usize {
    match random.below(4) {
        0 => random.below(700),
        1 => (room + random.below(5)).saturating_sub(2),
        _ => random.below(20),
    }
}

/// A value in C, and its bytes in the payload; takes from the room what it takes there.
fn value(field: &Field, room: &mut usize, random: &mut Random) -> (String, Vec<u8>) {
    // Hidden fields are put behind all others: they take no room from these.
    let mut own = *room;
    let place = 8 * random.below(64);
    let count = length(*room, random);
    let (text, bytes) = match field.kind {
        Kind::Number(number) => number_value(number, random),
        Kind::Characters(length) => (format!("AT(char, {place})"), data(place, length)),
        Kind::Array(element, length) => {
            let (_, of, size) = NUMBERS[element];
            (format!("AT({of}, {place})"), data(place, size * length))
        }
        Kind::Text => text_value(count, usize::MAX, &mut own, random),
        Kind::TextUpTo => {
            let limit = length(own, random);
            let (text, bytes) = text_value(count, limit, &mut own, random);
            (format!("{text}, {limit}u"), bytes)
        }
        Kind::Bytes => sequence_value("char", 1, place, count, &mut own),
        Kind::Sequence(element) => {
            let (_, of, size) = NUMBERS[element];
            sequence_value(of, size, place, count, &mut own)
        }
    };
    if field.varies() && !field.hidden {
        *room = own;
    }
    (text, bytes)
}

fn number_value(number: usize, random: &mut Random) -> (String, Vec<u8>) {
    let (word, of, size) = NUMBERS[number];
    let bits = random.next();
    match word {
        // Quarters are exact in both.
        "f32" => {
            let value = f32::from(bits as i16) / 4.0;
            (format!("{value:?}f"), value.to_le_bytes().to_vec())
        }
        "f64" => {
            let value = f64::from(bits as i16) / 4.0;
            (format!("{value:?}"), value.to_le_bytes().to_vec())
        }
        _ => (
            format!("({of}){bits}u"),
            bits.to_le_bytes()[..size].to_vec(),
        ),
    }
}

fn text_value(
    count: usize,
    limit: usize,
    room: &mut usize,
    random: &mut Random,
) -> (String, Vec<u8>) {
    if random.below(12) == 0 {
        return ("(const char *)0".to_owned(), Vec::new());
    }
    let all: String = (0..count)
        .map(|at| char::from(b'a' + (at % 26) as u8))
        .collect();
    let wanted = count.min(limit);
    let kept = wanted.min(*room);
    let mut bytes = all.as_bytes()[..kept].to_vec();
    if wanted > kept {
        bytes[kept.saturating_sub(3)..].fill(b'.');
    }
    *room -= kept;
    (format!("\"{all}\""), bytes)
}

fn sequence_value(
    of: &str,
    size: usize,
    place: usize,
    count: usize,
    room: &mut usize,
) -> (String, Vec<u8>) {
    let kept = count.min(*room / size);
    *room -= kept * size;
    (
        format!("AT({of}, {place}), {count}u"),
        data(place, kept * size),
    )
}
