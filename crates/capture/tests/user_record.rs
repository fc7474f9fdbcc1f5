//! Check that applications are recorded from their first event to their last, with every loss
//! counted, into traces that others read. Needs no privilege.

use std::collections::BTreeMap;
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use abi::rings::{Header, Plain, Ring};
use capture::{RecordConfig, RecordSummary, UserConfig, record};
use event::{ErrorKind, Result, TimeRange};
use host::capabilities::Capabilities;
use testkit::{Traced, build_traced};
use trace::{Item, Trace};

/// Writes as many events as it is told, as fast as it can; then waits for its input's end.
const BURST: &str = r#"
#include <rtscope/event.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
    const unsigned long events = strtoul(words[1], 0, 10);
    char byte;
    if (count > 2 && read(0, &byte, 1) < 0)
        return 1;
    for (unsigned long i = 0; i < events; i++)
        RTSCOPE_EVENT(burst, tick, u64("i", i), text("name", "tick"));
    RTSCOPE_EVENT(burst, last, i32("negative", -3), x16("mask", 0xbeef), f64("half", 0.5),
                  bytes("two", "\1\2", 2));
    RTSCOPE_EVENT(burst, unwanted_never);
    return 0;
}
"#;

struct Scene {
    folder: tempfile::TempDir,
    shared: tempfile::TempDir,
    program: PathBuf,
}

/// A recording in a thread of its own.
struct Recording {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<RecordSummary>>,
}

impl Recording {
    fn end(self) -> RecordSummary {
        self.stop.store(true, Ordering::Release);
        let summary = self.thread.join().expect("no panic");
        summary.expect("it records")
    }
}

impl Scene {
    fn new(name: &str) -> Scene {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Scene {
            folder: tempfile::tempdir().expect("a folder"),
            shared: tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory"),
            program: build_traced(scratch, name, Traced::c(BURST)),
        }
    }

    /// What a shell's script records of `burst`.
    fn of_shell(&self, script: &str) -> RecordSummary {
        let config = RecordConfig {
            command: Some(["sh", "-c", script].map(Into::into).to_vec()),
            ..self.config("burst")
        };
        record(&config, &Capabilities::default(), "test").expect("it records")
    }

    fn config(&self, pattern: &str) -> RecordConfig {
        let user = UserConfig::new(&[pattern.to_owned()]).expect("a pattern");
        RecordConfig {
            kernel: false,
            user: Some(user.in_directory(self.shared.path())),
            ..RecordConfig::new(self.folder.path().join("trace"))
        }
    }

    /// Records the program as the command of a recording.
    fn record(&self, pattern: &str, events: u64, variables: &[&str]) -> RecordSummary {
        let directory = format!("RTSCOPE_DIR={}", self.shared.path().display());
        let words = [&["env", &directory], variables].concat();
        let mut command: Vec<_> = words.into_iter().map(Into::into).collect();
        command.push(self.program.clone().into());
        command.push(events.to_string().into());
        let config = RecordConfig {
            command: Some(command),
            ..self.config(pattern)
        };
        let summary = record(&config, &Capabilities::default(), "test").expect("it records");
        assert_eq!(
            self.left(),
            Vec::<String>::new(),
            "what is left in shared memory"
        );
        summary
    }

    /// Starts the program with 50 events to write when its `input` ends.
    fn start(&self, input: Stdio) -> Child {
        let mut command = Command::new(&self.program);
        command
            .args(["50", "wait"])
            .env("RTSCOPE_DIR", self.shared.path());
        command.stdin(input).spawn().expect("it starts")
    }

    /// Begins to record what is there and what comes; returns when it is announced.
    fn begin(&self, pattern: &str) -> Recording {
        let stop = Arc::new(AtomicBool::new(false));
        let config = RecordConfig {
            stop: Arc::clone(&stop),
            ..self.config(pattern)
        };
        let thread = std::thread::spawn(move || record(&config, &Capabilities::default(), "test"));
        while !self.left().iter().any(|name| name.starts_with("session-")) {
            std::thread::yield_now();
        }
        Recording { stop, thread }
    }

    /// The names of the ring files that are there.
    fn rings(&self) -> Vec<String> {
        let names = self.left().into_iter();
        names.filter(|name| name.starts_with("rings-")).collect()
    }

