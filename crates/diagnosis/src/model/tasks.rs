//! Tasks: their names and priorities over time, their states, their moments.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use event::{Prio, Tid};

use super::chain::NodeId;
use event::evidence::TaskRef;
use kernel_state::{TaskFilter, passes_work_on};

/// A task as it was between two changes of its name or priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VersionId(pub u32);

impl VersionId {
    pub const NONE: VersionId = VersionId(u32::MAX);
}

/// What a [`VersionId`] stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    pub tid: Tid,
    pub prio: Prio,
    comm: [u8; 16],
    /// The query asks for its activations.
    pub wanted: bool,
    /// It only passes work on.
    pub passes: bool,
    /// A stop-class thread.
    pub stop: bool,
}

impl Version {
    pub fn comm(&self) -> &[u8] {
        let end = self
            .comm
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(self.comm.len());
        &self.comm[..end]
    }

    pub fn task_ref(&self) -> TaskRef {
        let comm = String::from_utf8_lossy(self.comm()).into_owned();
        TaskRef {
            tid: self.tid,
            comm,
            prio: self.prio,
        }
    }
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    Unknown,
    /// On this CPU.
    On(u32),
    /// Woken, and not yet on a CPU since.
    Woken,
    /// Put aside while runnable.
    Preempted,
    Blocked,
}

/// What happened to a task, for the refinement of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentKind {
    Waking,
    Wakeup,
    Migrate,
    In,
    OutRunnable,
    OutBlocked,
}

/// When and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub time_ns: i64,
    /// The CPU of the run queue: target, destination or the CPU of the switch.
    pub cpu: u32,
    /// The CPU on which it happened: the waker's, for a wake-up.
    pub by: u16,
    pub kind: MomentKind,
}

/// A softirq that runs on a task's time. It leaves the CPU with the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoftFrame {
    pub vector: u32,
    pub base: NodeId,
    pub current: NodeId,
}

/// The state of one task.
#[derive(Debug)]
pub(crate) struct TaskState {
    pub version: VersionId,
    pub run: Run,
    /// The chain of its wake-up or of its present activation.
    pub chain: NodeId,
    /// A wake-up that came while it was still on a CPU.
    pub pending: NodeId,
    /// When it was woken.
    pub woken_ns: i64,
    pub softirqs: Vec<SoftFrame>,
    pub log: Vec<Moment>,
}

/// An index into the table of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskIndex(pub u32);

/// All tasks seen.
pub(crate) struct Tasks {
    filter: TaskFilter,
    by_tid: HashMap<i32, TaskIndex, BuildHasherDefault<TidHasher>>,
    pub states: Vec<TaskState>,
    versions: Vec<Version>,
}

impl Tasks {
    pub fn new(filter: TaskFilter) -> Self {
        Tasks {
            filter,
            by_tid: HashMap::default(),
            states: vec![],
            versions: vec![],
        }
    }

    pub fn version(&self, id: VersionId) -> Option<&Version> {
        self.versions.get(id.0 as usize)
    }

    pub fn state(&mut self, task: TaskIndex) -> &mut TaskState {
        &mut self.states[task.0 as usize]
    }

    /// The task as named by an event; a new version when its name or priority changed.
    pub fn see(&mut self, tid: i32, cpu: u32, comm: &[u8], prio: Prio) -> TaskIndex {
        let task = *self.by_tid.entry(key(tid, cpu)).or_insert_with(|| {
            self.states.push(TaskState {
                version: VersionId::NONE,
                run: Run::Unknown,
                chain: NodeId::NONE,
                pending: NodeId::NONE,
                woken_ns: 0,
                softirqs: vec![],
                log: vec![],
            });
            TaskIndex(self.states.len() as u32 - 1)
        });
        let known = self
            .versions
            .get(self.states[task.0 as usize].version.0 as usize);
        let cut = &comm[..comm.len().min(16)];
        if known.is_none_or(|known| known.prio != prio || known.comm() != cut) {
            let version = self.add_version(Tid(tid), cut, prio);
            self.states[task.0 as usize].version = version;
        }
        task
    }

    /// The task has another priority from here on.
    pub fn set_prio(&mut self, task: TaskIndex, prio: Prio) {
        let Some(version) = self.version(self.states[task.0 as usize].version).copied() else {
            return;
        };
        if version.prio != prio {
            let version = self.add_version(version.tid, version.comm(), prio);
            self.states[task.0 as usize].version = version;
        }
    }

    /// The task has another name from here on, as when it runs another program.
    pub fn rename(&mut self, task: TaskIndex, comm: &[u8]) {
        let Some(version) = self.version(self.states[task.0 as usize].version).copied() else {
            return;
        };
        let cut = &comm[..comm.len().min(16)];
        if version.comm() != cut {
            let version = self.add_version(version.tid, cut, version.prio);
            self.states[task.0 as usize].version = version;
        }
    }

    pub fn find(&self, tid: i32, cpu: u32) -> Option<TaskIndex> {
        self.by_tid.get(&key(tid, cpu)).copied()
    }

    /// The moments of a task in time order; none for one never seen.
    pub fn log(&self, tid: i32, cpu: u32) -> &[Moment] {
        self.find(tid, cpu)
            .map_or(&[], |task| self.states[task.0 as usize].log.as_slice())
    }

    fn add_version(&mut self, tid: Tid, comm: &[u8], prio: Prio) -> VersionId {
        let mut bytes = [0; 16];
        bytes[..comm.len()].copy_from_slice(comm);
        self.versions.push(Version {
            tid,
            prio,
            comm: bytes,
            wanted: self.filter.matches(tid, comm, prio),
            passes: passes_work_on(comm),
            stop: comm.starts_with(b"migration/"),
        });
        VersionId(self.versions.len() as u32 - 1)
    }
}

/// Pid 0 is one task per CPU.
fn key(tid: i32, cpu: u32) -> i32 {
    if tid == 0 {
        -1 - (cpu & 0xffff) as i32
    } else {
        tid
    }
}

/// Tids are small and dense: one multiplication spreads them well enough, and a hostile trace can
/// only make its own analysis slower.
#[derive(Default)]
pub(crate) struct TidHasher(u64);

impl Hasher for TidHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_i32(&mut self, value: i32) {
        self.write_u64(value as u32 as u64);
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
