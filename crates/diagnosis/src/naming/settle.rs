//! Names that depend on the sum over a phase, and on what the evidence shows of who ran in it.

use event::Instant;
use event::evidence::PreemptionModel;

use super::{Key, Namer, Piece, SKEW_MAX_NS, SWITCH_MAX_NS};
use crate::kept::{self, Shown};
use crate::model::VersionId;
use crate::phases::{Doing, Since};
use crate::public::kept_function;
use crate::quota;
use crate::term::Reason;

/// The kernel's own sections rarely keep a program on its CPU for longer.
const SECTION_NS_MAX: i64 = 3_000_000;

impl Namer<'_> {
    /// The hit that ended this wait and whose stacks show what `task` did. Kernels that do not tell
    /// when need-resched is set have no other record of it.
    fn kept(&self, task: u32) -> Option<usize> {
        let tid = self.model.tasks.version(VersionId(task))?.tid;
        let end = Instant::from_ns(self.phase.end_ns);
        self.model.evidence.hits.iter().position(|hit| {
            let here = hit.steps.last().is_some_and(|step| step.cpu == self.cpu);
            let now = (hit.end - end).as_ns().abs() <= SKEW_MAX_NS;
            // The model that believes most; the one in force decides later.
            let shown = || kept_function(self.model, hit, tid, PreemptionModel::Full).is_some();
            here && now && shown()
        })
    }

    /// Gives their names to pieces whose name depends on their sum.
    pub(super) fn settle(&self, pieces: &mut Vec<Piece>, first: usize) {
        self.settle_lower(pieces, first);
        let idle_ns: i64 = sum_ns(&pieces[first..], |key| matches!(key, Key::Idle));
        let moved = self.has_moved();
        for piece in &mut pieces[first..] {
            piece.key = match piece.key {
                Key::Idle if moved && idle_ns <= SWITCH_MAX_NS => Key::Migration,
                Key::Idle if idle_ns <= self.model.idle_exit_max().as_ns() => Key::IdleExit,
                Key::Idle => Key::Unexplained(Reason::LongIdle),
                other => other,
            };
        }
    }

    fn has_moved(&self) -> bool {
        let since = Since::Migration;
        matches!(self.phase.doing, Doing::Waiting { since: s, .. } if s == since)
    }

    /// The same for tasks of a lower priority.
    fn settle_lower(&self, pieces: &mut Vec<Piece>, first: usize) {
        let lower_ns = sum_ns(&pieces[first..], |key| matches!(key, Key::Lower(_, None)));
        let mut lower: Vec<u32> = Vec::new();
        for piece in &pieces[first..] {
            match piece.key {
                Key::Lower(task, _) if !lower.contains(&task) => lower.push(task),
                _ => {}
            }
        }
        let is_short = |key: &Key| matches!(key, Key::Lower(_, None)) && lower_ns <= SWITCH_MAX_NS;
        let interrupted = is_interrupted(&pieces[first..]);
        for task in lower {
            let shown = match kept::shown(self.model, self.phase, VersionId(task)) {
                Shown::Nothing if interrupted && self.may_have_been_raised(task) => Shown::Raised,
                shown => shown,
            };
            if let Shown::LeftThere(from_ns) = shown {
                quota::split_at(pieces, first, from_ns);
            }
            let short = if self.has_moved() {
                Key::Migration
            } else {
                Key::Switch
            };
            for piece in &mut pieces[first..] {
                match piece.key {
                    Key::Lower(other, _) if other != task => {}
                    key if is_short(&key) => piece.key = short,
                    Key::Lower(_, record) => {
                        piece.key = self.lower(task, record, shown, piece.begin_ns);
                    }
                    _ => {}
                }
            }
        }
    }

    /// What a task of a lower priority did with the CPU from `begin_ns` on, by what is shown of it.
    fn lower(&self, task: u32, record: Option<usize>, shown: Shown, begin_ns: i64) -> Key {
        // It came with a priority that goes first, and lowered itself while it ran.
        let came = self.model.tasks.version(VersionId(task));
        let came = came.and_then(|version| version.came);
        let came = came.filter(|came| !self.is_lower(*came));
        match (shown, came) {
            (Shown::Served, _) => Key::Served(task),
            // What it raised itself to meanwhile, no event tells.
            (Shown::Lowered | Shown::WentFirst, None) => Key::Wait(task),
            (Shown::Nothing | Shown::Raised, None) => match (record, self.kept(task)) {
                (Some(_), _) => Key::PreemptionOff(task, record),
                (None, Some(hit)) => Key::Kept(task, hit),
                // No stack shows that it was in the kernel.
                _ if kept::is_limited(self.model, self.phase) => {
                    Key::Unexplained(Reason::PerhapsLimited)
                }
                // It is woken then, and comes on no run queue before its next period.
                _ if self.has_deadline() => Key::Unexplained(Reason::PerhapsOwnRuntime),
                _ if shown == Shown::Raised => Key::Unexplained(Reason::PriorityUnknown),
                _ => Key::PreemptionOff(task, None),
            },
            (Shown::Nothing | Shown::Raised, Some(_)) => Key::Unexplained(Reason::PriorityUnknown),
            (_, Some(came)) => Key::Wait(came.0),
            (Shown::LeftThere(from_ns), None)
                if begin_ns >= from_ns && kept::is_limited(self.model, self.phase) =>
            {
                Key::Throttled(Some(task))
            }
            (_, None) => Key::Unexplained(Reason::LeftInUserCode),
        }
    }

    /// Whether a program that kept its CPU may have had a higher priority in between: where it or
    /// another task raises and lowers it there, a recording has no event of that. A watch sees it.
    fn may_have_been_raised(&self, task: u32) -> bool {
        let is_long = self.phase.end_ns - self.phase.begin_ns > SECTION_NS_MAX;
        let is_watched = self.model.families.hit || !self.model.evidence.late_timers.is_empty();
        is_long && !is_watched && !self.model.tasks.is_kernels(VersionId(task))
    }

    fn has_deadline(&self) -> bool {
        matches!(self.phase.doing, Doing::Waiting { prio, .. } if prio.has_deadline())
    }

    /// Whether a task, as it was then, has a lower priority than the one that waits.
    pub(super) fn is_lower(&self, version: VersionId) -> bool {
        let Doing::Waiting { prio, .. } = self.phase.doing else {
            return false;
        };
        let version = self.model.tasks.version(version);
        version.is_some_and(|version| prio.is_real_time() && prio.beats(version.prio))
    }
}

/// Whether a task of a lower priority went on behind an interrupt that found it: on the way back to
/// code of its own the scheduler is asked.
fn is_interrupted(pieces: &[Piece]) -> bool {
    let ran = |piece: &&Piece| matches!(piece.key, Key::Lower(_, None));
    let behind = pieces.iter().skip_while(|piece| !ran(piece));
    let mut behind = behind.skip_while(|piece| !matches!(piece.key, Key::Hardirq(_)));
    behind.any(|piece| ran(&piece) && piece.end_ns - piece.begin_ns > SWITCH_MAX_NS)
}

/// The time of those pieces.
fn sum_ns(pieces: &[Piece], of: impl Fn(&Key) -> bool) -> i64 {
    let those = pieces.iter().filter(|piece| of(&piece.key));
    those.map(|piece| piece.end_ns - piece.begin_ns).sum()
}
