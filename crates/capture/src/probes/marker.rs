//! The arguments of markers: `SIZE@OPERAND` in the assembler's words (systemtap's `sdt.h`).

use super::value::Fetch;

/// An argument and its type, or the operand that the kernel cannot read.
pub(super) type Argument = Result<(Fetch, &'static str), String>;

/// All arguments of a marker. Operands have no blanks, but those with an index may.
pub(super) fn arguments(text: &str) -> Vec<Argument> {
    text.split_whitespace().map(argument).collect()
}

fn argument(text: &str) -> Argument {
    let refused = || text.to_owned();
    let (size, operand) = text.split_once('@').ok_or_else(refused)?;
    let ty = match size {
        "-1" => "s8",
        "1" => "u8",
        "-2" => "s16",
        "2" => "u16",
        "-4" => "s32",
        "4" => "u32",
        "-8" => "s64",
        "8" => "u64",
        _ => return Err(refused()),
    };
    let fetch = fetch(operand).ok_or_else(refused)?;
    Ok((fetch, ty))
}

fn fetch(operand: &str) -> Option<Fetch> {
    if let Some(constant) = operand.strip_prefix('$') {
        let number: i64 = constant.parse().ok()?;
        return Some(Fetch::Plain(format!("\\{number}")));
    }
    if let Some(name) = operand.strip_prefix('%') {
        return register(name).map(Fetch::Plain);
    }
    let (offset, rest) = operand.split_once('(')?;
    let name = rest.strip_suffix(')')?.strip_prefix('%')?;
    let offset = match offset {
        "" => 0,
        offset => offset.parse().ok()?,
    };
    let base = register(name).filter(|_| !name.contains("ip"))?;
    Some(Fetch::Memory(Box::new(Fetch::Plain(base)), offset))
}

/// The kernel's name of a register, whatever part of it is meant: its lowest bytes.
fn register(name: &str) -> Option<String> {
    const CLASSIC: [&str; 4] = ["ax", "bx", "cx", "dx"];
    const POINTERS: [&str; 4] = ["si", "di", "bp", "sp"];
    let numbered = |name: &str| {
        let digits = name.strip_prefix('r')?;
        let digits = digits.strip_suffix(['d', 'w', 'b']).unwrap_or(digits);
        let number: u32 = digits.parse().ok()?;
        (8..16).contains(&number).then(|| format!("%r{number}"))
    };
    let whole = name.strip_prefix(['r', 'e']).unwrap_or(name);
    let classic = CLASSIC
        .iter()
        .find(|of| whole == **of || name == format!("{}l", &of[..1]));
    let pointer = POINTERS
        .iter()
        .find(|of| whole == **of || name == format!("{of}l"));
    let named = classic.or(pointer).map(|name| format!("%{name}"));
    named.or_else(|| numbered(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_named_whatever_part_of_it_is_meant() {
        let check = |name: &str, expect: Option<&str>| {
            assert_eq!(register(name).as_deref(), expect, "{name}");
        };
        for name in ["rax", "eax", "ax", "al"] {
            check(name, Some("%ax"));
        }
        check("sil", Some("%si"));
        check("rbp", Some("%bp"));
        check("r8", Some("%r8"));
        check("r15d", Some("%r15"));
        check("r10b", Some("%r10"));
        for name in ["ah", "r16", "xmm0", "", "rip", "st"] {
            check(name, None);
        }
    }

    #[test]
    fn an_operand_that_the_kernel_cannot_read_is_said() {
        let check = |text: &str, expect: bool| {
            assert_eq!(argument(text).is_ok(), expect, "{text}");
        };
        check("-4@%edi", true);
        check("8@(%rsp)", true);
        check("4@$-3", true);
        check("8@16(%r12)", true);
        for text in [
            "8@(%rax,%rbx,8)",
            "4@global(%rip)",
            "8@%xmm0",
            "16@%rax",
            "%rax",
            "8f@%xmm0",
            "8@8(%rip)",
        ] {
            check(text, false);
        }
    }
}
