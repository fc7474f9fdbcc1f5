//! The C declarations inside `format` files: `__data_loc char[] name`, `u64 args[6]`.

/// A declaration, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declaration<'a> {
    /// The name of the field.
    pub name: &'a str,
    /// Its type without array brackets and location prefix, such as `const char *`.
    pub ty: String,
    /// Number of elements when it is an array; zero for `[]`.
    pub count: Option<u32>,
    /// How the bytes are found.
    pub location: Location,
}

/// How the bytes of a declared field are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// At the field's offset.
    Here,
    /// Where a word at the field's offset says, from the record's begin (`__data_loc`).
    Data,
    /// Where a word at the field's offset says, from the end of that word (`__rel_loc`).
    Relative,
}

/// Takes `text` apart; none when it has no name.
pub(crate) fn parse(text: &str) -> Option<Declaration<'_>> {
    let text = text.trim();
    let (text, location) = match text.strip_prefix("__data_loc ") {
        Some(rest) => (rest, Location::Data),
        None => match text.strip_prefix("__rel_loc ") {
            Some(rest) => (rest, Location::Relative),
            None => (text, Location::Here),
        },
    };
    let (head, after) = trailing_array(text);
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let before = head.char_indices().rev().find(|(_, c)| !is_letter(*c));
    let begin = before.map_or(0, |(at, c)| at + c.len_utf8());
    let (ty, name) = head.split_at(begin);
    let (ty, before) = trailing_array(ty.trim());
    if name.is_empty() || ty.is_empty() {
        return None;
    }
    let ty = ty.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(Declaration {
        name,
        ty,
        count: after.or(before),
        location,
    })
}

/// Cuts `[N]` or `[]` off the end. A count that is no plain number (a macro, a sum) is taken as
/// zero: the size column knows better.
fn trailing_array(text: &str) -> (&str, Option<u32>) {
    let text = text.trim_end();
    let cut = text
        .strip_suffix(']')
        .and_then(|t| t.rfind('[').map(|at| (&t[..at], &t[at + 1..])));
    match cut {
        Some((head, count)) => (head.trim_end(), Some(count.trim().parse().unwrap_or(0))),
        None => (text, None),
    }
}

/// The signedness and width that a C integer type has on 64-bit Linux; none for other types.
///
/// The slots of system call arguments are eight bytes wide and claim to be unsigned, whatever the
/// argument is, so that only the type's name says what to read.
pub(crate) fn c_integer(ty: &str) -> Option<(bool, u8)> {
    let ty = ty.strip_prefix("const ").unwrap_or(ty);
    Some(match ty {
        "char" | "signed char" | "s8" | "__s8" | "int8_t" => (true, 1),
        "unsigned char" | "u8" | "__u8" | "uint8_t" | "bool" => (false, 1),
        "short" | "s16" | "__s16" | "int16_t" => (true, 2),
        "unsigned short" | "u16" | "__u16" | "uint16_t" | "umode_t" => (false, 2),
        "int" | "s32" | "__s32" | "int32_t" | "pid_t" | "clockid_t" | "timer_t" | "key_t"
        | "mqd_t" | "key_serial_t" | "rwf_t" => (true, 4),
        "unsigned int" | "unsigned" | "uint" | "u32" | "__u32" | "uint32_t" | "uid_t" | "gid_t"
        | "qid_t" | "dev_t" => (false, 4),
        "long" | "s64" | "__s64" | "int64_t" | "long long" | "off_t" | "loff_t" | "ssize_t" => {
            (true, 8)
        }
        "unsigned long" | "unsigned long long" | "u64" | "__u64" | "uint64_t" | "size_t" => {
            (false, 8)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_taken_apart_however_the_brackets_stand() {
        let check = |text: &str, name: &str, ty: &str, count: Option<u32>, location: Location| {
            let expect = Declaration {
                name,
                ty: ty.to_owned(),
                count,
                location,
            };
            assert_eq!(parse(text).as_ref(), Some(&expect), "{text}");
        };
        check("pid_t prev_pid", "prev_pid", "pid_t", None, Location::Here);
        check("char comm[16]", "comm", "char", Some(16), Location::Here);
        check(
            "__data_loc char[] name",
            "name",
            "char",
            Some(0),
            Location::Data,
        );
        check(
            "__rel_loc u64[] ids",
            "ids",
            "u64",
            Some(0),
            Location::Relative,
        );
        check(
            "const char *const * argv",
            "argv",
            "const char *const *",
            None,
            Location::Here,
        );
        check("void *ptr", "ptr", "void *", None, Location::Here);
        check(
            "unsigned long args[6]",
            "args",
            "unsigned long",
            Some(6),
            Location::Here,
        );
        check(
            "char name[TASK_LEN]",
            "name",
            "char",
            Some(0),
            Location::Here,
        );
        check(
            "__data_loc cpumask_t cpumask",
            "cpumask",
            "cpumask_t",
            None,
            Location::Data,
        );
        check(
            "struct  foo   bar",
            "bar",
            "struct foo",
            None,
            Location::Here,
        );
    }

    #[test]
    fn a_letter_of_several_bytes_before_the_name_is_no_place_to_cut() {
        let found = parse("local_t #\u{fffd}mmit").map(|declaration| declaration.name);
        assert_eq!(found, Some("mmit"));
    }

    #[test]
    fn a_declaration_without_a_name_or_type_is_refused() {
        for text in ["", "int", "[]", "char []", "__data_loc "] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
