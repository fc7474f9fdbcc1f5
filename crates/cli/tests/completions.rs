//! What the shells offer: names of reports, tasks and events, as a person who types sees them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

fn generated(shell: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("completions.{shell}"));
    let output = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args(["--generate", shell])
        .output()
        .expect("rtscope starts");
    assert!(output.status.success(), "{output:?}");
    std::fs::write(&path, output.stdout).expect("room");
    path
}

/// What bash offers for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    let script = "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                  _rtscope_named rtscope \"${@: -1}\" \"${@: -2:1}\"; \
                  printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", script])
        .arg(generated("bash"))
        .args(words)
        .output()
        .expect("bash starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[test]
fn reports_are_offered_by_name_also_behind_a_comma() {
    assert_eq!(offered(&["rtscope", "report", "cput"]), ["cputop"]);
    let behind = offered(&["rtscope", "report", "cputop,schedt"]);
    assert_eq!(behind, ["cputop,schedtop"]);
    assert!(offered(&["rtscope", "report", "--ta"]).contains(&"--task".to_owned()));
}

#[test]
fn tasks_that_run_are_offered_with_their_blanks_quoted() {
    let (end, wait) = mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("rts tab 'x'".to_owned());
    let thread = thread.spawn(move || wait.recv()).expect("a thread");
    let quoted = "rts\\ tab\\ \\'x\\'";
    assert_eq!(offered(&["rtscope", "watch", "--task", "rts ta"]), [quoted]);
    assert_eq!(
        offered(&["rtscope", "watch", "--task", "=", "rts ta"]),
        [quoted]
    );
    let times = ["rtscope", "measure", "deadline", "--task", "rts ta"];
    assert_eq!(offered(&times), [""; 0]);
    drop(end);
    thread.join().expect("it ends").ok();
}

#[test]
fn sets_and_events_of_this_kernel_are_offered() {
    assert_eq!(
        offered(&["rtscope", "record", "--events", "softirq"])[0],
        "softirq"
    );
    if std::fs::read_to_string("/sys/kernel/tracing/available_events").is_err() {
        testkit::skip("completions of events", "tracefs cannot be read");
        return;
    }
    let events = offered(&["rtscope", "watch", "--events", "sched_swi"]);
    assert_eq!(events, ["sched_switch"]);
}

/// Other shells only read theirs here, and say whether it is one.
#[test]
fn other_shells_take_their_texts_with_the_same_names() {
    for (shell, tasks) in [("zsh", ":_rtscope_tasks"), ("fish", "(__rtscope_tasks)")] {
        let path = generated(shell);
        let text = std::fs::read_to_string(&path).expect("written");
        let watch = text.lines().find(|line| line.contains("These tasks"));
        assert!(watch.is_some_and(|line| line.contains(tasks)), "{watch:?}");
        let times = text
            .lines()
            .find(|line| line.contains("A task with these times"));
        assert!(
            times.is_some_and(|line| !line.contains("_rtscope_tasks")),
            "{times:?}"
        );
        assert!(text.contains("cputop schedtop") && text.contains("default sched irq"));
        let read = Command::new(shell)
            .arg("-n")
            .arg(&path)
            .stderr(Stdio::piped())
            .output();
        match read {
            Ok(read) => assert!(read.status.success(), "{shell}: {read:?}"),
            Err(_) => testkit::skip("completions", &format!("install {shell}")),
        }
    }
}
