//! From the file `metadata` to its text: plain, or cut into packets of either byte order.

use event::{Error, ErrorKind, Result};

/// First word of each metadata packet.
const MAGIC: u32 = 0x75D1_1D57;
/// Magic, uuid, checksum, content size, packet size, three schemes, version.
const HEADER_BYTES: usize = 4 + 16 + 4 + 4 + 4 + 5;

/// A piece of the text and where in the file it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    text_at: usize,
    file_at: usize,
}

impl Piece {
    /// Where in the file the byte of the text lies, of which these are the pieces in their order;
    /// none where the text is the file.
    pub fn file_offset(pieces: &[Piece], text_at: usize) -> usize {
        let after = pieces.partition_point(|piece| piece.text_at <= text_at);
        let piece = after.checked_sub(1).and_then(|place| pieces.get(place));
        piece.map_or(text_at, |piece| piece.file_at + (text_at - piece.text_at))
    }
}

/// The metadata's text. Bytes that are not UTF-8 are replaced.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when a packet's sizes make no sense.
pub fn text(bytes: &[u8]) -> Result<String> {
    pieces(bytes.to_vec()).map(|(text, _)| text)
}

/// Whether the text is cut into packets, and whether these are big-endian.
pub(crate) fn packets_are_big(bytes: &[u8]) -> Option<bool> {
    let word = bytes.first_chunk::<4>()?;
    let is_big = *word == MAGIC.to_be_bytes();
    (is_big || *word == MAGIC.to_le_bytes()).then_some(is_big)
}

/// The same in the file's own memory, and where its pieces lie.
pub(crate) fn pieces(bytes: Vec<u8>) -> Result<(String, Vec<Piece>)> {
    match bytes.get(..4) {
        None => Err(damaged(format!("{} bytes", bytes.len()))),
        Some(word) if word == MAGIC.to_le_bytes() => packets(bytes, u32::from_le_bytes),
        Some(word) if word == MAGIC.to_be_bytes() => packets(bytes, u32::from_be_bytes),
        Some(_) => Ok(from_utf8(bytes, Vec::new())),
    }
}

/// Bytes of these pieces as text.
fn from_utf8(bytes: Vec<u8>, pieces: Vec<Piece>) -> (String, Vec<Piece>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, pieces),
        Err(error) => lossy(error.as_bytes(), &pieces),
    }
}

/// Bytes of these pieces as text; what is not UTF-8 takes another number of bytes there.
fn lossy(bytes: &[u8], pieces: &[Piece]) -> (String, Vec<Piece>) {
    let (mut text, mut found) = (String::new(), Vec::new());
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        let (text_at, end) = (text.len(), at + chunk.valid().len());
        let file_at = Piece::file_offset(pieces, at);
        found.push(Piece { text_at, file_at });
        let first = pieces.partition_point(|piece| piece.text_at <= at);
        let begun = pieces.get(first..).unwrap_or_default();
        let inside = begun.iter().take_while(|piece| piece.text_at < end);
        found.extend(inside.map(|piece| Piece {
            text_at: text_at + (piece.text_at - at),
            ..*piece
        }));
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        at = end + chunk.invalid().len();
    }
    (text, found)
}

/// Contents move together towards the start, over the headers and the padding between them.
fn packets(mut bytes: Vec<u8>, number: fn([u8; 4]) -> u32) -> Result<(String, Vec<Piece>)> {
    let (mut text_bytes, mut pieces) = (0, Vec::new());
    let mut offset = 0;
    while offset < bytes.len() {
        let packet = &bytes[offset..];
        let word = |place: usize| -> Option<u32> {
            Some(number(packet.get(place..place + 4)?.try_into().ok()?))
        };
        let sizes = (word(0), word(24), word(28));
        let (Some(magic), Some(content_bits), Some(packet_bits)) = sizes else {
            return Err(damaged(format!("packet at byte {offset} is cut")));
        };
        let (content, size) = (content_bits as usize / 8, packet_bits as usize / 8);
        if magic != MAGIC || content < HEADER_BYTES || content > size {
            return Err(damaged(format!(
                "packet at byte {offset}: magic {magic:#x}, content {content}, size {size} bytes"
            )));
        }
        let end = offset + content.min(packet.len());
        let begin = (offset + HEADER_BYTES).min(end);
        pieces.push(Piece {
            text_at: text_bytes,
            file_at: offset + HEADER_BYTES,
        });
        bytes.copy_within(begin..end, text_bytes);
        text_bytes += end - begin;
        offset += size;
    }
    bytes.truncate(text_bytes);
    // A character may begin in one packet and end in the next.
    Ok(from_utf8(bytes, pieces))
}

fn damaged(found: String) -> Error {
    Error::new(ErrorKind::Corrupt, "cannot understand the trace's metadata")
        .found(found)
        .fix("copy the trace again: its file 'metadata' is cut or damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(text: &str, padding: usize, number: fn(u32) -> [u8; 4]) -> Vec<u8> {
        let content = HEADER_BYTES + text.len();
        let mut bytes = number(MAGIC).to_vec();
        bytes.extend([0; 20]);
        bytes.extend(number(content as u32 * 8));
        bytes.extend(number((content + padding) as u32 * 8));
        bytes.extend([0, 0, 0, 1, 8]);
        bytes.extend(text.bytes());
        bytes.resize(content + padding, 0);
        bytes
    }

    #[test]
    fn packets_of_either_byte_order_give_their_text() {
        for number in [u32::to_le_bytes, u32::to_be_bytes] {
            let bytes = [packet("trace ", 7, number), packet("{ };", 0, number)].concat();
            assert_eq!(text(&bytes).unwrap(), "trace { };");
        }
        assert_eq!(text(b"plain").unwrap(), "plain");
    }

    #[test]
    fn a_place_of_the_text_is_found_in_the_file() {
        let number = u32::to_le_bytes;
        let bytes = [packet("ab\u{e4}c", 7, number), packet("def", 0, number)].concat();
        let check = |bytes: &[u8], word: &str| {
            let (text, pieces) = pieces(bytes.to_vec()).unwrap();
            let at = Piece::file_offset(&pieces, text.find(word).unwrap());
            assert!(bytes[at..].starts_with(word.as_bytes()), "{word} at {at}");
        };
        check(&bytes, "c");
        check(&bytes, "ef");
        check(b"/* \xff\xfe */ trace", "trace");
        let mut broken = packet("a\u{e4}b", 3, number);
        broken[HEADER_BYTES + 1] = 0xff;
        check(&[broken, packet("cde", 0, number)].concat(), "de");
        check(b"/* */ trace", "trace");
    }

    #[test]
    fn packets_that_make_no_sense_are_refused() {
        let check = |bytes: &[u8]| assert!(text(bytes).is_err());
        check(b"");
        let good = packet("trace", 0, u32::to_le_bytes);
        check(&good[..20]);
        check(&[&good[..28], &[0, 0, 0, 0], &good[32..]].concat());
    }
}
