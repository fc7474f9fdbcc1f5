//! What an event class is to Perfetto, and where its fields are: bound once, under LTTng's names
//! and the kernel's own.

use event::{EventClass, FieldId, Prio, Scope};
use trace::{EventView, Trace};

use super::proto::{
    FtraceEvent, IrqEntry, IrqExit, SchedMigrateTask, SchedPiSetprio, SchedSwitch, SchedWaking,
    Softirq, TaskRename,
};

/// An event class, with its fields bound.
pub(super) struct Class {
    pub role: Role,
    /// Where user events say which thread they are of.
    pub thread: ThreadFields,
}

/// What becomes of the events of a class.
pub(super) enum Role {
    /// An event that Perfetto knows: it makes slices and flows of it.
    Ftrace(Ftrace),
    /// A slice of this name on the thread's track begins.
    SyscallEntry(String),
    /// It ends; the return value, where there is one.
    SyscallExit,
    /// A task's process, as a state dump or a fork says it.
    Process {
        tid: FieldId,
        pid: FieldId,
        name: Option<FieldId>,
    },
    /// An event of the kernel: a point on the CPU's track.
    Kernel,
    /// An event of an application: a point on a track of its thread, named after the provider.
    User(String),
}

#[derive(Default)]
pub(super) struct ThreadFields {
    pub tid: Option<FieldId>,
    pub pid: Option<FieldId>,
    pub name: Option<FieldId>,
}

/// A scheduler's or interrupt's event.
pub(super) enum Ftrace {
    Switch {
        prev: Task,
        state: Option<FieldId>,
        next: Task,
    },
    Waking {
        form: WakeForm,
        task: Task,
        target_cpu: Option<FieldId>,
    },
    Changed(Changed),
    Softirq {
        form: SoftirqForm,
        vec: FieldId,
    },
    IrqEntry {
        irq: FieldId,
        name: Option<FieldId>,
    },
    IrqExit {
        irq: FieldId,
        ret: Option<FieldId>,
    },
}

/// What is another one of a task from now on.
pub(super) enum Changed {
    /// Its CPU.
    Migrate {
        task: Task,
        from: Option<FieldId>,
        to: Option<FieldId>,
    },
    /// Its priority, which it inherits or gives back.
    PiSetprio {
        task: Task,
        old: FieldId,
        new: FieldId,
    },
    /// Its name.
    Rename {
        tid: FieldId,
        old: Option<FieldId>,
        new: FieldId,
    },
}

#[derive(Clone, Copy)]
pub(super) enum WakeForm {
    Waking,
    Wakeup,
    WakeupNew,
}

#[derive(Clone, Copy)]
pub(super) enum SoftirqForm {
    Raise,
    Entry,
    Exit,
}

/// A task by three fields.
#[derive(Clone, Copy)]
pub(super) struct Task {
    comm: Option<FieldId>,
    tid: FieldId,
    prio: Option<FieldId>,
    /// LTTng writes priorities on a scale of its own.
    is_lttng: bool,
}

impl Task {
    fn bind(class: &EventClass, prefix: &str) -> Option<Task> {
        let field = |name: &str| class.field_in(Scope::Payload, &format!("{prefix}{name}"));
        let of_lttng = field("tid");
        Some(Task {
            comm: field("comm"),
            tid: of_lttng.or_else(|| field("pid"))?,
            prio: field("prio"),
            is_lttng: of_lttng.is_some(),
        })
    }

    pub fn tid(self, event: &EventView<'_>) -> i32 {
        event.i64(self.tid) as i32
    }

    fn comm(self, event: &EventView<'_>) -> Option<String> {
        self.comm.map(|comm| text(event, comm))
    }

    fn prio(self, event: &EventView<'_>) -> Option<i32> {
        self.prio.map(|prio| self.prio_in(event, prio))
    }

