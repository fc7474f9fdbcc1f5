//! The records of `bpf/event.h` as Rust sees them: same names, same order, same bytes.
//!
//! Invariant: plain integers and arrays of them, so that every bit pattern is a value; padding is
//! spelt out. `tests/layout.rs` compares each offset with what a C compiler says of the header.

#![allow(missing_docs, reason = "bpf/event.h documents every field once")]

pub use event::evidence::raw::{COMM_LENGTH, STACK_MAX, Stack, Task};

/// `RTS_ABI_VERSION`.
pub const ABI_VERSION: u32 = 11;
pub const STEPS_MAX: usize = 16;
pub const IRQS_MAX: usize = 8;
pub const TIDS_MAX: usize = 64;
pub const PATTERNS_MAX: usize = 8;
pub const GROUPS_MAX: usize = 1024;
pub const GROUP_BYTES: usize = 128;
pub const GROUP_TAIL_BYTES: usize = 32;
pub const CPU_WORDS: usize = 16;
pub const EVIDENCE_SLOTS: usize = 512;
pub const EVIDENCE_WORDS: usize = 48;
pub const PHASE_THREADS_MAX: usize = 1024;
pub const GAPS_MAX: usize = 8;
pub const SUB_BITS: u32 = 4;
pub const OCTAVES_MAX: u32 = 41;
pub const BUCKETS_MAX: usize = ((OCTAVES_MAX - SUB_BITS + 1) << SUB_BITS) as usize;
pub const PROGRAMS_MAX: usize = 13;

