//! Indexes that are kept from one time to the next, and whether a trace is still what it was.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use timeline::Index;

/// Files of a trace that are looked at, at most.
const FILES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 8;

/// The names, sizes and times of the files below `roots`: other ones mean another trace.
pub(crate) fn fingerprint(roots: &[PathBuf]) -> Vec<u8> {
    let mut found = Vec::new();
    for root in roots {
        look(root, 0, &mut found);
    }
    found.sort_unstable();
    found.concat()
}

fn look(path: &Path, depth: usize, found: &mut Vec<Vec<u8>>) {
    let Ok(facts) = fs::metadata(path) else {
        return;
    };
    if facts.is_file() && found.len() < FILES_MAX {
        let mut file = path.as_os_str().as_encoded_bytes().to_vec();
        for number in [facts.size() as i64, facts.mtime(), facts.mtime_nsec()] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        found.push(file);
    }
    if facts.is_dir() && depth < DEPTH_MAX {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| look(&entry.path(), depth + 1, found));
    }
}

/// Where the index of these traces is kept below `folder`.
pub(crate) fn place(folder: &Path, roots: &[PathBuf]) -> PathBuf {
    let mut name = 0xcbf2_9ce4_8422_2325u64;
    for root in roots {
        let whole = fs::canonicalize(root).unwrap_or_else(|_| root.clone());
        for byte in whole.as_os_str().as_encoded_bytes().iter().chain(&[0]) {
            name = (name ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    folder.join(format!("{name:016x}.index"))
}

/// The index that was kept with this key, if there is one.
pub(crate) fn read(path: &Path, key: &[u8]) -> Option<Index> {
    Index::from_bytes(&fs::read(path).ok()?, key)
}

/// Keeps an index, for this user alone. Without it the next view takes longer, no more: what
/// stands in the way is nobody's concern.
pub(crate) fn write(path: &Path, index: &Index, key: &[u8]) -> Option<()> {
    let folder = path.parent()?;
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder).ok()?;
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&partial).ok()?;
    let written = index.write(key, &mut file);
    if written.and_then(|()| fs::rename(&partial, path)).is_err() {
        fs::remove_file(&partial).ok();
        return None;
    }
    Some(())
}
