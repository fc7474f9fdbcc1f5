//! Check that a recorder sets the rings of programs that start meanwhile, and says of others that
//! they have their own. Needs no privilege.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use capture::{RecordConfig, RecordSummary, UserConfig, list, record};
use host::capabilities::Capabilities;
use testkit::{Traced, build_traced};

/// Waits for its input, where it is told to, and writes.
const PROGRAM: &str = r#"
#include <rtscope/event.h>
#include <unistd.h>
int main(int count, char **words)
{
    char byte;
    (void)words;
    if (count > 1 && read(0, &byte, 1) < 0)
        return 1;
    for (unsigned i = 0; i < 20; i++) {
        RTSCOPE_EVENT(app, tick, u32("i", i));
        RTSCOPE_EVENT(app, noise, text("what", "noise"));
    }
    for (unsigned i = 0; i < 200000; i++)
        RTSCOPE_EVENT(burst, tick, u64("i", i), u64("twice", 2 * i));
    return 0;
}
"#;
const BURST: u64 = 200_000;
/// What makes a program one that may lock all its memory: it has the rings of its start.
const LOCKS: &str = "#include <sys/mman.h>\nint lock_all(void) { return mlockall(MCL_CURRENT); }\n";

struct Scene {
    folder: tempfile::TempDir,
    shared: tempfile::TempDir,
    program: PathBuf,
}

fn build(name: &str, source: &str) -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    build_traced(scratch, name, Traced::c(source))
}

impl Scene {
    fn new() -> Scene {
        static BUILT: OnceLock<PathBuf> = OnceLock::new();
        Scene::of(BUILT.get_or_init(|| build("user_rings", PROGRAM)).clone())
    }

    fn of(program: PathBuf) -> Scene {
        Scene {
            folder: tempfile::tempdir().expect("a folder"),
            shared: tempfile::tempdir_in("/dev/shm").expect("a folder"),
            program,
        }
    }

    fn user(&self, words: &[&str]) -> UserConfig {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let user = UserConfig::new(&words).expect("patterns");
        user.in_directory(self.shared.path())
    }

    fn config(&self, user: UserConfig) -> RecordConfig {
        RecordConfig {
            kernel: false,
            user: Some(user),
            ..RecordConfig::new(self.folder.path().join("trace"))
        }
    }

    /// Records the program as a command; none where that gave nothing.
    fn record(&self, user: UserConfig) -> Option<RecordSummary> {
        let directory = format!("RTSCOPE_DIR={}", self.shared.path().display());
        let program = self.program.clone().into();
        let config = RecordConfig {
            command: Some(vec!["env".into(), directory.into(), program]),
            ..self.config(user)
        };
        let summary = record(&config, &Capabilities::default(), "test").ok()?;
        std::fs::remove_dir_all(&summary.path).expect("the trace");
        Some(summary)
    }

    /// Records the program, which runs when the recorder begins.
    fn record_late(&self, user: UserConfig) -> event::Result<RecordSummary> {
        let child = self.wait();
        self.record_during(user, || testkit::let_end(child))
    }

    /// Records while `happens` happens.
    fn record_during(
        &self,
        user: UserConfig,
        happens: impl FnOnce(),
    ) -> event::Result<RecordSummary> {
        let stop = Arc::new(AtomicBool::new(false));
        let recording = Arc::new(AtomicBool::new(false));
        let config = RecordConfig {
            stop: Arc::clone(&stop),
            recording: Arc::clone(&recording),
            begun: |config| config.recording.store(true, Ordering::Release),
            ..self.config(user)
        };
        let thread = std::thread::spawn(move || record(&config, &Capabilities::default(), "test"));
        while !recording.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        happens();
        stop.store(true, Ordering::Release);
        thread.join().expect("no panic")
    }

    /// Starts the program, which waits; returns when its rings are there.
    fn wait(&self) -> Child {
        let mut command = Command::new(&self.program);
        command.arg("wait").env("RTSCOPE_DIR", self.shared.path());
        let child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        while list(&self.user(&["*"])).expect("a folder").0.is_empty() {
            std::thread::yield_now();
        }
        child
    }
}

