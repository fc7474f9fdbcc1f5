//! Check that rings are as large as a recorder asks for, and take memory where events come alone.

mod traced;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use ring::{Announced, Directory, RingFile, Switch};
use traced::{build, events, files};

/// Writes so many events behind its input's end.
const WAITING: &str = r#"
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
        RTSCOPE_EVENT(app, tick, u64("i", i), u64("twice", 2 * i));
    return 0;
}
"#;

struct Scene {
    shared: tempfile::TempDir,
    directory: Directory,
    program: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
        let shared = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let owner = rustix::process::geteuid().as_raw();
        Scene {
            directory: Directory::open(shared.path(), owner).expect("a directory"),
            program: PROGRAM.get_or_init(|| build("sized", WAITING)).clone(),
            shared,
        }
    }

    fn announce(&self, lines: &[&str]) -> Announced {
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        self.directory.announce(&lines).expect("a session")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).env("RTSCOPE_DIR", self.shared.path());
        command
    }

    /// Runs the program to its end under a session of these lines; gives what it left.
    fn left(&self, events: &str, lines: &[&str], variables: &[(&str, &str)]) -> RingFile {
        let session = self.announce(lines);
        let mut command = self.command(&[events]);
        let status = command.envs(variables.iter().copied()).status();
        assert!(status.expect("it runs").success());
        self.directory.remove(&session).expect("removed");
        let file = files(self.shared.path()).remove(0);
        self.directory.remove(file.name()).expect("removed");
        file
    }

    /// Starts the program, which waits; gives its rings too.
    fn wait(&self, events: &str) -> (Child, RingFile) {
        let mut command = self.command(&[events, "wait"]);
        let child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let mut file = None;
        while file.is_none() {
            std::thread::yield_now();
            file = described(&self.directory);
        }
        (child, file.expect("its rings"))
    }
}

/// The last rings with an event.
fn described(directory: &Directory) -> Option<RingFile> {
    let mut file = whole_files(directory).pop()?;
    file.read_table().expect("a table");
    (!file.table().events.is_empty()).then_some(file)
}

fn whole_files(directory: &Directory) -> Vec<RingFile> {
    let names = directory.names().expect("names");
    let files = names.iter().map(|name| directory.rings(name));
    files.filter_map(|file| file.expect("rings")).collect()
}

fn lost(file: &RingFile) -> u64 {
    let rings = 0..file.layout().rings;
    let losses = rings.filter_map(|ring| file.control(ring).expect("a control"));
    losses.flat_map(|(_, losses)| losses).sum()
}

#[test]
fn a_program_that_starts_has_the_rings_that_recorders_ask_for() {
    let scene = Scene::new();
    let check = |lines: &[&str], variables: &[(&str, &str)], expect_kib: u64| {
        let file = scene.left("1", lines, variables);
        assert_eq!(
            file.layout().ring_bytes,
            expect_kib << 10,
            "{lines:?} {variables:?}"
        );
        assert_eq!(lost(&file), 0, "{lines:?} {variables:?}");
    };
    check(&["app", "!ring 1M"], &[], 1024);
    check(&["!ring-at-most 2097152", "app:*"], &[], 2048);
    check(&["!ring-at-most 8M", "!ring 64K", "app"], &[], 64);
    check(&["!ring 3M", "app:tick"], &[], 4096);
    // Of two recorders, the one that asks for more; a filter is given by its recorder later.
    check(&["!ring 512K", "!ring 1M", "app i > 5", "app"], &[], 1024);
    // The environment knows best, and rubbish is nothing.
    check(&["!ring 1M", "app"], &[("RTSCOPE_RING_SIZE", "128K")], 128);
    check(&["!ring much", "app"], &[], 256);
    check(&["!ring 1", "app"], &[], 32);
    // What one leaves out and another wants is wanted.
    let other = &["!ring 1M", "other:*", "app:*-app:tick"];
    check(other, &[("RTSCOPE_EVENTS", "app:t*")], 1024);
}

