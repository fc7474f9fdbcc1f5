//! The file below a stream. Packets reach it in pieces that cost the page cache little; large ones,
//! when there is time, past it.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use event::Result;
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::aligned::BLOCK_BYTES;
use super::write_error;

/// Pieces end at multiples of this: the page cache fills whole blocks of pages then, each in one
/// go, and no page twice. Not more than this: a kernel that does not preempt itself copies as much
/// in one go as the file system has in a folio, up to megabytes, and a task of any priority waits
/// for that.
const PIECE_BYTES: u64 = 64 * 1024;
/// A file that is so large has room reserved ahead: a write finds its blocks there, and need not
/// account for each. Smaller ones end soon.
const RESERVED_FROM_BYTES: u64 = 1 << 20;
/// Of a file's size, so much is reserved at once: one part in this many, and at most so much.
const RESERVED_PARTS: u64 = 4;
const RESERVED_BYTES_MAX: u64 = 16 << 20;
/// Packets of this size and more go past the page cache, to the disk itself: that takes a third of
/// the CPU's time, and no memory of others. But it waits for the disk, which smaller ones are not
/// worth.
const DIRECT_FROM_BYTES: usize = 256 << 10;

/// The way past the page cache.
#[derive(Debug)]
enum Direct {
    /// Not tried yet.
    Untried,
    Open(File),
    /// The file system knows none.
    None,
}

/// A stream's file, to whose end whole packets are added.
#[derive(Debug)]
pub(super) struct Storage {
    file: File,
    direct: Direct,
    size_bytes: u64,
    /// Up to where blocks are reserved; at least the size. None where that cannot be done.
    reserved_bytes: Option<u64>,
}

impl Storage {
    /// A new file.
    pub fn create(path: &Path) -> Result<Storage> {
        let mut options = File::options();
        // Read by `take_from` alone.
        let file = options.read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|cause| write_error(path, cause))?;
        Ok(Storage {
            file,
            direct: Direct::Untried,
            size_bytes: 0,
            reserved_bytes: Some(0),
        })
    }

    /// The size of the file.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// How many bytes a packet of `packet_bytes` is to have at the end of this file: a large one
    /// ends at a block, so that the next begins there.
    pub fn padded(&self, packet_bytes: usize) -> usize {
        let end = self.size_bytes + packet_bytes as u64;
        match packet_bytes >= DIRECT_FROM_BYTES && !matches!(self.direct, Direct::None) {
            true => packet_bytes + (end.next_multiple_of(BLOCK_BYTES as u64) - end) as usize,
            false => packet_bytes,
        }
    }

    /// Adds a packet, or after an error nothing: half of one would spoil those before it. It waits
    /// for the disk where it may, else only when there is no memory.
    pub fn append(&mut self, packet: &[u8], may_wait: bool) -> std::io::Result<()> {
        self.reserve(packet.len() as u64);
        let written = match may_wait.then(|| self.append_directly(packet)) {
            Some(Ok(true)) => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(false)) | None => self.append_by_cache(packet),
        };
        match &written {
            Ok(()) => self.size_bytes += packet.len() as u64,
            // That it cannot be cut off is no news.
            Err(_) => drop(self.file.set_len(self.size_bytes)),
        }
        written
    }

    fn append_by_cache(&self, packet: &[u8]) -> std::io::Result<()> {
        let first = PIECE_BYTES - self.size_bytes % PIECE_BYTES;
        let (first, others) = packet.split_at(packet.len().min(first as usize));
        let mut pieces = std::iter::once(first).chain(others.chunks(PIECE_BYTES as usize));
        let mut offset = self.size_bytes;
        pieces.try_for_each(|piece| {
            self.file.write_all_at(piece, offset)?;
            offset += piece.len() as u64;
            Ok(())
        })
    }

    /// Adds a packet past the page cache. False where that cannot be done, now or with this file.
    fn append_directly(&mut self, packet: &[u8]) -> std::io::Result<bool> {
        let block = BLOCK_BYTES as u64;
        let is_aligned = self.size_bytes.is_multiple_of(block)
            && packet.len().is_multiple_of(BLOCK_BYTES)
            && packet.as_ptr().addr().is_multiple_of(BLOCK_BYTES);
        if packet.len() < DIRECT_FROM_BYTES || !is_aligned {
            return Ok(false);
        }
        if let Direct::Untried = self.direct {
            // By its descriptor: its directory gets another name when the trace is done.
            let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            let mut options = File::options();
            let flags = OFlags::DIRECT.bits() as i32;
            let opened = options.write(true).custom_flags(flags).open(path);
            self.direct = opened.map_or(Direct::None, Direct::Open);
        }
        let Direct::Open(file) = &self.direct else {
            return Ok(false);
        };
        match file.write_all_at(packet, self.size_bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => Err(error),
            // What is amiss with the way shows on the other one too, if it is more than that.
            Err(_) => {
                self.direct = Direct::None;
                Ok(false)
            }
        }
    }

    /// Takes all from `offset` on, where a packet begins, out of the file again. Gives its bytes,
    /// and what was reserved behind them goes back.
    pub fn take_from(&mut self, offset: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.size_bytes.saturating_sub(offset) as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        self.file.set_len(offset)?;
        (self.size_bytes, self.reserved_bytes) = (offset, Some(offset));
        Ok(bytes)
    }

    /// Reserves blocks for `more` bytes, and some beyond. Without them writing goes on as well.
    fn reserve(&mut self, more: u64) {
        let end = self.size_bytes + more;
        let reserved = self.reserved_bytes.filter(|reserved| *reserved < end);
        let Some(reserved) = reserved.filter(|_| end > RESERVED_FROM_BYTES) else {
            return;
        };
        let begin = reserved.max(self.size_bytes);
        let ahead = (end / RESERVED_PARTS).min(RESERVED_BYTES_MAX);
        let end = (end + ahead).next_multiple_of(PIECE_BYTES);
        let done = fallocate(&self.file, FallocateFlags::KEEP_SIZE, begin, end - begin);
        self.reserved_bytes = done.is_ok().then_some(end);
    }
}

