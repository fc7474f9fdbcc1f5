//! Check that a program may fork wherever it is, also in a signal handler in the middle of an
//! event: the child goes on there when the handler returns.

mod traced;

use std::path::Path;
use std::process::Command;

use testkit::{Traced, build_traced};
use traced::{build, events, run};

/// Writes events without a pause, in every way that there is; a timer's handler forks, and the
/// child writes 20 more.
const FORKS: &str = r#"
#include <rtscope/event.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int forks, in_child;
static void set_timer(int us)
{
    const struct itimerval every = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &every, NULL);
}
static void on_timer(int number)
{
    (void)number;
    if (fork() == 0) {
        in_child = 1;
        /* As long a life as the test has. */
        set_timer(0);
        signal(SIGALRM, SIG_IGN);
    }
    forks++;
}
int main(void)
{
    char text[200];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    signal(SIGALRM, on_timer);
    set_timer(1000);
    uint64_t i = 0, own = 0;
    int status, bad = 0;
    while (forks < 300) {
        RTSCOPE_EVENT(app, tick, u64("i", i));
        RTSCOPE_EVENT(app, text, u64("i", i), text("text", text));
        i++;
        if (in_child && own++ == 20)
            _exit(0);
        if (!in_child)
            while (waitpid(-1, &status, WNOHANG) > 0)
                bad += status != 0;
    }
    set_timer(0);
    while (wait(&status) > 0)
        bad += status != 0;
    return bad > 100 ? 100 : bad;
}
"#;

#[test]
fn a_handler_that_forks_in_the_middle_of_an_event_harms_neither_process() {
    let program = build("fork_in_handler", FORKS);
    for rseq in ["on", "off"] {
        for mode in ["discard", "overwrite", "block"] {
            let (folder, mut files) = run(
                &program,
                &[
                    ("RTSCOPE_EVENTS", "app"),
                    ("RTSCOPE_RSEQ", rseq),
                    ("RTSCOPE_MODE", mode),
                    ("RTSCOPE_RING_SIZE", "32K"),
                ],
            );
            assert!(files.len() > 250, "{rseq} {mode}: {}", files.len());
            for file in &mut files {
                for (name, fields) in events(file) {
                    let count = if name == "app:text" { 2 } else { 1 };
                    assert!(name.starts_with("app:t") && fields.len() == count, "{name}");
                }
            }
            drop(folder);
        }
    }
}

/// Opens a library with an event, and forks.
const OPENS: &str = r#"
#include <dlfcn.h>
#include <rtscope/event.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    RTSCOPE_EVENT(app, program);
    if (!dlopen(getenv("LIBRARY"), RTLD_NOW))
        return 1;
    const pid_t child = fork();
    RTSCOPE_EVENT(app, program);
    return child != 0 && wait(NULL) < 0;
}
"#;

const LIBRARY: &str = r#"
#include <rtscope/event.h>
static __attribute__((constructor)) void opened(void) { RTSCOPE_EVENT(app, library); }
"#;

/// An event that a handler interrupted to fork is written with the id that it had.
#[test]
fn in_a_child_each_event_has_the_id_that_it_had() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe/include");
    let (source, library) = (scratch.join("ids.c"), scratch.join("ids.so"));
    std::fs::write(&source, LIBRARY).expect("the library's text");
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-std=gnu11", "-shared", "-fPIC", "-Wall", "-Werror"]);
    compile.arg("-I").arg(include).arg("-o").arg(&library);
    assert!(compile.arg(&source).status().expect("a compiler").success());
    let program = Traced {
        flags: &["-O2", "-std=gnu11", "-rdynamic"],
        ..Traced::c(OPENS)
    };
    let program = build_traced(scratch, "ids", program);
    let library = library.to_str().expect("a path");
    let (_folder, mut files) = run(&program, &[("RTSCOPE_EVENTS", "app"), ("LIBRARY", library)]);
    let ids = files.iter_mut().map(|file| {
        file.read_table().expect("a table");
        let events = file.table().events.iter();
        events.map(|event| (event.id, event.full_name())).collect()
    });
    let ids: Vec<Vec<_>> = ids.collect();
    assert_eq!(ids.len(), 2);
    assert!(
        ids[0].iter().any(|(_, name)| name == "app:library"),
        "{ids:?}"
    );
    assert_eq!(ids[0], ids[1]);
}

/// Says what the rings of a child have of the memory, in KiB, without an event, with one, and with
/// many; `$RINGS` is how large each is.
const FIRST_EVENT: &str = r#"
#include <dirent.h>
#include <rtscope/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static long own_kib(void)
{
    char begin[32], path[512];
    struct dirent *entry;
    struct stat status = {0};
    DIR *const list = opendir(getenv("RTSCOPE_DIR"));
    snprintf(begin, sizeof begin, "rings-%d-", (int)getpid());
    while (list && (entry = readdir(list)))
        if (strncmp(entry->d_name, begin, strlen(begin)) == 0) {
            snprintf(path, sizeof path, "%s/%s", getenv("RTSCOPE_DIR"), entry->d_name);
            stat(path, &status);
        }
    return status.st_blocks / 2;
}
int main(void)
{
    int status;
    RTSCOPE_EVENT(app, parent);
    const pid_t child = fork();
    if (child)
        return waitpid(child, &status, 0) != child || status != 0;
    const long without = own_kib();
    RTSCOPE_EVENT(app, child, u64("i", 0));
    const long with = own_kib();
    for (unsigned i = 1; i < 30000; i++)
        RTSCOPE_EVENT(app, child, u64("i", i));
    _exit(!(0 < without && without < 256) ? 3 : with < 1024 ? 4 : 0);
}
"#;

#[test]
fn rings_of_a_child_have_memory_from_its_first_event_on_and_lose_none() {
    let program = build("first_event", FIRST_EVENT);
    for rseq in ["on", "off"] {
        let variables = [
            ("RTSCOPE_EVENTS", "app"),
            ("RTSCOPE_RING_SIZE", "1M"),
            ("RTSCOPE_RSEQ", rseq),
        ];
        let (_folder, mut files) = run(&program, &variables);
        let mut recorded: Vec<_> = files.iter_mut().map(|file| events(file).len()).collect();
        recorded.sort_unstable();
        assert_eq!(recorded, [1, 30_000], "{rseq}");
    }
}