/// Has an event from the start, and gets another later.
const LATER: &str = r#"
#include <rtscope/event.h>
static const char text[] = "\016late\0one\0\004i\0";
static struct rtscope_late late = {0, text, sizeof text, RTSCOPE_ENTRY_EVENT, 0};
int main(void)
{
    uint64_t payload[RTSCOPE_PAYLOAD_BYTES_MAX / 8];
    RTSCOPE_EVENT(app, tick, u32("i", 0));
    rtscope_add(&late);
    RTSCOPE_EVENT(app, tick, u32("i", 1));
    for (payload[0] = 0; payload[0] < 20000 && late.state->enabled; payload[0]++)
        rtscope_write_late(&late, payload, sizeof payload[0]);
    return 0;
}
"#;

#[test]
fn a_program_whose_wanted_event_comes_later_has_the_rings_that_recorders_ask_for() {
    let scene = Scene::new();
    let program = build("later", LATER);
    let check = |lines: &[&str], expect_kib: u64, late: usize, ticks: usize| {
        let session = scene.announce(lines);
        let mut command = Command::new(&program);
        let status = command.env("RTSCOPE_DIR", scene.shared.path()).status();
        assert!(status.expect("it runs").success());
        scene.directory.remove(&session).expect("removed");
        let mut found = files(scene.shared.path());
        assert_eq!(found.len(), 1, "{lines:?}");
        let mut file = found.remove(0);
        scene.directory.remove(file.name()).expect("removed");
        assert_eq!(file.layout().ring_bytes, expect_kib << 10, "{lines:?}");
        let all = events(&mut file);
        let count = |name: &str| all.iter().filter(|event| event.0 == name).count();
        assert_eq!(
            (count("late:one"), count("app:tick")),
            (late, ticks),
            "{lines:?}"
        );
        assert_eq!(file.table().events.len(), 3, "{lines:?}");
    };
    check(&["late", "!ring 2M"], 2048, 20_000, 0);
    check(&["late", "!ring-at-most 1M"], 1024, 20_000, 0);
    check(&["*", "!ring 2M"], 2048, 20_000, 2);
}

#[test]
fn many_programs_that_start_before_a_recorder_sees_one_take_no_more_than_all_may() {
    const PROCESSES: u64 = 60;
    let scene = Scene::new();
    // Nobody is there to tell the next that others came before.
    let session = scene.announce(&["app", "!ring-at-most 8M", "!rings-in-all 16M"]);
    for _ in 0..PROCESSES {
        let status = scene.command(&["1"]).status().expect("it runs");
        assert!(status.success());
    }
    scene.directory.remove(&session).expect("removed");
    let sizes: Vec<u64> = whole_files(&scene.directory)
        .iter()
        .map(|file| file.layout().ring_bytes)
        .collect();
    assert_eq!(sizes.len() as u64, PROCESSES);
    assert_eq!(sizes.iter().max(), Some(&(1 << 20)), "{sizes:?}");
    assert_eq!(sizes.iter().min(), Some(&(64 << 10)), "{sizes:?}");
    let all: u64 = sizes.iter().sum();
    assert!(all <= (16 << 20) + PROCESSES * (64 << 10), "{sizes:?}");
}

#[test]
fn rings_of_many_names_take_nobody_elses_room() {
    let scene = Scene::new();
    let session = scene.announce(&["app", "!ring-at-most 1M", "!rings-in-all 16M"]);
    let ring_bytes = || {
        let mut child = scene.command(&["1"]).spawn().expect("it runs");
        let prefix = format!("rings-{}-", child.id());
        assert!(child.wait().expect("it ends").success());
        let mut found = files(scene.shared.path()).into_iter();
        let file = found.find(|file| file.name().starts_with(&prefix));
        file.expect("its rings").layout().ring_bytes
    };
    assert_eq!(ring_bytes(), 1 << 20);
    let first = scene
        .shared
        .path()
        .join(files(scene.shared.path())[0].name());
    for number in 0..200 {
        let other = scene.shared.path().join(format!("rings-1-{number:x}"));
        std::fs::hard_link(&first, other).expect("a link");
    }
    assert_eq!(ring_bytes(), 512 << 10, "a part of what is left");
    scene.directory.remove(&session).expect("removed");
}

#[test]
fn a_burst_of_200_000_events_finds_room_in_the_rings_of_a_recorded_program() {
    let scene = Scene::new();
    // Nobody reads meanwhile.
    let mut file = scene.left("200000", &["!ring-at-most 8388608", "app"], &[]);
    assert_eq!(lost(&file), 0);
    assert_eq!(events(&mut file).len(), 200_000);
}

