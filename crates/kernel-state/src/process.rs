//! Threads as the kernel's events show them, with the files of their processes.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use super::handlers::Softirq;
use super::syscalls::Call;
use super::tid_map::TidMap;
use super::waker::Waker;

/// A thread of the model: its number stays when its name changes, and is not given again when a
/// fork takes over its thread id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcId(pub u32);

/// A thread's name, at most so many bytes; the kernel's own have 15.
const COMM_BYTES: usize = 31;

/// The name of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Comm {
    len: u8,
    bytes: [u8; COMM_BYTES],
}

impl Comm {
    /// A name; what is too long is cut.
    #[inline]
    pub fn new(name: &[u8]) -> Comm {
        let len = name.len().min(COMM_BYTES);
        let mut bytes = [0; COMM_BYTES];
        bytes[..len].copy_from_slice(&name[..len]);
        Comm {
            len: len as u8,
            bytes,
        }
    }

    /// Changes it to a name, which it mostly is already: then nothing is written.
    #[inline]
    pub fn set(&mut self, name: &[u8]) {
        if !is_same(self.bytes(), name) {
            *self = Comm::new(name);
        }
    }

    /// Its first bytes, and zeros behind a shorter one: faster to compare than [`Comm::bytes`].
    #[inline]
    pub fn head<const N: usize>(&self) -> (&[u8; N], usize) {
        const { assert!(N <= COMM_BYTES) };
        let head = self.bytes.first_chunk();
        (head.unwrap_or(&[0; N]), usize::from(self.len).min(N))
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The name as text that is fit to show.
    pub fn text(&self) -> String {
        event::plain_text(self.bytes())
    }
}

/// Whether two names are the same. Each event of a switch asks it twice, and most names are so
/// short that a call for it costs more than it: two words that overlap hold all of them.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && by_words::<8>(one, other)
            .or_else(|| by_words::<4>(one, other))
            .unwrap_or_else(|| one == other)
}

/// The same of two that are as long as one word of so many bytes, or as two.
#[inline]
fn by_words<const N: usize>(one: &[u8], other: &[u8]) -> Option<bool> {
    let is_first = one.first_chunk::<N>()? == other.first_chunk::<N>()?;
    let fits = one.len() <= 2 * N;
    fits.then(|| is_first && one.last_chunk::<N>() == other.last_chunk::<N>())
}

impl Default for Comm {
    fn default() -> Self {
        Comm::new(b"")
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

/// What a file descriptor leads to, as far as the system calls on it tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// Nothing was seen that tells.
    #[default]
    Unknown,
    /// It was opened by a path.
    Disk,
    /// A socket.
    Net,
    /// A packet left while it was written.
    MaybeNet,
}

/// An open file descriptor.
#[derive(Clone, Debug)]
pub struct File {
    /// Path or address.
    pub name: Arc<str>,
    pub kind: FileKind,
    /// It is closed by an exec.
    pub cloexec: bool,
}

/// A task came on a run queue. However often it is woken while it waits, it stays there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The run queue's CPU.
    pub cpu: u32,
    /// When.
    pub at_ns: i64,
    /// It is on the way: the event was that of the waker.
    pub under_way: bool,
}

/// A thread.
#[derive(Debug, Default)]
pub struct Process {
    /// The thread's id.
    pub tid: i32,
    /// The thread group, when something said it.
    pub pid: Option<i32>,
    /// Its name.
    pub comm: Comm,
    /// What its first wake-up called it, when that was the first that was seen of it. Not its name
    /// in reports: there it gets one, as in lttng-analyses, when it runs.
    pub woken_as: Comm,
    /// Since when its events are recorded, in a trace of some tasks alone.
    pub(crate) tracked_ns: Option<i64>,
    /// The path of its control group of the second version, where events said it.
    pub(crate) group: Option<Arc<[u8]>>,
    /// It has left its CPU for good: its id is that of another one when it is seen again.
    pub(crate) is_over: bool,
    /// On LTTng's scale.
    pub prio: Option<i32>,
    /// By number, in the order of their opening. Threads keep theirs with the group's leader.
    pub files: IndexMap<i64, File>,
    /// The system call that it entered, and was not seen to return from.
    pub call: Option<Call>,
    /// What it took of its own SCHED_DEADLINE runtime.
    pub(crate) runtime: Runtime,
    /// It was seen to enter a call, or was made by one that was seen.
    pub(crate) has_called: bool,
    /// Since when it is in a page fault that a program serves.
    pub(crate) fault_ns: Option<i64>,
    /// The softirq in which it was preempted.
    pub(crate) softirq: Option<Softirq>,
    /// When it was woken, until it runs.
    pub woken_ns: Option<i64>,
    /// It was seen to sleep until then, and no event was lost meanwhile.
    pub slept: bool,
    /// The second event of that wake-up was seen: it is on a run queue.
    pub is_delivered: bool,
    /// Who woke it.
    pub waker: Option<i32>,
    /// Since when it waits for something, as far as events say; the idle task never does.
    pub blocked_since_ns: Option<i64>,
    /// The CPU on which it was last seen.
    pub seen_on: u32,
    /// The CPU that it left last.
    pub left_cpu: u32,
    /// Since when it waits for a CPU.
    pub runnable_since_ns: Option<i64>,
    /// On which CPU's run queue it came last, and when, while it waits for a CPU.
    pub arrived: Option<Arrival>,
    /// Where it waits may lie outside of what was recorded: it may have run there unseen.
    pub doubtful: bool,
    /// It was moved while it waited, since its last wait.
    pub moved: bool,
    /// On whose run queue it waits, where queues are followed.
    pub queued: Option<Queued>,
    /// Woken while it still ran: it will not block, or will be woken at once when it does.
    pub pending: Option<Pending>,
}

