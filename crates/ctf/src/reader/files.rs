//! Opens the files of one trace directory and maps them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use memmap2::Mmap;

use super::{Schema, StreamReader, metadata_text};

/// The larger metadata is an attack on memory; LTTng's largest are below 2 MiB.
const METADATA_BYTES_MAX: u64 = 256 << 20;

/// A trace directory with its files mapped.
#[derive(Debug)]
pub struct TraceFiles {
    dir: PathBuf,
    schema: Schema,
    streams: Vec<StreamFile>,
}

/// One stream file.
#[derive(Debug)]
pub struct StreamFile {
    name: String,
    /// None for an empty file, which cannot be mapped.
    map: Option<Mmap>,
}

impl StreamFile {
    /// Its name inside the trace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

impl TraceFiles {
    /// Opens the trace in `dir`, which holds the file `metadata`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when the metadata cannot be understood; otherwise what the operating
    /// system says, with the file's name.
    pub fn open(dir: &Path) -> Result<TraceFiles> {
        let schema = read_schema(&dir.join("metadata"))?;
        let entries = fs::read_dir(dir).map_err(|cause| read_error(dir, cause))?;
        let mut paths = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|cause| read_error(dir, cause))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let hidden = name.starts_with('.') || name == "metadata";
            if !hidden && entry.path().is_file() {
                paths.push((name, entry.path()));
            }
        }
        paths.sort();
        let open = |(name, path): (String, PathBuf)| {
            Ok(StreamFile {
                name,
                map: map(&path)?,
            })
        };
        let streams = paths.into_iter().map(open).collect::<Result<_>>()?;
        Ok(TraceFiles {
            dir: dir.to_owned(),
            schema,
            streams,
        })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the metadata says.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The stream files, by name.
    pub fn streams(&self) -> &[StreamFile] {
        &self.streams
    }

    /// A reader at the start of a stream file.
    pub fn reader<'a>(&'a self, stream: &'a StreamFile) -> StreamReader<'a> {
        StreamReader::new(&self.schema, stream.bytes())
    }
}

fn read_schema(path: &Path) -> Result<Schema> {
    let size = fs::metadata(path)
        .map_err(|cause| read_error(path, cause))?
        .len();
    if size > METADATA_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::Corrupt,
            "the trace's metadata is too large to be one",
        )
        .found(format!("{}: {size} bytes", path.display()))
        .mend("give the directory of a CTF trace"));
    }
    let bytes = fs::read(path).map_err(|cause| read_error(path, cause))?;
    let schema = metadata_text(&bytes).and_then(|text| Schema::parse(&text));
    schema.map_err(|error| {
        let found = error.value_found().unwrap_or_default();
        let found = format!("{}: {found}", path.display());
        let named = Error::new(error.kind(), error.what()).found(found);
        match error.mended_by() {
            Some(mend) => named.mend(mend),
            None => named,
        }
    })
}

fn map(path: &Path) -> Result<Option<Mmap>> {
    let file = File::open(path).map_err(|cause| read_error(path, cause))?;
    let size = file
        .metadata()
        .map_err(|cause| read_error(path, cause))?
        .len();
    if size == 0 {
        return Ok(None);
    }
    // SAFETY: the map is read-only and private. Its bytes may change when somebody writes the file
    // meanwhile: decoding checks each access and keeps no assumption about bytes that it has seen.
    // A file that shrinks ends the process with SIGBUS; finished traces do not shrink.
    let map = unsafe { Mmap::map(&file) };
    map.map(Some).map_err(|cause| read_error(path, cause))
}

fn read_error(path: &Path, cause: std::io::Error) -> Error {
    Error::io(format!("cannot read {}", path.display()), cause)
}
