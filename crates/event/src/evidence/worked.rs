//! Where a timer's interrupt found a target at its own work.

use super::from_kernel::{FromKernel, Machine};
use super::raw::{self, mirror};
use super::record::{Part, Place, Source, record};
use super::stack::{Stack, name_frames, unnamed};
use super::task::TaskRef;
use crate::Field;

record! {
    /// Where a target was at its own work, in an activation that is late or on its way to be.
    Worked as "rtscope_worked" {
        /// The target.
        task: TaskRef = "",
        /// Its process.
        process: u32 = "pid",
        /// Its user code, innermost first. As the kernel sends it, one frame without a name.
        stack: Stack = "stack",
        /// The kernel's function that it was in, alone; empty in its own code.
        kernel: Stack = "kernel",
        /// By what its callers are found; no trace has it.
        found: FoundStack = "",
    }
}

/// What lay on the stack of a task, and where: what its callers kept there is found by the files
/// that it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundStack {
    /// Where the first word lies.
    pub stack_pointer: u64,
    /// The register that many functions count from.
    pub frame_pointer: u64,
    /// From the stack pointer on.
    pub words: Vec<u64>,
}

/// It holds data of the task's own: it is read and left out.
impl Part for FoundStack {
    fn declare(_: &str, _: &mut Vec<Field>) {}

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &str, _: &dyn Source) -> Option<Self> {
        Some(FoundStack::default())
    }
}

/// `RTS_WORKED_WORDS`.
const WORDS_MAX: usize = 40;

mirror! {
    /// What the kernel sends of it.
    Raw = "rts_worked" {
        task: raw::Task,
        process: i32,
        words_length: u32,
        instruction: u64,
        stack_pointer: u64,
        frame_pointer: u64,
        kernel_instruction: u64,
        words: [u64; WORDS_MAX],
    }
}

impl FromKernel for Worked {
    type Raw = Raw;

    fn from_kernel(place: Place, raw: &Raw, _: &Machine) -> Option<Worked> {
        let words = &raw.words[..(raw.words_length as usize).min(WORDS_MAX)];
        Some(Worked {
            cpu: place.cpu,
            time: place.time,
            task: raw.task.named()?,
            process: u32::try_from(raw.process).ok()?,
            stack: unnamed(&[raw.instruction]),
            kernel: match raw.kernel_instruction {
                0 => Stack::default(),
                address => unnamed(&[address]),
            },
            found: FoundStack {
                stack_pointer: raw.stack_pointer,
                frame_pointer: raw.frame_pointer,
                words: words.to_vec(),
            },
        })
    }

    fn symbolise(&mut self, name: &dyn Fn(u64) -> String) {
        name_frames(&mut self.kernel, &name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_round_trip, kernel_record, place, task};
    use super::*;

    #[test]
    fn a_look_at_work_comes_back_from_its_trace_without_what_lay_on_the_stack() {
        let worked = Worked {
            cpu: place().cpu,
            time: place().time,
            task: task("loop"),
            process: 6,
            stack: unnamed(&[3, 4]),
            kernel: unnamed(&[9]),
            found: FoundStack::default(),
        };
        check_round_trip(&worked);
    }

    #[test]
    fn its_function_in_the_kernel_gets_its_name() {
        let mut raw: Raw = kernel_record();
        raw.kernel_instruction = 0x9;
        let worked = Worked::from_kernel(place(), &raw, &Machine::default());
        let mut worked = worked.expect("a record");
        worked.symbolise(&|address| format!("at{address}+0x1"));
        assert_eq!(worked.kernel[0].symbol, "at9+0x1");
    }

    #[test]
    fn the_kernel_says_where_it_was_and_as_many_words_as_it_could_read() {
        let check = |words_length: u32, expect: &[u64]| {
            let mut raw: Raw = kernel_record();
            raw.instruction = 0x1234;
            raw.words[1] = 7;
            raw.words_length = words_length;
            let worked = Worked::from_kernel(place(), &raw, &Machine::default());
            let worked = worked.expect("a record");
            assert_eq!(worked.stack, unnamed(&[0x1234]));
            assert_eq!(worked.kernel, Stack::default());
            assert_eq!(worked.found.words.len(), expect.len());
            assert!(worked.found.words.starts_with(expect), "{words_length}");
        };
        check(0, &[]);
        check(2, &[0, 7]);
        let mut all = [0; WORDS_MAX];
        all[1] = 7;
        check(u32::MAX, &all);
    }
}
