//! A function of the user's that runs in the kernel at each hit: it is linked into the programs
//! that find hits, before they are loaded. `bpf/include/rtscope/action.bpf.h` is what it sees.

use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event::{Error, ErrorKind, Result};
use libbpf_rs::{AsRawLibbpf, Linker, libbpf_sys};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::elf::Elf;
use crate::object;

/// What it is called, and the section of functions that are no programs.
const FUNCTION: &str = "rtscope_action";
const SECTION: &str = ".text";
/// The licence of our programs.
const OUR_LICENSE: &[u8] = b"Dual BSD/GPL\0";
/// Those for which the kernel lends what is for the GPL alone (`include/linux/license.h`).
const LICENSES: [&str; 6] = [
    "GPL",
    "GPL v2",
    "GPL and additional rights",
    "Dual BSD/GPL",
    "Dual MIT/GPL",
    "Dual MPL/GPL",
];
/// Lines of the verifier's log that are shown.
const LOG_LINES: usize = 5;
/// What goes before each but the first, below `found: `.
const INDENT: &str = "\n         ";

const BUILD: &str = "clang -target bpf -O2 -g -c FILE.bpf.c; docs/trackers.md has an example";

/// A user's function for hits, read and looked at, and not yet in the kernel.
#[derive(Clone, Debug)]
pub struct Action {
    path: PathBuf,
    bytes: Arc<[u8]>,
}

impl Action {
    /// Reads an object file.
    ///
    /// # Errors
    /// When it cannot be read, is no BPF object, or has no function for hits.
    pub fn read(path: &Path) -> Result<Action> {
        let bytes = std::fs::read(path).map_err(|cause| {
            let what = format!("cannot read the action {}", path.display());
            Error::io(what, cause).fix("give the file that clang -target bpf wrote")
        })?;
        Action::of(path, bytes)
    }

    fn of(path: &Path, bytes: Vec<u8>) -> Result<Action> {
        let refused = |what: &str, found: String, fix: &str| {
            let what = format!("the action {} {what}", path.display());
            Error::new(ErrorKind::InvalidInput, what)
                .found(found)
                .fix(fix)
        };
        let elf = Elf::read(&bytes).map_err(|found| refused("is no BPF object", found, BUILD))?;
        let functions = elf.functions();
        let Some(function) = functions.iter().find(|one| one.name == FUNCTION) else {
            let names: Vec<_> = functions.iter().map(|one| one.name).collect();
            let found = match names.len() {
                0 => "no function at all".to_owned(),
                _ => format!("only {}", names.join(", ")),
            };
            let what = format!("has no function {FUNCTION}");
            let fix = "define it with RTS_ACTION(hit) of rtscope/action.bpf.h";
            return Err(refused(&what, found, fix));
        };
        if function.section != SECTION {
            let what = "is a program of a type of its own, not a function for hits";
            let found = format!("SEC(\"{}\")", function.section);
            return Err(refused(what, found, "leave SEC() away, as RTS_ACTION does"));
        }
        if elf.section(".BTF").is_none() {
            let found = "no section .BTF".to_owned();
            return Err(refused("says nothing of its types", found, BUILD));
        }
        let license = elf.text_of("license").unwrap_or("none");
        let Some(section) = elf
            .section("license")
            .filter(|_| LICENSES.contains(&license))
        else {
            let what = "has a licence that the kernel's functions for the GPL exclude";
            let fix = "char LICENSE[] SEC(\"license\") = \"GPL\"; if you may";
            return Err(refused(what, format!("'{license}'"), fix));
        };
        // Libbpf links only what has one licence, word for word.
        let bytes = elf.with_section(&section, OUR_LICENSE);
        Ok(Action {
            path: path.to_owned(),
            bytes: bytes.into(),
        })
    }

    /// Our object with this function in it.
    pub(crate) fn link(&self, ours: &[u8]) -> Result<Vec<u8>> {
        let refused = |cause: std::io::Error| Error::io("cannot link an action", cause);
        let file = memfd_create("rtscope-action", MemfdFlags::CLOEXEC)
            .map_err(|errno| refused(errno.into()))?;
        let mut file = std::fs::File::from(file);
        object::listen_anew();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let linker = Linker::new(path).map_err(|error| self.not_linked(&error.to_string()))?;
        let all = add(&linker, ours).and_then(|()| add(&linker, &self.bytes));
        all.and_then(|()| finish(&linker))
            .map_err(|cause| self.not_linked(&cause.to_string()))?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(refused)?;
        file.read_to_end(&mut bytes).map_err(refused)?;
        Ok(bytes)
    }

    fn not_linked(&self, error: &str) -> Error {
        let talk = object::heard();
        let what = format!("the action {} cannot be linked", self.path.display());
        let twice = talk.lines().find_map(|line| {
            let (_, rest) = line.split_once("conflicting non-weak symbol")?;
            rest.split_once('(')?.1.split_once(')')
        });
        let refused = Error::new(ErrorKind::InvalidInput, what);
        match twice {
            Some((name, _)) => refused
                .found(format!(
                    "the name {name} is taken by rtscope's own programs"
                ))
                .fix(format!("call it my_{name}, or make it static")),
            None => refused
                .found(format!("{error}: {}", talk.trim().replace('\n', INDENT)))
                .fix("compile it with a newer clang, with -g and without other -m flags"),
        }
    }

