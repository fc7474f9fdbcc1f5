//! What a sender sends of the files of a trace.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event::{Error, ErrorKind, Result};
use rustix::fs::{FallocateFlags, fallocate};

use crate::book::{Book, Freed, Stamp, Stream};
use crate::frame::{DATA_BYTES_MAX, Frame};
use crate::name;

/// So many bytes are on their way at most.
pub(super) const WINDOW_BYTES: u64 = 8 << 20;
/// Below the root of a trace while it is written (`docs/format/live.md`).
const WRITTEN_UNTIL: &str = ".written-until";
/// Folders of a trace lie no deeper.
const DEPTH_MAX: u32 = 6;

/// Whose number a file has.
#[derive(Debug)]
enum Whose {
    Stream {
        archive: u32,
        place: usize,
    },
    Whole {
        archive: u32,
        path: PathBuf,
        stamp: Stamp,
    },
}

/// What was sent of a trace on this connection.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub is_announced: bool,
    pub is_ready: bool,
    /// Whether all of its files are on their way.
    pub has_all: bool,
    pub is_finished: bool,
    streams: Vec<SentStream>,
    /// Whole files that are on their way or there, as they were then.
    wholes: HashMap<PathBuf, Stamp>,
    /// The one that is being sent.
    whole: Option<SentWhole>,
    /// Those that come next.
    queue: Vec<PathBuf>,
    round: Option<Round>,
    said_until: Option<i64>,
    /// How many streams there were when the folders were looked through.
    walked: Option<usize>,
    walked_at_end: bool,
}

#[derive(Debug)]
struct SentStream {
    file: u32,
    /// Up to where it was sent; none until the receiver says what it has.
    sent_bytes: Option<u64>,
}

#[derive(Debug)]
struct SentWhole {
    file: u32,
    from: File,
    sent_bytes: u64,
    size_bytes: u64,
}

/// What is sent until the next look at how far the trace is.
#[derive(Debug)]
struct Round {
    until: Option<i64>,
    /// Up to where each stream is sent.
    sizes: Vec<u64>,
}

/// What was sent on one connection.
#[derive(Debug)]
pub(super) struct Files {
    book: Arc<Book>,
    /// What was sent of each trace.
    pub archives: BTreeMap<u32, Sent>,
    /// Whose number a file has, by that number.
    files: Vec<Whose>,
    /// Bytes that are on their way.
    flying_bytes: u64,
}

impl Files {
    pub fn new(book: Arc<Book>) -> Files {
        Files {
            book,
            archives: BTreeMap::new(),
            files: Vec::new(),
            flying_bytes: 0,
        }
    }

    /// Whether anything more may go now.
    pub fn has_room(&self) -> bool {
        self.flying_bytes < WINDOW_BYTES
    }

    /// How many bytes of a stream may go now.
    fn room_bytes(&self) -> u64 {
        let room = WINDOW_BYTES.saturating_sub(self.flying_bytes);
        room.min(DATA_BYTES_MAX as u64)
    }

    /// What the receiver has of a file: as it says in the beginning, or by and by.
    pub fn has(&mut self, file: u32, size_bytes: u64, is_begin: bool) -> Result<()> {
        match self.files.get(file as usize) {
            Some(Whose::Stream { archive, place }) => {
                let (archive, place) = (*archive, *place);
                let has = self.book.has(archive, place, size_bytes);
                let (more, freed) = has.map_err(|expected| {
                    let what = "the receiver lost what it had of a recording";
                    Error::new(ErrorKind::Corrupt, what)
                        .found(format!("{size_bytes} bytes of a file, after {expected}"))
                        .fix("stop the session, and start it again under another name")
                })?;
                let streams = self
                    .archives
                    .get_mut(&archive)
                    .map(|sent| &mut sent.streams);
                if let Some(stream) = streams.and_then(|streams| streams.get_mut(place)) {
                    match stream.sent_bytes {
                        None if is_begin => stream.sent_bytes = Some(size_bytes),
                        Some(_) if !is_begin => (),
                        _ => return Err(out_of_order(&Frame::Have { file, size_bytes })),
                    }
                }
                if !is_begin {
                    self.flying_bytes = self.flying_bytes.saturating_sub(more);
                }
                freed.map_or(Ok(()), free)
            }
            Some(Whose::Whole {
                archive,
                path,
                stamp,
            }) => {
                if let Some(archive) = self.book.lock().archives.get_mut(archive) {
                    archive.placed.insert(path.clone(), *stamp);
                }
                Ok(())
            }
            None => Err(out_of_order(&Frame::Ack { file, size_bytes })),
        }
    }

