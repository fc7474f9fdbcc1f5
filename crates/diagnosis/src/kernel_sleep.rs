//! Where a task slept in the kernel, for something that no event names: the stack that a watch took
//! there says in which function, and of which system call.

use event::evidence::{Blocked, BlockedOn, Frame, Stack};

use crate::finding::LateActivation;
use crate::locks::woken_after;
use crate::model::Model;
use crate::stacks::working;
use crate::term::{Reason, TermKind};

/// Functions that only wait for their caller, by how their names begin (kernel names).
const WAITS: [&str; 5] = [
    "wait_for_common",
    "__wait_for_common",
    "wait_for_completion",
    "io_schedule",
    "wait_woken",
];
/// How the functions of system calls begin (arch/x86 and arch/arm64, `syscall_wrapper.h`).
const CALLS: [&str; 4] = ["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__se_sys_"];

/// The sleep of a late task in the kernel that is most of those for which nothing has a name, if a
/// watch took its stack.
pub(crate) fn longest<'m>(model: &'m Model, late: &LateActivation) -> Option<&'m Blocked> {
    let unnamed = TermKind::Unexplained(Reason::BlockedInKernel);
    let term = late.ledger.terms.iter().find(|term| term.kind == unnamed)?;
    let its = model.evidence.blocked.iter().filter(|blocked| {
        let is_inside = late.origin <= blocked.time && blocked.time < term.range.end;
        let is_unnamed = blocked.on == BlockedOn::Kernel && !blocked.stack.is_empty();
        blocked.task.tid == late.task.tid && is_inside && is_unnamed
    });
    let length = |blocked: &Blocked| woken_after(model, blocked, late.end) - blocked.time;
    let longest = its.max_by_key(|blocked| length(blocked))?;
    // The record of a longer one may be missing.
    let length = length(longest);
    (length + length >= term.duration).then_some(longest)
}

/// In which function, and of which system call, as a part of a sentence.
pub(crate) fn words(stack: &Stack) -> Option<String> {
    let is_wait = |name: &&str| WAITS.iter().any(|prefix| name.starts_with(prefix));
    let function = working(stack).find(|name| !is_wait(name))?;
    let mut names = stack.iter().filter_map(Frame::function);
    let call = names.find_map(|name| CALLS.iter().find_map(|prefix| name.strip_prefix(prefix)));
    Some(match call {
        Some(call) if !function.ends_with(call) => {
            format!("it slept in {function}, of the system call {call}")
        }
        Some(call) => format!("it slept in the system call {call}"),
        None => format!("it slept in {function}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_called_by_the_function_that_asked_for_it_and_by_its_system_call() {
        let check = |names: &[&str], expect: Option<&str>| {
            let frame = |name: &&str| Frame {
                address: 1,
                symbol: format!("{name}+0x10"),
            };
            let stack: Stack = names.iter().map(frame).collect();
            assert_eq!(words(&stack).as_deref(), expect);
        };
        let begin = ["__schedule", "schedule"];
        let end = ["do_syscall_64", "entry_SYSCALL_64_after_hwframe"];
        let all = |middle: &[&'static str]| [&begin[..], middle, &end[..]].concat();
        check(
            &all(&[
                "schedule_timeout",
                "wait_for_completion",
                "synchronize_rcu",
                "__x64_sys_membarrier",
            ]),
            Some("it slept in synchronize_rcu, of the system call membarrier"),
        );
        check(
            &all(&["__x64_sys_pause"]),
            Some("it slept in the system call pause"),
        );
        check(
            &["__schedule", "schedule", "worker_thread"],
            Some("it slept in worker_thread"),
        );
        check(&all(&[]), None);
        check(&[], None);
    }
}
