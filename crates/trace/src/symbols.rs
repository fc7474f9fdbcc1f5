//! Kernel symbols: from an address to the function that holds it.

/// A sorted table of function addresses, as `/proc/kallsyms` gives them: a hundred thousand and
/// more, which a program that runs for months keeps.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Sorted by address.
    functions: Vec<Function>,
    /// Their names, one behind the other.
    names: String,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    /// Where its name is.
    name: u32,
    name_bytes: u32,
}

/// The name of what belongs to no function: the table may say so where one ends.
pub const NO_FUNCTION: &str = "?";

/// No function of the kernel is larger. What lies further behind one belongs to none: code made at
/// run time, as that of BPF programs, may have no line in the table.
const FUNCTION_BYTES_MAX: u64 = 256 << 10;

impl Symbols {
    /// Reads the text of `/proc/kallsyms`; keeps functions only. Lines that make no sense, and
    /// addresses of zero (hidden by `kptr_restrict`), are left out.
    pub fn from_kallsyms(text: &str) -> Self {
        let mut symbols = Symbols::default();
        for (start, name) in text.lines().filter_map(function) {
            let place = u32::try_from(symbols.names.len());
            let (Ok(place), Ok(name_bytes)) = (place, u32::try_from(name.len())) else {
                break;
            };
            symbols.names.push_str(name);
            symbols.functions.push(Function {
                start,
                name: place,
                name_bytes,
            });
        }
        symbols.functions.sort_by_key(|function| function.start);
        symbols.functions.shrink_to_fit();
        symbols.names.shrink_to_fit();
        symbols
    }

    fn name(&self, function: &Function) -> &str {
        let begin = function.name as usize;
        &self.names[begin..begin + function.name_bytes as usize]
    }

    /// The function that holds `address` and the offset into it; of names that share an address,
    /// the last that names a function.
    pub fn lookup(&self, address: u64) -> Option<(&str, u64)> {
        let after = self
            .functions
            .partition_point(|function| function.start <= address);
        let before = &self.functions[..after];
        let last = before.last()?;
        let sharing = before.iter().rev();
        let mut sharing = sharing.take_while(|other| other.start == last.start);
        let function = sharing
            .find(|other| !is_mark(self.name(other)))
            .unwrap_or(last);
        let (offset, name) = (address - function.start, self.name(function));
        let inside = offset < FUNCTION_BYTES_MAX && name != NO_FUNCTION;
        inside.then_some((name, offset))
    }

    /// Where the functions of this name begin: several when files have one of their own.
    pub fn addresses(&self, name: &str) -> Vec<u64> {
        let functions = self.functions.iter();
        let named = functions.filter(|function| self.name(function) == name);
        named.map(|function| function.start).collect()
    }

