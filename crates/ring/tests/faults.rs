//! Check what is left when libraries go, when tracing begins early and ends late, when glibc keeps
//! no rseq, and when somebody truncates the rings under their writer.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ring::{Directory, Mode, Records, RingFile, readable};
use testkit::{Traced, build_traced};

const LIBRARY: &str = r#"
#include <rtscope/event.h>
void write_some(unsigned from)
{
    for (unsigned i = from; i < from + 100; i++)
        RTSCOPE_EVENT(library, tick, u32("i", i));
}
"#;

/// Writes, and lets a library write that comes, goes, comes again and goes for good.
const HOST: &str = r#"
#include <dlfcn.h>
#include <rtscope/event.h>
static void write_some(unsigned from)
{
    for (unsigned i = from; i < from + 100; i++)
        RTSCOPE_EVENT(host, tick, u32("i", i));
}
int main(int count, char **words)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        void *const library = count > 1 ? dlopen(words[1], RTLD_NOW) : 0;
        void (*const its)(unsigned) =
            library ? (void (*)(unsigned))dlsym(library, "write_some") : 0;
        if (!its)
            return 1;
        its(100 * turn);
        if (dlclose(library) != 0 || dlopen(words[1], RTLD_NOW | RTLD_NOLOAD))
            return 2;
        write_some(100 * turn);
    }
    return 0;
}
"#;

/// Writes before `main`, in it, and in all that runs when it is over.
const EARLY_AND_LATE: &str = r#"
#include <rtscope/event.h>
#include <stdlib.h>
__attribute__((constructor)) static void early(void) { RTSCOPE_EVENT(life, tick, u32("i", 0)); }
__attribute__((destructor)) static void late(void) { RTSCOPE_EVENT(life, tick, u32("i", 3)); }
static void at_exit(void) { RTSCOPE_EVENT(life, tick, u32("i", 2)); }
int main(void)
{
    atexit(at_exit);
    RTSCOPE_EVENT(life, tick, u32("i", 1));
    return 0;
}
"#;

/// Waits for its input's end, then writes.
const WAITING: &str = r#"
#include <rtscope/event.h>
#include <unistd.h>
int main(void)
{
    char byte;
    for (unsigned i = 0; i < 10; i++)
        RTSCOPE_EVENT(waiting, tick, u32("i", i));
    if (read(0, &byte, 1) < 0)
        return 1;
    RTSCOPE_EVENT(waiting, tick, u32("i", 10));
    return 0;
}
"#;

fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("RTSCOPE_DIR", folder)
        .env("RTSCOPE_EVENTS", "*");
    command
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory")
}

/// The file of the one process that was traced there.
fn rings(folder: &Path) -> RingFile {
    let owner = rustix::process::geteuid().as_raw();
    let directory = Directory::open(folder, owner).expect("our directory");
    let names = directory.names().expect("names");
    assert_eq!(names.len(), 1, "{names:?}");
    let mut file = directory
        .rings(&names[0])
        .expect("rings")
        .expect("complete");
    file.read_table().expect("a table");
    file
}

/// Provider and number of all events, in the order of time.
fn numbers(file: &RingFile) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for ring in 0..file.layout().rings {
        let Some((window, losses)) = file.control(ring).expect("a control") else {
            continue;
        };
        assert_eq!(losses.iter().sum::<u64>(), 0);
        let range = readable(file.layout(), Mode::Discard, window).expect("sound offsets");
        let mut bytes = Vec::new();
        file.copy(ring, range.clone(), &mut bytes).expect("data");
        let records = Records::new(&bytes, range.start, file.layout().subbuffer_bytes, 0);
        for record in records {
            let place = file
                .table()
                .place_of(record.id)
                .expect("an id of the table");
            let number = record.payload.first_chunk().expect("4 bytes");
            let provider = file.table().events[place].provider.clone();
            found.push((record.time, provider, u32::from_le_bytes(*number)));
        }
    }
    found.sort();
    found
        .into_iter()
        .map(|(_, provider, number)| (provider, number))
        .collect()
}

