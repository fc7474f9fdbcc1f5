//! Where logs go that outgrow memory: blocks of bytes in a file of whoever can open one, as an
//! analysis opens none.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

use event::{Error, Result};

/// A file that is open for reading and writing at any place.
pub trait SpillFile: Read + Write + Seek {}

impl<T: Read + Write + Seek> SpillFile for T {}

/// Opens the file, when the first block is written.
type Opener = dyn Fn() -> io::Result<Box<dyn SpillFile>>;

/// Where what logs hold beyond their last rows is kept; the default keeps it in memory.
#[derive(Clone, Default)]
pub struct Spill(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    open: Option<Box<Opener>>,
    file: Option<Box<dyn SpillFile>>,
    end: u64,
    /// The places of blocks that nobody needs any more, by their room.
    free: BTreeMap<u64, Vec<u64>>,
    /// What went wrong first.
    failure: Option<io::Error>,
}

/// Blocks take multiples of this, in bytes, so that one finds room where another was.
const ROOM_BYTES: u64 = 64 << 10;

impl Spill {
    /// Keeps blocks in the file that `open` gives, which nobody else writes.
    pub fn new<F: SpillFile + 'static>(open: impl Fn() -> io::Result<F> + 'static) -> Spill {
        let open = move || Ok(Box::new(open()?) as Box<dyn SpillFile>);
        let state = State {
            open: Some(Box::new(open)),
            ..State::default()
        };
        Spill(Rc::new(RefCell::new(state)))
    }

    /// Keeps a block; after a failure nothing is kept any more.
    pub(super) fn block(&self, bytes: &[u8]) -> Block {
        let mut state = self.0.borrow_mut();
        let room = (bytes.len() as u64).next_multiple_of(ROOM_BYTES);
        let place = match state.free.get_mut(&room).and_then(Vec::pop) {
            Some(place) => place,
            None => {
                state.end += room;
                state.end - room
            }
        };
        state.attempt(|file| {
            file.seek(SeekFrom::Start(place))?;
            file.write_all(bytes)
        });
        Block {
            spill: self.clone(),
            place,
            bytes: bytes.len(),
        }
    }

    /// Whether all could be kept and read so far.
    ///
    /// # Errors
    /// The first failure, once.
    pub(super) fn check(&self) -> Result<()> {
        match self.0.borrow_mut().failure.take() {
            None => Ok(()),
            Some(error) => Err(
                Error::io("cannot keep a long log in a temporary file", error)
                    .fix("make room in the folder for temporary files, or name one: TMPDIR=FOLDER"),
            ),
        }
    }
}

impl State {
    /// Does something with the file, unless that failed before; whether it was done.
    fn attempt(&mut self, act: impl FnOnce(&mut dyn SpillFile) -> io::Result<()>) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let result = self.file().and_then(act);
        let is_done = result.is_ok();
        self.failure = result.err();
        is_done
    }

    fn file(&mut self) -> io::Result<&mut dyn SpillFile> {
        let file = match (self.file.take(), &self.open) {
            (Some(file), _) => file,
            (None, Some(open)) => open()?,
            (None, None) => Box::new(Cursor::new(Vec::new())),
        };
        Ok(&mut **self.file.insert(file))
    }
}

/// Where it is kept is no part of what is asked.
impl PartialEq for Spill {
    fn eq(&self, _other: &Spill) -> bool {
        true
    }
}

impl fmt::Debug for Spill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.borrow().end;
        f.debug_struct("Spill").field("bytes", &bytes).finish()
    }
}

/// Bytes that were spilt; their room is free when this is dropped.
#[derive(Debug)]
pub(super) struct Block {
    spill: Spill,
    place: u64,
    bytes: usize,
}

impl Block {
    /// How many bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// All bytes; none after a failure.
    pub fn read(&self) -> Vec<u8> {
        self.read_at(0, self.bytes)
    }

    /// At most `count` bytes from a place on; none after a failure.
    pub fn read_at(&self, from: usize, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count.min(self.bytes.saturating_sub(from))];
        let is_done = self.spill.0.borrow_mut().attempt(|file| {
            file.seek(SeekFrom::Start(self.place + from as u64))?;
            file.read_exact(&mut bytes)
        });
        match is_done {
            true => bytes,
            false => Vec::new(),
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let room = (self.bytes as u64).next_multiple_of(ROOM_BYTES);
        let mut state = self.spill.0.borrow_mut();
        state.free.entry(room).or_default().push(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_as_it_was_written_and_its_room_is_used_again() {
        let spill = Spill::default();
        let blocks: Vec<Block> = (0..3_u8).map(|byte| spill.block(&[byte; 70_000])).collect();
        for (byte, block) in blocks.iter().enumerate() {
            assert_eq!(block.read(), [byte as u8; 70_000]);
        }
        assert_eq!(blocks[1].read_at(69_999, 9), [1]);
        let end = spill.0.borrow().end;
        drop(blocks);
        let again = spill.block(&[7; 65_537]);
        assert_eq!((again.read()[65_536], spill.0.borrow().end), (7, end));
    }

    #[test]
    fn a_file_that_takes_no_more_is_said() {
        let spill = Spill::new(|| Ok(Cursor::new([0_u8; 8])));
        assert!(spill.check().is_ok());
        let block = spill.block(&[1; 9]);
        assert!(block.read().is_empty());
        let error = spill.check().expect_err("it does not fit");
        assert!(error.fixed_by().is_some_and(|fix| fix.contains("TMPDIR")));
    }
}
