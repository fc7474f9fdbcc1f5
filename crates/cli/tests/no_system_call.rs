//! Check that a traced thread makes no system call, as strace sees it. Needs no privilege;
//! root_no_system_call.rs asks the kernel.

mod recorded;

use std::collections::BTreeMap;
use std::path::Path;

use recorded::{Scene, exists, scratch};
use testkit::{Traced, build_traced};

/// What strace said of a run.
struct Watched {
    /// System calls of the thread with the markers, between them.
    between: Vec<String>,
    /// Calls of the whole process, by name, as `strace -c` counts them.
    counted: BTreeMap<String, u64>,
}

/// Runs the program under `strace -f -C`, which is `-c` with the calls themselves, while it is
/// recorded.
fn watched(program: &Path, words: &[&str]) -> Watched {
    let scene = Scene::new();
    let said = scene.beside("strace");
    let program = program.to_str().expect("UTF-8");
    let said_path = said.to_str().expect("UTF-8");
    let strace = ["strace", "-f", "-C", "-o", said_path, program];
    let events = words[0].parse::<usize>().expect("a number");
    scene.record(&["--user", "quiet"], &[&strace[..], words].concat());
    assert_eq!(scene.events().len(), events + 2, "it was traced");
    let text = std::fs::read_to_string(&said).expect("what strace said");
    Watched {
        between: between(&text),
        counted: counted(&text),
    }
}

/// `TID call(…) = …`, a line each.
fn between(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = |part: &str| lines.iter().position(|line| line.contains(part));
    let begin = at("write(-1, \"begin\", 5").expect("the marker at the begin");
    let end = at("write(-1, \"end\", 3").expect("the marker at the end");
    let tid = |line: &str| line.split(' ').next().map(str::to_owned);
    assert_eq!(tid(lines[begin]), tid(lines[end]));
    let own = lines[begin + 1..end].iter();
    let own = own.filter(|line| tid(line) == tid(lines[begin]));
    // The marker's own return, if another thread's call came between.
    own.filter(|line| !line.contains("<... write resumed>"))
        .map(|line| (*line).to_owned())
        .collect()
}

/// `% time  seconds  usecs/call  calls  [errors]  syscall`, a row each below a line of dashes.
fn counted(text: &str) -> BTreeMap<String, u64> {
    let rows = text.lines().skip_while(|line| !line.starts_with("------"));
    let rows = rows.filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((
            (*words.last()?).to_owned(),
            words.get(3)?.parse::<u64>().ok()?,
        ))
    });
    rows.collect()
}

#[test]
fn strace_sees_no_system_call_of_a_thread_between_its_first_event_and_its_last() {
    if !exists("strace") {
        testkit::skip("no_system_call", "strace is not installed");
        return;
    }
    let source = Traced::c(include_str!("quiet/main.c"));
    let program = build_traced(&scratch(), "quiet", source);
    let many = watched(&program, &["50000"]);
    assert_eq!(many.between, Vec::<String>::new());
    let few = watched(&program, &["1"]);
    assert_eq!(many.counted, few.counted, "50 000 events, and one");
    assert_eq!(many.counted.get("getppid"), None);

    let control = watched(&program, &["1", "call"]);
    let [call] = &control.between[..] else {
        panic!("one call was made: {:?}", control.between);
    };
    assert!(call.contains("getppid()"), "{call}");
    assert_eq!(control.counted.get("getppid"), Some(&1));
}
