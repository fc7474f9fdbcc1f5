//! Tasks: their names and priorities over time, their states, their moments.

use std::collections::{HashMap, HashSet};

use event::kernel_threads::is_stop_class;
use event::{COMM_BYTES_MAX, NamedTask, NumberMap, Prio, Tid};

use super::chain::NodeId;
use super::ends::Work;
use event::evidence::{StopKind, TaskRef};
use kernel_state::bind::{Dump, Life};
use kernel_state::{Comm, Kernel, ProcId, Programs, TaskFilter};
use trace::EventView;

/// A task as it was between two changes of its name or priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    comm_len: u8,
    /// The query asks for its activations.
    pub wanted: bool,
    /// The query asks for its thread by the name that it worked under before, and no longer.
    pub was_wanted: bool,
    /// It only passes work on.
    pub passes: bool,
    /// A stop-class thread.
    pub stop: bool,
    /// It left the CPU so, and had come on it with another priority; nothing says when it changed.
    pub came: Option<VersionId>,
    /// What all versions of one thread share, and of no other that got its id.
    pub thread: u32,
}

impl Version {
    #[inline]
    pub fn comm(&self) -> &[u8] {
        &self.comm[..usize::from(self.comm_len)]
    }

    pub fn task_ref(&self) -> TaskRef {
        let comm = event::plain_text(self.comm());
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
    /// Preempted: off its CPU while runnable.
    Preempted,
    Blocked,
}

/// Where and when something happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub cpu: u32,
    pub now_ns: i64,
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
    /// It left the CPU as it was stopped, which is no sleep.
    pub halted: Option<StopKind>,
    /// It left the CPU as it gave up the rest of its SCHED_DEADLINE runtime, or had used it up.
    pub gave_way: bool,
    /// It came on the CPU's run queue, and the task that had the CPU was not asked to leave it.
    pub goes_behind: bool,
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
    /// The thread that has the id now.
    thread: u32,
    pub run: Run,
    /// The chain of its wake-up or of its present activation.
    pub chain: NodeId,
    /// A wake-up that came while it was still on a CPU.
    pub pending: NodeId,
    /// When it was woken.
    pub woken_ns: i64,
    /// When it was made, until it sleeps for the first time.
    pub made_ns: Option<i64>,
    /// When it went to sleep last.
    pub blocked_ns: i64,
    pub softirqs: Vec<SoftFrame>,
    pub log: Vec<Moment>,
    /// It is on its way out: whom it wakes now it has done no work for.
    pub ends: bool,
    /// Whom it woke last, and when.
    pub woke: Option<(TaskIndex, i64)>,
    /// Its present activation, beyond the chain.
    pub work: Work,
    /// When it was last seen to end its work: what it does next begins in the trace.
    pub worked_ns: Option<i64>,
}

/// An index into the table of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskIndex(pub u32);

/// What events say of the process of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Belongs {
    /// Its process; none: nothing says it.
    pub pid: Option<Tid>,
    /// It runs a program.
    pub is_program: bool,
    /// Events said that it is one of the kernel's threads.
    pub is_kernels: bool,
    comm: [u8; COMM_BYTES_MAX],
}

impl Belongs {
    /// A thread of a process, called `comm`.
    pub fn to(pid: i32, comm: &[u8]) -> Belongs {
        let mut bytes = [0; COMM_BYTES_MAX];
        let cut = comm.len().min(COMM_BYTES_MAX);
        bytes[..cut].copy_from_slice(&comm[..cut]);
        Belongs {
            pid: (pid > 0).then_some(Tid(pid)),
            is_program: false,
            is_kernels: false,
            comm: bytes,
        }
    }

    /// It runs a program: it is no thread of the kernel's.
    pub fn with_program(self) -> Belongs {
        Belongs {
            is_program: true,
            ..self
        }
    }

    /// It is one of the kernel's threads.
    pub fn with_kernel(self) -> Belongs {
        Belongs {
            is_kernels: true,
            ..self
        }
    }

    fn comm(&self) -> &[u8] {
        let end = self.comm.iter().position(|byte| *byte == 0);
        &self.comm[..end.unwrap_or(COMM_BYTES_MAX)]
    }
}

/// All tasks seen.
pub(crate) struct Tasks {
    filter: TaskFilter,
    /// What events said of the process of a thread, by its id.
    belongs: NumberMap<i32, Belongs>,
    /// Those whose events are recorded, where those of others are not.
    recorded: Option<HashSet<i32>>,
    /// What files processes run.
    programs: Programs,
    by_tid: NumberMap<i32, TaskIndex>,
    /// By the number of a thread in the kernel's state.
    by_process: Vec<Option<TaskIndex>>,
    /// The idle tasks, which share one there, by their CPU.
    idle: Vec<Option<TaskIndex>>,
    pub states: Vec<TaskState>,
    versions: Vec<Version>,
    /// So many threads were seen, also one after the other with one id.
    threads: u32,
}

