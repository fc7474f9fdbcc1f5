//! What was typed of a probe: `[NAME=]PLACE [FIELD=EXPR[:TYPE]]…`, with the column of what makes no
//! sense.

use event::{Error, ErrorKind};

use crate::programs;

/// The kernel takes no longer names, and no more fields.
const NAME_BYTES_MAX: usize = 60;
const FIELDS_MAX: usize = 64;

/// What kind of probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// At an instruction of a program or library.
    Uprobe,
    /// Where a function of one returns.
    Uretprobe,
    /// At a marker of a program (USDT).
    Usdt,
    /// At an instruction of the kernel.
    Kprobe,
    /// Where a function of the kernel returns.
    Kretprobe,
}

impl ProbeKind {
    /// The flag that asks for one.
    pub fn flag(self) -> &'static str {
        match self {
            ProbeKind::Uprobe => "--uprobe",
            ProbeKind::Uretprobe => "--uretprobe",
            ProbeKind::Usdt => "--usdt",
            ProbeKind::Kprobe => "--probe",
            ProbeKind::Kretprobe => "--retprobe",
        }
    }

    /// How one is written.
    fn example(self) -> &'static str {
        match self {
            ProbeKind::Uprobe => "--uprobe 'alloc=libc.so.6:malloc size=arg1:size_t'",
            ProbeKind::Uretprobe => "--uretprobe 'got=libc.so.6:malloc at=ret:pointer'",
            ProbeKind::Usdt => "--usdt 'jackd:jack:xrun', or 'pid:123:jack:xrun'",
            ProbeKind::Kprobe => "--probe 'open=do_sys_openat2 path=arg2:ustring'",
            ProbeKind::Kretprobe => "--retprobe 'opened=do_sys_openat2 fd=ret:int'",
        }
    }

    /// The kernel's letter for it. A return has the letter of both worlds.
    pub(super) fn letter(self) -> &'static str {
        match self {
            ProbeKind::Uprobe | ProbeKind::Usdt | ProbeKind::Kprobe => "p",
            ProbeKind::Uretprobe | ProbeKind::Kretprobe => "r",
        }
    }

    pub(super) fn is_return(self) -> bool {
        matches!(self, ProbeKind::Uretprobe | ProbeKind::Kretprobe)
    }

    pub(super) fn is_of_kernel(self) -> bool {
        matches!(self, ProbeKind::Kprobe | ProbeKind::Kretprobe)
    }
}

/// A field with its expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldSpec {
    pub name: String,
    /// The expression, and its column in the text.
    pub expression: String,
    pub column: usize,
    /// Its type's name, and the column of that.
    pub ty: Option<(String, usize)>,
}

/// A probe, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What its events are called.
    pub name: String,
    pub(super) kind: ProbeKind,
    /// The file; empty for the kernel. `pid:N` means all files that process N runs.
    pub(super) file: String,
    /// The function, or the marker.
    pub(super) symbol: String,
    /// The provider of a marker.
    pub(super) provider: String,
    /// Beyond the function's begin; or where in the file, without one.
    pub(super) offset: u64,
    pub(super) fields: Vec<FieldSpec>,
    /// All of it.
    pub(super) text: String,
}

/// What makes no sense, and at which column it begins, from 1 on.
pub(super) struct Fault {
    pub column: usize,
    pub what: String,
}

impl Fault {
    pub fn new(column: usize, what: impl Into<String>) -> Fault {
        let what = what.into();
        Fault { column, what }
    }

    /// With all that was typed.
    pub fn into_error(self, kind: ProbeKind, text: &str) -> Error {
        let flag = kind.flag();
        let what = format!(
            "{flag} makes no sense at column {}: {}",
            self.column, self.what
        );
        Error::new(ErrorKind::InvalidInput, what)
            .found(format!("'{text}'"))
            .fix(format!("as in {}", kind.example()))
    }
}

impl Probe {
    /// An error about what was typed.
    pub(super) fn refuse(&self, kind: ErrorKind, what: String, found: String) -> Error {
        Error::new(kind, what).found(format!("{found} ('{}')", self.text))
    }
}