    /// Waits until so many are there: a recorder removes the rings of a process that is gone when
    /// it has read them.
    fn wait_for_rings(&self, count: usize) {
        while self.rings().len() != count {
            std::thread::yield_now();
        }
    }

    /// Names in the shared directory.
    fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.shared.path()).expect("the shared directory");
        let names = entries.map(|e| {
            e.expect("a name")
                .file_name()
                .to_string_lossy()
                .into_owned()
        });
        names.collect()
    }
}

/// The program's events of each class, the sequence numbers and the losses of a trace.
fn read(path: &Path) -> (BTreeMap<String, u64>, Vec<u64>, u64) {
    let trace = Trace::open(path).expect("a trace");
    let (mut classes, mut numbers, mut lost) = (BTreeMap::new(), Vec::new(), 0);
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("sound") {
        match item {
            Item::Event(event) => {
                let class = &trace.classes()[event.class().0 as usize];
                if class.name.starts_with("lttng_ust_statedump:") {
                    continue;
                }
                *classes.entry(class.name.clone()).or_insert(0) += 1;
                if let Some(field) = class.field("i") {
                    numbers.push(event.u64(field));
                }
            }
            Item::Lost(loss) => lost += loss.count.unwrap_or_default(),
            other => panic!("{other:?}"),
        }
    }
    (classes, numbers, lost)
}

