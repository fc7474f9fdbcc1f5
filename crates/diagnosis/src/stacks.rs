//! What kernel stacks show: which function did the work, and what merely served it.

use crate::term::Short;
use event::evidence::{Frame, LateTimer, Stack};

/// A function that is not what took the time, by how its name begins (kernel names).
struct Helper {
    prefix: &'static str,
    role: Role,
}

/// For whom it stands where.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It only switches interrupts or preemption back on for its caller.
    SwitchesOn,
    /// It only locks, tells the time, waits or returns for its caller, or is a mark between
    /// functions: an interrupt that finds it means the caller.
    Serves,
    /// Both.
    Both,
    /// It is on the way between user space and the work that user space asks for.
    Border,
}

const fn helper(prefix: &'static str, role: Role) -> Helper {
    Helper { prefix, role }
}

use Role::{Border, Both, Serves, SwitchesOn};

const HELPERS: [Helper; 54] = [
    helper("bpf_trace_run", SwitchesOn),
    helper("bpf_local_irq_", Both),
    helper("__traceiter_", SwitchesOn),
    helper("_raw_spin_unlock", Both),
    helper("_raw_read_unlock", Both),
    helper("_raw_write_unlock", Both),
    helper("_raw_spin_", Serves),
    helper("_raw_read_", Serves),
    helper("_raw_write_", Serves),
    helper("queued_spin_", Serves),
    helper("native_queued_spin_", Serves),
    helper("queued_read_", Serves),
    helper("queued_write_", Serves),
    helper("rt_spin_unlock", Both),
    helper("rt_read_unlock", Both),
    helper("rt_write_unlock", Both),
    helper("arch_local_irq_", Both),
    helper("native_irq_enable", Both),
    helper("native_restore_fl", Both),
    helper("trace_hardirqs_on", Both),
    helper("preempt_count_sub", Both),
    helper("asm_sysvec_", SwitchesOn),
    helper("asm_common_interrupt", SwitchesOn),
    helper("asm_", SwitchesOn),
    helper("sysvec_", SwitchesOn),
    helper("irqentry_exit", SwitchesOn),
    helper("common_interrupt", SwitchesOn),
    helper("__local_bh_enable_ip", SwitchesOn),
    helper("irq_exit_rcu", SwitchesOn),
    helper("__irq_exit_rcu", SwitchesOn),
    helper("handle_softirqs", SwitchesOn),
    helper("__do_softirq", SwitchesOn),
    helper("preempt_schedule", SwitchesOn),
    helper("__cond_resched", SwitchesOn),
    helper("__schedule", SwitchesOn),
    helper("schedule", SwitchesOn),
    helper("__raw_callee_save", Serves),
    helper("__pv_", Serves),
    helper("mutex_", Serves),
    helper("ktime_get", Serves),
    helper("read_tsc", Serves),
    helper("delay_", Serves),
    helper("__const_udelay", Serves),
    helper("__udelay", Serves),
    helper("__x86_", Serves),
    helper("srso_", Serves),
    helper("retbleed_", Serves),
    helper("__softirqentry_text_end", Serves),
    helper("__static_call_text_", Serves),
    helper("__indirect_thunk_", Serves),
    helper("exit_to_user_mode", Border),
    helper("syscall_exit_to_user", Border),
    helper("do_syscall_64", Border),
    helper("entry_SYSCALL", Border),
];

/// The same for what the processor enters at an exception, and for arm64: none of them works.
const BORDERS: [&str; 4] = ["irqentry_exit_to_user", "exc_", "do_user_addr_fault", "el0"];

/// How the kernel's compiler of BPF names programs.
const BPF_PROGRAMS: &str = "bpf_prog_";
/// No name is believed for a BPF program: one that was loaded after the kernel's symbols were
/// read has the name of its neighbour.
pub(crate) const A_BPF_PROGRAM: &str = "a BPF program";
/// What runs BPF programs and is called as they are.
const BPF_RUNNERS: [&str; 2] = ["bpf_prog_test_run", "bpf_prog_run"];
/// As many frames as the watch keeps of a stack.
const STACK_FRAMES_MAX: usize = 32;
/// No function of the kernel is longer: the address lies behind the last symbol known there.
const FUNCTION_BYTES_MAX: u64 = 0x1_0000;

/// The function of a frame, as far as it is believed.
fn named(frame: &Frame) -> Option<&str> {
    let name = frame.function()?;
    let is_runner = BPF_RUNNERS.iter().any(|runner| name.starts_with(runner));
    // One that the watch knew with its end is called otherwise, and believed.
    if name.starts_with(BPF_PROGRAMS) && !is_runner {
        return Some(A_BPF_PROGRAM);
    }
    let offset = frame.symbol.split_once("+0x").map(|(_, offset)| offset);
    let digits = offset.map(|offset| offset.split([' ', '/']).next().unwrap_or_default());
    let offset = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    (offset.unwrap_or(0) < FUNCTION_BYTES_MAX).then_some(name)
}

