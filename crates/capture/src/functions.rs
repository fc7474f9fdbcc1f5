//! The kernel's functions beside a trace, in `ROOT/rtscope/kallsyms`. They are five megabytes: the
//! snapshots of one watch share one file, which is written before anybody waits for a snapshot.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use bpf_host::ProgramFunction;
use event::Result;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use trace::{NO_FUNCTION, Symbols};

/// Not on every preemption model does the kernel give way in the middle of a system call: no more
/// than this in one.
const PIECE_BYTES: usize = 16 << 10;
/// The kernel writes a line of the table in some 2 us, and gives way between two reads at the
/// latest: of 4 KB it made a real-time task of the laboratory's 6.12 late by 126 us.
const READ_BYTES: usize = 1 << 10;

/// The functions of the running kernel, as `/proc/kallsyms` lists them, and those of the BPF
/// programs that are loaded, each with its end; empty where the kernel hides their addresses.
pub fn kernel_functions() -> String {
    let mut functions = program_lines(&bpf_host::program_functions());
    let Ok(file) = File::open("/proc/kallsyms") else {
        return functions;
    };
    for line in BufReader::with_capacity(READ_BYTES, file).lines() {
        let Ok(line) = line else { break };
        let kind = line.split_ascii_whitespace().nth(1);
        let is_function = matches!(kind, Some("t" | "T" | "w" | "W"));
        // Those were read with their ends.
        let is_program = line.ends_with("[bpf]") && line.contains(" bpf_prog_");
        if line.starts_with("0000000000000000 ") || !is_function || is_program {
            continue;
        }
        functions.push_str(&line);
        functions.push('\n');
    }
    functions
}

/// The programs that are loaded now, whatever else has changed: some ten lines, where the whole
/// table has five megabytes.
pub(crate) fn programs() -> Symbols {
    Symbols::from_kallsyms(&program_lines(&bpf_host::program_functions()))
}

/// How the table calls a program of ours; what follows is the program's own name.
const OWN_PROGRAM: &str = "rtscope_prog_";
/// How the kernel calls all of them; the tag of 16 digits and the program's own name follow.
const PROGRAM: &str = "bpf_prog_";

/// A function as people read it: a program by its own name, and by whose it is.
pub(crate) fn readable(name: &str) -> String {
    if let Some(own) = name.strip_prefix(OWN_PROGRAM) {
        return format!("rtscope's own program {own}");
    }
    let tagged = name.strip_prefix(PROGRAM).and_then(|rest| {
        let (tag, own) = rest.split_once('_')?;
        tag.bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then_some(own)
    });
    tagged.map_or_else(|| name.to_owned(), |own| format!("BPF program {own}"))
}

/// The name of a program's function in the table.
fn table_name(program: &ProgramFunction) -> String {
    let own = program.name.strip_prefix(PROGRAM);
    let own = own.and_then(|rest| rest.split_once('_'));
    match own.filter(|_| program.is_ours) {
        Some((_, own)) => format!("{OWN_PROGRAM}{own}"),
        None => program.name.clone(),
    }
}

/// The ends first: where one function ends and the next begins, the next has the address.
fn program_lines(programs: &[ProgramFunction]) -> String {
    let ends = programs.iter().map(|program| {
        let end = program.address + program.size_bytes;
        format!("{end:016x} t {NO_FUNCTION} [bpf]\n")
    });
    let begins = programs
        .iter()
        .map(|program| format!("{:016x} t {} [bpf]\n", program.address, table_name(program)));
    ends.chain(begins).collect()
}

/// What the machine's functions were when they were read last: code that came later is not among
/// them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    newest_program: u32,
    modules: String,
}

impl Version {
    /// The present one.
    pub(crate) fn now() -> Version {
        Version {
            newest_program: bpf_host::newer_program(0).unwrap_or(0),
            modules: modules(),
        }
    }

    /// Whether programs came since then.
    pub(crate) fn has_newer_programs(&self) -> bool {
        bpf_host::newer_program(self.newest_program).is_some()
    }

    /// Whether modules came or went since then.
    pub(crate) fn has_other_modules(&self) -> bool {
        self.modules != modules()
    }
}

/// The loaded modules; empty on a kernel without any.
fn modules() -> String {
    fs::read_to_string("/proc/modules").unwrap_or_default()
}

fn write_in_pieces(file: &mut File, text: &str) -> std::io::Result<()> {
    let mut pieces = text.as_bytes().chunks(PIECE_BYTES);
    pieces.try_for_each(|piece| file.write_all(piece))
}

/// A file of functions that has no name yet: nothing is left of it when no trace ever links it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedFunctions(Option<Arc<File>>);

