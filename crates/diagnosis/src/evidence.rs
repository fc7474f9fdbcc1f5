//! The evidence stream, decoded: what only the in-kernel watch saw. `docs/format/evidence.md`.

use event::evidence::{
    Blocked, BlockedOn, EndKind, Frame, Hit, LateTimer, Mode, PreemptionModel, PreemptionOff,
    Stack, Step, StepKind, TaskRef, Throttled,
};
use event::{Cpu, Duration, EventClass, Instant, Prio, Tid, Value};
use trace::EventView;

/// All evidence of a trace, each kind in time order.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub hits: Vec<Hit>,
    pub late_timers: Vec<LateTimer>,
    pub preemption_off: Vec<PreemptionOff>,
    pub blocked: Vec<Blocked>,
    pub throttled: Vec<Throttled>,
}

/// The fields of one event by name. Evidence is rare: clarity is worth the look-ups.
struct Fields<'a> {
    event: &'a EventView<'a>,
    class: &'a EventClass,
}

impl<'a> Fields<'a> {
    fn new(event: &'a EventView<'a>, classes: &'a [EventClass]) -> Option<Self> {
        Some(Fields {
            event,
            class: classes.get(event.class().0 as usize)?,
        })
    }

    fn i64(&self, name: &str) -> i64 {
        self.class
            .field(name)
            .map_or(0, |field| self.event.i64(field))
    }

    fn u32(&self, name: &str) -> u32 {
        self.i64(name) as u32
    }

    fn instant(&self, name: &str) -> Instant {
        Instant::from_ns(self.i64(name))
    }

    fn duration(&self, name: &str) -> Duration {
        Duration::from_ns(self.i64(name))
    }

    fn task(&self, prefix: &str) -> TaskRef {
        let text = self
            .class
            .field(&format!("{prefix}comm"))
            .map(|field| self.event.text(field));
        TaskRef {
            tid: Tid(self.i64(&format!("{prefix}tid")) as i32),
            comm: String::from_utf8_lossy(text.unwrap_or_default()).into_owned(),
            prio: Prio::from_lttng(self.i64(&format!("{prefix}prio")) as i32),
        }
    }

    fn elements<T>(&self, name: &str, each: impl Fn(&Value<'_>) -> Option<T>) -> Vec<T> {
        let value = self.class.field(name).map(|field| self.event.value(field));
        let elements = value.as_ref().and_then(Value::as_array).unwrap_or_default();
        elements.iter().filter_map(each).collect()
    }

    fn stack(&self, name: &str) -> Stack {
        self.elements(name, |frame| {
            let address = frame.member("address")?.as_u64()?;
            let symbol = frame
                .member("symbol")
                .and_then(Value::as_text)
                .unwrap_or_default();
            Some(Frame {
                address,
                symbol: symbol.to_owned(),
            })
        })
    }
}

fn step(value: &Value<'_>) -> Option<Step> {
    let number = |name: &str| value.member(name)?.as_i64();
    let comm = value
        .member("comm")
        .and_then(Value::as_text)
        .unwrap_or_default();
    Some(Step {
        time: Instant::from_ns(number("time_ns")?),
        kind: StepKind::from_value(u8::try_from(number("kind")?).ok()?)?,
        cpu: Cpu(number("cpu")? as u32),
        id: number("id")? as i32,
        prio: Prio::from_lttng(number("prio").unwrap_or(0) as i32),
        comm: comm.trim_end_matches('\0').to_owned(),
    })
}

impl Evidence {
    /// Adds an `rtscope_hit`; one of an unknown end kind is left out.
    pub fn add_hit(&mut self, event: &EventView<'_>, classes: &[EventClass]) {
        let Some(fields) = Fields::new(event, classes) else {
            return;
        };
        let end_kind = u8::try_from(fields.i64("end_kind"))
            .ok()
            .and_then(EndKind::from_value);
        let Some(end_kind) = end_kind else { return };
        let flags = fields.u32("flags");
        self.hits.push(Hit {
            id: fields.i64("id") as u64,
            end_kind,
            origin: fields.instant("origin_ns"),
            end: fields.instant("end_ns"),
            threshold: fields.duration("threshold_ns"),
            task: fields.task(""),
            preemptions: fields.u32("preemptions"),
            overflow: fields.u32("overflow"),
            stale: flags & 1 != 0,
            repaired: flags & 2 != 0,
            culprit: Some(fields.task("culprit_")).filter(|culprit| culprit.tid.0 >= 0),
            steps: fields.elements("steps", step),
            waker_stack: fields.stack("waker_stack"),
            wakee_stack: fields.stack("wakee_stack"),
            culprit_stack: fields.stack("culprit_stack"),
        });
    }

