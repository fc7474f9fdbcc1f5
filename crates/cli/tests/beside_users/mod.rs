//! A recording of root's beside other users, in mount and pid namespaces and a shared memory of its
//! own, which end with it.

#![allow(dead_code)] // each test file uses its part

use std::path::Path;
use std::process::Command;

use crate::recorded::{self, compile_with_probe, scratch};

/// Writes 1,000 events, at a pace that its rings hold. In the middle it becomes another user's
/// (`setuid UID`), or goes below another root (`chroot FOLDER`) or into another mount namespace
/// (`setns FILE`), where it is told so; with one word more the second half is a child's, as daemons
/// do.
const HONEST: &str = r#"
#define _GNU_SOURCE
#include <rtscope/event.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int change(char **words)
{
    if (strcmp(words[1], "setuid") == 0)
        return setuid((uid_t)atoi(words[2]));
    if (strcmp(words[1], "chroot") == 0)
        return chroot(words[2]) || chdir("/");
    return setns(open(words[2], O_RDONLY | O_CLOEXEC), CLONE_NEWNS);
}
int main(int count, char **words)
{
    for (int i = 0; i < 1000; i++) {
        if (i == 500 && count > 2 && change(words) != 0)
            return 1;
        if (i == 500 && count > 3) {
            int status = 1;
            const pid_t child = fork();
            if (child)
                return waitpid(child, &status, 0) != child || status != 0;
        }
        RTSCOPE_EVENT(honest, tick, i32("i", i));
        if (i % 20 == 0)
            usleep(1000);
    }
    return 0;
}
"#;

/// Begins to record, does what `$script` says as soon as the recorder says that it has begun, and
/// ends the recording. Everything is in mount and pid namespaces of its own, which end with it.
const FRAME: &str = r#"
set -eu
mount -t tmpfs tmpfs /dev/shm
chmod 1777 /dev/shm
as() { user=$1; shift; setpriv --reuid "$user" --regid "$user" --clear-groups "$@"; }
eval "$before"
"$rtscope" record --user 'honest:*' -o "$folder/trace" 2>"$folder/said" >"$folder/ended" &
recorder=$!
until grep -q '^recording' "$folder/said"; do
    kill -0 $recorder || { cat "$folder/said" >&2; exit 1; }
    sleep 0.02
done
eval "$script"
# Whoever was recorded is gone, and so are its rings when they are read.
kill -INT $recorder
wait $recorder || { cat "$folder/said" >&2; exit 1; }
cat "$folder/said" "$folder/ended"
"#;

/// What the recorder says of `script`, before which `before` was done.
pub fn recorded(name: &str, before: &str, script: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile_with_probe(name, HONEST, &[]);
    // Other users must reach it.
    let honest = folder.path().join("honest");
    std::fs::copy(program, &honest).expect("a copy");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("open to all");
    // What never comes is not awaited for ever.
    let mut unshare = Command::new("timeout");
    unshare.args(["120", "unshare"]);
    unshare.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    unshare.args(["sh", "-c", FRAME]).env_remove("RTSCOPE_DIR");
    unshare.env("rtscope", env!("CARGO_BIN_EXE_rtscope"));
    unshare.env("folder", folder.path()).env("honest", honest);
    unshare.env("before", before).env("script", script);
    let text = recorded::run(&mut unshare);
    (folder, text)
}

/// How many events of the honest program are in the trace, which babeltrace2 reads.
pub fn events(folder: &Path) -> usize {
    let mut reader = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let text = recorded::run(reader.arg("cat").arg(folder.join("trace")));
    let count = |text: &str| {
        text.lines()
            .filter(|line| line.contains(" honest:tick: "))
            .count()
    };
    if recorded::exists("babeltrace2") {
        let other = recorded::run(Command::new("babeltrace2").arg(folder.join("trace")));
        assert_eq!(count(&other), count(&text));
    }
    count(&text)
}

pub fn check(name: &str, before: &str, script: &str, expect: usize) -> String {
    let _root = testkit::privileged();
    let (folder, text) = recorded(name, before, script);
    assert_eq!(events(folder.path()), expect, "{text}");
    let _ = std::fs::remove_dir_all(scratch().join(name));
    text
}

/// All events of root's own process, whatever else is in the trace.
pub fn check_root_alone(name: &str, before: &str, script: &str) {
    let _root = testkit::privileged();
    let (folder, text) = recorded(name, before, script);
    assert!(events(folder.path()) >= 1000, "{text}");
    let whole =
        |line: &str| line.starts_with("honest (") && line.contains("): 1000 events, 0 lost");
    assert!(text.lines().any(whole), "{text}");
}