/// What a thread took of the runtime that SCHED_DEADLINE gives it in each of its periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// In this period, as far as it is known that it is one.
    pub used_ns: i64,
    /// The most after which it gave up the rest.
    pub given_up_ns: i64,
    /// It has it only since it came on its CPU: nobody knows how much it used of it there.
    pub is_new: bool,
}

impl Process {
    /// The system call that it is in, unless it may have returned unseen.
    #[inline]
    pub fn known_call(&self) -> Option<&Call> {
        self.call.as_ref().filter(|call| !call.doubtful)
    }

    /// The lock of its program's for which it waits when it sleeps now.
    #[inline]
    pub fn lock(&self) -> Option<u64> {
        self.known_call()?.lock
    }

    /// Whether it sleeps for a word of its program's when it sleeps now; not where the trace
    /// does not tell when such calls return.
    #[inline]
    pub fn waits_in_futex(&self) -> bool {
        self.known_call().is_some_and(|call| call.in_futex)
    }
}

/// The run queue that a task is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Of this CPU.
    pub cpu: u32,
    /// The place of its wait among all.
    pub wait: usize,
}

/// A wake-up of a task that had not left its CPU yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// When.
    pub at_ns: i64,
    /// What woke it.
    pub by: Waker,
    /// The thread that had the waker's CPU.
    pub waker: Option<i32>,
    /// When it left its CPU to sleep, it was no more on its way there since that wake-up.
    pub went_on: bool,
}

/// A wake-up that finds a task on its way to sleep comes so long before its switch at most: from
/// its decision on it takes no interrupt, and waits for a spinning lock at most.
pub const ON_ITS_WAY_NS_MAX: i64 = 1_000_000;

impl Pending {
    /// A wake-up of a task that has a CPU.
    pub fn new(at_ns: i64, by: Waker, waker: Option<i32>) -> Pending {
        Pending {
            at_ns,
            by,
            waker,
            went_on: false,
        }
    }

    /// Its task leaves its CPU to sleep at `left_ns`.
    pub fn left(self, left_ns: i64) -> Pending {
        let went_on = left_ns.saturating_sub(self.at_ns) > ON_ITS_WAY_NS_MAX;
        Pending { went_on, ..self }
    }
}

/// All threads that were seen.
#[derive(Debug, Default)]
pub struct Processes {
    all: Vec<Process>,
    by_tid: TidMap,
}

impl Processes {
    #[inline]
    pub fn find(&self, tid: i32) -> Option<ProcId> {
        self.by_tid.get(tid).map(ProcId)
    }

    #[inline]
    pub fn get(&self, id: ProcId) -> &Process {
        &self.all[id.0 as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, id: ProcId) -> &mut Process {
        &mut self.all[id.0 as usize]
    }

    /// All, in the order in which they were first seen; some may be no more.
    pub fn iter(&self) -> impl Iterator<Item = (ProcId, &Process)> {
        let all = self.all.iter().enumerate();
        all.map(|(place, process)| (ProcId(place as u32), process))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// All, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        self.all.iter_mut()
    }

    /// The thread of this id that has not ended.
    #[inline]
    pub fn alive(&self, tid: i32) -> Option<ProcId> {
        self.find(tid).filter(|id| !self.get(*id).is_over)
    }

    /// The thread of this id that is woken, for the first time if it `is_new`. One that ends may
    /// wait for a lock on its way, and so is not over.
    #[inline]
    pub fn woken(&mut self, tid: i32, is_new: bool) -> Option<ProcId> {
        if is_new {
            return self.alive(tid);
        }
        let id = self.find(tid)?;
        self.get_mut(id).is_over = false;
        Some(id)
    }

    /// The thread, a new one when it was not seen before, or has ended.
    #[inline]
    pub fn find_or_add(&mut self, tid: i32) -> ProcId {
        match self.alive(tid) {
            Some(id) => id,
            None => self.add(Process {
                tid,
                pid: (tid == 0).then_some(0),
                ..Process::default()
            }),
        }
    }

    /// A new thread; one that had its id before is left without files, under its old number.
    pub fn add(&mut self, process: Process) -> ProcId {
        let id = ProcId(self.all.len() as u32);
        if let Some(before) = self.by_tid.insert(process.tid, id.0) {
            let before = &mut self.all[before as usize];
            before.files = IndexMap::new();
            before.call = None;
        }
        self.all.push(process);
        id
    }

    /// The thread that keeps the files of `id`: the leader of its group, where that is known.
    pub fn owner(&self, id: ProcId) -> ProcId {
        let process = self.get(id);
        match process.pid.filter(|pid| *pid != process.tid) {
            Some(pid) => self.find(pid).unwrap_or(id),
            None => id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_when_each_of_its_bytes_is() {
        for length in 0..40 {
            let name: Vec<u8> = (1..=length).collect();
            assert!(is_same(&name, &name.clone()), "{length}");
            assert!(!is_same(&name, &[&name[..], b"x"].concat()), "{length}");
            for place in 0..name.len() {
                let mut other = name.clone();
                other[place] = b'x';
                assert!(!is_same(&name, &other), "{length} {place}");
            }
        }
    }

    #[test]
    fn the_head_of_a_name_is_as_long_as_the_name_at_most() {
        let check = |name: &[u8], expect: (&[u8; 4], usize)| {
            assert_eq!(Comm::new(name).head(), expect);
        };
        check(b"", (b"\0\0\0\0", 0));
        check(b"sh", (b"sh\0\0", 2));
        check(b"bash", (b"bash", 4));
        check(b"hackbench", (b"hack", 4));
    }
}
