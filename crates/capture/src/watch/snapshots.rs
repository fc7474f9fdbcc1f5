//! From caught pages to snapshots on disk, off the hot path.

use std::path::PathBuf;
use std::sync::Arc;

use event::evidence::{Evidence, Hit};
use event::{Duration, Error, ErrorKind, Instant, Result, TimeRange};
use ftrace::Formats;
use trace::Symbols;

use super::armed::Caught;
use super::{FlightRecorder, HitReport, Snapshot, SnapshotTiming};
use crate::pages::{History, Pages};
use crate::{SnapshotFacts, clock, write_snapshot};

/// How many drains' worth of pages are kept for hits that overlap.
const DRAINS_KEPT: usize = 2;

/// Writes the snapshots of one watch.
pub(super) struct Snapshots {
    flight: FlightRecorder,
    formats: Arc<Formats>,
    facts: SnapshotFacts,
    history: History,
    written: u64,
}

impl Snapshots {
    /// For the recorder of `flight`, which records what `formats` say on so many CPUs.
    pub(super) fn new(
        flight: &FlightRecorder,
        formats: Arc<Formats>,
        facts: SnapshotFacts,
        cpus: usize,
    ) -> Self {
        let limit_bytes = DRAINS_KEPT * cpus * flight.buffer_bytes_per_cpu;
        let history = History::new(limit_bytes);
        Snapshots {
            flight: flight.clone(),
            formats,
            facts,
            history,
            written: 0,
        }
    }

    /// One snapshot for the hits of one moment; none beyond the number asked for.
    fn write(&mut self, caught: &Caught, evidence: &[Evidence]) -> Result<Option<Snapshot>> {
        let Some(pages) = caught.pages.clone() else {
            return Ok(None);
        };
        let stopped = newest(&pages);
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
            .unwrap_or(Instant::MIN);
        let window = self.history.overlapping(window(&caught.hits, &pages));
        let path = self.free_path(&caught.hits)?;
        let summary = write_snapshot(
            &path,
            &window,
            &self.formats,
            &caught.hits,
            evidence,
            &self.facts,
        )?;
        self.written += 1;
        let timing = SnapshotTiming {
            stopped_after: stopped.map_or(Duration::ZERO, |stopped| stopped - end),
            stopped_by_kernel: caught.stopped_by_kernel,
            running_after: caught.running - end,
            on_disk_after: clock::monotonic() - end,
        };
        Ok(Some(Snapshot {
            path,
            summary,
            timing,
        }))
    }

    /// The first free name, so that a second watch into the same folder adds to it.
    fn free_path(&self, hits: &[Hit]) -> Result<PathBuf> {
        let first = hits.first().map_or(0, |hit| hit.id);
        let output = &self.flight.output;
        std::fs::create_dir_all(output).map_err(|cause| {
            Error::io("cannot make the folder of snapshots", cause).mend(format!(
                "give --output a folder that can be written, not {}",
                output.display()
            ))
        })?;
        (first..first + 100_000)
            .map(|number| output.join(format!("hit-{number:04}")))
            .find(|path| !path.exists())
            .ok_or_else(|| {
                Error::new(ErrorKind::AlreadyExists, "the folder of snapshots is full")
                    .found(output.display().to_string())
                    .mend("give --output another folder")
            })
    }
}

/// From the oldest origin, or from the oldest page just drained, to the end of all.
fn window(hits: &[Hit], drained: &Pages) -> TimeRange {
    let origins = hits.iter().map(|hit| hit.origin);
    let drained = drained
        .cpus
        .iter()
        .filter_map(|cpu| cpu.range())
        .map(|range| range.begin);
    let begin = origins.chain(drained).min().unwrap_or(Instant::MIN);
    TimeRange {
        begin,
        end: Instant::MAX,
    }
}

/// The time of the last event: the recorder ran at least until then.
fn newest(pages: &Pages) -> Option<Instant> {
    pages
        .cpus
        .iter()
        .filter_map(|cpu| cpu.range())
        .map(|range| range.end)
        .max()
}

/// Names stacks, and writes snapshots when there is a recorder.
pub(super) struct Desk {
    symbols: Symbols,
    snapshots: Option<Snapshots>,
}

impl Desk {
    /// `snapshots` is none without a recorder.
    pub(super) fn new(symbols: Symbols, snapshots: Option<Snapshots>) -> Self {
        Desk { symbols, snapshots }
    }

    /// The reports on what was caught, in the order of the hits.
    pub(super) fn reports(
        &mut self,
        mut caught: Caught,
        mut evidence: Vec<Evidence>,
    ) -> Vec<HitReport> {
        let name = |address: u64| {
            let found = self.symbols.lookup(address);
            found.map_or_else(String::new, |(name, offset)| format!("{name}+{offset:#x}"))
        };
        caught.hits.iter_mut().for_each(|hit| hit.symbolise(name));
        evidence
            .iter_mut()
            .for_each(|record| record.symbolise(name));
        let written = self
            .snapshots
            .as_mut()
            .map(|snapshots| snapshots.write(&caught, &evidence));
        let (snapshot, failure) = match written {
            None | Some(Ok(None)) => (None, None),
            Some(Ok(Some(snapshot))) => (Some(Arc::new(snapshot)), None),
            Some(Err(error)) => (None, Some(Arc::new(error))),
        };
        let report = |hit: Hit| HitReport {
            hit,
            snapshot: snapshot.clone(),
            failure: failure.clone(),
        };
        caught.hits.into_iter().map(report).collect()
    }
}