fn build_library() -> PathBuf {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe/include");
    let source = scratch().join("unloaded.c");
    let library = scratch().join("unloaded.so");
    std::fs::write(&source, LIBRARY).expect("the library's text");
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-std=gnu11", "-shared", "-fPIC", "-Wall", "-Werror"]);
    compile.arg("-I").arg(probe).arg("-o").arg(&library);
    assert!(compile.arg(&source).status().expect("a compiler").success());
    library
}

#[test]
fn a_library_that_is_unloaded_takes_no_event_of_its_own_or_of_others_along() {
    let library = build_library();
    let program = Traced {
        flags: &["-O2", "-std=gnu11", "-rdynamic"],
        ..Traced::c(HOST)
    };
    let program = build_traced(scratch(), "unloading", program);
    let check = |variables: &[(&str, &str)]| {
        let folder = folder();
        let mut command = command(&program, folder.path());
        command.arg(&library).envs(variables.iter().copied());
        assert_eq!(command.status().expect("it starts").code(), Some(0));
        let mut expect = Vec::new();
        for (from, provider) in [(0, "library"), (0, "host"), (100, "library"), (100, "host")] {
            expect.extend((from..from + 100).map(|number| (provider.to_owned(), number)));
        }
        assert_eq!(numbers(&rings(folder.path())), expect, "{variables:?}");
    };
    check(&[]);
    check(&[("RTSCOPE_RSEQ", "off")]);
}

#[test]
fn events_before_main_and_after_it_are_recorded() {
    let program = build_traced(scratch(), "early", Traced::c(EARLY_AND_LATE));
    let folder = folder();
    assert!(
        command(&program, folder.path())
            .status()
            .expect("it starts")
            .success()
    );
    let expect: Vec<_> = (0..4).map(|i| ("life".to_owned(), i)).collect();
    assert_eq!(numbers(&rings(folder.path())), expect);
}

#[test]
fn where_glibc_registers_no_rseq_threads_take_turns() {
    let program = build_traced(scratch(), "tuned", Traced::c(EARLY_AND_LATE));
    let run = |tunables: &str| {
        let folder = folder();
        let mut command = command(&program, folder.path());
        command.env("GLIBC_TUNABLES", tunables);
        assert!(command.status().expect("it starts").success());
        let file = rings(folder.path());
        assert_eq!(numbers(&file).len(), 4, "{tunables}");
        file.layout().rseq
    };
    assert!(!run("glibc.pthread.rseq=0"));
    if !run("glibc.pthread.rseq=1") {
        testkit::skip(
            "rseq by glibc",
            "this glibc registers none (2.35 and later do)",
        );
    }
}

/// Only the process's own user can: it loses the process, as by any other signal of that user.
#[test]
fn rings_truncated_under_their_writer_are_an_error_to_the_reader_and_no_signal() {
    let program = build_traced(scratch(), "truncated", Traced::c(WAITING));
    let folder = folder();
    let mut command = command(&program, folder.path());
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let directory = || {
        std::fs::read_dir(folder.path())
            .expect("the folder")
            .flatten()
    };
    let path = loop {
        let path = directory().map(|entry| entry.path()).next();
        // Its last event before it waits is in a ring.
        let written = path.filter(|_| numbers_so_far(folder.path()) == 10);
        match written {
            Some(path) => break path,
            None => std::thread::yield_now(),
        }
    };
    let mut file = rings(folder.path());
    let truncated = File::options().write(true).open(path).expect("our file");
    truncated.set_len(8192).expect("truncated");
    // Header and controls are in the first pages.
    assert!(file.control(0).is_ok() && file.read_table().is_ok());
    let mut bytes = Vec::new();
    assert!(file.copy(0, 0..64, &mut bytes).is_err());
    drop(child.stdin.take());
    let status = child.wait().expect("it ends");
    let bus_error = rustix::process::Signal::BUS.as_raw();
    assert_eq!(status.signal(), Some(bus_error), "{status}");
}

/// As [`numbers`], while the process may still be making its file.
fn numbers_so_far(folder: &Path) -> usize {
    let owner = rustix::process::geteuid().as_raw();
    let directory = Directory::open(folder, owner).expect("our directory");
    let names = directory.names().expect("names");
    let file = names
        .first()
        .and_then(|name| directory.rings(name).ok().flatten());
    file.map_or(0, |mut file| {
        file.read_table().expect("a table");
        numbers(&file).len()
    })
}
