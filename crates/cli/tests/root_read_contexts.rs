//! Contexts of the kernel's events that ftrace does not note: of a program that changes what it is,
//! each event says what the program itself was told at that point. Needs root.

mod recorded;
mod session;

use std::path::{Path, PathBuf};
use std::process::Command;

use recorded::run;
use session::Night;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// What is compared, in the order in which the program prints it.
const COMPARED: [&str; 18] = [
    "procname", "prio", "nice", "ppid", "vpid", "vtid", "vppid", "uid", "euid", "suid", "gid",
    "vuid", "veuid", "uts_ns", "pid_ns", "user_ns", "net_ns", "hostname",
];

/// As process 1 of a PID namespace, changes one thing after the other, and prints what it is then.
/// What a user of the first namespace sees, only the program knows: it keeps count.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int parent, prio = 20, uid, suid;

static unsigned long space(const char *name)
{
    char path[64];
    struct stat stat_of;
    snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
    return stat(path, &stat_of) ? 0 : stat_of.st_ino;
}

static void told(void)
{
    char name[16], host[65] = "";
    struct timespec time = {0, 1000000};
    prctl(PR_GET_NAME, name);
    gethostname(host, sizeof(host));
    printf("%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%lu,%lu,%lu,%lu,%s\n", name, prio,
           getpriority(PRIO_PROCESS, 0), parent, getpid(), gettid(), getppid(), uid, uid, suid, 0,
           getuid(), geteuid(), space("uts"), space("pid"), space("user"), space("net"), host);
    fflush(stdout);
    for (int i = 0; i < 5; i++)
        nanosleep(&time, 0);
}

static void must(int failed, const char *what)
{
    if (failed) {
        perror(what);
        exit(1);
    }
}

static void child(void)
{
    struct sched_param rt = {.sched_priority = 50};
    prctl(PR_SET_NAME, "step");
    told();
    prctl(PR_SET_NAME, "other");
    told();
    must(setpriority(PRIO_PROCESS, 0, 5), "setpriority");
    prio = 25;
    told();
    must(sched_setscheduler(0, SCHED_FIFO, &rt), "sched_setscheduler");
    prio = -51;
    told();
    must(unshare(CLONE_NEWUTS), "unshare uts");
    told();
    must(sethostname("elsewhere", 9), "sethostname");
    told();
    must(unshare(CLONE_NEWNET), "unshare net");
    told();
    suid = 4711;
    must(setresuid(-1, -1, suid), "setresuid");
    told();
    must(unshare(CLONE_NEWUSER), "unshare user");
    told();
    int map = open("/proc/self/uid_map", O_WRONLY);
    must(map < 0 || write(map, "7 0 1", 5) != 5, "uid_map");
    told();
}

int main(void)
{
    parent = getpid();
    must(unshare(CLONE_NEWPID), "unshare pid");
    int pid = fork();
    if (!pid) {
        child();
        return 0;
    }
    int status;
    waitpid(pid, &status, 0);
    return status;
}
"#;

fn program() -> PathBuf {
    recorded::compile("cc", "changes", PROGRAM, &[])
}

/// The value behind `name = ` in a line.
fn value<'l>(line: &'l str, name: &str) -> &'l str {
    let found = line.split_once(&format!(" {name} = "));
    let value = found.and_then(|(_, rest)| rest.split([',', ' ']).next());
    let value = value.unwrap_or_else(|| panic!("no {name}: {line}"));
    value.trim_matches('"')
}

fn lines(traces: &[PathBuf], filter: &str) -> Vec<String> {
    let mut cat = Command::new(RTSCOPE);
    let text = run(cat.arg("cat").args(traces).args(["--filter", filter]));
    text.lines().map(str::to_owned).collect()
}

/// What those events of the program say that are called so, one behind the other, each state once.
fn seen(traces: &[PathBuf], name: &str) -> Vec<String> {
    // As it ends it leaves its namespaces.
    let of_child =
        "vpid == 1 && vppid == 0 && uts_ns != 0 && (procname == \"step\" || procname == \"other\")";
    let mut states: Vec<String> = Vec::new();
    for line in lines(traces, &format!("$name == \"{name}\" && {of_child}")) {
        let state = COMPARED.map(|name| value(&line, name)).join(",");
        if states.last() != Some(&state) {
            states.push(state);
        }
    }
    states
}

fn check(traces: &[PathBuf], printed: &str) {
    let told: Vec<&str> = printed.lines().collect();
    assert_eq!(told.len(), 10, "{printed}");
    assert_eq!(seen(traces, "*"), told);
    // Nobody's contexts are unknown, but of the first process, where its machine hides that.
    let unknown = lines(traces, "ppid == -1 && pid != 1");
    assert!(unknown.is_empty(), "{unknown:#?}");
}

fn asked() -> [String; 4] {
    let events = "sched_switch,sched_waking,timer,irq".to_owned();
    [
        "--events".to_owned(),
        events,
        "--context".to_owned(),
        format!("pid,tid,preemptible,{}", COMPARED.join(",")),
    ]
}

fn record(more: &[&str], trace: &Path) -> String {
    let mut record = Command::new(RTSCOPE);
    record.arg("record").args(asked()).args(more);
    let said = run(record.arg("-o").arg(trace).arg("--").arg(program()));
    // Its own lines have no comma but those of sentences.
    let is_told = |line: &&str| line.matches(',').count() == COMPARED.len() - 1;
    let told: Vec<&str> = said.lines().filter(is_told).collect();
    told.join("\n")
}

