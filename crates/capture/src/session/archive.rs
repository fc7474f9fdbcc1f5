//! One archive while it is written: a whole trace under a temporary name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctf::writer::{EnvValue, Outlet, StagedDir, StreamWriter};
use event::{Cpu, EventClass, Instant, Result, Tid, TimeRange};
use ftrace::EventName;
use host::capabilities::Capabilities;
use relay::{Delivery, End, Route};
use trace::{Item, Trace};

use super::SessionName;
use super::book::stream_bytes;
use super::status::ArchiveFacts;
use crate::channels::RingId;
use crate::functions::{self, SharedFunctions, Version};
use crate::kernel_ctf::{KernelClasses, ThreadGroups};
use crate::kernel_trace::KernelTrace;
use crate::progress::{Progress, Source};
use crate::quotas::QuotaLog;
use crate::statedump::{OfMemory, StateDump};
use crate::track::Track;
use crate::unfinished::holds_packets;
use crate::{clock, environment, stream};

/// What all archives of a session say of the kernel.
pub(super) struct OfKernel<'a> {
    pub capabilities: &'a Capabilities,
    pub command_line: &'a str,
    pub classes: Arc<KernelClasses>,
    pub groups: Arc<ThreadGroups>,
    /// The classes of system calls that are recorded with their contents.
    pub calls: Vec<EventClass>,
    pub cpus: Vec<Cpu>,
    /// All rings of ftrace's events.
    pub rings: Vec<RingId>,
    pub filters: &'a [(EventName, String)],
    pub track: Option<Track>,
    pub functions: Functions,
    /// What its dumps have of the memory of processes.
    pub of_memory: OfMemory,
}

/// The kernel's functions, read again when code came or went.
pub(super) struct Functions {
    version: Version,
    text: String,
    shared: SharedFunctions,
}

impl Functions {
    /// Those of now, for traces below `folder`.
    pub fn read(folder: &Path) -> Functions {
        let version = Version::now();
        let text = functions::kernel_functions();
        let shared = SharedFunctions::write(folder, &text);
        Functions {
            version,
            text,
            shared,
        }
    }

    /// Reads them again when they are others now.
    pub fn refresh(&mut self, folder: &Path) {
        if self.version.has_newer_programs() || self.version.has_other_modules() {
            *self = Functions::read(folder);
        }
    }
}

/// An archive that is being written.
pub(super) struct Archive {
    staged: StagedDir,
    path: PathBuf,
    progress: Arc<Progress>,
    /// Stands for its state dump until that is written.
    source: Source,
    pub begin: Instant,
    begin_wall_ns: i64,
    pub wall_offset_ns: i64,
    kernel: Option<KernelTrace>,
    dump: Option<StreamWriter>,
    dump_events: u64,
    /// Its way to another host.
    there: Option<There>,
}

/// Where an archive goes.
pub(super) struct There {
    route: Route,
    name: String,
    /// For people.
    path: PathBuf,
}

impl There {
    /// The archive below `root`, which will be `path`, of the session `session`.
    fn new(delivery: &Delivery, session: &SessionName, root: &Path, path: &Path) -> Result<There> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{session}-{name}");
        Ok(There {
            route: delivery.route(root, &name)?,
            path: stream::path_there(delivery, &name).into(),
            name,
        })
    }
}

/// What a trace holds whose writers failed: what they counted may not have reached the disk.
fn counted(root: &Path) -> ArchiveFacts {
    let mut facts = ArchiveFacts {
        size_bytes: stream_bytes(root),
        ..ArchiveFacts::default()
    };
    let Ok(trace) = Trace::open(root) else {
        return facts;
    };
    let end = trace.range().map(|range| trace.wall_ns(range.end));
    facts.end_wall_ns = end.unwrap_or_default();
    let mut cursor = trace.cursor(TimeRange::ALL);
    // Counting cannot fail.
    let _ = cursor.each(|item| {
        match item {
            Item::Event(_) => facts.events += 1,
            Item::Lost(lost) => facts.lost += lost.count.unwrap_or(0),
            Item::Damage(_) => (),
        }
        Ok(())
    });
    facts
}

/// What the streams of an archive got.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Got {
    pub events: u64,
    pub lost: u64,
    pub size_bytes: u64,
}

impl Got {
    pub fn add(&mut self, events: u64, lost: u64, size_bytes: u64) {
        self.events = self.events.saturating_add(events);
        self.lost = self.lost.saturating_add(lost);
        self.size_bytes = self.size_bytes.saturating_add(size_bytes);
    }
}

impl Archive {
    /// Begins the archive that will be `path`; `to` is who delivers it, and for which session.
    pub fn create(path: PathBuf, to: Option<(&Delivery, &SessionName)>) -> Result<Archive> {
        let staged = StagedDir::create(&path)?;
        let there = to.map(|(to, session)| There::new(to, session, staged.path(), &path));
        let there = there.transpose()?;
        let begin = clock::monotonic();
        let progress = Arc::new(Progress::create(staged.path(), there.is_some())?);
        Ok(Archive {
            path,
            source: progress.source(),
            progress,
            begin,
            begin_wall_ns: clock::wall_ns(),
            // Anew for each: the wall clock may have been set.
            wall_offset_ns: clock::wall_offset_ns(),
            staged,
            kernel: None,
            dump: None,
            dump_events: 0,
            there,
        })
    }

