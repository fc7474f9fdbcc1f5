//! Expressions over arguments, results and memory, in the words that the kernel takes.
//!
//! `arg1` is the first argument, `ret` what a function returns, `*(arg1+8)` what lies in memory
//! there, `comm` the task's name, `stack2` a word of the stack, `%di` a register by the kernel's
//! name.

use event::Result;

use super::marker;
use super::spec::{Fault, FieldSpec, Probe, ProbeKind};
use super::target::Target;
use super::value::Fetch;

/// The kernel follows no more pointers.
const DEPTH_MAX: usize = 15;

/// The registers of the first arguments, by the kernel's names.
#[cfg(target_arch = "x86_64")]
const ARGUMENTS: &[&str] = &["%di", "%si", "%dx", "%cx", "%r8", "%r9"];
#[cfg(not(target_arch = "x86_64"))]
const ARGUMENTS: &[&str] = &["%x0", "%x1", "%x2", "%x3", "%x4", "%x5", "%x6", "%x7"];

/// The names of types, and the kernel's own.
const TYPES: &[(&str, &str)] = &[
    ("char", "s8"),
    ("bool", "u8"),
    ("uchar", "u8"),
    ("short", "s16"),
    ("ushort", "u16"),
    ("int", "s32"),
    ("uint", "u32"),
    ("unsigned", "u32"),
    ("pid_t", "s32"),
    ("long", "s64"),
    ("ulong", "u64"),
    ("size_t", "u64"),
    ("ssize_t", "s64"),
    ("pointer", "x64"),
    ("s8", "s8"),
    ("u8", "u8"),
    ("s16", "s16"),
    ("u16", "u16"),
    ("s32", "s32"),
    ("u32", "u32"),
    ("s64", "s64"),
    ("u64", "u64"),
    ("x8", "x8"),
    ("x16", "x16"),
    ("x32", "x32"),
    ("x64", "x64"),
    ("string", "string"),
    ("ustring", "ustring"),
];

/// Whether all expressions make sense, whatever the place is.
pub(super) fn check(probe: &Probe) -> Result<(), Fault> {
    for field in &probe.fields {
        let fetch = parse(probe, field)?;
        let Some(number) = argument(&fetch) else {
            continue;
        };
        // Those of a marker are its own.
        if probe.kind != ProbeKind::Usdt && number > ARGUMENTS.len() {
            let count = ARGUMENTS.len();
            let what = format!("registers hold {count} arguments; others are on the stack");
            return Err(Fault::new(field.column, what));
        }
    }
    Ok(())
}

/// The fields of `probe` at `target`, in the kernel's words; and what was left out, and why.
pub(super) fn fields(probe: &Probe, target: &Target) -> Result<(Vec<String>, Vec<String>)> {
    let fault = |fault: Fault| fault.into_error(probe.kind, &probe.text);
    if let (Target::Marker { marker, .. }, true) = (target, probe.fields.is_empty()) {
        let all = marker::arguments(marker).into_iter().enumerate();
        let (mut fields, mut left_out) = (Vec::new(), Vec::new());
        for (place, argument) in all {
            let number = place + 1;
            match argument {
                Ok((fetch, ty)) => fields.push(format!("arg{number}={}:{ty}", words(&fetch))),
                Err(operand) => left_out.push(format!(
                    "{}: argument {number} is left out: the kernel cannot read '{operand}'",
                    probe.name
                )),
            }
        }
        return Ok((fields, left_out));
    }
    let mut fields = Vec::new();
    for field in &probe.fields {
        let parsed = parse(probe, field).map_err(fault)?;
        let (fetch, usual) = match target {
            Target::Marker { marker, .. } => {
                of_marker(&parsed, marker).map_err(|what| fault(Fault::new(field.column, what)))?
            }
            _ => (with_registers(parsed), None),
        };
        fields.push(typed(field, fetch, usual));
    }
    Ok((fields, Vec::new()))
}

/// A field with its type.
fn typed(field: &FieldSpec, fetch: Fetch, usual: Option<&'static str>) -> String {
    let name = &field.name;
    if fetch == Fetch::Comm {
        return format!("{name}=$comm");
    }
    let asked = field.ty.as_ref().and_then(|(ty, _)| kernel_type(ty));
    match asked.or(usual).unwrap_or("s64") {
        // The value is where the text begins.
        ty @ ("string" | "ustring") => {
            let text = Fetch::Memory(Box::new(fetch), 0);
            format!("{name}={}:{ty}", words(&text))
        }
        ty => format!("{name}={}:{ty}", words(&fetch)),
    }
}

