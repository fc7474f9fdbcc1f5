//! From caught pages to snapshots on disk, off the hot path.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use event::evidence::Hit;
use event::{Duration, Error, ErrorKind, Instant, Result, TimeRange};
use ftrace::Formats;
use trace::Symbols;

use super::armed::Caught;
use super::limits::Limits;
use super::work::name_work;
use super::{CallReport, FlightRecorder, HitReport, Snapshot, SnapshotTiming};
use crate::functions::{self, Version, kernel_functions};
use crate::pages::{History, Pages};
use crate::{Recorder, Seen, SnapshotFacts, SnapshotSummary, clock, write_snapshot};

/// A disk without room for this has none for a snapshot.
const PROBE_BYTES: usize = 4096;

/// A folder holds so many snapshots.
const NUMBERS_END: u64 = 1_000_000;

/// How many drains' worth of pages are kept for hits that overlap.
pub(super) const DRAINS_KEPT: usize = 2;

/// The folder of snapshots, there before the first hit; gone again when nothing came into it.
pub(super) struct Folder {
    path: PathBuf,
    is_ours: bool,
}

impl Folder {
    /// Makes it when it is not there, and checks that it can be written.
    pub(super) fn prepare(path: &Path) -> Result<Folder> {
        let refuse = |error: Error| {
            error.fix(format!(
                "give --output a folder that can be written, not {}",
                path.display()
            ))
        };
        let is_ours = !path.exists();
        std::fs::create_dir_all(path)
            .map_err(|cause| refuse(Error::io("cannot make the folder of snapshots", cause)))?;
        let folder = Folder {
            path: path.to_owned(),
            is_ours,
        };
        // Writes like a snapshot does: permission bits say nothing of a read-only or full disk.
        let probe = path.join(format!(".rtscope-{}.partial", std::process::id()));
        let written = std::fs::write(&probe, [0; PROBE_BYTES]);
        std::fs::remove_file(&probe).ok();
        written
            .map_err(|cause| refuse(Error::io("cannot write in the folder of snapshots", cause)))?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_ours {
            // One that holds snapshots is not removed: it is not empty.
            std::fs::remove_dir(&self.path).ok();
        }
    }
}

/// Writes the snapshots of one watch.
pub(super) struct Snapshots {
    flight: FlightRecorder,
    formats: Arc<Formats>,
    facts: SnapshotFacts,
    history: History,
    limits: Limits,
    written: u64,
}

impl Snapshots {
    /// For `recorder`, that of `flight`.
    pub(super) fn new(flight: &FlightRecorder, recorder: &Recorder, facts: SnapshotFacts) -> Self {
        let history = History::new(recorder.drains_bytes(DRAINS_KEPT));
        Snapshots {
            flight: flight.clone(),
            formats: recorder.formats(),
            facts: facts.share_functions(&flight.output),
            history,
            limits: Limits::begin(),
            written: 0,
        }
    }

    /// The functions of snapshots from now on.
    fn with_functions(&mut self, functions: String) {
        self.facts.functions = functions.into();
        self.facts = std::mem::take(&mut self.facts).share_functions(&self.flight.output);
    }

    /// One snapshot for the hits of one moment; none beyond the number asked for.
    fn write(&mut self, caught: &Caught) -> Result<Option<Snapshot>> {
        let Some(pages) = caught.pages.clone() else {
            return Ok(None);
        };
        let stopped = pages.newest();
        self.history.push(pages.clone());
        if self
            .flight
            .snapshots_max
            .is_some_and(|max| self.written >= max)
        {
            return Ok(None);
        }
        let end = caught
            .hits
            .iter()
            .map(|hit| hit.end)
            .max()
            .unwrap_or(caught.running);
        let origins = caught.hits.iter().map(|hit| hit.origin);
        let mut window = self.history.overlapping(window(origins, &pages));
        window.stopped_before(end, &pages);
        let summary = self.write_free(caught, &window)?;
        self.written += 1;
        let timing = SnapshotTiming {
            stopped_after: stopped.map_or(Duration::ZERO, |stopped| stopped - end),
            stopped_by_kernel: caught.stopped_by_kernel,
            running_after: caught.running - end,
            on_disk_after: clock::monotonic() - end,
        };
        Ok(Some(Snapshot {
            path: summary.path.clone(),
            summary,
            timing,
        }))
    }

