//! A recorder that is killed by SIGKILL, and another that comes after it: nothing is lost in
//! silence, and each has its own. Needs no privilege.

mod recorded;
mod told;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use recorded::{Running, Scene, compile_with_probe, run};
use told::{PROGRAM, Traced};

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// Of one CPU: filled in the tests.
const RING: &str = "32K";

/// A recorder of the scene, told to write events of `pattern` to `output`.
fn recorder(scene: &Scene, pattern: &str, output: &Path) -> Child {
    let mut rtscope = Command::new(RTSCOPE);
    rtscope
        .args(["record", "--user", pattern, "-o"])
        .arg(output);
    rtscope.env("RTSCOPE_DIR", scene.shared());
    rtscope.stdout(Stdio::piped()).stderr(Stdio::null());
    rtscope.spawn().expect("rtscope record")
}

/// Whether a recorder told processes what it wants.
fn is_announced(scene: &Scene) -> bool {
    let name = |path: PathBuf| path.file_name().map(|name| name.to_owned());
    let mut names = entries(scene.shared()).filter_map(name);
    names.any(|name| name.to_string_lossy().starts_with("session-"))
}

/// Waits until `is_so`, as long as the recorder lives.
fn wait_until(recorder: &mut Child, mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        assert_eq!(recorder.try_wait().expect("its state"), None, "it records");
        std::thread::yield_now();
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Where the trace `output` is while the recorder writes it.
fn staged(output: &Path, recorder: &Child) -> PathBuf {
    let name = output.file_name().expect("a name").to_string_lossy();
    output.with_file_name(format!(".{name}.partial-{}", recorder.id()))
}

/// More than a packet without events has, and less than a hundred events.
const EVENTS_BYTES: u64 = 1024;

/// Whether events are in the files of a trace.
fn holds_events(trace: &Path) -> bool {
    let mut files = entries(&trace.join("ust/pid")).flat_map(|process| entries(&process));
    files.any(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let holds = |facts: fs::Metadata| facts.len() > EVENTS_BYTES;
        name.starts_with("channel") && file.metadata().is_ok_and(holds)
    })
}

/// The numbers in a trace, in its order.
fn numbers(trace: &Path) -> Vec<u64> {
    let output = Command::new(RTSCOPE).arg("cat").arg(trace).output();
    let output = output.expect("rtscope cat");
    // 3: there are losses.
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 3)), "{code:?}: {trace:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |line: &str| {
        let (_, behind) = line.split_once("{ i = ")?;
        behind.split(' ').next()?.parse().ok()
    };
    text.lines().filter_map(number).collect()
}

/// How many events were lost, by what a verb says at its end.
fn lost(said: &str) -> u64 {
    let (_, behind) = said.rsplit_once(" events of ").expect("its last line");
    let (_, behind) = behind.split_once(", ").expect("losses");
    let (lost, _) = behind.split_once(" lost").expect("losses");
    lost.parse().expect("a number")
}

/// A recorder is killed, `alone` events are written without one, and another recorder comes. What
/// that has begins with it; all else is in the first one's trace, or is recovered. Gives how many
/// events were lost.
fn check(name: &str, alone: u64) -> u64 {
    let program = compile_with_probe(name, PROGRAM, &[]);
    let scene = Scene::new();
    let mut first = recorder(&scene, "robot", &scene.trace());
    wait_until(&mut first, || is_announced(&scene));
    let mut traced = Traced::start(&program, scene.shared(), RING);
    traced.write(100);
    let left = staged(&scene.trace(), &first);
    wait_until(&mut first, || holds_events(&left));
    // Of these, the recorder may have read all, some or none.
    traced.write(100);
    first.kill().expect("killed");
    first.wait().expect("reaped");
    traced.write(alone);

    let output = scene.trace().with_file_name("second");
    let second = recorder(&scene, "robot", &output);
    let writing = staged(&output, &second);
    let mut total = 200 + alone;
    // It comes to the program a while after it began: the rings have room for so few until then.
    while !holds_events(&writing) {
        std::thread::sleep(std::time::Duration::from_millis(100));
        total = traced.write(20);
    }
    traced.end();
    run(Command::new("kill").args(["-INT", &second.id().to_string()]));
    let ended = second.wait_with_output().expect("it ends");
    let of_second = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{of_second}");
    assert!(
        of_second.contains("recorders that were killed had not read"),
        "{of_second}"
    );
    let recovered = scene.trace().with_file_name("recovered");
    let mut recover = Command::new(RTSCOPE);
    recover.arg("recover").arg("-o").arg(&recovered);
    let (of_first, code) = self::said(&scene, &mut recover);
    assert_eq!(code, Some(0), "{of_first}");
    let left_behind: Vec<_> = entries(scene.shared()).collect();
    assert_eq!(left_behind, Vec::<PathBuf>::new());

    let (before, between, after) = (numbers(&left), numbers(&recovered), numbers(&output));
    assert!(
        after.iter().all(|number| *number >= 200 + alone),
        "{after:?}"
    );
    for numbers in [&before, &between, &after] {
        let rising = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(rising, "order is kept: {numbers:?}");
    }
    assert_eq!(lost(&of_second), 0, "{of_second}");
    let lost = lost(&of_first);
    let all: BTreeSet<u64> = [before, between, after].concat().into_iter().collect();
    assert_eq!(all.len() as u64 + lost, total, "{of_first}{of_second}");
    assert!(all.last().is_some_and(|last| *last == total - 1));
    lost
}

