//! Opens the files of one trace directory.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use event::{Error, ErrorKind, Result};

use super::index::{Edge, PacketIndex};
use super::window::Source;
use super::{Schema, StreamReader, metadata};

/// The larger metadata is an attack on memory; LTTng's largest are below 2 MiB.
const METADATA_BYTES_MAX: u64 = 256 << 20;
/// So many files stay open; others are opened for each piece that is read.
const OPEN_FILES_MAX: usize = 256;
/// Memory for the pieces of all files together, while each has no less than the least.
const PIECES_BYTES: usize = 32 << 20;
const PIECE_BYTES_MIN: usize = 16 << 10;
const PIECE_BYTES_MAX: usize = 64 << 10;

/// A trace directory with its files open.
#[derive(Debug)]
pub struct TraceFiles {
    dir: PathBuf,
    schema: Schema,
    streams: Vec<StreamFile>,
    /// Links of the directory that lead nowhere, and files that only an index tells of.
    dangling: Vec<String>,
    indexes: OnceLock<Vec<PacketIndex>>,
}

/// One stream file.
#[derive(Debug)]
pub struct StreamFile {
    name: String,
    path: PathBuf,
    file: Option<File>,
    size_bytes: u64,
}

impl StreamFile {
    /// Its name inside the trace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its size when it was opened.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn source(&self) -> Source<'_> {
        match &self.file {
            Some(file) => Source::File(file),
            None => Source::Path(&self.path),
        }
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
        let (mut paths, mut dangling) = (Vec::new(), Vec::new());
        for entry in entries {
            let entry = entry.map_err(|cause| read_error(dir, cause))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let hidden = name.starts_with('.') || name == "metadata";
            if hidden {
                continue;
            }
            let path = entry.path();
            if path.is_file() {
                paths.push((name, path));
            } else if entry.file_type().is_ok_and(|kind| kind.is_symlink()) && !path.exists() {
                dangling.push(name);
            }
        }
        paths.sort();
        let is_there = |name: &str| {
            let is_part = |path: &str| path.strip_prefix(name).is_some_and(is_rotation);
            paths.iter().any(|(path, _)| is_part(path))
        };
        dangling.extend(indexed(dir).filter(|name| !is_there(name)));
        dangling.sort();
        dangling.dedup();
        let open = |(place, (name, path)): (usize, (String, PathBuf))| {
            let file = File::open(&path).map_err(|cause| read_error(&path, cause))?;
            let status = file.metadata().map_err(|cause| read_error(&path, cause))?;
            Ok(StreamFile {
                name,
                path,
                file: (place < OPEN_FILES_MAX).then_some(file),
                size_bytes: status.len(),
            })
        };
        let streams = paths.into_iter().enumerate().map(open);
        Ok(TraceFiles {
            dir: dir.to_owned(),
            schema,
            streams: streams.collect::<Result<_>>()?,
            dangling,
            indexes: OnceLock::new(),
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

    /// The names of streams that are missing: of links in the directory that lead nowhere, and of
    /// files that LTTng's index is there for.
    pub fn dangling(&self) -> &[String] {
        &self.dangling
    }

    /// The packets of all stream files, in the order of [`TraceFiles::streams`]. Their headers are
    /// read once, when this is first asked for.
    pub fn indexes(&self) -> &[PacketIndex] {
        self.indexes.get_or_init(|| {
            let build = |stream: &StreamFile| PacketIndex::build(&self.schema, stream.source());
            let mut indexes: Vec<_> = self.streams.iter().map(build).collect();
            link_rotated(&mut indexes.iter_mut().collect::<Vec<_>>());
            indexes
        })
    }

    /// Sees several directories as one trace: archives of a rotated session go on where the one
    /// before ended, and of snapshots that overlap each packet is read once. Their headers are read
    /// now.
    pub fn join(directories: &mut [&mut TraceFiles]) {
        let mut known = HashSet::new();
        let mut all = Vec::new();
        for files in directories {
            files.indexes();
            let own = files.indexes.get_mut().into_iter().flatten();
            let own: Vec<&mut PacketIndex> = own.collect();
            let first = all.len();
            all.extend(own);
            for index in &mut all[first..] {
                index.leave_out(&known);
            }
            known.extend(all[first..].iter().flat_map(|index| index.identities()));
        }
        link_rotated(&mut all);
    }

    /// A reader at the start of a stream file, in the order of its packets.
    pub fn reader<'a>(&'a self, stream: &'a StreamFile) -> StreamReader<'a> {
        StreamReader::from_source(&self.schema, stream.source(), self.piece_bytes())
    }

    /// A reader of nothing.
    pub fn no_reader(&self) -> StreamReader<'_> {
        StreamReader::new(&self.schema, &[])
    }

    /// Readers of the stream file at `place` from the packets on that do not end before
    /// `begin_ns`: one, or several where time goes backwards from packet to packet. In each of
    /// them packets follow each other in time.
    pub fn readers_from<'a>(&'a self, place: usize, begin_ns: i64) -> Vec<StreamReader<'a>> {
        let (Some(stream), Some(index)) = (self.streams.get(place), self.indexes().get(place))
        else {
            return Vec::new();
        };
        if index.chains.is_empty() {
            return vec![self.reader(stream)];
        }
        // What follows the index in the file belongs to the chain that ends there.
        let last = index.runs.len().saturating_sub(1) as u32;
        let follow = |chain: &'a Vec<u32>| {
            let mut reader = self.reader(stream);
            reader.follow(index, chain, begin_ns, chain.last() == Some(&last));
            reader
        };
        index.chains.iter().map(follow).collect()
    }

    fn piece_bytes(&self) -> usize {
        (PIECES_BYTES / self.streams.len().max(1)).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX)
    }
}

