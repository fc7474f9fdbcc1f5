//! The evidence stream, decoded: what only the in-kernel watch saw. `docs/format/evidence.md`.

use std::ops::Deref;

use event::evidence::{self, Frame, Kind, LateTimer, Place, Records, Source, Stack};
use event::{Cpu, Duration, EventClass, Instant, Value};
use trace::EventView;

/// All evidence of a trace, each kind in time order.
#[derive(Debug, Default)]
pub(crate) struct Evidence(Records);

impl Deref for Evidence {
    type Target = Records;

    fn deref(&self) -> &Records {
        &self.0
    }
}

/// The fields of one event by name. Evidence is rare: clarity is worth the look-ups.
struct Fields<'a> {
    event: &'a EventView<'a>,
    class: &'a EventClass,
}

impl Source for Fields<'_> {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        let field = self.class.field(name)?;
        Some(self.event.value(field))
    }
}

impl Evidence {
    /// Adds an event of this kind; one that makes no sense is left out.
    pub fn add(&mut self, kind: Kind, cpu: Cpu, event: &EventView<'_>, classes: &[EventClass]) {
        let Some(class) = classes.get(event.class().0 as usize) else {
            return;
        };
        let place = Place {
            cpu,
            time: event.time(),
        };
        self.0
            .read(kind, place, &Fields { event, class }, |record| {
                if let evidence::Evidence::LateTimer(late) = record {
                    begin_where_interrupts_came_on(late);
                }
            });
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
    use event::evidence::{Mode, TaskRef};
    use event::{Prio, Tid};

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
            let evidence = Evidence(Records {
                late_timers: records.map(|(time, steal)| timer(time, steal)).to_vec(),
                ..Records::default()
            });
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