#[test]
fn a_program_that_is_not_recorded_takes_no_memory_for_rings_until_it_is() {
    const FRONT_BYTES: u64 = 64 << 10;
    let scene = Scene::new();
    for lines in [&[][..], &["!ring 4M", "other"][..]] {
        let session = scene.announce(lines);
        let (child, mut file) = scene.wait("1000");
        assert!(!file.layout().has_size);
        assert!(file.memory_bytes().expect("a size") < FRONT_BYTES);
        file.size(2 << 20).expect("a size");
        assert!(file.layout().has_size);
        assert_eq!(file.layout().ring_bytes, 2 << 20);
        let memory = || file.memory_bytes().expect("a size");
        assert!(memory() < FRONT_BYTES, "{} bytes", memory());
        let event = &file.table().events[0];
        file.switch(event, Switch::Off).expect("switched");
        assert!(memory() < FRONT_BYTES, "{} bytes", memory());
        file.switch(event, Switch::On).expect("switched");
        assert!(memory() >= 2 << 20, "{} bytes", memory());
        assert_eq!(file.without_memory(), None);
        testkit::let_end(child);
        assert_eq!(lost(&file), 0);
        let mut left = files(scene.shared.path()).remove(0);
        assert_eq!(events(&mut left).len(), 1000);
        scene.directory.remove(left.name()).expect("removed");
        scene.directory.remove(&session).expect("removed");
    }
}

#[test]
fn events_that_a_rule_leaves_out_are_off_from_the_start() {
    let scene = Scene::new();
    let check = |lines: &[&str], expect: u64| {
        let session = scene.announce(lines);
        let status = scene.command(&["10"]).status();
        assert!(status.expect("it runs").success());
        scene.directory.remove(&session).expect("removed");
        let mut found = files(scene.shared.path());
        let count: usize = found.iter_mut().map(|file| events(file).len()).sum();
        assert_eq!(count as u64, expect, "{lines:?}");
        for file in found {
            scene.directory.remove(file.name()).expect("removed");
        }
    };
    check(&["app:*-app:tick"], 0);
    check(&["*-app"], 0);
    check(&["app:*:14-other:*-app:t?ck"], 0);
    check(&["app:*-app:tock-other"], 10);
    // What one recorder leaves out another may want.
    check(&["app:*-app:tick", "app:tick"], 10);
}

#[test]
fn who_has_no_room_for_the_rings_of_a_recorded_program_has_small_ones() {
    let scene = Scene::new();
    let check = |limit: &str, lines: &[&str], expect: &[u64]| {
        let session = scene.announce(lines);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{limit}; exec \"$0\" 1")]);
        shell
            .arg(&scene.program)
            .env("RTSCOPE_DIR", scene.shared.path());
        assert!(shell.status().expect("a shell").success());
        scene.directory.remove(&session).expect("removed");
        let found = files(scene.shared.path());
        let sizes: Vec<_> = found
            .iter()
            .map(|file| file.layout().ring_bytes >> 10)
            .collect();
        assert_eq!(sizes, expect, "{limit} {lines:?}");
        for file in found {
            scene.directory.remove(file.name()).expect("removed");
        }
    };
    let (default, asked) = (["app", "!ring-at-most 8M"], ["app", "!ring 8M"]);
    let cpus = u64::from(scene.left("1", &["app"], &[]).layout().rings);
    // In units of 512 or of 1024 bytes: both are between the two.
    let files = format!("ulimit -f {}", (4096 + 512 * cpus) * 2);
    let addresses = format!("ulimit -v {}", 12288 + 512 * cpus);
    check(&files, &default, &[256]);
    check(&addresses, &default, &[256]);
    // What somebody asked for is not made less behind their back.
    check(&files, &asked, &[]);
}

#[test]
fn rings_nobody_asked_for_are_small_where_there_is_little_room() {
    let scene = Scene::new();
    let facts = rustix::fs::statvfs(Path::new("/dev/shm")).expect("shared memory");
    let cpus = scene.left("1", &["app"], &[]).layout().rings;
    let most = facts.f_bavail * facts.f_frsize / 16 / u64::from(cpus);
    let file = scene.left("1", &["app", "!ring-at-most 4G"], &[]);
    assert!(file.layout().ring_bytes <= most.max(64 << 10), "{most}");
}
