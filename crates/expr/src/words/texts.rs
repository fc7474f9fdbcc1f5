//! Texts and patterns in the kernel's words.
//!
//! Of patterns, the kernel asks those with a star at one end in ways of its own: the end of a text
//! in a fixed room is looked for at the end of the room, what begins with a digit is no pattern,
//! and an exclamation mark at the begin turns the answer. With a backslash before the first byte of
//! each piece it takes all of them for shell patterns.

use super::source::{Kind, Source, Worded};
use super::tree::Words;
use crate::pattern::{GlobPart, Matcher};

/// The kernel takes no longer text (older ones half of it).
const TEXT_BYTES_MAX: usize = 255;
/// Bounds of a set that mean something to the kernel at some place of it, or end its text.
const NO_BOUNDS: &[u8] = b"]-![\\\"'\0";

/// The text of a field is this one.
pub(super) fn equal(source: &Source, bytes: &[u8]) -> Worded<Words> {
    let is_longer = match source.kind {
        Kind::Text { size } => bytes.len() > size as usize,
        Kind::Dynamic => false,
        _ => return Err("it has no such text"),
    };
    // No text of C has a zero byte in it.
    if is_longer || bytes.contains(&0) {
        return Ok(Words::Never);
    }
    quoted(&source.name, "==", bytes)
}

/// A pattern covers the text of a field.
pub(super) fn matches(source: &Source, matcher: &Matcher) -> Worded<Words> {
    if !matches!(source.kind, Kind::Text { .. } | Kind::Dynamic) {
        return Err("it has no such text");
    }
    let parts = matcher.glob_parts();
    let parts = parts.ok_or("it has no regular expressions")?;
    if parts.iter().all(|part| *part == GlobPart::Any) && !parts.is_empty() {
        return Ok(Words::Always);
    }
    if parts.contains(&GlobPart::Byte(0)) {
        return Ok(Words::Never);
    }
    let plain: Option<Vec<u8>> = parts.iter().map(byte).collect();
    if let Some(bytes) = plain {
        return equal(source, &bytes);
    }
    let mut pattern = Vec::new();
    let mut is_begin = true;
    for part in &parts {
        match part {
            GlobPart::Byte(byte) => {
                if is_begin || b"*?[\\".contains(byte) {
                    pattern.push(b'\\');
                }
                pattern.push(*byte);
            }
            GlobPart::One => pattern.push(b'?'),
            GlobPart::Any => pattern.push(b'*'),
            GlobPart::Set { negated, ranges } => set(*negated, ranges, &mut pattern)?,
        }
        is_begin = matches!(part, GlobPart::Any);
    }
    quoted(&source.name, "~", &pattern)
}

fn byte(part: &GlobPart) -> Option<u8> {
    match part {
        GlobPart::Byte(byte) => Some(*byte),
        _ => None,
    }
}

fn set(negated: bool, ranges: &[(u8, u8)], pattern: &mut Vec<u8>) -> Worded<()> {
    if negated {
        // Older kernels let such a set match the end of the text.
        return Err("its sets name what is in them, not what is outside");
    }
    pattern.push(b'[');
    for (first, last) in ranges {
        if NO_BOUNDS.contains(first) || NO_BOUNDS.contains(last) {
            return Err("its sets cannot name this byte");
        }
        pattern.push(*first);
        if first != last {
            pattern.extend([b'-', *last]);
        }
    }
    pattern.push(b']');
    Ok(())
}

/// `name == "text"`; the kernel undoes no escapes there.
fn quoted(name: &str, operator: &str, bytes: &[u8]) -> Worded<Words> {
    if bytes.len() > TEXT_BYTES_MAX {
        return Err("it takes no text of more than 255 bytes");
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err("it is asked in UTF-8, and this is none");
    };
    let quote = match (text.contains('"'), text.contains('\'')) {
        (false, _) => '"',
        (true, false) => '\'',
        (true, true) => return Err("it takes no text with both kinds of quotes"),
    };
    if text.contains('\n') {
        return Err("it takes no text of more than one line");
    }
    Ok(Words::single(format!(
        "{name} {operator} {quote}{text}{quote}"
    )))
}