/// What was reserved and not used goes back.
impl Drop for Storage {
    fn drop(&mut self) {
        if self.reserved_bytes.is_none_or(|end| end > self.size_bytes) {
            let _ = self.file.set_len(self.size_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::aligned::AlignedBytes;
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn check(sizes: &[usize], may_wait: bool) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stream");
        let mut storage = Storage::create(&path).expect("a file");
        let mut expect = Vec::new();
        for (place, size) in sizes.iter().enumerate() {
            let mut packet = AlignedBytes::default();
            packet.extend_from_slice(&vec![place as u8 + 1; *size]);
            packet.zero_up_to(storage.padded(*size));
            storage.append(&packet, may_wait).expect("room");
            expect.extend_from_slice(&packet);
            assert_eq!(storage.size_bytes(), expect.len() as u64);
        }
        drop(storage);
        assert_eq!(std::fs::read(&path).expect("a file"), expect);
        let used_bytes = std::fs::metadata(&path).expect("a file").blocks() * 512;
        // And a block of the file system's own: its list of where the others are.
        let most = (expect.len() as u64).next_multiple_of(PIECE_BYTES) + BLOCK_BYTES as u64;
        assert!(
            used_bytes <= most,
            "{used_bytes} bytes for {}",
            expect.len()
        );
    }

    #[test]
    fn packets_of_any_size_follow_each_other_and_no_block_is_kept_beyond_them() {
        for may_wait in [true, false] {
            check(&[], may_wait);
            check(&[1], may_wait);
            check(&[100, 65_536, 3], may_wait);
            check(&[65_436, 100, 65_536], may_wait);
            check(&[524_000; 20], may_wait);
            check(&[524_000, 7, 524_000, 524_000, 4096, 300_000], may_wait);
        }
    }

    #[test]
    fn a_packet_that_does_not_fit_leaves_those_before_it() {
        let file = File::options().write(true).open("/dev/full");
        let mut storage = Storage {
            file: file.expect("the device that is always full"),
            direct: Direct::Untried,
            size_bytes: 0,
            reserved_bytes: Some(0),
        };
        let refused = storage.append(&[1; 100], false).expect_err("no room");
        assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
        assert_eq!(storage.size_bytes(), 0);
    }
}
