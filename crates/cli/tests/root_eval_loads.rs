//! The loads of `rtscope measure eval`: what did not run under all of them is never a pass, and
//! they end with it, however it ends.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");
/// Looks for something that must come, ten milliseconds apart.
const PATIENCE: usize = 3_000;

/// An evaluation whose loads are looked at.
fn eval(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(RTSCOPE);
    command.args(["measure", "eval", "--no-hw", "--budget", "10s", "-o", "out"]);
    command.args(words.split_whitespace()).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::piped());
    // SAFETY: a call of the system, which touches no memory.
    unsafe { command.pre_exec(heed_all) };
    command
}

/// Who runs the tests may ignore signals, and children inherit that: SIGHUP under nohup(1), SIGINT
/// and SIGQUIT behind a shell's `&`.
fn heed_all() -> std::io::Result<()> {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}

/// A process that is not left behind by a test that fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Waits until it is so.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within half a minute: {what}");
}

/// Processes that live and of which `is_it` holds: process id and command line.
fn processes(is_it: impl Fn(u32, &str) -> bool) -> Vec<u32> {
    let folders = std::fs::read_dir("/proc").expect("proc").flatten();
    let pids = folders.filter_map(|folder| folder.file_name().to_string_lossy().parse().ok());
    let lives = |pid: &u32| {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        // One that is dead and not yet reaped has no command line.
        !line.is_empty() && is_it(*pid, &line)
    };
    pids.filter(lives).collect()
}

/// All processes of the loads of `owner`, by the mark in their environment.
fn of(owner: u32) -> Vec<u32> {
    let mark = format!("RTSCOPE_LOAD={owner}:");
    processes(|pid, _| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&mark)
    })
}

/// What the evaluation in `folder` wrote, once it has ended with `code`.
fn ended(folder: &Path, child: Child, code: i32) -> (Value, String, String) {
    let output: Output = child.wait_with_output().expect("it ends");
    let read = |name: &str| std::fs::read_to_string(folder.join("out").join(name));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    let object = serde_json::from_str(&read("eval.json").expect("an object")).expect("JSON");
    let page = read("report.html").expect("a page");
    assert!(page.contains("The loads, and what they did"), "{page}");
    (object, read("junit.xml").expect("results"), text)
}

fn start(folder: &Path, words: &str) -> Child {
    eval(folder, words).spawn().expect("rtscope starts")
}

/// The process of a load that its worker started: the program itself, not a part of it.
fn program(owner: u32, part: &str) -> u32 {
    until(part, || {
        let mine = of(owner);
        let found = processes(|pid, line| mine.contains(&pid) && line.contains(part));
        found.into_iter().min()
    })
}

fn load<'a>(object: &'a Value, name: &str) -> &'a Value {
    let loads = object["loads"].as_array().expect("loads");
    let found = loads.iter().find(|load| load["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {object}"))
}

#[test]
fn loads_that_run_are_proved_by_what_they_count() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let child = start(folder.path(), "--for 8s --load hackbench,compile");
    let (object, junit, _) = ended(folder.path(), child, 0);
    assert_eq!(object["verdict"], "pass", "{}", object["loads"]);
    assert!(junit.contains("errors=\"0\""), "{junit}");
    for name in ["hackbench", "compile"] {
        let load = load(&object, name);
        assert_eq!(load["state"], "ran", "{load}");
        let points = load["points"].as_array().expect("points");
        assert!(points.len() > 5, "{load}");
        let last = points.last().and_then(Value::as_array).expect("a point");
        assert!(last.iter().all(|sum| sum.as_u64() > Some(0)), "{load}");
        let names = load["counters"].as_array().map(Vec::len);
        assert_eq!(Some(last.len()), names.map(|names| names + 1), "{load}");
    }
}

#[test]
fn without_tools_nothing_passes() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = eval(folder.path(), "--for 1s");
    let child = command.env("PATH", folder.path()).spawn().expect("starts");
    let (object, junit, _) = ended(folder.path(), child, 3);
    assert_eq!(object["verdict"], "inconclusive");
    let states = ["hackbench", "stress-ng", "compile"].map(|name| {
        let load = load(&object, name);
        assert!(
            load["why"]
                .as_str()
                .is_some_and(|why| why.contains("apt install")),
            "{load}"
        );
        load["state"].clone()
    });
    assert_eq!(states, ["missing", "missing", "missing"].map(Value::from));
    assert!(junit.contains("name=\"load hackbench\"><error "), "{junit}");
    assert!(
        !junit.contains("name=\"latency on CPU 0\"></testcase>"),
        "{junit}"
    );
}