fn words(fetch: &Fetch) -> String {
    match fetch {
        Fetch::Plain(word) => word.clone(),
        Fetch::Argument(number) => format!("$arg{number}"),
        Fetch::Comm => "$comm".to_owned(),
        Fetch::Memory(at, offset) => format!("{offset:+}({})", words(at)),
    }
}

fn argument(fetch: &Fetch) -> Option<usize> {
    match fetch {
        Fetch::Argument(number) => Some(*number),
        Fetch::Memory(at, _) => argument(at),
        Fetch::Plain(_) | Fetch::Comm => None,
    }
}

fn with_registers(fetch: Fetch) -> Fetch {
    match fetch {
        Fetch::Argument(number) => {
            let register = ARGUMENTS.get(number - 1).copied().unwrap_or_default();
            Fetch::Plain(register.to_owned())
        }
        Fetch::Memory(at, offset) => Fetch::Memory(Box::new(with_registers(*at)), offset),
        other => other,
    }
}

/// The same with the arguments of a marker; with the type of an argument that stands alone.
fn of_marker(
    fetch: &Fetch,
    marker: &symbols::Marker,
) -> std::result::Result<(Fetch, Option<&'static str>), String> {
    match fetch {
        Fetch::Argument(number) => {
            let all = marker::arguments(marker);
            let count = all.len();
            let argument = all.into_iter().nth(number - 1);
            let argument = argument.ok_or_else(|| format!("the marker has {count} arguments"))?;
            let (fetch, ty) =
                argument.map_err(|operand| format!("the kernel cannot read '{operand}'"))?;
            Ok((fetch, Some(ty)))
        }
        Fetch::Memory(at, offset) => {
            let (at, _) = of_marker(at, marker)?;
            Ok((Fetch::Memory(Box::new(at), *offset), None))
        }
        other => Ok((other.clone(), None)),
    }
}

fn kernel_type(name: &str) -> Option<&'static str> {
    let found = TYPES.iter().find(|(typed, _)| *typed == name);
    found.map(|(_, kernels)| *kernels)
}

fn parse(probe: &Probe, field: &FieldSpec) -> Result<Fetch, Fault> {
    if let Some((ty, column)) = &field.ty
        && kernel_type(ty).is_none()
    {
        let names = TYPES.iter().map(|(name, _)| *name);
        let near = names.min_by_key(|name| expr::edit_distance(ty, name));
        let near = near.unwrap_or("int");
        return Err(Fault::new(
            *column,
            format!("no such type; did you mean {near}?"),
        ));
    }
    let mut reader = Reader {
        text: field.expression.chars().collect(),
        at: 0,
        column: field.column,
        kind: probe.kind,
        depth: 0,
    };
    let fetch = reader.value()?;
    match reader.text.get(reader.at) {
        None => Ok(fetch),
        Some('+' | '-') => Err(reader.fault("the kernel adds only within *( )")),
        Some(_) => Err(reader.fault("nothing is expected here")),
    }
}

struct Reader {
    text: Vec<char>,
    at: usize,
    /// That of the first character.
    column: usize,
    kind: ProbeKind,
    depth: usize,
}

impl Reader {
    fn fault(&self, what: &str) -> Fault {
        Fault::new(self.column + self.at, what)
    }

    fn accept(&mut self, mark: char) -> bool {
        let is_there = self.text.get(self.at) == Some(&mark);
        self.at += usize::from(is_there);
        is_there
    }

    fn word(&mut self) -> String {
        let rest = self.text[self.at..].iter();
        let word: String = rest
            .take_while(|c| c.is_ascii_alphanumeric() || **c == '_')
            .collect();
        self.at += word.chars().count();
        word
    }

