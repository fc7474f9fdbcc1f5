//! The arguments of markers (USDT): `SIZE@OPERAND` in the assembler's words, as systemtap's `sdt.h`
//! leaves them. Bytes from outside: what is not understood is told by its text.

use crate::places::Marker;

/// A register, by the kernel's own name of the whole of it: `ax`, `sp`, `r15`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(&'static str);

impl Register {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.0
    }
}

/// Where an argument is when its marker is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// It is always this number.
    Constant(i64),
    /// In the lowest bytes of a register.
    Register(Register),
    /// In memory: at the sum of these.
    Memory {
        /// An address, if there is one.
        base: Option<Register>,
        /// A number, and the power of two by which it counts.
        index: Option<(Register, u8)>,
        /// So many bytes beyond.
        offset: i64,
    },
}

/// An argument of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// How many bytes it has: 1, 2, 4 or 8.
    pub size_bytes: u8,
    /// Whether it has a sign.
    pub signed: bool,
    /// Where it is.
    pub operand: Operand,
}

/// An argument as its program's compiler wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenArgument {
    /// In its words, as in `-4@8(%rax,%rcx,4)`.
    pub text: String,
    /// What they say; none for what no tracer can read, as floating numbers.
    pub read: Option<Argument>,
}

/// All registers that hold numbers, as the kernel calls them.
const CLASSIC: [&str; 4] = ["ax", "bx", "cx", "dx"];
const POINTERS: [&str; 4] = ["si", "di", "bp", "sp"];
const NUMBERED: [&str; 8] = ["r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

impl Marker {
    /// Its arguments one by one.
    pub fn read_arguments(&self) -> Vec<WrittenArgument> {
        arguments(&self.arguments)
    }
}

/// Arguments have blanks between them, and some compilers put such into an operand's parentheses.
fn arguments(text: &str) -> Vec<WrittenArgument> {
    let mut depth = 0usize;
    let is_between = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c.is_whitespace() && depth == 0
    };
    let pieces = text.split(is_between).filter(|piece| !piece.is_empty());
    let argument = |text: &str| WrittenArgument {
        text: text.to_owned(),
        read: argument(text),
    };
    pieces.map(argument).collect()
}

fn argument(text: &str) -> Option<Argument> {
    let (size, operand) = text.split_once('@')?;
    let (signed, size) = match size.strip_prefix('-') {
        Some(size) => (true, size),
        None => (false, size),
    };
    let size_bytes = match size {
        "1" => 1,
        "2" => 2,
        "4" => 4,
        "8" => 8,
        _ => return None,
    };
    Some(Argument {
        size_bytes,
        signed,
        operand: self::operand(operand)?,
    })
}

fn operand(text: &str) -> Option<Operand> {
    if let Some(constant) = text.strip_prefix('$') {
        return number(constant).map(Operand::Constant);
    }
    if text.starts_with('%') {
        return register(text).map(Operand::Register);
    }
    let (offset, rest) = text.split_once('(')?;
    let offset = match offset {
        "" => 0,
        offset => number(offset)?,
    };
    let mut parts = rest.strip_suffix(')')?.split(',').map(str::trim);
    let base = match parts.next()? {
        "" => None,
        name => Some(register(name)?),
    };
    let index = parts.next().map(register);
    let shift = match parts.next() {
        None | Some("" | "1") => 0,
        Some("2") => 1,
        Some("4") => 2,
        Some("8") => 3,
        Some(_) => return None,
    };
    let index = match index {
        None => None,
        Some(index) => Some((index?, shift)),
    };
    let is_address = base.is_some() || index.is_some();
    (is_address && parts.next().is_none()).then_some(Operand::Memory {
        base,
        index,
        offset,
    })
}