/// Whether this is what a tracer that rotates its files writes behind a stream's name; nothing is
/// the stream itself.
fn is_rotation(behind: &str) -> bool {
    let number = behind.strip_prefix('_');
    behind.is_empty() || number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// The streams that an index was written for, as LTTng keeps them beside its streams.
fn indexed(dir: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(dir.join("index"))
        .into_iter()
        .flatten()
        .flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.strip_suffix(".idx").map(str::to_owned)
    })
}

/// The files of one stream that a tracer rotated go on where the one before ended, so that losses
/// between them are seen.
fn link_rotated(indexes: &mut [&mut PacketIndex]) {
    let mut files: Vec<(Option<u64>, u64, i64, i64, usize)> = Vec::new();
    for (place, index) in indexes.iter().enumerate() {
        if let (Some(stream), Some((begin, end))) = (index.stream, index.range_ns()) {
            files.push((index.stream_class, stream, begin, end, place));
        }
    }
    files.sort_unstable();
    for pair in files.windows(2) {
        let [
            (class, stream, _, end, from),
            (next_class, next_stream, begin, _, to),
        ] = pair
        else {
            continue;
        };
        let edge: Option<Edge> = indexes[*from].edge_before(indexes[*from].runs.len());
        let first = indexes[*to].edge_before(1);
        // Counters that begin anew are another session's, though it bears the same ids.
        let goes_on = edge
            .zip(first)
            .is_some_and(|(edge, first)| edge.goes_on_to(&first));
        if (class, stream) == (next_class, next_stream) && end <= begin && goes_on {
            indexes[*to].before = edge;
        }
    }
}

/// What the file `metadata` at `path` says.
pub(crate) fn read_schema(path: &Path) -> Result<Schema> {
    let size = fs::metadata(path)
        .map_err(|cause| read_error(path, cause))?
        .len();
    if size > METADATA_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::Corrupt,
            "the trace's metadata is too large to be one",
        )
        .found(format!("{}: {size} bytes", path.display()))
        .fix("give the directory of a CTF trace"));
    }
    let bytes = fs::read(path).map_err(|cause| read_error(path, cause))?;
    let packets_are_big = metadata::packets_are_big(&bytes);
    let pieces = metadata::pieces(bytes);
    let schema =
        pieces.and_then(|(text, pieces)| Schema::parse_pieces(&text, &pieces, packets_are_big));
    schema.map_err(|error| {
        let found = error.value_found().unwrap_or_default();
        let found = format!("{}: {found}", path.display());
        let named = Error::new(error.kind(), error.what()).found(found);
        match error.fixed_by() {
            Some(fix) => named.fix(fix),
            None => named,
        }
    })
}

fn read_error(path: &Path, cause: std::io::Error) -> Error {
    Error::io(format!("cannot read {}", path.display()), cause)
}