/// A program called `name` in `folder` that does what `script` says.
fn fake(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("allowed");
}

/// They pretend: what is printed and written is what a real one prints and writes.
const HACKBENCH: &str = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo Time: 0.123";
const CC: &str = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
    while [ \"$1\" != -o ]; do shift; done; echo object > \"$2\"";
const STRESS_NG: &str = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
    while [ \"$1\" != --yaml ]; do shift; done
    for one in cpu vm hdd timer; do
        echo \"- stressor: $one\"; echo \"bogo-ops: 100\"
    done > \"$2\"";

#[test]
fn a_program_of_the_same_name_that_does_nothing_is_no_load() {
    let _alone = testkit::privileged();
    let check = |name: &str, load_name: &str, script: &str, expect: &str, state: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let tools = folder.path().join("tools");
        std::fs::create_dir(&tools).expect("a folder");
        fake(&tools, name, script);
        for tool in ["sleep", "sh"] {
            symlink(Path::new("/bin").join(tool), tools.join(tool)).expect("a link");
        }
        let mut command = eval(folder.path(), "--for 4s --load");
        let command = command.arg(load_name).env("PATH", &tools);
        let (object, junit, _) = ended(folder.path(), command.spawn().expect("starts"), 3);
        let load = load(&object, load_name);
        assert_eq!(load["state"], state, "{load}");
        let why = load["why"].as_str().unwrap_or_default();
        assert!(why.contains(expect), "{load}");
        assert!(junit.contains("errors="), "{junit}");
    };
    let did_nothing = "did nothing for its stressor cpu";
    let cases = [
        (
            "hackbench",
            "hackbench",
            "sleep 100",
            "CPU time from",
            "idle",
        ),
        ("cc", "compile", "exit 0", "wrote no object", "died"),
        (
            "hackbench",
            "hackbench",
            "exit 0",
            "did not say how long it took",
            "died",
        ),
        (
            "hackbench",
            "hackbench",
            "echo no >&2; exit 1",
            "status: 1 (no)",
            "died",
        ),
        ("stress-ng", "stress-ng", "exit 0", did_nothing, "died"),
        // Those say what the real ones do, and take the CPU for it.
        (
            "hackbench",
            "hackbench",
            HACKBENCH,
            "made 1 processes",
            "died",
        ),
        (
            "stress-ng",
            "stress-ng",
            STRESS_NG,
            "made 1 processes",
            "died",
        ),
        ("cc", "compile", CC, "without what it was", "died"),
    ];
    for (name, load_name, script, expect, state) in testkit::core_of(&cases, 2) {
        check(name, load_name, script, expect, state);
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[test]
fn a_load_that_is_killed_died_and_one_that_is_stopped_stood_still() {
    let _alone = testkit::privileged();
    let check = |signal: &str, part: &str, state: &str, expect: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let child = start(folder.path(), "--for 8s --load hackbench");
        let owner = child.id();
        program(owner, part);
        std::thread::sleep(Duration::from_secs(1));
        // The program runs again and again: one may have ended just before.
        until("a process that takes the signal", || {
            let victim = program(owner, part);
            let sent = Command::new("kill")
                .args([signal, &victim.to_string()])
                .output();
            sent.expect("kill starts");
            std::thread::sleep(Duration::from_millis(100));
            let workers =
                processes(|pid, line| of(owner).contains(&pid) && line.contains("load-part work"));
            (workers.is_empty() || is_stopped(victim)).then_some(())
        });
        let (object, junit, text) = ended(folder.path(), child, 3);
        let load = load(&object, "hackbench");
        assert_eq!(load["state"], state, "{signal} {part}: {load}");
        let why = load["why"].as_str().unwrap_or_default();
        assert!(why.contains(expect), "{signal} {part}: {load}");
        assert!(
            junit.contains("<error message=\"the load hackbench"),
            "{junit}"
        );
        let told = text.contains("nothing is proved from here on");
        assert_eq!(told, state == "died", "{text}");
    };
    let cases = [
        ("-KILL", "rtscope-hackbench -g", "died", "SIGKILL"),
        ("-STOP", "rtscope-hackbench -g", "idle", ""),
        ("-KILL", "load-part work", "died", "SIGKILL"),
        ("-KILL", "load-part keeper", "died", "SIGKILL"),
        ("-STOP", "load-part work", "idle", ""),
    ];
    for (signal, part, state, expect) in testkit::core_of(&cases, 2) {
        check(signal, part, state, expect);
    }
}

/// How an evaluation comes to its end.
enum End {
    Signal(i32),
    /// The terminal's shell, with its process group.
    Shell,
}

#[test]
fn loads_end_with_the_evaluation_however_it_ends() {
    let _alone = testkit::privileged();
    let ends = [
        End::Signal(libc::SIGHUP),
        End::Signal(libc::SIGKILL),
        End::Shell,
        End::Signal(libc::SIGQUIT),
        End::Signal(libc::SIGSEGV),
        End::Signal(libc::SIGINT),
        End::Signal(libc::SIGTERM),
        End::Signal(libc::SIGABRT),
    ];
    for end in testkit::core_of(&ends, 3) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = eval(folder.path(), "--for 40s --load hackbench,compile");
        let (child, mut terminal) = match end {
            End::Signal(_) => (command.spawn().expect("starts"), None),
            End::Shell => in_a_terminal(folder.path()),
        };
        let mut child = Running(child);
        let owner = until("the evaluation", || evaluation(&child.0));
        until("all loads", || (of(owner).len() > 6).then_some(()));
        until("its flight recorder", || recorders(owner).then_some(()));
        match end {
            &End::Signal(signal) => {
                let status = until("its end", || {
                    // Again: the handler that every Rust program has for SIGSEGV takes the first
                    // one for a fault, which would come again by itself.
                    // SAFETY: a signal to a child of ours that is not yet reaped.
                    unsafe { libc::kill(child.0.id().cast_signed(), signal) };
                    child.0.try_wait().expect("a child")
                });
                let ends_well = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];
                if !ends_well.contains(&signal) {
                    assert_eq!(status.signal(), Some(signal), "{status}");
                }
            }
            End::Shell => {
                // Its window is closed.
                drop(terminal.take());
                child.0.wait().expect("it ends");
            }
        }
        nothing_stays(owner);
    }
}