    /// The refusal of a load in the words of the verifier, where it was the verifier.
    pub(crate) fn refused(&self, error: Error) -> Error {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let Some(words) = cause.as_deref().and_then(last_words) else {
            return error;
        };
        let what = format!("the kernel refuses the action {}", self.path.display());
        let fix = match words.contains("_or_null") {
            true => "look first whether there is something, as RTS_ACTION does for the hit",
            false => "change what the last line names; clang -g puts lines of source into the log",
        };
        Error::new(ErrorKind::Unsupported, what)
            .found(words)
            .fix(fix)
    }
}

/// Adds an object. The wrapper's own function takes libbpf's errors for positive and panics.
fn add(linker: &Linker, bytes: &[u8]) -> std::io::Result<()> {
    let linker = linker.as_libbpf_object().as_ptr();
    // SAFETY: the linker lives for the call, which only reads the bytes, and options may be none.
    let error = unsafe {
        let bytes_at = bytes.as_ptr().cast_mut().cast();
        libbpf_sys::bpf_linker__add_buf(linker, bytes_at, bytes.len() as _, std::ptr::null())
    };
    done(error)
}

/// Writes what was linked.
fn finish(linker: &Linker) -> std::io::Result<()> {
    // SAFETY: the linker lives for the call.
    done(unsafe { libbpf_sys::bpf_linker__finalize(linker.as_libbpf_object().as_ptr()) })
}

fn done(error: i32) -> std::io::Result<()> {
    match error {
        0 => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(error.abs())),
    }
}

/// The last lines of the verifier's log, of which the last says why.
fn last_words(talk: &str) -> Option<String> {
    let lines: Vec<_> = talk.lines().map(str::trim_end).collect();
    let end = lines
        .iter()
        .rposition(|line| line.starts_with("processed "))?;
    let said = lines[..end].iter().copied();
    let said: Vec<_> = said.filter(|line| !line.is_empty()).collect();
    let first = said.len().saturating_sub(LOG_LINES);
    (!said.is_empty()).then(|| said[first..].join(INDENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/count_culprits.bpf.o"));
    const TRACK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slow_sleeps.bpf.o"));

    fn of(bytes: &[u8]) -> Result<Action> {
        Action::of(Path::new("my.o"), bytes.to_vec())
    }

    /// The example with other words of the same length.
    fn with(from: &[u8], to: &[u8]) -> Vec<u8> {
        assert_eq!(from.len(), to.len());
        let mut bytes = EXAMPLE.to_vec();
        let places: Vec<_> = (0..bytes.len() - from.len())
            .filter(|at| bytes[*at..].starts_with(from))
            .collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
        bytes
    }

    #[test]
    fn what_is_no_function_for_hits_is_refused_with_what_it_is() {
        let check = |bytes: &[u8], what: &str, found: &str| {
            let error = of(bytes).expect_err(what);
            assert!(error.what().contains(what), "{error:#}");
            assert!(
                error.value_found().expect("found").contains(found),
                "{error:#}"
            );
            assert!(error.fixed_by().is_some());
        };
        of(EXAMPLE).expect("the example");
        check(b"int main;", "is no BPF object", "ELF");
        let own = std::fs::read("/proc/self/exe").expect("this program");
        check(&own[..4096], "is no BPF object", "machine 62");
        check(TRACK, "has no function rtscope_action", "sleep_begins");
        let proprietary = with(b"GPL\0", b"MIT\0");
        check(&proprietary, "has a licence", "'MIT'");
        let program = with(b"\0.text\0", b"\0xdp/x\0");
        check(&program, "is a program of a type of its own", "xdp/x");
        check(
            &with(b"\0.BTF\0", b"\0.btf\0"),
            "nothing of its types",
            ".BTF",
        );
    }

    #[test]
    fn an_action_is_linked_into_every_object_that_finds_hits() {
        let action = of(EXAMPLE).expect("the example");
        let objects = crate::trackers::TRACKERS.iter().map(|one| one.object);
        for ours in objects.chain([object::WATCH]) {
            let ours = ours.unpacked().expect("an object");
            let linked = action.link(&ours).expect("linked");
            let elf = Elf::read(&linked).expect("an object");
            let count = |name| {
                elf.functions()
                    .iter()
                    .filter(|one| one.name == name)
                    .count()
            };
            assert_eq!((count(FUNCTION), count("sched_switch") <= 1), (1, true));
            assert!(linked.len() > ours.len());
        }
    }

    #[test]
    fn a_name_that_is_taken_is_told() {
        let action = of(&with(b"culprits\0", b"counters\0")).expect("the example");
        let watch = object::WATCH.unpacked().expect("an object");
        let error = action.link(&watch).expect_err("two counters");
        let found = error.value_found().expect("found");
        assert!(found.contains("the name counters"), "{found}");
        assert!(error.fixed_by().is_some());
    }

    #[test]
    fn the_last_words_of_a_log_are_those_before_its_count() {
        let talk = "libbpf: -- BEGIN --\n0: r1\n1: r2\n2: r3\n3: r4\n4: r5\nwhy not\n\
                    processed 7 insns\n-- END --\nfailed";
        let expect = ["1: r2", "2: r3", "3: r4", "4: r5", "why not"].join(INDENT);
        assert_eq!(last_words(talk), Some(expect));
        assert_eq!(last_words("no log"), None);
        assert_eq!(last_words("processed 0 insns"), None);
    }
}