    /// Sends of a trace what is there and has room on the way.
    pub fn give_files(&mut self, number: u32, has_ended: bool, out: &mut Vec<u8>) -> Result<()> {
        self.open_streams(number, out);
        loop {
            if !self.has_room() || out.len() as u64 >= WINDOW_BYTES {
                return Ok(());
            }
            self.begin_round(number, has_ended)?;
            if !self.give_wholes(number, out)? || !self.give_data(number, out)? {
                return Ok(());
            }
            if !self.end_round(number, has_ended, out) {
                return Ok(());
            }
        }
    }

    /// Tells of streams that are new.
    fn open_streams(&mut self, number: u32, out: &mut Vec<u8>) {
        let inner = self.book.lock();
        let (Some(archive), Some(sent)) =
            (inner.archives.get(&number), self.archives.get_mut(&number))
        else {
            return;
        };
        for (place, stream) in archive.streams.iter().enumerate().skip(sent.streams.len()) {
            let file = self.files.len() as u32;
            self.files.push(Whose::Stream {
                archive: number,
                place,
            });
            sent.streams.push(SentStream {
                file,
                sent_bytes: None,
            });
            let open = Frame::Open {
                file,
                archive: number,
                is_whole: false,
                path: stream.text.clone(),
            };
            open.write(out);
        }
    }

    /// Looks at how far the trace is, and which files come before its packets.
    fn begin_round(&mut self, number: u32, has_ended: bool) -> Result<()> {
        let Some(sent) = self.archives.get_mut(&number) else {
            return Ok(());
        };
        if sent.round.is_some() {
            return Ok(());
        }
        let root = match self.book.lock().archives.get(&number) {
            Some(archive) => archive.root.clone(),
            None => return Ok(()),
        };
        // Before the packets: all of before it is among them.
        let mut until = written_until(&root);
        let mut wanted = Vec::new();
        let mut streams: HashSet<PathBuf> = HashSet::new();
        let inner = self.book.lock();
        let Some(archive) = inner.archives.get(&number) else {
            return Ok(());
        };
        if archive.streams.len() > sent.streams.len() {
            // What is new since then may have been before it.
            until = None;
        }
        let known = archive.streams.iter().take(sent.streams.len());
        let sizes: Vec<u64> = known.map(|stream| stream.size_bytes).collect();
        let is_walk = sent.walked != Some(sizes.len()) || (has_ended && !sent.walked_at_end);
        if is_walk {
            streams.extend(archive.streams.iter().map(|stream| stream.path.clone()));
        } else {
            wanted = metadata_of(&archive.streams, &sent.streams);
        }
        drop(inner);
        if is_walk {
            sent.walked = Some(sizes.len());
            sent.walked_at_end |= has_ended;
            walk(&root, Path::new(""), has_ended, 0, &mut wanted)?;
            wanted.retain(|path| !streams.contains(path));
        }
        for path in wanted {
            let stamp = stamp(&root.join(&path))?;
            let inner = self.book.lock();
            let placed = inner.archives.get(&number);
            let placed = placed.and_then(|archive| archive.placed.get(&path));
            if sent.wholes.get(&path).or(placed) != Some(&stamp) {
                sent.queue.push(path);
            }
        }
        sent.round = Some(Round { until, sizes });
        Ok(())
    }

