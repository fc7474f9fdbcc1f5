//! The streaming writer: metadata first, then one file per stream and CPU, packet by packet.
//!
//! Create a [`StagedDir`], a [`TraceWriter`] inside it, one [`StreamWriter`] per CPU; write events
//! in the order of time; finish every stream; commit the directory.

//!
//! The way of a type: `meta` (what callers say) → `lower` and `links` (what the dialect can say,
//! references resolved: `wire`) → `tsdl` or `fragments` (the metadata), `encode` (values → bits).

mod aligned;
mod bits;
mod carried;
mod encode;
mod fragments;
mod full;
mod index;
mod links;
mod lower;
mod meta;
mod outlet;
mod payload;
mod refusal;
mod staged;
mod storage;
mod stream;
mod tsdl;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event::{Cpu, Error, ErrorKind, Result};

use encode::ClassEncoder;
use lower::Lowering;
use wire::{ClassWire, Member};

pub use meta::{ClockMeta, Dialect, EnvValue, HeaderKind, StreamMeta, TraceMeta, random_uuid};
pub use outlet::Outlet;
pub use payload::PayloadWriter;
pub use staged::{StagedDir, StagedFile, rename_new};
pub use stream::{Run, StreamTotals, StreamWriter, WINDOW_BYTES};

/// What the files of one stream class share.
#[derive(Debug)]
struct StreamEncoder {
    classes: Arc<[ClassEncoder]>,
    packet_context: Arc<[Member]>,
}

impl StreamEncoder {
    fn new(stream: &Lowered<'_>) -> Self {
        let classes = stream.meta.classes.iter().zip(&stream.classes);
        StreamEncoder {
            classes: classes
                .map(|(class, wire)| ClassEncoder::new(class, wire.clone()))
                .collect(),
            packet_context: stream.packet_context.clone().into(),
        }
    }
}

/// A stream class with its types as they are written.
struct Lowered<'m> {
    meta: &'m StreamMeta,
    packet_context: Vec<Member>,
    event_context: Vec<Member>,
    classes: Vec<ClassWire>,
}

impl<'m> Lowered<'m> {
    fn new(meta: &'m StreamMeta, dialect: Dialect) -> Result<Self> {
        let lowering = Lowering::new(meta, dialect);
        let class = |class| lowering.class(class);
        Ok(Lowered {
            meta,
            packet_context: lowering.packet_context()?,
            event_context: lowering.event_context()?,
            classes: meta.classes.iter().map(class).collect::<Result<_>>()?,
        })
    }
}

/// The first instance id of files with a name of their own; below it, the id is the CPU, so that
/// events of one instant are in the order of their CPUs whoever came first (readers put equal times
/// in the order of the ids).
const NAMED_FILES_ID: u64 = 1 << 32;

/// Writes one CTF trace: a directory with `metadata`, stream files and `index/`.
#[derive(Debug)]
pub struct TraceWriter {
    dir: PathBuf,
    uuid: [u8; 16],
    streams: Arc<[StreamMeta]>,
    encoders: Vec<StreamEncoder>,
    named_files: u64,
    outlet: Option<Arc<dyn Outlet>>,
}

