//! In a user namespace whoever is root there is told in three parts what is not theirs, verb by
//! verb.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

/// What `rtscope WORDS` says there; none where no namespace can be made.
fn inside(words: &str) -> Option<Output> {
    let folder = tempfile::tempdir().expect("a folder");
    let can = Command::new("unshare").args(["-Ur", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-Ur", env!("CARGO_BIN_EXE_rtscope")]);
    command.args(words.split_whitespace()).stdin(Stdio::null());
    // Where any user may be real-time, root of a namespace may be, too.
    // SAFETY: a call of the system, which reads what it is given.
    unsafe { command.pre_exec(no_real_time) };
    let output = command.current_dir(folder.path()).output();
    Some(output.expect("unshare starts"))
}

fn no_real_time() -> std::io::Result<()> {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is read during the call.
    match unsafe { libc::setrlimit(libc::RLIMIT_RTPRIO, &raw const none) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[test]
fn root_of_a_user_namespace_is_told_in_three_parts_what_is_not_theirs() {
    let rows = [
        ("measure cyclic --samples 5", "rtscope measure cannot run"),
        (
            "measure cyclic --over 1ms --for 1s",
            "rtscope measure cannot run",
        ),
        ("measure hw --for 1s", "rtscope measure cannot run"),
        ("measure preempt --rounds 5", "rtscope measure cannot run"),
        ("measure deadline --for 1s", "rtscope measure cannot run"),
        (
            "measure eval --for 1s --load none",
            "rtscope measure cannot run",
        ),
        ("measure eval -- true", "rtscope measure cannot run"),
        ("shield --cpu 0 --apply", "rtscope shield cannot run"),
        (
            "shield --cpu 0 --apply -- true",
            "rtscope shield cannot run",
        ),
        ("shield --undo", "rtscope shield cannot run"),
        ("watch --over 1ms --for 1s", "rtscope watch cannot run"),
        ("watch wakeup --for 1s", "rtscope watch cannot run"),
        ("watch --over 1ms -- true", "rtscope watch cannot run"),
        ("demo hog", "rtscope demo hog cannot run"),
    ];
    for (words, what) in rows {
        let Some(output) = inside(words) else {
            return testkit::skip("a user namespace", "unshare -Ur is refused here");
        };
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {text}");
        let error = text.lines().find(|line| line.starts_with("error: "));
        assert!(
            error.is_some_and(|line| line.contains(what)),
            "{words}: {text}"
        );
        let of_namespace = |line: &str| line.starts_with("  found: uid 0 of a user namespace");
        assert!(text.lines().any(of_namespace), "{words}: {text}");
        let leave = "  fix:  run it with sudo outside of this user namespace, on the host";
        assert!(text.lines().any(|line| line == leave), "{words}: {text}");
    }
}

#[test]
fn what_needs_no_rights_runs_there() {
    for words in [
        "measure hw --for 100ms --no-events --prio 0",
        "shield",
        "watch list",
        "doctor",
    ] {
        let Some(output) = inside(words) else {
            return testkit::skip("a user namespace", "unshare -Ur is refused here");
        };
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words}: {text}");
    }
}