    /// Sends whole files that are new; whether all are on their way.
    fn give_wholes(&mut self, number: u32, out: &mut Vec<u8>) -> Result<bool> {
        let root = match self.book.lock().archives.get(&number) {
            Some(archive) => archive.root.clone(),
            None => return Ok(false),
        };
        let Some(sent) = self.archives.get_mut(&number) else {
            return Ok(false);
        };
        loop {
            if let Some(whole) = &mut sent.whole {
                while whole.sent_bytes < whole.size_bytes {
                    if out.len() as u64 >= WINDOW_BYTES {
                        return Ok(false);
                    }
                    let left = whole.size_bytes - whole.sent_bytes;
                    let bytes = read(&whole.from, whole.sent_bytes, left)?;
                    let (file, offset) = (whole.file, whole.sent_bytes);
                    whole.sent_bytes += bytes.len() as u64;
                    let data = Frame::Data {
                        file,
                        offset,
                        bytes,
                    };
                    data.write(out);
                }
                let (file, size_bytes) = (whole.file, whole.size_bytes);
                Frame::Put { file, size_bytes }.write(out);
                sent.whole = None;
            }
            if sent.queue.is_empty() {
                return Ok(true);
            }
            let path = sent.queue.remove(0);
            let Some(text) = name::text(&path) else {
                continue;
            };
            let from = File::open(root.join(&path)).map_err(|cause| unread(&path, cause))?;
            let stamp = stamp_of(&from.metadata().map_err(|cause| unread(&path, cause))?);
            let file = self.files.len() as u32;
            sent.wholes.insert(path.clone(), stamp);
            self.files.push(Whose::Whole {
                archive: number,
                path,
                stamp,
            });
            let open = Frame::Open {
                file,
                archive: number,
                is_whole: true,
                path: text,
            };
            open.write(out);
            sent.whole = Some(SentWhole {
                file,
                from,
                sent_bytes: 0,
                size_bytes: stamp.1,
            });
        }
    }

    /// Sends packets up to where the round goes; whether all are on their way.
    fn give_data(&mut self, number: u32, out: &mut Vec<u8>) -> Result<bool> {
        let count = match self.archives.get(&number) {
            Some(sent) => sent.streams.len(),
            None => return Ok(false),
        };
        let mut is_all = true;
        for place in 0..count {
            while let Some((file, path, begin, end)) = self.next_piece(number, place) {
                if end == begin {
                    is_all = false;
                    break;
                }
                let from = File::open(&path).map_err(|cause| unread(&path, cause))?;
                let bytes = read(&from, begin, end - begin)?;
                let sent_bytes = begin + bytes.len() as u64;
                let data = Frame::Data {
                    file,
                    offset: begin,
                    bytes,
                };
                data.write(out);
                self.flying_bytes += sent_bytes - begin;
                if let Some(sent) = self.archives.get_mut(&number) {
                    sent.streams[place].sent_bytes = Some(sent_bytes);
                }
            }
        }
        Ok(is_all)
    }

    /// The next piece of a stream in this round: file, path, begin and end, which are the same when
    /// it has to wait; none when there is no more.
    fn next_piece(&self, number: u32, place: usize) -> Option<(u32, PathBuf, u64, u64)> {
        let sent = self.archives.get(&number)?;
        let stream = &sent.streams[place];
        let target = *sent.round.as_ref()?.sizes.get(place)?;
        let inner = self.book.lock();
        let archive = inner.archives.get(&number)?;
        let known = archive.streams.get(place)?;
        let path = archive.root.join(&known.path);
        let waits = |at: u64| Some((stream.file, path.clone(), at, at));
        let Some(begin) = stream.sent_bytes else {
            return waits(0);
        };
        if begin >= target {
            return None;
        }
        let room = self.room_bytes();
        let end = known.piece_end(begin, DATA_BYTES_MAX as u64);
        match end - begin <= room {
            true => Some((stream.file, path, begin, end)),
            false => waits(begin),
        }
    }

