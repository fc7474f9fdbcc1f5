//! A ring file. Controls are looked at and records copied in guarded mappings, all else is read by
//! `pread`: a process can truncate its file at any moment.
//!
//! Without a mapping, heads are read by a copy that need not be one load. A head that was caught
//! between two stores is either below the later of two readings or above it; the lesser of two is
//! therefore never beyond what was written, and a record that it cuts in two is read the next time.

mod sets;
mod sizes;

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io::ErrorKind as Io;
use std::mem::offset_of;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{Ordering, fence};

use abi::rings::{self, Header, Plain, Ring};
use event::{Error, ErrorKind, Result};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::mapping::Mapping;
use crate::{Layout, LoadedObject, Losses, Mode, Table, Window, memory, objects};

/// Whether somebody can still write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The process, or a child that shares its memory, is there.
    Alive,
    /// Nobody will write any more.
    Dead,
}

/// The open file of one traced process.
#[derive(Debug)]
pub struct RingFile {
    file: File,
    /// What tells it from all others: device and inode.
    identity: (u64, u64),
    layout: Layout,
    name: String,
    /// The header and the controls, and the data of all rings, where they could be mapped.
    front: Option<Mapping>,
    data: Option<Mapping>,
    /// What recorders change together: all before the area of filters, where it could be mapped.
    shared: OnceCell<Option<Mapping>>,
    table: Table,
    /// How much of the area of objects was read.
    objects_read: u64,
    /// The set of rings that is its recorder's.
    claimed: Option<u32>,
    /// Whether it could not be read or written to.
    is_broken: Cell<bool>,
    /// So much memory rings may be given; none: as much as they take.
    given_max: Cell<Option<u64>>,
    /// Larger rings are given none.
    given_ring_max: u64,
    /// Whether its rings were given memory, and why some have none.
    was_given: Cell<bool>,
    without_memory: Cell<Option<Errno>>,
}

/// What is wrong with the file `name`.
fn named(name: &str, error: Error) -> Error {
    let named = Error::new(error.kind(), format!("{name}: {}", error.what()));
    let named = named.found(error.value_found().unwrap_or_default());
    match error.fixed_by() {
        Some(fix) => named.fix(fix),
        None => named,
    }
}