/// Waits until nothing is left of the loads of `owner`, nor of its flight recorder.
fn nothing_stays(owner: u32) {
    until("no load is left", || of(owner).is_empty().then_some(()));
    let left = || !folders(owner).is_empty();
    until("no folder is left", || (!left()).then_some(()));
    until("no flight recorder is left", || {
        (!recorders(owner)).then_some(())
    });
}

/// Whether `owner` has a flight recorder in tracefs.
fn recorders(owner: u32) -> bool {
    let prefix = format!("rtscope-{owner}-");
    testkit::tracefs_instances()
        .iter()
        .any(|name| name.starts_with(&prefix))
}

/// The folders of the loads of `owner`.
fn folders(owner: u32) -> Vec<String> {
    let prefix = format!("rtscope-load-{owner}-");
    let entries = std::fs::read_dir(std::env::temp_dir())
        .expect("a folder")
        .flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

/// The evaluation: the child, or what a child of ours started.
fn evaluation(child: &Child) -> Option<u32> {
    let is_it = |pid: u32, line: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| {
            let parent = rest.split_whitespace().nth(1)?;
            parent.parse::<u32>().ok()
        });
        let mine = pid == child.id() || parent == Some(child.id());
        mine && line.contains("measure eval") && !line.starts_with("/bin/sh")
    };
    processes(is_it).into_iter().max()
}

/// A shell in a terminal of its own that runs an evaluation in the foreground, and the terminal.
fn in_a_terminal(folder: &Path) -> (Child, Option<std::fs::File>) {
    use std::os::fd::FromRawFd;
    let (mut master, mut slave) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: it writes two descriptors; names and settings are not asked for.
    let opened = unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            null,
            null.cast(),
            null.cast(),
        )
    };
    assert_eq!(opened, 0, "no terminal");
    // SAFETY: both were opened above and belong to nobody else.
    let (master, slave) = unsafe {
        libc::fcntl(master, libc::F_SETFD, libc::FD_CLOEXEC);
        (
            std::fs::File::from_raw_fd(master),
            std::fs::File::from_raw_fd(slave),
        )
    };
    let words = "measure eval --no-hw --budget 10s --for 40s --load hackbench,compile";
    let line = format!("{RTSCOPE} {words}; true");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &line]).current_dir(folder);
    shell.stdin(slave.try_clone().expect("a copy"));
    shell
        .stdout(slave.try_clone().expect("a copy"))
        .stderr(slave);
    // SAFETY: two calls of the system, which touch no memory.
    unsafe {
        shell.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            heed_all()
        });
    }
    (shell.spawn().expect("a shell"), Some(master))
}

