//! Programs and libraries as people name them, and functions in them: for probes and for pairs.

use std::borrow::Cow;
use std::fs;
use std::os::unix::fs::MetadataExt;
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
/// What the kernel puts behind the name of a file that was removed.
const DELETED: &str = " (deleted)";
/// So many names are offered for one that is not there.
const NEAR_MAX: usize = 5;

/// A program or library that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramFile {
    /// Where it is opened: of a process whose file was replaced, that of the process.
    pub path: PathBuf,
    /// What people call it.
    pub name: PathBuf,
}

impl ProgramFile {
    /// Its name without folders.
    pub(crate) fn short(&self) -> Cow<'_, str> {
        self.name.file_name().unwrap_or_default().to_string_lossy()
    }
}

/// What `look` finds in the first of the files that has any of it; else what all of them have.
///
/// # Errors
/// What `look` returns; when the only file is no program.
pub(crate) fn first_with<T>(
    files: &[ProgramFile],
    mut look: impl FnMut(&ProgramFile, &Places) -> Result<Option<T>>,
) -> Result<std::result::Result<T, Vec<Places>>> {
    let mut met = Vec::new();
    for file in files {
        let places = match Places::read(&file.path) {
            Ok(places) => places,
            // Of a process's files some are no programs.
            Err(_) if files.len() > 1 => continue,
            Err(error) => return Err(error),
        };
        if let Some(found) = look(file, &places)? {
            return Ok(Ok(found));
        }
        met.push(places);
    }
    Ok(Err(met))
}

/// The files that `typed` names: one, or all that a process runs.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::InvalidInput`] for what names no
/// process, and what the operating system says of one.
pub(crate) fn files(typed: &str) -> Result<Vec<ProgramFile>> {
    if let Some(pid) = typed.strip_prefix(OF_PROCESS) {
        let pid: u32 = pid.parse().map_err(|_| {
            Error::new(ErrorKind::InvalidInput, "no process has this number")
                .found(format!("'{typed}'"))
                .fix("give its number, as in pid:123")
        })?;
        return files_of(pid);
    }
    let found = find(typed).and_then(|path| fs::canonicalize(path).ok());
    let named = |path: PathBuf| ProgramFile {
        name: path.clone(),
        path,
    };
    found.map(|path| vec![named(path)]).ok_or_else(|| {
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
fn files_of(pid: u32) -> Result<Vec<ProgramFile>> {
    let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let is_elsewhere = of(&pid.to_string()) != of("self");
    let mut files: Vec<ProgramFile> = Vec::new();
    for mapping in mappings(pid)? {
        let path = match is_elsewhere {
            true => PathBuf::from(format!("/proc/{pid}/root{}", mapping.name)),
            false => PathBuf::from(&mapping.name),
        };
        let file = ProgramFile {
            // What lies there may be another file by now, or none: the kernel has the process's.
            path: match mapping.is_at(&path) {
                true => path,
                false => PathBuf::from(format!("/proc/{pid}/map_files/{}", mapping.range)),
            },
            name: PathBuf::from(&mapping.name),
        };
        if !files.iter().any(|known| known.name == file.name) {
            files.push(file);
        }
    }
    Ok(files)
}

/// Code of a file in the memory of a process.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    /// Where it lies, as the kernel writes it.
    range: String,
    /// The numbers of its file's device.
    device: (u32, u32),
    /// The number of its file there.
    inode: u64,
    /// Where its file was opened.
    name: String,
    /// The kernel says that its file has no name any more.
    is_nameless: bool,
}

impl Mapping {
    /// Reads a line of `/proc/PID/maps`; none of what is no code or no file.
    fn parse(line: &str) -> Option<Mapping> {
        let mut rest = line;
        let mut word = || {
            let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = behind.trim_start();
            word
        };
        let (range, flags, _offset) = (word(), word(), word());
        let (device, inode) = (word(), word());
        let (major, minor) = device.split_once(':')?;
        let hex = |text| u32::from_str_radix(text, 16).ok();
        let device = (hex(major)?, hex(minor)?);
        let inode = inode.parse().ok()?;
        let is_code = flags.contains('x') && rest.starts_with('/');
        let named = rest.strip_suffix(DELETED);
        is_code.then(|| Mapping {
            range: range.to_owned(),
            device,
            inode,
            name: named.unwrap_or(rest).to_owned(),
            is_nameless: named.is_some(),
        })
    }

    /// Whether its file is the one that lies there now. Of some file systems the maps and the file
    /// itself tell different devices.
    fn is_at(&self, path: &Path) -> bool {
        let facts = fs::metadata(path);
        facts.is_ok_and(|facts| {
            let device = facts.dev();
            let device = (rustix::fs::major(device), rustix::fs::minor(device));
            facts.ino() == self.inode && (device == self.device || !self.is_nameless)
        })
    }
}

fn mappings(pid: u32) -> Result<Vec<Mapping>> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|cause| {
        Error::io(format!("cannot see what process {pid} runs"), cause)
            .fix("give a process that lives, as root or its user")
    })?;
    Ok(text.lines().filter_map(Mapping::parse).collect())
}

