//! The archives of a session: their names, which of them stay, and what is told of them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use ctf::writer::write_error;
use event::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::status::ArchiveFacts;
use crate::clock::stamp;
use crate::keep::Keep;

/// No more archives are told of one by one.
const TOLD_MAX: usize = 1000;

/// The archives in a folder.
#[derive(Debug)]
pub(super) struct Book {
    folder: PathBuf,
    /// No other session writes there.
    _lock: File,
    keep: Keep,
    next_number: u64,
    pub archives: Vec<ArchiveFacts>,
    pub removed: u64,
    /// Of all archives, also those that are gone.
    pub events: u64,
    pub lost: u64,
}

impl Book {
    /// Of the archives below `folder`, where a session of before may have left some.
    pub fn open(folder: &Path, keep: Keep) -> Result<Book> {
        fs::create_dir_all(folder).map_err(|cause| write_error(folder, cause))?;
        let lock = lock(folder)?;
        let last = archives(folder, ARCHIVE).last().map(|(number, _)| *number);
        let snapshot = archives(folder, SNAPSHOT).last().map(|(number, _)| *number);
        Ok(Book {
            folder: folder.to_owned(),
            _lock: lock,
            keep,
            next_number: last.max(snapshot).unwrap_or(0) + 1,
            archives: Vec::new(),
            removed: 0,
            events: 0,
            lost: 0,
        })
    }

    /// The path of the next archive, which begins at `wall_ns`. The number comes first: it grows
    /// also when the clock is set back.
    pub fn next_archive(&mut self, wall_ns: i64) -> PathBuf {
        self.next(ARCHIVE, wall_ns)
    }

    /// The path of the next snapshot.
    pub fn next_snapshot(&mut self, wall_ns: i64) -> PathBuf {
        self.next(SNAPSHOT, wall_ns)
    }

    fn next(&mut self, kind: &str, wall_ns: i64) -> PathBuf {
        let number = self.next_number;
        self.next_number += 1;
        let name = format!("{kind}{number:06}-{}", stamp(wall_ns));
        self.folder.join(name)
    }

    /// Takes note of one that is whole, and removes what is not to stay.
    pub fn add(&mut self, facts: ArchiveFacts) -> Result<()> {
        self.events += facts.events;
        self.lost += facts.lost;
        if self.archives.len() >= TOLD_MAX {
            self.archives.remove(0);
        }
        let kind = match name_of(&facts.path).starts_with(SNAPSHOT) {
            true => SNAPSHOT,
            false => ARCHIVE,
        };
        self.archives.push(facts);
        self.remove_old(kind)
    }

    fn remove_old(&mut self, kind: &str) -> Result<()> {
        if self.keep == Keep::ALL {
            return Ok(());
        }
        let all = archives(&self.folder, kind);
        let sizes: Vec<u64> = match self.keep.bytes {
            Some(_) => all.iter().map(|(_, path)| stream_bytes(path)).collect(),
            None => vec![0; all.len()],
        };
        let mut left_bytes: u64 = sizes.iter().sum();
        let mut left = all.len();
        for ((_, path), size) in all.iter().zip(sizes) {
            let is_too_much = self.keep.bytes.is_some_and(|bytes| left_bytes > bytes);
            if left <= 1 || (left <= self.keep.count && !is_too_much) {
                break;
            }
            remove(path)?;
            self.archives.retain(|facts| facts.path != *path);
            (left, left_bytes) = (left - 1, left_bytes - size);
            self.removed += 1;
        }
        Ok(())
    }
}

/// How the names of archives and of snapshots begin.
const ARCHIVE: &str = "";
const SNAPSHOT: &str = "snapshot-";

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Those of a kind, by their numbers. What has another name is somebody else's.
fn archives(folder: &Path, kind: &str) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let number = number(&name_of(&entry.path()), kind)?;
            entry.path().is_dir().then(|| (number, entry.path()))
        })
        .collect();
    found.sort();
    found
}

/// The number in `KINDnnnnnn-YYYYMMDDThhmmssZ`.
fn number(name: &str, kind: &str) -> Option<u64> {
    let (number, stamp) = name.strip_prefix(kind)?.split_once('-')?;
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (day, time) = stamp.strip_suffix('Z')?.split_once('T')?;
    let is_stamp = day.len() == 8 && time.len() == 6 && is_digits(day) && is_digits(time);
    let is_ours = number.len() >= 6 && is_digits(number) && is_stamp;
    number.parse().ok().filter(|_| is_ours)
}