impl TraceWriter {
    /// Makes `dir` (and its parents) and writes the metadata into it.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when `dir` holds a trace; [`ErrorKind::InvalidInput`] when a
    /// class cannot be said in CTF (a length that refers to nothing, a choice without a value);
    /// otherwise what the operating system says, with the file's name.
    pub fn create(dir: &Path, meta: &TraceMeta) -> Result<TraceWriter> {
        let (text, encoders) = lowered(meta)?;
        let index = dir.join("index");
        fs::create_dir_all(&index).map_err(|cause| write_error(&index, cause))?;
        let path = dir.join("metadata");
        if path.exists() {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                "cannot write a trace over another",
            )
            .found(format!("{} exists", path.display()))
            .fix("name a new directory, or remove this one"));
        }
        fs::write(&path, text).map_err(|cause| write_error(&path, cause))?;
        Ok(TraceWriter {
            dir: dir.to_owned(),
            uuid: meta.uuid,
            streams: meta.streams.clone().into(),
            encoders,
            named_files: 0,
            outlet: None,
        })
    }

    /// Tells `outlet` of the packets of all streams that are started from now on.
    pub fn tell(&mut self, outlet: Option<Arc<dyn Outlet>>) {
        self.outlet = outlet;
    }

    /// Writes the metadata anew, as classes appear and the environment becomes known. Classes that
    /// were there keep their places; streams that are open learn new ones by
    /// [`TraceWriter::teach`].
    ///
    /// # Errors
    /// As [`TraceWriter::create`], except that the trace is there.
    pub fn update(&mut self, meta: &TraceMeta) -> Result<()> {
        let (text, encoders) = lowered(meta)?;
        let path = self.dir.join("metadata");
        // Whoever reads the trace meanwhile sees the old or the new, and never half of it.
        let new = self.dir.join(".metadata.new");
        if let Err(cause) = fs::write(&new, text) {
            let _ = fs::remove_file(&new);
            return Err(write_error(&new, cause));
        }
        fs::rename(&new, &path).map_err(|cause| write_error(&path, cause))?;
        self.streams = meta.streams.clone().into();
        self.encoders = encoders;
        Ok(())
    }

    /// Gives an open stream of this trace the classes of the last [`TraceWriter::update`].
    pub fn teach(&self, stream: &mut StreamWriter) {
        if let Some(encoder) = self.encoders.get(stream.stream_index()) {
            stream.set_classes(Arc::clone(&encoder.classes));
        }
    }

    /// Starts the file of stream `stream_index` for `cpu`, named `NAME_CPU`.
    ///
    /// # Errors
    /// As [`TraceWriter::stream_file`].
    pub fn stream(&mut self, stream_index: usize, cpu: Cpu) -> Result<StreamWriter> {
        let name = self.streams.get(stream_index).map_or("", |meta| &meta.name);
        let file = format!("{name}_{}", cpu.0);
        self.start(stream_index, &file, cpu, u64::from(cpu.0))
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
        let instance_id = NAMED_FILES_ID + self.named_files;
        self.named_files += 1;
        self.start(stream_index, file, cpu, instance_id)
    }

    fn start(
        &mut self,
        stream_index: usize,
        file: &str,
        cpu: Cpu,
        instance_id: u64,
    ) -> Result<StreamWriter> {
        let found = self
            .streams
            .get(stream_index)
            .zip(self.encoders.get(stream_index));
        let Some((meta, encoder)) = found else {
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
            classes: Arc::clone(&encoder.classes),
            packet_context: Arc::clone(&encoder.packet_context),
            uuid: self.uuid,
            stream_id: stream_index as u32,
            instance_id,
            cpu: (!meta.has_no_cpu).then_some(cpu),
            outlet: self.outlet.clone(),
        };
        StreamWriter::create(start)
    }
}

/// The metadata as they are written, and how each stream's values are.
fn lowered(meta: &TraceMeta) -> Result<(String, Vec<StreamEncoder>)> {
    let lowered = |stream| Lowered::new(stream, meta.dialect);
    let streams: Vec<Lowered<'_>> = meta.streams.iter().map(lowered).collect::<Result<_>>()?;
    let text = match meta.dialect {
        Dialect::Ctf18 => tsdl::metadata(meta, &streams)?,
        Dialect::Ctf2 => fragments::metadata(meta, &streams)?,
    };
    Ok((text, streams.iter().map(StreamEncoder::new).collect()))
}

/// A failed write, with the file and, where one exists, the cure.
pub fn write_error(path: &Path, cause: std::io::Error) -> Error {
    let is_limit = cause.kind() == std::io::ErrorKind::FileTooLarge;
    let error = Error::io(format!("cannot write {}", path.display()), cause);
    match error.kind() {
        ErrorKind::StorageFull if is_limit => {
            error.fix("raise the limit of file sizes: ulimit -f unlimited")
        }
        ErrorKind::StorageFull => error.fix("free some space, or give -o a path on another disk"),
        ErrorKind::PermissionDenied => error.fix("give -o a directory that you may write to"),
        _ => error.fix("give -o a path that can be written"),
    }
}