/// A number as assemblers write it: with a sign, with ten or sixteen digits.
fn number(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    // What has 64 bits is taken for its bits.
    let value = value.ok().filter(|_| !digits.starts_with('+'))? as i64;
    Some(if is_negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// The register of which `%name` is a part that begins with its lowest byte.
fn register(name: &str) -> Option<Register> {
    let name = name.strip_prefix('%')?;
    if name.starts_with("r") && name.as_bytes().get(1).is_some_and(u8::is_ascii_digit) {
        let whole = name.strip_suffix(['d', 'w', 'b']).unwrap_or(name);
        return NUMBERED.into_iter().find(|of| *of == whole).map(Register);
    }
    let whole = name.strip_prefix(['r', 'e']).unwrap_or(name);
    let is_low = |of: &str, stem: &str| name.strip_suffix('l') == Some(stem) || whole == of;
    let classic = CLASSIC.into_iter().find(|of| is_low(of, &of[..1]));
    let pointer = || POINTERS.into_iter().find(|of| is_low(of, of));
    classic.or_else(pointer).map(Register)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_named_whatever_part_of_it_is_meant() {
        let check = |name: &str, expect: Option<&str>| {
            assert_eq!(register(name).map(Register::name), expect, "{name}");
        };
        for name in ["%rax", "%eax", "%ax", "%al"] {
            check(name, Some("ax"));
        }
        check("%bl", Some("bx"));
        check("%sil", Some("si"));
        check("%rbp", Some("bp"));
        check("%r8", Some("r8"));
        check("%r15d", Some("r15"));
        check("%r10b", Some("r10"));
        for name in [
            "%ah", "%r16", "%r8l", "%xmm0", "%", "%rip", "%eip", "%st", "rax",
        ] {
            check(name, None);
        }
    }

    fn memory(base: Option<&'static str>, index: Option<(&'static str, u8)>, at: i64) -> Operand {
        Operand::Memory {
            base: base.map(Register),
            index: index.map(|(name, shift)| (Register(name), shift)),
            offset: at,
        }
    }

    #[test]
    fn an_operand_is_a_number_a_register_or_an_address_with_an_index() {
        let check = |text: &str, size_bytes: u8, signed: bool, operand: Operand| {
            let expect = Argument {
                size_bytes,
                signed,
                operand,
            };
            assert_eq!(argument(text), Some(expect), "{text}");
        };
        check("-4@%edi", 4, true, Operand::Register(Register("di")));
        check("2@%cx", 2, false, Operand::Register(Register("cx")));
        check("4@$-3", 4, false, Operand::Constant(-3));
        check("8@$0x10", 8, false, Operand::Constant(16));
        check("8@(%rsp)", 8, false, memory(Some("sp"), None, 0));
        check("-1@-16(%r12)", 1, true, memory(Some("r12"), None, -16));
        check("8@-0x8(%rbp)", 8, false, memory(Some("bp"), None, -8));
        let indexed = memory(Some("ax"), Some(("cx", 2)), 8);
        check("-4@8(%rax,%rcx,4)", 4, true, indexed);
        check(
            "8@(%rax,%r9)",
            8,
            false,
            memory(Some("ax"), Some(("r9", 0)), 0),
        );
        check("2@(,%rbx,2)", 2, false, memory(None, Some(("bx", 1)), 0));
    }

    #[test]
    fn what_cannot_be_read_is_told_by_its_words_and_takes_no_other_with_it() {
        for text in [
            "4@global(%rip)",
            "8@8(%rip)",
            "8@%xmm0",
            "8f@%xmm0",
            "16@%rax",
            "%rax",
            "8@(%rax,%rbx,3)",
            "8@(%rax,%rbx,4,1)",
            "8@(%rax,%rip,4)",
            "8@()",
            "8@12",
            "8@(%rax",
            "8@$",
            "8@$+1",
            "@",
        ] {
            assert_eq!(argument(text), None, "{text}");
        }
        let all = arguments("-4@%edi 8@(%rax, %rbx, 8)  8f@%xmm0 -1@$5");
        let read: Vec<bool> = all.iter().map(|one| one.read.is_some()).collect();
        assert_eq!(read, [true, true, false, true], "{all:?}");
        assert_eq!(all[2].text, "8f@%xmm0");
        assert_eq!(arguments(""), []);
        assert_eq!(arguments("8@) 4@%eax").len(), 2);
    }
}