    /// Adds an `rtscope_late_timer`.
    pub fn add_late_timer(&mut self, cpu: Cpu, event: &EventView<'_>, classes: &[EventClass]) {
        let Some(fields) = Fields::new(event, classes) else {
            return;
        };
        let mut late = LateTimer {
            cpu,
            time: event.time(),
            expiry: fields.instant("expiry_ns"),
            lateness: fields.duration("lateness_ns"),
            hrtimer: fields.i64("hrtimer") as u64,
            function: fields.i64("function") as u64,
            interrupted: fields.task("interrupted_"),
            // User mode accuses nobody: the safe reading of a mode that is not known.
            mode: Mode::from_value(fields.i64("mode") as u8).unwrap_or(Mode::User),
            steal: fields.duration("steal_ns"),
            stack: fields.stack("stack"),
            came_on: fields.u32("came_on"),
        };
        begin_where_interrupts_came_on(&mut late);
        self.late_timers.push(late);
    }

    /// Adds an `rtscope_preemption_off`.
    pub fn add_preemption_off(&mut self, cpu: Cpu, event: &EventView<'_>, classes: &[EventClass]) {
        let Some(fields) = Fields::new(event, classes) else {
            return;
        };
        self.preemption_off.push(PreemptionOff {
            cpu,
            time: event.time(),
            begin: fields.instant("begin_ns"),
            delay: fields.duration("delay_ns"),
            task: fields.task(""),
            model: PreemptionModel::from_value(fields.i64("model") as u8).unwrap_or_default(),
            stack: fields.stack("stack"),
        });
    }

    /// Adds an `rtscope_blocked`; one of an unknown kind is left out.
    pub fn add_blocked(&mut self, cpu: Cpu, event: &EventView<'_>, classes: &[EventClass]) {
        let Some(fields) = Fields::new(event, classes) else {
            return;
        };
        let on = u8::try_from(fields.i64("on"));
        let Some(on) = on.ok().and_then(BlockedOn::from_value) else {
            return;
        };
        self.blocked.push(Blocked {
            cpu,
            time: event.time(),
            task: fields.task(""),
            on,
            owner: Some(fields.task("owner_")).filter(|owner| owner.tid.0 >= 0),
            lock: fields.i64("lock") as u64,
            stack: fields.stack("stack"),
        });
    }