fn check_babeltrace(path: &Path, events: u64, last: &str) {
    let Ok(output) = Command::new("babeltrace2").arg(path).output() else {
        testkit::skip("user_record", "babeltrace2 is not installed");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8_lossy(&output.stdout);
    // What the recorder says of the program's libraries is not the program's.
    let own = |line: &&str| !line.contains(" lttng_ust_statedump:");
    assert_eq!(text.lines().filter(own).count() as u64, events);
    assert!(text.contains(last), "{text}");
}

#[test]
fn a_command_is_recorded_from_its_first_event_to_its_last() {
    let scene = Scene::new("command");
    let check = |variables: &[&str]| {
        let summary = scene.record("burst", 1000, variables);
        assert_eq!(summary.user.lost(), 0, "{variables:?}");
        assert_eq!(summary.user.events(), 1002);
        let (classes, numbers, lost) = read(&summary.path);
        assert_eq!((classes["burst:tick"], lost), (1000, 0));
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
        let last = "negative = -3, mask = 0xBEEF, half = 0.5, _two_length = 2, two = [ [0] = 0x1, \
                    [1] = 0x2 ]";
        check_babeltrace(&summary.path, 1002, last);
        std::fs::remove_dir_all(&summary.path).expect("the trace");
    };
    check(&[]);
    check(&["RTSCOPE_CLOCK=monotonic"]);
    check(&["RTSCOPE_RSEQ=off"]);
}

#[test]
fn only_what_a_pattern_names_is_recorded() {
    let scene = Scene::new("pattern");
    let summary = scene.record("burst:l*", 1000, &[]);
    let (classes, ..) = read(&summary.path);
    assert_eq!(classes, BTreeMap::from([("burst:last".to_owned(), 1)]));
}

#[test]
fn what_a_full_ring_loses_is_counted_to_the_event() {
    let scene = Scene::new("losses");
    // The second is read in several goes.
    for ring in ["RTSCOPE_RING_SIZE=32K", "RTSCOPE_RING_SIZE=1M"] {
        let summary = scene.record("burst:tick", 300_000, &[ring]);
        let process = &summary.user.processes[0];
        assert!(process.lost() > 0, "{ring} cannot hold this");
        assert_eq!(process.events + process.lost(), 300_000);
        assert_eq!(process.malformed, 0);
        let (_, numbers, lost) = read(&summary.path);
        assert!(numbers.is_sorted_by(|a, b| a < b), "out of order or twice");
        assert_eq!(numbers.len() as u64 + lost, 300_000);
        check_times(&summary.path, numbers.len());
        std::fs::remove_dir_all(&summary.path).expect("the trace");
    }
}

/// Each event has a time of its own, also those that waited in a ring while others were lost: a
/// program needs some nanoseconds from one to the next.
fn check_times(path: &Path, events: usize) {
    let trace = Trace::open(path).expect("a trace");
    let mut cursor = trace.cursor(TimeRange::ALL);
    let mut times = std::collections::BTreeSet::new();
    while let Some(item) = cursor.next().expect("sound") {
        if let Item::Event(event) = item {
            times.insert(event.time());
        }
    }
    // A clock may be coarser than that, and the order is kept where two CPUs' disagree.
    assert!(
        times.len() > events / 2,
        "{} times of {events}",
        times.len()
    );
}

#[test]
fn a_process_that_runs_already_is_switched_on_and_off_again() {
    let scene = Scene::new("running");
    let start = || scene.start(Stdio::piped());
    let (mut before, mut silent) = (start(), start());
    scene.wait_for_rings(2);
    let recording = scene.begin("burst:*");
    let mut later = scene.start(Stdio::null());
    assert!(later.wait().expect("it ends").success());
    scene.wait_for_rings(2);
    drop(before.stdin.take());
    assert!(before.wait().expect("it ends").success());
    scene.wait_for_rings(1);
    let summary = recording.end();
    let mut events: Vec<_> = summary.user.processes.iter().map(|p| p.events).collect();
    events.sort_unstable();
    assert_eq!(events, [52, 52]);
    // Switched off: its events are not recorded, and it leaves nothing.
    drop(silent.stdin.take());
    assert!(silent.wait().expect("it ends").success());
    assert_eq!(scene.left(), Vec::<String>::new());
}

/// What a process with malice does to its rings: the file ends behind the controls, and one of them
/// says that there are records behind that.
fn break_rings(path: &Path) {
    let file = File::options().read(true).write(true).open(path);
    let file = file.expect("our file");
    let mut header = vec![0; size_of::<Header>()];
    file.read_exact_at(&mut header, 0).expect("a header");
    let header = Header::from_bytes(&header).expect("a header");
    assert!(header.switches_offset < header.data_offset);
    file.set_len(header.switches_offset).expect("truncated");
    let head = header.controls_offset + offset_of!(Ring, head) as u64;
    file.write_all_at(&4096_u64.to_le_bytes(), head)
        .expect("written");
}

#[test]
fn rings_that_are_broken_end_the_recording_of_their_process_and_of_no_other() {
    let scene = Scene::new("broken");
    let mut bad = scene.start(Stdio::piped());
    scene.wait_for_rings(1);
    let of_bad = scene.shared.path().join(&scene.rings()[0]);
    let recording = scene.begin("burst:*");
    let record_good = || {
        let mut good = scene.start(Stdio::null());
        assert!(good.wait().expect("it ends").success());
        scene.wait_for_rings(1);
    };
    record_good();
    // It has read those of the bad one too by now.
    break_rings(&of_bad);
    record_good();
    let summary = recording.end();
    let events: Vec<_> = summary.user.processes.iter().map(|p| p.events).collect();
    assert_eq!(events, [52, 52]);
    let name = of_bad.file_name().expect("a name").to_string_lossy();
    let refused = summary.user.refused.join("\n");
    assert!(refused.contains("cannot read the rings") && refused.contains(&*name));
    bad.kill().expect("ours");
    bad.wait().expect("ours");
}

#[test]
fn a_directory_that_is_taken_away_is_named_and_what_was_read_is_kept() {
    let scene = Scene::new("taken");
    let recording = scene.begin("burst:*");
    let mut traced = scene.start(Stdio::null());
    assert!(traced.wait().expect("it ends").success());
    scene.wait_for_rings(0);
    std::fs::remove_dir_all(scene.shared.path()).expect("ours");
    // It looks once more when it ends.
    let summary = recording.end();
    assert_eq!(summary.user.events(), 52);
    let directory = scene.shared.path().display().to_string();
    assert!(summary.user.refused.join(" ").contains(&directory));
}

#[test]
fn who_finds_no_memory_for_rings_runs_on_and_is_named_with_the_reason() {
    let scene = Scene::new("without");
    let own = scene.shared.path().display();
    // 64 MiB a CPU do not fit into 40 MB of address space.
    let script = format!(
        "export RTSCOPE_DIR={own}; {0} 10; ulimit -v 40000; RTSCOPE_RING_SIZE=64M exec {0} 10",
        scene.program.display()
    );
    let summary = scene.of_shell(&script);
    assert_eq!(summary.user.events(), 12);
    let [said] = &summary.user.refused[..] else {
        panic!("{:?}", summary.user.refused);
    };
    assert!(
        said.starts_with("without (") && said.contains(") has no rings"),
        "{said}"
    );
    assert!(said.contains("found: Cannot allocate memory"), "{said}");
    assert!(said.contains("RTSCOPE_RING_SIZE=64K"), "{said}");
    assert_eq!(scene.left(), Vec::<String>::new());
}

#[test]
fn a_variable_that_is_not_followed_is_told_to_whom_records_the_process() {
    let scene = Scene::new("misspelt");
    let own = scene.shared.path().display();
    let script = format!(
        "RTSCOPE_DIR={own} RTSCOPE_MODE=blok RTSCOPE_RING_SIZE=99999999G exec {0} 10",
        scene.program.display()
    );
    let summary = scene.of_shell(&script);
    assert_eq!(summary.user.events(), 12);
    let said = &summary.user.refused;
    assert_eq!(said.len(), 2, "{said:?}");
    let is_said = |part: &str| said.iter().any(|line| line.contains(part));
    for part in ["RTSCOPE_MODE is not followed", "blok", "99999999G"] {
        assert!(is_said(part), "{part}: {said:?}");
    }
}

/// Forks, and writes in both; says in the child's status how many file descriptors it may have.
const FORKS: &str = r#"
#include <rtscope/event.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    const struct rlimit descriptors = {count > 1 ? (rlim_t)atoi(words[1]) : 4, 1024};
    RTSCOPE_EVENT(forks, parent);
    if (count > 1 && setrlimit(RLIMIT_NOFILE, &descriptors) != 0)
        return 1;
    if (fork() == 0) {
        RTSCOPE_EVENT(forks, child);
        return 0;
    }
    return wait(0) < 0;
}
"#;