pub const CHAIN_STALE: u32 = 1;
pub const CHAIN_REPAIRED: u32 = 2;
pub const CHAIN_UNSEEN: u32 = 4;
pub const CHAIN_NEAR: u32 = 8;
pub const CHAIN_STRANGER: u32 = 16;
pub const BESIDE_NOBODY: u8 = 0;
pub const BESIDE_WOKEN: u8 = 1;
pub const BESIDE_ALL: u8 = 2;
pub const TARGET_ALL: u8 = 0;
pub const TARGET_REAL_TIME: u8 = 1;
pub const TARGET_FLAGGED: u8 = 2;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub time_ns: u64,
    pub cpu: u32,
    pub id: i32,
    pub prio: i32,
    pub kind: u8,
    pub padding: [u8; 3],
    pub comm: [u8; COMM_LENGTH],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    pub id: u64,
    pub origin_ns: u64,
    pub end_ns: u64,
    pub target: Task,
    pub culprit: Task,
    pub end_kind: u32,
    pub preemptions: u32,
    pub overflow: u32,
    pub flags: u32,
    pub steps_length: u32,
    pub cost_ns: u32,
    pub steps: [Step; STEPS_MAX],
    pub waker_stack: Stack,
    pub wakee_stack: Stack,
    pub culprit_stack: Stack,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Late {
    pub origin_ns: u64,
    pub began_ns: u64,
    pub end_ns: u64,
    pub target: Task,
    pub culprit: Task,
    pub end_kind: u32,
    pub preemptions: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Cycles {
    pub task: Task,
    pub cycles: u64,
    pub sleeps: u64,
    pub over: u64,
    pub worst_begin_ns: u64,
    pub worst_end_ns: u64,
    pub gaps_length: u32,
    pub by_others: u32,
    pub gaps_us: [u32; GAPS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    pub sequence: u64,
    pub time_ns: u64,
    pub kind: u8,
    pub padding: [u8; 7],
    /// Of its kind: `event::evidence` declares them.
    pub words: [u64; EVIDENCE_WORDS],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EvidenceRing {
    pub head: u64,
    pub padding: [u64; 7],
    pub slots: [Evidence; EVIDENCE_SLOTS],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    pub samples: u64,
    pub worst_ns: u64,
    pub suppressed: u64,
    pub lost: u64,
    pub stale: u64,
    pub repaired: u64,
    pub untracked: u64,
    pub storage_failures: u64,
    pub dropped: u64,
    pub unseen: u64,
    pub undated: u64,
    pub unplaced: u64,
    pub unmeant: u64,
    pub renamed: u64,
    pub unslept: u64,
    pub start_ups: u64,
    pub overlooked: u64,
    pub buckets: [u64; BUCKETS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub calls: u64,
    pub total_ns: u64,
    pub max_ns: u64,
    pub buckets: [u64; BUCKETS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    pub entry_ns: u64,
    pub wakeup_ns: u64,
    pub switch_ns: u64,
    pub padding: [u64; 5],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    pub accept: [u32; 256],
    pub loops: u32,
    pub r#match: u32,
    pub of_process: u32,
    pub padding: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Prios {
    pub first: i32,
    pub last: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub id: u64,
    pub hierarchy: u32,
    pub padding: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GroupName {
    pub head_length: u8,
    pub tail_length: u8,
    pub last_length: u8,
    pub is_open: u8,
    pub is_whole: u8,
    pub padding: [u8; 3],
    pub head: [u8; GROUP_BYTES],
    pub tail: [u8; GROUP_TAIL_BYTES],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub threshold_ns: u64,
    pub rate_limit_ns: u64,
    pub hits_max: u64,
    pub waiting_ns: u64,
    pub evidence_floor_ns: u64,
    pub window_ns: u64,
    pub slack_floor_ns: u64,
    pub steal_offset: i64,
    pub irq_regs_offset: i64,
    pub rq_offset: i64,
    pub prio_max: i32,
    pub softirq: i32,
    pub irqs_length: u32,
    pub irqs: [i32; IRQS_MAX],
    pub tids_length: u32,
    pub tids: [i32; TIDS_MAX],
    pub pids_length: u32,
    pub pids: [i32; TIDS_MAX],
    pub prios_length: u32,
    pub prios: [Prios; PATTERNS_MAX],
    pub namespaces_length: u32,
    pub namespaces: [u32; PATTERNS_MAX],
    pub family: i32,
    pub levels_up: u32,
    pub group_names_length: u32,
    pub patterns_length: u32,
    pub cpus_max: u32,
    pub target_kind: u8,
    pub end_kind: u8,
    pub new_worst_only: u8,
    pub waker_stacks: u8,
    pub profile: u8,
    pub cpus_filtered: u8,
    pub real_time: u8,
    pub notes_late: u8,
    pub groups: u8,
    pub in_namespace: u8,
    pub acts: u8,
    pub softirqs_in_tasks: u8,
    pub family_named: u8,
    pub beside: u8,
    pub padding: [u8; 2],
    pub cpus: [u64; CPU_WORDS],
    pub patterns: [Pattern; PATTERNS_MAX],
    pub group_names: [GroupName; PATTERNS_MAX],
}

/// A record that may be read from, and written as, its bytes.
///
/// # Safety
/// Only for `repr(C)` structures of integers without implicit padding.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($name:ident),*) => { $(
        // SAFETY: repr(C), integers only, padding is named (the layout test checks the size).
        unsafe impl Plain for $name {}
    )* };
}
plain!(
    u32,
    Step,
    Stack,
    Task,
    Hit,
    Late,
    Cycles,
    Evidence,
    EvidenceRing,
    Counters,
    Profile,
    Phases,
    Pattern,
    Prios,
    Group,
    GroupName,
    Config
);

/// The record at the start of `bytes`; none when they are too few.
pub fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    let fits = bytes.len() >= size_of::<T>();
    // SAFETY: the length was checked, and every bit pattern is a value of a plain type.
    fits.then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The bytes of a record.
pub fn bytes<T: Plain>(record: &T) -> &[u8] {
    // SAFETY: a plain type has no implicit padding, so that all its bytes are initialised.
    unsafe { std::slice::from_raw_parts((&raw const *record).cast(), size_of::<T>()) }
}

/// A record with all bytes zero.
pub fn zeroed<T: Plain>() -> T {
    // SAFETY: every bit pattern is a value of a plain type.
    unsafe { std::mem::zeroed() }
}