impl SharedFunctions {
    /// Writes `functions` where traces below `output` can link them. A file system that knows no
    /// such files is no error: each trace then has a file of its own.
    pub(crate) fn write(output: &Path, functions: &str) -> Self {
        let mut places = output.ancestors().map(|path| match path.as_os_str() {
            // The last ancestor of a relative name.
            name if name.is_empty() => Path::new("."),
            _ => path,
        });
        let Some(place) = places.find(|path| path.is_dir()) else {
            return SharedFunctions::default();
        };
        // Read-only: what one trace changes, all would see.
        let mode = Mode::from_raw_mode(0o444);
        let opened = open(
            place,
            OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC,
            mode,
        );
        let Ok(fd) = opened else {
            return SharedFunctions::default();
        };
        let mut file = File::from(fd);
        let written = write_in_pieces(&mut file, functions);
        SharedFunctions(written.is_ok().then(|| Arc::new(file)))
    }

    fn link(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|file| {
            let own = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW).is_ok()
        })
    }
}

/// Puts `functions` into the trace in `root`, by a link where `shared` allows one; nothing when
/// there are none.
///
/// # Errors
/// What the operating system says, with the file's name.
pub(crate) fn write_functions(
    root: &Path,
    functions: &str,
    shared: &SharedFunctions,
) -> Result<()> {
    if functions.is_empty() {
        return Ok(());
    }
    let directory = root.join("rtscope");
    let path = directory.join("kallsyms");
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(&directory)?;
        if shared.link(&path) {
            return Ok(());
        }
        write_in_pieces(&mut File::create(&path)?, functions)
    };
    write().map_err(|error| ctf::writer::write_error(&path, error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_disk_that_takes_no_functions_is_told_with_what_helps() {
        let root = Path::new("/proc/self/no-such-folder");
        let own = SharedFunctions::default();
        let error = write_functions(root, "f\n", &own).expect_err("nobody can write there");
        assert!(
            error.fixed_by().is_some_and(|fix| fix.contains("-o")),
            "{error:#}"
        );
    }

    #[test]
    fn traces_share_one_file_and_have_their_own_where_they_cannot() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("not/yet/there");
        let shared = SharedFunctions::write(&output, "f\n");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        let check = |name: &str, shared: &SharedFunctions| {
            let root = output.join(name);
            write_functions(&root, "f\n", shared).expect("it is written");
            let path = root.join("rtscope/kallsyms");
            assert_eq!(fs::read_to_string(&path).expect("a file"), "f\n");
            fs::metadata(path).expect("a file").ino()
        };
        let (first, second) = (check("1", &shared), check("2", &shared));
        // The folder's file system may know no files without a name.
        assert_eq!(first == second, shared.0.is_some());
        assert_ne!(check("3", &SharedFunctions::default()), first);
        // Removed everywhere, the shared file cannot be linked again.
        fs::remove_dir_all(&output).expect("removed");
        check("4", &shared);
    }

    #[test]
    fn code_between_two_programs_is_neither_of_them() {
        let program = |address, name: &str| ProgramFunction {
            address,
            size_bytes: 0x100,
            name: name.to_owned(),
            is_ours: false,
        };
        let lines = program_lines(&[program(0x1000, "ours"), program(0x1100, "next")]);
        let symbols = trace::Symbols::from_kallsyms(&lines);
        assert_eq!(symbols.lookup(0x10f0), Some(("ours", 0xf0)));
        assert_eq!(symbols.lookup(0x1100), Some(("next", 0)));
        assert_eq!(symbols.lookup(0x1200), None);
    }

    #[test]
    fn a_program_is_called_by_its_own_name_and_ours_is_said_to_be_ours() {
        let check = |name: &str, expect: &str| assert_eq!(readable(name), expect);
        check("bpf_prog_6deef7357e7b4530_offer", "BPF program offer");
        check("bpf_prog_test_run_skb", "bpf_prog_test_run_skb");
        check(
            "rtscope_prog_sched_switch",
            "rtscope's own program sched_switch",
        );
        check("schedule", "schedule");
        let program = |is_ours| ProgramFunction {
            address: 1,
            size_bytes: 1,
            name: "bpf_prog_6deef7357e7b4530_offer".to_owned(),
            is_ours,
        };
        assert_eq!(table_name(&program(false)), program(false).name);
        assert_eq!(table_name(&program(true)), "rtscope_prog_offer");
    }

    #[test]
    fn a_trace_without_functions_has_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        write_functions(folder.path(), "", &SharedFunctions::default()).expect("nothing to do");
        assert!(!folder.path().join("rtscope").exists());
    }
}
