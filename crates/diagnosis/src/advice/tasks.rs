//! Rules about tasks: where they run, with which priority, and what their programs do.

use event::evidence::{Blocked, BlockedOn, Moment, StepKind, TaskRef};
use event::kernel_threads;

use super::{Case, LOCK_MEMORY, for_culprit, other_cpus, task_of};
use crate::finding::LateActivation;
use crate::inside::waker_after;
use crate::kept;
use crate::locks;
use crate::policy::FairPolicy;
use crate::term::TermKind;

/// Priorities above belong to the kernel's own watchdog and stop threads.
const RAISE_MAX: u32 = 98;
/// So much nicer, a fair task has a tenth of another one's share of the CPU.
const NICE_STEP: i32 = 10;
const NICE_MIN: i32 = -20;

/// Who ran ahead of one that waited, or of the owner of its lock where that inherits already: then
/// that one goes before both.
fn behind<'a>(case: &'a Case<'_>) -> Option<&'a TaskRef> {
    match &case.culprit.kind {
        TermKind::RunQueueWait { behind } => Some(behind),
        TermKind::PriorityInversion { behind, .. } if inherits(case) => Some(behind),
        _ => None,
    }
}

/// Whether the lock of the cause is one of those whose owner has the priority of who waits.
fn inherits(case: &Case<'_>) -> bool {
    let is_such = |block: &Blocked| block.on == BlockedOn::Lock && block.owner.is_some();
    block_of(case).is_some_and(is_such)
}

/// Threads that the kernel binds to their CPU: moving them is refused. A program's may have such a
/// name.
fn is_bound(case: &Case<'_>, task: &TaskRef) -> bool {
    is_kernels(case, task) && kernel_threads::is_bound(task.comm.as_bytes())
}

/// Whether nothing says that a task runs a program.
fn is_kernels(case: &Case<'_>, task: &TaskRef) -> bool {
    !case.model.tasks.is_program(task.tid)
}

/// The kernel refuses a task of SCHED_DEADLINE another CPU.
fn is_deadline(task: &TaskRef) -> bool {
    !kernel_threads::is_stop_class(task.comm.as_bytes()) && task.prio.0 < 0
}

pub(super) fn move_interrupt_thread(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case)?;
    let task = Some(task).filter(|task| is_kernels(case, task))?;
    let irq = kernel_threads::irq_of_thread(task.comm.as_bytes())?;
    let others = other_cpus(case.info, case.culprit.cpu)?;
    let because = format!(
        "{} handles interrupt {irq} on {}",
        task.comm, case.culprit.cpu
    );
    Some((
        because,
        format!("echo {others} > /proc/irq/{irq}/smp_affinity_list"),
    ))
}

pub(super) fn move_task(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|task| !is_bound(case, task) && !is_deadline(task))?;
    let culprit = case.culprit;
    let others = other_cpus(case.info, culprit.cpu)?;
    let (cpu, waiter) = (culprit.cpu, case.waiter().comm);
    let because = if culprit.tasks > 1 {
        // Where they end before anybody can move them, their parent is the one to move.
        format!(
            "{} tasks called {} share {cpu} with {waiter}; their parent hands CPUs and priority on",
            culprit.tasks, task.comm
        )
    } else {
        format!("{} shares {cpu} with {waiter}", task.comm)
    };
    // One thread, not its process: the victim may be a thread of it.
    let command = for_culprit(case, task, &format!("taskset -pc {others} {{}}"));
    Some((because, command))
}

/// What has a deadline goes before every priority.
pub(super) fn leave_deadline(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|task| is_deadline(task))?;
    let because = format!(
        "{} has SCHED_DEADLINE, goes before every priority and cannot be moved; a shorter runtime \
         (chrt -d -T) helps too. With -o it keeps no deadline any more",
        task.comm
    );
    Some((because, for_culprit(case, task, "chrt -o -p 0 {}")))
}

/// Below all that the activation hangs on; a fair task waits for everything real-time. Who has its
/// priority lent keeps that, whatever its own is.
pub(super) fn lower_task(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|task| !is_bound(case, task))?;
    let task = Some(task).filter(|task| kept::lender(case.model, task, case.culprit).is_none())?;
    let priority = task.prio.rt()?;
    let low = lowest(case)?;
    let (command, note) = match low.prio.rt() {
        Some(low_priority) => {
            let below = low_priority
                .checked_sub(1)
                .filter(|below| *below >= 1 && priority >= low_priority)?;
            let (letter, note) = match policy(case, task) {
                Some(ROUND_ROBIN) => ('r', ""),
                Some(_) => ('f', ""),
                None => ('f', "; -r in place of -f where chrt -p says SCHED_RR"),
            };
            (format!("chrt -{letter} -p {below} {{}}"), note)
        }
        None => {
            low.prio.nice()?;
            let note = "; it is not real-time any more then, and waits as others do";
            ("chrt -o -p 0 {}".to_owned(), note)
        }
    };
    let because = format!(
        "{} has rt {priority}, {} has {}{note}",
        task.comm, low.comm, low.prio
    );
    Some((because, for_culprit(case, task, &command)))
}

