//! What an event changed: the words in which the model speaks to the questions.

use std::sync::Arc;

use super::functions::FunctionId;
use super::process::ProcId;
use super::run::Holder;
use super::syscalls::Request;
use super::waker::{CpuWhat, Waker};
use crate::bind::{FutexCommand, Pause};

/// A change of the kernel's state. Instants are nanoseconds of the wall clock, like `now_ns` of
/// the model. Nothing of one is dropped: then it costs nothing where nobody is told of it.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Another task runs.
    Switch {
        /// The CPU.
        cpu: u32,
        /// Who leaves the CPU.
        prev: ProcId,
        /// It stays on the run queue.
        prev_runnable: bool,
        /// Why it leaves.
        pause: Pause,
        /// Its name, as the event says it.
        prev_comm: &'a [u8],
        /// Who is scheduled in.
        next: ProcId,
        /// When the next task was woken, if it was since it ran last.
        woken_ns: Option<i64>,
        /// Who woke it.
        waker: Option<ProcId>,
        /// Since when the next task waited for a CPU, if it was seen to.
        waited_since_ns: Option<i64>,
        /// It may have run meanwhile where nothing was recorded.
        doubtful: bool,
    },
    /// A task waits for something no more.
    Woken {
        /// The task.
        process: ProcId,
        /// What woke it.
        by: Waker,
        /// Since when it waited, if it was seen to.
        blocked_since_ns: Option<i64>,
    },
    /// A task is scheduled in: by a switch that was recorded, or by one that was inferred.
    ScheduledIn {
        /// The CPU.
        cpu: u32,
        /// The task.
        process: ProcId,
        /// When; not later than now.
        at_ns: i64,
        /// When it was woken, if it was since it ran last.
        woken_ns: Option<i64>,
        /// Who woke it.
        waker: Option<ProcId>,
        /// Since when it waited for a CPU, if it was seen to.
        waited_since_ns: Option<i64>,
        /// Nobody knows how long it waited: events were lost meanwhile, or the switch was not
        /// recorded.
        lossy: bool,
        /// The switch was not recorded: it was scheduled in at `at_ns` at the earliest.
        inferred: bool,
        /// Between which instants it was scheduled in, where only the switch was not recorded.
        within_ns: Option<(i64, i64)>,
        /// It was moved while it waited, and whether it ran before is not certain yet:
        /// [`Change::Settled`] tells.
        open: bool,
    },
    /// Whether a wait is known that was open when its task was scheduled in.
    Settled {
        /// The task.
        process: ProcId,
        /// When it was scheduled in.
        at_ns: i64,
        /// Since when it waited for a CPU, if it was seen to.
        waited_since_ns: Option<i64>,
        /// Nobody knows how long it waited.
        lossy: bool,
    },
    /// A task has had a CPU since then, at the earliest, though no switch says so.
    Inferred {
        /// The CPU.
        cpu: u32,
        /// The task.
        process: ProcId,
        /// Since when.
        from_ns: i64,
    },
    /// The tracer says with an event that this task has the CPU now, where it did not seem to.
    Found {
        /// The CPU.
        cpu: u32,
        /// The task, or the idle task.
        process: ProcId,
    },
    /// A task is about to sleep, and slept before for a word of its program's as if for a lock,
    /// which it did not let go of since: it may have slept there until its next work.
    NoLock {
        /// The task.
        process: ProcId,
        /// It did: it sleeps for the same word again.
        surely: bool,
    },
    /// A task that waits for a CPU may have run meanwhile: nobody knows for how long it waits.
    Doubted {
        /// The task.
        process: ProcId,
    },
    /// A task that was scheduled in at `at_ns` may have run before, while it seemed to wait.
    DoubtedBefore {
        /// The task.
        process: ProcId,
        /// When it was scheduled in.
        at_ns: i64,
    },
    /// A task that seemed to wait for a CPU has run meanwhile, nobody knows when.
    RanUnseen {
        /// The task.
        process: ProcId,
    },
    /// A task waited for a CPU; told where queues are followed, and no event was lost meanwhile, as
    /// soon as all of it is known who had the CPU, which may be after its end.
    Waited {
        /// The task.
        process: ProcId,
        /// The CPU on which it was scheduled in.
        cpu: u32,
        /// From when.
        since_ns: i64,
        /// Until when.
        until_ns: i64,
        /// Who had its CPU, one after the other, and for how long: together the whole wait. The
        /// begin of one behind many is summed up, see [`super::sum_up`].
        behind: &'a [(Holder, i64)],
    },
    /// Who had a CPU; told when it is over and known.
    Ran {
        /// The CPU.
        cpu: u32,
        /// Who had it.
        holder: Holder,
        /// From when.
        from_ns: i64,
        /// Until when.
        until_ns: i64,
        /// Its begin was not recorded: it had the CPU for so long at most.
        inferred: bool,
    },
    /// The same with handlers and system calls told apart; only told when [`super::Kernel::new`]
    /// was asked to follow.
    Stayed {
        /// The CPU.
        cpu: u32,
        /// What it did.
        what: CpuWhat,
        /// Who had it: handlers ran on their time.
        holder: Holder,
        /// As in [`Change::Ran`].
        inferred: bool,
        /// From when.
        from_ns: i64,
        /// Until when.
        until_ns: i64,
    },
    /// What [`Change::Stayed`] said of a task was a softirq in it, in which it was preempted then.
    WasSoftirq(WasSoftirq),
    /// What a task does is not known from then on, until another event says it: it had a CPU, and
    /// the switch away from it was not recorded.
    Unknown {
        /// The CPU that it had.
        cpu: u32,
        /// The task.
        process: ProcId,
        /// From when.
        from_ns: i64,
    },
    /// A task was woken that had a CPU perhaps, and had none perhaps: then it waited for one,
    /// nobody knows for how long.
    MayHaveWaited {
        /// The task.
        process: ProcId,
        /// The first of these wake-ups.
        since_ns: i64,
        /// By when it had a CPU again, where that is known.
        until_ns: Option<i64>,
        /// How many there were.
        count: u64,
    },
    /// Events were lost: what was under way there is not known any more.
    Lost {
        /// On this CPU; on any when nobody knows.
        cpu: Option<u32>,
        /// From when.
        from_ns: i64,
        /// Until when.
        until_ns: i64,
    },
    /// An event that was asked for happened.
    Matched {
        /// The CPU.
        cpu: u32,
    },
    /// A function was called.
    FunctionEntry {
        /// The thread's id.
        tid: i32,
        /// The function.
        function: FunctionId,
    },
    /// A function returned; which one, when the event says it.
    FunctionExit {
        /// The thread's id.
        tid: i32,
        /// The function.
        function: Option<FunctionId>,
    },
    /// An event carries call stacks: addresses, the innermost first.
    Stacks {
        /// What it is called.
        event: &'a str,
        /// Its thread, where somebody knows it.
        tid: Option<i32>,
        /// The process in whose memory the user's addresses are, where the event says it.
        pid: Option<i32>,
        /// Those of the kernel.
        kernel: &'a [u64],
        /// Those of the program.
        user: &'a [u64],
    },
    /// A task has another priority than it had, on LTTng's scale.
    Prio {
        /// The task.
        process: ProcId,
        /// On LTTng's scale.
        prio: i32,
    },
    /// A task moves to another CPU.
    Migrate {
        /// The task.
        process: ProcId,
        /// The CPU.
        cpu: u32,
    },
    /// An interrupt handler begins.
    IrqEntry {
        /// Its number.
        irq: i64,
        /// Its name.
        name: &'a [u8],
    },
    /// An interrupt handler ended that began at `begin_ns`.
    IrqExit {
        /// The CPU.
        cpu: u32,
        /// Its number.
        irq: i64,
        /// When it began.
        begin_ns: i64,
    },
    /// A softirq handler ended.
    SoftirqExit {
        /// The CPU.
        cpu: u32,
        /// The softirq's vector.
        vec: i64,
        /// When it was raised, if that was seen.
        raised_ns: Option<i64>,
        /// When it began.
        begin_ns: i64,
        /// From when to when it ran: its thread can be preempted in it.
        ran: &'a [(i64, i64)],
    },
    /// A system call begins.
    CallEntry {
        /// The task.
        process: ProcId,
        /// When it is one on a futex: what it does, and the futex's address.
        futex: Option<(FutexCommand, u64)>,
    },
    /// A system call returned.
    CallExit {
        /// The task.
        process: ProcId,
        /// The CPU.
        cpu: u32,
        /// Index into [`super::Kernel::call_name`].
        call: u32,
        /// When it began.
        begin_ns: i64,
        /// What it returned, when the event says it.
        ret: Option<i64>,
    },
    /// A system call returned that had begun before the recording did.
    CallBegunBefore {
        /// The task, where it is known.
        process: Option<ProcId>,
        /// Index into [`super::Kernel::call_name`], where the event says it.
        call: Option<u32>,
        /// It began no later than this; nothing where the events of a CPU have not begun.
        since_ns: Option<i64>,
    },
    /// A system call on files returned.
    RequestExit {
        /// The task.
        process: ProcId,
        /// Who keeps the descriptor.
        owner: ProcId,
        /// The request.
        request: &'a Request,
    },
    /// The owner has a new file descriptor.
    FileOpened {
        /// Who keeps the descriptor.
        owner: ProcId,
        /// The descriptor.
        fd: i64,
    },
    /// It has it no more.
    FileClosed {
        /// Who keeps the descriptor.
        owner: ProcId,
        /// The descriptor.
        fd: i64,
    },
    /// It leads to another name, if the process has it at all.
    FileRenamed {
        /// Who keeps the descriptor.
        owner: ProcId,
        /// The descriptor.
        fd: i64,
    },
    /// A thread turned out to belong to a process.
    Grouped {
        /// The task.
        process: ProcId,
        /// The leader of its thread group.
        leader: ProcId,
    },
    /// A request to a disk is done.
    BlockDone {
        /// The device's number.
        dev: u64,
        /// The disk's name, where it is known.
        disk: Option<&'a Arc<str>>,
        /// The request to the disk.
        block: &'a Block,
    },
    /// A disk's name.
    DiskNamed {
        /// The device's number.
        dev: u64,
        /// Its name.
        name: &'a str,
    },
    /// A network packet left.
    Sent {
        /// The network interface.
        interface: &'a [u8],
        /// How many bytes.
        bytes: u64,
    },
    /// A network packet came in.
    Received {
        /// The network interface.
        interface: &'a [u8],
        /// How many bytes.
        bytes: u64,
    },
    /// A task took a page.
    PageAllocated {
        /// The task.
        process: ProcId,
        /// The CPU.
        cpu: u32,
    },
    /// A task gave a page back.
    PageFreed {
        /// The task.
        process: ProcId,
        /// The CPU.
        cpu: u32,
    },
}

