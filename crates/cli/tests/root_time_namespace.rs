//! Programs and recorders in time namespaces, as restored containers have them, whose
//! CLOCK_MONOTONIC is another: events have the machine's time all the same.

mod recorded;

use std::process::Command;

use recorded::{Scene, compile_with_probe};

/// Writes some events that say whose turn it is.
const TURN: &str = r#"
#include <rtscope/event.h>
#include <stdlib.h>
int main(int count, char **words)
{
    for (int i = 0; i < 100; i++)
        RTSCOPE_EVENT(time, turn, i32("turn", count > 1 ? atoi(words[1]) : -1));
    return 0;
}
"#;

/// Records three programs, one after the other, the second in a time namespace; the recorder may be
/// in one of its own. Gives what is said, and whose the events are by their times.
fn recorded(around: &[&str], clock: &str, offset: &str) -> (String, Vec<String>) {
    let scene = Scene::new();
    let program = compile_with_probe("turn", TURN, &[]);
    let program = program.display();
    let script =
        format!("{program} 0; unshare --time --monotonic {offset} --fork {program} 1; {program} 2");
    let rtscope = env!("CARGO_BIN_EXE_rtscope");
    let words = [around, &["env", clock, rtscope, "record", "--user", "time"]].concat();
    let mut record = Command::new(words[0]);
    record.args(&words[1..]).arg("-o").arg(scene.trace());
    record.args(["--", "sh", "-c", &script]);
    record.env("RTSCOPE_DIR", scene.shared());
    let said = recorded::run(&mut record);
    let turn = |line: String| {
        let (_, turn) = line.split_once("turn = ").expect("a turn");
        turn.trim_end_matches(" }").to_owned()
    };
    (said, scene.events().into_iter().map(turn).collect())
}

#[test]
fn events_in_a_time_namespace_have_the_time_of_the_machine() {
    let _root = testkit::privileged();
    let expect: Vec<_> = (0..300).map(|event| (event / 100).to_string()).collect();
    let own = ["unshare", "--time", "--monotonic", "5000", "--fork"];
    for around in [&[][..], &own] {
        for clock in ["RTSCOPE_CLOCK=counter", "RTSCOPE_CLOCK=monotonic"] {
            for offset in ["100000", "-200"] {
                let (said, turns) = recorded(around, clock, offset);
                assert!(
                    !said.contains("malformed"),
                    "{around:?} {clock} {offset}: {said}"
                );
                assert_eq!(turns, expect, "{around:?} {clock} {offset}: {said}");
            }
        }
    }
}
