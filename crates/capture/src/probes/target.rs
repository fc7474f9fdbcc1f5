//! Where the code of a probe is: functions and markers of files, of what a process runs, or of the
//! kernel.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use symbols::{Marker, Places};

use super::spec::{Probe, ProbeKind};

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
/// So many names are offered for one that is not there.
const NEAR_MAX: usize = 5;

/// Where a probe is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A function of the kernel.
    Function { symbol: String, offset: u64 },
    /// A place in a file.
    Code { path: PathBuf, offset: u64 },
    /// A marker in a file.
    Marker { path: PathBuf, marker: Marker },
}

/// Finds where `probe` is to be put: in several places where a marker has several.
pub(super) fn find(probe: &Probe) -> Result<Vec<Target>> {
    if probe.kind.is_of_kernel() {
        return Ok(vec![Target::Function {
            symbol: probe.symbol.clone(),
            offset: probe.offset,
        }]);
    }
    let files = files(probe)?;
    let mut met = Vec::new();
    for path in &files {
        let places = match Places::read(path) {
            Ok(places) => places,
            // Of a process's files some are no programs.
            Err(_) if files.len() > 1 => continue,
            Err(error) => return Err(error),
        };
        let found = in_file(probe, path, &places);
        if !found.is_empty() {
            return Ok(found);
        }
        met.push(places);
    }
    Err(match probe.kind {
        _ if probe.kind != ProbeKind::Usdt && probe.symbol.is_empty() => {
            let what = format!("there is no such place in {}", probe.file);
            let found = format!("{:#x} lies behind the file's end", probe.offset);
            probe
                .refuse(ErrorKind::NotFound, what, found)
                .fix("objdump -dF FILE shows where code is in the file")
        }
        ProbeKind::Usdt => no_marker(probe, &met),
        _ => no_function(probe, &met),
    })
}

fn in_file(probe: &Probe, path: &Path, places: &Places) -> Vec<Target> {
    let path = path.to_owned();
    if probe.kind == ProbeKind::Usdt {
        let is_meant = |of: &&Marker| of.provider == probe.provider && of.name == probe.symbol;
        let markers = places.markers.iter().filter(is_meant).cloned();
        let target = |marker| Target::Marker {
            path: path.clone(),
            marker,
        };
        return markers.map(target).collect();
    }
    if probe.symbol.is_empty() {
        let offset = probe.offset;
        let is_there = fs::metadata(&path).is_ok_and(|facts| offset < facts.len());
        return match is_there {
            true => vec![Target::Code { path, offset }],
            false => Vec::new(),
        };
    }
    let mut named = places.functions.iter().filter(|of| of.name == probe.symbol);
    let at = named.next().map(|function| function.offset + probe.offset);
    at.map(|offset| Target::Code { path, offset })
        .into_iter()
        .collect()
}

/// The files that are meant.
fn files(probe: &Probe) -> Result<Vec<PathBuf>> {
    if let Some(pid) = probe.file.strip_prefix("pid:") {
        let pid: u32 = pid.parse().map_err(|_| {
            let what = format!("{} names no process", probe.kind.flag());
            probe
                .refuse(ErrorKind::InvalidInput, what, format!("'pid:{pid}'"))
                .fix("give its number, as in pid:123")
        })?;
        return files_of(pid);
    }
    let typed = Path::new(&probe.file);
    let found = match probe.file.contains('/') {
        true => Some(typed.to_owned()),
        false => in_folders(&probe.file),
    };
    let missing = || {
        let what = format!("there is no such file for {}", probe.kind.flag());
        probe
            .refuse(ErrorKind::NotFound, what, format!("'{}'", probe.file))
            .fix("give its path; or a program in PATH, a library of the system, pid:N")
    };
    let path = fs::canonicalize(found.ok_or_else(missing)?).map_err(|_| missing())?;
    if path.as_os_str().as_encoded_bytes().contains(&b' ') {
        let what = "the kernel takes no path with a blank";
        return Err(Error::new(ErrorKind::Unsupported, what)
            .found(path.display().to_string())
            .fix("give a link to it whose folder and name have none: hard, not symbolic"));
    }
    Ok(vec![path])
}

/// A program in PATH, or a library of the system.
fn in_folders(name: &str) -> Option<PathBuf> {
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

/// Names that a slip of the finger would turn into `typed`, or that hold it.
fn near<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
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

fn no_function(probe: &Probe, met: &[Places]) -> Error {
    let names = met.iter().flat_map(|places| &places.functions);
    let near = near(&probe.symbol, names.map(|function| function.name.as_str()));
    let count: usize = met.iter().map(|places| places.functions.len()).sum();
    let is_stripped = met.iter().any(|places| places.is_stripped);
    let what = format!("{} has no function {}", probe.file, probe.symbol);
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
    probe.refuse(ErrorKind::NotFound, what, found).fix(fix)
}

fn no_marker(probe: &Probe, met: &[Places]) -> Error {
    let markers = met.iter().flat_map(|places| &places.markers);
    let mut names: Vec<String> = markers
        .map(|marker| format!("{}:{}", marker.provider, marker.name))
        .collect();
    names.sort();
    names.dedup();
    let (provider, name) = (&probe.provider, &probe.symbol);
    let what = format!("{} has no marker {provider}:{name}", probe.file);
    let found = match names.len() {
        0 => "no marker at all".to_owned(),
        count => format!("{count} markers"),
    };
    let typed = format!("{provider}:{name}");
    let near = near(&typed, names.iter().map(String::as_str));
    let fix = match (near.is_empty(), names.is_empty()) {
        (false, _) => format!("did you mean {}?", near.join(", ")),
        (true, false) => format!("it has {}", names[..names.len().min(NEAR_MAX)].join(", ")),
        (true, true) => "build it with its markers (sys/sdt.h), or name its library".into(),
    };
    probe.refuse(ErrorKind::NotFound, what, found).fix(fix)
}
