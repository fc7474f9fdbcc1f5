//! What a watch saw of its targets beside what they wait for: stops, releases, moments, steal.

use event::{Cpu, Instant, TimeRange, Value};
use trace::{LossCause, Lost, LostFrom};

use super::{SyntheticTrace, Task, frames, int, text};

/// Bits of a moment's flags, as in `docs/format/evidence.md`.
pub mod moment {
    /// A thread of the kernel's.
    pub const KERNEL_THREAD: u64 = 1;
    /// A deadline server ran it.
    pub const SERVED: u64 = 2;
    /// Its group had used up its quota.
    pub const QUOTA: u64 = 4;
}

fn task_fields(task: Task) -> [(&'static str, Value<'static>); 3] {
    [
        ("tid", int(task.tid)),
        ("prio", Value::Signed(task.lttng_prio())),
        ("comm", text(task.comm)),
    ]
}

impl SyntheticTrace {
    /// What the watch saw on `cpu`, or on all CPUs, between two instants cannot be read.
    pub fn evidence_lost(mut self, cpu: Option<u32>, begin_us: i64, end_us: i64) -> Self {
        self.trace.losses.push(Lost {
            cpu: cpu.map(Cpu),
            range: TimeRange {
                begin: Instant::from_ns(begin_us * 1_000),
                end: Instant::from_ns(end_us * 1_000),
            },
            count: None,
            cause: LossCause::Damaged,
            from: LostFrom::Evidence,
        });
        self
    }

    /// Evidence: as [`SyntheticTrace::hit`], of a task that still waits for the CPU that `running`
    /// has.
    pub fn hit_waiting(
        self,
        id: u64,
        task: Task,
        running: Task,
        steps: &[(i64, u8, u32, i32)],
    ) -> Self {
        self.hit_ended((id, 3), task, running, steps, (&[], 0))
    }

    /// The same of a watch that asks for nothing but tasks that still wait.
    pub fn hit_without_threshold(
        self,
        id: u64,
        task: Task,
        running: Task,
        steps: &[(i64, u8, u32, i32)],
    ) -> Self {
        self.hit_ended((id, 4), task, running, steps, (&[], 0))
    }

    /// Evidence: a hit that ends now, over a threshold of 1 ms, as its task blocks.
    pub fn hit_blocked(
        self,
        id: u64,
        task: Task,
        culprit: Task,
        steps: &[(i64, u8, u32, i32)],
    ) -> Self {
        self.hit_ended((id, 2), task, culprit, steps, (&[], 0))
    }

    /// Evidence: as [`SyntheticTrace::hit`], which took `cost_us` of its CPU.
    pub fn hit_at_cost(
        self,
        id: u64,
        task: Task,
        culprit: Task,
        steps: &[(i64, u8, u32, i32)],
        cost_us: u64,
    ) -> Self {
        self.hit_ended((id, 0), task, culprit, steps, (&[], cost_us * 1_000))
    }

    /// Evidence: a task of a hit as it is now, in this role (0 target, 1 running, 2 waker), with
    /// the bits of [`moment`].
    pub fn moment(self, task: Task, role: i64, flags: u64) -> Self {
        self.moment_of_policy(task, role, flags, 0)
    }

    /// The same with the task's policy, as the kernel numbers them.
    pub fn moment_of_policy(self, task: Task, role: i64, flags: u64, policy: u64) -> Self {
        self.moment_since((task, task), role, flags, policy)
    }

    /// The same of a task that was another one when it came, by its priority.
    pub fn moment_since(
        self,
        (came, task): (Task, Task),
        role: i64,
        flags: u64,
        policy: u64,
    ) -> Self {
        let mut fields = task_fields(task).to_vec();
        fields.extend([
            ("role", Value::Signed(role)),
            ("policy", Value::Unsigned(policy)),
            ("came_prio", Value::Signed(came.lttng_prio())),
            ("came_policy", Value::Unsigned(policy)),
            ("flags", Value::Unsigned(flags)),
        ]);
        self.event("rtscope_moment", &fields)
    }

    /// Evidence: `task` is stopped now, in this way (0 by a signal, 1 for its tracer, 2 frozen).
    pub fn stopped(self, task: Task, how: i64, by: Option<Task>) -> Self {
        self.stopped_asleep(task, how, by, 0)
    }