impl RingFile {
    /// Checks the header of `file`, called `name`. `None` when the process is not through with
    /// making it, or the file is empty.
    ///
    /// # Errors
    /// As [`Layout::parse`]; otherwise what the operating system says.
    pub fn new(file: File, name: &str) -> Result<Option<RingFile>> {
        let unreadable = |cause| Error::io(format!("cannot read the rings {name}"), cause);
        let mut bytes = [0; size_of::<Header>()];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => (),
            Err(error) if error.kind() == Io::UnexpectedEof => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        }
        fence(Ordering::Acquire);
        // The magic number was stored last: what was read with it may be older.
        let magic = u64::from_bytes(&bytes).unwrap_or_default();
        if magic == rings::MAGIC {
            file.read_exact_at(&mut bytes, 0).map_err(unreadable)?;
        }
        // Behind the header: a file becomes longer before that says so.
        let facts = file.metadata().map_err(unreadable)?;
        let layout = Layout::parse(&bytes, facts.len()).map_err(|error| named(name, error))?;
        Ok(layout.map(|layout| RingFile {
            file,
            identity: (facts.dev(), facts.ino()),
            layout,
            name: name.to_owned(),
            front: None,
            data: None,
            shared: OnceCell::new(),
            table: Table::default(),
            objects_read: 0,
            claimed: None,
            is_broken: Cell::new(false),
            given_max: Cell::new(None),
            given_ring_max: memory::GIVEN_BYTES_MAX,
            was_given: Cell::new(false),
            without_memory: Cell::new(None),
        }))
    }

    /// The bytes of its descriptions so far, as it says itself.
    pub fn described_bytes(&self) -> u64 {
        self.word(offset_of!(Header, table_used) as u64)
            .unwrap_or(0)
    }

    /// What the header says.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The file's name in its directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The events described so far, as of the last [`RingFile::read_table`].
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Whether the table has gained something since it was read.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn has_new_descriptions(&self) -> Result<bool> {
        let used = self.word(offset_of!(Header, table_used) as u64)?;
        Ok(used.min(self.layout.table_bytes) > self.table.read_bytes as u64)
    }

    /// Reads what the table has gained; returns the places of new events.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn read_table(&mut self) -> Result<Range<usize>> {
        let used = self.word(offset_of!(Header, table_used) as u64)?;
        fence(Ordering::Acquire);
        let used = used.min(self.layout.table_bytes);
        let read = self.table.read_bytes as u64;
        if used <= read {
            return Ok(self.table.events.len()..self.table.events.len());
        }
        let mut bytes = vec![0; (used - read) as usize];
        self.read(&mut bytes, self.layout.table_offset + read)?;
        Ok(self.table.extend(&bytes))
    }

    /// Programs and libraries that the process has loaded since the last call. What makes no sense
    /// is left out, with all behind it: it is there for names alone.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn read_objects(&mut self) -> Result<Vec<LoadedObject>> {
        let used = self.word(offset_of!(Header, objects_used) as u64)?;
        fence(Ordering::Acquire);
        let used = used.min(self.layout.objects_bytes);
        if used <= self.objects_read {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; (used - self.objects_read) as usize];
        self.read(&mut bytes, self.layout.objects_offset + self.objects_read)?;
        self.objects_read = used;
        Ok(objects(&bytes).0)
    }

    /// What tells this file from all others, by whatever name it was opened: device and inode.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// How much the file takes of the memory. Its rings hold no more, but for what fills up their
    /// sub-buffers: a process can say that they do without having written anything.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn memory_bytes(&self) -> Result<u64> {
        /// Of the unit in which the kernel counts.
        const BLOCK_BYTES: u64 = 512;
        let facts = self.file.metadata();
        let facts = facts.map_err(|cause| self.unreadable(cause))?;
        Ok(facts.blocks().saturating_mul(BLOCK_BYTES))
    }

    /// Whether it is the file with this number on this device.
    pub fn is_file(&self, (major, minor): (u32, u32), inode: u64) -> bool {
        self.identity == (rustix::fs::makedev(major, minor), inode)
    }

    /// The offsets of a ring and its losses; `None` when the CPU has no ring.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn control(&self, ring: u32) -> Result<Option<(Window, Losses)>> {
        let first = self.ring(ring)?;
        if first.absent != 0 {
            return Ok((first.lost != Losses::default())
                .then_some((Window { head: 0, tail: 0 }, first.lost)));
        }
        let second = match self.front {
            Some(_) => first,
            None => self.ring(ring)?,
        };
        // Data that are copied after this are at least as new.
        fence(Ordering::Acquire);
        let window = Window {
            head: first.head.min(second.head),
            tail: second.tail,
        };
        Ok(Some((window, second.lost)))
    }

    /// Maps it, for whoever looks and copies often. Without it, or where that cannot be done, all
    /// is the same at a higher price.
    pub fn map(&mut self) {
        self.front = Mapping::new(&self.file, 0, self.layout.front_bytes());
        self.map_data();
    }

    /// The same of the data alone, once they have a size.
    pub fn map_data(&mut self) {
        if self.layout.has_size && self.data.is_none() {
            let (offset, bytes) = self.layout.data_area();
            self.data = Mapping::new(&self.file, offset, bytes);
        }
    }

    /// Copies a stretch of a ring to the end of `into`; at most a ring's size.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a longer stretch; otherwise what the operating system says.
    pub fn copy(&self, ring: u32, stretch: Range<u64>, into: &mut Vec<u8>) -> Result<()> {
        let size = self.layout.ring_bytes;
        let length = stretch.end.saturating_sub(stretch.start);
        if length > size || ring >= self.layout.rings {
            return Err(
                Error::new(ErrorKind::InvalidInput, "a ring does not hold so much")
                    .found(format!("{length} bytes of {size}")),
            );
        }
        let data = self.layout.data_offset_of(ring);
        let begin = stretch.start % size;
        let before_end = length.min(size - begin);
        self.copy_data(data + begin, before_end, into)?;
        self.copy_data(data, length - before_end, into)
    }

    /// Says in the modes discard and block that everything before `tail` was read.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn consumed(&self, ring: u32, tail: u64) -> Result<()> {
        // What was read before may be overwritten from now on.
        fence(Ordering::Release);
        let offset = self.layout.control_offset(ring) + offset_of!(Ring, tail) as u64;
        self.write(&tail.to_le_bytes(), offset)
    }

    /// Says that these losses of a ring, all since its process began, are told where the records
    /// before its tail are.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn stated(&self, ring: u32, losses: &Losses) -> Result<()> {
        let bytes: Vec<u8> = losses.iter().flat_map(|lost| lost.to_le_bytes()).collect();
        let offset = self.layout.control_offset(ring) + offset_of!(Ring, lost_stated) as u64;
        self.write(&bytes, offset)
    }

    /// The losses that [`RingFile::stated`] left; none before anybody did.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn losses_stated(&self, ring: u32) -> Result<Losses> {
        Ok(self.ring(ring)?.lost_stated)
    }

    /// Leaves a pair of both clocks, for whom finds the file when nobody is there any more.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn leave_pair(&self, counter: u64, ns: u64) -> Result<()> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&counter.to_le_bytes());
        bytes[8..].copy_from_slice(&ns.to_le_bytes());
        self.write(&bytes, offset_of!(Header, pair_counter) as u64)
    }

    /// Events of the process that found no room and cannot be enabled.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn unregistered(&self) -> Result<u64> {
        self.word(offset_of!(Header, unregistered) as u64)
    }

    /// The mode in force in this set of rings.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn mode(&self) -> Result<Mode> {
        self.mode_of(self.layout.set)
    }

    /// The same in another.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn mode_of(&self, set: u32) -> Result<Mode> {
        let mut bytes = [0; 4];
        self.read(&mut bytes, self.layout.of_set(set).mode_offset)?;
        Ok(match u32::from_le_bytes(bytes) {
            rings::MODE_OVERWRITE => Mode::Overwrite,
            rings::MODE_BLOCK => Mode::Block,
            _ => Mode::Discard,
        })
    }

    /// Changes the mode, for events from now on.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn set_mode(&self, mode: Mode) -> Result<()> {
        let value = match mode {
            Mode::Discard => rings::MODE_DISCARD,
            Mode::Overwrite => rings::MODE_OVERWRITE,
            Mode::Block => rings::MODE_BLOCK,
        };
        self.write(&value.to_le_bytes(), self.layout.mode_offset)
    }

    /// Whether an attempt to read it or to write to it failed: its process, or somebody of the same
    /// user, took it away under us. What comes of it harms that process's events alone.
    pub fn is_broken(&self) -> bool {
        self.is_broken.get()
    }

    /// Whether somebody can still write: whoever maps the file holds a lock on it.
    pub fn liveness(&self) -> Liveness {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // Others want to find out too.
                let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
                Liveness::Dead
            }
            Err(_) => Liveness::Alive,
        }
    }

    fn ring(&self, ring: u32) -> Result<Ring> {
        let mut bytes = [0; size_of::<Ring>()];
        let offset = self.layout.control_offset(ring);
        if self.front.is_none() {
            self.read(&mut bytes, offset)?;
        } else {
            for (place, word) in bytes.chunks_exact_mut(size_of::<u64>()).enumerate() {
                let at = offset + (place * size_of::<u64>()) as u64;
                word.copy_from_slice(&self.word(at)?.to_le_bytes());
            }
        }
        Ok(Ring::from_bytes(&bytes).unwrap_or_default())
    }

    /// A word of the header or of a control.
    fn word(&self, offset: u64) -> Result<u64> {
        if let Some(front) = &self.front {
            return front.word(offset).map_err(|cause| self.unreadable(cause));
        }
        self.word_in_file(offset)
    }

    fn word_in_file(&self, offset: u64) -> Result<u64> {
        let mut bytes = [0; size_of::<u64>()];
        self.read(&mut bytes, offset)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A word that others change in one step, as it is now.
    pub(crate) fn shared_word(&self, offset: u64) -> Result<u64> {
        let word = match self.shared() {
            Some(shared) => shared.word(offset),
            None => {
                let mut bytes = [0; size_of::<u64>()];
                let read = self.file.read_exact_at(&mut bytes, offset);
                read.map(|()| u64::from_le_bytes(bytes))
            }
        };
        word.map_err(|cause| self.unreadable(cause))
    }

    /// Changes such a word, if it still is what it was; whether it was.
    pub(crate) fn exchange(&self, offset: u64, from: u64, to: u64) -> Result<bool> {
        match self.shared() {
            Some(shared) => {
                let done = shared.exchange(offset, from, to);
                done.map_err(|cause| self.broken("cannot write to the rings", cause))
            }
            // Beyond thousands of processes nothing is mapped: two steps have to do.
            None => self.write(&to.to_le_bytes(), offset).map(|()| true),
        }
    }

    fn shared(&self) -> Option<&Mapping> {
        let bytes = self.layout.switched_bytes();
        let map = || Mapping::writable(&self.file, 0, bytes);
        self.shared.get_or_init(map).as_ref()
    }

    pub(crate) fn read(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let read = self.file.read_exact_at(bytes, offset);
        read.map_err(|cause| self.unreadable(cause))
    }

    /// Copies `bytes` of the data at `offset` to the end of `into`.
    fn copy_data(&self, offset: u64, bytes: u64, into: &mut Vec<u8>) -> Result<()> {
        let copied = match &self.data {
            Some(data) => data.copy(offset, bytes as usize, into),
            None => {
                let old = into.len();
                into.resize(old + bytes as usize, 0);
                self.file.read_exact_at(&mut into[old..], offset)
            }
        };
        copied.map_err(|cause| self.unreadable(cause))
    }

    fn unreadable(&self, cause: std::io::Error) -> Error {
        self.broken("cannot read the rings", cause)
            .fix("start its program again: somebody took the file away under it")
    }

    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(|cause| self.broken("cannot write to the rings", cause))
    }

    /// Always of the one kind: no room in the shared memory is not taken for a full disk.
    fn broken(&self, what: &str, cause: std::io::Error) -> Error {
        self.is_broken.set(true);
        Error::new(ErrorKind::Corrupt, format!("{what} {}", self.name))
            .found(cause.to_string())
            .cause(cause)
    }
}
