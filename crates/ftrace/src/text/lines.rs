//! The lines of a text.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use event::{Error, Result};

/// Longer lines are no events of ftrace, which prints them in a page.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes that are read at once.
const PIECE_BYTES: usize = 128 << 10;

/// The lines of a file, none longer than an event may be.
pub(super) struct Lines {
    file: BufReader<File>,
    line: String,
    bytes: Vec<u8>,
    /// Offset of the line that was handed out.
    at: u64,
    next: u64,
    /// Whether it ends as a line does.
    is_ended: bool,
    error: Option<std::io::Error>,
}

impl Lines {
    /// From the begin of a file; through a descriptor of its own, so that walks do not meet.
    pub fn new(file: &File, path: &Path) -> Result<Lines> {
        let failed = |cause| Error::io(format!("cannot read {}", path.display()), cause);
        // The same file, should its name have gone or been given to another.
        let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
        let mut file = File::open(own)
            .or_else(|_| File::open(path))
            .map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(Lines {
            file: BufReader::with_capacity(PIECE_BYTES, file),
            line: String::new(),
            bytes: Vec::new(),
            at: 0,
            next: 0,
            is_ended: true,
            error: None,
        })
    }

    /// Goes to the next line; false at the file's end.
    pub fn next(&mut self) -> bool {
        self.at = self.next;
        self.bytes.clear();
        loop {
            let piece = match self.file.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.error = Some(error);
                    return false;
                }
            };
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(piece.len());
            let room = LINE_BYTES_MAX - self.bytes.len();
            self.bytes.extend_from_slice(&piece[..taken.min(room)]);
            let is_last = piece.is_empty();
            let taken = taken + usize::from(end.is_some());
            self.file.consume(taken);
            self.next += taken as u64;
            if end.is_some() || is_last && self.next > self.at {
                self.is_ended = end.is_some();
                break;
            }
            if is_last {
                return false;
            }
        }
        self.line.clear();
        self.line.push_str(&String::from_utf8_lossy(&self.bytes));
        true
    }

    /// The line without its end.
    pub fn text(&self) -> &str {
        let line = self.line.trim_end_matches('\r');
        // An older systrace keeps its lines in a script's string.
        line.strip_suffix("\\n\\").unwrap_or(line)
    }

    /// Its offset in the file.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Whether the file goes on behind it.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether all of its bytes are those of a text.
    pub fn is_clean(&self) -> bool {
        let is_control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\r');
        let is_utf8 = self.bytes.is_ascii() || std::str::from_utf8(&self.bytes).is_ok();
        is_utf8 && !self.bytes.iter().any(is_control)
    }

    /// Whether it holds a run of bytes as no name has one: parts of several lines may be in it.
    pub fn is_overwritten(&self) -> bool {
        let is_run = |run: &[u8]| matches!(run, [0, 0, 0, 0] | [0xff, 0xff, 0xff, 0xff]);
        self.bytes.windows(RUN_BYTES).any(is_run)
    }

    /// What could not be read from the file.
    pub fn take_error(&mut self) -> Option<std::io::Error> {
        self.error.take()
    }
}

/// See [`Lines::is_overwritten`].
const RUN_BYTES: usize = 4;
