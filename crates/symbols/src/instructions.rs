//! Where instructions begin. The kernel puts a probe wherever it is told to: in the midst of an
//! instruction it would change what the program does.

use std::path::Path;

use event::Result;
use iced_x86::{Decoder, DecoderOptions};

use crate::places::{Elf, Places};

/// The machines whose instructions are known here, as ELF files name them.
const X86_64: u16 = 62;
const ARM_64: u16 = 183;
/// No instruction of the first is longer.
const X86_64_BYTES_MAX: u64 = 15;
/// All instructions of the second.
const ARM_64_BYTES: u64 = 4;
/// No longer function is looked through.
const FUNCTION_BYTES_MAX: u64 = 16 << 20;

/// What is at a place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// One begins there, or nobody knows.
    Possible,
    /// Nothing there is run as code.
    NoCode,
    /// It is inside of one, which begins and ends so many bytes before and behind it.
    Inside {
        /// Back to its begin.
        before: u64,
        /// On to its end.
        behind: u64,
    },
}

impl Places {
    /// What is at `offset` of the file at `path`, whose places these are: its function is followed
    /// from its first instruction on.
    ///
    /// # Errors
    /// As [`Places::read`].
    pub fn instruction_at(&self, path: &Path, offset: u64) -> Result<Instruction> {
        let elf = Elf::open(path)?;
        if !elf.is_code(offset) {
            return Ok(Instruction::NoCode);
        }
        let holds = |size: u64, inside: u64| inside == 0 || size == 0 || inside < size;
        let begins = self.functions.iter().filter(|function| {
            let inside = offset.checked_sub(function.offset);
            inside.is_some_and(|inside| holds(function.size_bytes, inside))
        });
        let Some(begin) = begins.map(|function| function.offset).max() else {
            return Ok(Instruction::Possible);
        };
        let inside = offset - begin;
        Ok(match elf.machine() {
            X86_64 if inside <= FUNCTION_BYTES_MAX => {
                // Also the whole of the instruction that may reach beyond it.
                let bytes = elf.read_up_to(begin, inside + X86_64_BYTES_MAX);
                followed(&bytes, inside)
            }
            ARM_64 => aligned(inside),
            _ => Instruction::Possible,
        })
    }
}

/// What is `at` bytes behind the first instruction of these.
fn followed(bytes: &[u8], at: u64) -> Instruction {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    while decoder.can_decode() {
        let begin = decoder.position() as u64;
        if begin >= at {
            break;
        }
        // Data, or what is newer than this decoder: nothing is known behind it.
        if decoder.decode().is_invalid() {
            break;
        }
        let end = decoder.position() as u64;
        if end > at {
            return Instruction::Inside {
                before: at - begin,
                behind: end - at,
            };
        }
    }
    Instruction::Possible
}

fn aligned(at: u64) -> Instruction {
    match at % ARM_64_BYTES {
        0 => Instruction::Possible,
        before => Instruction::Inside {
            before,
            behind: ARM_64_BYTES - before,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn inside(before: u64, behind: u64) -> Instruction {
        Instruction::Inside { before, behind }
    }

    #[test]
    fn an_instruction_begins_where_the_one_before_ends() {
        // push %rbp; mov %rsp,%rbp; movzbl %dil,%eax; ret
        let code = b"\x55\x48\x89\xe5\x40\x0f\xb6\xc7\xc3";
        let check = |at: u64, expect: Instruction| assert_eq!(followed(code, at), expect, "{at}");
        for begin in [0, 1, 4, 8] {
            check(begin, Instruction::Possible);
        }
        check(2, inside(1, 2));
        check(3, inside(2, 1));
        check(7, inside(3, 1));
        // What is no instruction says nothing of what is behind it, nor does what is not there.
        assert_eq!(followed(b"\x06\x48\x89\xe5", 2), Instruction::Possible);
        check(100, Instruction::Possible);
        assert_eq!(aligned(8), Instruction::Possible);
        assert_eq!(aligned(9), inside(1, 3));
    }

    #[test]
    fn what_is_not_run_is_no_code_of_a_program() {
        let own = std::env::current_exe().expect("this program");
        let places = Places::read(&own).expect("an ELF file");
        let main = places.named("main")[0].offset;
        let check = |offset: u64, expect: Instruction| {
            let found = places.instruction_at(&own, offset).expect("read");
            assert_eq!(found, expect, "{offset}");
        };
        check(1, Instruction::NoCode);
        check(main, Instruction::Possible);
        check(u64::MAX, Instruction::NoCode);
    }
}
