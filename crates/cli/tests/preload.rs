//! Check that programs which know nothing of us are recorded by the libraries to preload: their
//! memory, their waiting for mutexes, their functions. Needs no privilege.

mod recorded;

use std::process::Command;

use recorded::{Scene, compile, libraries, run};

/// Nothing in it is ours. The second thread waits for the mutex for certain: the kernel is asked
/// until it sleeps, not so often that a busy machine's rings would be full of the asking.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile pid_t other;
static void *second(void *nothing)
{
    other = gettid();
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return nothing;
}
static int sleeps(void)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", other);
    FILE *file = other ? fopen(path, "r") : 0;
    if (!file)
        return 0;
    const size_t got = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[got] = 0;
    return strstr(line, ") S") != 0;
}
int main(void)
{
    pthread_t thread;
    char *volatile memory = malloc(123457);
    memory = realloc(memory, 234569);
    free(memory);
    memory = calloc(7, 11113);
    free(memory);
    void *aligned;
    if (!memory || posix_memalign(&aligned, 64, 43210) != 0)
        return 1;
    free(aligned);
    free(memalign(128, 54321));
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, 0, second, 0);
    while (!sleeps())
        usleep(1000);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, 0);
    return pthread_mutex_trylock(&mutex);
}
"#;

/// Records the program with these helpers; gives the events.
fn recorded(names: &[&str], patterns: &str, flags: &[&str]) -> Vec<String> {
    scene(&names.concat(), names, patterns, flags).events()
}

/// The same with the trace, of a program of its own: tests run beside each other.
fn scene(program: &str, names: &[&str], patterns: &str, flags: &[&str]) -> Scene {
    let scene = Scene::new();
    let program = compile("cc", program, PROGRAM, flags);
    let preload = names.iter().map(|name| {
        let path = libraries().join(format!("librtscope-{name}.so"));
        path.to_str().expect("a path in UTF-8").to_owned()
    });
    let preload = format!("LD_PRELOAD={}", preload.collect::<Vec<_>>().join(" "));
    let program = program.to_str().expect("a path in UTF-8");
    scene.record(&["--user", patterns], &["env", &preload, program]);
    scene.check_babeltrace("preload");
    scene
}

fn number<'a>(event: &'a str, field: &str) -> &'a str {
    let behind = event.split_once(&format!("{field} = "));
    let (_, behind) = behind.unwrap_or_else(|| panic!("no {field}: {event}"));
    behind.split([',', ' ']).next().expect("a value")
}

#[test]
fn memory_is_taken_and_given_back_by_lttngs_names() {
    let events = recorded(&["malloc"], "lttng_ust_libc", &[]);
    let one = |part: &str| {
        let mut found = events.iter().filter(|event| event.contains(part));
        let event = found.next().unwrap_or_else(|| panic!("no {part}"));
        assert!(found.next().is_none(), "{part} twice");
        event.as_str()
    };
    let taken = one("size = 123457");
    assert!(taken.starts_with("lttng_ust_libc:malloc: "), "{taken}");
    let moved = one("size = 234569");
    assert!(moved.starts_with("lttng_ust_libc:realloc: "), "{moved}");
    assert_eq!(number(moved, "in_ptr"), number(taken, " ptr"));
    let zeroed = one("nmemb = 7, size = 11113");
    assert!(zeroed.starts_with("lttng_ust_libc:calloc: "), "{zeroed}");
    let aligned = one("alignment = 64, size = 43210, result = 0");
    assert!(
        aligned.starts_with("lttng_ust_libc:posix_memalign: "),
        "{aligned}"
    );
    let oldest = one("alignment = 128, size = 54321");
    assert!(oldest.starts_with("lttng_ust_libc:memalign: "), "{oldest}");
    for (event, field) in [
        (moved, " ptr"),
        (zeroed, " ptr"),
        (aligned, "out_ptr"),
        (oldest, " ptr"),
    ] {
        let free = format!("lttng_ust_libc:free: {{ ptr = {} }}", number(event, field));
        assert!(events.contains(&free), "no {free}");
    }
}

#[test]
fn a_mutexs_use_is_seen_and_the_waiting_for_it_alone() {
    let all = recorded(&["mutex"], "lttng_ust_pthread,rtscope_mutex", &[]);
    // The library has a mutex too, which nobody tries.
    let tried = all.iter().find(|event| event.contains("trylock"));
    let mutex = number(tried.expect("the program tries its mutex"), "mutex").to_owned();
    let ours = all.iter().filter(|event| number(event, "mutex") == mutex);
    let names: Vec<_> = ours
        .map(|event| event.split(' ').next().expect("a name"))
        .collect();
    let expect = [
        "lttng_ust_pthread:pthread_mutex_lock_req:",
        "lttng_ust_pthread:pthread_mutex_lock_acq:",
        "lttng_ust_pthread:pthread_mutex_lock_req:",
        "rtscope_mutex:wait_begin:",
        "lttng_ust_pthread:pthread_mutex_unlock:",
        "rtscope_mutex:wait_end:",
        "lttng_ust_pthread:pthread_mutex_lock_acq:",
        "lttng_ust_pthread:pthread_mutex_unlock:",
        "lttng_ust_pthread:pthread_mutex_trylock:",
    ];
    // The unlock's event comes behind the unlock: the waiter may be faster.
    let swapped = [
        &expect[..4],
        &[expect[5], expect[6], expect[7], expect[4]],
        &expect[8..],
    ];
    let sorted = |names: &[&str]| {
        let mut names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(sorted(&names), sorted(&swapped.concat()), "{names:?}");
    assert_eq!(names[..4], expect[..4]);
    assert_eq!(names.last(), expect.last());
    let only = recorded(&["mutex"], "rtscope_mutex", &[]);
    assert_eq!(only.len(), 2, "{only:?}");
}

#[test]
fn functions_are_entered_and_left() {
    let events = recorded(
        &["functions"],
        "lttng_ust_cyg_profile",
        &["-finstrument-functions"],
    );
    let entries = |part: &str| events.iter().filter(|event| event.contains(part)).count();
    let (entered, left) = (entries(":func_entry: "), entries(":func_exit: "));
    assert_eq!((entered, left), (events.len() / 2, events.len() / 2));
    // main, second, and sleeps as often as it takes.
    assert!(entered >= 3, "{events:?}");
    let first = events.first().expect("events");
    let last = events.last().expect("events");
    assert!(first.contains("func_entry") && last.contains("func_exit"));
    assert_eq!(
        number(first, "addr"),
        number(last, "addr"),
        "main is the first and the last"
    );
}

#[test]
fn functions_of_a_process_that_is_gone_have_their_names_in_a_flame_graph() {
    let flags = ["-finstrument-functions"];
    let scene = scene("flame", &["functions"], "lttng_ust_cyg_profile", &flags);
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let text = run(rtscope.args(["report", "flamegraph"]).arg(scene.trace()));
    for stack in [";main ", ";main;sleeps ", ";second "] {
        assert!(text.contains(stack), "no {stack}: {text}");
    }
    assert!(!text.contains(";0x"), "an address without a name: {text}");
}

/// Each has its own descriptions and switches, and the runtime that they share has none.
#[test]
fn two_helpers_record_side_by_side() {
    let both = recorded(&["malloc", "mutex"], "lttng_ust_libc,rtscope_mutex", &[]);
    let has = |part: &str| both.iter().any(|event| event.contains(part));
    assert!(has("lttng_ust_libc:malloc: { size = 123457,"), "{both:?}");
    assert!(has("rtscope_mutex:wait_begin: "), "{both:?}");
}