/// What a CPU did in a stretch was a softirq.
#[derive(Clone, Copy, Debug)]
pub struct WasSoftirq {
    /// The CPU.
    pub cpu: u32,
    /// The task.
    pub process: ProcId,
    /// As what it was told.
    pub what: CpuWhat,
    /// From when.
    pub from_ns: i64,
    /// Until when.
    pub until_ns: i64,
}

/// What changes are about: who wants to be told of some alone names their topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Topic {
    /// Who has a CPU, and where nobody knows it.
    Runs,
    /// Wake-ups, and waits for a CPU.
    Waits,
    /// Priorities and migrations.
    Tasks,
    /// What each CPU does, stretch by stretch.
    Stretches,
    /// Handlers of interrupts and softirqs.
    Handlers,
    /// System calls.
    Calls,
    /// Files, disks, network interfaces.
    Requests,
    /// Pages.
    Pages,
    /// Functions, and the call stacks of events.
    Functions,
    /// Events that were asked for.
    Matches,
}

/// A set of topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Topics(u16);

impl Topics {
    /// All.
    pub const ALL: Topics = Topics(u16::MAX);

    /// These.
    pub const fn of(all: &[Topic]) -> Topics {
        let (mut bits, mut place) = (0, 0);
        while place < all.len() {
            bits |= 1 << all[place] as u16;
            place += 1;
        }
        Topics(bits)
    }