#[test]
fn a_recorder_sets_the_rings_of_a_program_that_starts() {
    let scene = Scene::new();
    let check = |asked: Option<u64>, expect_bytes: u64| {
        let summary = scene.record(scene.user(&["app"]).with_rings(asked));
        let summary = summary.expect("it records");
        assert_eq!(summary.user.refused, Vec::<String>::new(), "{asked:?}");
        let process = &summary.user.processes[0];
        assert_eq!(
            (process.ring_bytes, process.events),
            (expect_bytes, 40),
            "{asked:?}"
        );
    };
    check(Some(32 << 10), 32 << 10);
    check(Some(4 << 20), 4 << 20);
    let facts = rustix::fs::statvfs("/dev/shm").expect("shared memory");
    if facts.f_bavail * facts.f_frsize < 64 << 30 {
        testkit::skip("user_rings", "too little shared memory for the default");
        return;
    }
    check(None, 8 << 20);
}

/// A burst as fast as it goes finds room in the rings that a recorder asks for, also where the
/// program ran before; what finds none in smaller ones is counted, to the event.
#[test]
fn a_burst_is_whole_in_a_program_that_starts_and_in_one_that_ran_before() {
    let scene = Scene::new();
    let summary = scene.record(scene.user(&["burst"])).expect("it records");
    let user = &summary.user;
    assert_eq!((user.events(), user.lost()), (BURST, 0));

    let late = |asked: Option<u64>| {
        let user = scene.user(&["burst"]).with_rings(asked);
        let summary = scene.record_late(user).expect("it records");
        std::fs::remove_dir_all(&summary.path).expect("the trace");
        summary.user.processes[0].clone()
    };
    let process = late(None);
    assert_eq!((process.events, process.lost()), (BURST, 0), "{process:?}");
    let process = late(Some(64 << 10));
    assert_eq!(process.ring_bytes, 64 << 10);
    assert_eq!(process.events + process.lost(), BURST, "{process:?}");
}

#[test]
fn a_program_that_locks_its_memory_keeps_its_rings_and_is_named_when_others_were_asked_for() {
    let scene = Scene::of(build("user_rings_locked", &format!("{LOCKS}{PROGRAM}")));
    let check = |asked: Option<u64>, words: &[&str], is_named: bool, expect: u64| {
        let recorded = scene.record_late(scene.user(words).with_rings(asked));
        let Ok(summary) = recorded else {
            assert_eq!((expect, is_named), (0, false), "{recorded:?}");
            return;
        };
        let said = summary.user.refused.join("\n");
        let named = said.contains("other rings than --ring asks for");
        assert_eq!(named, is_named, "{asked:?}: {said}");
        assert_eq!(
            (summary.user.events(), summary.user.lost()),
            (expect, 0),
            "{said}"
        );
        let _ = std::fs::remove_dir_all(&summary.path);
    };
    check(Some(1 << 20), &["app"], true, 40);
    check(Some(256 << 10), &["app"], false, 40);
    check(None, &["app:tick"], false, 20);
    check(Some(1 << 20), &["other"], false, 0);
}

#[test]
fn a_program_that_ran_before_has_the_rings_that_recorders_ask_for() {
    let scene = Scene::new();
    let check = |asked: u64, expect: u64, is_named: bool| {
        let user = scene.user(&["app"]).with_rings(Some(asked));
        let summary = scene.record_late(user).expect("it records");
        let process = &summary.user.processes[0];
        let found = (process.ring_bytes, process.events, process.lost());
        assert_eq!(found, (expect, 40, 0), "{asked}");
        assert_eq!(summary.user.refused.len(), usize::from(is_named), "{asked}");
        std::fs::remove_dir_all(&summary.path).expect("the trace");
    };
    check(8 << 10, 8 << 10, false);
    check(64 << 10, 64 << 10, false);
    check(4 << 20, 4 << 20, false);
    // As much as there are addresses for.
    check(128 << 20, 64 << 20, true);
}

/// Rings keep their size, but there are others.
#[test]
fn a_program_that_had_small_rings_for_one_recorder_has_others_for_the_next() {
    let scene = Scene::new();
    let child = scene.wait();
    let end = |child| testkit::let_end(child);
    let summary = scene.record_during(scene.user(&["app"]).with_rings(Some(64 << 10)), || ());
    assert!(summary.is_err(), "it waits: {summary:?}");
    let user = scene.user(&["burst"]);
    let summary = scene
        .record_during(user, || end(child))
        .expect("it records");
    let process = &summary.user.processes[0];
    assert_eq!((process.events, process.lost()), (BURST, 0), "{process:?}");
    std::fs::remove_dir_all(&summary.path).expect("the trace");
}