    /// On the kernel's scale, as ftrace prints it.
    fn prio_in(self, event: &EventView<'_>, field: FieldId) -> i32 {
        let value = event.i64(field) as i32;
        match self.is_lttng {
            true => Prio::from_lttng(value).0,
            false => value,
        }
    }
}

pub(super) fn text(event: &EventView<'_>, field: FieldId) -> String {
    String::from_utf8_lossy(event.text(field)).into_owned()
}

impl Class {
    pub fn new(class: &EventClass, trace: &Trace) -> Class {
        let environment = trace.environment_of(class.id);
        let is_user = environment
            .get("domain")
            .is_some_and(|domain| domain == "ust")
            || (environment.get("domain").is_none() && class.name.contains(':'));
        let role = match is_user {
            true => {
                let provider = class.name.split(':').next().unwrap_or_default();
                Role::User(provider.to_owned())
            }
            false => kernel_role(class).unwrap_or(Role::Kernel),
        };
        let context = |names: [&str; 2]| {
            let field = |name: &str| {
                let scopes = [Scope::StreamContext, Scope::EventContext];
                scopes
                    .into_iter()
                    .find_map(|scope| class.field_in(scope, name))
            };
            names.into_iter().find_map(field)
        };
        Class {
            role,
            thread: ThreadFields {
                tid: context(["vtid", "tid"]),
                pid: context(["vpid", "pid"]),
                name: context(["procname", "comm"]),
            },
        }
    }
}

fn kernel_role(class: &EventClass) -> Option<Role> {
    let field = |name: &str| class.field_in(Scope::Payload, name);
    let name = class.name.as_str();
    let ftrace = match name {
        "sched_switch" => Ftrace::Switch {
            prev: Task::bind(class, "prev_")?,
            state: field("prev_state"),
            next: Task::bind(class, "next_")?,
        },
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => Ftrace::Waking {
            form: match name {
                "sched_waking" => WakeForm::Waking,
                "sched_wakeup" => WakeForm::Wakeup,
                _ => WakeForm::WakeupNew,
            },
            task: Task::bind(class, "")?,
            target_cpu: field("target_cpu"),
        },
        "sched_migrate_task" => Ftrace::Changed(Changed::Migrate {
            task: Task::bind(class, "")?,
            from: field("orig_cpu"),
            to: field("dest_cpu"),
        }),
        "sched_pi_setprio" => Ftrace::Changed(Changed::PiSetprio {
            task: Task::bind(class, "")?,
            old: field("oldprio")?,
            new: field("newprio")?,
        }),
        "task_rename" => Ftrace::Changed(Changed::Rename {
            tid: field("tid").or_else(|| field("pid"))?,
            old: field("oldcomm"),
            new: field("newcomm")?,
        }),
        "irq_handler_entry" => Ftrace::IrqEntry {
            irq: field("irq")?,
            name: field("name"),
        },
        "irq_handler_exit" => Ftrace::IrqExit {
            irq: field("irq")?,
            ret: field("ret"),
        },
        "lttng_statedump_process_state" => {
            return Some(Role::Process {
                tid: field("tid")?,
                pid: field("pid")?,
                name: field("name"),
            });
        }
        name => match name.strip_prefix("irq_").unwrap_or(name) {
            "softirq_raise" => softirq(SoftirqForm::Raise, field("vec")?),
            "softirq_entry" => softirq(SoftirqForm::Entry, field("vec")?),
            "softirq_exit" => softirq(SoftirqForm::Exit, field("vec")?),
            _ => return syscall_role(name),
        },
    };
    Some(Role::Ftrace(ftrace))
}

fn softirq(form: SoftirqForm, vec: FieldId) -> Ftrace {
    Ftrace::Softirq { form, vec }
}