#[test]
fn out_of_memory_a_load_dies_before_who_measures_and_that_is_told() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let child = start(folder.path(), "--for 4s --load hackbench");
    let owner = child.id();
    until("its loads", || (of(owner).len() > 6).then_some(()));
    let score = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj"));
        text.unwrap_or_default().trim().to_owned()
    };
    // Who cleans up is no load.
    let keepers = processes(|pid, line| line.contains("load-part keeper") && pid != owner);
    let mine = of(owner);
    let (keepers, loads): (Vec<u32>, Vec<u32>) = mine.iter().partition(|pid| keepers.contains(pid));
    // Those that have ended meanwhile have none.
    let scores: Vec<String> = loads.into_iter().map(score).collect();
    assert!(
        scores.iter().all(|one| one.is_empty() || one == "1000"),
        "{scores:?}"
    );
    assert_eq!(keepers.len(), 1);
    assert_ne!(score(owner), "1000");
    // Where we may say so: that takes CAP_SYS_RESOURCE.
    assert!(["-1000", &score(owner)].contains(&&*score(keepers[0])));
    ended(folder.path(), child, 0);
}

#[test]
fn out_of_memory_who_measures_dies_after_the_loads_and_nothing_stays() {
    let _alone = testkit::privileged();
    let name = "an evaluation out of memory";
    let Some(group) = MemoryGroup::new(192 << 20) else {
        return testkit::skip(name, "no control group of memory can be made");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = eval(folder.path(), "--for 40s --load hackbench,compile");
    let mut child = Running(group.spawn(&mut command));
    let owner = child.0.id();
    until("all loads", || (of(owner).len() > 6).then_some(()));
    until("its flight recorder", || recorders(owner).then_some(()));
    let mut hogs = Vec::new();
    let status = until("its end", || {
        hogs.extend((hogs.len() < 40).then(|| group.hog()));
        std::thread::sleep(Duration::from_millis(100));
        child.0.try_wait().expect("a child")
    });
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
    nothing_stays(owner);
}

/// A control group whose processes may use so much memory.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn new(bytes_max: u64) -> Option<MemoryGroup> {
        let group = |root: &str, file: &str| {
            let path = Path::new(root).join(format!("rtscope-test-{}", std::process::id()));
            std::fs::create_dir(&path).ok()?;
            let group = MemoryGroup(path);
            let limited = std::fs::write(group.0.join(file), bytes_max.to_string());
            limited.ok().map(|()| group)
        };
        let first = group("/sys/fs/cgroup/memory", "memory.limit_in_bytes");
        first.or_else(|| group("/sys/fs/cgroup", "memory.max"))
    }

    fn spawn(&self, command: &mut Command) -> Child {
        let procs = self.0.join("cgroup.procs");
        // SAFETY: a file is written; no lock of another thread is taken.
        unsafe { command.pre_exec(move || std::fs::write(&procs, "0")) };
        command.spawn().expect("it starts")
    }

    /// Something that needs less of it than who measures, and more than who cleans up.
    fn hog(&self) -> Hog {
        let line = "{ head -c 48M /dev/zero; exec sleep 60; } | exec tail -c 48M >/dev/null";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).process_group(0);
        Hog(self.spawn(&mut command))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Who was killed may not be gone yet.
        for _ in 0..PATIENCE {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(std::thread::panicking(), "somebody stays in {:?}", self.0);
    }
}

/// A process group of its own.
struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        // SAFETY: a signal to a group whose leader is our child, not yet reaped.
        unsafe { libc::kill(-self.0.id().cast_signed(), libc::SIGKILL) };
        self.0.wait().ok();
    }
}

#[test]
fn what_is_left_of_a_load_all_the_same_is_cleaned() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let scratch = std::env::temp_dir().join("rtscope-load-99999999-hackbench");
    std::fs::create_dir_all(&scratch).expect("a folder");
    // The largest process id of Linux is 2^22: nobody's.
    let mut orphan = Command::new("sleep");
    let orphan = orphan.arg("1000").env("RTSCOPE_LOAD", "99999999:1").spawn();
    let mut orphan = orphan.expect("sleep starts");
    let clean = Command::new(RTSCOPE)
        .args(["doctor", "--clean", "--json"])
        .current_dir(folder.path())
        .output()
        .expect("rtscope starts");
    assert!(clean.status.success(), "{clean:?}");
    let status = orphan.wait().expect("it ended");
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert!(!scratch.exists());
    let object: Value = serde_json::from_slice(&clean.stdout).expect("JSON");
    let of_loads = object["removed"].as_array().expect("a list").iter();
    let of_loads = of_loads.filter(|one| one["kind"] == "load" && one["pid"] == 99_999_999);
    assert_eq!(of_loads.count(), 2, "{}", object["removed"]);
}
