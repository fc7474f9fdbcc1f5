//! What the map of a process needs of an executable file: its build id and where it wants to lie.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use event::{Error, ErrorKind, Result};

/// The smallest page, to which the loader rounds.
const PAGE_BYTES: u64 = 4096;
/// A program header of a 64-bit file, and how many a sound file may have.
const SEGMENT_BYTES: u64 = 56;
const SEGMENTS_MAX: u16 = 512;
const LOAD: u32 = 1;
const NOTE: u32 = 4;
/// The kind of the note that holds a build id.
const BUILD_ID: u32 = 3;
/// More of the notes is not read, and no build id is longer.
const NOTES_BYTES_MAX: u64 = 64 << 10;
const BUILD_ID_BYTES_MAX: usize = 64;

/// The build id of the file at `path`; `None` when it has none or is no ELF file that can be read.
pub fn build_id(path: &Path) -> Option<Vec<u8>> {
    let id = blazesym::helper::read_elf_build_id(path).ok()??;
    Some(id.into_owned())
}

/// The same of an open file that somebody else may change or cut off meanwhile: it is read piece by
/// piece and never mapped.
pub fn build_id_of(file: &File) -> Option<Vec<u8>> {
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let begin = word(&head, 32)?;
    let count = u16::from_le_bytes([head[56], head[57]]).min(SEGMENTS_MAX);
    (0..u64::from(count)).find_map(|place| {
        let mut segment = [0; SEGMENT_BYTES as usize];
        let at = begin.checked_add(place * SEGMENT_BYTES)?;
        file.read_exact_at(&mut segment, at).ok()?;
        if segment[..4] != NOTE.to_le_bytes() {
            return None;
        }
        let size = word(&segment, 32)?.min(NOTES_BYTES_MAX);
        let mut notes = vec![0; size as usize];
        file.read_exact_at(&mut notes, word(&segment, 8)?).ok()?;
        build_id_among(&notes)
    })
}

/// The build id in the bytes of notes: name's size, description's size, type, then both, each
/// filled up to four bytes.
fn build_id_among(notes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = notes;
    loop {
        let (head, behind) = rest.split_at_checked(12)?;
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (name_bytes, bytes, kind) = (number(0) as usize, number(4) as usize, number(8));
        let (name, behind) = behind.split_at_checked(name_bytes.checked_next_multiple_of(4)?)?;
        let (description, behind) = behind.split_at_checked(bytes.checked_next_multiple_of(4)?)?;
        if kind == BUILD_ID && name == b"GNU\0" && bytes <= BUILD_ID_BYTES_MAX {
            return Some(description[..bytes].to_vec());
        }
        rest = behind;
    }
}

/// The address, in the file's own count, at which its first segment begins, rounded to a page.
pub(crate) fn first_address(path: &Path) -> Result<u64> {
    let unreadable = |cause| Error::io(format!("cannot read {}", path.display()), cause);
    let file = File::open(path).map_err(unreadable)?;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).map_err(unreadable)?;
    let no_elf = || {
        Error::new(ErrorKind::Corrupt, "not a 64-bit little-endian ELF file")
            .found(path.display().to_string())
    };
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return Err(no_elf());
    }
    let begin = word(&head, 32).ok_or_else(no_elf)?;
    let count = u16::from_le_bytes([head[56], head[57]]).min(SEGMENTS_MAX);
    let mut first = None;
    for place in 0..u64::from(count) {
        let at = begin
            .checked_add(place * SEGMENT_BYTES)
            .ok_or_else(no_elf)?;
        let mut segment = [0; SEGMENT_BYTES as usize];
        file.read_exact_at(&mut segment, at).map_err(unreadable)?;
        if segment[..4] == LOAD.to_le_bytes() {
            let address = word(&segment, 16).ok_or_else(no_elf)?;
            first = Some(first.map_or(address, |first: u64| first.min(address)));
        }
    }
    Ok(first.ok_or_else(no_elf)? & !(PAGE_BYTES - 1))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_program_begins_at_zero_and_what_is_no_program_is_refused() {
        let own = std::env::current_exe().expect("this program");
        // Programs that can lie anywhere count from zero.
        assert_eq!(first_address(&own).expect("an ELF file"), 0);
        let folder = tempfile::tempdir().expect("a folder");
        let other = folder.path().join("other");
        for bytes in [&b""[..], &[0; 100], b"\x7fELF\x02\x01"] {
            std::fs::write(&other, bytes).expect("a file");
            assert!(first_address(&other).is_err(), "{bytes:?}");
            assert_eq!(build_id(&other), None);
        }
    }

    #[test]
    fn segments_that_lie_nowhere_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        head[56..58].copy_from_slice(&3_u16.to_le_bytes());
        std::fs::write(&path, head).expect("a file");
        assert!(first_address(&path).is_err());
    }
}