/// Records a script with [`FORKS`] as `$0`; gives what each process wrote, and who was refused.
fn forked(scene: &Scene, program: &Path, script: &str) -> (Vec<u64>, Vec<String>) {
    let own = scene.shared.path().display();
    // What who runs the tests left open would count among the descriptors.
    let script = format!("exec 3>&-; export RTSCOPE_DIR={own}; {script}");
    let mut command: Vec<_> = ["sh", "-c", &script].map(Into::into).to_vec();
    command.push(program.into());
    let config = RecordConfig {
        command: Some(command),
        ..scene.config("forks")
    };
    let summary = record(&config, &Capabilities::default(), "test").expect("it records");
    assert_eq!(scene.left(), Vec::<String>::new());
    let mut events: Vec<_> = summary.user.processes.iter().map(|p| p.events).collect();
    events.sort_unstable();
    (events, summary.user.refused)
}

#[test]
fn a_child_of_fork_tries_for_rings_of_its_own_and_is_named_where_it_finds_none() {
    let scene = Scene::new("forks-refused");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = build_traced(scratch, "forks", Traced::c(FORKS));
    let check = |script: &str, events: &[u64], refused: usize| {
        let (found, said) = forked(&scene, &program, script);
        assert_eq!(
            (&found[..], said.len()),
            (events, refused),
            "{script}: {said:?}"
        );
        let of_descriptors = |said: &String| {
            said.starts_with("forks (")
                && said.contains(") has no rings")
                && said.contains("found: Too many open files")
                && said.contains("raise 'ulimit -n'")
        };
        assert!(said.iter().all(of_descriptors), "{said:?}");
        std::fs::remove_dir_all(scene.folder.path().join("trace")).expect("the trace");
    };
    check("$0", &[1, 1], 0);
    // The parent has rings, and its child may open no more than the directory.
    check("$0 4", &[1], 1);
    // Not even that.
    check("$0 0", &[1], 1);
    // The parent has none, its child may open more.
    check("(ulimit -S -n 4; $0 1024)", &[1], 1);
    // Neither has any, which each says for itself; another process is recorded.
    check("$0; (ulimit -n 4; $0)", &[1, 1], 2);
}

