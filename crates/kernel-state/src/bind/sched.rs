//! Events of the scheduler.

use event::{EventClass, FieldId};
use trace::{EventView, Trace};

use super::context::Asked;
use super::{Context, Within};

/// Who runs, wakes and moves.
#[derive(Clone, Copy, Debug)]
pub enum Sched {
    Switch(SwitchFields),
    Wake(WakeKind, TaskFields),
    /// [`TaskFields::cpu`] is the one it moves to.
    Migrate(TaskFields),
    PiSetprio(PrioFields),
}

impl Sched {
    /// The CPUs beside its own that an event names: of run queues that a task is on or comes to.
    pub fn cpus_named(&self, event: &EventView<'_>) -> impl Iterator<Item = u32> + use<> {
        let named = match self {
            Sched::Wake(_, fields) | Sched::Migrate(fields) => {
                [fields.left_cpu(event), fields.cpu(event)]
            }
            Sched::Switch(_) | Sched::PiSetprio(_) => [None, None],
        };
        named.into_iter().flatten()
    }
}

/// Fields of `sched_pi_setprio`.
#[derive(Clone, Copy, Debug)]
pub struct PrioFields {
    tid: FieldId,
    old_prio: FieldId,
    prio: FieldId,
    /// To add to the priority to be on LTTng's scale.
    prio_offset: i32,
}

impl PrioFields {
    /// The thread that has another priority from now on.
    pub fn tid(&self, event: &EventView<'_>) -> i32 {
        event.i64(self.tid) as i32
    }

    /// That priority, on LTTng's scale.
    pub fn prio(&self, event: &EventView<'_>) -> i32 {
        (event.i64(self.prio) as i32).saturating_add(self.prio_offset)
    }

    /// The priority before, on LTTng's scale.
    pub fn old_prio(&self, event: &EventView<'_>) -> i32 {
        (event.i64(self.old_prio) as i32).saturating_add(self.prio_offset)
    }
}

/// Which of the three events a wake-up has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeKind {
    Waking,
    Wakeup,
    WakeupNew,
}

/// Tasks come, and become other programs.
#[derive(Clone, Copy, Debug)]
pub enum Life {
    Fork {
        /// Its process, or else the thread itself.
        parent: FieldId,
        parent_comm: FieldId,
        child_tid: FieldId,
        /// Only where it tells processes from threads.
        child_pid: Option<FieldId>,
        child_comm: FieldId,
    },
    Exec(ExecFields),
    /// A thread has another name, which it or another one gave it.
    Rename {
        tid: FieldId,
        comm: FieldId,
    },
    /// A task was made, in the context of the one that made it.
    New {
        tid: FieldId,
        flags: FieldId,
    },
    /// The task on the CPU ends. `last`: nothing that it does for others came before.
    Exit {
        tid: FieldId,
        last: bool,
    },
}

/// Fields of `sched_process_exec`.
#[derive(Clone, Copy, Debug)]
pub struct ExecFields {
    tid: FieldId,
    procname: Option<FieldId>,
    filename: Option<FieldId>,
}

impl ExecFields {
    /// The thread that runs another program now.
    pub fn tid(&self, event: &EventView<'_>) -> i32 {
        event.i64(self.tid) as i32
    }

    /// Whether a context says its name.
    pub fn has_context(&self) -> bool {
        self.procname.is_some()
    }

    /// Its name from now on: a context says it, or it is the program's file's, cut as the kernel
    /// cuts it (`begin_new_exec` in `fs/exec.c`).
    pub fn comm<'a>(&self, event: &EventView<'a>) -> Option<&'a [u8]> {
        const COMM_BYTES: usize = 15;
        if let Some(procname) = self.procname {
            return Some(event.text(procname));
        }
        let name = self.file(event)?;
        Some(&name[..name.len().min(COMM_BYTES)])
    }

    /// The name of the program's file.
    pub fn file<'a>(&self, event: &EventView<'a>) -> Option<&'a [u8]> {
        let path = event.text(self.filename?);
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        (!name.is_empty()).then_some(name)
    }
}

