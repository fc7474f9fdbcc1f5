//! Who keeps tasks from their work: senders of signals that stop, tracers, and who froze a control
//! group.
//!
//! A switch says that a task was stopped by a signal or for its tracer. Of one that is frozen with
//! its group of the second version it says that it sleeps (`do_freezer_trap`, kernel/signal.c).

use std::collections::HashMap;
use std::sync::Arc;

use trace::EventView;

use super::{Kernel, ProcId};
use crate::bind::{Pause, Stop};

const SIGCHLD: i64 = 17;
const SIGCONT: i64 = 18;
/// `SIGSTOP`, `SIGTSTP`, `SIGTTIN`, `SIGTTOU`; of all machines but alpha, mips, parisc and sparc.
const STOPS: std::ops::RangeInclusive<i64> = 19..=22;
/// `CLD_TRAPPED` and `CLD_STOPPED`: the child stops for its tracer, or for a signal.
const CHILD_STOPS: std::ops::RangeInclusive<i64> = 4..=5;

/// What stopped a task, as far as events tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopper {
    /// Who did it.
    pub by: Option<ProcId>,
    /// The signal; 0 where none did, or none was seen.
    pub signal: u32,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Stops {
    /// The last signal that stops, by the thread that it is for.
    signals: HashMap<i32, Stopper>,
    /// Whom a thread tells that it stops, until it leaves its CPU.
    tracers: HashMap<i32, i32>,
    /// Groups that are frozen, and who did that.
    frozen: Vec<(Arc<[u8]>, Option<ProcId>)>,
}

/// So many frozen groups are followed; those that were frozen first are let go.
const FROZEN_MAX: usize = 256;

/// Whether a control group is another one, or below it.
fn is_in(path: &[u8], group: &[u8]) -> bool {
    let rest = path.strip_prefix(group);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || group == b"/")
}

impl Kernel {
    pub(super) fn stop(&mut self, event: &EventView<'_>, cpu: u32, stop: Stop) {
        match stop {
            Stop::Signal { signal, code, tid } => {
                let (signal, tid) = (event.i64(signal), event.i64(tid) as i32);
                self.signal(cpu, (signal, event.i64(code)), tid);
            }
            Stop::Freezer { group, freezes } => {
                let Some(path) = group.path(event) else {
                    return;
                };
                let by = self.task_on(cpu);
                let frozen = &mut self.stops.frozen;
                frozen.retain(|(group, _)| **group != *path);
                if freezes {
                    frozen.drain(..frozen.len().saturating_sub(FROZEN_MAX - 1));
                    frozen.push((path.into(), by));
                }
            }
            Stop::Moves { tid, group } => {
                if let Some(path) = group.path(event) {
                    let task = self.processes.find_or_add(event.i64(tid) as i32);
                    self.processes.get_mut(task).group = Some(path.into());
                }
            }
        }
    }

    /// The task on `cpu` sends a signal to `tid`.
    fn signal(&mut self, cpu: u32, (signal, code): (i64, i64), tid: i32) {
        let by = self.task_on(cpu);
        match signal {
            SIGCONT => {
                self.stops.signals.remove(&tid);
            }
            // It tells its tracer first, then its parent (do_notify_parent_cldstop).
            SIGCHLD if CHILD_STOPS.contains(&code) => {
                if let Some(by) = by {
                    let stops = self.processes.get(by).tid;
                    self.stops.tracers.entry(stops).or_insert(tid);
                }
            }
            signal if STOPS.contains(&signal) => {
                let signal = signal as u32;
                self.stops.signals.insert(tid, Stopper { by, signal });
            }
            _ => {}
        }
    }

    /// Whether a task that seems to sleep is frozen: with a signal pending none does.
    pub(super) fn is_frozen(&self, id: ProcId) -> bool {
        !self.stops.frozen.is_empty() && self.freezer(id).is_some()
    }

    /// The frozen group of a task, and who froze it.
    fn freezer(&self, id: ProcId) -> Option<Option<ProcId>> {
        let process = self.process(id);
        let leader = process.pid.and_then(|pid| self.find(pid));
        let of_leader = leader.and_then(|leader| self.process(leader).group.as_deref());
        let group = of_leader.or(process.group.as_deref())?;
        let mut frozen = self.stops.frozen.iter();
        let freezes = frozen.find(|(path, _)| is_in(group, path));
        freezes.map(|(_, by)| *by)
    }

    /// What stopped a task that leaves its CPU now, for this reason.
    pub fn stopper(&self, id: ProcId, pause: Pause) -> Stopper {
        let process = self.process(id);
        match pause {
            Pause::Stopped => {
                let of = |tid: i32| self.stops.signals.get(&tid).copied();
                let of_process = || process.pid.and_then(of);
                of(process.tid).or_else(of_process).unwrap_or_default()
            }
            Pause::Traced => {
                let tracer = self.stops.tracers.get(&process.tid);
                let by = tracer.and_then(|tracer| self.find(*tracer));
                Stopper { by, signal: 0 }
            }
            Pause::Frozen => Stopper {
                by: self.freezer(id).flatten(),
                signal: 0,
            },
            _ => Stopper::default(),
        }
    }

    /// A task has left its CPU: whom it told what is over.
    pub(super) fn has_stopped(&mut self, id: ProcId) {
        if !self.stops.tracers.is_empty() {
            let tid = self.processes.get(id).tid;
            self.stops.tracers.remove(&tid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_in;

    #[test]
    fn a_group_is_in_itself_and_in_those_above_it() {
        let check = |path: &str, group: &str, expect: bool| {
            let found = is_in(path.as_bytes(), group.as_bytes());
            assert_eq!(found, expect, "{path} in {group}");
        };
        check("/a/b", "/a/b", true);
        check("/a/b", "/a", true);
        check("/a/b", "/", true);
        check("/a", "/a/b", false);
        check("/ab", "/a", false);
    }
}
