//! From the file `metadata` to its text: plain, or cut into packets of either byte order.

use std::borrow::Cow;

use event::{Error, ErrorKind, Result};

/// First word of each metadata packet.
const MAGIC: u32 = 0x75D1_1D57;
/// Magic, uuid, checksum, content size, packet size, three schemes, version.
const HEADER_BYTES: usize = 4 + 16 + 4 + 4 + 4 + 5;

/// The metadata's text. Bytes that are not UTF-8 are replaced.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when a packet's sizes make no sense.
pub fn text(bytes: &[u8]) -> Result<Cow<'_, str>> {
    match bytes.get(..4) {
        None => Err(damaged(format!("{} bytes", bytes.len()))),
        Some(word) if word == MAGIC.to_le_bytes() => packets(bytes, u32::from_le_bytes),
        Some(word) if word == MAGIC.to_be_bytes() => packets(bytes, u32::from_be_bytes),
        Some(_) => Ok(String::from_utf8_lossy(bytes)),
    }
}

fn packets(bytes: &[u8], number: fn([u8; 4]) -> u32) -> Result<Cow<'_, str>> {
    let mut text = Vec::new();
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
        let end = content.min(packet.len());
        text.extend_from_slice(packet.get(HEADER_BYTES..end).unwrap_or_default());
        offset += size;
    }
    Ok(Cow::Owned(String::from_utf8_lossy(&text).into_owned()))
}

fn damaged(found: String) -> Error {
    Error::new(ErrorKind::Corrupt, "cannot understand the trace's metadata")
        .found(found)
        .mend("copy the trace again: its file 'metadata' is cut or damaged")
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
    fn packets_that_make_no_sense_are_refused() {
        let check = |bytes: &[u8]| assert!(text(bytes).is_err());
        check(b"");
        let good = packet("trace", 0, u32::to_le_bytes);
        check(&good[..20]);
        check(&[&good[..28], &[0, 0, 0, 0], &good[32..]].concat());
    }
}
