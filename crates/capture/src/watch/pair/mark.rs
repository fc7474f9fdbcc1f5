//! The arguments of marks in the words that the kernel's program of a pair reads them by.

use abi::raw;
use abi::trackers::{
    MARK_CONSTANT, MARK_MEMORY, MARK_NO_REGISTER, MARK_NOTHING, MARK_REGISTER, PAIR_ARGUMENTS,
    RawMark, RawMarkArgument,
};
use symbols::{Argument, Marker, Operand, Register};

/// Where the registers are that the kernel keeps of a program (`struct pt_regs`).
#[cfg(target_arch = "x86_64")]
const REGISTERS: [(&str, u16); 16] = [
    ("r15", 0),
    ("r14", 8),
    ("r13", 16),
    ("r12", 24),
    ("bp", 32),
    ("bx", 40),
    ("r11", 48),
    ("r10", 56),
    ("r9", 64),
    ("r8", 72),
    ("ax", 80),
    ("cx", 88),
    ("dx", 96),
    ("si", 104),
    ("di", 112),
    ("sp", 152),
];
/// The words of other machines' compilers are not known.
#[cfg(not(target_arch = "x86_64"))]
const REGISTERS: [(&str, u16); 0] = [];

/// The arguments of a mark in one place; none for those that cannot be read.
pub(super) type Arguments = Vec<Option<RawMarkArgument>>;

/// Reads those that the program has room for.
pub(super) fn arguments(marker: &Marker) -> Arguments {
    let written = marker.read_arguments().into_iter().take(PAIR_ARGUMENTS);
    let read = written.map(|written| written.read.as_ref().and_then(argument));
    read.collect()
}

fn argument(argument: &Argument) -> Option<RawMarkArgument> {
    let mut raw = RawMarkArgument {
        base: MARK_NO_REGISTER,
        index: MARK_NO_REGISTER,
        size_bytes: argument.size_bytes,
        is_signed: u8::from(argument.signed),
        ..raw::zeroed()
    };
    match argument.operand {
        Operand::Constant(number) => {
            raw.kind = MARK_CONSTANT;
            raw.offset = number;
        }
        Operand::Register(register) => {
            raw.kind = MARK_REGISTER;
            raw.base = place(register)?;
        }
        Operand::Memory {
            base,
            index,
            offset,
        } => {
            raw.kind = MARK_MEMORY;
            raw.offset = offset;
            if let Some(base) = base {
                raw.base = place(base)?;
            }
            if let Some((index, shift)) = index {
                raw.index = place(index)?;
                raw.shift = shift;
            }
        }
    }
    Some(raw)
}

fn place(register: Register) -> Option<u16> {
    let mut known = REGISTERS.into_iter();
    known.find_map(|(name, at)| (name == register.name()).then_some(at))
}

/// The same for the kernel's program; it leaves alone what cannot be read.
pub(super) fn site(arguments: &Arguments) -> RawMark {
    let nothing = RawMarkArgument {
        kind: MARK_NOTHING,
        ..raw::zeroed()
    };
    let mut mark = RawMark {
        arguments: [nothing; PAIR_ARGUMENTS],
    };
    for (place, argument) in mark.arguments.iter_mut().zip(arguments) {
        *place = argument.unwrap_or(nothing);
    }
    mark
}

/// How many arguments a mark has in each of its places.
pub(super) fn common(places: &[Arguments]) -> usize {
    places.iter().map(Vec::len).min().unwrap_or(0)
}

/// Whether this argument can be read in each of them.
pub(super) fn is_readable(places: &[Arguments], number: usize) -> bool {
    let mut places = places.iter();
    places.all(|arguments| arguments.get(number).is_some_and(Option::is_some))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(arguments: &str) -> Marker {
        Marker {
            provider: "p".to_owned(),
            name: "n".to_owned(),
            offset: 0,
            semaphore_offset: None,
            arguments: arguments.to_owned(),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn an_argument_with_an_index_is_read_and_one_that_cannot_be_takes_no_other_with_it() {
        let first = arguments(&marker("-4@8(%rax,%rcx,4) 8f@%xmm0 1@$7"));
        let indexed = first[0].expect("it is read");
        assert_eq!(
            (indexed.kind, indexed.base, indexed.index, indexed.shift),
            (MARK_MEMORY, 80, 88, 2)
        );
        assert_eq!(
            (indexed.offset, indexed.size_bytes, indexed.is_signed),
            (8, 4, 1)
        );
        let kinds = site(&first).arguments.map(|argument| argument.kind);
        assert_eq!(kinds[..3], [MARK_MEMORY, MARK_NOTHING, MARK_CONSTANT]);
        assert!(kinds[3..].iter().all(|kind| *kind == MARK_NOTHING));
        let second = arguments(&marker("-4@%ebx 8@%rsi"));
        let both = [first, second];
        assert_eq!(common(&both), 2);
        let readable = [0, 1, 2].map(|number| is_readable(&both, number));
        assert_eq!(readable, [true, false, false]);
        assert_eq!(
            arguments(&marker(&"8@%rdi ".repeat(20))).len(),
            PAIR_ARGUMENTS
        );
    }
}
