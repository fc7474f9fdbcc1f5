//! What is in the spool: which packets of which streams wait, and what became of the others.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ctf::writer::StagedDir;
use serde::{Deserialize, Serialize};

use crate::name;

/// How a trace ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it is in the spool.
    Whole {
        /// As its recorder counted.
        events: u64,
        /// The same of those that were lost.
        lost: u64,
    },
    /// Its recorder could not finish it; what it wrote is in the spool.
    Cut {
        /// As its recorder counted.
        events: u64,
        /// The same of those that were lost.
        lost: u64,
    },
    /// Its recorder took it away.
    Gone,
    /// Nobody wants it.
    Forgotten,
}

/// How far a delivery is; a session's status has it in these words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Whether the other side has answered on the present connection.
    pub is_connected: bool,
    /// Connections that ended before all was over.
    pub cuts: u64,
    /// Bytes of packets that the other side has.
    pub delivered_bytes: u64,
    /// The same that wait.
    pub waiting_bytes: u64,
    /// The most that ever waited.
    pub waiting_bytes_most: u64,
    /// How many may.
    pub spool_bytes: u64,
    /// Events that found no room there: they are losses in the trace.
    #[serde(rename = "lost")]
    pub lost_events: u64,
}

/// The book of a spool.
#[derive(Debug)]
pub(crate) struct Book {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
pub(crate) struct Inner {
    pub archives: BTreeMap<u32, Archive>,
    next_archive: u32,
    pub figures: Figures,
}

/// A trace in the spool.
#[derive(Debug)]
pub(crate) struct Archive {
    pub name: String,
    pub root: PathBuf,
    pub streams: Vec<Stream>,
    places: HashMap<PathBuf, usize>,
    /// Whole files that the other side has, as they were then.
    pub placed: HashMap<PathBuf, Stamp>,
    pub end: Option<End>,
    /// Its folder, once its recorder is done with it.
    pub folder: Option<StagedDir>,
}

/// A file as it was at some time.
pub(crate) type Stamp = (u64, u64, i128);

/// A stream file whose packets are sent.
#[derive(Debug)]
pub(crate) struct Stream {
    pub path: PathBuf,
    pub text: String,
    /// Ends of packets that the other side does not have, and their events.
    ends: VecDeque<(u64, u64)>,
    pub size_bytes: u64,
    pub delivered_bytes: u64,
    /// The end of the last packet that is delivered: what is before it has left the disk.
    freed_bytes: u64,
}

impl Stream {
    /// Where a piece ends that begins at `from` and has at most `bytes_max`: at the end of a
    /// packet, where one is within.
    pub fn piece_end(&self, from: u64, bytes_max: u64) -> u64 {
        let limit = from.saturating_add(bytes_max).min(self.size_bytes);
        let beyond = self.ends.partition_point(|(end, _)| *end <= limit);
        let last = beyond.checked_sub(1).map(|place| self.ends[place].0);
        last.filter(|end| *end > from).unwrap_or(limit)
    }

    /// The events that the other side does not have.
    pub fn waiting_events(&self) -> u64 {
        self.ends.iter().map(|(_, events)| events).sum()
    }
}

/// Room on the disk that is not needed any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Freed {
    pub path: PathBuf,
    pub begin: u64,
    pub end: u64,
}

