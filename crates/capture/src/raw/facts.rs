//! What a raw recording has beside its pages: formats, and what only the recorder knew.

use std::fs;
use std::path::{Path, PathBuf};

use event::{Cpu, Error, ErrorKind, Instant, Result};
use ftrace::{Formats, Tracefs};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::kernel_ctf::KernelContexts;

/// Below a recording.
pub(super) const FOLDER: &str = "raw";
/// Below that.
const FACTS: &str = "recording.json";
/// Its version.
const VERSION: u32 = 1;

/// What conversion needs besides pages and formats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RawFacts {
    pub version: u32,
    /// That of the trace, which its other streams have already.
    pub uuid: [u8; 16],
    pub wall_offset_ns: i64,
    /// Every stream covers the recording from here on.
    pub begin_ns: i64,
    /// And to here; none when its recorder was killed.
    pub end_ns: Option<i64>,
    /// What each event carries.
    pub contexts: Vec<String>,
    pub is_rt: bool,
    /// Thread and process, of the threads at the begin.
    pub thread_groups: Vec<(i32, i32)>,
    pub cpus: Vec<RawCpu>,
}

/// What is known of one CPU's pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RawCpu {
    pub cpu: u32,
    /// Events that its ring lost.
    pub lost: u64,
    /// How many pages were kept.
    pub pages: u64,
    /// How many it had overwritten when page so and so was read, where that grew.
    pub overruns: Vec<(u64, u64)>,
    /// How long each record is of what BPF read at its events, where it did.
    #[serde(default)]
    pub context_bytes: Option<usize>,
}

impl RawCpu {
    /// Nothing was read yet.
    pub fn new(cpu: Cpu) -> RawCpu {
        RawCpu {
            cpu: cpu.0,
            ..RawCpu::default()
        }
    }
}

impl RawFacts {
    /// With its CPUs, and the threads that there are.
    pub fn of(self, cpus: &[Cpu], threads: impl Iterator<Item = (i32, i32)>) -> RawFacts {
        RawFacts {
            cpus: cpus.iter().copied().map(RawCpu::new).collect(),
            thread_groups: threads.collect(),
            ..self
        }
    }

    /// Writes them, and what tracefs says of the events, before the first page.
    pub fn begin(self, root: &Path, formats: &Formats) -> Result<RawFacts> {
        keep_formats(&Tracefs::find()?, formats, root)?;
        self.write(root)?;
        Ok(self)
    }

    /// Writes what is known at the end.
    pub fn end(mut self, root: &Path, cpus: Vec<RawCpu>) -> Result<()> {
        self.cpus = cpus;
        self.end_ns = Some(clock::monotonic().as_ns());
        self.write(root)
    }

    fn write(&self, root: &Path) -> Result<()> {
        let path = root.join(FOLDER).join(FACTS);
        let text = serde_json::to_vec(self).map_err(|error| {
            let what = format!("cannot write {}", path.display());
            Error::new(ErrorKind::Io, what).found(error.to_string())
        })?;
        fs::write(&path, text).map_err(|error| ctf::writer::write_error(&path, error))
    }

    pub fn read(root: &Path) -> Result<RawFacts> {
        let path = root.join(FOLDER).join(FACTS);
        let text = fs::read(&path)
            .map_err(|error| Error::io(format!("cannot read {}", path.display()), error))?;
        let what = || format!("{} makes no sense", path.display());
        let facts: RawFacts = serde_json::from_slice(&text).map_err(|error| {
            Error::new(ErrorKind::Corrupt, what())
                .found(error.to_string())
                .fix("rtscope cat on the folder 'raw' reads what is in the pages")
        })?;
        match facts.version {
            VERSION => Ok(facts),
            other => Err(Error::new(ErrorKind::Unsupported, what())
                .found(format!("version {other}, and {VERSION} is known"))
                .fix("convert it with the rtscope that recorded it")),
        }
    }

    /// Of a recording that begins.
    pub fn new(
        uuid: [u8; 16],
        contexts: &KernelContexts,
        (begin, wall_offset_ns): (Instant, i64),
    ) -> RawFacts {
        let (contexts, is_rt) = contexts.facts();
        RawFacts {
            version: VERSION,
            uuid,
            wall_offset_ns,
            begin_ns: begin.as_ns(),
            contexts,
            is_rt,
            ..RawFacts::default()
        }
    }
}

/// Whether the folder is a raw recording.
pub fn is_raw(path: &Path) -> bool {
    path.join(FOLDER).join(FACTS).is_file()
}

/// Where the pages of `cpu` are.
pub(super) fn pages_of(root: &Path, cpu: Cpu) -> PathBuf {
    let folder = root.join(FOLDER).join(format!("per_cpu/cpu{}", cpu.0));
    folder.join("trace_pipe_raw")
}

/// Where what BPF read at the events of `cpu` is.
pub(super) fn contexts_of(root: &Path, cpu: Cpu) -> PathBuf {
    pages_of(root, cpu).with_file_name("contexts")
}

/// Copies what tracefs says of the events.
fn keep_formats(tracefs: &Tracefs, formats: &Formats, root: &Path) -> Result<()> {
    let folder = root.join(FOLDER);
    let keep = |name: String| -> Result<()> {
        let (text, to) = (tracefs.read(&name)?, folder.join(&name));
        let written = fs::create_dir_all(to.parent().unwrap_or(&folder));
        let written = written.and_then(|()| fs::write(&to, text));
        written.map_err(|error| ctf::writer::write_error(&to, error))
    };
    keep("events/header_page".to_owned())?;
    for format in formats.iter() {
        keep(format!("events/{}/{}/format", format.system, format.name))?;
    }
    let clock = folder.join("trace_clock");
    fs::write(&clock, "[mono]\n").map_err(|error| ctf::writer::write_error(&clock, error))
}
