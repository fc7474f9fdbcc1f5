//! LTTng-UST beside us: its session daemon, a session for npt's events, and the loop compiled with
//! its tracepoint. All of it is found at run time; nothing of it is needed to build or to run.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use event::{Error, ErrorKind, Result};

use super::native::LoopFunction;

/// How the packages are had, where they can be had.
const FIX: &str = "sudo apt install lttng-tools liblttng-ust-dev gcc";
/// How long the daemon may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The loop and the provider of its events, as they are compiled.
const SOURCES: [(&str, &str); 2] = [
    ("npt.c", include_str!("npt.c")),
    ("npt_lttng.h", include_str!("npt_lttng.h")),
];

unsafe extern "C" {
    fn rtscope_loop_environment(name: *const libc::c_char, value: *const libc::c_char);
}

/// LTTng's session daemon, ours as long as we run.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    home: PathBuf,
}

impl Daemon {
    /// Starts one whose files are below `folder`.
    ///
    /// # Errors
    /// When it is not installed, or does not answer.
    pub fn start(folder: &Path) -> Result<Daemon> {
        let home = folder.join("lttng");
        let made = std::fs::create_dir(&home);
        made.map_err(|error| Error::io("cannot make a folder for LTTng", error))?;
        let mut command = Command::new("lttng-sessiond");
        command
            .arg("--no-kernel")
            .env("LTTNG_HOME", &home)
            .env("HOME", &home);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child =
            child.map_err(|error| Error::io("cannot start lttng-sessiond", error).fix(FIX))?;
        let daemon = Daemon { child, home };
        let begin = Instant::now();
        while daemon.lttng(&["list"]).is_err() {
            if begin.elapsed() > ANSWER_MAX {
                return Err(
                    Error::new(ErrorKind::Io, "lttng-sessiond does not answer").fix("lttng list")
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(daemon)
    }

    /// A program that its sessions trace.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, value) in self.variables() {
            command.env(name, value);
        }
        command
    }

    fn variables(&self) -> [(&'static str, &OsStr); 3] {
        let home = self.home.as_os_str();
        // Else the first events are gone before the daemon has spoken.
        let wait = OsStr::new("-1");
        [
            ("LTTNG_HOME", home),
            ("HOME", home),
            ("LTTNG_UST_REGISTER_TIMEOUT", wait),
        ]
    }

    fn lttng(&self, words: &[&str]) -> Result<String> {
        said(self.command("lttng").arg("--no-sessiond").args(words))
    }

    /// Runs `run` while a session records npt's events into sub-buffers of `subbuffer`, 32 a CPU.
    /// The consumer is woken by the traced thread, or with `timer` looks every 100 ms. Gives what
    /// `run` gave, how many events were lost, and where the trace was kept meanwhile.
    ///
    /// # Errors
    /// When LTTng refuses, and what `run` failed with.
    pub fn session<T, E: From<Error>>(
        &self,
        timer: bool,
        subbuffer: &str,
        run: impl FnOnce() -> Result<T, E>,
    ) -> Result<(T, u64), E> {
        let output = self.home.join("trace");
        let output = output.to_string_lossy().into_owned();
        self.lttng(&["-q", "create", "npt", "-o", &output])?;
        let mut channel = vec!["-q", "enable-channel", "-u", "--subbuf-size", subbuffer];
        channel.extend(["--num-subbuf", "32", "ch"]);
        if timer {
            channel.extend(["--read-timer", "100000"]);
        }
        let begun = self
            .lttng(&channel)
            .and_then(|_| self.lttng(&["-q", "enable-event", "-u", "-c", "ch", "npt:*"]))
            .and_then(|_| self.lttng(&["-q", "start"]));
        let ran = begun.map_err(E::from).and_then(|_| run());
        let lost = self.lttng(&["-q", "stop"]).and_then(|_| self.lost());
        self.lttng(&["-q", "destroy", "npt"])?;
        std::fs::remove_dir_all(&output).ok();
        Ok((ran?, lost?))
    }

    /// What the channel says of its losses.
    fn lost(&self) -> Result<u64> {
        let listed = self.lttng(&["list", "npt", "-u", "-c", "ch"])?;
        discarded(&listed).ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                "lttng does not say how many events were lost",
            )
            .found(listed)
        })
    }
}