#[test]
fn what_a_killed_recorder_had_not_read_is_recovered_and_no_part_of_the_next_recording() {
    assert_eq!(check("left", 100), 0);
}

#[test]
fn what_was_lost_while_nobody_recorded_is_stated_by_what_is_recovered() {
    // 32 KiB hold fewer: a record of four bytes is 24 long.
    assert!(check("overrun", 10_000) > 0);
}

/// What `command` says in the folder of the scene's trace, and how it ended.
fn said(scene: &Scene, command: &mut Command) -> (String, Option<i32>) {
    let folder = scene.trace().with_file_name("");
    command.current_dir(folder);
    command.env("RTSCOPE_DIR", scene.shared());
    let output = command.output().expect("rtscope");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (text, output.status.code())
}

#[test]
fn what_a_killed_recorder_wrote_is_named_and_recovered_and_its_end_is_a_loss() {
    let program = compile_with_probe("unfinished", PROGRAM, &[]);
    let scene = Scene::new();
    let mut first = recorder(&scene, "robot", &scene.trace());
    wait_until(&mut first, || is_announced(&scene));
    let mut traced = Traced::start(&program, scene.shared(), RING);
    traced.write(100);
    let left = staged(&scene.trace(), &first);
    wait_until(&mut first, || holds_events(&left));
    let living = said(&scene, Command::new(RTSCOPE).arg("recover").arg(&left));
    assert_eq!(living.1, Some(1), "its recorder lives: {}", living.0);
    first.kill().expect("killed");
    first.wait().expect("reaped");

    let name = left.file_name().expect("a name").to_string_lossy();
    let (doctor, _) = said(&scene, Command::new(RTSCOPE).arg("doctor"));
    assert!(doctor.contains(&format!("recover ./{name}")), "{doctor}");
    let mut next = Command::new(RTSCOPE);
    next.args(["record", "--user", "robot", "--duration", "10ms", "-o"]);
    let (next, _) = said(&scene, next.arg("second"));
    assert!(next.contains(&*name), "{next}");
    traced.end();

    let before = numbers(&left);
    let (recovered, code) = said(&scene, Command::new(RTSCOPE).arg("recover"));
    assert_eq!(code, Some(0), "{recovered}");
    assert!(!left.exists());
    assert_eq!(numbers(&scene.trace()), before);
    assert!(!before.is_empty());
    let (cat, code) = said(&scene, Command::new(RTSCOPE).arg("cat").arg(scene.trace()));
    assert_eq!(code, Some(3), "{cat}");
    assert!(cat.contains("lost"), "{cat}");
}

/// As in a container, where each recorder is process 1: the shell that becomes the next recorder
/// gives what the killed one left its own number.
const OF_ITS_NUMBER: &str = r#"
mv ".trace.partial-$1" ".trace.partial-$$"
sed -i "s/partial-$1\$/partial-$$/" "$RTSCOPE_DIR"/session-*
exec "$2" record --user robot -o trace -- sh -c 'echo 5 | "$0"' "$3"
"#;