    /// Whether this one is among them.
    #[inline]
    pub const fn has(self, topic: Topic) -> bool {
        self.0 & 1 << topic as u16 != 0
    }

    /// These and others.
    pub const fn and(self, others: Topics) -> Topics {
        Topics(self.0 | others.0)
    }
}

impl Change<'_> {
    /// What it is about. Where a change is made this is known beforehand.
    #[inline(always)]
    pub fn topic(&self) -> Topic {
        match self {
            Change::Switch { .. }
            | Change::Inferred { .. }
            | Change::Found { .. }
            | Change::Doubted { .. }
            | Change::DoubtedBefore { .. }
            | Change::NoLock { .. }
            | Change::RanUnseen { .. }
            | Change::Ran { .. }
            | Change::Unknown { .. }
            | Change::MayHaveWaited { .. }
            | Change::Lost { .. } => Topic::Runs,
            Change::Woken { .. }
            | Change::ScheduledIn { .. }
            | Change::Settled { .. }
            | Change::Waited { .. } => Topic::Waits,
            Change::Prio { .. } | Change::Migrate { .. } => Topic::Tasks,
            Change::Stayed { .. } | Change::WasSoftirq(_) => Topic::Stretches,
            Change::IrqEntry { .. } | Change::IrqExit { .. } | Change::SoftirqExit { .. } => {
                Topic::Handlers
            }
            Change::CallEntry { .. } | Change::CallExit { .. } | Change::CallBegunBefore { .. } => {
                Topic::Calls
            }
            Change::RequestExit { .. }
            | Change::FileOpened { .. }
            | Change::FileClosed { .. }
            | Change::FileRenamed { .. }
            | Change::Grouped { .. }
            | Change::BlockDone { .. }
            | Change::DiskNamed { .. }
            | Change::Sent { .. }
            | Change::Received { .. } => Topic::Requests,
            Change::PageAllocated { .. } | Change::PageFreed { .. } => Topic::Pages,
            Change::FunctionEntry { .. } | Change::FunctionExit { .. } | Change::Stacks { .. } => {
                Topic::Functions
            }
            Change::Matched { .. } => Topic::Matches,
        }
    }
}

