//! What an event changed: the words in which the model speaks to the questions.

use std::sync::Arc;

use super::functions::FunctionId;
use super::process::ProcId;
use super::syscalls::Request;
use super::waker::{CpuWhat, Waker};
use crate::facts::FutexCommand;

/// A change of the kernel's state. Instants are nanoseconds of the wall clock, like `now_ns` of
/// the model.
#[derive(Debug)]
pub(crate) enum Change<'a> {
    /// Another task runs.
    Switch {
        cpu: u32,
        prev: ProcId,
        /// It stays on the run queue.
        prev_runnable: bool,
        prev_comm: &'a [u8],
        next: ProcId,
        /// When the next task was woken, if it was since it ran last.
        woken_ns: Option<i64>,
        waker: Option<ProcId>,
        /// Since when the next task waited for a CPU, if it was seen to.
        waited_since_ns: Option<i64>,
    },
    /// A task waits for something no more.
    Woken {
        process: ProcId,
        by: Waker,
        /// Since when it waited, if it was seen to.
        blocked_since_ns: Option<i64>,
    },
    /// A CPU does something else now; only told when [`super::Kernel::new`] was asked to follow.
    CpuStayed {
        cpu: u32,
        what: CpuWhat,
        /// The task on it.
        process: Option<ProcId>,
        since_ns: i64,
    },
    /// An event that was asked for happened.
    Matched { cpu: u32 },
    /// A function was called.
    FunctionEntry { tid: i32, function: FunctionId },
    /// A function returned; which one, when the event says it.
    FunctionExit {
        tid: i32,
        function: Option<FunctionId>,
    },
    /// A task has another priority than it had, on LTTng's scale.
    Prio { process: ProcId, prio: i32 },
    /// A task moves to another CPU.
    Migrate { process: ProcId, cpu: u32 },
    /// An interrupt handler begins.
    IrqEntry { irq: i64, name: &'a [u8] },
    /// An interrupt handler ended that began at `begin_ns`.
    IrqExit { cpu: u32, irq: i64, begin_ns: i64 },
    /// A softirq handler ended.
    SoftirqExit {
        cpu: u32,
        vec: i64,
        raised_ns: Option<i64>,
        begin_ns: i64,
    },
    /// A system call begins.
    CallEntry {
        process: ProcId,
        /// When it is one on a futex: what it does, and the futex's address.
        futex: Option<(FutexCommand, u64)>,
    },
    /// A system call returned.
    CallExit {
        process: ProcId,
        cpu: u32,
        /// Index into [`super::Kernel::call_name`].
        call: u32,
        begin_ns: i64,
        /// What it returned, when the event says it.
        ret: Option<i64>,
    },
    /// A system call on files returned.
    RequestExit {
        process: ProcId,
        owner: ProcId,
        request: &'a Request,
    },
    /// The owner has a new file descriptor.
    FileOpened { owner: ProcId, fd: i64 },
    /// It has it no more.
    FileClosed { owner: ProcId, fd: i64 },
    /// It leads to another name, if the process has it at all.
    FileRenamed { owner: ProcId, fd: i64 },
    /// A thread turned out to belong to a process.
    Grouped { process: ProcId, leader: ProcId },
    /// A request to a disk is done.
    BlockDone {
        dev: u64,
        disk: Option<Arc<str>>,
        block: &'a Block,
    },
    /// A disk's name.
    DiskNamed { dev: u64, name: &'a str },
    /// A network packet left.
    Sent { interface: &'a [u8], bytes: u64 },
    /// A network packet came in.
    Received { interface: &'a [u8], bytes: u64 },
    /// A task took a page.
    PageAllocated { process: ProcId, cpu: u32 },
    /// A task gave a page back.
    PageFreed { process: ProcId, cpu: u32 },
}

/// A request to a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub tid: i32,
    pub sectors: u64,
    pub write: bool,
}

/// Who is told of changes.
pub(crate) trait Sink {
    /// The state is that after the change.
    fn change(&mut self, kernel: &super::Kernel, change: &Change<'_>);
}