/// `Discarded events: N`.
fn discarded(listed: &str) -> Option<u64> {
    let mut lines = listed.lines();
    let count = lines.find_map(|line| line.trim().strip_prefix("Discarded events:"))?;
    count.trim().parse().ok()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // Gone already, when another one was there before.
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.child.wait().ok();
    }
}

/// What a command that must succeed wrote to stdout.
fn said(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output =
        output.map_err(|error| Error::io(format!("cannot start {program}"), error).fix(FIX))?;
    if !output.status.success() {
        let found = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::new(ErrorKind::Io, format!("{program} failed"))
            .found(found)
            .fix(FIX));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The loop with LTTng's tracepoint in it. It stays loaded: its tracer has threads in this process.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    pub(super) run: LoopFunction,
}

impl Library {
    /// Compiles the loop below `folder`; gives the library's path.
    ///
    /// # Errors
    /// When there is no compiler, or LTTng-UST is not installed.
    pub fn build(folder: &Path) -> Result<PathBuf> {
        let library = folder.join("npt_lttng.so");
        for (name, text) in SOURCES {
            std::fs::write(folder.join(name), text)
                .map_err(|error| Error::io("cannot write the loop's source", error))?;
        }
        let mut compile = Command::new("cc");
        compile.args(["-O2", "-shared", "-fPIC", "-DRTSCOPE_LOOP_LTTNG", "-I"]);
        compile.arg(folder).arg("-o").arg(&library);
        compile.arg(folder.join("npt.c"));
        said(compile.args(["-llttng-ust", "-ldl"]))?;
        Ok(library)
    }

    /// Loads a library that was built, as a program of `daemon`'s.
    ///
    /// # Errors
    /// When it cannot be loaded, or is none.
    pub fn load(library: &Path, daemon: &Daemon) -> Result<Library> {
        let path = c_string(library.as_os_str())?;
        let before = daemon.variables().map(|(name, _)| std::env::var_os(name));
        for (name, value) in daemon.variables() {
            set_environment(name, Some(value))?;
        }
        // SAFETY: a library of ours by its name; its constructors are LTTng's.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        // Its constructors have looked; what this process starts later shall not see it.
        for ((name, _), value) in daemon.variables().into_iter().zip(before) {
            set_environment(name, value.as_deref())?;
        }
        if handle.is_null() {
            return Err(cannot_load());
        }
        // SAFETY: the handle is valid and never closed.
        let found = unsafe { libc::dlsym(handle, c"rtscope_loop_run".as_ptr()) };
        if found.is_null() {
            return Err(cannot_load());
        }
        // SAFETY: npt.c has the function with this type.
        let run = unsafe { std::mem::transmute::<*mut libc::c_void, LoopFunction>(found) };
        Ok(Library { run })
    }
}

/// Sets a variable of this process, or takes it away.
fn set_environment(name: &str, value: Option<&OsStr>) -> Result<()> {
    let name = c_string(OsStr::new(name))?;
    let value = value.map(c_string).transpose()?;
    let value = value
        .as_ref()
        .map_or(std::ptr::null(), |value| value.as_ptr());
    // SAFETY: texts that end, or null; nobody else reads the environment meanwhile.
    unsafe { rtscope_loop_environment(name.as_ptr(), value) };
    Ok(())
}

fn cannot_load() -> Error {
    // SAFETY: the text is the C library's, of this thread, until the next call.
    let text = unsafe { libc::dlerror() };
    let found = match text.is_null() {
        true => String::new(),
        // SAFETY: not null, and ended by a zero.
        false => unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
    };
    Error::new(
        ErrorKind::Unsupported,
        "cannot load the loop with LTTng's tracepoint",
    )
    .found(found)
    .fix(FIX)
}

fn c_string(text: &OsStr) -> Result<CString> {
    CString::new(text.as_bytes())
        .map_err(|_| Error::new(ErrorKind::InvalidInput, "a path with a zero in it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_read_from_what_lttng_lists() {
        let check = |listed: &str, expect| assert_eq!(discarded(listed), expect, "{listed}");
        let listed = "      Statistics:\n        Discarded events: 1234\n        Lost packets: 0\n";
        check(listed, Some(1234));
        check("- ch: [enabled]\n", None);
    }
}
