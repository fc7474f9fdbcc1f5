//! What control groups give and keep from those that a hit is about, as it is right behind the hit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use event::evidence::{Hit, StepKind};
use event::{Duration, Tid};
use host::groups::{GroupLimits, of_task};

/// Reads the groups of tasks again and again, so that what their counts grew by is known.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// For how long each group had been out of its quota when it was last looked at.
    throttled: BTreeMap<PathBuf, Duration>,
    is_inside: bool,
}

impl Limits {
    pub fn begin() -> Limits {
        Limits {
            // The kernel's ids of tasks are others there.
            is_inside: host::namespace::is_inside(),
            ..Limits::default()
        }
    }

    /// The groups of the late tasks, and of all that lead to them.
    pub fn of(&mut self, hits: &[Hit]) -> Vec<(Tid, GroupLimits)> {
        if self.is_inside {
            return Vec::new();
        }
        let mut tids = BTreeSet::new();
        for hit in hits {
            let woken = hit.steps.iter();
            let woken = woken.filter(|step| step.kind == StepKind::Waking);
            tids.extend(woken.map(|step| step.id));
            tids.insert(hit.task.tid.0);
        }
        let tids = tids.into_iter().filter_map(|tid| u32::try_from(tid).ok());
        let groups = tids.flat_map(|tid| {
            let groups = of_task(Path::new("/"), tid);
            groups
                .into_iter()
                .map(move |group| (Tid(tid as i32), group))
        });
        let mut groups: Vec<(Tid, GroupLimits)> = groups.collect();
        let counts: BTreeMap<PathBuf, Duration> = groups
            .iter()
            .map(|(_, group)| (group.folder.clone(), group.throttled))
            .collect();
        for (_, group) in &mut groups {
            let before = self.throttled.get(&group.folder).copied();
            let grown = group.throttled - before.unwrap_or_default();
            group.throttled = grown.max(Duration::ZERO);
        }
        self.throttled.extend(counts);
        groups
    }
}
