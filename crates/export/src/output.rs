//! One file of output, or stdout.

use std::io::{BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use ctf::writer::{StagedFile, write_error};
use event::{Error, Result};

/// Written in pieces of about this size.
const PIECE_BYTES: usize = 256 << 10;

/// A file that appears whole or not at all, or stdout.
pub(crate) struct Output {
    target: Target,
    path: PathBuf,
}

enum Target {
    File(BufWriter<std::fs::File>, StagedFile),
    Stdout(BufWriter<Stdout>),
}

impl Output {
    /// Starts the file at `path`; `-` is stdout.
    pub fn create(path: &Path) -> Result<Output> {
        let target = if path.as_os_str() == "-" {
            Target::Stdout(BufWriter::with_capacity(PIECE_BYTES, std::io::stdout()))
        } else {
            let (file, staged) = StagedFile::create(path)?;
            Target::File(BufWriter::with_capacity(PIECE_BYTES, file), staged)
        };
        Ok(Output {
            target,
            path: path.to_owned(),
        })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.target {
            Target::File(file, _) => file.write_all(bytes),
            Target::Stdout(stdout) => stdout.write_all(bytes),
        };
        written.map_err(|cause| self.error(cause))
    }

    /// Writes what is left and gives the file its name.
    pub fn finish(mut self) -> Result<()> {
        let flushed = match &mut self.target {
            Target::File(file, _) => file.flush(),
            Target::Stdout(stdout) => stdout.flush(),
        };
        flushed.map_err(|cause| self.error(cause))?;
        match self.target {
            Target::File(_, staged) => staged.commit().map(drop),
            Target::Stdout(_) => Ok(()),
        }
    }

    fn error(&self, cause: std::io::Error) -> Error {
        match &self.target {
            Target::File(..) => write_error(&self.path, cause),
            Target::Stdout(_) => Error::io("cannot write to stdout", cause),
        }
    }
}