/// SCHED_FIFO and SCHED_RR, as the kernel numbers them.
const FIFO: u32 = 1;
const ROUND_ROBIN: u32 = 2;

/// The policy of a real-time task, or of one of its name, as the watch saw it when it ran ahead.
fn policy(case: &Case<'_>, task: &TaskRef) -> Option<u32> {
    let is_it = |moment: &&Moment| match case.culprit.tasks {
        1 => moment.task.tid == task.tid,
        _ => moment.task.comm == task.comm,
    };
    let mut seen = case.model.evidence.moments.iter().filter(is_it);
    seen.find_map(|moment| {
        let policies = [moment.came_policy, moment.policy];
        let real_time = |policy: &u32| [FIFO, ROUND_ROBIN].contains(policy);
        policies.into_iter().find(real_time)
    })
}

/// The tasks that an activation hangs on, the late one last: each that a step wakes.
pub(super) fn chain(late: &LateActivation) -> Vec<TaskRef> {
    let woken = late.steps.iter();
    let woken = woken.filter(|step| step.kind == StepKind::Waking);
    let mut tasks: Vec<TaskRef> = Vec::new();
    for task in woken.map(task_of).chain([late.task.clone()]) {
        tasks.retain(|known| known.tid != task.tid);
        tasks.push(task);
    }
    tasks
}

/// All that the activation hangs on, with the thread that a softirq waited for.
fn all_in_chain(case: &Case<'_>) -> Vec<TaskRef> {
    let mut tasks = chain(case.late);
    let known = |waiter: &&TaskRef| tasks.iter().all(|task| task.tid != waiter.tid);
    let waiter = case.culprit.waiter.as_ref().filter(known).cloned();
    tasks.extend(waiter);
    tasks
}

/// Who of the chain has the lowest priority: above it, a task holds up the activation.
fn lowest(case: &Case<'_>) -> Option<TaskRef> {
    all_in_chain(case)
        .into_iter()
        .max_by_key(|task| task.prio.0)
}

pub(super) fn renice_task(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|task| !is_bound(case, task))?;
    let (victim, nice) = (case.late.task.prio.nice()?, task.prio.nice()?);
    (nice < victim).then_some(())?;
    let because = format!(
        "{} has nice {nice}, {} has nice {victim}{}",
        task.comm,
        case.late.task.comm,
        of_sessions(case, 19, task)
    );
    let command = for_culprit(case, task, "renice -n 19 -p {}");
    Some((because, command))
}

/// What a nice value of `task` does not do where the kernel shares CPUs by sessions, and what does
/// it then. No event tells sessions, nor all control groups.
fn of_sessions(case: &Case<'_>, nice: i32, task: &TaskRef) -> String {
    let said = case.info.environment.get("rtscope_autogroup");
    if said.is_none_or(|said| said != "on") {
        return String::new();
    }
    format!(
        "; between tasks of two sessions (ps -o sid) outside of control groups it does nothing \
         (sched_autogroup): echo {nice} > /proc/{}/autogroup there",
        task.tid
    )
}

/// Only where nothing can be put below the victim.
pub(super) fn raise_victim(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|task| !is_bound(case, task))?;
    let priority = task.prio.rt()?;
    let low = lowest(case)?;
    let above = priority
        .checked_add(1)
        .filter(|above| low.prio.rt() == Some(1) && *above <= RAISE_MAX)?;
    let because = format!(
        "{} has {}: nothing real-time goes below it. Check first that it never runs for long: \
         at rt {above} it holds up everything below",
        low.comm, low.prio
    );
    // Whoever leads to it must not stay behind either.
    let below = all_in_chain(case)
        .into_iter()
        .filter(|task| task.prio.rt().is_some_and(|own| own < above));
    let commands: Vec<_> = below
        .map(|task| format!("chrt -f -p {above} {}", task.tid))
        .collect();
    Some((because, commands.join(" && ")))
}

/// Whether it is the late task that waited, and that has SCHED_IDLE.
fn is_idle_victim(case: &Case<'_>) -> bool {
    let victim = case.late.task.tid;
    let policy = FairPolicy::of(case.model, victim);
    policy == Some(FairPolicy::Idle) && case.waiter().tid == victim
}

/// A nice value does nothing for a task of SCHED_IDLE.
pub(super) fn leave_idle_policy(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|_| is_idle_victim(case))?;
    task.prio.nice()?;
    let victim = &case.late.task;
    let because = format!(
        "{} has SCHED_IDLE: it gets what {} and all others leave, whatever its nice value",
        victim.comm, task.comm
    );
    Some((because, format!("chrt -o -p 0 {}", victim.tid)))
}

