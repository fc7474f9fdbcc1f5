//! Sessions of applications: they outlive who started them, rotate without a loss, and what dies is
//! found and finished. Needs no privilege.

mod recorded;
mod session;
mod told;

use std::path::Path;
use std::process::Command;

use recorded::{compile_with_probe, run};
use session::{Night, numbers};
use told::{PROGRAM, Traced};

fn traced(night: &Night, name: &str) -> Traced {
    let program = compile_with_probe(name, PROGRAM, &[]);
    Traced::start(&program, night.scene.shared(), "1M")
}

fn folders(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn archives_hold_each_event_once_and_in_order_whoever_asks_for_them() {
    let night = Night::new();
    night.says("start", &["--user", "robot"]);
    let mut traced = traced(&night, "rotated");
    let mut written = 0;
    for round in 0..4 {
        written = traced.write(500);
        let said = night.says("rotate", &[]);
        assert!(said.contains("500 events, 0 lost"), "round {round}: {said}");
    }
    let said = night.says("rotate", &[]);
    assert!(said.contains("nothing was recorded"), "{said}");
    written = traced.write(7).max(written);
    let status = night.status();
    assert_eq!(status["state"], "recording", "{status}");
    assert_eq!(status["archives"].as_array().map(Vec::len), Some(4));
    assert_eq!(status["user"]["processes"], 1);
    let said = night.says("stop", &[]);
    assert!(said.contains("2007, 0 lost"), "{said}");
    let archives = folders(&night.output());
    assert_eq!(archives.len(), 5, "{archives:?}");
    let all: Vec<u64> = archives
        .iter()
        .flat_map(|name| numbers(&night.output().join(name)))
        .collect();
    assert_eq!(all, (0..written).collect::<Vec<_>>());
    for archive in &archives {
        let names = folders(&night.output().join(archive));
        assert_eq!(names, ["ust"], "{archive} is whole");
    }
    assert_eq!(
        folders(&night.runtime()),
        [".log"],
        "its name is free again"
    );
    for archive in &archives {
        night.check_babeltrace("archives_hold_each_event_once", archive);
    }
}

/// Events that came behind the last look, 20 ms before the end at most.
#[test]
fn who_stops_it_is_told_of_all_events_of_applications() {
    for round in 0..6 {
        let night = Night::new();
        night.says("start", &["--user", "robot"]);
        let mut traced = traced(&night, "counted");
        traced.write(300);
        night.says("rotate", &[]);
        traced.write(300);
        let said = night.says("stop", &[]);
        let expect = [
            "events:   600, 0 lost",
            "applications: 1 processes; 600 events, 0 lost",
        ];
        for part in expect {
            assert!(said.contains(part), "round {round}: no '{part}' in\n{said}");
        }
    }
}

#[test]
fn a_name_is_one_sessions_and_a_stopped_one_is_not_found() {
    let night = Night::new();
    night.says("start", &["--user", "robot"]);
    let error = night.fails("start", &["--user", "robot"]);
    assert!(error.contains("is running"), "{error}");
    assert!(error.contains("rtscope record stop night"), "{error}");
    // In flight or not is a difference that the session knows itself.
    let error = night.fails("snapshot", &[]);
    assert!(error.contains("rtscope record rotate night"), "{error}");
    let error = night.fails("dump", &[]);
    assert!(error.contains("--events"), "{error}");
    night.says("stop", &[]);
    for verb in ["stop", "status", "rotate"] {
        let error = night.fails(verb, &[]);
        assert!(error.contains("no session called night"), "{error}");
    }
    for (name, shown) in [("a/b", "'a/b'"), ("../x", "'../x'"), ("\x1b[2J", "\\u{1b}")] {
        let mut start = night.command(&["start"]);
        let output = start.arg(name).output().expect("rtscope");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("not a name for a session") && said.contains(shown),
            "{said}"
        );
    }
}

#[test]
fn what_a_killed_session_wrote_is_finished_by_who_stops_it() {
    let night = Night::new();
    night.says("start", &["--user", "robot"]);
    let mut traced = traced(&night, "killed_session");
    traced.write(300);
    night.says("rotate", &[]);
    traced.write(300);
    let status = night.await_status(|status| status["events"] == 600);
    // Up to here it is on the disk.
    night.await_written();
    let pid = status["pid"].as_u64().expect("a process").to_string();
    run(Command::new("kill").args(["-9", &pid]));
    night.await_death();
    let (code, said) = night.ends("status", &[]);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("has died") && said.contains("record stop night"),
        "{said}"
    );
    let error = night.fails("start", &["--user", "robot"]);
    assert!(error.contains("died and was not cleared away"), "{error}");
    let error = night.fails("rotate", &[]);
    assert!(error.contains("has died"), "{error}");
    let doctor = night.rtscope(&["doctor"]);
    assert!(doctor.contains("session night in"), "{doctor}");
    let (code, said) = night.ends("stop", &[]);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("what comes behind the end of each stream was lost"),
        "{said}"
    );
    let archives = folders(&night.output());
    assert_eq!(archives.len(), 2, "{archives:?}");
    let all: Vec<u64> = archives
        .iter()
        .flat_map(|name| numbers(&night.output().join(name)))
        .collect();
    assert_eq!(all, (0..600).collect::<Vec<_>>());
    let info = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .arg("info")
        .arg(night.output().join(&archives[1]))
        .output()
        .expect("rtscope info");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(
        info.contains("lost") || info.contains("unfinished"),
        "the hole is stated: {info}"
    );
    night.says("start", &["--user", "robot"]);
    night.says("stop", &[]);
}