/// A request to a disk.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// When it began.
    pub begin_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// The thread's id.
    pub tid: i32,
    /// How many sectors.
    pub sectors: u64,
    /// It writes.
    pub write: bool,
}

/// Who is told of changes.
pub trait Sink {
    /// What it is told of; what nobody asks for need not be found out.
    const TOPICS: Topics = Topics::ALL;

    /// The state is that after the change.
    fn change(&mut self, kernel: &super::Kernel, change: &Change<'_>);
}

/// Who is told of changes, as an object: every [`Sink`] is one.
pub trait Told {
    /// See [`Sink::change`].
    fn told(&mut self, kernel: &super::Kernel, change: &Change<'_>);
}

impl<S: Sink> Told for S {
    fn told(&mut self, kernel: &super::Kernel, change: &Change<'_>) {
        self.change(kernel, change);
    }
}

/// Stands between the state and a sink that few ask for. The state's code is there once for each
/// type of sink, tens of kilobytes, and once for all of these.
pub struct Shared<'a>(pub &'a mut dyn Told);

impl Sink for Shared<'_> {
    fn change(&mut self, kernel: &super::Kernel, change: &Change<'_>) {
        self.0.told(kernel, change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_topics_that_were_put_in_and_no_other() {
        let both = Topics::of(&[Topic::Runs]).and(Topics::of(&[Topic::Matches]));
        let check = |topic: Topic, expect: bool| assert_eq!(both.has(topic), expect, "{topic:?}");
        check(Topic::Runs, true);
        check(Topic::Matches, true);
        check(Topic::Waits, false);
        check(Topic::Functions, false);
        assert!(!Topics::default().has(Topic::Runs) && Topics::ALL.has(Topic::Matches));
    }
}