/// Two fair tasks share the CPU by their weights. A real-time policy for one of them would starve
/// what else the CPU has to do.
pub(super) fn raise_weight(case: &Case<'_>) -> Option<(String, String)> {
    let task = behind(case).filter(|_| !is_idle_victim(case))?;
    let waiter = case.waiter();
    // One that was made real-time meanwhile has no weight any more.
    let is_late_one = waiter.tid == case.late.task.tid;
    if is_late_one && case.late.task.prio.is_real_time() {
        return None;
    }
    let (own, other) = (waiter.prio.nice()?, task.prio.nice()?);
    let nice = (own.min(other) - NICE_STEP).max(NICE_MIN);
    (nice < own).then_some(())?;
    let because = format!(
        "{} (nice {own}) and {} (nice {other}) share the CPU by their weights; all that share it \
         get less then{}",
        waiter.comm,
        task.comm,
        of_sessions(case, nice, &waiter)
    );
    Some((because, format!("renice -n {nice} -p {}", waiter.tid)))
}

/// A real-time task that waits while another CPU idles, or runs what it beats, was not allowed
/// there: it would have gone. Only of the late task itself is that known.
pub(super) fn widen_affinity(case: &Case<'_>) -> Option<(String, String)> {
    behind(case)?;
    let late = case.late;
    let is_its_own = case.waiter().tid == late.task.tid && case.culprit.cpu == late.cpu;
    (late.task.prio.is_real_time() && is_its_own).then_some(())?;
    let free = late.free_meanwhile.first()?;
    let mut cpus = late.free_meanwhile.clone();
    cpus.push(late.cpu);
    cpus.sort();
    let list: Vec<_> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
    let because = format!(
        "{free} was free for it meanwhile, and {} stayed here (if refused, its cpuset keeps it)",
        late.task.comm
    );
    let command = format!("taskset -pc {} {}", list.join(","), late.task.tid);
    Some((because, command))
}

/// The block in which the late task waited for the lock of the cause.
fn block_of<'a>(case: &'a Case<'_>) -> Option<&'a Blocked> {
    locks::block_of(case.model, case.late, case.culprit)
}

/// Whether the lock of the cause is the kernel's one of the late task's address space: nothing can
/// stand in its place, and nobody holds it for longer than the kernel needs.
fn is_address_space(case: &Case<'_>) -> bool {
    locks::is_address_space(case.model, case.late, case.culprit)
}

/// Who has the lock of the cause.
fn owner_of<'a>(case: &'a Case<'_>) -> Option<&'a TaskRef> {
    match &case.culprit.kind {
        TermKind::LockWait {
            owner,
            halted: None,
        }
        | TermKind::PriorityInversion { owner, .. } => Some(owner),
        _ => None,
    }
}

/// What changes much of an address space, or reads all of it, keeps its lock for as long.
pub(super) fn spare_address_space(case: &Case<'_>) -> Option<(String, String)> {
    let owner = owner_of(case).filter(|_| is_address_space(case))?;
    let late = &case.late.task;
    let tasks = &case.model.tasks;
    let processes = tasks
        .process_of(owner.tid.0)
        .zip(tasks.process_of(late.tid.0));
    let because = format!(
        "{} held the kernel's lock of {}'s address space (mmap_lock), which its page faults and \
         all calls that change its memory need",
        owner.comm, late.comm
    );
    let change = match processes {
        Some((one, other)) if one != other => format!(
            "let {} read /proc/{}/smaps, maps and the like less often, or in a pause of {}",
            owner.comm, other.0, late.comm
        ),
        known => {
            let is_perhaps_foreign = match known {
                Some(_) => String::new(),
                None => format!(
                    "; where {} is of another process, let it read /proc/PID/smaps, maps and the \
                     like less often",
                    owner.comm
                ),
            };
            format!(
                "while {} has to be in time, let no thread of its process fork, or map, unmap or \
                 protect large pieces of memory: posix_spawn() or vfork() in place of fork(), or \
                 leave it to another process{is_perhaps_foreign}",
                late.comm
            )
        }
    };
    Some((because, change))
}

/// Nobody lends a priority to who has the lock of an address space.
pub(super) fn raise_owner(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::PriorityInversion { owner, .. } = &case.culprit.kind else {
        return None;
    };
    let late = &case.late.task;
    let priority = late.prio.rt().filter(|_| is_address_space(case))?;
    (!owner.prio.is_real_time() && !is_kernels_thread(case, owner)).then_some(())?;
    let because = format!(
        "{} has {}, and others ran ahead of it while it had that lock; at rt {priority} it goes \
         before them with all of its work",
        owner.comm, owner.prio
    );
    Some((because, format!("chrt -f -p {priority} {}", owner.tid)))
}