fn switches_on(name: &str) -> bool {
    let mut helpers = HELPERS.iter();
    helpers.any(|h| matches!(h.role, SwitchesOn | Both) && name.starts_with(h.prefix))
}

fn serves_caller(name: &str) -> bool {
    let mut helpers = HELPERS.iter();
    helpers.any(|h| matches!(h.role, Serves | Both) && name.starts_with(h.prefix))
}

fn is_border(name: &str) -> bool {
    let by_role = HELPERS
        .iter()
        .any(|h| h.role == Border && name.starts_with(h.prefix));
    by_role || BORDERS.iter().any(|prefix| name.starts_with(prefix))
}

/// The function of a stack that did the work: the innermost one that does not merely switch
/// interrupts or preemption on for its caller.
pub(crate) fn section_function(stack: &Stack) -> Option<&str> {
    section_that_ended(stack).or_else(|| stack.iter().filter_map(named).next())
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
    stack
        .iter()
        .take_while(|frame| switches_on(frame.function().unwrap_or_default()))
}

/// A timer that comes on the way out of a row of interrupts, all of which it was pending with, and
/// of which the first found a place where interrupts may just have come on: that place is where the
/// section ended, and the stack begins there.
pub(crate) fn begin_where_interrupts_came_on(late: &mut LateTimer) {
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
    stack
        .iter()
        .filter_map(named)
        .find(|name| !switches_on(name))
}

/// The functions of a stack that work for themselves, the innermost first.
pub(crate) fn working(stack: &Stack) -> impl Iterator<Item = &str> {
    let named = stack.iter().filter_map(named);
    named.filter(|name| !switches_on(name) && !serves_caller(name) && !is_border(name))
}

/// Functions that serve a page fault (kernel names).
const PAGE_FAULTS: [&str; 3] = ["handle_mm_fault", "exc_page_fault", "do_page_fault"];

/// Whether a stack was taken inside a page fault.
pub(crate) fn is_page_fault(stack: &Stack) -> bool {
    let mut named = stack.iter().filter_map(Frame::function);
    named.any(|name| PAGE_FAULTS.contains(&name))
}

/// Functions that free memory of a control group for what its task asks for, or make that one wait
/// for having too much (kernel names).
const GROUP_RECLAIMS: [&str; 3] = [
    "try_to_free_mem_cgroup_pages",
    "mem_cgroup_handle_over_high",
    "__mem_cgroup_handle_over_high",
];
/// Those that free memory of the whole machine.
const RECLAIMS: [&str; 2] = ["try_to_free_pages", "throttle_direct_reclaim"];

/// Where memory was short, if the stack was taken while some was freed for the task.
pub(crate) fn reclaim(stack: &Stack) -> Option<Short> {
    let has = |names: &[&str]| {
        let mut named = stack.iter().filter_map(Frame::function);
        named.any(|name| names.contains(&name))
    };
    if has(&GROUP_RECLAIMS) {
        Some(Short::Group)
    } else {
        has(&RECLAIMS).then_some(Short::Machine)
    }
}

/// How the functions begin in which a task sleeps for a lock of the kernel's (kernel names).
const LOCK_SLEEPS: [&str; 7] = [
    "rwsem_down_",
    "__down_",
    "__mutex_lock",
    "mutex_lock",
    "percpu_down_",
    "rt_mutex_",
    "rwbase_",
];

/// Whether a stack was taken where a task sleeps for a lock of the kernel's.
pub(crate) fn is_lock_sleep(stack: &Stack) -> bool {
    let mut named = stack.iter().filter_map(Frame::function);
    named.any(|name| LOCK_SLEEPS.iter().any(|prefix| name.starts_with(prefix)))
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

/// The function of the task itself that an interrupt found, on a stack taken in its handler.
pub(crate) fn interrupted_function(stack: &Stack) -> Option<&str> {
    // The outermost: an interrupt may have found the softirq that another one left behind.
    let entry = stack.iter().rposition(is_interrupt_entry)?;
    let mut found = stack.get(entry + 1..)?.iter().map_while(named);
    found.find(|name| !serves_caller(name) && !is_border(name))
}

/// Whether a stack was taken in the handler of an interrupt that found user code. One that is as
/// long as stacks can be may go on.
pub(crate) fn found_user_code(stack: &Stack) -> bool {
    stack.len() < STACK_FRAMES_MAX && stack.last().is_some_and(is_interrupt_entry)
}

/// Whether the stack of a task that left its CPU shows that an interrupt had just found it in user
/// code: it left where that interrupt went back.
pub(crate) fn left_user_code(stack: &Stack) -> bool {
    let functions = || stack.iter().filter_map(Frame::function);
    let back = functions().any(|name| name.starts_with("irqentry_exit_to_user"));
    back && found_user_code(stack)
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
