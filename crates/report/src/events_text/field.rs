//! One top-level field of a class as text: the quick ways for what most fields are.

use event::{Base, FieldId, FieldType, Integer, IntegerMapping};
use trace::EventView;

use super::line::{Line, Piece};
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
    Signed,
    Unsigned,
    Hexadecimal {
        mask: u64,
    },
    /// In another base.
    Integer(Integer),
    Enum(EnumTexts<'t>),
    Float,
    Text,
    /// Decoded whole.
    Other,
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
            FieldType::Integer(integer) => match integer.base {
                Base::Decimal if integer.signed => Kind::Signed,
                Base::Decimal => Kind::Unsigned,
                Base::Hexadecimal => Kind::Hexadecimal {
                    mask: u64::MAX >> (64 - u32::from(integer.size_bits.clamp(1, 64))),
                },
                _ => Kind::Integer(*integer),
            },
            FieldType::Enum(integer, mappings) => Kind::Enum(EnumTexts {
                integer: *integer,
                mappings,
                met: vec![None; TEXTS_KEPT],
            }),
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
        !matches!(self.kind, Kind::Enum(_) | Kind::Other)
    }

    #[inline]
    pub fn write(&mut self, event: &EventView<'_>, line: &mut Line) {
        match &mut self.kind {
            Kind::Unsigned => line.unsigned(event.u64(self.id)),
            Kind::Signed => line.signed(event.i64(self.id)),
            Kind::Hexadecimal { mask } => {
                line.bytes(b"0x");
                line.power_of_two(event.u64(self.id) & *mask, 4);
            }
            Kind::Text => quoted(event.text(self.id), line),
            Kind::Enum(texts) => texts.write(event.i64(self.id), self.style, line),
            Kind::Integer(integer) => {
                line.append(|out| write_integer(integer, event.u64(self.id), out));
            }
            Kind::Float => line.append(|out| write_float(event.f64(self.id), out)),
            Kind::Other => {
                let value = event.value(self.id);
                line.append(|out| self.style.value(self.ty, &value, out));
            }
        }
    }
}

impl EnumTexts<'_> {
    fn write(&mut self, value: i64, style: Style, line: &mut Line) {
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

/// Whether a byte of a text stands as it is.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut byte = 0;
    while byte < 256 {
        plain[byte] = !matches!(byte as u8, 0..=0x1f | 0x7f | b'\\' | b'\'' | b'"' | b'?');
        byte += 1;
    }
    plain
};

/// In quotes; what needs escapes takes the slow way.
#[inline]
fn quoted(text: &[u8], line: &mut Line) {
    if !text.iter().all(|byte| PLAIN[usize::from(*byte)]) {
        return line.append(|out| write_text(text, out));
    }
    line.byte(b'"');
    line.bytes(text);
    line.byte(b'"');
}
