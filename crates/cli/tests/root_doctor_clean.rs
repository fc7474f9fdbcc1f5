//! `doctor --clean` leaves a living recorder what it still reads. Needs root: it cleans tracefs
//! too.

mod recorded;

use std::process::{Command, Stdio};

use recorded::{Running, Scene, compile_with_probe, run};

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// Writes one event, says so and waits for its input's end.
const PROGRAM: &str = r#"
#include <rtscope/event.h>
#include <unistd.h>
int main(void)
{
    char byte;
    RTSCOPE_EVENT(robot, step, i32("i", 1));
    if (write(1, "x", 1) != 1)
        return 1;
    return read(0, &byte, 1) < 0;
}
"#;

/// What `doctor --clean` says of what was left.
fn clean(scene: &Scene) -> String {
    let mut doctor = Command::new(RTSCOPE);
    doctor.args(["doctor", "--clean"]);
    doctor.current_dir(scene.trace().parent().expect("a folder"));
    run(doctor.env("RTSCOPE_DIR", scene.shared()))
}

fn files(scene: &Scene, prefix: &str) -> usize {
    let entries = std::fs::read_dir(scene.shared()).expect("the shared folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with(prefix))
        .count()
}

#[test]
fn rings_of_the_dead_stay_while_a_recorder_lives_and_go_when_it_has_ended() {
    let _privileged = testkit::privileged();
    let program = compile_with_probe("dead_in_flight", PROGRAM, &[]);
    let scene = Scene::new();
    let mut flight = Command::new(RTSCOPE);
    flight.args(["record", "--flight", "--user", "robot"]);
    flight.env("RTSCOPE_DIR", scene.shared());
    flight.stderr(Stdio::null());
    let mut flight = Running(flight.spawn().expect("rtscope record"));
    while files(&scene, "session-") == 0 {
        assert_eq!(flight.0.try_wait().expect("its state"), None, "it records");
        std::thread::yield_now();
    }
    let mut dead = Command::new(program);
    dead.env("RTSCOPE_DIR", scene.shared());
    dead.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut dead = Running(dead.spawn().expect("the program"));
    let said = dead.0.stdout.as_mut().expect("its output");
    std::io::Read::read_exact(said, &mut [0]).expect("it says so");
    dead.0.kill().expect("killed");
    dead.0.wait().expect("reaped");
    assert_eq!(files(&scene, "rings-"), 1);

    let told = clean(&scene);
    assert_eq!(files(&scene, "rings-"), 1, "{told}");
    let (_, in_use) = told.split_once("living recorder").expect("it says so");
    assert!(in_use.contains("/rings-"), "{told}");

    run(Command::new("kill").args(["-INT", &flight.0.id().to_string()]));
    assert!(flight.0.wait().expect("it ends").success());
    assert_eq!(files(&scene, "rings-"), 1, "it is for who recovers");
    let told = clean(&scene);
    assert_eq!(files(&scene, ""), 0, "{told}");
    assert!(told.contains("removed what killed runs left\n"), "{told}");
    assert!(!told.contains("living recorder"), "{told}");
}