    fn value(&mut self) -> Result<Fetch, Fault> {
        if !self.accept('*') {
            return self.name();
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault("too deep: the kernel follows no more pointers"));
        }
        if !self.accept('(') {
            return Ok(Fetch::Memory(Box::new(self.value()?), 0));
        }
        let at = self.value()?;
        let sign = match self.text.get(self.at) {
            Some('+') => 1,
            Some('-') => -1,
            _ => 0,
        };
        let mut offset = 0;
        if sign != 0 {
            self.at += 1;
            let begin = self.at;
            let number = super::spec::number(&self.word());
            let number = number.and_then(|number| i64::try_from(number).ok());
            let Some(number) = number else {
                self.at = begin;
                return Err(self.fault("not a number"));
            };
            offset = sign * number;
        }
        match self.accept(')') {
            true => Ok(Fetch::Memory(Box::new(at), offset)),
            false => Err(self.fault("')' is missing")),
        }
    }

    fn name(&mut self) -> Result<Fetch, Fault> {
        let begin = self.at;
        let is_register = self.accept('%');
        let word = self.word();
        let number = |prefix: &str| word.strip_prefix(prefix)?.parse::<usize>().ok();
        let found = if is_register {
            match word.is_empty() {
                true => Err("a register's name is missing, as in %di"),
                false => return Ok(Fetch::Plain(format!("%{word}"))),
            }
        } else if let Some(number) = number("arg") {
            match (number, self.kind.is_return()) {
                (0, _) => Err("arguments count from 1"),
                (_, true) => Err("its arguments are gone where a function returns"),
                (number, false) => Ok(Fetch::Argument(number)),
            }
        } else if let Some(number) = number("stack") {
            Ok(Fetch::Plain(format!("$stack{number}")))
        } else {
            match (word.as_str(), self.kind.is_return()) {
                ("ret", true) => Ok(Fetch::Plain("$retval".to_owned())),
                ("ret", false) => Err("it is there only where a function returns"),
                ("comm", _) => Ok(Fetch::Comm),
                _ => Err("not an expression: arg1, ret, comm, stack0, %REGISTER, *(…+8)"),
            }
        };
        found.map_err(|what| {
            if !is_register {
                self.at = begin;
            }
            self.fault(what)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code() -> Target {
        Target::Code {
            path: "/bin/a".into(),
            offset: 0,
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn expressions_become_the_kernels_words() {
        let check = |kind, text: &str, expect: &[&str]| {
            let probe = Probe::parse(kind, text).unwrap_or_else(|error| panic!("{error:#}"));
            let (fields, left_out) = fields(&probe, &code()).expect(text);
            assert_eq!(fields, expect, "{text}");
            assert!(left_out.is_empty());
        };
        use ProbeKind::{Uprobe, Uretprobe};
        check(Uprobe, "a:f", &[]);
        check(
            Uprobe,
            "a:f a=arg1 b=arg2:int c=arg6:pointer",
            &["a=%di:s64", "b=%si:s32", "c=%r9:x64"],
        );
        check(
            Uprobe,
            "a:f a=*(arg1+8):u32 b=**arg2 c=*(*(arg1-0x10)+4)",
            &["a=+8(%di):u32", "b=+0(+0(%si)):s64", "c=+4(-16(%di)):s64"],
        );
        check(
            Uprobe,
            "a:f p=arg1:string q=*(arg1+8):string c=comm s=stack2 r=%bx:x8",
            &[
                "p=+0(%di):string",
                "q=+0(+8(%di)):string",
                "c=$comm",
                "s=$stack2:s64",
                "r=%bx:x8",
            ],
        );
        check(Uretprobe, "a:f r=ret:int", &["r=$retval:s32"]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_arguments_of_a_marker_are_its_own() {
        let target = |arguments: &str| Target::Marker {
            path: "/bin/a".into(),
            marker: symbols::Marker {
                provider: "p".to_owned(),
                name: "n".to_owned(),
                offset: 0x10,
                semaphore_offset: None,
                arguments: arguments.to_owned(),
            },
        };
        let check = |text: &str, arguments: &str, expect: &[&str], left: usize| {
            let probe = Probe::parse(ProbeKind::Usdt, text).expect(text);
            let (fields, left_out) = fields(&probe, &target(arguments)).expect(text);
            assert_eq!(fields, expect, "{text}");
            assert_eq!(left_out.len(), left, "{left_out:?}");
        };
        let both = "-4@%edi 8@-8(%rbp)";
        check("a:p:n", both, &["arg1=%di:s32", "arg2=-8(%bp):u64"], 0);
        check("a:p:n", "4@(%rax,%rdx,4) -1@$5", &["arg2=\\5:s8"], 1);
        check("a:p:n x=arg2:string", both, &["x=+0(-8(%bp)):string"], 0);
        let probe = Probe::parse(ProbeKind::Usdt, "a:p:n x=arg3").expect("sound");
        let error = fields(&probe, &target(both)).expect_err("there is none");
        assert!(
            error.what().contains("column 9: the marker has 2"),
            "{error:#}"
        );
    }
}
