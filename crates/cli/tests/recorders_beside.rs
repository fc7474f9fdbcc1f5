//! Several recorders of the same programs at once: each has all that it wants, whatever becomes of
//! the others. Needs no privilege.

mod recorded;
mod told;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use recorded::{Running, Scene, compile_with_probe, run};
use told::Traced;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// As the told program, with two events for each number.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <rtscope/event.h>
int main(void)
{
    int more, written = 0;
    while (scanf("%d", &more) == 1) {
        for (; more > 0; more--) {
            RTSCOPE_EVENT(robot, step, i32("i", written), text("arm", "left"));
            RTSCOPE_EVENT(robot, stop, i32("i", written++));
        }
        printf("%d\n", written);
        fflush(stdout);
    }
    return 0;
}
"#;

/// A recorder of the scene, and where its trace goes.
struct Recorder {
    running: Running,
    output: PathBuf,
}

impl Recorder {
    /// Starts one that is told `words`; it records when this returns.
    fn start(scene: &Scene, name: &str, words: &[&str]) -> Recorder {
        let output = scene.beside(name);
        let mut rtscope = Command::new(RTSCOPE);
        rtscope.arg("record").args(words);
        if !words.contains(&"--flight") {
            rtscope.arg("-o").arg(&output);
        }
        rtscope.env("RTSCOPE_DIR", scene.shared());
        rtscope.stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Running(rtscope.spawn().expect("rtscope record"));
        let mut recorder = Recorder { running, output };
        let own = format!("session-{}-", recorder.running.0.id());
        while !sessions(scene).iter().any(|name| name.starts_with(&own)) {
            recorder.check_lives();
            std::thread::yield_now();
        }
        recorder
    }

    fn check_lives(&mut self) {
        if let Some(status) = self.running.0.try_wait().expect("its state") {
            let mut said = String::new();
            let from = self.running.0.stderr.as_mut().expect("its output");
            from.read_to_string(&mut said).expect("text");
            panic!("it records: {status}: {said}");
        }
    }

    fn signal(&self, signal: &str) {
        let id = self.running.0.id().to_string();
        run(Command::new("kill").args([signal, &id]));
    }

    /// Ends it; gives what it said.
    fn end(self) -> String {
        self.end_told().0
    }

    /// The same, and what it complained of.
    fn end_told(self) -> (String, String) {
        self.signal("-INT");
        let Recorder { mut running, .. } = self;
        let (mut said, mut told) = (String::new(), String::new());
        let from = running.0.stdout.as_mut().expect("its output");
        from.read_to_string(&mut said).expect("text");
        let from = running.0.stderr.as_mut().expect("its output");
        from.read_to_string(&mut told).expect("text");
        assert!(running.0.wait().expect("it ends").success(), "{said}{told}");
        (said, told)
    }
}

/// What recorders announced.
fn sessions(scene: &Scene) -> Vec<String> {
    let entries = fs::read_dir(scene.shared()).expect("a folder").flatten();
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let names = entries.map(name);
    names.filter(|name| name.starts_with("session-")).collect()
}

/// The numbers of the event `name` in a trace, in its order.
fn numbers(trace: &Path, name: &str) -> Vec<u64> {
    let output = Command::new(RTSCOPE).arg("cat").arg(trace).output();
    let text = output.expect("rtscope cat").stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    let event = format!(" robot:{name}: ");
    let of_event = text.lines().filter(|line| line.contains(&event));
    let number = |line: &str| {
        let (_, behind) = line.split_once("{ i = ")?;
        behind.split([' ', ',']).next()?.parse().ok()
    };
    of_event.filter_map(number).collect()
}

/// A program that runs, and waits for a number.
fn traced(scene: &Scene, name: &str) -> Traced {
    let program = compile_with_probe(name, PROGRAM, &[]);
    Traced::run(Command::new(program), scene.shared())
}

/// Writes nothing until a recorder, told `pattern`, has seen the program: it switches events on in
/// one go.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(200));
}

fn all(count: u64) -> Vec<u64> {
    (0..count).collect()
}