/// Reads a probe; whether its expressions make sense is another's.
pub(super) fn parse(kind: ProbeKind, text: &str) -> Result<Probe, Fault> {
    let mut words = words(text);
    let Some((column, place)) = words.next() else {
        return Err(Fault::new(1, "there is no place"));
    };
    let (name, column, place) = match place.split_once('=') {
        Some((name, rest)) if is_identifier(name) => {
            (Some(name), column + name.chars().count() + 1, rest)
        }
        _ => (None, column, place),
    };
    let mut probe = at(kind, place, column)?;
    let base = match kind {
        ProbeKind::Usdt => format!("{}_{}", probe.provider, probe.symbol),
        _ if probe.symbol.is_empty() => format!("at_{:x}", probe.offset),
        _ => probe.symbol.clone(),
    };
    let usual = match kind.is_return() {
        true => format!("{base}_return"),
        false => base,
    };
    probe.name = name.map_or_else(|| plain(&usual), str::to_owned);
    if probe.name.len() > NAME_BYTES_MAX {
        return Err(Fault::new(column, "the name of its events is too long"));
    }
    for (column, word) in words {
        let field = field(word, column)?;
        if probe.fields.iter().any(|other| other.name == field.name) {
            return Err(Fault::new(column, "a second field of this name"));
        }
        if probe.fields.len() >= FIELDS_MAX {
            return Err(Fault::new(column, "more fields than the kernel takes"));
        }
        probe.fields.push(field);
    }
    probe.text = text.to_owned();
    Ok(probe)
}

/// The words of a text with their columns.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace().map(move |word| {
        let at = word.as_ptr() as usize - text.as_ptr() as usize;
        (text[..at].chars().count() + 1, word)
    })
}

fn at(kind: ProbeKind, place: &str, column: usize) -> Result<Probe, Fault> {
    let mut probe = Probe {
        name: String::new(),
        kind,
        file: String::new(),
        symbol: String::new(),
        provider: String::new(),
        offset: 0,
        fields: Vec::new(),
        text: String::new(),
    };
    let mut place = place;
    if !kind.is_of_kernel() {
        let Some((file, behind)) = programs::split(place).or_else(|| last_parts(kind, place))
        else {
            let form = match kind {
                ProbeKind::Usdt => "FILE:PROVIDER:NAME",
                _ => "FILE:FUNCTION",
            };
            return Err(Fault::new(
                column,
                format!("a place is {form}, without a blank"),
            ));
        };
        probe.file = file.to_owned();
        place = behind;
    }
    let column = column + probe.file.chars().count() + usize::from(!kind.is_of_kernel());
    if kind == ProbeKind::Usdt {
        let (provider, name) = place.split_once(':').unwrap_or_default();
        if provider.is_empty() || name.is_empty() {
            return Err(Fault::new(column, "a place is FILE:PROVIDER:NAME"));
        }
        probe.provider = provider.to_owned();
        probe.symbol = name.to_owned();
        return Ok(probe);
    }
    let (symbol, offset) = match place.split_once('+') {
        Some((symbol, offset)) => {
            let column = column + symbol.chars().count() + 1;
            let number = number(offset).ok_or_else(|| Fault::new(column, "not a number"))?;
            (symbol, number)
        }
        None => (place, 0),
    };
    match number(symbol) {
        // A place in the file itself.
        Some(at) if !kind.is_of_kernel() => {
            probe.offset = at + offset;
            probe.symbol = String::new();
        }
        _ if symbol.is_empty() => return Err(Fault::new(column, "there is no function")),
        _ if kind.is_return() && offset > 0 => {
            return Err(Fault::new(
                column,
                "a function returns as a whole: no offset",
            ));
        }
        _ => {
            probe.symbol = symbol.to_owned();
            probe.offset = offset;
        }
    }
    Ok(probe)
}

/// A file that is not there may have colons in its name; what is behind it has one at most.
fn last_parts(kind: ProbeKind, place: &str) -> Option<(&str, &str)> {
    let parts = match kind {
        ProbeKind::Usdt => 2,
        _ => 1,
    };
    let (at, _) = place.rmatch_indices(':').nth(parts - 1)?;
    (at > 0).then(|| (&place[..at], &place[at + 1..]))
}

fn field(word: &str, column: usize) -> Result<FieldSpec, Fault> {
    let Some((name, rest)) = word.split_once('=') else {
        return Err(Fault::new(column, "a field is NAME=EXPR or NAME=EXPR:TYPE"));
    };
    if !is_identifier(name) {
        return Err(Fault::new(column, "not a name for a field"));
    }
    let column = column + name.chars().count() + 1;
    let (expression, ty) = match rest.rsplit_once(':') {
        Some((expression, ty)) => {
            let at = column + expression.chars().count() + 1;
            (expression, Some((ty.to_owned(), at)))
        }
        None => (rest, None),
    };
    if expression.is_empty() {
        return Err(Fault::new(column, "there is no expression"));
    }
    Ok(FieldSpec {
        name: name.to_owned(),
        expression: expression.to_owned(),
        column,
        ty,
    })
}

/// Decimal, or hexadecimal behind `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