    /// Where it is written.
    pub fn root(&self) -> &Path {
        self.staged.path()
    }

    /// What it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who is told of what is written.
    pub fn outlet(&self) -> Option<Arc<dyn Outlet>> {
        self.there.as_ref().map(|there| there.route.outlet())
    }

    /// Its name.
    pub fn name(&self) -> String {
        if let Some(there) = &self.there {
            return there.name.clone();
        }
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Its progress, with one source more.
    pub fn progress(&self) -> (Arc<Progress>, Source) {
        (Arc::clone(&self.progress), self.progress.source())
    }

    /// Writes the metadata of the kernel's trace, and what gives addresses names.
    pub fn begin_kernel(&mut self, of: &OfKernel<'_>) -> Result<()> {
        let mut environment: Vec<(String, EnvValue)> =
            environment::environment(&self.name(), of.command_line, of.capabilities);
        environment.extend(environment::asked(
            &of.cpus,
            (of.filters, of.track.as_ref()),
        ));
        let classes = (Arc::clone(&of.classes), &of.calls[..]);
        let offset = self.wall_offset_ns;
        let mut trace = KernelTrace::create(self.root(), classes, environment, offset, false)?;
        trace.tell(self.outlet());
        functions::write_functions(self.root(), &of.functions.text, &of.functions.shared)?;
        self.kernel = Some(trace);
        Ok(())
    }

    /// The kernel's trace, once it was begun.
    pub fn kernel(&mut self) -> Option<&mut KernelTrace> {
        self.kernel.as_mut()
    }

    /// Writes what a state dump found, at once: a recorder that is killed leaves a trace that knows
    /// the tasks.
    pub fn dump(&mut self, dump: &StateDump) -> Result<()> {
        let Some(kernel) = &mut self.kernel else {
            return self.progress.over(self.source);
        };
        let mut stream = match self.dump.take() {
            Some(stream) => stream,
            None => kernel.open_dump(self.begin.min(dump.begin))?,
        };
        self.dump_events += kernel.dump(&mut stream, dump)?;
        stream.gap()?;
        self.dump = Some(stream);
        self.progress.over(self.source)
    }

    /// Says whose events alone it has from `at` on.
    pub fn tracked(&mut self, at: Instant, tasks: &[Tid]) -> Result<()> {
        let Some(kernel) = &mut self.kernel else {
            return Ok(());
        };
        let mut stream = match self.dump.take() {
            Some(stream) => stream,
            None => kernel.open_dump(self.begin.min(at))?,
        };
        kernel.tracked(&mut stream, (at, tasks))?;
        stream.gap()?;
        self.dump = Some(stream);
        Ok(())
    }

    /// Says for how long quotas kept tasks since the last look, of an archive that ends at `until`.
    pub fn quotas(&mut self, quotas: &mut QuotaLog, until: Instant) -> Result<()> {
        let (Some(kernel), Some(stream)) = (&self.kernel, &mut self.dump) else {
            return Ok(());
        };
        self.dump_events += quotas.write_until(kernel, stream, until)?;
        Ok(())
    }

    /// Ends it at `end`: `got` is what its other streams have. None when nothing is in it: a trace
    /// without a stream is no trace.
    pub fn finish(mut self, end: Instant, mut got: Got) -> Result<Option<ArchiveFacts>> {
        if let Some(mut stream) = self.dump.take() {
            stream.covers(end.max(stream.end()))?;
            got.add(0, 0, stream.finish()?.size_bytes);
        }
        if self.kernel.is_none() && got.events + got.lost == 0 {
            self.forget();
            return Ok(None);
        }
        // Without its mark it is whole.
        self.progress.finish();
        let (events, lost) = (got.events, got.lost);
        let path = match self.there {
            Some(there) => {
                there.route.end(End::Whole { events, lost }, self.staged);
                there.path
            }
            None => self.staged.commit()?,
        };
        Ok(Some(ArchiveFacts {
            path,
            begin_wall_ns: self.begin_wall_ns,
            end_wall_ns: end.as_ns().saturating_add(self.wall_offset_ns),
            events: got.events,
            lost: got.lost,
            size_bytes: got.size_bytes,
        }))
    }

    /// Throws it away.
    pub fn forget(self) {
        if let Some(there) = self.there {
            there.route.end(End::Forgotten, self.staged);
        }
    }

    /// Whether somebody took its folder away.
    pub fn is_gone(&self) -> bool {
        !self.staged.path().is_dir()
    }

    /// Leaves it as it is, marked as one whose recorder could not finish it; none when nothing is
    /// in it.
    pub fn leave(self) -> Result<Option<ArchiveFacts>> {
        if !holds_packets(self.staged.path()) {
            return Ok(None);
        }
        self.progress.stay();
        let counted = counted(self.staged.path());
        let (events, lost) = (counted.events, counted.lost);
        let path = match self.there {
            Some(there) => {
                there.route.end(End::Cut { events, lost }, self.staged);
                there.path
            }
            None => self.staged.commit()?,
        };
        Ok(Some(ArchiveFacts {
            path,
            begin_wall_ns: self.begin_wall_ns,
            ..counted
        }))
    }
}