/// A new task with this flag is another thread of its maker's process (`CLONE_THREAD`).
pub const CLONE_THREAD: u64 = 0x0001_0000;

/// Fields of an event about one task.
#[derive(Clone, Copy, Debug)]
pub struct TaskFields {
    comm: FieldId,
    tid: FieldId,
    prio: FieldId,
    /// To add to the priority to be on LTTng's scale.
    prio_offset: i32,
    /// `target_cpu` or `dest_cpu`.
    cpu: Option<FieldId>,
    /// `orig_cpu`.
    left_cpu: Option<FieldId>,
    context: Option<Context>,
    asked: Option<Asked>,
}

impl TaskFields {
    #[inline]
    pub fn tid(&self, event: &EventView<'_>) -> i32 {
        event.i64(self.tid) as i32
    }

    #[inline]
    pub fn comm<'a>(&self, event: &EventView<'a>) -> &'a [u8] {
        event.text(self.comm)
    }

    /// On LTTng's scale.
    #[inline]
    pub fn prio(&self, event: &EventView<'_>) -> i32 {
        (event.i64(self.prio) as i32).saturating_add(self.prio_offset)
    }

    /// The CPU whose run queue a task that is moved was on.
    pub fn left_cpu(&self, event: &EventView<'_>) -> Option<u32> {
        self.left_cpu.map(|cpu| event.i64(cpu) as u32)
    }

    /// All that a wake-up says of its task.
    #[inline]
    pub fn wake_up<'a>(&self, event: &EventView<'a>) -> WakeUp<'a> {
        let (tid, prio, target) = match self.cpu {
            Some(cpu) => {
                let [tid, prio, cpu] = event.integers([self.tid, self.prio, cpu]);
                (tid, prio, Some(cpu as u32))
            }
            None => {
                let [tid, prio] = event.integers([self.tid, self.prio]);
                (tid, prio, None)
            }
        };
        WakeUp {
            tid: tid as i32,
            comm: self.comm(event),
            prio: (prio as i32).saturating_add(self.prio_offset),
            target,
        }
    }

    /// What had the CPU, where the tracer says it.
    #[inline]
    pub fn within(&self, event: &EventView<'_>) -> Option<Within> {
        self.context.map(|context| context.within(event))
    }

    /// Whether a task that is woken had the one that has the CPU asked to leave it, where the
    /// tracer says it, and that CPU is the one it comes on.
    pub fn asks(&self, event: &EventView<'_>) -> Option<bool> {
        self.asked.map(|asked| asked.is_asked(event))
    }

    /// The CPU that the event names.
    #[inline]
    pub fn cpu(&self, event: &EventView<'_>) -> Option<u32> {
        self.cpu.map(|field| event.i64(field) as u32)
    }
}

/// A task that is woken, as the event tells it.
#[derive(Clone, Copy, Debug)]
pub struct WakeUp<'a> {
    pub tid: i32,
    pub comm: &'a [u8],
    /// On LTTng's scale.
    pub prio: i32,
    /// The CPU on whose run queue it comes, where the event names it.
    pub target: Option<u32>,
}

/// Why a task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It is put off.
    PutOff,
    /// A task of SCHED_DEADLINE leaves its CPU to one of another policy, though it could run on,
    /// and no tick came before: it has given up the rest of its runtime (`sched_yield`), as its
    /// work was done, or has used that up.
    OutOfRuntime,
    /// It sleeps in the middle of its work, where no signal wakes it: on a lock of the kernel, a
    /// page, a device.
    Inside,
    /// The same for a lock of its program's, where a recording has the calls of `futex`.
    Lock,
    /// The same for a page that a program serves, where a recording has these faults.
    Fault,
    /// It is stopped by a signal, which is no sleep: its work goes on when it is continued.
    Stopped,
    /// The same for its tracer.
    Traced,
    /// The same with its control group, where a recording has the events of the freezer.
    Frozen,
    /// It has done its work and waits for the next.
    Done,
    /// It is gone, as its last work is done.
    Gone,
}

