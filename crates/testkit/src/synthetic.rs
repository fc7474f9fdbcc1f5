//! Traces written by hand: each test says in events what happened, then claims what is found.

use event::{
    ClassId, Cpu, EventClass, Field, FieldType, Instant, Integer, Scope, TimeRange, Value,
};
use trace::{LossCause, Lost, LostFrom, MemoryEvent, MemoryTrace, Trace};

mod faces;
mod lives;
mod watched;

pub use watched::moment;

/// A task of a synthetic trace. Priorities are on the kernel's internal scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Thread id.
    pub tid: i32,
    /// Name.
    pub comm: &'static str,
    /// Priority, 0 to 139.
    pub prio: i32,
}

impl Task {
    /// The idle task.
    pub const IDLE: Task = Task {
        tid: 0,
        comm: "swapper",
        prio: 120,
    };

    /// A real-time task of priority `rt`, 1 to 99, as `chrt` takes it.
    pub const fn rt(tid: i32, comm: &'static str, rt: i32) -> Task {
        Task {
            tid,
            comm,
            prio: 99 - rt,
        }
    }

    /// A fair task of nice 0.
    pub const fn fair(tid: i32, comm: &'static str) -> Task {
        Task {
            tid,
            comm,
            prio: 120,
        }
    }

    /// A fair task of this nice value, -20 to 19.
    pub const fn nice(tid: i32, comm: &'static str, nice: i32) -> Task {
        Task {
            tid,
            comm,
            prio: 120 + nice,
        }
    }

    fn lttng_prio(self) -> i64 {
        i64::from(self.prio) - 100
    }
}

/// Builds a trace event by event, with a clock and a CPU that each call sets for those after it.
#[derive(Clone, Debug, Default)]
pub struct SyntheticTrace {
    trace: MemoryTrace,
    now_ns: i64,
    cpu: u32,
    /// The task that events are said to be of.
    current: Option<i32>,
}

impl SyntheticTrace {
    /// An empty trace of two CPUs, at time zero on CPU 0.
    pub fn new() -> Self {
        let mut synthetic = SyntheticTrace::default();
        synthetic.trace.info.cpus = vec![Cpu(0), Cpu(1)];
        synthetic
    }

    /// Sets the clock, in microseconds.
    pub fn at(self, us: i64) -> Self {
        self.at_ns(us * 1_000)
    }

    /// Sets the clock, in nanoseconds.
    pub fn at_ns(mut self, ns: i64) -> Self {
        self.now_ns = ns;
        self
    }

    /// Moves the clock on, in microseconds.
    pub fn after(mut self, us: i64) -> Self {
        self.now_ns += us * 1_000;
        self
    }