#[test]
fn each_event_has_what_its_task_was_at_that_point() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let printed = record(&[], &trace);
    check(std::slice::from_ref(&trace), &printed);

    let mut babeltrace = Command::new("babeltrace2");
    let theirs = run(babeltrace.arg(trace.join("kernel")));
    let ours = lines(std::slice::from_ref(&trace), "procname == \"other\"");
    let theirs = theirs
        .lines()
        .filter(|line| line.contains(" procname = \"other\""));
    assert_eq!(theirs.count(), ours.len());
}

#[test]
fn so_have_system_calls_with_their_contents() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let printed = record(&["--events", "syscall", "--buffer", "16M"], &trace);
    let traces = [trace];
    let calls = "syscall_*";
    let read = lines(&traces, &format!("$name == \"{calls}\" && error == \"*\""));
    if read.is_empty() {
        return testkit::skip("contexts of calls", "no contents of system calls here");
    }
    let told: Vec<&str> = printed.lines().collect();
    assert_eq!(seen(&traces, calls), told);
    check(&traces, &printed);
    // It knows its process and its thread, and that it may be interrupted.
    let own = "procname == \"other\" && $name == \"syscall_entry_setresuid\"";
    let of_itself = lines(&traces, own);
    assert_eq!(of_itself.len(), 1, "{of_itself:?}");
    let is_known = value(&of_itself[0], "pid") == value(&of_itself[0], "tid");
    assert!(
        is_known && value(&of_itself[0], "preemptible") == "1",
        "{of_itself:?}"
    );
}

#[test]
fn so_it_has_when_its_pages_are_converted_later() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let (raw, trace) = (folder.path().join("raw"), folder.path().join("trace"));
    let printed = record(&["--raw"], &raw);
    let mut convert = Command::new(RTSCOPE);
    convert.arg("convert").arg(&raw).args(["--to", "ctf", "-o"]);
    run(convert.arg(&trace));
    check(&[trace], &printed);
}

#[test]
fn so_it_has_in_the_archives_of_a_session() {
    let _alone = testkit::privileged();
    let night = Night::new();
    let asked = asked();
    let words: Vec<&str> = asked.iter().map(String::as_str).collect();
    night.says("start", &words);
    let printed = run(&mut Command::new(program()));
    night.says("rotate", &[]);
    night.says("stop", &[]);
    let traces = night.archives();
    assert_eq!(traces.len(), 2);
    check(&traces, &printed);
}

/// Writes to pages that it never had, alone on one CPU, and prints how many faults these were.
const PAGES: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}
int main(void)
{
    struct timespec time = {0, 1000000};
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    struct sched_param rt = {.sched_priority = 50};
    if (sched_setaffinity(0, sizeof(one), &one) || sched_setscheduler(0, SCHED_FIFO, &rt))
        return 1;
    char *memory = mmap(0, 4096 * 3000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    nanosleep(&time, 0);
    prctl(PR_SET_NAME, "before");
    nanosleep(&time, 0);
    long before = faults();
    for (int i = 0; i < 3000; i++)
        memory[4096 * i] = 1;
    prctl(PR_SET_NAME, "after");
    nanosleep(&time, 0);
    printf("faults %ld\n", faults() - before);
    return 0;
}
"#;

#[test]
fn each_event_has_what_its_cpu_has_counted() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let program = recorded::compile("cc", "pages", PAGES, &[]);
    let mut record = Command::new(RTSCOPE);
    record.args([
        "record",
        "--events",
        "sched_switch,task_rename",
        "--context",
    ]);
    record.arg("procname,perf:cpu:page-faults,perf:cpu:context-switches");
    let said = run(record.arg("-o").arg(&trace).arg("--").arg(program));
    let own = said.lines().find_map(|line| line.strip_prefix("faults "));
    let own: u64 = own.and_then(|own| own.parse().ok()).expect("a count");

    let traces = [trace];
    let counted = |line: &String, name: &str| {
        let count: u64 = value(line, name).parse().expect("a count");
        count
    };
    let renamed = |name: &str| {
        let renames = format!("$name == \"task_rename\" && newcomm == \"{name}\"");
        lines(&traces, &renames).remove(0)
    };
    let count = |name: &str| counted(&renamed(name), "perf_cpu_page_faults");
    let faults = count("after") - count("before");
    // Its own ends with the loop.
    assert!(
        own > 100 && (own..own + 100).contains(&faults),
        "{faults}, and {own}"
    );

    for cpu in [0, 1] {
        let of_cpu = format!("$name == \"sched_switch\" && cpu_id == {cpu}");
        let switches = lines(&traces, &of_cpu);
        let counts = switches
            .iter()
            .map(|line| counted(line, "perf_cpu_context_switches"));
        let counts: Vec<u64> = counts.collect();
        // This kernel records no switch of some tasks, and counts them.
        let is_later = |pair: &[u64]| pair[1] > pair[0];
        assert!(
            counts.len() > 1 && counts.windows(2).all(is_later),
            "{counts:?}"
        );
    }
}

#[test]
fn a_counter_that_the_machine_does_not_have_is_refused_with_what_it_has() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let mut record = Command::new(RTSCOPE);
    record.args(["record", "--duration", "100ms", "--context"]);
    record.arg("perf:cpu:raw:rffffffffffff:nothing");
    let output = record.arg("-o").arg(folder.path().join("trace")).output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [
        "error: this machine lets nobody read that counter",
        "found: perf:cpu:raw:rffffffffffff:nothing",
        "perf:cpu:page-faults",
    ] {
        assert!(said.contains(part), "{said}");
    }
}
