//! `per_cpu/cpuN/trace_pipe_raw`: sub-buffers as they leave the kernel.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use event::{Cpu, Error, Result};

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