    /// Sets the CPU.
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.cpu = cpu;
        self
    }

    /// The tracer says with each event from here on which task has its CPU; all events of a name
    /// say so, or none.
    pub fn in_task(mut self, tid: Option<i32>) -> Self {
        self.current = tid;
        self
    }

    /// Adds a fact of the machine.
    pub fn environment(mut self, key: &str, value: &str) -> Self {
        self.trace
            .info
            .environment
            .insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds any event; its class is the name with these fields.
    pub fn event(mut self, name: &str, fields: &[(&str, Value<'static>)]) -> Self {
        let class = self.class(name, fields);
        let values = fields.iter().map(|(_, value)| value.clone());
        self.trace.events.push(MemoryEvent {
            time: Instant::from_ns(self.now_ns),
            cpu: Some(Cpu(self.cpu)),
            class,
            values: values.chain(self.current.map(int)).collect(),
        });
        self
    }

    /// Declares a class of which no event comes.
    pub fn declare(mut self, name: &str, fields: &[(&str, Value<'static>)]) -> Self {
        self.class(name, fields);
        self
    }

    fn class(&mut self, name: &str, fields: &[(&str, Value<'static>)]) -> ClassId {
        if let Some(class) = self.trace.classes.iter().find(|class| class.name == name) {
            return class.id;
        }
        let id = ClassId(self.trace.classes.len() as u32);
        let field = |(name, value): &(&str, Value<'static>)| Field::payload(*name, ty(value));
        let current = self.current.map(|tid| Field {
            scope: Scope::StreamContext,
            ..Field::payload("tid", ty(&int(tid)))
        });
        self.trace.classes.push(EventClass {
            id,
            name: name.to_owned(),
            stream: 0,
            fields: fields.iter().map(field).chain(current).collect(),
        });
        id
    }

    fn switch(self, prev: Task, prev_state: i64, next: Task) -> Self {
        self.event(
            "sched_switch",
            &[
                ("prev_comm", text(prev.comm)),
                ("prev_tid", int(prev.tid)),
                ("prev_prio", Value::Signed(prev.lttng_prio())),
                ("prev_state", Value::Signed(prev_state)),
                ("next_comm", text(next.comm)),
                ("next_tid", int(next.tid)),
                ("next_prio", Value::Signed(next.lttng_prio())),
            ],
        )
    }

    /// `prev` blocks, `next` is scheduled in.
    pub fn block(self, prev: Task, next: Task) -> Self {
        self.switch(prev, 1, next)
    }

    /// `prev` blocks uninterruptibly, as for a device, `next` is scheduled in.
    pub fn block_for_device(self, prev: Task, next: Task) -> Self {
        self.switch(prev, 2, next)
    }

    /// `prev` is preempted while runnable, `next` is scheduled in.
    pub fn preempt(self, prev: Task, next: Task) -> Self {
        self.switch(prev, 0x100, next)
    }

    /// The idle task leaves, `next` is scheduled in.
    pub fn run(self, next: Task) -> Self {
        self.switch(Task::IDLE, 0, next)
    }

    fn wake_event(self, name: &str, task: Task, target: u32) -> Self {
        self.event(
            name,
            &[
                ("comm", text(task.comm)),
                ("tid", int(task.tid)),
                ("prio", Value::Signed(task.lttng_prio())),
                ("target_cpu", Value::Signed(i64::from(target))),
            ],
        )
    }

    /// `sched_waking`.
    pub fn waking(self, task: Task, target: u32) -> Self {
        self.wake_event("sched_waking", task, target)
    }

    /// `sched_wakeup`.
    pub fn wakeup(self, task: Task, target: u32) -> Self {
        self.wake_event("sched_wakeup", task, target)
    }

    /// A wake-up on this CPU: `sched_waking`, and `sched_wakeup` a microsecond later.
    pub fn wake(self, task: Task) -> Self {
        let cpu = self.cpu;
        self.wake_for(task, cpu)
    }

    /// The same for the run queue of CPU `target`.
    pub fn wake_for(self, task: Task, target: u32) -> Self {
        self.waking(task, target).after(1).wakeup(task, target)
    }

    /// The task is moved from this CPU's run queue to that of CPU `dest`.
    pub fn migrate(self, task: Task, dest: u32) -> Self {
        let orig = self.cpu;
        self.migrate_from(task, orig, dest)
    }

    /// The task is moved from the run queue of CPU `orig` to that of `dest`.
    pub fn migrate_from(self, task: Task, orig: u32, dest: u32) -> Self {
        self.event(
            "sched_migrate_task",
            &[
                ("comm", text(task.comm)),
                ("tid", int(task.tid)),
                ("prio", Value::Signed(task.lttng_prio())),
                ("orig_cpu", Value::Signed(i64::from(orig))),
                ("dest_cpu", Value::Signed(i64::from(dest))),
            ],
        )
    }

    /// A device's interrupt handler begins.
    pub fn irq(self, irq: i32, name: &'static str) -> Self {
        self.event(
            "irq_handler_entry",
            &[("irq", int(irq)), ("name", text(name))],
        )
    }

    /// A device's interrupt handler ends.
    pub fn irq_end(self, irq: i32) -> Self {
        self.event("irq_handler_exit", &[("irq", int(irq)), ("ret", int(1))])
    }

    /// A device's interrupt handler ends and hands on to its thread.
    pub fn irq_end_to_thread(self, irq: i32) -> Self {
        self.event("irq_handler_exit", &[("irq", int(irq)), ("ret", int(2))])
    }

    /// The local timer's interrupt begins.
    pub fn timer_irq(self) -> Self {
        self.event("x86_irq_vectors_local_timer_entry", &[("vector", int(236))])
    }

    /// The local timer's interrupt ends.
    pub fn timer_irq_end(self) -> Self {
        self.event("x86_irq_vectors_local_timer_exit", &[("vector", int(236))])
    }

    /// A softirq is raised.
    pub fn softirq_raise(self, vec: i32) -> Self {
        self.event("irq_softirq_raise", &[("vec", int(vec))])
    }

    /// A softirq's handler begins.
    pub fn softirq(self, vec: i32) -> Self {
        self.event("irq_softirq_entry", &[("vec", int(vec))])
    }

    /// A softirq's handler ends.
    pub fn softirq_end(self, vec: i32) -> Self {
        self.event("irq_softirq_exit", &[("vec", int(vec))])
    }

    /// A timer is started, to expire at `expires_us`.
    pub fn hrtimer_start(self, hrtimer: u64, expires_us: i64) -> Self {
        self.hrtimer_start_with_slack(hrtimer, expires_us, expires_us)
    }

    /// The same of one that may run from `soft_us` on.
    pub fn hrtimer_start_with_slack(self, hrtimer: u64, soft_us: i64, expires_us: i64) -> Self {
        let expires = Value::Signed(expires_us * 1_000);
        let soft = Value::Signed(soft_us * 1_000);
        let timer = Value::Unsigned(hrtimer);
        self.event(
            "timer_hrtimer_start",
            &[
                ("hrtimer", timer),
                ("expires", expires),
                ("softexpires", soft),
            ],
        )
    }

    /// A timer's callback begins.
    pub fn hrtimer_expire(self, hrtimer: u64) -> Self {
        let now = Value::Signed(self.now_ns);
        self.event(
            "timer_hrtimer_expire_entry",
            &[("hrtimer", Value::Unsigned(hrtimer)), ("now", now)],
        )
    }

    /// A timer is cancelled.
    pub fn hrtimer_cancel(self, hrtimer: u64) -> Self {
        self.event(
            "timer_hrtimer_cancel",
            &[("hrtimer", Value::Unsigned(hrtimer))],
        )
    }

    /// A timer's callback ends.
    pub fn hrtimer_done(self, hrtimer: u64) -> Self {
        self.event(
            "timer_hrtimer_expire_exit",
            &[("hrtimer", Value::Unsigned(hrtimer))],
        )
    }

    /// The running task calls `futex` on one word: what it does, the value that it waits for, and
    /// its time-out.
    pub fn futex(self, (operation, value, timeout): (i64, u64, u64)) -> Self {
        self.event(
            "syscall_entry_futex",
            &[
                ("uaddr", Value::Unsigned(0x7f00_1000)),
                ("op", Value::Signed(operation)),
                ("val", Value::Unsigned(value)),
                ("utime", Value::Unsigned(timeout)),
            ],
        )
    }

    /// It returns.
    pub fn futex_end(self) -> Self {
        self.event("syscall_exit_futex", &[("ret", Value::Signed(0))])
    }

    /// An NMI handler ends that took `us` microseconds.
    pub fn nmi(self, us: i64) -> Self {
        self.event("nmi_handler", &[("delta_ns", Value::Signed(us * 1_000))])
    }

    /// Evidence: the timer whose handler begins now expired at `expiry_us` and interrupted `task`
    /// in `mode` (0 kernel, 1 user, 2 idle, 3 enabled), with this stack, innermost first.
    pub fn late_timer(
        self,
        expiry_us: i64,
        task: Task,
        mode: i64,
        steal_us: i64,
        stack: &[&'static str],
    ) -> Self {
        self.late_timer_in_row(expiry_us, task, mode, steal_us, stack, 0)
    }

    /// The same behind the first of a row of interrupts: bit i of `came_on` says that interrupts
    /// may have come on right before frame i of `stack`.
    pub fn late_timer_in_row(
        self,
        expiry_us: i64,
        task: Task,
        mode: i64,
        steal_us: i64,
        stack: &[&'static str],
        came_on: u32,
    ) -> Self {
        let lateness_ns = self.now_ns - expiry_us * 1_000;
        self.event(
            "rtscope_late_timer",
            &[
                ("expiry_ns", Value::Signed(expiry_us * 1_000)),
                ("lateness_ns", Value::Signed(lateness_ns)),
                ("interrupted_tid", int(task.tid)),
                ("interrupted_prio", Value::Signed(task.lttng_prio())),
                ("interrupted_comm", text(task.comm)),
                ("mode", Value::Signed(mode)),
                ("steal_ns", Value::Signed(steal_us * 1_000)),
                ("stack", frames(stack)),
                ("came_on", Value::Unsigned(u64::from(came_on))),
            ],
        )
    }

    /// Evidence: `task` kept the CPU from `begin_us` until now, under this preemption model.
    pub fn preemption_off(
        self,
        begin_us: i64,
        task: Task,
        model: i64,
        stack: &[&'static str],
    ) -> Self {
        let delay_ns = self.now_ns - begin_us * 1_000;
        self.event(
            "rtscope_preemption_off",
            &[
                ("begin_ns", Value::Signed(begin_us * 1_000)),
                ("delay_ns", Value::Signed(delay_ns)),
                ("tid", int(task.tid)),
                ("prio", Value::Signed(task.lttng_prio())),
                ("comm", text(task.comm)),
                ("model", Value::Signed(model)),
                ("stack", frames(stack)),
            ],
        )
    }

    /// Evidence: `task` blocks now inside its activation, on what has this value in
    /// `docs/format/evidence.md`, with the lock's owner if there is one.
    pub fn blocked(self, task: Task, on: i64, owner: Option<Task>, stack: &[&'static str]) -> Self {
        self.blocked_at(0x1000, task, on, owner, stack)
    }

    /// The same with the lock's address.
    pub fn blocked_at(
        self,
        address: u64,
        task: Task,
        on: i64,
        owner: Option<Task>,
        stack: &[&'static str],
    ) -> Self {
        let (tid, prio, comm) = match owner {
            Some(owner) => (owner.tid, owner.lttng_prio(), owner.comm),
            None => (-1, 0, ""),
        };
        self.event(
            "rtscope_blocked",
            &[
                ("tid", int(task.tid)),
                ("prio", Value::Signed(task.lttng_prio())),
                ("comm", text(task.comm)),
                ("on", Value::Signed(on)),
                ("owner_tid", int(tid)),
                ("owner_prio", Value::Signed(prio)),
                ("owner_comm", text(comm)),
                ("lock", Value::Unsigned(address)),
                ("stack", frames(stack)),
            ],
        )
    }

    /// Evidence: the control group of `task` has used up its quota at `begin_us`.
    pub fn throttled(self, begin_us: i64, task: Task) -> Self {
        self.throttled_for(begin_us, 0, task)
    }

    /// The same, and that kept it for `kept_us`; 0: nobody knows how long.
    pub fn throttled_for(self, begin_us: i64, kept_us: i64, task: Task) -> Self {
        self.event(
            "rtscope_throttled",
            &[
                ("begin_ns", Value::Signed(begin_us * 1_000)),
                ("kept_ns", Value::Signed(kept_us * 1_000)),
                ("tid", int(task.tid)),
                ("prio", Value::Signed(task.lttng_prio())),
                ("comm", text(task.comm)),
            ],
        )
    }

    /// Evidence: a hit that ends now, over a threshold of 1 ms, as `do_burn` of the culprit is
    /// preempted, with steps of (time in ns, kind, CPU, id).
    pub fn hit(self, id: u64, task: Task, culprit: Task, steps: &[(i64, u8, u32, i32)]) -> Self {
        self.hit_woken_from(id, task, culprit, steps, &[])
    }

    /// The same with the stack of the waker at the last wake-up.
    pub fn hit_woken_from(
        self,
        id: u64,
        task: Task,
        culprit: Task,
        steps: &[(i64, u8, u32, i32)],
        waker_stack: &[&'static str],
    ) -> Self {
        self.hit_ended((id, 0), task, culprit, steps, (waker_stack, 0))
    }

    /// The same with the number and the kind of its end, and with what it took of its CPU.
    pub(super) fn hit_ended(
        self,
        (id, end_kind): (u64, u64),
        task: Task,
        culprit: Task,
        steps: &[(i64, u8, u32, i32)],
        (waker_stack, cost_ns): (&[&'static str], u64),
    ) -> Self {
        // Four: one that still waits, of a watch that asks for no others.
        let threshold_ns = if end_kind == 4 { i64::MAX } else { 1_000_000 };
        let end_kind = end_kind.min(3);
        let origin_ns = steps.first().map_or(self.now_ns, |step| step.0);
        let step = |(time_ns, kind, cpu, id): &(i64, u8, u32, i32)| {
            Value::Struct(vec![
                ("time_ns", Value::Signed(*time_ns)),
                ("kind", Value::Unsigned(u64::from(*kind))),
                ("cpu", Value::Unsigned(u64::from(*cpu))),
                ("id", int(*id)),
                ("prio", Value::Signed(task.lttng_prio())),
                ("comm", text(if *kind >= 7 { task.comm } else { "" })),
            ])
        };
        let end_ns = self.now_ns;
        self.event(
            "rtscope_hit",
            &[
                ("id", Value::Unsigned(id)),
                ("end_kind", Value::Unsigned(end_kind)),
                ("origin_ns", Value::Signed(origin_ns)),
                ("end_ns", Value::Signed(end_ns)),
                ("threshold_ns", Value::Signed(threshold_ns)),
                ("tid", int(task.tid)),
                ("prio", Value::Signed(task.lttng_prio())),
                ("comm", text(task.comm)),
                ("preemptions", int(0)),
                ("overflow", int(0)),
                ("flags", int(0)),
                ("culprit_tid", int(culprit.tid)),
                ("culprit_prio", Value::Signed(culprit.lttng_prio())),
                ("culprit_comm", text(culprit.comm)),
                ("steps", Value::Array(steps.iter().map(step).collect())),
                ("cost_ns", Value::Unsigned(cost_ns)),
                ("waker_stack", frames(waker_stack)),
                ("wakee_stack", frames(&[])),
                (
                    "culprit_stack",
                    frames(&["__schedule+0x1", "preempt_schedule+0x41", "do_burn+0x10"]),
                ),
            ],
        )
    }

    /// Events of the CPU were lost between two instants in microseconds.
    pub fn lost(mut self, begin_us: i64, end_us: i64) -> Self {
        self.trace.losses.push(Lost {
            cpu: Some(Cpu(self.cpu)),
            range: TimeRange {
                begin: Instant::from_ns(begin_us * 1_000),
                end: Instant::from_ns(end_us * 1_000),
            },
            count: Some(1),
            cause: LossCause::Discarded,
            from: LostFrom::Recording,
        });
        self
    }

    /// The trace.
    pub fn build(self) -> Trace {
        self.trace.into_trace()
    }
}

fn text(text: &'static str) -> Value<'static> {
    Value::Text(text.into())
}

fn int(value: i32) -> Value<'static> {
    Value::Signed(i64::from(value))
}

fn frames(symbols: &[&'static str]) -> Value<'static> {
    let frame = |symbol: &&'static str| {
        Value::Struct(vec![
            ("address", Value::Unsigned(1)),
            ("symbol", text(symbol)),
        ])
    };
    Value::Array(symbols.iter().map(frame).collect())
}

fn ty(value: &Value<'_>) -> FieldType {
    match value {
        Value::Text(_) => FieldType::String,
        Value::Array(elements) => FieldType::Sequence {
            element: elements.first().map_or(FieldType::String, ty).into(),
            length: String::new(),
        },
        Value::Struct(members) => {
            let field = |(name, value): &(&str, Value<'_>)| Field::payload(*name, ty(value));
            FieldType::Struct(members.iter().map(field).collect())
        }
        Value::Unsigned(_) => FieldType::Integer(Integer::le(64, false)),
        _ => FieldType::Integer(Integer::le(64, true)),
    }
}
