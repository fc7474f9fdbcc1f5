//! Programs and libraries as people name them, and functions in them: for probes and for pairs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use symbols::{Function, Places};

/// Where libraries are that are named without a folder.
const LIBRARIES: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/lib",
    "/lib",
    "/usr/local/lib",
];
/// What a process runs is named by its number behind this.
const OF_PROCESS: &str = "pid:";
/// So many names are offered for one that is not there.
const NEAR_MAX: usize = 5;

/// The files that `typed` names: one, or all that a process runs.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::InvalidInput`] for what names no
/// process, and what the operating system says of one.
pub(crate) fn files(typed: &str) -> Result<Vec<PathBuf>> {
    if let Some(pid) = typed.strip_prefix(OF_PROCESS) {
        let pid: u32 = pid.parse().map_err(|_| {
            Error::new(ErrorKind::InvalidInput, "no process has this number")
                .found(format!("'{typed}'"))
                .fix("give its number, as in pid:123")
        })?;
        return files_of(pid);
    }
    let found = find(typed).and_then(|path| fs::canonicalize(path).ok());
    found.map(|path| vec![path]).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "there is no such program or library")
            .found(format!("'{typed}'"))
            .fix("give its path; or a program in PATH, a library of the system, pid:N")
    })
}

/// The file that `text` names up to a colon, and what is behind that: the first colon behind which
/// there is a file, as names may have colons themselves.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix(OF_PROCESS) {
        let end = OF_PROCESS.len() + rest.find(':')?;
        return Some((&text[..end], &text[end + 1..]));
    }
    let mut colons = text.match_indices(':').map(|(at, _)| at);
    let end = colons.find(|end| find(&text[..*end]).is_some())?;
    Some((&text[..end], &text[end + 1..]))
}

/// A file by its path, a program in `PATH` or a library of the system.
fn find(name: &str) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let programs = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&programs);
    let libraries = LIBRARIES.iter().map(PathBuf::from);
    let mut all = programs.chain(libraries).map(|folder| folder.join(name));
    all.find(|path| path.is_file())
}

/// What a process runs: its program first, then its libraries.
fn files_of(pid: u32) -> Result<Vec<PathBuf>> {
    let path = format!("/proc/{pid}/maps");
    let text = fs::read_to_string(&path).map_err(|cause| {
        Error::io(format!("cannot see what process {pid} runs"), cause)
            .fix("give a process that lives, as root or its user")
    })?;
    let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let is_elsewhere = of(&pid.to_string()) != of("self");
    let mut seen = BTreeSet::new();
    let mut files = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let is_code = words.nth(1).is_some_and(|flags| flags.contains('x'));
        let file = words.nth(3).filter(|file| file.starts_with('/'));
        let (true, Some(file)) = (is_code, file) else {
            continue;
        };
        if seen.insert(file.to_owned()) {
            files.push(match is_elsewhere {
                true => PathBuf::from(format!("/proc/{pid}/root{file}")),
                false => PathBuf::from(file),
            });
        }
    }
    Ok(files)
}

/// Where the code of the functions begins that are called `typed` in the file at `path`; nowhere
/// when there is none.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a function whose code only chooses another one.
pub(crate) fn offsets(path: &Path, places: &Places, typed: &str) -> Result<Vec<u64>> {
    let named = places.named(typed);
    if named.iter().any(|function| function.is_indirect) {
        return Err(indirect(path, places, typed));
    }
    Ok(named.iter().map(|function| function.offset).collect())
}

