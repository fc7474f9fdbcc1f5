//! What control groups give some tasks, as a watch read it behind their hits.

use event::Duration;
use kernel_state::bind::Limits;
use trace::EventView;

use super::build::Builder;
use crate::quota::weight;

/// What the kernel gives a task of nice 0, and a group that nobody gave another weight.
pub(crate) const WEIGHT_USUAL: f64 = 1024.0;

/// A control group of a task.
#[derive(Clone, Debug)]
pub(crate) struct GroupOf {
    pub tid: i32,
    /// How many groups lie between it and the task's own.
    pub level: u64,
    pub folder: String,
    /// The file of its weight and what that says, with what it says of other groups.
    pub weight: Option<(String, u64, u64)>,
    pub has_quota: bool,
    /// For how long it was out of that since the hit before.
    pub throttled: Duration,
    /// The file of its limit of memory, that, and how much it has, in bytes.
    pub memory: Option<(String, u64, u64)>,
}

impl GroupOf {
    /// Its share beside its siblings, as the kernel counts.
    pub fn shares(&self) -> Option<f64> {
        let (_, value, usual) = self.weight.as_ref()?;
        Some(*value as f64 * WEIGHT_USUAL / (*usual).max(1) as f64)
    }
}

/// All that is known of control groups.
#[derive(Debug, Default)]
pub(crate) struct Groups(Vec<GroupOf>);

impl Groups {
    /// Those of a task, its own first.
    pub fn of(&self, tid: i32) -> impl Iterator<Item = &GroupOf> {
        self.0.iter().filter(move |group| group.tid == tid)
    }

    /// Whether any is known of a task; one outside of all groups has a root.
    pub fn are_told(&self, tid: i32) -> bool {
        self.of(tid).next().is_some()
    }

    /// Where a group of the task has less of the CPU beside its siblings than a task of this nice
    /// value alone would have: those that do, the least first.
    pub fn lighter_than(&self, tid: i32, nice: i32) -> Vec<&GroupOf> {
        let own = weight(nice);
        let shares = |group: &&GroupOf| group.shares().is_some_and(|shares| shares < own);
        let mut lighter: Vec<&GroupOf> = self.of(tid).filter(shares).collect();
        lighter.sort_by(|one, other| {
            let of = |group: &GroupOf| group.shares().unwrap_or(f64::MAX);
            of(one).total_cmp(&of(other))
        });
        lighter
    }

    /// The group whose quota kept the task: of those that have one, the one whose count grew most,
    /// else the innermost.
    pub fn out_of_quota(&self, tid: i32) -> Option<&GroupOf> {
        let limited = self.of(tid).filter(|group| group.has_quota);
        limited.min_by_key(|group| (-group.throttled.as_ns(), group.level))
    }

    /// The group that is nearest to its limit of memory.
    pub fn out_of_memory(&self, tid: i32) -> Option<&GroupOf> {
        let part = |group: &GroupOf| {
            let (_, limit, used) = group.memory.as_ref()?;
            Some(*used as f64 / (*limit).max(1) as f64)
        };
        let limited = self.of(tid).filter_map(|group| Some((part(group)?, group)));
        let fullest = limited.max_by(|one, other| one.0.total_cmp(&other.0));
        fullest.map(|(_, group)| group)
    }
}

impl Builder {
    /// A group of a task, told behind its hit.
    pub(super) fn limits(&mut self, fields: &Limits, event: &EventView<'_>) {
        let text = |field| event::plain_text(event.text(field)).to_string();
        let set = |file: String, first: u64, second: u64| {
            (!file.is_empty()).then_some((file, first, second))
        };
        self.groups.0.push(GroupOf {
            tid: event.i64(fields.tid) as i32,
            level: event.u64(fields.level),
            folder: text(fields.folder),
            weight: set(
                text(fields.weight_file),
                event.u64(fields.weight),
                event.u64(fields.weight_usual),
            ),
            has_quota: event.u64(fields.has_quota) != 0,
            throttled: Duration::from_ns(event.i64(fields.throttled)),
            memory: set(
                text(fields.memory_file),
                event.u64(fields.memory_limit),
                event.u64(fields.memory_used),
            ),
        });
    }
}