/// Refuses a file that was put in the place of the one that these processes run, when none of them
/// runs the new one. Processes that nobody may look into run anything.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for such a file.
pub(crate) fn not_replaced(typed: &str, pids: &[u32]) -> Result<()> {
    let files = match typed.starts_with(OF_PROCESS) {
        true => return Ok(()),
        false => files(typed)?,
    };
    let mut replaced = None;
    for pid in pids {
        for own in mappings(*pid).unwrap_or_default() {
            let mut same = files
                .iter()
                .filter(|file| Path::new(&own.name) == file.path);
            match same.next() {
                Some(file) if own.is_at(&file.path) => return Ok(()),
                Some(_) => replaced = Some(pid),
                None => {}
            }
        }
    }
    let Some(pid) = replaced else { return Ok(()) };
    let what = format!("process {pid} does not run the {typed} that is there now");
    let fix = format!("name the file by its process, {OF_PROCESS}{pid}; or restart it");
    Err(Error::new(ErrorKind::InvalidInput, what)
        .found("its file was replaced or removed after it had started")
        .fix(fix))
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

/// A file, or all of a process, has no such marker.
pub(crate) fn no_marker(file: &str, (provider, name): (&str, &str), met: &[Places]) -> Error {
    let markers = met.iter().flat_map(|places| &places.markers);
    let mut names: Vec<String> = markers
        .map(|marker| format!("{}:{}", marker.provider, marker.name))
        .collect();
    names.sort();
    names.dedup();
    let what = format!("{file} has no marker {provider}:{name}");
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
    Error::new(ErrorKind::NotFound, what).found(found).fix(fix)
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

    #[test]
    fn a_line_of_a_processs_maps_is_a_file_that_it_runs_whatever_its_name() {
        let check = |line: &str, expect: Option<&str>| {
            let found = Mapping::parse(line);
            assert_eq!(found.map(|found| found.name).as_deref(), expect, "{line}");
        };
        let line = "55d0c0000000-55d0c0001000 r-xp 00001000 fe:01 1234     /opt/a b/my app";
        check(line, Some("/opt/a b/my app"));
        check(&format!("{line} (deleted)"), Some("/opt/a b/my app"));
        check(&line.replace("r-xp", "r--p"), None);
        check("7ffd0-7ffd1 r-xp 00000000 00:00 0          [vdso]", None);
        check("7f00-7f01 r-xp 00000000 00:00 0 ", None);
        check("nonsense", None);
        let mapping = Mapping::parse(line).expect("code");
        assert_eq!(mapping.range, "55d0c0000000-55d0c0001000");
        assert_eq!((mapping.device, mapping.inode), ((0xfe, 1), 1234));
    }

    /// A process that runs a program of its own; gone when this is dropped.
    struct Process(std::process::Child);

    impl Drop for Process {
        fn drop(&mut self) {
            self.0.kill().and_then(|()| self.0.wait()).ok();
        }
    }

    #[test]
    fn a_process_runs_the_file_that_it_opened_whatever_lies_there_now() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("my sleep");
        // By another process: what this one has open for writing, children of other tests have,
        // too, and nobody can run it meanwhile.
        let mut copy = std::process::Command::new("cp");
        let copied = copy.arg("/bin/sleep").arg(&path).status();
        assert!(copied.is_ok_and(|status| status.success()));
        let mut command = std::process::Command::new(&path);
        let process = Process(command.arg("60").spawn().expect("it runs"));
        let pid = process.0.id();
        let typed = path.to_str().expect("a name");
        // Whoever starts it hears of that before the kernel has mapped its file.
        let program = || loop {
            if let Some(first) = files_of(pid).expect("files").into_iter().next() {
                break first;
            }
            std::thread::yield_now();
        };
        let is_old = |file: &ProgramFile| fs::read(&file.path).ok() == fs::read("/bin/sleep").ok();
        assert_eq!(program().path, path);
        assert!(not_replaced(typed, &[pid]).is_ok());
        fs::remove_file(&path).expect("removed");
        let removed = program();
        assert_eq!(removed.name, path);
        // Only root may open it.
        let may = fs::metadata(&removed.path).is_ok();
        assert!(removed.path != path && (is_old(&removed) || !may));
        fs::copy("/bin/sh", &path).expect("another one");
        let replaced = program();
        assert!(replaced.path != path && (is_old(&replaced) || !may));
        let refused = not_replaced(typed, &[pid]).expect_err("it runs another one");
        assert!(
            refused
                .fixed_by()
                .is_some_and(|fix| fix.contains(&format!("pid:{pid}")))
        );
        assert!(not_replaced(&format!("pid:{pid}"), &[pid]).is_ok());
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