#[test]
fn a_recorder_of_a_killed_ones_number_names_it_and_records_beside_it() {
    let program = compile_with_probe("of_its_number", PROGRAM, &[]);
    let scene = Scene::new();
    let mut first = recorder(&scene, "robot", &scene.trace());
    wait_until(&mut first, || is_announced(&scene));
    let mut traced = Traced::start(&program, scene.shared(), RING);
    traced.write(100);
    let left = staged(&scene.trace(), &first);
    wait_until(&mut first, || holds_events(&left));
    first.kill().expect("killed");
    first.wait().expect("reaped");
    let before = numbers(&left);
    assert!(!before.is_empty());

    let mut shell = Command::new("sh");
    shell.args(["-c", OF_ITS_NUMBER, "sh", &first.id().to_string(), RTSCOPE]);
    shell.arg(&program);
    let (next, code) = said(&scene, &mut shell);
    assert_eq!(code, Some(0), "{next}");
    traced.end();
    let named = next
        .lines()
        .find_map(|line| line.split_once("rtscope recover "));
    let (_, left) = named.unwrap_or_else(|| panic!("it is named: {next}"));
    let mut recover = Command::new(RTSCOPE);
    recover.args(["recover", left, "-o", "first"]);
    let (recovered, code) = said(&scene, &mut recover);
    assert_eq!(code, Some(0), "{recovered}");
    assert_eq!(numbers(&scene.trace().with_file_name("first")), before);
    assert!(scene.trace().is_dir(), "{next}");
}

/// For each line that it reads, says whether its event is switched on.
const SWITCH: &str = r#"
#include <stdio.h>
#include <rtscope/event.h>
int main(void)
{
    int turn;
    while (scanf("%d", &turn) == 1) {
        RTSCOPE_EVENT(robot, step, i32("turn", turn));
        printf("%d\n", *(volatile unsigned char *)&__start_rtscope_switches->enabled);
        fflush(stdout);
    }
    return 0;
}
"#;

/// A program whose event a killed recorder left switched on.
fn left_on(scene: &Scene, name: &str) -> Traced {
    let program = compile_with_probe(name, SWITCH, &[]);
    let mut first = recorder(scene, "robot", &scene.trace());
    wait_until(&mut first, || is_announced(scene));
    let mut traced = Traced::start(&program, scene.shared(), RING);
    assert_eq!(traced.write(1), 1, "it is recorded");
    first.kill().expect("killed");
    first.wait().expect("reaped");
    assert_eq!(traced.write(2), 1, "nobody switched it off");
    traced
}

#[test]
fn what_a_killed_recorder_left_on_is_switched_off_by_the_next_that_does_not_want_it() {
    let scene = Scene::new();
    let mut traced = left_on(&scene, "left_on");
    let output = scene.trace().with_file_name("second");
    let mut second = Running(recorder(&scene, "other", &output));
    wait_until(&mut second.0, || traced.write(3) == 0);
    traced.end();
}

#[test]
fn what_a_killed_recorder_left_on_is_switched_off_by_doctor() {
    let _privileged = testkit::privileged();
    let scene = Scene::new();
    let mut traced = left_on(&scene, "left_on_for_doctor");
    let mut doctor = Command::new(RTSCOPE);
    doctor
        .args(["doctor", "--clean"])
        .current_dir(scene.shared());
    run(doctor.env("RTSCOPE_DIR", scene.shared()));
    assert_eq!(traced.write(3), 0);
    assert!(!is_announced(&scene));
    traced.end();
}

#[test]
fn who_was_killed_before_it_recorded_anything_leaves_nothing_and_that_is_said() {
    let scene = Scene::new();
    // The largest process id of Linux is 2^22.
    let left = scene.beside(".empty.partial-99999999");
    std::fs::create_dir_all(&left).expect("a folder");
    std::fs::write(left.join(".written-until"), 7_i64.to_le_bytes()).expect("marked");
    let (text, code) = said(&scene, Command::new(RTSCOPE).arg("recover").arg(&left));
    assert_eq!(code, Some(3), "{text}");
    assert!(
        text.contains("killed before it recorded anything"),
        "{text}"
    );
    assert!(!left.exists() && !scene.beside("empty").exists());
}