impl Tasks {
    pub fn new(filter: TaskFilter) -> Self {
        Tasks {
            filter,
            belongs: NumberMap::default(),
            recorded: None,
            programs: Programs::default(),
            by_tid: NumberMap::default(),
            by_process: vec![],
            idle: vec![],
            states: vec![],
            versions: vec![],
            threads: 1, // 0: no event of the kernel's says who it is
        }
    }

    /// Only what those do is in the trace of whom [`Tasks::is_recorded`] tells, and their children.
    pub fn are_some_alone(&mut self) {
        self.recorded = Some(HashSet::new());
    }

    /// From here on what this one does is in the trace, where not all is.
    pub fn is_recorded(&mut self, tid: i32) {
        if let Some(recorded) = &mut self.recorded
            && recorded.insert(tid)
        {
            self.may_be_meant(tid);
        }
    }

    pub fn version(&self, id: VersionId) -> Option<&Version> {
        self.versions.get(id.0 as usize)
    }

    pub fn state(&mut self, task: TaskIndex) -> &mut TaskState {
        &mut self.states[task.0 as usize]
    }

    /// The task that is a thread of the kernel's state; the idle task is that of the CPU.
    #[inline]
    pub fn of_process(&mut self, kernel: &Kernel, id: ProcId, cpu: u32) -> TaskIndex {
        let tid = kernel.process(id).tid;
        let known = match tid {
            0 => self.idle.get(cpu as usize),
            _ => self.by_process.get(id.0 as usize),
        };
        match known {
            Some(Some(task)) => *task,
            _ => self.add_process(tid, id, cpu),
        }
    }

    #[cold]
    fn add_process(&mut self, tid: i32, id: ProcId, cpu: u32) -> TaskIndex {
        let task = self.add(tid, cpu);
        self.states[task.0 as usize].thread = self.threads;
        self.threads += 1;
        let (known, place) = match tid {
            0 => (&mut self.idle, cpu as usize),
            _ => (&mut self.by_process, id.0 as usize),
        };
        if known.len() <= place {
            known.resize(place + 1, None);
        }
        known[place] = Some(task);
        task
    }

    /// The task with this id; a new one when it was not seen before.
    fn add(&mut self, tid: i32, cpu: u32) -> TaskIndex {
        *self.by_tid.entry(key(tid, cpu)).or_insert_with(|| {
            self.states.push(TaskState {
                version: VersionId::NONE,
                thread: 0,
                run: Run::Unknown,
                chain: NodeId::NONE,
                pending: NodeId::NONE,
                woken_ns: 0,
                made_ns: None,
                blocked_ns: i64::MIN,
                softirqs: vec![],
                log: vec![],
                ends: false,
                woke: None,
                work: Work::default(),
                worked_ns: None,
            });
            TaskIndex(self.states.len() as u32 - 1)
        })
    }

    /// The places of all tasks that ever were what is asked for, and what each was so last: it may
    /// have another name or another priority by the end.
    pub fn wanted_once(&self) -> Vec<(u32, TaskRef)> {
        let wanted = self.versions.iter().filter(|version| version.wanted);
        let last: HashMap<u32, &Version> =
            wanted.map(|version| (version.thread, version)).collect();
        let states = self.states.iter().enumerate();
        let wanted = states.filter_map(|(place, state)| {
            let task = last.get(&state.thread)?.task_ref();
            Some((place as u32, task))
        });
        wanted.collect()
    }

    /// Whether a version has this name and this priority.
    #[inline]
    pub fn is_named(&self, version: VersionId, comm: &Comm, prio: Prio) -> bool {
        let (bytes, len) = comm.head();
        self.version(version).is_some_and(|known| {
            known.prio == prio && usize::from(known.comm_len) == len && known.comm == *bytes
        })
    }

    /// The task is called so: a new version when its name or priority changed.
    pub fn name(&mut self, task: TaskIndex, tid: i32, comm: &[u8], prio: Prio) {
        let known = self
            .versions
            .get(self.states[task.0 as usize].version.0 as usize);
        let cut = &comm[..comm.len().min(16)];
        if known.is_none_or(|known| known.prio != prio || known.comm() != cut) {
            let version = self.add_version(task, Tid(tid), cut, prio);
            self.states[task.0 as usize].version = version;
        }
    }

