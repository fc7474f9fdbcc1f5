//! `per_cpu/cpuN/trace_pipe_raw`: sub-buffers as they leave the kernel, copied or moved.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use event::{Cpu, Error, Result};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// Bytes that are under way at once. The kernel's default is the least.
const UNDER_WAY_BYTES: usize = 1 << 20;

/// The raw pipe of one CPU. Reads never block.
#[derive(Debug)]
pub struct PagePipe {
    cpu: Cpu,
    file: File,
    page_size_bytes: usize,
}

impl PagePipe {
    pub(crate) fn open(path: &Path, cpu: Cpu, page_size_bytes: usize) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path);
        let file =
            file.map_err(|error| Error::io(format!("cannot open {}", path.display()), error))?;
        Ok(PagePipe {
            cpu,
            file,
            page_size_bytes,
        })
    }

    /// The CPU whose events come out.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Bytes of a sub-buffer.
    pub fn page_size_bytes(&self) -> usize {
        self.page_size_bytes
    }

    /// Moves the next sub-buffer, full or not, out of the ring into `page`. False when the ring is
    /// empty.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn read_page(&mut self, page: &mut [u8]) -> Result<bool> {
        debug_assert_eq!(page.len(), self.page_size_bytes);
        loop {
            match self.file.read(page) {
                Ok(0) => return Ok(false),
                Ok(length) => {
                    // The kernel hands over whole pages; what is missing would be zero.
                    page[length..].fill(0);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                // The CPU was not on since the instance was made: it has no ring yet.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let what = format!("cannot read the ring buffer of {}", self.cpu);
                    return Err(Error::io(what, error));
                }
            }
        }
    }
}

/// What moving pages came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spliced {
    /// So many were moved.
    Pages(usize),
    /// There is no full page now.
    Nothing,
    /// The kernel or the file system cannot: they have to be copied.
    Refused,
}

/// Moves full pages from a ring into a file: the kernel hands over the pages themselves, and nobody
/// looks at their bytes.
#[derive(Debug)]
pub struct Splicer {
    out: OwnedFd,
    into: OwnedFd,
    room_bytes: usize,
}

impl Splicer {
    /// With a pipe of its own.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn new() -> std::io::Result<Splicer> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
        // Who may not have so much moves less at a time.
        let room_bytes = fcntl_setpipe_size(&into, UNDER_WAY_BYTES).unwrap_or(64 << 10);
        Ok(Splicer {
            out,
            into,
            room_bytes,
        })
    }

    /// Moves what is full now, as far as there is room under way, to the end of `file`.
    ///
    /// # Errors
    /// When `file` takes no more: the pages that were under way are lost.
    pub fn pages(&mut self, pipe: &mut PagePipe, file: &File) -> std::io::Result<Spliced> {
        let page = pipe.page_size_bytes;
        let room = self.room_bytes / page * page;
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let moved = match splice(&pipe.file, None, &self.into, None, room, flags) {
            Ok(0) | Err(Errno::AGAIN | Errno::NODEV | Errno::INTR) => return Ok(Spliced::Nothing),
            Ok(moved) => moved,
            Err(Errno::INVAL | Errno::NOSYS) => return Ok(Spliced::Refused),
            Err(error) => return Err(error.into()),
        };
        let mut left = moved;
        while left > 0 {
            match splice(&self.out, None, file, None, left, SpliceFlags::MOVE) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => left -= written,
                Err(Errno::INTR) => {}
                // The pages are in the pipe: they are copied out of it, and the next ones are read.
                Err(Errno::INVAL) => {
                    self.copy(left, file)?;
                    left = 0;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Spliced::Pages(moved / page))
    }

    fn copy(&mut self, bytes: usize, mut file: &File) -> std::io::Result<()> {
        let mut copied = vec![0; bytes];
        let mut at = 0;
        while at < bytes {
            match rustix::io::read(&self.out, &mut copied[at..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => at += read,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        std::io::Write::write_all(&mut file, &copied)
    }
}