    /// Writes under the first free name. Another watch may take it meanwhile: then under the next.
    fn write_free(&mut self, caught: &Caught, window: &Pages) -> Result<SnapshotSummary> {
        let limits = self.limits.of(&caught.hits);
        let mut first = caught.hits.first().map_or(1, |hit| hit.id);
        let open = caught.called.as_ref().filter(|_| caught.hits.is_empty());
        let open = open.map(|called| self.facts.clone().with_open_call(&called.call.words));
        let facts = open.as_ref().unwrap_or(&self.facts);
        loop {
            let (number, path) = free_path(&self.flight.output, first)?;
            let formats = &self.formats;
            let seen = Seen {
                hits: &caught.hits,
                evidence: &caught.evidence,
                gone: &caught.gone,
                limits: &limits,
            };
            let written = write_snapshot(&path, window, formats, &seen, facts);
            match written {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => first = number + 1,
                written => return written,
            }
        }
    }
}

/// The first free number from `first` on and its path, so that a second watch into the same folder
/// adds to it.
pub(super) fn free_path(output: &Path, first: u64) -> Result<(u64, PathBuf)> {
    std::fs::create_dir_all(output)
        .map_err(|cause| Error::io("cannot make the folder of snapshots", cause))?;
    (first..NUMBERS_END)
        .map(|number| (number, output.join(format!("hit-{number:04}"))))
        .find(|(_, path)| !path.exists())
        .ok_or_else(|| {
            Error::new(ErrorKind::AlreadyExists, "the folder of snapshots is full")
                .found(output.display().to_string())
                .fix("give --output another folder")
        })
}

/// From the oldest origin, or from the oldest page just drained, to where the drain ends.
pub(super) fn window(origins: impl Iterator<Item = Instant>, drained: &Pages) -> TimeRange {
    let until = drained.until;
    let drained = drained
        .cpus
        .iter()
        .filter_map(|cpu| cpu.range())
        .map(|range| range.begin);
    let begin = origins.chain(drained).min().unwrap_or(Instant::MIN);
    TimeRange { begin, end: until }
}

/// Names stacks, and writes snapshots when there is a recorder.
pub(super) struct Desk {
    symbols: Symbols,
    /// Those of programs, which come and go; each with its end.
    programs: Symbols,
    version: Version,
    snapshots: Option<Snapshots>,
}

impl Desk {
    /// `snapshots` is none without a recorder.
    pub(super) fn new(symbols: Symbols, version: Version, snapshots: Option<Snapshots>) -> Self {
        Desk {
            symbols,
            programs: functions::programs(),
            version,
            snapshots,
        }
    }

    /// Reads the functions again where programs or modules came since they were read: code of
    /// theirs has no name otherwise. The table on disk is written again for modules alone.
    pub(super) fn refresh(&mut self) {
        let has_other_modules = self.version.has_other_modules();
        if !has_other_modules && !self.version.has_newer_programs() {
            return;
        }
        self.version = Version::now();
        self.programs = functions::programs();
        if !has_other_modules {
            return;
        }
        let functions = kernel_functions();
        self.symbols = Symbols::from_kallsyms(&functions);
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.with_functions(functions);
        }
    }

    /// The reports on what was caught, in the order of the hits, and on the call for it.
    pub(super) fn reports(&mut self, mut caught: Caught) -> (Vec<HitReport>, Option<CallReport>) {
        let name = |address: u64| {
            let found = self.programs.lookup(address);
            let found = found.or_else(|| self.symbols.lookup(address));
            let named = |(name, offset)| format!("{}+{offset:#x}", functions::readable(name));
            found.map_or_else(String::new, named)
        };
        caught.hits.iter_mut().for_each(|hit| hit.symbolise(name));
        name_work(&mut caught.evidence, &caught.hits);
        let evidence = caught.evidence.iter_mut();
        evidence.for_each(|record| record.symbolise(name));
        let written = self
            .snapshots
            .as_mut()
            .map(|snapshots| snapshots.write(&caught));
        let (snapshot, failure) = match written {
            None | Some(Ok(None)) => (None, None),
            Some(Ok(Some(snapshot))) => (Some(Arc::new(snapshot)), None),
            Some(Err(error)) => (None, Some(Arc::new(error))),
        };
        let report = |hit: Hit| HitReport {
            hit,
            snapshot: snapshot.clone(),
            failure: failure.clone(),
            replaces: false,
            seen_as: None,
            called: caught.called.clone(),
        };
        let reports = caught.hits.into_iter().map(report).collect();
        let call = caught.called.clone().map(|called| CallReport {
            called,
            snapshot: snapshot.clone(),
            failure: failure.clone(),
        });
        (reports, call)
    }
}
