//! Check that a program which forbids itself system calls ends as it would without events.

mod traced;

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Traced, build_traced};
use traced::{build, files};

/// Allows itself what a program needs that only writes, and is killed by any other system call; the
/// C library writes its output when all destructors are through.
const CONFINED: &str = r#"
#define _GNU_SOURCE
#ifdef PROBE
#include <rtscope/event.h>
#else
#define RTSCOPE_EVENT(...)
#define u64(...)
#endif
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), \
                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
int main(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write), ALLOW(SYS_brk), ALLOW(SYS_getrandom), ALLOW(SYS_newfstatat),
        ALLOW(SYS_fstat), ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    const struct sock_fprog filter = {sizeof code / sizeof *code, code};
    /* Takes memory while that can be had. */
    free(malloc(100));
    RTSCOPE_EVENT(app, before, u64("i", 0));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter))
        return 2;
    for (unsigned i = 0; i < 100; i++)
        RTSCOPE_EVENT(app, behind, u64("i", i));
    printf("done");
    return 0;
}
"#;

/// A program with the probe in it, and its shared libraries beside it.
fn shared(folder: &Path, program: &str, flags: &str) -> PathBuf {
    std::fs::write(folder.join("confined.c"), CONFINED).expect("a file");
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    let script = "make -s -C \"$0\" OUT=\"$1\" \"$1/librtscope-functions.so\" && cd \"$1\" && \
        cc -O2 -I\"$0/include\" -o \"$2\" confined.c $3";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(probe).arg(folder);
    let status = shell.args([program, flags]).status();
    assert!(status.expect("a shell").success(), "{program}");
    folder.join(program)
}

/// Runs it with and without a recording; gives what is left in the folder of rings then.
fn ends_as_it_would(program: &Path, variables: &[(&str, &str)], left: usize) {
    for events in ["app", "none"] {
        let rings = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let mut command = Command::new(program);
        command.env("RTSCOPE_EVENTS", events);
        command.envs(variables.iter().copied());
        let done = command.env("RTSCOPE_DIR", rings.path()).output();
        let done = done.expect("it runs");
        let said = String::from_utf8_lossy(&done.stdout);
        assert_eq!(said, "done", "{program:?}, {events}: {}", done.status);
        assert!(done.status.success(), "{program:?}, {events}");
        assert_eq!(files(rings.path()).len(), left, "{program:?}, {events}");
    }
}

#[test]
fn a_program_that_may_have_forbidden_itself_system_calls_is_not_ended_by_one_at_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = shared(folder.path(), "plain", "");
    ends_as_it_would(&plain, &[], 0);
    let inside = |name: &str, flags: &[&str]| {
        let flags: Vec<&str> = [&["-O2", "-std=gnu11", "-DPROBE"], flags].concat();
        let program = Traced {
            compiler: "cc",
            flags: &flags,
            source: CONFINED,
        };
        build_traced(Path::new(env!("CARGO_TARGET_TMPDIR")), name, program)
    };
    // What it leaves is for the next.
    ends_as_it_would(&inside("confined", &[]), &[], 1);
    ends_as_it_would(&inside("confined-static", &["-static"]), &[], 1);
    let flags = "-DPROBE -L. -lrtscope-probe -Wl,-rpath,.";
    let beside = shared(folder.path(), "beside", flags);
    let libraries = folder.path().to_str().expect("a text");
    ends_as_it_would(&beside, &[("LD_LIBRARY_PATH", libraries)], 1);
    let preloaded = folder.path().join("librtscope-functions.so");
    let preloaded = preloaded.to_str().expect("a text");
    ends_as_it_would(&plain, &[("LD_PRELOAD", preloaded)], 1);
}

#[test]
fn what_such_a_program_leaves_goes_with_the_next_that_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = "-DPROBE -L. -lrtscope-probe -Wl,-rpath,.";
    let confined = shared(folder.path(), "confined", flags);
    let other = build(
        "next",
        "#include <rtscope/event.h>\nint main(void) { RTSCOPE_EVENT(app, one); return 0; }",
    );
    let rings = tempfile::tempdir_in("/dev/shm").expect("a folder");
    for (program, left) in [(&confined, 1), (&confined, 1), (&other, 0)] {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", folder.path());
        let done = command.env("RTSCOPE_DIR", rings.path()).output();
        assert!(done.expect("it runs").status.success());
        assert_eq!(files(rings.path()).len(), left);
    }
}

#[test]
fn a_library_that_is_there_before_the_program_leaves_no_file_behind_it() {
    let folder = tempfile::tempdir().expect("a folder");
    shared(folder.path(), "unused", "");
    let rings = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let mut command = Command::new("true");
    command.env("LD_PRELOAD", folder.path().join("librtscope-functions.so"));
    let status = command.env("RTSCOPE_DIR", rings.path()).status();
    assert!(status.expect("it runs").success());
    assert_eq!(files(rings.path()).len(), 0);
}