/// Four recorders of a program that was there before them, or that comes after.
fn check_four(name: &str, program_is_first: bool) {
    let scene = Scene::new();
    let begin = || traced(&scene, name);
    let before = program_is_first.then(begin);
    let whole = Recorder::start(&scene, "whole", &["--user", "robot"]);
    let odd = ["--user", "robot:step i % 2 == 1 && arm == \"left\""];
    let odd = Recorder::start(&scene, "odd", &odd);
    let without = ["--user", "robot", "--exclude", "robot:step"];
    let without = Recorder::start(&scene, "without", &without);
    let early = Recorder::start(&scene, "early", &["--user", "robot:stop,else"]);
    let mut program = before.unwrap_or_else(begin);
    settle();

    let mut fifth = Command::new(RTSCOPE);
    fifth.args(["record", "--user", "robot", "--duration", "10ms", "-o"]);
    fifth.arg(scene.beside("fifth"));
    let fifth = fifth.env("RTSCOPE_DIR", scene.shared()).output();
    let fifth = fifth.expect("rtscope record");
    let said = String::from_utf8_lossy(&fifth.stderr);
    assert_eq!(fifth.status.code(), Some(1), "{said}");
    assert!(
        said.contains("recorded already") && said.contains("4 can"),
        "{said}"
    );

    program.write(500);
    let early_trace = early.output.clone();
    let early = early.end();
    program.write(500);
    program.end();
    let traces = [&whole, &odd, &without].map(|recorder| recorder.output.clone());
    for said in [early, whole.end(), odd.end(), without.end()] {
        assert!(said.contains(" 0 lost"), "{said}");
    }
    assert_eq!(numbers(&early_trace, "stop"), all(500));
    assert_eq!(numbers(&early_trace, "step"), [0; 0]);
    let [whole, odd, without] = traces;
    assert_eq!(numbers(&whole, "step"), all(1000));
    assert_eq!(numbers(&whole, "stop"), all(1000));
    let odd_ones: Vec<u64> = (0..500).map(|half| half * 2 + 1).collect();
    assert_eq!(numbers(&odd, "step"), odd_ones);
    assert_eq!(numbers(&odd, "stop"), [0; 0]);
    assert_eq!(numbers(&without, "stop"), all(1000));
    assert_eq!(numbers(&without, "step"), [0; 0]);
    let left: Vec<_> = fs::read_dir(scene.shared()).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn four_recorders_have_each_all_that_they_want_of_a_program_that_comes() {
    check_four("comes", false);
}

#[test]
fn four_recorders_have_each_all_that_they_want_of_a_program_that_was_there() {
    check_four("was_there", true);
}

#[test]
fn a_recorder_that_is_killed_or_stands_still_takes_nothing_from_another() {
    const COUNT: u64 = 40_000;
    let scene = Scene::new();
    let whole = Recorder::start(&scene, "whole", &["--user", "robot"]);
    let killed = Recorder::start(&scene, "killed", &["--user", "robot"]);
    let still = Recorder::start(&scene, "still", &["--user", "robot", "--ring", "64K"]);
    let mut program = traced(&scene, "disturbed");
    settle();
    program.write(COUNT / 4);
    still.signal("-STOP");
    program.write(COUNT / 4);
    killed.signal("-KILL");
    program.write(COUNT / 2);
    // The dead one left its rings full, and events on.
    let next = Recorder::start(&scene, "next", &["--user", "robot:stop"]);
    settle();
    program.write(100);
    program.end();
    let trace = whole.output.clone();
    let said = whole.end();
    assert!(said.contains(" 0 lost"), "{said}");
    assert_eq!(numbers(&trace, "step"), all(COUNT + 100));
    assert_eq!(numbers(&trace, "stop"), all(COUNT + 100));
    let trace = next.output.clone();
    next.end();
    let newest = numbers(&trace, "stop");
    assert!(newest.ends_with(&(COUNT..COUNT + 100).collect::<Vec<_>>()));

    still.signal("-CONT");
    let trace = still.output.clone();
    let said = still.end();
    let lost = said.split_once(" events, ").and_then(|(_, behind)| {
        let (lost, _) = behind.split_once(" lost")?;
        lost.parse::<u64>().ok()
    });
    let lost = lost.unwrap_or_else(|| panic!("it says what it lost: {said}"));
    let kept = numbers(&trace, "step").len() + numbers(&trace, "stop").len();
    assert!(lost > 0, "{said}");
    assert_eq!(kept as u64 + lost, 2 * (COUNT + 100), "{said}");
}

#[test]
fn a_program_that_ended_stays_until_each_recorder_has_read_it() {
    let scene = Scene::new();
    let program = compile_with_probe("brief", PROGRAM, &[]);
    let quick = Recorder::start(&scene, "quick", &["--user", "robot"]);
    let slow = Recorder::start(&scene, "slow", &["--user", "robot:stop"]);
    slow.signal("-STOP");
    for _ in 0..5 {
        let mut brief = Traced::run(Command::new(&program), scene.shared());
        brief.write(100);
        brief.end();
    }
    let rings = || {
        let entries = fs::read_dir(scene.shared()).expect("a folder").flatten();
        let is_rings =
            |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("rings-");
        entries.filter(is_rings).count()
    };
    let trace = quick.output.clone();
    let said = quick.end();
    assert!(said.contains(" 0 lost"), "{said}");
    assert_eq!(numbers(&trace, "step").len(), 500);
    assert_eq!(rings(), 5);
    slow.signal("-CONT");
    let trace = slow.output.clone();
    let said = slow.end();
    assert!(said.contains(" 0 lost"), "{said}");
    let mut found = numbers(&trace, "stop");
    found.sort_unstable();
    let expect: Vec<u64> = (0..500).map(|place| place / 5).collect();
    assert_eq!(found, expect);
    assert_eq!(rings(), 0);
}

#[test]
fn events_printed_live_and_events_in_a_flight_recorder_are_beside_a_recording() {
    let scene = Scene::new();
    let whole = Recorder::start(&scene, "whole", &["--user", "robot"]);
    let flight = Recorder::start(&scene, "flight", &["--flight", "--user", "robot:stop"]);
    let mut live = Command::new(RTSCOPE);
    live.args(["cat", "--live", "--user", "robot:step"]);
    live.env("RTSCOPE_DIR", scene.shared());
    live.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut live: Child = live.spawn().expect("rtscope cat");
    while sessions(&scene).len() < 3 {
        std::thread::yield_now();
    }
    let mut program = traced(&scene, "looked_at");
    settle();
    program.write(300);
    // The snapshot is of the flight, and holds nothing of the others.
    let snapshot = scene.beside("snapshot");
    let mut look = Command::new(RTSCOPE);
    look.arg("snapshot").arg("-o").arg(&snapshot);
    run(look.env("RTSCOPE_DIR", scene.shared()));
    assert_eq!(numbers(&snapshot, "stop"), all(300));
    assert_eq!(numbers(&snapshot, "step"), [0; 0]);
    settle();
    run(Command::new("kill").args(["-INT", &live.id().to_string()]));
    let mut text = String::new();
    let from = live.stdout.as_mut().expect("its output");
    from.read_to_string(&mut text).expect("text");
    live.wait().expect("it ends");
    assert_eq!(text.matches(" robot:step: ").count(), 300);
    program.end();
    let trace = whole.output.clone();
    let said = whole.end();
    assert!(said.contains(" 0 lost"), "{said}");
    assert_eq!(numbers(&trace, "step"), all(300));
    assert_eq!(numbers(&trace, "stop"), all(300));
    flight.signal("-INT");
}

/// Keeps all sets of its own rings from recorders, and gives them numbers of recorders that live.
const HOSTILE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <rtscope/event.h>
int main(void)
{
    glob_t found;
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/rings-%d-*", getenv("RTSCOPE_DIR"), (int)getpid());
    if (glob(pattern, 0, 0, &found) || found.gl_pathc != 1)
        return 2;
    const int fd = open(found.gl_pathv[0], O_RDWR);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 4};
    if (fcntl(fd, F_OFD_SETLK, &lock))
        return 3;
    puts("0");
    fflush(stdout);
    while (getchar() != EOF)
        RTSCOPE_EVENT(robot, step, i32("i", 1));
    return 0;
}
"#;

#[test]
fn a_process_that_keeps_its_rings_from_recorders_is_named_and_harms_nobody() {
    let scene = Scene::new();
    let hostile = compile_with_probe("hostile", HOSTILE, &[]);
    let mut hostile = Traced::run(Command::new(hostile), scene.shared());
    assert_eq!(hostile.answer(), 0);
    let id = hostile.id();
    let recorders =
        ["one", "other"].map(|name| Recorder::start(&scene, name, &["--user", "robot"]));
    let mut honest = traced(&scene, "honest");
    settle();
    hostile.write_line("x");
    honest.write(1000);
    honest.end();
    let traces = recorders.each_ref().map(|recorder| recorder.output.clone());
    for recorder in recorders {
        let (said, told) = recorder.end_told();
        assert!(said.contains(" 0 lost"), "{said}");
        let all = said + &told;
        let named = format!("the rings rings-{id}-");
        assert!(all.contains(&named), "{all}");
        assert!(all.contains("which other recorders have"), "{all}");
    }
    for trace in traces {
        assert_eq!(numbers(&trace, "step"), all(1000));
        assert_eq!(numbers(&trace, "stop"), all(1000));
    }
    hostile.end();
}
