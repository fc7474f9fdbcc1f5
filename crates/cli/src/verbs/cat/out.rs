//! Where the lines of a print-out go: in pieces, to stdout or into a file.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use event::{Error, Result};
use report::EventLines;

use crate::exit::write_error;

/// Output is written in pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;
/// Most lines are shorter.
pub(super) const LINE_BYTES: usize = 4 << 10;

/// Where lines go: in pieces, and with what is said about them in its place.
pub(super) struct Out {
    pub text: EventLines,
    to: Box<dyn Write>,
    name: String,
}

impl Out {
    /// To a file, or to stdout.
    pub fn new(path: Option<&Path>) -> Result<Out> {
        let to: Box<dyn Write> = match path {
            None => Box::new(std::io::stdout().lock()),
            Some(path) => Box::new(File::create(path).map_err(|error| write_error(path, error))?),
        };
        Ok(Out {
            text: EventLines::with_room_for(PIECE_BYTES + LINE_BYTES),
            to,
            name: path.map_or("to stdout".to_owned(), |path| path.display().to_string()),
        })
    }

    /// Writes what there is once it is worth a call of the system.
    #[inline]
    pub fn write_piece(&mut self) -> Result<()> {
        match self.text.text().len() >= PIECE_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes what there is.
    pub fn flush(&mut self) -> Result<()> {
        let text = self.text.text();
        let written = self.to.write_all(text).and_then(|()| self.to.flush());
        self.text.clear();
        written.map_err(|cause| Error::io(format!("cannot write {}", self.name), cause))
    }

    /// Says on stderr what is missing between the lines before and after.
    pub fn say(&mut self, text: &str) -> Result<()> {
        self.flush()?;
        note!("warning: {text}");
        Ok(())
    }
}