#[test]
fn a_snapshot_of_a_flight_holds_the_newest_and_nothing_from_before_a_clear() {
    let night = Night::new();
    night.says("start", &["--user", "robot", "--flight"]);
    let mut traced = traced(&night, "in_flight");
    traced.write(100);
    night.says("snapshot", &[]);
    night.says("clear", &[]);
    traced.write(5);
    let said = night.says("snapshot", &[]);
    assert!(said.contains("5 events"), "{said}");
    let error = night.fails("rotate", &[]);
    assert!(error.contains("rtscope record snapshot night"), "{error}");
    night.says("stop", &[]);
    let snapshots = folders(&night.output());
    assert_eq!(snapshots.len(), 2, "{snapshots:?}");
    let of = |place: usize| numbers(&night.output().join(&snapshots[place]));
    assert_eq!(of(0), (0..100).collect::<Vec<_>>());
    assert_eq!(of(1), (100..105).collect::<Vec<_>>());
}

#[test]
fn rotating_and_stopping_at_the_same_time_loses_nothing() {
    let night = Night::new();
    night.says("start", &["--user", "robot", "--keep", "1000"]);
    let mut traced = traced(&night, "raced");
    let written = traced.write(1000);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Whoever comes late is told so; nobody waits for ever.
            scope.spawn(|| {
                night
                    .command(&["rotate", "night"])
                    .output()
                    .expect("rtscope")
            });
        }
        scope.spawn(|| night.command(&["stop", "night"]).output().expect("rtscope"));
    });
    let all: Vec<u64> = folders(&night.output())
        .iter()
        .flat_map(|name| numbers(&night.output().join(name)))
        .collect();
    assert_eq!(all, (0..written).collect::<Vec<_>>());
    assert_eq!(folders(&night.runtime()), [".log"]);
}

#[test]
fn settings_of_a_file_are_checked_before_anything_begins() {
    let night = Night::new();
    let file = night.scene.beside("night.toml");
    let path = file.to_str().expect("UTF-8");
    std::fs::write(&file, "user = ['robot']\nkeep = '2'\n").expect("written");
    let said = night.says("start", &["--config", path, "--check-config"]);
    assert!(said.contains("make sense"), "{said}");
    assert!(folders(&night.runtime()).is_empty(), "nothing has begun");
    std::fs::write(&file, "user = ['robot']\nkeeep = '2'\n").expect("written");
    let error = night.fails("start", &["--config", path]);
    assert!(
        error.contains("line 2, column 1") && error.contains("keeep"),
        "{error}"
    );
    std::fs::write(&file, "user = ['robot']\nkeep = '2'\n").expect("written");
    night.says("start", &["--config", path]);
    let mut traced = traced(&night, "configured");
    for _ in 0..4 {
        traced.write(10);
        night.says("rotate", &[]);
    }
    let status = night.status();
    assert_eq!(status["removed"], 2, "{status}");
    night.says("stop", &[]);
    assert_eq!(folders(&night.output()).len(), 2);
}

#[test]
fn a_session_says_that_its_folder_was_removed() {
    let night = Night::new();
    night.says("start", &["--user", "robot"]);
    std::fs::remove_dir_all(night.output()).expect("removed");
    let status = night.await_status(|status| !status["error"].is_null());
    let what = status["error"]["what"].as_str().expect("a text");
    assert!(what.contains("was removed"), "{what}");
    let list = run(&mut night.command(&["list"]));
    assert!(list.contains("was removed"), "{list}");
    night.says("stop", &[]);
}

#[test]
fn a_file_in_the_place_of_the_archives_is_an_error_in_three_parts() {
    let night = Night::new();
    std::fs::write(night.output(), "a file").expect("written");
    let said = night.fails("start", &["--user", "robot"]);
    assert!(said.contains("archives"), "{said}");
    let left = std::fs::read(night.output()).expect("a file");
    assert_eq!(left, b"a file");
}
