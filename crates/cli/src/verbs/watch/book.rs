//! All that a watch found late: ranked by cause, a line each on disk, the worst snapshots kept.

use capture::watch::{HitReport, in_short};
use diagnosis::{Diagnosis, Group, LateActivation};
use event::Result;
use event::evidence::{EndKind, LateOne};

use super::causes::Causes;
use super::keep::Keeper;
use super::log::{self, Line, Log};
use crate::options::WatchOptions;

/// What is kept of all.
pub(super) struct Book {
    pub causes: Causes,
    log: Option<Log>,
    keeper: Option<Keeper>,
}

impl Book {
    /// For a watch with `options`; without snapshots nothing goes to disk.
    pub fn new(options: &WatchOptions) -> Book {
        let snapshots = options.snapshot.as_ref();
        Book {
            causes: Causes::default(),
            log: snapshots.map(|snapshots| Log::new(&snapshots.output)),
            keeper: snapshots.map(|snapshots| {
                let mut keeper = Keeper::new(snapshots.keep);
                if snapshots.keep_earlier {
                    keeper.add_earlier(&snapshots.output, log::earlier(&snapshots.output));
                }
                keeper
            }),
        }
    }

    /// A hit and what its snapshot says of it.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn hit(&mut self, report: &HitReport, diagnosis: Option<&Diagnosis>) -> Result<()> {
        let hit = &report.hit;
        let found = diagnosis.and_then(|found| cause(found, hit.id));
        let (cause, exact) = match found {
            Some((group, _)) => (group.signature.clone(), group.verdict.conclusive),
            None => (in_short(hit).seen(), false),
        };
        // The ledger knows better since when it waited.
        let late = found.map(|(_, late)| late);
        let origin = late.map_or(hit.origin, |late| late.origin);
        let latency = hit.end - origin;
        // Whoever still waits is told again when it is over.
        if hit.end_kind != EndKind::Waiting {
            self.causes.add(&hit.task.comm, &cause, latency, exact);
        }
        let snapshot = report
            .snapshot
            .as_ref()
            .map(|snapshot| snapshot.path.as_path());
        if let Some(log) = &mut self.log {
            log.write(&Line {
                origin,
                end: hit.end,
                task: late.map_or(&hit.task, |late| &late.task),
                cause: &cause,
                exact,
                snapshot,
            })?;
        }
        if let (Some(keeper), Some(path)) = (&mut self.keeper, snapshot) {
            keeper.add(&cause, path, latency);
        }
        Ok(())
    }

    /// One that the limits held back.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn held_back(&mut self, late: &LateOne) -> Result<()> {
        let seen = late.seen();
        self.causes
            .add(&late.task.comm, &seen, late.latency(), false);
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        log.write(&Line {
            origin: late.origin,
            end: late.end,
            task: &late.task,
            cause: &seen,
            exact: false,
            snapshot: None,
        })
    }

    /// No hit comes any more.
    pub fn close(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.close();
        }
    }

    /// The ranking, and how many snapshots gave way.
    pub fn text(&self) -> String {
        let mut text = self.causes.text();
        let removed = self.keeper.as_ref().map_or(0, |keeper| keeper.removed);
        if removed > 0 {
            text.push_str(&format!(
                "{removed} snapshots of less late activations gave way (--keep)\n"
            ));
        }
        text
    }
}

/// The activation of a hit, and the group of those of its cause.
fn cause(diagnosis: &Diagnosis, id: u64) -> Option<(&Group, &LateActivation)> {
    let mut activations = diagnosis.activations.iter();
    let is_it = |late: &LateActivation| late.hit.as_ref().is_some_and(|hit| hit.id == id);
    let place = activations.position(is_it)?;
    let mut groups = diagnosis.groups.iter();
    let group = groups.find(|group| group.members.contains(&place))?;
    Some((group, &diagnosis.activations[place]))
}
