//! The explanation of a hit, from its snapshot.

use capture::watch::{HitReport, Snapshot};
use diagnosis::{Diagnosis, Query, diagnose};
use event::{Error, ErrorKind, Result};
use trace::Trace;

/// As `rtscope diagnose` says it later.
///
/// # Errors
/// When the hit has no snapshot, or that cannot be read.
pub(super) fn diagnosis(report: &HitReport) -> Result<Diagnosis> {
    match &report.snapshot {
        Some(snapshot) => explain(report, snapshot),
        None => Err(no_snapshot(report)),
    }
}

fn explain(report: &HitReport, snapshot: &Snapshot) -> Result<Diagnosis> {
    let trace = Trace::open(&snapshot.path)?;
    let mut diagnosis = diagnose(
        &trace,
        &Query {
            worst: 0,
            ..Query::default()
        },
    )?;
    // Hits of one moment share a snapshot; this one is asked for.
    let is_this = |id: Option<u64>| id == Some(report.hit.id);
    let others = diagnosis.activations.len();
    if others > 1 {
        let range = event::TimeRange {
            begin: report.hit.end - event::Duration::from_us(2),
            end: report.hit.end + event::Duration::from_us(2),
        };
        let narrowed = diagnose(
            &trace,
            &Query {
                worst: 0,
                range,
                ..Query::default()
            },
        )?;
        let found = narrowed
            .activations
            .iter()
            .any(|late| is_this(late.hit.as_ref().map(|h| h.id)));
        if found {
            // What it rests on is the whole snapshot all the same.
            diagnosis = Diagnosis {
                basis: diagnosis.basis,
                ..narrowed
            };
        }
    }
    Ok(diagnosis)
}

fn no_snapshot(report: &HitReport) -> Error {
    match &report.failure {
        Some(failure) => Error::new(failure.kind(), failure.what())
            .found(failure.value_found().unwrap_or("no snapshot"))
            .fix(
                failure
                    .fixed_by()
                    .unwrap_or("the watch goes on; the next hit has one"),
            ),
        None => Error::new(
            ErrorKind::NotFound,
            "this hit has no snapshot to explain it from",
        )
        .fix("leave --no-snapshot away"),
    }
}
