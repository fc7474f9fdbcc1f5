//! Which lock a late task waited for: of the kernel's own ones, that of an address space has a name
//! and a remedy of its own.

use event::evidence::{Blocked, Frame, Stack};
use event::{Cpu, Duration, Instant};

use crate::finding::{Culprit, LateActivation};
use crate::model::{Model, MomentKind};
use crate::term::TermKind;

/// How the functions begin that take a lock for reading or writing (kernel names).
const TAKERS: [&str; 13] = [
    "__schedule",
    "schedule",
    "rwsem_",
    "__down_",
    "down_",
    "__rwsem_",
    "rwbase_",
    "__rwbase_",
    "rt_mutex_",
    "__rt_mutex_",
    "__rt_down_",
    "rtlock_",
    "mmap_",
];

/// Who takes the lock of an address space, by how their names begin (kernel names): page faults,
/// the calls that change what is mapped, those that read it, fork and exit.
const OF_ADDRESS_SPACE: [&str; 36] = [
    "lock_mm_and_find_vma",
    "do_user_addr_fault",
    "exc_page_fault",
    "do_page_fault",
    "handle_mm_fault",
    "fixup_user_fault",
    "faultin_page",
    "__get_user_pages",
    "get_user_pages",
    "__gup_longterm",
    "internal_get_user_pages",
    "gup_fast_fallback",
    "vm_mmap_pgoff",
    "__vm_munmap",
    "vm_munmap",
    "do_mprotect_pkey",
    "do_madvise",
    "madvise_lock",
    "process_madvise",
    "do_mlock",
    "__x64_sys_",
    "__do_sys_mremap",
    "__do_sys_brk",
    "__do_sys_mlockall",
    "vm_brk_flags",
    "do_shmat",
    "ksys_shmdt",
    "dup_mm",
    "exit_mm",
    "do_exit",
    "acct_collect",
    "exec_mmap",
    "setup_arg_pages",
    "userfaultfd_",
    "smaps_rollup",
    "m_start",
];

/// The system calls of those that take it themselves.
const CALLS: [&str; 8] = [
    "__x64_sys_brk",
    "__x64_sys_mremap",
    "__x64_sys_munmap",
    "__x64_sys_munlockall",
    "__x64_sys_mlockall",
    "__x64_sys_munlock",
    "__x64_sys_remap_file_pages",
    "__x64_sys_process_madvise",
];

/// Whether a stack was taken where a task sleeps for the lock of an address space: by who takes it.
pub(crate) fn is_of_address_space(stack: &Stack) -> bool {
    let mut names = stack.iter().filter_map(Frame::function);
    let is_taker = |name: &&str| TAKERS.iter().any(|taker| name.starts_with(taker));
    if !names
        .clone()
        .any(|name| name.contains("down_") || name.contains("rwbase_"))
    {
        return false;
    }
    let Some(caller) = names.find(|name| !is_taker(name)) else {
        return false;
    };
    match caller.starts_with("__x64_sys_") {
        true => CALLS.contains(&caller),
        false => OF_ADDRESS_SPACE.iter().any(|of| caller.starts_with(of)),
    }
}

/// The block in which the late task waited for the lock of a cause: for the longest, of several.
pub(crate) fn block_of<'a>(
    model: &'a Model,
    late: &LateActivation,
    culprit: &Culprit,
) -> Option<&'a Blocked> {
    let range = culprit.range;
    let blocked = model.evidence.blocked.iter();
    let own = blocked.filter(|blocked| {
        let inside = late.origin <= blocked.time && blocked.time < range.end;
        blocked.task.tid == late.task.tid && inside
    });
    own.max_by_key(|blocked| {
        let until = woken_after(model, blocked, late.end);
        (until.min(range.end) - blocked.time.max(range.begin)).max(Duration::ZERO)
    })
}

/// When the sleep of a block ended; `end` where nobody ended it before.
pub(crate) fn woken_after(model: &Model, blocked: &Blocked, end: Instant) -> Instant {
    let moments = model.moments(blocked.task.tid.0, Cpu(0), blocked.time, end);
    let mut woken = moments.iter();
    let woken = woken.find(|moment| moment.kind == MomentKind::Waking);
    woken.map_or(end, |moment| Instant::from_ns(moment.time_ns))
}

/// Whether the lock of a cause is that of the late task's address space.
pub(crate) fn is_address_space(model: &Model, late: &LateActivation, culprit: &Culprit) -> bool {
    let has_lock = matches!(
        culprit.kind,
        TermKind::LockWait { .. } | TermKind::PriorityInversion { .. }
    );
    let block = block_of(model, late, culprit).filter(|_| has_lock);
    block.is_some_and(|block| is_of_address_space(&block.stack))
}
