//! The map of a traced process: the programs and libraries that it had loaded.

use abi::rings::{Loaded, Plain};

use crate::layout::shown;

/// A program or library in the memory of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedObject {
    /// Where it begins in the memory.
    pub begin: u64,
    /// How many bytes of memory it spans.
    pub size_bytes: u64,
    /// Whether it lies elsewhere than its file says, as code that can lie anywhere.
    pub is_moved: bool,
    /// When it was noticed, in nanoseconds of CLOCK_MONOTONIC.
    pub noticed_ns: u64,
    /// What tells this build from others; empty when it has no such note.
    pub build_id: Vec<u8>,
    /// Its file, as the process called it.
    pub path: String,
}

/// The objects in `bytes`, up to the first entry that makes no sense, and how many bytes they take.
pub fn objects(bytes: &[u8]) -> (Vec<LoadedObject>, usize) {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some((object, size)) = bytes.get(at..).and_then(object) {
        found.push(object);
        at += size;
    }
    (found, at)
}

fn object(bytes: &[u8]) -> Option<(LoadedObject, usize)> {
    let entry = Loaded::from_bytes(bytes)?;
    let size = entry.entry_bytes as usize;
    let rest = bytes.get(size_of::<Loaded>()..size)?;
    let (build_id, rest) = rest.split_at_checked(entry.build_id_bytes.into())?;
    let path = rest.get(..entry.path_bytes.into())?;
    // Addresses at the end of the space wrap around in no process.
    entry.begin.checked_add(entry.bytes)?;
    let object = LoadedObject {
        begin: entry.begin,
        size_bytes: entry.bytes,
        is_moved: entry.bias != 0,
        noticed_ns: entry.noticed_ns,
        build_id: build_id.to_vec(),
        path: shown(&String::from_utf8_lossy(path)),
    };
    Some((object, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(size: u32, build_id: u16, path: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(size.to_le_bytes());
        bytes.extend(build_id.to_le_bytes());
        bytes.extend(path.to_le_bytes());
        for word in [0x1000_u64, 0x2000, 0x1000, 7] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([1, 2]);
        bytes.extend(b"/bin/x");
        bytes
    }

    #[test]
    fn objects_are_read_up_to_what_makes_no_sense() {
        let sound = entry(48, 2, 6);
        let expect = LoadedObject {
            begin: 0x1000,
            size_bytes: 0x2000,
            is_moved: true,
            noticed_ns: 7,
            build_id: vec![1, 2],
            path: "/bin/x".to_owned(),
        };
        assert_eq!(objects(&sound), (vec![expect.clone()], 48));
        for broken in [
            entry(0, 2, 6),
            entry(49, 2, 6),
            entry(48, 3, 6),
            entry(48, 2, 7),
        ] {
            let bytes = [sound.clone(), broken].concat();
            assert_eq!(objects(&bytes), (vec![expect.clone()], 48));
        }
        assert_eq!(objects(&sound[..47]), (vec![], 0));
    }
}
