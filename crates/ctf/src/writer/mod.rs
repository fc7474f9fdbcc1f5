//! The streaming writer: metadata first, then one file per stream and CPU, packet by packet.
//!
//! Create a [`StagedDir`], a [`TraceWriter`] inside it, one [`StreamWriter`] per CPU; write events
//! in the order of time; finish every stream; commit the directory.

mod index;
mod meta;
mod payload;
mod staged;
mod stream;
mod tsdl;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event::{Cpu, Error, ErrorKind, Result};

pub use meta::{ClockMeta, EnvValue, HeaderKind, StreamMeta, TraceMeta, random_uuid};
pub use payload::PayloadWriter;
pub use staged::{StagedDir, StagedFile};
pub use stream::{StreamTotals, StreamWriter};

/// Writes one CTF trace: a directory with `metadata`, stream files and `index/`.
#[derive(Debug)]
pub struct TraceWriter {
    dir: PathBuf,
    uuid: [u8; 16],
    streams: Arc<[StreamMeta]>,
    files: u64,
}

impl TraceWriter {
    /// Makes `dir` (and its parents) and writes the metadata into it.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when `dir` holds a trace; [`ErrorKind::InvalidInput`] when a
    /// class cannot be said in CTF as we write it (fields must be whole bytes, aligned to bytes);
    /// otherwise what the operating system says, with the file's name.
    pub fn create(dir: &Path, meta: &TraceMeta) -> Result<TraceWriter> {
        let text = tsdl::metadata(meta)?;
        let index = dir.join("index");
        fs::create_dir_all(&index).map_err(|cause| write_error(&index, cause))?;
        let path = dir.join("metadata");
        if path.exists() {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                "cannot write a trace over another",
            )
            .found(format!("{} exists", path.display()))
            .mend("name a new directory, or remove this one"));
        }
        fs::write(&path, text).map_err(|cause| write_error(&path, cause))?;
        Ok(TraceWriter {
            dir: dir.to_owned(),
            uuid: meta.uuid,
            streams: meta.streams.clone().into(),
            files: 0,
        })
    }

    /// Starts the file of stream `stream_index` for `cpu`, named `NAME_CPU`.
    ///
    /// # Errors
    /// As [`TraceWriter::stream_file`].
    pub fn stream(&mut self, stream_index: usize, cpu: Cpu) -> Result<StreamWriter> {
        let name = self.streams.get(stream_index).map_or("", |meta| &meta.name);
        let file = format!("{name}_{}", cpu.0);
        self.stream_file(stream_index, &file, cpu)
    }

    /// Starts the file `file` of stream `stream_index`, whose packets belong to `cpu`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no such stream; otherwise what the operating system
    /// says, with the file's name.
    pub fn stream_file(
        &mut self,
        stream_index: usize,
        file: &str,
        cpu: Cpu,
    ) -> Result<StreamWriter> {
        let Some(meta) = self.streams.get(stream_index) else {
            return Err(Error::new(
                ErrorKind::NotFound,
                "no such stream in the trace's metadata",
            )
            .found(format!("stream {stream_index} of {}", self.streams.len())));
        };
        let start = stream::Start {
            path: self.dir.join(file),
            index_path: self.dir.join("index").join(format!("{file}.idx")),
            header: meta.header,
            class_count: meta.classes.len() as u32,
            uuid: self.uuid,
            stream_id: stream_index as u32,
            instance_id: self.files,
            cpu,
        };
        let writer = StreamWriter::create(start)?;
        self.files += 1;
        Ok(writer)
    }
}

/// A failed write, with the file and, where one exists, the cure.
pub fn write_error(path: &Path, cause: std::io::Error) -> Error {
    let error = Error::io(format!("cannot write {}", path.display()), cause);
    match error.kind() {
        ErrorKind::StorageFull => error.mend("free some space, or give -o a path on another disk"),
        ErrorKind::PermissionDenied => error.mend("give -o a directory that you may write to"),
        _ => error.mend("give -o a path that can be written"),
    }
}