impl Book {
    pub fn new(spool_bytes: u64) -> Book {
        let figures = Figures {
            spool_bytes,
            ..Figures::default()
        };
        Book {
            inner: Mutex::new(Inner {
                figures,
                ..Inner::default()
            }),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A trace that is written below `root`; gives its number.
    pub fn begin(&self, root: &Path, name: &str) -> u32 {
        let mut inner = self.lock();
        let number = inner.next_archive;
        inner.next_archive += 1;
        let archive = Archive {
            name: name.to_owned(),
            root: root.to_owned(),
            streams: Vec::new(),
            places: HashMap::new(),
            placed: HashMap::new(),
            end: None,
            folder: None,
        };
        inner.archives.insert(number, archive);
        number
    }

    /// Says how a trace ended; its folder stays until it is delivered.
    pub fn end(&self, number: u32, end: End, folder: Option<StagedDir>) {
        if let Some(archive) = self.lock().archives.get_mut(&number)
            && archive.end.is_none()
        {
            archive.end = Some(end);
            archive.folder = folder;
        }
    }

    /// Whether there is room for a packet; its events are counted as lost when there is none.
    pub fn takes(&self, size_bytes: u64, events: u64) -> bool {
        let mut inner = self.lock();
        let figures = &mut inner.figures;
        let is_room = figures.waiting_bytes.saturating_add(size_bytes) <= figures.spool_bytes;
        // One without events says what is missing: that must get through.
        if !is_room && events > 0 {
            figures.lost_events += events;
        }
        is_room || events == 0
    }

    /// A packet that was taken did not reach the disk.
    pub fn is_lost(&self, events: u64) {
        self.lock().figures.lost_events += events;
    }

    /// A packet was written to the file at `path`.
    pub fn wrote(&self, number: u32, path: &Path, end_bytes: u64, events: u64) {
        let mut inner = self.lock();
        let Inner {
            archives, figures, ..
        } = &mut *inner;
        let Some(archive) = archives.get_mut(&number) else {
            return;
        };
        let Ok(below) = path.strip_prefix(&archive.root) else {
            return;
        };
        let place = match archive.places.get(below) {
            Some(place) => *place,
            None => {
                // What can have no name over there is a whole file that nobody can send: it is
                // missing, and the traces of applications take care that there is none.
                let Some(text) = name::text(below) else {
                    return;
                };
                archive
                    .places
                    .insert(below.to_owned(), archive.streams.len());
                archive.streams.push(Stream {
                    path: below.to_owned(),
                    text,
                    ends: VecDeque::new(),
                    size_bytes: 0,
                    delivered_bytes: 0,
                    freed_bytes: 0,
                });
                archive.streams.len() - 1
            }
        };
        let stream = &mut archive.streams[place];
        figures.waiting_bytes += end_bytes.saturating_sub(stream.size_bytes);
        figures.waiting_bytes_most = figures.waiting_bytes_most.max(figures.waiting_bytes);
        stream.size_bytes = end_bytes;
        stream.ends.push_back((end_bytes, events));
    }

    /// The other side has a stream up to `size_bytes`. Gives how much more that is, and what it
    /// frees; the error is how much it had, when that has shrunk or is beyond the end.
    pub fn has(
        &self,
        number: u32,
        place: usize,
        size_bytes: u64,
    ) -> Result<(u64, Option<Freed>), u64> {
        let mut inner = self.lock();
        let Inner {
            archives, figures, ..
        } = &mut *inner;
        let Some(archive) = archives.get_mut(&number) else {
            return Ok((0, None));
        };
        let Some(stream) = archive.streams.get_mut(place) else {
            return Ok((0, None));
        };
        if !(stream.delivered_bytes..=stream.size_bytes).contains(&size_bytes) {
            return Err(stream.delivered_bytes);
        }
        let more = size_bytes - stream.delivered_bytes;
        stream.delivered_bytes = size_bytes;
        figures.delivered_bytes += more;
        figures.waiting_bytes = figures.waiting_bytes.saturating_sub(more);
        let begin = stream.freed_bytes;
        while let Some((end, _)) = stream.ends.front().filter(|(end, _)| *end <= size_bytes) {
            stream.freed_bytes = *end;
            stream.ends.pop_front();
        }
        let end = stream.freed_bytes;
        let freed = (end > begin).then(|| Freed {
            path: archive.root.join(&stream.path),
            begin,
            end,
        });
        Ok((more, freed))
    }

    /// The other side has all of a trace; gives its folder, to be removed.
    pub fn is_over(&self, number: u32) -> Option<StagedDir> {
        let mut inner = self.lock();
        let archive = inner.archives.remove(&number)?;
        let streams = archive.streams.iter();
        let waiting = streams.map(|stream| stream.size_bytes - stream.delivered_bytes);
        let waiting: u64 = waiting.sum();
        inner.figures.waiting_bytes = inner.figures.waiting_bytes.saturating_sub(waiting);
        archive.folder
    }

    /// The folder of a trace cannot be read any more.
    pub fn is_gone(&self, number: u32) {
        if let Some(archive) = self.lock().archives.get_mut(&number) {
            archive.end = Some(End::Gone);
        }
    }

    /// Takes out all that was not delivered.
    pub fn take_rest(&self) -> Vec<Archive> {
        let archives = std::mem::take(&mut self.lock().archives);
        archives.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_what_finds_no_room_is_counted() {
        let book = Book::new(100);
        let root = Path::new("/spool");
        let number = book.begin(root, "trace");
        let path = root.join("kernel/channel0_0");
        assert!(book.takes(60, 6));
        book.wrote(number, &path, 60, 6);
        assert!(!book.takes(41, 4), "no room");
        assert!(book.takes(41, 0), "what says so gets through");
        assert!(book.takes(40, 3));
        book.wrote(number, &path, 100, 3);
        let figures = book.lock().figures;
        assert_eq!((figures.waiting_bytes, figures.lost_events), (100, 4));
        let (more, freed) = book.has(number, 0, 70).expect("in order");
        let freed = freed.map(|freed| (freed.begin, freed.end));
        assert_eq!((more, freed), (70, Some((0, 60))), "whole packets alone");
        assert_eq!(book.has(number, 0, 69), Err(70), "it had more");
        assert_eq!(book.has(number, 0, 101), Err(70), "it never got that");
        assert!(book.takes(70, 1));
        let inner = book.lock();
        assert_eq!(inner.figures.waiting_bytes, 30);
        assert_eq!(inner.archives[&number].streams[0].waiting_events(), 3);
    }

    #[test]
    fn a_piece_ends_with_a_packet_where_it_can() {
        let book = Book::new(u64::MAX);
        let root = Path::new("/spool");
        let number = book.begin(root, "trace");
        for end in [100, 150, 1150] {
            book.wrote(number, &root.join("a"), end, 1);
        }
        let inner = book.lock();
        let stream = &inner.archives[&number].streams[0];
        let check = |from: u64, most: u64, expect: u64| {
            assert_eq!(stream.piece_end(from, most), expect, "{from} {most}");
        };
        check(0, 10_000, 1150);
        check(0, 149, 100);
        check(0, 150, 150);
        check(30, 100, 100);
        check(150, 400, 550);
        check(550, 400, 950);
        check(950, 400, 1150);
        check(1150, 400, 1150);
    }
}