/// A child writes its first event when a recorder has long found it, then more than its rings hold.
const FIRST_LATE: &str = r#"
#include <rtscope/event.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    RTSCOPE_EVENT(forks, parent);
    if (fork())
        return wait(0) < 0;
    for (unsigned turn = 0; turn < 10; turn++) {
        usleep(200000);
        for (unsigned i = 0; i < 5000; i++)
            RTSCOPE_EVENT(forks, child, u64("i", i));
    }
    return 0;
}
"#;

#[test]
fn a_child_is_read_from_its_first_event_on_however_late_that_comes() {
    let scene = Scene::new("forks-late");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = build_traced(scratch, "first-late", Traced::c(FIRST_LATE));
    let script = "export RTSCOPE_RING_SIZE=512K; $0";
    let (events, said) = forked(&scene, &program, script);
    assert_eq!((&events[..], said.len()), (&[1, 50_000][..], 0), "{said:?}");
}

/// Says in each event what time it is.
const CLOCK: &str = r#"
#include <rtscope/event.h>
#include <time.h>
int main(void)
{
    for (int i = 0; i < 100; i++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        RTSCOPE_EVENT(clock, tick, u64("now", now.tv_sec * 1000000000u + now.tv_nsec));
    }
    return 0;
}
"#;

/// [`CLOCK`] for arm64; nothing when that cannot be done or run here.
fn build_clock_for_arm64(folder: &Path) -> Option<PathBuf> {
    let is_there = |program| Command::new(program).arg("--version").output().is_ok();
    let needed = ["aarch64-linux-gnu-gcc", "qemu-aarch64"];
    if !cfg!(target_arch = "x86_64") || !needed.into_iter().all(is_there) {
        let why = "it wants x86-64, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user";
        testkit::skip("user_record on arm64", why);
        return None;
    }
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    let (source, program) = (folder.join("clock.c"), folder.join("clock"));
    std::fs::write(&source, CLOCK).expect("the program's text");
    let mut compile = Command::new(needed[0]);
    compile.args(["-O2", "-static", "-Wall", "-Wextra", "-Werror", "-o"]);
    compile
        .arg(&program)
        .arg(&source)
        .arg("-I")
        .arg(probe.join("include"));
    for source in std::fs::read_dir(probe.join("src")).expect("sources") {
        let path = source.expect("a source").path();
        if path.extension().is_some_and(|end| end == "c") {
            compile.arg(path);
        }
    }
    let done = compile.output().expect("a compiler");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    Some(program)
}

#[test]
fn a_program_for_another_machine_is_recorded_at_its_own_times() {
    let scene = Scene::new("foreign");
    let Some(program) = build_clock_for_arm64(scene.folder.path()) else {
        return;
    };
    let directory = format!("RTSCOPE_DIR={}", scene.shared.path().display());
    let mut command: Vec<_> = ["env", &directory, "qemu-aarch64"].map(Into::into).to_vec();
    command.push(program.into());
    let config = RecordConfig {
        command: Some(command),
        ..scene.config("clock")
    };
    let summary = record(&config, &Capabilities::default(), "test").expect("it records");
    assert_eq!((summary.user.events(), summary.user.lost()), (100, 0));
    let trace = Trace::open(&summary.path).expect("a trace");
    let mut cursor = trace.cursor(TimeRange::ALL);
    let (mut count, mut before) = (0, 0);
    while let Some(item) = cursor.next().expect("sound") {
        let Item::Event(event) = item else {
            panic!("{item:?}");
        };
        let class = &trace.classes()[event.class().0 as usize];
        let Some(now) = class.field("now").map(|field| event.u64(field)) else {
            continue;
        };
        let time = event.time().as_ns() as u64;
        assert!(before <= now && now <= time, "{before} {now} {time}");
        (count, before) = (count + 1, time);
    }
    assert_eq!(count, 100);
}

#[test]
fn a_recording_of_nothing_says_so() {
    let scene = Scene::new("nothing");
    let config = RecordConfig {
        command: Some(vec!["true".into()]),
        ..scene.config("burst")
    };
    let error = record(&config, &Capabilities::default(), "test").expect_err("nothing to record");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(UserConfig::new(&["a-b".to_owned()]).is_err());
}