/// Whether it is known as a thread of the kernel.
fn is_kernels_thread(case: &Case<'_>, task: &TaskRef) -> bool {
    case.model.tasks.is_kernels_task(task)
}

pub(super) fn inherit_priority(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::PriorityInversion { owner, .. } = &case.culprit.kind else {
        return None;
    };
    let block = block_of(case);
    // The kernel's own lock: no program chooses its kind.
    let is_kernels = block.is_some_and(|block| block.on == BlockedOn::Kernel);
    if is_kernels || is_address_space(case) || inherits(case) {
        return None;
    }
    let is_without_owner = block.is_some_and(|block| block.owner.is_none());
    let because = format!(
        "{} holds the lock without the priority of those who wait",
        owner.comm
    );
    let inherits = "pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT)";
    let change = match is_without_owner {
        true => format!(
            "a pthread mutex with {inherits} in its place: in Rust's locks, and in those for \
             readers and writers, nobody inherits"
        ),
        false => format!("{inherits} for that mutex"),
    };
    Some((because, change))
}

pub(super) fn hold_lock_shorter(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::LockWait {
        owner,
        halted: None,
    } = &case.culprit.kind
    else {
        return None;
    };
    (!is_address_space(case)).then_some(())?;
    let because = format!("{} holds the lock for all of its work", owner.comm);
    let change = format!(
        "let {} prepare outside the lock, and hold it for the hand-over",
        owner.comm
    );
    Some((because, change))
}

/// Whom the activation waits for works before it hands on.
pub(super) fn hand_on_sooner(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::Upstream { task } = &case.culprit.kind else {
        return None;
    };
    let mut steps = case.late.steps.iter();
    steps.find(|step| step.kind == StepKind::SwitchIn && step.id == task.tid.0)?;
    let next = steps.find(|step| step.kind == StepKind::Waking)?;
    let because = format!("{} works before it wakes {}", task.comm, next.comm);
    let change = format!(
        "let {} wake {} first, and do the rest of its work after that",
        task.comm, next.comm
    );
    Some((because, change))
}

pub(super) fn serve_faults(case: &Case<'_>) -> Option<(String, String)> {
    let server = fault_server(case)?;
    let comm = &case.late.task.comm;
    let because = format!("{server} serves the page faults of {comm} (userfaultfd)");
    let change = format!(
        "touch that memory before the work, or let {} answer sooner",
        server.comm
    );
    Some((because, change))
}

/// Who ended a page fault that a program had to serve.
fn fault_server(case: &Case<'_>) -> Option<TaskRef> {
    matches!(case.culprit.kind, TermKind::PageFault).then_some(())?;
    let (model, late) = (case.model, case.late);
    let inside = late.origin..late.end;
    let mut blocks = model.evidence.blocked.iter();
    let block = blocks.find(|block| {
        let waits = |name: &str| {
            block
                .stack
                .iter()
                .any(|frame| frame.symbol.starts_with(name))
        };
        // A recording has no stacks, and events of these faults alone.
        let is_told = block.on == BlockedOn::Fault && !model.families.hit;
        let is_served = is_told || waits("handle_userfault");
        block.task.tid == late.task.tid && inside.contains(&block.time) && is_served
    })?;
    waker_after(model, block.task.tid.0, block.time, late.end)
}

pub(super) fn lock_memory(case: &Case<'_>) -> Option<(String, String)> {
    // Locking memory that a program serves asks that program too.
    if fault_server(case).is_some() {
        return None;
    }
    matches!(case.culprit.kind, TermKind::PageFault).then_some(())?;
    let because = format!(
        "{} works on pages that are not there yet",
        case.late.task.comm
    );
    Some((because, LOCK_MEMORY.to_owned()))
}

pub(super) fn hand_on_io(case: &Case<'_>) -> Option<(String, String)> {
    matches!(case.culprit.kind, TermKind::BlockIo).then_some(())?;
    let because = format!("{} waits for the device itself", case.late.task.comm);
    let change = "hand the data to another thread, which writes it".to_owned();
    Some((because, change))
}

pub(super) fn move_section(case: &Case<'_>) -> Option<(String, String)> {
    let (TermKind::InterruptsOff { task, .. } | TermKind::PreemptionOff { task, .. }) =
        &case.culprit.kind
    else {
        return None;
    };
    let task = Some(task)
        .filter(|task| !is_bound(case, task) && !is_deadline(task) && !task.tid.is_idle())?;
    let others = other_cpus(case.info, case.culprit.cpu)?;
    let because = format!("{} runs that code on {}", task.comm, case.culprit.cpu);
    let command = for_culprit(case, task, &format!("taskset -pc {others} {{}}"));
    Some((because, command))
}