    /// The task has another priority from here on.
    pub fn set_prio(&mut self, task: TaskIndex, prio: Prio) {
        let Some(version) = self.version(self.states[task.0 as usize].version).copied() else {
            return;
        };
        if version.prio != prio {
            let version = self.add_version(task, version.tid, version.comm(), prio);
            self.states[task.0 as usize].version = version;
        }
    }

    /// What a part of a run is that was believed to be `part`'s, if the run ended as `after` and
    /// not as `before`: of an earlier name it keeps that one. None for what is not of that run, or
    /// from before an event that says when the priority changed.
    pub fn run_of(
        &mut self,
        part: VersionId,
        before: VersionId,
        after: VersionId,
    ) -> Option<VersionId> {
        let (part_was, came) = (*self.version(part)?, *self.version(before)?);
        let left = *self.version(after)?;
        if part_was.tid != left.tid || part_was.prio != came.prio {
            return None;
        }
        let named = if part == before { left } else { part_was };
        if came.prio == left.prio {
            return Some(if part == before { after } else { part });
        }
        self.versions.push(Version {
            prio: left.prio,
            came: Some(part),
            ..named
        });
        Some(VersionId(self.versions.len() as u32 - 1))
    }

    /// The task has another name from here on, as when it runs another program.
    pub fn rename(&mut self, task: TaskIndex, comm: &[u8]) {
        let Some(version) = self.version(self.states[task.0 as usize].version).copied() else {
            return;
        };
        let cut = &comm[..comm.len().min(16)];
        if version.comm() != cut {
            let version = self.add_version(task, version.tid, cut, version.prio);
            self.states[task.0 as usize].version = version;
        }
    }

    pub fn find(&self, tid: i32, cpu: u32) -> Option<TaskIndex> {
        self.by_tid.get(&key(tid, cpu)).copied()
    }

    /// Whether a thread, as it was seen last, only passes work on.
    pub fn passes(&self, tid: i32, cpu: u32) -> bool {
        let seen = self.find(tid, cpu);
        let seen = seen.map(|task| self.states[task.0 as usize].version);
        let seen = seen.and_then(|version| self.version(version));
        seen.is_some_and(|version| version.passes)
    }

    /// The moments of a task in time order; none for one never seen.
    pub fn log(&self, tid: i32, cpu: u32) -> &[Moment] {
        self.find(tid, cpu)
            .map_or(&[], |task| self.states[task.0 as usize].log.as_slice())
    }

    /// Events say to which process a thread belongs, or that it is a program's and not the
    /// kernel's.
    pub fn belongs(&mut self, tid: i32, belongs: Belongs) {
        if tid <= 0 || self.belongs.get(&tid) == Some(&belongs) {
            return;
        }
        self.belongs.insert(tid, belongs);
        self.may_be_meant(tid);
    }

    /// Tasks come, and become other programs.
    pub fn life(&mut self, life: Life, event: &EventView<'_>) {
        self.programs.life(life, event);
        if let Life::Fork { child_tid, .. } = life {
            // Only forks of those that are recorded are.
            self.is_recorded(event.i64(child_tid) as i32);
        }
    }

    /// The state dump says which program a process runs.
    pub fn program_said(&mut self, dump: Dump, event: &EventView<'_>) {
        let said = self.programs.dump(dump, event);
        let Some(pid) = said.filter(|_| self.filter.names_processes()) else {
            return;
        };
        // Of its first thread nothing else may have said whose it is.
        let is_other =
            |(tid, belongs): &(&i32, &Belongs)| **tid != pid && belongs.pid == Some(Tid(pid));
        let others = self.belongs.iter().filter(is_other).map(|(tid, _)| *tid);
        let tids: Vec<i32> = others.chain([pid]).collect();
        tids.into_iter().for_each(|tid| self.may_be_meant(tid));
    }

    /// What is known of a task has changed.
    fn may_be_meant(&mut self, tid: i32) {
        let Some(task) = self.find(tid, 0) else {
            return;
        };
        // From here on it may be meant, or no longer.
        if let Some(known) = self.version(self.states[task.0 as usize].version).copied() {
            let version = self.add_version(task, known.tid, known.comm(), known.prio);
            self.states[task.0 as usize].version = version;
        }
    }

    /// The watch saw whether a task is a thread of the kernel's.
    pub fn is_of_kernel(&mut self, tid: i32, is_kernels: bool) {
        let known = self.belongs.get(&tid).copied().unwrap_or_default();
        self.belongs(
            tid,
            Belongs {
                is_program: !is_kernels,
                is_kernels,
                ..known
            },
        );
    }