    /// Where the functions are whose names are meant, begin and end; what touches is one.
    pub fn ranges(&self, is_meant: &dyn Fn(&str) -> bool) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (place, function) in self.functions.iter().enumerate() {
            let (begin, name) = (function.start, self.name(function));
            if name == NO_FUNCTION || !is_meant(name) {
                continue;
            }
            // Names that share an address are one function.
            let behind = self.functions[place..].iter();
            let next = behind.map(|next| next.start).find(|start| *start > begin);
            let end = begin.saturating_add(FUNCTION_BYTES_MAX);
            let end = next.map_or(end, |next| next.min(end));
            match ranges.last_mut() {
                Some((_, last)) if *last >= begin => *last = end.max(*last),
                _ => ranges.push((begin, end)),
            }
        }
        ranges
    }

    /// The text of `/proc/kallsyms` that [`Symbols::from_kallsyms`] reads.
    pub fn to_kallsyms(&self) -> String {
        let line =
            |function: &Function| format!("{:016x} t {}\n", function.start, self.name(function));
        self.functions.iter().map(line).collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

/// Whether a name only marks where a section of the kernel's code begins or ends: the function that
/// begins there has a name of its own.
fn is_mark(name: &str) -> bool {
    const ENDS: [&str; 4] = ["_text_start", "_text_end", "_thunk_start", "_thunk_end"];
    ENDS.iter().any(|end| name.ends_with(end)) || ["_text", "_stext", "_etext"].contains(&name)
}

/// `ffffffff81000000 T startup_64 [module]` → address and name, for functions.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16)
        .ok()
        .filter(|address| *address != 0)?;
    matches!(words.next()?, "t" | "T" | "w" | "W").then_some(())?;
    Some((address, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_the_function_that_starts_before_it() {
        let symbols = Symbols::from_kallsyms(
            "0000000000002000 T second\n0000000000001000 t first [mod]\n\
             0000000000001800 d data\n0000000000000000 T hidden\nnonsense\n",
        );
        assert_eq!(symbols.lookup(0x1010), Some(("first", 0x10)));
        assert_eq!(symbols.lookup(0x2000), Some(("second", 0)));
        assert_eq!(symbols.lookup(0xfff), None);
        assert_eq!(symbols.addresses("second"), [0x2000]);
        assert!(symbols.addresses("data").is_empty());
        let again = Symbols::from_kallsyms(&symbols.to_kallsyms());
        assert_eq!(again.lookup(0x1010), Some(("first", 0x10)));
        assert_eq!(symbols.lookup(0x2000 + FUNCTION_BYTES_MAX), None);
    }

    #[test]
    fn a_mark_between_sections_is_no_function_where_one_begins() {
        let check = |names: [&str; 3], expect: &str| {
            let line = |name: &&str| format!("1000 T {name}\n");
            let text: String = names.iter().map(line).collect();
            let symbols = Symbols::from_kallsyms(&format!("{text}1020 T next\n"));
            assert_eq!(symbols.lookup(0x100c), Some((expect, 0xc)), "{names:?}");
        };
        let (mark, thunk) = ("__static_call_text_end", "__x86_indirect_thunk_rax");
        check(["__indirect_thunk_start", thunk, mark], thunk);
        check([mark, thunk, "__indirect_thunk_start"], thunk);
        check(["_stext", "_text", "startup_64"], "startup_64");
        check(["startup_64", "_text", "_stext"], "startup_64");
        // Of two functions, the last.
        check(["first", "second", "_etext"], "second");
        check([mark, "__entry_text_start", "_etext"], "_etext");
    }

    #[test]
    fn nothing_is_found_behind_the_end_of_a_function_that_the_table_says() {
        let symbols = Symbols::from_kallsyms(
            "1100 t ? [bpf]\n1200 t ? [bpf]\n1000 t ours [bpf]\n1100 t next [bpf]\n",
        );
        assert_eq!(symbols.lookup(0x10ff), Some(("ours", 0xff)));
        assert_eq!(symbols.lookup(0x1100), Some(("next", 0)));
        assert_eq!(symbols.lookup(0x1200), None);
    }

    #[test]
    fn the_functions_of_a_name_are_where_lookups_find_them() {
        let lines = "1000 t tick\n1100 t tock\n1200 t other\n1200 t alias\n9000000 t tick\n";
        let symbols = Symbols::from_kallsyms(lines);
        let check = |is_meant: &dyn Fn(&str) -> bool, expect: &[(u64, u64)]| {
            assert_eq!(symbols.ranges(is_meant), expect);
        };
        let end = FUNCTION_BYTES_MAX;
        check(&|name| name == "tock", &[(0x1100, 0x1200)]);
        check(
            &|name| name == "tick",
            &[(0x1000, 0x1100), (0x900_0000, 0x900_0000 + end)],
        );
        check(
            &|name| name.starts_with('t'),
            &[(0x1000, 0x1200), (0x900_0000, 0x900_0000 + end)],
        );
        check(&|name| name == "alias", &[(0x1200, 0x1200 + end)]);
        check(&|_| false, &[]);
    }
}