fn is_identifier(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = text.chars().next().is_some_and(|c| !c.is_ascii_digit());
    begins && text.chars().all(is_letter)
}

/// A name that the kernel takes for an event.
fn plain(name: &str) -> String {
    let mut plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if !is_identifier(&plain) {
        plain.insert(0, '_');
    }
    plain.truncate(NAME_BYTES_MAX);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_has_a_name_a_place_and_fields() {
        let check = |kind, text: &str, expect: (&str, &str, &str, &str, u64, usize)| {
            let probe = Probe::parse(kind, text).unwrap_or_else(|error| panic!("{error:#}"));
            let found = (
                probe.name.as_str(),
                probe.file.as_str(),
                probe.provider.as_str(),
                probe.symbol.as_str(),
                probe.offset,
                probe.fields.len(),
            );
            assert_eq!(found, expect, "{text}");
        };
        use ProbeKind::{Kprobe, Kretprobe, Uprobe, Uretprobe, Usdt};
        check(Uprobe, "/bin/a:main", ("main", "/bin/a", "", "main", 0, 0));
        check(
            Uprobe,
            "m=libc.so.6:malloc+0x10 size=arg1:size_t n=arg2",
            ("m", "libc.so.6", "", "malloc", 16, 2),
        );
        check(Uprobe, "/a=b:c:f", ("f", "/a=b:c", "", "f", 0, 0));
        check(Uprobe, "x=/a:0x1130", ("x", "/a", "", "", 0x1130, 0));
        check(Uprobe, "/a:0x1130", ("at_1130", "/a", "", "", 0x1130, 0));
        check(Uretprobe, "a:f r=ret", ("f_return", "a", "", "f", 0, 1));
        check(Usdt, "a:p:n", ("p_n", "a", "p", "n", 0, 0));
        check(Usdt, "pid:7:p:n", ("p_n", "pid:7", "p", "n", 0, 0));
        check(Kprobe, "vfs_read+8", ("vfs_read", "", "", "vfs_read", 8, 0));
        check(
            Kretprobe,
            "r=vfs_read n=ret",
            ("r", "", "", "vfs_read", 0, 1),
        );
        check(
            Uprobe,
            "a:_ZN3foo3barEv",
            ("_ZN3foo3barEv", "a", "", "_ZN3foo3barEv", 0, 0),
        );
        check(
            Uprobe,
            "a:f.part.0",
            ("f_part_0", "a", "", "f.part.0", 0, 0),
        );
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_column() {
        let check = |kind, text: &str, column: usize, what: &str| {
            let error = Probe::parse(kind, text).expect_err(text);
            let expect = format!("at column {column}: {what}");
            assert!(error.what().contains(&expect), "{text}: {error:#}");
            assert!(
                error
                    .fixed_by()
                    .is_some_and(|fix| fix.contains(kind.flag()))
            );
        };
        use ProbeKind::{Kprobe, Uprobe, Uretprobe, Usdt};
        check(Uprobe, "", 1, "there is no place");
        check(Uprobe, "main", 1, "a place is FILE:FUNCTION");
        check(Uprobe, ":main", 1, "a place is");
        check(Uprobe, "a:", 3, "there is no function");
        check(Uprobe, "a:f+x", 5, "not a number");
        check(Usdt, "a:b", 1, "a place is FILE:PROVIDER:NAME");
        check(Usdt, "a::b", 3, "a place is FILE:PROVIDER:NAME");
        check(Uprobe, "a:f size", 5, "a field is");
        check(Uprobe, "a:f 1=arg1", 5, "not a name");
        check(Uprobe, "a:f s=", 7, "there is no expression");
        check(Uprobe, "a:f s=arg1 s=arg2", 12, "a second field");
        check(Uprobe, "a:f s=arg9", 7, "registers hold 6 arguments");
        check(Uprobe, "a:f s=ret", 7, "it is there only where");
        check(Uretprobe, "a:f s=arg1", 7, "its arguments are gone");
        check(Uretprobe, "a:f+4", 3, "a function returns as a whole");
        check(Uprobe, "a:f s=arg1:strnig", 12, "no such type");
        check(Uprobe, "a:f s=*(arg1+8", 15, "')' is missing");
        check(
            Uprobe,
            "a:f s=arg1+8",
            11,
            "the kernel adds only within *( )",
        );
        check(Uprobe, "a:f \u{e4}=arg1", 5, "not a name");
        check(Uprobe, "a:f s=size", 7, "not an expression");
        check(Kprobe, "m=f s=arg0", 7, "arguments count from 1");
        check(Uprobe, "a:f s=%%", 8, "a register's name");
        check(Uprobe, "a:f s=****************arg1", 23, "too deep");
    }
}
