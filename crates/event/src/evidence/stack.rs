//! Kernel stacks, by address and by name.

/// One return address of a kernel stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The address.
    pub address: u64,
    /// `function+0xoffset`, or empty when unknown.
    pub symbol: String,
}

impl Frame {
    /// The function without the offset, or none when unknown.
    pub fn function(&self) -> Option<&str> {
        let name = self
            .symbol
            .split_once('+')
            .map_or(self.symbol.as_str(), |(name, _)| name);
        (!name.is_empty()).then_some(name)
    }
}

/// A kernel stack, innermost frame first.
pub type Stack = Vec<Frame>;

/// The kernel's call into the probes of a tracepoint (`include/linux/tracepoint.h`), and into a BPF
/// program, which comes alone where nobody else has a probe there.
const TRACEPOINT_CALLS: [&str; 2] = ["__traceiter_", "bpf_trace_run"];
/// Frames that a probe has before that call: the BPF program, the kernel's runner, a trampoline.
const PROBE_FRAMES_MAX: usize = 6;
/// What runs a BPF program on a tracepoint: the frame before it is a program's, known or not.
const PROGRAM_CALL: &str = "bpf_trace_run";
/// The program that nobody can name: it is gone, or came after the names were read.
const SOME_PROGRAM: &str = "a BPF program";

/// Names the function of each frame, and leaves out the frames of the probe that took the stack.
pub(super) fn symbolise(stack: &mut Stack, name: &impl Fn(u64) -> String) {
    name_frames(stack, name);
    let probe = &stack[..stack.len().min(PROBE_FRAMES_MAX)];
    // Only the innermost call is the probe's: further out, the probe of somebody else was at work.
    if let Some(first) = probe.iter().position(is_tracepoint_call) {
        let calls = stack[first..].iter().take_while(|f| is_tracepoint_call(f));
        let end = first + calls.count();
        stack.drain(..end);
    }
}

/// A stack with its functions named, without the frames of the probe that took it.
pub fn named(stack: &Stack, name: impl Fn(u64) -> String) -> Stack {
    let mut stack = stack.clone();
    symbolise(&mut stack, &name);
    stack
}

/// Names the function of each frame of a stack that begins with what was interrupted.
pub(super) fn name_frames(stack: &mut Stack, name: &impl Fn(u64) -> String) {
    for frame in stack.iter_mut() {
        frame.symbol = name(frame.address);
    }
    for place in 1..stack.len() {
        let is_program = stack[place].symbol.starts_with(PROGRAM_CALL);
        if is_program && stack[place - 1].symbol.is_empty() {
            stack[place - 1].symbol = SOME_PROGRAM.to_owned();
        }
    }
}

fn is_tracepoint_call(frame: &Frame) -> bool {
    let mut calls = TRACEPOINT_CALLS.iter();
    calls.any(|call| frame.symbol.starts_with(call))
}

/// A stack of bare addresses, not yet named.
pub fn unnamed(addresses: &[u64]) -> Stack {
    let frame = |address: &u64| Frame {
        address: *address,
        symbol: String::new(),
    };
    addresses.iter().map(frame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_names_its_function_without_the_offset() {
        let check = |symbol: &str, expect: Option<&str>| {
            let frame = Frame {
                address: 1,
                symbol: symbol.into(),
            };
            assert_eq!(frame.function(), expect);
        };
        check("do_work+0x1f", Some("do_work"));
        check("do_work", Some("do_work"));
        check("", None);
    }

    #[test]
    fn a_named_stack_begins_with_the_kernel_not_with_the_probe() {
        let check = |names: &[&str], expect: &[&str]| {
            let addresses: Vec<u64> = (0..names.len() as u64).collect();
            let mut stack = unnamed(&addresses);
            symbolise(&mut stack, &|address| names[address as usize].to_owned());
            let left: Vec<_> = stack.iter().map(|frame| frame.symbol.as_str()).collect();
            assert_eq!(left, expect);
        };
        let probed = [
            "",
            "bpf_trace_run4+0x1",
            "__traceiter_sched_switch+0x2",
            "__schedule+0x3",
        ];
        check(&probed, &["__schedule+0x3"]);
        let alone = ["", "bpf_trace_run2+0x1", "__hrtimer_run_queues+0x2"];
        check(&alone, &["__hrtimer_run_queues+0x2"]);
        check(
            &["schedule+0x1", "", "read+0x2"],
            &["schedule+0x1", "", "read+0x2"],
        );
        // A program of somebody else's made the wake-up that our probe saw.
        let foreign = [
            "",
            "bpf_trace_run1+0x1",
            "try_to_wake_up+0x2",
            "",
            "bpf_trace_run2+0x3",
            "__traceiter_sys_enter+0x4",
        ];
        let left = [
            "try_to_wake_up+0x2",
            "a BPF program",
            "bpf_trace_run2+0x3",
            "__traceiter_sys_enter+0x4",
        ];
        check(&foreign, &left);
    }

    #[test]
    fn what_was_interrupted_keeps_the_frames_of_a_program_of_somebody_elses() {
        let names = ["", "bpf_trace_run2+0x1", "__traceiter_sys_enter+0x2", "f"];
        let mut stack = unnamed(&[0, 1, 2, 3]);
        name_frames(&mut stack, &|address| names[address as usize].to_owned());
        let found: Vec<_> = stack.iter().map(|frame| frame.symbol.as_str()).collect();
        assert_eq!(found, ["a BPF program", names[1], names[2], names[3]]);
    }
}
