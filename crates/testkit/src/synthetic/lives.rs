//! What a scheduler does beside switches and wake-ups: tasks begin, end and change; and losses on
//! any CPUs, to the nanosecond.

use event::{Cpu, Instant, TimeRange, Value};
use trace::{LossCause, Lost, LostFrom};

use super::{SyntheticTrace, Task, int, text};

/// `prev_state` of a task that ended and is waited for by its parent (`EXIT_ZOMBIE`).
const ZOMBIE: i64 = 0x20;
/// `prev_state` of a sleep that no signal ends (`TASK_UNINTERRUPTIBLE`).
const UNINTERRUPTIBLE: i64 = 2;

impl SyntheticTrace {
    /// The machine has so many CPUs.
    pub fn cpus(mut self, count: u32) -> Self {
        self.trace.info.cpus = (0..count).map(Cpu).collect();
        self
    }

    /// The trace says that it has a stream of this CPU too.
    pub fn also_of_cpu(mut self, cpu: u32) -> Self {
        self.trace.info.cpus.push(Cpu(cpu));
        self
    }

    /// `prev` sleeps and no signal wakes it, `next` is scheduled in.
    pub fn block_uninterruptible(self, prev: Task, next: Task) -> Self {
        self.switch(prev, UNINTERRUPTIBLE, next)
    }

    /// `prev` leaves with this state of the kernel's, `next` is scheduled in.
    pub fn leave(self, prev: Task, prev_state: i64, next: Task) -> Self {
        self.switch(prev, prev_state, next)
    }

    /// Some timer's callback, which wakes nobody: the trace shows what interrupts tasks.
    pub fn shows_timers(self) -> Self {
        self.hrtimer_expire(0x5eed).hrtimer_done(0x5eed)
    }

    /// `prev` leaves for good, `next` is scheduled in.
    pub fn end(self, prev: Task, next: Task) -> Self {
        self.switch(prev, ZOMBIE, next)
    }

    /// `sched_process_exit`: the task begins to end.
    pub fn exit(self, task: Task) -> Self {
        self.event(
            "sched_process_exit",
            &[
                ("comm", text(task.comm)),
                ("tid", int(task.tid)),
                ("prio", Value::Signed(task.lttng_prio())),
            ],
        )
    }

    /// `sched_process_fork`: `parent` makes `child`, a process of its own.
    pub fn fork(self, parent: Task, child: Task) -> Self {
        self.fork_into(parent, child, child.tid)
    }

    /// The same of a thread of `parent`'s process, whose first one that is.
    pub fn fork_thread(self, parent: Task, child: Task) -> Self {
        self.fork_into(parent, child, parent.tid)
    }

    fn fork_into(self, parent: Task, child: Task, child_pid: i32) -> Self {
        self.event(
            "sched_process_fork",
            &[
                ("parent_comm", text(parent.comm)),
                ("parent_tid", int(parent.tid)),
                ("parent_pid", int(parent.tid)),
                ("child_comm", text(child.comm)),
                ("child_tid", int(child.tid)),
                ("child_pid", int(child_pid)),
            ],
        )
    }

    /// `sched_wakeup_new`: a task that was just made may run.
    pub fn wakeup_new(self, task: Task, target: u32) -> Self {
        self.wake_event("sched_wakeup_new", task, target)
    }

    /// The task has another name from now on.
    pub fn rename(self, task: Task, name: &'static str) -> Self {
        self.event(
            "task_rename",
            &[
                ("tid", int(task.tid)),
                ("oldcomm", text(task.comm)),
                ("newcomm", text(name)),
                ("oom_score_adj", int(0)),
            ],
        )
    }

    /// The task runs another program, and has its name from now on.
    pub fn exec(self, task: Task, name: &str) -> Self {
        let fields = [
            ("filename", Value::Text(format!("/usr/bin/{name}").into())),
            ("tid", int(task.tid)),
            ("old_tid", int(task.tid)),
        ];
        self.event("sched_process_exec", &fields)
    }

    /// The task inherits the priority `prio`, on the kernel's scale.
    pub fn boost(self, task: Task, prio: i32) -> Self {
        let new = Task { prio, ..task };
        self.event(
            "sched_pi_setprio",
            &[
                ("comm", text(task.comm)),
                ("tid", int(task.tid)),
                ("oldprio", Value::Signed(task.lttng_prio())),
                ("newprio", Value::Signed(new.lttng_prio())),
            ],
        )
    }

    /// The task on the CPU calls the kernel.
    pub fn call(self, name: &str) -> Self {
        self.event(&format!("syscall_entry_{name}"), &[])
    }

    /// A program of 32 bits calls the kernel, and is back after so many microseconds.
    pub fn call_of_32_bits(self, name: &str, length_us: i64) -> Self {
        let called = self.event(&format!("compat_syscall_entry_{name}"), &[]);
        let ret = ("ret", Value::Signed(0));
        let exit = format!("compat_syscall_exit_{name}");
        called.after(length_us).event(&exit, &[ret])
    }

    /// The call returns.
    pub fn call_end(self, name: &str) -> Self {
        let ret = ("ret", Value::Signed(0));
        self.event(&format!("syscall_exit_{name}"), &[ret])
    }

    /// Events of `cpu`, or of all CPUs, were lost between two instants in nanoseconds.
    pub fn lost_on(mut self, cpu: Option<u32>, begin_ns: i64, end_ns: i64) -> Self {
        self.trace.losses.push(Lost {
            cpu: cpu.map(Cpu),
            range: TimeRange {
                begin: Instant::from_ns(begin_ns),
                end: Instant::from_ns(end_ns),
            },
            count: None,
            cause: LossCause::Discarded,
            from: LostFrom::Recording,
        });
        self
    }
}
