//! Indexes that are kept from one time to the next, and whether a trace is still what it was.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use timeline::Index;

/// Files of a trace that are looked at, at most.
const FILES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 8;

/// The files of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files(Vec<Facts>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Facts {
    path: PathBuf,
    size_bytes: u64,
    modified: (i64, i64),
    inode: u64,
}

/// How files differ from what they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// They do not.
    None,
    /// Something was added behind what they held, or beside them: they are still written.
    Grown,
    /// They are others, or some are gone.
    Other,
}

impl Files {
    /// Those below `roots`, as they are now.
    pub fn below(roots: &[PathBuf]) -> Files {
        let mut found = Vec::new();
        for root in roots {
            look(root, 0, &mut found);
        }
        found.sort_unstable();
        Files(found)
    }

    /// Their names, sizes and times as bytes: other ones mean another trace.
    pub fn fingerprint(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for file in &self.0 {
            bytes.extend_from_slice(file.path.as_os_str().as_encoded_bytes());
            let (seconds, ns) = file.modified;
            for number in [file.size_bytes as i64, seconds, ns] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        bytes
    }

    /// How those of `now` differ from these.
    pub fn change_to(&self, now: &Files) -> Change {
        if self == now {
            return Change::None;
        }
        let goes_on = |before: &Facts| {
            let place = now.0.binary_search_by(|file| file.path.cmp(&before.path));
            let now = place.ok().and_then(|place| now.0.get(place));
            now.is_some_and(|now| {
                now == before || now.inode == before.inode && now.size_bytes > before.size_bytes
            })
        };
        match !self.0.is_empty() && self.0.iter().all(goes_on) {
            true => Change::Grown,
            false => Change::Other,
        }
    }
}

fn look(path: &Path, depth: usize, found: &mut Vec<Facts>) {
    let Ok(facts) = fs::metadata(path) else {
        return;
    };
    if facts.is_file() && found.len() < FILES_MAX {
        found.push(Facts {
            path: path.to_owned(),
            size_bytes: facts.size(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            inode: facts.ino(),
        });
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
    Index::open(fs::File::open(path).ok()?, key)
}

/// A file for an index on its way to its place. It goes when it does not come there.
pub(crate) struct Partial {
    path: PathBuf,
    place: PathBuf,
}

impl Partial {
    /// A new file, for this user alone, that becomes the one at `place`. Without one the next view
    /// takes longer, and this one more memory: what stands in the way is nobody's concern.
    pub fn new(place: &Path) -> Option<(Partial, fs::File)> {
        let folder = place.parent()?;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder).ok()?;
        remove_abandoned(folder, place);
        let path = place.with_extension(format!("{}.{PARTIAL}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.mode(0o600).open(&path).ok()?;
        let place = place.to_owned();
        Some((Partial { path, place }, file))
    }

    /// Puts the file where the next view looks for it.
    pub fn finish(self) -> Option<()> {
        fs::rename(&self.path, &self.place).ok()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // It has gone where it was put into its place.
        fs::remove_file(&self.path).ok();
    }
}

/// The end of the name of a file that is not finished.
const PARTIAL: &str = "partial";

/// Removes what views of the same trace left that were killed.
fn remove_abandoned(folder: &Path, place: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let inner = path.file_stem().map(Path::new);
        let is_of_place = inner.and_then(Path::file_stem) == place.file_stem();
        let is_partial = path.extension().is_some_and(|end| end == PARTIAL);
        let pid = inner.and_then(Path::extension).and_then(|pid| pid.to_str());
        let pid = pid.and_then(|pid| pid.parse::<u32>().ok());
        let is_gone = |pid: u32| !Path::new(&format!("/proc/{pid}")).exists();
        if is_of_place && is_partial && pid.is_some_and(is_gone) {
            fs::remove_file(path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_still_written_are_told_from_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let roots = [folder.path().to_owned()];
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| fs::write(path(name), text).expect("a file");
        write("stream_0", "first");
        write("stream_1", "first");
        let before = Files::below(&roots);
        let check = |expect: Change| {
            assert_eq!(before.change_to(&Files::below(&roots)), expect);
        };
        check(Change::None);
        write("stream_0", "first and second");
        check(Change::Grown);
        write("stream_2", "beside them");
        check(Change::Grown);
        write("stream_1", "other");
        check(Change::Other);
        let other = Files::below(&roots);
        fs::remove_file(path("stream_0")).expect("it was there");
        assert_eq!(other.change_to(&Files::below(&roots)), Change::Other);
        // Longer, but another file.
        write("new", "something that is longer than all others");
        fs::rename(path("new"), path("stream_2")).expect("the same folder");
        let now = Files::below(&roots);
        assert_eq!(other.change_to(&now), Change::Other);
        assert_ne!(other.fingerprint(), now.fingerprint());
        assert_eq!(Files::default().change_to(&now), Change::Other);
    }

    #[test]
    fn what_a_killed_view_left_goes_and_what_another_one_writes_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("00aa.index");
        let is_there = |name: &str| folder.path().join(name).exists();
        // No process has a number above the kernel's limit.
        let names = [
            "00aa.4194305.partial",
            "00bb.4194305.partial",
            "00aa.1.partial",
            "00aa.index",
        ];
        for name in names {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        let (partial, _file) = Partial::new(&place).expect("a file");
        let own = format!("00aa.{}.partial", std::process::id());
        assert_eq!(names.map(is_there), [false, true, true, true]);
        assert!(is_there(&own));
        drop(partial);
        assert!(!is_there(&own));
        let (partial, _file) = Partial::new(&place).expect("a file");
        assert_eq!(partial.finish(), Some(()));
        assert!(!is_there(&own) && is_there("00aa.index"));
    }
}