    /// Says how far the trace is now; whether there is another round.
    fn end_round(&mut self, number: u32, has_ended: bool, out: &mut Vec<u8>) -> bool {
        let Some(sent) = self.archives.get_mut(&number) else {
            return false;
        };
        let Some(round) = sent.round.take() else {
            return false;
        };
        if let Some(time_ns) = round.until
            && sent.said_until != Some(time_ns)
        {
            sent.said_until = Some(time_ns);
            let archive = number;
            Frame::Until { archive, time_ns }.write(out);
        }
        let inner = self.book.lock();
        let Some(archive) = inner.archives.get(&number) else {
            return false;
        };
        let sizes = archive.streams.iter().map(|stream| stream.size_bytes);
        let is_all = archive.streams.len() == round.sizes.len() && sizes.eq(round.sizes);
        sent.has_all = has_ended && is_all && sent.walked_at_end;
        has_ended && is_all && !sent.walked_at_end
    }
}

/// The metadata beside those streams that have new packets.
fn metadata_of(streams: &[Stream], sent: &[SentStream]) -> Vec<PathBuf> {
    let mut folders: Vec<&Path> = Vec::new();
    for (stream, sent) in streams.iter().zip(sent) {
        let folder = stream.path.parent().unwrap_or(Path::new(""));
        let is_new = sent.sent_bytes.unwrap_or(0) < stream.size_bytes;
        // Streams of one folder follow each other.
        if is_new && folders.last() != Some(&folder) {
            folders.push(folder);
        }
    }
    let folders = folders.into_iter();
    folders.map(|folder| folder.join("metadata")).collect()
}

/// Up to when the trace below `root` is whole.
fn written_until(root: &Path) -> Option<i64> {
    let bytes = fs::read(root.join(WRITTEN_UNTIL)).ok()?;
    bytes.try_into().ok().map(i64::from_le_bytes)
}

/// The files below `root` that have names over there. Indexes come with the end: before it they
/// would tell of packets that are not there.
fn walk(
    root: &Path,
    below: &Path,
    with_indexes: bool,
    depth: u32,
    found: &mut Vec<PathBuf>,
) -> Result<()> {
    let path = root.join(below);
    let entries = fs::read_dir(&path).map_err(|cause| unread(&path, cause))?;
    for entry in entries {
        let entry = entry.map_err(|cause| unread(&path, cause))?;
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(name::is_name);
        let kind = entry.file_type().map_err(|cause| unread(&path, cause))?;
        let is_left = name == "index" && !with_indexes;
        if !is_ours || is_left {
            continue;
        }
        let below = below.join(name);
        match kind.is_dir() {
            true if depth < DEPTH_MAX => walk(root, &below, with_indexes, depth + 1, found)?,
            true => (),
            false if kind.is_file() => found.push(below),
            false => (),
        }
    }
    Ok(())
}

fn stamp(path: &Path) -> Result<Stamp> {
    let facts = fs::metadata(path).map_err(|cause| unread(path, cause))?;
    Ok(stamp_of(&facts))
}

fn stamp_of(facts: &fs::Metadata) -> Stamp {
    let time = i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec());
    (facts.ino(), facts.len(), time)
}

/// At most a frame's bytes of a file, which must have some there.
fn read(file: &File, offset: u64, most: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; most.min(DATA_BYTES_MAX as u64) as usize];
    let read = file.read_exact_at(&mut bytes, offset);
    read.map_err(|cause| {
        let what = "a file of the spool is shorter than it was";
        match cause.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::new(ErrorKind::NotFound, what),
            _ => Error::io(what, cause),
        }
    })?;
    Ok(bytes)
}

fn unread(path: &Path, cause: std::io::Error) -> Error {
    Error::io(
        format!("cannot read {} of the spool", path.display()),
        cause,
    )
}

/// Gives room on the disk back.
fn free(freed: Freed) -> Result<()> {
    let Freed { path, begin, end } = freed;
    let Ok(file) = File::options().write(true).open(&path) else {
        // It was taken away.
        return Ok(());
    };
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    // A file system that cannot was refused in the beginning.
    let _ = fallocate(&file, flags, begin, end - begin);
    Ok(())
}

/// The receiver says what does not belong there.
pub(super) fn out_of_order(frame: &Frame) -> Error {
    let word = format!("{frame:?}");
    let word = word.split([' ', '{']).next().unwrap_or_default().to_owned();
    Error::new(ErrorKind::Corrupt, "the receiver answers what nobody asked")
        .found(word)
        .fix("run the same version of rtscope on both hosts")
}