    /// A task that passes for one of the kernel's threads by its name runs code of its own; whether
    /// that is news.
    pub fn is_program_after_all(&mut self, task: TaskIndex) -> bool {
        let version = self.version(self.states[task.0 as usize].version).copied();
        let Some(version) = version.filter(|version| version.passes) else {
            return false;
        };
        let known = self.belongs.get(&version.tid.0).copied();
        let known = known.unwrap_or_default();
        if known.is_kernels {
            // A switch to somebody else was not recorded.
            return false;
        }
        self.belongs(version.tid.0, known.with_program());
        true
    }

    /// Whether events said, at any time, that a task runs a program.
    pub fn is_program(&self, tid: Tid) -> bool {
        let belongs = self.belongs.get(&tid.0);
        belongs.is_some_and(|belongs| belongs.is_program)
    }

    /// Whether a task passes for one of the kernel's own threads.
    pub fn is_kernels(&self, version: VersionId) -> bool {
        let version = self.version(version);
        version.is_some_and(|version| self.is_kernels_name(version.comm(), version.tid))
    }

    /// The same of a task of which only this is known.
    pub fn is_kernels_task(&self, task: &TaskRef) -> bool {
        self.is_kernels_name(task.comm.as_bytes(), task.tid)
    }

    fn is_kernels_name(&self, comm: &[u8], tid: Tid) -> bool {
        event::kernel_threads::is_kernels_name(comm) && !self.is_program(tid)
    }

    /// Whether it is a thread of the stop class.
    pub fn is_stop(&self, version: &Version) -> bool {
        version.stop && !self.is_program(version.tid)
    }

    /// The process of a thread, where an event said it.
    pub fn process_of(&self, tid: i32) -> Option<Tid> {
        self.belongs.get(&tid)?.pid
    }

    /// All that were seen, once for each name and priority.
    pub fn known(&self) -> impl Iterator<Item = TaskRef> {
        self.versions.iter().map(Version::task_ref)
    }

    /// What the first thread of a thread's process is called, where events said it.
    pub fn leader_of(&self, tid: i32) -> Option<&[u8]> {
        let pid = self.process_of(tid)?;
        let said = || self.belongs.get(&pid.0).map(Belongs::comm);
        let seen = self.find(pid.0, 0);
        let seen = seen.map(|task| self.states[task.0 as usize].version);
        let seen = seen.and_then(|version| self.version(version));
        seen.map(Version::comm).or_else(said)
    }

    /// Whether the question means a task of which only this is known.
    pub fn means(&self, task: &TaskRef) -> bool {
        let named = self.named(task.tid, task.comm.as_bytes(), task.prio);
        self.filter.matches(&named)
    }

    /// What is known of a task.
    fn named<'a>(&'a self, tid: Tid, comm: &'a [u8], prio: Prio) -> NamedTask<'a> {
        let belongs = self.belongs.get(&tid.0).copied().unwrap_or_default();
        let leader = self.leader_of(tid.0);
        NamedTask {
            tid,
            comm,
            prio: Some(prio),
            pid: belongs.pid,
            leader,
            program: self.programs.of(belongs.pid.unwrap_or(tid).0),
            is_program: belongs.is_program,
        }
    }

    /// Whether a task that is called `comm` from here on worked under a name that was asked for.
    /// One that has done no work yet had its maker's name.
    fn was_wanted(&self, task: TaskIndex, comm: &[u8]) -> bool {
        let state = &self.states[task.0 as usize];
        let before = self.version(state.version);
        before.is_some_and(|before| {
            let is_renamed = before.comm() != comm && state.worked_ns.is_some();
            before.was_wanted || before.wanted && is_renamed
        })
    }

    /// Another program is no thread that is called otherwise.
    pub fn runs_another(&mut self, task: TaskIndex) {
        let version = self.states[task.0 as usize].version;
        if let Some(version) = self.versions.get_mut(version.0 as usize) {
            version.was_wanted = false;
        }
    }

    fn add_version(&mut self, of: TaskIndex, tid: Tid, comm: &[u8], prio: Prio) -> VersionId {
        let task = self.named(tid, comm, prio);
        let (wanted, passes) = (self.filter.matches(&task), task.passes_work_on());
        // Of another one nobody knows when it had a CPU, and when it slept.
        let wanted = wanted
            && self
                .recorded
                .as_ref()
                .is_none_or(|all| all.contains(&tid.0));
        let was_wanted = !wanted && self.was_wanted(of, comm);
        let stop = passes && is_stop_class(comm) && prio.0 <= 0;
        let mut bytes = [0; 16];
        bytes[..comm.len()].copy_from_slice(comm);
        self.versions.push(Version {
            tid,
            prio,
            comm: bytes,
            comm_len: comm.len() as u8, // at most 16
            wanted,
            was_wanted,
            passes,
            stop,
            came: None,
            thread: self.states[of.0 as usize].thread,
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