#[test]
fn a_recorder_that_ends_takes_back_what_it_gave_a_program_that_ran_before() {
    use std::os::unix::fs::MetadataExt;
    const RING_BYTES: u64 = 4 << 20;
    let scene = Scene::new();
    let child = scene.wait();
    let memory = || {
        let files = std::fs::read_dir(scene.shared.path()).expect("the shared folder");
        let sizes = files.map(|file| file.expect("a file").metadata().map_or(0, |of| of.blocks()));
        sizes.sum::<u64>() * 512
    };
    let mut during = 0;
    let user = scene.user(&["app"]).with_rings(Some(RING_BYTES));
    let summary = scene.record_during(user, || during = memory());
    assert!(summary.is_err(), "it waits: {summary:?}");
    assert!(during > RING_BYTES, "{during}");
    assert!(memory() < during / 2, "{during} and then {}", memory());
    testkit::let_end(child);
}

#[test]
fn programs_beyond_what_their_user_may_have_are_named_and_what_they_do_is_counted() {
    const PROGRAMS: usize = 6;
    const EVENTS: u64 = 40;
    let scene = Scene::new();
    // Of those that run already each takes this, and a bit for what is beside.
    let cpus = std::fs::read_to_string("/sys/devices/system/cpu/online").map(|list| cpus(&list));
    let ring_bytes = 256 << 10;
    let each = cpus.expect("a list") * ring_bytes;
    let bound = 2 * each + each / 2;
    let children: Vec<_> = (0..PROGRAMS).map(|_| scene.wait()).collect();
    let (stop, recording): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
    let user = scene.user(&["app"]).with_rings_per_user(Some(bound));
    let user = user.with_rings(Some(ring_bytes));
    let config = RecordConfig {
        stop: Arc::clone(&stop),
        recording: Arc::clone(&recording),
        begun: |config| config.recording.store(true, Ordering::Release),
        ..scene.config(user)
    };
    let thread = std::thread::spawn(move || record(&config, &Capabilities::default(), "test"));
    while !recording.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    children.into_iter().for_each(testkit::let_end);
    stop.store(true, Ordering::Release);
    let summary = thread.join().expect("no panic").expect("it records");
    let said = summary.user.refused;
    assert_eq!(said.len(), PROGRAMS - 2, "{said:?}");
    let sound = |line: &String| {
        line.contains("has no ring on some CPUs")
            && line.contains(&format!("of the {bound} of --rings-per-user"))
            && line.contains("repeat with a larger --rings-per-user")
    };
    assert!(said.iter().all(sound), "{said:?}");
    let processes = summary.user.processes.iter();
    let mut counts: Vec<_> = processes.map(|one| (one.events, one.lost())).collect();
    counts.sort_unstable();
    let expect = [[(0, EVENTS)].repeat(PROGRAMS - 2), [(EVENTS, 0)].repeat(2)].concat();
    assert_eq!(counts, expect);
}

/// So many CPUs are in a list such as `0-3,6`.
fn cpus(list: &str) -> u64 {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(last.parse::<u64>().ok()? - first.parse::<u64>().ok()? + 1)
    };
    list.trim_end().split(',').filter_map(range).sum()
}

#[test]
fn what_is_left_out_is_in_no_trace_and_in_no_list() {
    let scene = Scene::new();
    let check = |words: &[&str], out: &[&str], events: u64, names: &[&str]| {
        let out: Vec<_> = out.iter().map(|out| (*out).to_owned()).collect();
        let user = scene.user(words).without(&out).expect("patterns");
        let summary = scene.record(user.clone());
        let recorded = summary.map_or(0, |summary| summary.user.events());
        assert_eq!(recorded, events, "{words:?} without {out:?}");
        let child = scene.wait();
        let (listed, refused) = list(&user).expect("a folder");
        let found = listed.iter().flat_map(|process| &process.events);
        let found: Vec<_> = found.map(|event| event.full_name()).collect();
        assert_eq!(found, names, "{words:?} without {out:?}");
        assert_eq!(refused, Vec::<String>::new());
        testkit::let_end(child);
    };
    check(&["app"], &[], 40, &["app:tick", "app:noise"]);
    check(&["app:*"], &["app:noise"], 20, &["app:tick"]);
    check(&["app:*:14"], &["app:n*"], 20, &["app:tick"]);
    check(&["*"], &["app", "burst"], 0, &[]);
}
