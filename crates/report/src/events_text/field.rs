//! One top-level field of a class as text: the quick ways for what most fields are.

use event::{Base, FieldId, FieldType, Integer, IntegerMapping};
use trace::EventView;

use super::line::{EventLines, Piece};
use super::value::{Style, write_float, write_integer, write_text};

/// Writes the value of one field.
#[derive(Debug)]
pub(super) struct FieldWriter<'t> {
    id: FieldId,
    style: Style,
    ty: &'t FieldType,
    kind: Kind<'t>,
}

/// How a field is written.
#[derive(Debug)]
enum Kind<'t> {
    Number(Number<'t>),
    Float,
    Text,
    /// Decoded whole.
    Other,
}

/// How an integer is written.
#[derive(Debug)]
enum Number<'t> {
    Signed,
    Unsigned,
    Hexadecimal {
        mask: u64,
    },
    /// In another base.
    Other(Integer),
    Enum(EnumTexts<'t>),
}

/// The texts of an enumeration's values that were met.
#[derive(Debug)]
struct EnumTexts<'t> {
    integer: Integer,
    mappings: &'t [IntegerMapping],
    /// By the value's lowest bits.
    met: Vec<Option<(i64, Piece)>>,
}

/// So many texts of an enumeration are kept.
const TEXTS_KEPT: usize = 16;

impl<'t> FieldWriter<'t> {
    pub fn new(id: FieldId, ty: &'t FieldType, style: Style) -> Self {
        let kind = match ty {
            FieldType::Integer(integer) => Kind::Number(match integer.base {
                Base::Decimal if integer.signed => Number::Signed,
                Base::Decimal => Number::Unsigned,
                Base::Hexadecimal => Number::Hexadecimal {
                    mask: u64::MAX >> (64 - u32::from(integer.size_bits.clamp(1, 64))),
                },
                _ => Number::Other(*integer),
            }),
            FieldType::Enum(integer, mappings) => Kind::Number(Number::Enum(EnumTexts {
                integer: *integer,
                mappings,
                met: vec![None; TEXTS_KEPT],
            })),
            FieldType::Float { .. } => Kind::Float,
            FieldType::String | FieldType::Text { .. } => Kind::Text,
            FieldType::Sequence { element, .. } if is_character(element) => Kind::Text,
            _ => Kind::Other,
        };
        FieldWriter {
            id,
            style,
            ty,
            kind,
        }
    }

    /// Whether the value is one that colours surround; others have theirs inside.
    pub fn is_simple(&self) -> bool {
        !matches!(self.kind, Kind::Number(Number::Enum(_)) | Kind::Other)
    }

    #[inline]
    pub fn write(&mut self, event: &EventView<'_>, line: &mut EventLines) {
        match &mut self.kind {
            Kind::Number(number) => number.write(event.i64(self.id), &self.style, line),
            Kind::Text => quoted(event.text(self.id), line),
            Kind::Float => line.append(|out| write_float(event.f64(self.id), out)),
            Kind::Other => {
                let value = event.value(self.id);
                line.append(|out| self.style.value(self.ty, &value, out));
            }
        }
    }
}

impl Number<'_> {
    #[inline]
    fn write(&mut self, value: i64, style: &Style, line: &mut EventLines) {
        match self {
            Number::Unsigned => line.unsigned(value as u64),
            Number::Signed => line.signed(value),
            Number::Hexadecimal { mask } => {
                line.bytes(b"0x");
                line.hexadecimal(value as u64 & *mask);
            }
            Number::Enum(texts) => texts.write(value, style, line),
            Number::Other(integer) => {
                line.append(|out| write_integer(integer, value as u64, out));
            }
        }
    }
}

impl EnumTexts<'_> {
    fn write(&mut self, value: i64, style: &Style, line: &mut EventLines) {
        let place = &mut self.met[value as usize % TEXTS_KEPT];
        match place {
            Some((met, text)) if *met == value => line.piece(text),
            _ => {
                let mut text = Vec::new();
                style.enumeration(&self.integer, self.mappings, value, &mut text);
                line.bytes(&text);
                *place = Some((value, Piece::new(&text)));
            }
        }
    }
}

fn is_character(ty: &FieldType) -> bool {
    matches!(ty, FieldType::Integer(int) if int.text && int.size_bits == 8 && int.align_bits == 8)
}

/// Eight times the same byte.
const fn eight(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Whether one of eight bytes may need an escape: a control character, `\\`, `\'`, `"`, `?`, and by
/// chance `#` and `&`, which share a test with the quotes.
#[inline]
fn may_need_escape(word: u64) -> bool {
    let has_zero = |word: u64| word.wrapping_sub(eight(1)) & !word;
    let controls = word.wrapping_sub(eight(0x20)) & !word;
    let backslash = has_zero(word ^ eight(b'\\'));
    // `"` and `\'` differ in two bits, `?` and the last control character in one.
    let quotes = has_zero((word & !eight(b'"' ^ b'\'')) ^ eight(b'"'));
    let question = has_zero((word & !eight(b'?' ^ 0x7f)) ^ eight(b'?'));
    (controls | backslash | quotes | question) & eight(0x80) != 0
}

/// Whether no byte of a text needs an escape; sometimes no for one that has none.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    if words.fold(false, |needs, word| needs | may_need_escape(word)) {
        return false;
    }
    let last = text.last_chunk().copied().unwrap_or_else(|| {
        let mut last = [b'a'; 8];
        last[..rest.len()].copy_from_slice(rest);
        last
    });
    !may_need_escape(u64::from_le_bytes(last))
}

/// In quotes; what needs escapes takes the slow way.
#[inline]
fn quoted(text: &[u8], line: &mut EventLines) {
    if !is_plain(text) {
        return line.append(|out| write_text(text, out));
    }
    line.byte(b'"');
    line.bytes(text);
    line.byte(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_needs_an_escape_is_never_plain() {
        for byte in 0..=u8::MAX {
            let needs = matches!(byte, 0..=0x1f | 0x7f | b'\\' | b'\'' | b'"' | b'?');
            let by_chance = matches!(byte, b'#' | b'&');
            for place in 0..20 {
                let mut text = *b"kworker/0:1H-kblockd";
                text[place] = byte;
                assert_eq!(
                    is_plain(&text),
                    !needs && !by_chance,
                    "{byte:#x} at {place}"
                );
            }
        }
    }
}
