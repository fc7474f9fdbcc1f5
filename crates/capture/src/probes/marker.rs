//! The arguments of markers in the words of the kernel's probes.

use symbols::{Argument, Marker, Operand};

use super::value::Fetch;

/// An argument and its type, or the words of one that the kernel's probes cannot read.
pub(super) type Fetched = Result<(Fetch, &'static str), String>;

/// All arguments of a marker.
pub(super) fn arguments(marker: &Marker) -> Vec<Fetched> {
    let written = marker.read_arguments().into_iter();
    let fetched = written.map(|written| {
        let argument = written.read;
        let fetched =
            argument.and_then(|argument| Some((fetch(&argument.operand)?, kernel_type(&argument))));
        fetched.ok_or(written.text)
    });
    fetched.collect()
}

fn kernel_type(argument: &Argument) -> &'static str {
    match (argument.size_bytes, argument.signed) {
        (1, true) => "s8",
        (1, false) => "u8",
        (2, true) => "s16",
        (2, false) => "u16",
        (4, true) => "s32",
        (4, false) => "u32",
        (_, true) => "s64",
        (_, false) => "u64",
    }
}

/// A probe of the kernel adds no index to an address.
fn fetch(operand: &Operand) -> Option<Fetch> {
    let register = |register: symbols::Register| Fetch::Plain(format!("%{}", register.name()));
    match *operand {
        Operand::Constant(number) => Some(Fetch::Plain(format!("\\{number}"))),
        Operand::Register(of) => Some(register(of)),
        Operand::Memory {
            base: Some(base),
            index: None,
            offset,
        } => Some(Fetch::Memory(Box::new(register(base)), offset)),
        // What is scaled by one is an address like any other.
        Operand::Memory {
            base: None,
            index: Some((index, 0)),
            offset,
        } => Some(Fetch::Memory(Box::new(register(index)), offset)),
        Operand::Memory { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operand_that_the_kernel_cannot_read_is_said_by_its_words() {
        let marker = Marker {
            provider: "p".to_owned(),
            name: "n".to_owned(),
            offset: 0,
            semaphore_offset: None,
            arguments: "-4@%edi 8@16(%r12) 4@$-3 8@(%rax,%rbx,8) 8f@%xmm0 8@(,%rcx,1)".to_owned(),
        };
        let plain = |text: &str| Fetch::Plain(text.to_owned());
        let memory = |text: &str, offset| Fetch::Memory(Box::new(plain(text)), offset);
        assert_eq!(
            arguments(&marker),
            [
                Ok((plain("%di"), "s32")),
                Ok((memory("%r12", 16), "u64")),
                Ok((plain("\\-3"), "u32")),
                Err("8@(%rax,%rbx,8)".to_owned()),
                Err("8f@%xmm0".to_owned()),
                Ok((memory("%cx", 0), "u64")),
            ]
        );
    }
}