    /// The same of one that slept: 1 until an instant, 2 for an event.
    pub fn stopped_asleep(self, task: Task, how: i64, by: Option<Task>, asleep: i64) -> Self {
        let (tid, prio, comm) = match by {
            Some(by) => (by.tid, by.lttng_prio(), by.comm),
            None => (-1, 0, ""),
        };
        let mut fields = task_fields(task).to_vec();
        fields.extend([
            ("how", Value::Signed(how)),
            ("by_tid", int(tid)),
            ("by_prio", Value::Signed(prio)),
            ("by_comm", text(comm)),
            ("signal", Value::Unsigned(if how == 0 { 19 } else { 0 })),
            ("asleep", Value::Signed(asleep)),
        ]);
        self.event("rtscope_stopped", &fields)
    }

    /// Evidence: `task` was due at `release_us`, because it was busy (0) or allowed its timer this
    /// slack (1).
    pub fn released(self, release_us: i64, task: Task, why: i64, slack_us: i64) -> Self {
        let mut fields = task_fields(task).to_vec();
        fields.extend([
            ("release_ns", Value::Signed(release_us * 1_000)),
            ("previous_ns", Value::Signed(0)),
            ("slack_ns", Value::Signed(slack_us * 1_000)),
            ("why", Value::Signed(why)),
        ]);
        self.event("rtscope_released", &fields)
    }

    /// Evidence: a timer's interrupt finds `task` at its own work now, in this user code.
    pub fn worked(self, task: Task, stack: &[&'static str]) -> Self {
        self.worked_in_kernel(task, stack, &[])
    }

    /// The same in the kernel, which works for that code.
    pub fn worked_in_kernel(
        self,
        task: Task,
        stack: &[&'static str],
        kernel: &[&'static str],
    ) -> Self {
        let mut fields = task_fields(task).to_vec();
        let stacks = [("stack", frames(stack)), ("kernel", frames(kernel))];
        fields.push(("pid", int(task.tid)));
        fields.extend(stacks);
        self.event("rtscope_worked", &fields)
    }

    /// Evidence: the hypervisor took so much of this CPU between `begin_us` and now.
    pub fn steal(self, begin_us: i64, steal_us: i64) -> Self {
        self.event(
            "rtscope_steal",
            &[
                ("begin_ns", Value::Signed(begin_us * 1_000)),
                ("steal_ns", Value::Signed(steal_us * 1_000)),
            ],
        )
    }

    /// Evidence: as [`SyntheticTrace::preemption_off`] under no preemption, with what the watch saw
    /// of it meanwhile: bit 0 that a deadline server ran it, bit 1 that it was in user code.
    pub fn kept_with(self, begin_us: i64, task: Task, flags: u64) -> Self {
        let delay_ns = self.now_ns - begin_us * 1_000;
        let mut fields = task_fields(task).to_vec();
        fields.extend([
            ("begin_ns", Value::Signed(begin_us * 1_000)),
            ("delay_ns", Value::Signed(delay_ns)),
            ("model", Value::Signed(1)),
            ("stack", Value::Array(vec![])),
            ("flags", Value::Unsigned(flags)),
        ]);
        self.event("rtscope_preemption_off", &fields)
    }

    /// What a watch read of a control group of `task`: `level` groups lie between it and the task's
    /// own; its weight (file, value, what others have), whether it has a quota and for how many
    /// microseconds it was out of that, its memory (file, limit and use in bytes).
    pub fn group_limits(
        self,
        task: Task,
        (level, folder): (u64, &'static str),
        weight: (&'static str, u64, u64),
        (has_quota, throttled_us): (bool, u64),
        memory: (&'static str, u64, u64),
    ) -> Self {
        let fields = [
            ("tid", int(task.tid)),
            ("level", Value::Unsigned(level)),
            ("folder", text(folder)),
            ("weight_file", text(weight.0)),
            ("weight", Value::Unsigned(weight.1)),
            ("weight_usual", Value::Unsigned(weight.2)),
            ("has_quota", Value::Unsigned(has_quota.into())),
            ("throttled_ns", Value::Unsigned(throttled_us * 1_000)),
            ("memory_file", text(memory.0)),
            ("memory_limit_bytes", Value::Unsigned(memory.1)),
            ("memory_used_bytes", Value::Unsigned(memory.2)),
        ];
        self.event("rtscope_group_limits", &fields)
    }
}