/// `syscall_entry_read` of LTTng, `sys_enter_read` of ftrace.
fn syscall_role(name: &str) -> Option<Role> {
    let after = |prefixes: [&str; 2]| prefixes.into_iter().find_map(|p| name.strip_prefix(p));
    if let Some(call) = after(["syscall_entry_", "sys_enter_"]) {
        return Some(Role::SyscallEntry(call.to_owned()));
    }
    after(["syscall_exit_", "sys_exit_"]).map(|_| Role::SyscallExit)
}

impl Ftrace {
    /// The event as Perfetto has it; `running` is the thread on its CPU.
    pub fn event(&self, event: &EventView<'_>, time: u64, running: Option<i32>) -> FtraceEvent {
        let mut out = FtraceEvent {
            timestamp: Some(time),
            pid: running.and_then(|tid| u32::try_from(tid).ok()),
            ..FtraceEvent::default()
        };
        match self {
            Ftrace::Switch { prev, state, next } => {
                out.pid = u32::try_from(prev.tid(event)).ok();
                out.sched_switch = Some(SchedSwitch {
                    prev_comm: prev.comm(event),
                    prev_pid: Some(prev.tid(event)),
                    prev_prio: prev.prio(event),
                    prev_state: state.map(|state| event.i64(state)),
                    next_comm: next.comm(event),
                    next_pid: Some(next.tid(event)),
                    next_prio: next.prio(event),
                });
            }
            Ftrace::Waking {
                form,
                task,
                target_cpu,
            } => {
                let waking = Some(SchedWaking {
                    comm: task.comm(event),
                    pid: Some(task.tid(event)),
                    prio: task.prio(event),
                    success: Some(1),
                    target_cpu: target_cpu.map(|cpu| event.i64(cpu) as i32),
                });
                match form {
                    WakeForm::Waking => out.sched_waking = waking,
                    WakeForm::Wakeup => out.sched_wakeup = waking,
                    WakeForm::WakeupNew => out.sched_wakeup_new = waking,
                }
            }
            Ftrace::Softirq { form, vec } => {
                let softirq = Some(Softirq {
                    vec: Some(event.u64(*vec) as u32),
                });
                match form {
                    SoftirqForm::Raise => out.softirq_raise = softirq,
                    SoftirqForm::Entry => out.softirq_entry = softirq,
                    SoftirqForm::Exit => out.softirq_exit = softirq,
                }
            }
            Ftrace::IrqEntry { irq, name } => {
                out.irq_handler_entry = Some(IrqEntry {
                    irq: Some(event.i64(*irq) as i32),
                    name: name.map(|name| text(event, name)),
                });
            }
            Ftrace::IrqExit { irq, ret } => {
                out.irq_handler_exit = Some(IrqExit {
                    irq: Some(event.i64(*irq) as i32),
                    ret: ret.map(|ret| event.i64(ret) as i32),
                });
            }
            Ftrace::Changed(changed) => changed.write(event, &mut out),
        }
        out
    }
}

impl Changed {
    fn write(&self, event: &EventView<'_>, out: &mut FtraceEvent) {
        match self {
            Changed::Migrate { task, from, to } => {
                let cpu = |field: &FieldId| event.i64(*field) as i32;
                out.sched_migrate_task = Some(SchedMigrateTask {
                    comm: task.comm(event),
                    pid: Some(task.tid(event)),
                    prio: task.prio(event),
                    orig_cpu: from.as_ref().map(cpu),
                    dest_cpu: to.as_ref().map(cpu),
                });
            }
            Changed::PiSetprio { task, old, new } => {
                out.sched_pi_setprio = Some(SchedPiSetprio {
                    comm: task.comm(event),
                    newprio: Some(task.prio_in(event, *new)),
                    oldprio: Some(task.prio_in(event, *old)),
                    pid: Some(task.tid(event)),
                });
            }
            Changed::Rename { tid, old, new } => {
                out.task_rename = Some(TaskRename {
                    pid: Some(event.i64(*tid) as i32),
                    oldcomm: old.map(|old| text(event, old)),
                    newcomm: Some(text(event, *new)),
                });
            }
        }
    }
}
