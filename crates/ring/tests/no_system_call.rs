//! Check that an enabled event makes no system call: a filter kills the process that makes one.

use std::path::Path;
use std::process::Command;

use testkit::{Traced, build_traced};

/// After the filter is on, every system call but `exit_group` kills. A child of fork has one event
/// on each CPU before.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <rtscope/event.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void begin_on_each_cpu(void)
{
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (CPU_ISSET(cpu, &all) && sched_setaffinity(0, sizeof one, &one) == 0)
            RTSCOPE_EVENT(quiet, begins, i32("cpu", cpu));
    }
    sched_setaffinity(0, sizeof all, &all);
}
int main(int count, char **words)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = {4, code};
    const unsigned long events = strtoul(words[1], 0, 10);
    if (count > 2 && strcmp(words[2], "in-a-child") == 0) {
        const pid_t child = fork();
        int status;
        if (child)
            return waitpid(child, &status, 0) != child || status != 0;
        begin_on_each_cpu();
        count = 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter))
        return 3;
    for (unsigned long i = 0; i < events; i++) {
        RTSCOPE_EVENT(quiet, fixed, u64("i", i), u64("j", i));
        RTSCOPE_EVENT(quiet, text, text("s", "thirty-two bytes of text, or more"));
    }
    if (count > 2)
        syscall(SYS_getpid);
    syscall(SYS_exit_group, 0);
}
"#;

#[test]
fn no_event_makes_a_system_call_on_any_way_of_writing() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = build_traced(scratch, "quiet", Traced::c(PROGRAM));
    let run = |words: &[&str], variables: &[(&str, &str)]| {
        let processes = 1 + usize::from(words.contains(&"in-a-child"));
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let mut command = Command::new(&program);
        command.args(words).env("RTSCOPE_DIR", folder.path());
        command
            .env("RTSCOPE_EVENTS", "quiet")
            .envs(variables.iter().copied());
        let status = command.status().expect("it starts");
        let rings = std::fs::read_dir(folder.path())
            .expect("the folder")
            .count();
        assert_eq!(rings, processes, "they were traced");
        status.success()
    };
    // Full rings, padding, losses and sub-buffers given up are in here.
    assert!(run(&["200000"], &[]));
    assert!(run(&["200000"], &[("RTSCOPE_MODE", "overwrite")]));
    assert!(run(&["200000"], &[("RTSCOPE_RSEQ", "off")]));
    assert!(run(&["200000"], &[("RTSCOPE_CLOCK", "monotonic")]));
    assert!(run(&["200000", "in-a-child"], &[]));
    assert!(run(&["200000", "in-a-child"], &[("RTSCOPE_RSEQ", "off")]));
    assert!(
        !run(&["1", "and-one-call"], &[]),
        "the filter does not filter"
    );
}