impl Pause {
    /// Whether the task sleeps in the middle of its work.
    pub fn is_inside(self) -> bool {
        matches!(self, Pause::Inside | Pause::Lock | Pause::Fault)
    }

    /// Whether the task is kept from its work, and does not sleep.
    pub fn is_stop(self) -> bool {
        matches!(self, Pause::Stopped | Pause::Traced | Pause::Frozen)
    }
}

/// A task that is stopped so soon after it was woken may have been woken to be stopped, in its
/// sleep.
pub const STOPPED_ASLEEP_NS_MAX: i64 = 100_000;

/// Fields of `sched_switch`.
#[derive(Clone, Copy, Debug)]
pub struct SwitchFields {
    pub prev: TaskFields,
    prev_state: FieldId,
    pub next: TaskFields,
}

/// What a switch says, but for names.
#[derive(Clone, Copy, Debug)]
pub struct Switched {
    pub prev_tid: i32,
    /// On LTTng's scale, as the next one's.
    pub prev_prio: i32,
    pub left: Left,
    pub next_tid: i32,
    pub next_prio: i32,
}

impl SwitchFields {
    /// Who comes and who leaves.
    #[inline]
    pub fn switched(&self, event: &EventView<'_>) -> Switched {
        let (prev, next) = (&self.prev, &self.next);
        let fields = [prev.tid, prev.prio, self.prev_state, next.tid, next.prio];
        let [prev_tid, prev_prio, left, next_tid, next_prio] = event.integers(fields);
        Switched {
            prev_tid: prev_tid as i32,
            prev_prio: (prev_prio as i32).saturating_add(prev.prio_offset),
            left: Left(left),
            next_tid: next_tid as i32,
            next_prio: (next_prio as i32).saturating_add(next.prio_offset),
        }
    }
}

/// The state with which a task leaves its CPU.
#[derive(Clone, Copy, Debug)]
pub struct Left(i64);

impl Left {
    /// Whether it stays on the run queue: it was running, or the event has the preemption mark
    /// (`TASK_REPORT_MAX`; before Linux 4.14 `TASK_STATE_MAX`, which is above all states).
    #[inline]
    pub fn stays_runnable(self) -> bool {
        const TASK_REPORT_MAX: i64 = 0x100;
        const STATES: i64 = 0x3ff;
        self.0 & STATES == 0 || self.0 & TASK_REPORT_MAX != 0
    }

    /// Whether it has ended (`EXIT_DEAD`, `EXIT_ZOMBIE`): it waits for nothing.
    #[inline]
    pub fn ends(self) -> bool {
        const EXIT_STATES: i64 = 0x10 | 0x20;
        self.0 & EXIT_STATES != 0
    }

    /// Why it leaves, as far as the switch says.
    #[inline]
    pub fn pause(self) -> Pause {
        const TASK_UNINTERRUPTIBLE: i64 = 0x2;
        const TASK_STOPPED: i64 = 0x4;
        const TASK_TRACED: i64 = 0x8;
        // Before 4.14 a thread of the kernel's that has nothing to do sleeps so.
        const TASK_NOLOAD: i64 = 0x400;
        if self.stays_runnable() {
            Pause::PutOff
        } else if self.ends() {
            Pause::Gone
        } else if self.0 & (TASK_UNINTERRUPTIBLE | TASK_NOLOAD) == TASK_UNINTERRUPTIBLE {
            Pause::Inside
        } else if self.0 & TASK_STOPPED != 0 {
            Pause::Stopped
        } else if self.0 & TASK_TRACED != 0 {
            Pause::Traced
        } else {
            Pause::Done
        }
    }
}

