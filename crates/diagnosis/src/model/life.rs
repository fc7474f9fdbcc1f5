//! The pass over the events: tasks come, become other programs, and end.

use event::Tid;
use trace::EventView;

use super::build::Builder;
use super::chain::{NewNode, NodeId};
use super::tasks::{Belongs, Run, TaskIndex};
use super::wake::By;
use crate::StepKind;
use kernel_state::bind::{CLONE_THREAD, Dump, Life};

/// Whom a thread wakes in this time before its exit is said, and before anybody else, waited for
/// its end: the kernel says it a little later.
const EXIT_WAKE_NS_MAX: i64 = 1_000_000;

/// The parent of the kernel's threads.
const KTHREADD: i64 = 2;
/// The kind of a program's thread in a state dump.
const PROGRAM: i64 = 0;
/// From a task's decision to sleep to the switch it takes no longer.
pub(crate) const DECISION_NS_MAX: i64 = 100_000;

impl Builder {
    pub(super) fn life(&mut self, life: Life, cpu: u32, now_ns: i64, event: &EventView<'_>) {
        self.tasks.life(life, event);
        match life {
            Life::Fork {
                parent,
                child_tid,
                child_pid: Some(child_pid),
                child_comm,
                ..
            } => {
                let (tid, pid) = (event.i64(child_tid) as i32, event.i64(child_pid) as i32);
                let child = Belongs::to(pid, event.text(child_comm));
                let child = match event.i64(parent) {
                    KTHREADD => child.with_kernel(),
                    _ => child.with_program(),
                };
                self.tasks.belongs(tid, child);
            }
            Life::Fork { .. } => {}
            Life::New { tid, flags } => {
                let maker = self.cpu(cpu).current;
                let maker = maker.and_then(|task| {
                    let version = self.tasks.states[task.0 as usize].version;
                    self.tasks.version(version).map(|version| version.tid)
                });
                if let Some(Tid(maker)) = maker.filter(|tid| !tid.is_idle())
                    && event.u64(flags) & CLONE_THREAD != 0
                {
                    let pid = self.tasks.process_of(maker).map_or(maker, |pid| pid.0);
                    let tid = event.i64(tid) as i32;
                    self.tasks.belongs(tid, Belongs::to(pid, b""));
                }
            }
            Life::Exec(fields) => {
                // Whichever thread it is, it is now the only one of its process.
                let tid = fields.tid(event);
                self.tasks
                    .belongs(tid, Belongs::to(tid, b"").with_program());
                let task = self.tasks.find(tid, cpu);
                if let (Some(task), Some(comm)) = (task, fields.comm(event)) {
                    self.tasks.rename(task, comm);
                    self.tasks.runs_another(task);
                    self.mark(cpu, now_ns, false);
                }
            }
            Life::Rename { tid, comm } => {
                if let Some(task) = self.tasks.find(event.i64(tid) as i32, cpu) {
                    self.tasks.rename(task, event.text(comm));
                    if self.cpu(cpu).current == Some(task) {
                        self.mark(cpu, now_ns, false);
                    }
                }
            }
            Life::Exit { tid, last } => {
                self.left_its_groups(event.i64(tid) as i32);
                if let Some(task) = self.tasks.find(event.i64(tid) as i32, cpu) {
                    self.ended(task, now_ns, last);
                }
            }
        }
    }

    /// What was there before the first event.
    pub(super) fn state_dump(&mut self, dump: Dump, event: &EventView<'_>) {
        if let Dump::Quota { begin, kept, tid } = dump {
            self.quota((begin, kept, tid), (event.time().as_ns(), event));
        }
        if let Dump::Limits(fields) = dump {
            self.limits(&fields, event);
        }
        if let Dump::Tracked { tid } = dump {
            self.tasks.is_recorded(event.i64(tid) as i32);
        }
        self.tasks.program_said(dump, event);
        let Dump::Process {
            tid,
            pid,
            name,
            kind,
            ..
        } = dump
        else {
            return;
        };
        let (tid, pid) = (event.i64(tid) as i32, event.i64(pid) as i32);
        let task = Belongs::to(pid, event.text(name));
        let is_program = kind.is_some_and(|kind| event.i64(kind) == PROGRAM);
        let task = if is_program {
            task.with_program()
        } else {
            task
        };
        self.tasks.belongs(tid, task);
    }

    /// Whether the task that has the CPU, and no handler, is on its way out.
    pub(super) fn ends(&self, cpu: u32) -> bool {
        let state = &self.cpus[cpu as usize];
        let task = state
            .current
            .map(|task| &self.tasks.states[task.0 as usize]);
        state.frames.is_empty() && task.is_some_and(|task| task.ends && task.softirqs.is_empty())
    }

    /// A task that ends does nothing more for anybody: a long sleep until it is gone is no
    /// lateness.
    fn ended(&mut self, task: TaskIndex, now_ns: i64, last: bool) {
        let state = self.tasks.state(task);
        state.ends = matches!(state.run, Run::On(_));
        let Some((wakee, woken_ns)) = state.woke.take() else {
            return;
        };
        if last || now_ns - woken_ns > EXIT_WAKE_NS_MAX {
            return;
        }
        let (run, begun_ns) = (
            self.tasks.state(wakee).run,
            self.tasks.state(wakee).woken_ns,
        );
        let chain = self.tasks.state(wakee).chain;
        if let Some(node) = self.arena.get(chain).copied()
            && run == Run::Woken
            && begun_ns == woken_ns
        {
            let step = NewNode {
                time_ns: node.time_ns,
                kind: StepKind::Waking,
                cpu: u32::from(node.cpu),
                id: node.id,
                version: node.version,
            };
            let alone = self.arena.add(NodeId::NONE, step);
            self.tasks.state(wakee).chain = alone;
        }
    }

    /// The chain `woken` that wakes a task by `context`, from where the task waits for it: its own
    /// last block. A timer's expiry is a release time whatever the task did, and a thread that
    /// passes work on is its own queue.
    pub(super) fn wait_since_block(
        &mut self,
        task: TaskIndex,
        context: NodeId,
        woken: NodeId,
    ) -> NodeId {
        let state = &self.tasks.states[task.0 as usize];
        let since_ns = state.blocked_ns;
        let version = self.tasks.version(state.version);
        if version.is_some_and(|version| version.passes) || self.arena.released_by_timer(context) {
            return woken;
        }
        self.arena.wait_since(woken, since_ns)
    }

    /// The same for a task that was woken on its way to sleep. It had decided to before it was
    /// woken, but not long before: of what led to that, as much counts as fits there.
    pub(super) fn wait_since_late_block(&mut self, task: TaskIndex, now_ns: i64) {
        let pending = self.tasks.states[task.0 as usize].chain;
        let woken = self.arena.get(pending);
        let Some((origin_ns, woken_ns)) = woken.map(|node| (node.origin_ns, node.time_ns)) else {
            return;
        };
        if now_ns - origin_ns > DECISION_NS_MAX {
            self.tasks.state(task).blocked_ns = woken_ns;
            self.tasks.state(task).chain = self.wait_since_block(task, pending, pending);
            self.tasks.state(task).blocked_ns = now_ns;
        }
    }

    /// The task on the CPU, and no handler, woke somebody.
    pub(super) fn note_woken(&mut self, cpu: u32, now_ns: i64, wakee: TaskIndex, by: By) {
        let state = &self.cpus[cpu as usize];
        if let Some(waker) = state.current
            && by != By::Hard
            && state.frames.is_empty()
        {
            self.tasks.state(waker).woke = Some((wakee, now_ns));
        }
    }
}
