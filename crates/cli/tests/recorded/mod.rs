//! Programs recorded by the whole tool: `rtscope record --user`, then `rtscope cat`; and the
//! probe as applications get it, from its Makefile.

#![allow(dead_code)] // each test file uses its part

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

/// The repository's `probe`.
pub fn probe() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe")
}

/// Where this test file's programs go.
pub fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    folder.join(format!("recorded-{}", std::process::id()))
}

/// The folder of the probe's libraries, built once for each test file.
pub fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = scratch().join("libraries");
        let out = format!("OUT={}", folder.display());
        run(Command::new("make")
            .args(["-s", "-C"])
            .arg(probe())
            .args([&out, "CFLAGS=-O2 -g -Werror"]));
        folder
    })
}

/// Runs a command that must succeed and gives what it wrote to stdout.
pub fn run(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&stderr);
    let text = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{command:?}: {status}\n{text}{said}");
    text
}

/// Whether a program of this name can be started.
pub fn exists(program: &str) -> bool {
    which::which(program).is_ok()
}

/// Compiles `source` (C, or C++ by a compiler that ends so) to the program `name`.
pub fn compile(compiler: &str, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let folder = scratch().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let cpp = compiler.ends_with("++");
    let file = folder.join(if cpp { "main.cpp" } else { "main.c" });
    std::fs::write(&file, source).expect("the program's text");
    let program = folder.join(name);
    let mut command = Command::new(compiler);
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
    run(command.arg(&program).arg(&file).args(flags));
    program
}

/// A program that ends with the test, also with one that fails.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// For programs in C that are started beside their recorder: `await_recorder` returns when they are
/// recorded, `say_done` makes a file and waits for the input's end.
pub const BESIDE_RECORDER: &str = r#"
#include <fcntl.h>
#include <rtscope/event.h>
#include <unistd.h>
/* Fields are looked at when the event is recorded. */
static int recorded;
static int tell(void)
{
    return ++recorded;
}
static void await_recorder(void)
{
    while (!recorded) {
        RTSCOPE_EVENT(robot, waits, i32("count", tell()));
        usleep(1000);
    }
    /* The recorder switches one event after the other on, and may be preempted between two. */
    usleep(100000);
}
static int say_done(const char *path)
{
    char byte;
    close(creat(path, 0600));
    return (int)read(0, &byte, 1);
}
"#;

/// Compiles a C program with the probe.
pub fn compile_with_probe(name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let include = format!("-I{}", probe().join("include").display());
    let library = libraries().join("librtscope-probe.a");
    let library = library.to_str().expect("a path in UTF-8");
    let flags = [flags, &[&include, library, "-ldl"]].concat();
    compile("cc", name, source, &flags)
}

/// Where programs have their rings, and where their trace goes.
pub struct Scene {
    folder: tempfile::TempDir,
    shared: tempfile::TempDir,
}

impl Scene {
    pub fn new() -> Scene {
        Scene {
            folder: tempfile::tempdir().expect("a folder"),
            shared: tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory"),
        }
    }

    /// The trace.
    pub fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// Where other files of the test may go.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where programs that are started elsewhere must have their rings.
    pub fn shared(&self) -> &Path {
        self.shared.path()
    }

    /// Records `command`, with more words for `record`; gives what `record` said.
    pub fn record<S: AsRef<OsStr>>(&self, words: &[&str], command: &[S]) -> String {
        std::fs::remove_dir_all(self.trace()).ok();
        let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        rtscope.arg("record").args(words);
        rtscope.arg("-o").arg(self.trace()).arg("--").args(command);
        rtscope.env("RTSCOPE_DIR", self.shared.path());
        rtscope.env("RTSCOPE_RING_SIZE", "4M");
        rtscope.env_remove("RTSCOPE_EVENTS");
        let said = run(&mut rtscope);
        assert!(said.contains(" 0 lost"), "{said}");
        said
    }

    /// Records a program that is started beside its recorder and says by the file in its last word
    /// that it is done ([`BESIDE_RECORDER`]).
    pub fn record_beside(&self, words: &[&str], mut program: Command) {
        let done = self.folder.path().join("done");
        std::fs::remove_file(&done).ok();
        program.arg(&done).stdin(Stdio::piped());
        program.env("RTSCOPE_DIR", self.shared.path());
        let mut traced = Running(program.spawn().expect("the program starts"));
        let wait = format!("until test -e {}; do sleep 0.01; done", done.display());
        self.record(words, &["sh", "-c", &wait]);
        drop(traced.0.stdin.take());
        assert!(traced.0.wait().expect("the program ends").success());
    }

    /// The programs' events, a line each, without times, host and CPU: `provider:name: { … }`. What
    /// the recorder says of their maps is left out.
    pub fn events(&self) -> Vec<String> {
        let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        let text = run(rtscope.arg("cat").arg(self.trace()));
        let lines = text.lines().map(bare);
        lines
            .filter(|line| !line.starts_with("lttng_ust_statedump:"))
            .collect()
    }

    /// babeltrace2 reads the trace without a warning.
    pub fn check_babeltrace(&self, test: &str) {
        let Ok(output) = Command::new("babeltrace2").arg(self.trace()).output() else {
            testkit::skip(test, "babeltrace2 is not installed");
            return;
        };
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

/// `[time] (+delta) host provider:name: { cpu_id = 0 }, { vpid… }, { fields }` from the name on,
/// with the payload alone.
pub fn bare(line: &str) -> String {
    let name = line
        .split(' ')
        .find(|word| word.len() > 1 && word.ends_with(':'));
    let name = name.unwrap_or_else(|| panic!("no name: {line}"));
    let payload = line.rsplit_once("}, {").map_or("", |(_, payload)| payload);
    format!("{name} {{{payload}")
}