    /// Adds an `rtscope_throttled`.
    pub fn add_throttled(&mut self, cpu: Cpu, event: &EventView<'_>, classes: &[EventClass]) {
        if let Some(fields) = Fields::new(event, classes) {
            self.throttled.push(Throttled {
                cpu,
                time: event.time(),
                begin: fields.instant("begin_ns"),
                task: fields.task(""),
            });
        }
    }
}

impl Evidence {
    /// What the hypervisor took from the CPU of late timer `place` between `begin` and `end`: at
    /// least, and at most. The kernel's clock of steal is read with each record: what passed since
    /// the record before may have passed at any time in between.
    pub fn steal_between(
        &self,
        place: usize,
        begin: Instant,
        end: Instant,
    ) -> (Duration, Duration) {
        let late = &self.late_timers[place];
        let mut earlier = self.late_timers[..place].iter().rev();
        let before = earlier.find(|other| other.cpu == late.cpu);
        let since = before.map_or(Instant::MIN, |before| before.time);
        let inside = end.min(late.time) - begin.max(since);
        let inside = inside.max(Duration::ZERO);
        let outside = (late.time - since) - inside;
        let least = (late.steal - outside).max(Duration::ZERO);
        (least, late.steal.min(inside))
    }
}

/// Functions that only switch interrupts or preemption back on for their caller, and those of the
/// watch itself (kernel names).
const SWITCHES_ON: [&str; 22] = [
    "bpf_prog_",
    "bpf_trace_run",
    "__traceiter_",
    "_raw_spin_unlock",
    "_raw_read_unlock",
    "_raw_write_unlock",
    "rt_spin_unlock",
    "rt_read_unlock",
    "rt_write_unlock",
    "asm_",
    "sysvec_",
    "irqentry_exit",
    "common_interrupt",
    "__local_bh_enable_ip",
    "irq_exit_rcu",
    "__irq_exit_rcu",
    "handle_softirqs",
    "__do_softirq",
    "preempt_schedule",
    "__cond_resched",
    "__schedule",
    "schedule",
];

/// Functions on the way between user space and the work that it asks for (kernel names).
const BORDERS: [&str; 6] = [
    "exit_to_user_mode",
    "irqentry_exit_to_user",
    "syscall_exit_to_user",
    "do_syscall_64",
    "entry_SYSCALL",
    "el0",
];

/// The function of a stack that did the work: the innermost one that does not merely switch
/// interrupts or preemption on for its caller.
pub(crate) fn section_function(stack: &Stack) -> Option<&str> {
    section_that_ended(stack).or_else(|| stack.iter().filter_map(Frame::function).next())
}

/// The same for the stack of a switch: one at the border to user space shows no section, only that
/// it was over.
pub(crate) fn section_that_ended(stack: &Stack) -> Option<&str> {
    worker(stack).filter(|found| !is_border(found))
}

/// Whether a stack shows nothing but the way between user space and the kernel: what took time was
/// over, or was user code.
pub(crate) fn is_at_border(stack: &Stack) -> bool {
    worker(stack).is_some_and(is_border)
}

/// Whether a late timer came on another interrupt's way out: what that one found may have had
/// interrupts on, while the CPU stood still.
pub(crate) fn is_behind_interrupt(stack: &Stack) -> bool {
    way_out(stack).any(is_interrupt_entry)
}

/// The frames before the first function that does work of its own.
fn way_out(stack: &Stack) -> impl Iterator<Item = &Frame> {
    stack.iter().take_while(|frame| {
        let name = frame.function().unwrap_or_default();
        SWITCHES_ON.iter().any(|prefix| name.starts_with(prefix))
    })
}

/// A timer that comes on the way out of a row of interrupts, all of which it was pending with, and
/// of which the first found a place where interrupts may just have come on: that place is where the
/// section ended, and the stack begins there.
fn begin_where_interrupts_came_on(late: &mut LateTimer) {
    let way_out: Vec<&Frame> = way_out(&late.stack).collect();
    let Some(first) = way_out.iter().rposition(|frame| is_interrupt_entry(frame)) else {
        return;
    };
    let entries = way_out.iter().filter(|frame| is_interrupt_entry(frame));
    let all_in_row = entries.copied().all(is_asked_for_by_cpu);
    let found = first + 1;
    if all_in_row && found < late.stack.len() && late.came_on >> found & 1 == 1 {
        late.stack.drain(..found);
        late.came_on >>= found;
    }
}

/// The innermost function that does not merely switch something on for its caller.
fn worker(stack: &Stack) -> Option<&str> {
    let mut named = stack.iter().filter_map(Frame::function);
    named.find(|name| !SWITCHES_ON.iter().any(|prefix| name.starts_with(prefix)))
}

fn is_border(function: &str) -> bool {
    BORDERS.iter().any(|prefix| function.starts_with(prefix))
}

/// Functions that serve a page fault (kernel names).
const PAGE_FAULTS: [&str; 3] = ["handle_mm_fault", "exc_page_fault", "do_page_fault"];

/// Whether a stack was taken inside a page fault.
pub(crate) fn is_page_fault(stack: &Stack) -> bool {
    let mut named = stack.iter().filter_map(Frame::function);
    named.any(|name| PAGE_FAULTS.contains(&name))
}

/// How the names begin of what the processor enters at an interrupt, on x86-64 and arm64.
const INTERRUPT_ENTRIES: [&str; 3] = ["asm_sysvec_", "asm_common_interrupt", "el1h_64_irq"];

/// How the names begin of what the processor enters at an interrupt that a CPU asks for, on x86-64:
/// only these are served in a row before the timer's.
const CPU_ENTRIES: [&str; 3] = [
    "asm_sysvec_reschedule",
    "asm_sysvec_call_function",
    "asm_sysvec_irq_work",
];

/// Functions that only lock, tell the time, wait or return for their caller, and marks between
/// functions (kernel names): an interrupt that finds one of these means the caller.
const SERVES_CALLER: [&str; 15] = [
    "__raw_callee_save",
    "__pv_",
    "mutex_",
    "_raw_spin_",
    "_raw_read_",
    "_raw_write_",
    "ktime_get",
    "read_tsc",
    "delay_",
    "__const_udelay",
    "__udelay",
    "__x86_",
    "srso_",
    "retbleed_",
    "__softirqentry_text_end",
];

/// The function of the task itself that an interrupt found, on a stack taken in its handler.
pub(crate) fn interrupted_function(stack: &Stack) -> Option<&str> {
    // The outermost: an interrupt may have found the softirq that another one left behind.
    let entry = stack.iter().rposition(is_interrupt_entry)?;
    let mut found = stack.get(entry + 1..)?.iter().map_while(Frame::function);
    let serves = |name: &str| SERVES_CALLER.iter().any(|prefix| name.starts_with(prefix));
    found.find(|name| !serves(name))
}

/// Whether a stack was taken in an interrupt's handler.
pub(crate) fn was_interrupted(stack: &Stack) -> bool {
    stack.iter().any(is_interrupt_entry)
}

fn is_interrupt_entry(frame: &Frame) -> bool {
    let name = frame.function().unwrap_or_default();
    let mut entries = INTERRUPT_ENTRIES.iter();
    entries.any(|prefix| name.starts_with(prefix))
}

fn is_asked_for_by_cpu(frame: &Frame) -> bool {
    let name = frame.function().unwrap_or_default();
    CPU_ENTRIES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether the stack of a task that left its CPU shows that it was made to: by the end of a
/// section, or at a preemption point. One that went to sleep, or was on its way to user space,
/// shows neither.
pub(crate) fn was_preempted(stack: &Stack) -> bool {
    let mut functions = stack.iter().filter_map(Frame::function);
    functions.any(|name| name.starts_with("preempt_schedule") || name == "__cond_resched")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_placed_only_as_far_as_the_records_around_it_allow() {
        let timer = |time_us: i64, steal_us: i64| LateTimer {
            cpu: Cpu(0),
            time: Instant::from_ns(time_us * 1000),
            expiry: Instant::from_ns((time_us - 100) * 1000),
            lateness: Duration::from_us(100),
            hrtimer: 0,
            function: 0,
            interrupted: TaskRef {
                tid: Tid(1),
                comm: String::new(),
                prio: Prio(120),
            },
            mode: Mode::Kernel,
            steal: Duration::from_us(steal_us),
            stack: vec![],
            came_on: 0,
        };
        let check = |records: [(i64, i64); 2], range_us: (i64, i64), expect_us: (i64, i64)| {
            let evidence = Evidence {
                late_timers: records.map(|(time, steal)| timer(time, steal)).to_vec(),
                ..Evidence::default()
            };
            let (begin, end) = (range_us.0 * 1000, range_us.1 * 1000);
            let steal = evidence.steal_between(1, Instant::from_ns(begin), Instant::from_ns(end));
            let expect = (
                Duration::from_us(expect_us.0),
                Duration::from_us(expect_us.1),
            );
            assert_eq!(steal, expect, "{records:?} {range_us:?}");
        };
        // 90 us between records that are 100 us apart: 80 of them within these 90.
        check([(900, 0), (1000, 90)], (910, 1000), (80, 90));
        // Between records 10 ms apart it may lie anywhere.
        check([(1000, 0), (11_000, 90)], (10_900, 11_000), (0, 90));
        check([(1000, 0), (11_000, 900)], (10_900, 11_000), (0, 100));
        check([(1000, 0), (11_000, 900)], (0, 900), (0, 0));
    }

    #[test]
    fn the_function_of_a_section_is_the_caller_of_what_switches_on() {
        let check = |symbols: &[&str], expect: Option<&str>| {
            let frame = |symbol: &&str| Frame {
                address: 1,
                symbol: (*symbol).into(),
            };
            let stack: Stack = symbols.iter().map(frame).collect();
            assert_eq!(section_function(&stack), expect);
        };
        check(
            &["_raw_spin_unlock_irqrestore+0x1f", "serial_write+0x90"],
            Some("serial_write"),
        );
        check(&["busy_loop+0x9", "do_thing+0x1"], Some("busy_loop"));
        check(&["__schedule+0x2", "schedule+0x1"], Some("__schedule"));
        check(&["", "do_thing+0x1"], Some("do_thing"));
        check(
            &[
                "bpf_trace_run4+0xdf",
                "__traceiter_sched_switch+0x45",
                "__schedule+0x5bc",
                "preempt_schedule+0x41",
                "preempt_schedule_thunk+0x1a",
                "walk_list+0x51",
            ],
            Some("walk_list"),
        );
        check(&[], None);
    }

    #[test]
    fn the_function_that_an_interrupt_found_lies_behind_the_outermost_entry() {
        let check = |symbols: &[&str], expect: Option<&str>| {
            let frame = |symbol: &&str| Frame {
                address: 1,
                symbol: (*symbol).into(),
            };
            let stack: Stack = symbols.iter().map(frame).collect();
            assert_eq!(interrupted_function(&stack), expect, "{symbols:?}");
        };
        let entry = "asm_sysvec_apic_timer_interrupt+0x1a";
        check(
            &["hrtimer_wakeup+0x1", entry, "walk_list+0x5", "do_work+0x1"],
            Some("walk_list"),
        );
        check(
            &[
                "hrtimer_wakeup+0x1",
                entry,
                "net_rx_action+0x5",
                "asm_common_interrupt+0x1",
                "f",
            ],
            Some("f"),
        );
        check(
            &[entry, "read_tsc+0x1", "ktime_get+0x2", "poll_device+0x7"],
            Some("poll_device"),
        );
        // From user space nothing lies behind it.
        check(&["hrtimer_wakeup+0x1", entry], None);
        check(&["wake_up+0x1", "do_work+0x1"], None);
    }

    #[test]
    fn a_stack_at_the_border_to_user_space_shows_no_section() {
        let check = |symbols: &[&str], expect: Option<&str>, at_border: bool| {
            let frame = |symbol: &&str| Frame {
                address: 1,
                symbol: (*symbol).into(),
            };
            let stack: Stack = symbols.iter().map(frame).collect();
            assert_eq!(section_that_ended(&stack), expect, "{symbols:?}");
            assert_eq!(is_at_border(&stack), at_border, "{symbols:?}");
        };
        let left = [
            "__schedule+0x5bc",
            "schedule+0x23",
            "exit_to_user_mode_loop+0x4c",
            "do_syscall_64+0x1d1",
        ];
        check(&left, None, true);
        let interrupted = ["__schedule+0x2", "irqentry_exit_to_user_mode+0x110"];
        check(&interrupted, None, false);
        let preempted = ["__schedule+0x2", "preempt_schedule+0x1", "walk_list+0x9"];
        check(&preempted, Some("walk_list"), false);
    }

    #[test]
    fn a_stack_tells_a_preemption_from_a_sleep() {
        let check = |symbols: &[&str], expect: bool| {
            let frame = |symbol: &&str| Frame {
                address: 1,
                symbol: (*symbol).into(),
            };
            let stack: Stack = symbols.iter().map(frame).collect();
            assert_eq!(was_preempted(&stack), expect, "{symbols:?}");
        };
        check(
            &[
                "__schedule+0x5bc",
                "preempt_schedule+0x41",
                "walk_list+0x51",
            ],
            true,
        );
        check(
            &["__schedule+0x5bc", "__cond_resched+0x41", "copy_much+0x51"],
            true,
        );
        check(
            &["__schedule+0x5bc", "schedule+0x41", "schedule_timeout+0x51"],
            false,
        );
        check(&[], false);
    }
}