pub(super) fn bind(class: &EventClass, trace: &Trace) -> Option<Sched> {
    let field = |field: &str| class.field(field);
    let task = |prefix: &str, prio_offset: i32, cpu: &str| {
        let field = |name: &str| class.field(&format!("{prefix}{name}"));
        Some(TaskFields {
            comm: field("comm")?,
            tid: tid(class, prefix)?,
            prio: field("prio")?,
            prio_offset,
            cpu: class.field(cpu),
            left_cpu: class.field("orig_cpu"),
            context: Context::bind(class),
            asked: Asked::bind(class),
        })
    };
    // Perf hands out what the kernel wrote.
    let offset = match class.is_of_perf() {
        true => -MAX_RT_PRIO,
        false => 0,
    };
    let wake = |kind| {
        let offset = match has_kernel_prio_in_wakeups(trace, class) {
            true => -MAX_RT_PRIO,
            false => offset,
        };
        task("", offset, "target_cpu").map(|fields| Sched::Wake(kind, fields))
    };
    match class.kernel_name() {
        "sched_switch" => Some(Sched::Switch(SwitchFields {
            prev: task("prev_", offset, "")?,
            prev_state: field("prev_state")?,
            next: task("next_", offset, "")?,
        })),
        "sched_waking" => wake(WakeKind::Waking),
        "sched_wakeup" => wake(WakeKind::Wakeup),
        "sched_wakeup_new" => wake(WakeKind::WakeupNew),
        "sched_migrate_task" => task("", offset, "dest_cpu").map(Sched::Migrate),
        "sched_pi_setprio" => Some(Sched::PiSetprio(PrioFields {
            tid: tid(class, "")?,
            old_prio: field("oldprio")?,
            prio: field("newprio")?,
            prio_offset: offset,
        })),
        _ => None,
    }
}

pub(super) fn life(class: &EventClass) -> Option<Life> {
    let field = |field: &str| class.field(field);
    Some(match class.kernel_name() {
        "sched_process_fork" => Life::Fork {
            parent: field("parent_pid")
                .or_else(|| field("parent_tid"))
                // The kernel's own text.
                .or_else(|| field("pid"))?,
            parent_comm: field("parent_comm").or_else(|| field("comm"))?,
            child_tid: tid(class, "child_")?,
            child_pid: field("child_pid").filter(|_| field("parent_pid").is_some()),
            child_comm: field("child_comm")?,
        },
        "sched_process_exec" => Life::Exec(ExecFields {
            tid: tid(class, "")?,
            procname: field("procname"),
            filename: field("filename"),
        }),
        "task_rename" => Life::Rename {
            tid: tid(class, "")?,
            comm: field("newcomm")?,
        },
        "task_newtask" => Life::New {
            tid: tid(class, "")?,
            flags: field("clone_flags")?,
        },
        // Until Linux 6.16, which added `group_dead`, the event comes after the memory was let go
        // of and whoever waited for that was woken.
        "sched_process_exit" => Life::Exit {
            tid: tid(class, "")?,
            last: field("group_dead").is_some(),
        },
        _ => return None,
    })
}

/// A thread's id, which the kernel calls `pid`.
fn tid(class: &EventClass, prefix: &str) -> Option<FieldId> {
    let field = |name: &str| class.field(&format!("{prefix}{name}"));
    field("tid").or_else(|| field("pid"))
}

/// `MAX_RT_PRIO` of the kernel: LTTng's priorities are the kernel's less this.
const MAX_RT_PRIO: i32 = 100;

/// lttng-modules before 2.7.1 wrote the kernel's own priorities in wake-ups, and nothing in the
/// events says so.
fn has_kernel_prio_in_wakeups(trace: &Trace, class: &EventClass) -> bool {
    let environment = trace.environment_of(class.id);
    let number = |key: &str| environment.get(key)?.parse::<u32>().ok();
    let version = number("tracer_major").map(|major| {
        let minor = number("tracer_minor").unwrap_or(0);
        (major, minor, number("tracer_patchlevel").unwrap_or(0))
    });
    let by_lttng = environment
        .get("tracer_name")
        .is_none_or(|name| name.starts_with("lttng"));
    by_lttng && version.is_some_and(|version| version < (2, 7, 1))
}
