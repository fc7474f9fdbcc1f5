//! For how long the quotas of control groups kept tasks from running: the kernel counts it, and a
//! recorder writes down what the counts grew by between two looks.

use std::collections::{HashMap, HashSet};

use trace::EventView;

use super::build::Builder;
use event::{EventClass, FieldId};

/// What a recorder found in the kernel's counts, look by look.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    looks: Vec<Look>,
    /// Who ended since the last look; none where nobody looks.
    ended: Option<HashSet<i32>>,
}

/// What the counts grew by since the look before. A count grows as a quota is back, so of a wait
/// that ended between two looks it has all.
#[derive(Debug)]
struct Look {
    begin_ns: i64,
    end_ns: i64,
    /// Of all groups.
    total_ns: i64,
    /// Of the groups of each thread that had such a group.
    of_tasks: HashMap<i32, i64>,
    /// Who ended before anybody could see in which groups it was.
    ended: HashSet<i32>,
}

impl Look {
    /// For how long it kept a task at most.
    fn kept_ns(&self, tid: i32) -> i64 {
        let unseen = || {
            if self.ended.contains(&tid) {
                self.total_ns
            } else {
                0
            }
        };
        self.of_tasks.get(&tid).copied().unwrap_or_else(unseen)
    }
}

impl Quotas {
    /// Of a trace with these classes.
    pub fn of(classes: &[EventClass]) -> Quotas {
        let are_told = classes.iter().any(|class| class.name == "rtscope_quota");
        Quotas {
            looks: Vec::new(),
            ended: are_told.then(HashSet::new),
        }
    }

    /// For how long quotas kept a task at most from `begin_ns` to `end_ns`; none where nobody
    /// looked.
    pub fn kept_at_most(&self, tid: i32, (begin_ns, end_ns): (i64, i64)) -> Option<i64> {
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        if begin_ns < first.begin_ns || last.end_ns < end_ns {
            return None;
        }
        let inside = |look: &&Look| look.begin_ns < end_ns && begin_ns < look.end_ns;
        let kept = self
            .looks
            .iter()
            .filter(inside)
            .map(|look| look.kept_ns(tid));
        Some(kept.fold(0, i64::saturating_add))
    }
}

impl Builder {
    /// A look's own event comes first: that of task 0.
    pub(super) fn quota(
        &mut self,
        (begin, kept, tid): (FieldId, FieldId, FieldId),
        (end_ns, event): (i64, &EventView<'_>),
    ) {
        let (tid, kept_ns) = (event.i64(tid) as i32, event.i64(kept));
        if tid == 0 {
            let ended = self.quotas.ended.as_mut().map(std::mem::take);
            self.quotas.looks.push(Look {
                begin_ns: event.i64(begin),
                end_ns,
                total_ns: kept_ns,
                of_tasks: HashMap::new(),
                // Of no use where nobody was kept.
                ended: ended.filter(|_| kept_ns > 0).unwrap_or_default(),
            });
        } else if let Some(look) = self.quotas.looks.last_mut() {
            look.of_tasks.insert(tid, kept_ns);
        }
    }

    /// A task ended: the next look does not see in which groups it was.
    pub(super) fn left_its_groups(&mut self, tid: i32) {
        if let Some(ended) = &mut self.quotas.ended {
            ended.insert(tid);
        }
    }
}