/// Takes the name away first: who lists the folder meanwhile never sees half an archive.
fn remove(path: &Path) -> Result<()> {
    let aside = path.with_file_name(format!(".{}.removed", name_of(path)));
    let failed = |cause| {
        Error::io(
            format!("cannot remove the archive {}", path.display()),
            cause,
        )
        .fix("remove it by hand, or give --keep more")
    };
    fs::rename(path, &aside).map_err(failed)?;
    fs::remove_dir_all(&aside).map_err(failed)
}

/// The folder, which is locked: it says itself who writes there, whoever is asked.
fn lock(folder: &Path) -> Result<File> {
    let file = File::open(folder).map_err(|cause| write_error(folder, cause))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            let what = "another session writes into this folder";
            Err(Error::new(ErrorKind::AlreadyExists, what)
                .found(folder.display().to_string())
                .fix("name another by -o; rtscope record list shows whose it is"))
        }
        // Not every file system knows locks.
        _ => Ok(file),
    }
}

/// What the streams of a trace take; the names of functions are shared between archives.
pub(super) fn stream_bytes(archive: &Path) -> u64 {
    folder_bytes(&archive.join("kernel")) + folder_bytes(&archive.join("ust"))
}

/// What the files below `folder` take.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => folder_bytes(&entry.path()),
        _ => entry.metadata().map_or(0, |facts| facts.len()),
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_our_own_pattern_are_archives() {
        let check = |name: &str, kind: &str, expect: Option<u64>| {
            assert_eq!(number(name, kind), expect, "{name}");
        };
        check("000012-20261123T063300Z", ARCHIVE, Some(12));
        check("1000012-20261123T063300Z", ARCHIVE, Some(1_000_012));
        check("snapshot-000003-20261123T063300Z", SNAPSHOT, Some(3));
        for other in [
            "12-20261123T063300Z",
            "000012",
            "000012-2026",
            "notes",
            "000012-20261123T063300Z.bak",
            "+00012-20261123T063300Z",
            ".000012-20261123T063300Z.partial-3",
        ] {
            check(other, ARCHIVE, None);
        }
    }

    /// Archives of 100 bytes each; which of them stay, and what else does.
    fn check(keep: Keep, count: usize, expect: &[u64]) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("mine")).expect("a folder");
        let mut book = Book::open(folder.path(), keep).expect("opened");
        for _ in 0..count {
            let path = book.next_archive(0);
            fs::create_dir(&path).expect("a folder");
            fs::create_dir(path.join("kernel")).expect("a folder");
            fs::write(path.join("kernel/channel0_0"), [0; 100]).expect("written");
            fs::write(path.join("kallsyms"), [0; 999]).expect("written");
            let facts = ArchiveFacts {
                path,
                events: 7,
                ..ArchiveFacts::default()
            };
            book.add(facts).expect("added");
        }
        let left = archives(folder.path(), ARCHIVE);
        let left: Vec<u64> = left.into_iter().map(|(number, _)| number).collect();
        assert_eq!(left, expect, "{keep:?}");
        assert_eq!(book.archives.len(), left.len());
        assert_eq!(book.removed as usize, count - left.len());
        assert_eq!(
            book.events as usize,
            7 * count,
            "also of those that are gone"
        );
        assert!(folder.path().join("mine").is_dir());
        let refused = Book::open(folder.path(), keep).expect_err("ours");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        drop(book);
        let again = Book::open(folder.path(), keep)
            .expect("opened")
            .next_archive(0);
        let expect = count as u64 + 1;
        assert_eq!(
            number(&name_of(&again), ARCHIVE),
            Some(expect),
            "numbers go on"
        );
    }

    #[test]
    fn the_oldest_archives_go_first_and_the_newest_stays() {
        let keep = |count, bytes| Keep { count, bytes };
        check(Keep::ALL, 3, &[1, 2, 3]);
        check(keep(2, None), 5, &[4, 5]);
        check(keep(usize::MAX, Some(300)), 5, &[3, 4, 5]);
        check(keep(2, Some(10_000)), 5, &[4, 5]);
        check(keep(5, Some(1)), 3, &[3]);
    }
}