/// Its own code runs once in each process: what is called afterwards is what it has chosen.
fn indirect(path: &Path, places: &Places, typed: &str) -> Error {
    let what = format!("each process chooses the code of {typed} when it starts");
    let is_choice = |of: &&Function| {
        let rest = of.name.trim_start_matches('_').strip_prefix(typed);
        !of.is_indirect && rest.is_some_and(|rest| rest.starts_with('_'))
    };
    let choices = places.functions.iter().filter(is_choice);
    let mut choices: Vec<_> = choices.map(|function| function.name.as_str()).collect();
    choices.dedup();
    choices.truncate(NEAR_MAX);
    let fix = match choices.is_empty() {
        false => format!("name the code itself: {}", choices.join(", ")),
        true => "take a function that calls it; or the place of the code that was chosen, \
                 FILE:0xOFFSET, which a debugger shows"
            .to_owned(),
    };
    Error::new(ErrorKind::Unsupported, what)
        .found(format!(
            "an indirect function (IFUNC) of {}",
            path.display()
        ))
        .fix(fix)
}

/// A file, or all of a process, has no such function.
pub(crate) fn no_function(file: &str, typed: &str, met: &[Places]) -> Error {
    let names = met.iter().flat_map(|places| &places.functions);
    let near = near(typed, names.map(|function| function.name.as_str()));
    let count: usize = met.iter().map(|places| places.functions.len()).sum();
    let is_stripped = met.iter().any(|places| places.is_stripped);
    let found = match is_stripped {
        true => format!("the file is stripped: {count} functions that it offers to others"),
        false => format!("{count} functions"),
    };
    let fix = match (near.is_empty(), is_stripped) {
        (false, _) => format!("did you mean {}?", near.join(", ")),
        (true, true) => {
            "build it with symbols, or give the place in the file: FILE:0xOFFSET".into()
        }
        (true, false) => "nm FILE lists them; a function that was inlined is not there".into(),
    };
    let error = Error::new(
        ErrorKind::NotFound,
        format!("{file} has no function {typed}"),
    );
    error.found(found).fix(fix)
}

/// Names that a slip of the finger would turn into `typed`, or that hold it.
pub(crate) fn near<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut near: Vec<_> = names
        .filter_map(|name| {
            let distance = expr::edit_distance(typed, name);
            let is_inside = typed.len() >= 3 && name.contains(typed);
            (distance <= 1 + typed.len() / 4 || is_inside).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(NEAR_MAX);
    near.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_at_the_first_colon_that_makes_it_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a:b c");
        fs::write(&file, "").expect("a file");
        let typed = file.to_str().expect("a name");
        let check = |text: &str, expect: Option<(&str, &str)>| {
            assert_eq!(split(text), expect, "{text}");
        };
        check(&format!("{typed}:main"), Some((typed, "main")));
        check(&format!("{typed}:ns::f(int)"), Some((typed, "ns::f(int)")));
        check(typed, None);
        check("pid:12:main", Some(("pid:12", "main")));
        check("pid:12", None);
        check("sh:main", Some(("sh", "main")));
        check("libc.so.6:malloc", Some(("libc.so.6", "malloc")));
        check("/no/such:f", None);
    }

    fn function(name: &str, offset: u64, is_indirect: bool) -> Function {
        Function {
            name: name.to_owned(),
            offset,
            size_bytes: 1,
            is_indirect,
        }
    }

    #[test]
    fn a_name_is_every_place_that_has_it_and_what_chooses_is_refused() {
        let places = Places {
            functions: vec![
                function("__strlen_avx2", 64, false),
                function("helper", 16, false),
                function("helper", 48, false),
                function("strlen", 80, true),
                function("_ZN2ns1fEi", 96, false),
            ],
            ..Places::default()
        };
        let path = Path::new("/lib/x");
        let check = |typed: &str, expect: &[u64]| {
            let found = offsets(path, &places, typed).expect("no choice");
            assert_eq!(found, expect, "{typed}");
        };
        check("helper", &[16, 48]);
        check("ns::f", &[96]);
        check("ns::f(int)", &[96]);
        check("other", &[]);
        let refused = offsets(path, &places, "strlen").expect_err("it chooses");
        assert!(
            refused
                .fixed_by()
                .is_some_and(|fix| fix.contains("__strlen_avx2"))
        );
        let refused = no_function("x", "helpr", std::slice::from_ref(&places));
        assert_eq!(refused.fixed_by(), Some("did you mean helper?"));
    }
}
