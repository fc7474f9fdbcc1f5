//! Check that programs that were built with LTTng-UST's own headers are recorded as they are, with
//! our libraries in the place of LTTng's. Needs no privilege.

mod recorded;

use std::path::{Path, PathBuf};
use std::process::Command;

use recorded::{Scene, libraries, probe, run, scratch};

const EXPECT: &str = include_str!("lttng_source/expect.txt");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lttng_source")
}

/// Whether LTTng's headers are there, and lay out what ours say.
fn has_headers() -> bool {
    let header = "#include <lttng/ust-events.h>";
    let mut shell = Command::new("sh");
    let script = format!("echo '{header}' | cc -fsyntax-only -x c -");
    let found = shell.args(["-c", &script]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        testkit::skip("lttng_drop_in", "LTTng-UST's headers are not installed");
        return false;
    }
    let mut check = Command::new("cc");
    check.args(["-c", "-o", "/dev/null"]);
    run(check.arg(probe().join("lttng-ust/abi_check.c")));
    true
}

/// Compiles sources against LTTng's headers.
fn compile(name: &str, compiler: &str, flags: &[&str], sources: &[PathBuf]) -> PathBuf {
    let place = scratch().join("drop-in");
    std::fs::create_dir_all(&place).expect("a folder");
    let program = place.join(format!("{name}-{compiler}"));
    let mut command = Command::new(compiler);
    command.args(["-O2", "-I"]).arg(folder()).args(flags);
    // What would be found in our place, were it not for the environment, is LTTng's own.
    command.args(sources).arg("-o").arg(&program);
    run(command.args(["-x", "none", "-llttng-ust", "-ldl"]));
    program
}

/// A source of a program of this test's own.
fn source(name: &str, text: &str) -> PathBuf {
    std::fs::create_dir_all(scratch()).expect("a folder");
    let source = scratch().join(name);
    std::fs::write(&source, text).expect("a source");
    source
}

/// The ways in which a program finds our libraries.
fn ways() -> [String; 2] {
    let ours = libraries().join("lttng-ust");
    let (folder, library) = (ours.display(), ours.join("liblttng-ust.so.1"));
    [
        format!("LD_LIBRARY_PATH={folder}"),
        format!("LD_PRELOAD={}", library.display()),
    ]
}

#[test]
fn every_field_of_a_program_built_with_lttngs_headers_is_recorded() {
    if !has_headers() {
        return;
    }
    let sources = ["main.c", "words.c"].map(|name| folder().join(name));
    let check = |compiler: &str, language: &[&str], way: &str| {
        if !recorded::exists(compiler) {
            testkit::skip("lttng_drop_in", &format!("{compiler} is not installed"));
            return;
        }
        let program = compile("every", compiler, language, &sources);
        let program = program.to_str().expect("UTF-8");
        let scene = Scene::new();
        let patterns = "every,robot,lttng_ust_tracef,lttng_ust_tracelog";
        scene.record(&["--user", patterns], &["env", way, program]);
        scene.check_babeltrace("lttng_drop_in");
        let words = folder().join("words.c");
        let words = words.to_str().expect("UTF-8");
        let found = scene.events().join("\n").replace(words, "words.c");
        assert_eq!(found.trim_end(), EXPECT.trim_end(), "{compiler} {way}");
    };
    for way in ways() {
        check("gcc", &["-std=gnu11"], &way);
        check("clang++", &["-x", "c++", "-std=gnu++17"], &way);
    }
}

/// Opens a provider and closes it, some times, and writes with it and without.
const OPENS: &str = r#"
#include <dlfcn.h>
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#include "every.h"
int main(int count, char **words)
{
    for (int turn = 0; turn < 3; turn++) {
        void *const provider = count > 1 ? dlopen(words[1], RTLD_NOW) : 0;
        if (!provider)
            return 1;
        lttng_ust_tracepoint(every, begin, turn);
        dlclose(provider);
        lttng_ust_tracepoint(every, begin, -turn);
    }
    return lttng_ust_tracepoint_enabled(every, begin);
}
"#;

#[test]
fn a_provider_that_is_opened_and_closed_records_while_it_is_there() {
    if !has_headers() {
        return;
    }
    let provider = "#define LTTNG_UST_TRACEPOINT_CREATE_PROBES\n#include \"every.h\"\n";
    let shared = ["-shared", "-fPIC"];
    let provider = [source("drop_in_provider.c", provider)];
    let provider = compile("provider.so", "cc", &shared, &provider);
    let program = compile("opens", "cc", &[], &[source("drop_in_opens.c", OPENS)]);
    let (program, provider) = (program.to_str(), provider.to_str());
    let (program, provider) = (program.expect("UTF-8"), provider.expect("UTF-8"));
    for way in ways() {
        let scene = Scene::new();
        scene.record(&["--user", "every"], &["env", &way, program, provider]);
        let expect = [0, 1, 2].map(|turn| format!("every:begin: {{ id = {turn} }}"));
        assert_eq!(scene.events(), expect, "{way}");
    }
}

/// What people install of the probe, in a folder.
fn installed() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    let mut install = Command::new("make");
    install.args(["-s", "-C"]).arg(probe()).arg("install");
    install.arg(format!("OUT={}", libraries().display()));
    run(install.arg(format!("PREFIX={}", place.path().display())));
    place
}

/// Records a program that a build of others made, with what was installed.
fn records_every_event(installed: &Path, program: &Path) {
    let scene = Scene::new();
    let found = format!("LD_LIBRARY_PATH={}", installed.join("lib").display());
    let patterns = "every,robot,lttng_ust_tracef,lttng_ust_tracelog";
    let program = program.to_str().expect("UTF-8");
    scene.record(&["--user", patterns], &["env", &found, program]);
    // CMake gives the compiler whole paths.
    let sources = format!("{}/", folder().display());
    let events = scene.events().join("\n").replace(&sources, "");
    assert_eq!(events.trim_end(), EXPECT.trim_end());
}

#[test]
fn a_build_that_asks_pkg_config_for_lttng_gets_the_probe() {
    if !recorded::exists("pkg-config") {
        testkit::skip("lttng_drop_in", "pkg-config is not installed");
        return;
    }
    let place = installed();
    let known = place.path().join("lib/rtscope/lttng/pkgconfig");
    let program = place.path().join("every");
    let script = "cd \"$1\" && cc -O2 -I. -o \"$2\" main.c words.c \
                  $(pkg-config --cflags --libs 'lttng-ust >= 2.13')";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(folder()).arg(&program);
    run(shell.env("PKG_CONFIG_PATH", known));
    records_every_event(place.path(), &program);
}

#[test]
fn a_build_that_asks_cmake_for_lttng_gets_the_probe() {
    if !recorded::exists("cmake") {
        testkit::skip("lttng_drop_in", "cmake is not installed");
        return;
    }
    let place = installed();
    let build = place.path().join("build");
    let list = format!(
        "cmake_minimum_required(VERSION 3.16)\nproject(every C)\n\
         find_package(LTTngUST 2.13 REQUIRED)\n\
         add_executable(every {0}/main.c {0}/words.c)\n\
         target_include_directories(every PRIVATE {0})\n\
         target_link_libraries(every LTTng::UST)\n",
        folder().display()
    );
    std::fs::write(place.path().join("CMakeLists.txt"), list).expect("a list");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(place.path()).arg("-B").arg(&build);
    for (variable, folder) in [
        ("CMAKE_INCLUDE_PATH=", "include/rtscope/lttng"),
        ("CMAKE_LIBRARY_PATH=", "lib/rtscope/lttng"),
        ("CMAKE_C_FLAGS=-I", "include"),
    ] {
        let folder = place.path().join(folder);
        cmake.arg(format!("-D{variable}{}", folder.display()));
    }
    run(&mut cmake);
    run(Command::new("cmake").arg("--build").arg(&build));
    records_every_event(place.path(), &build.join("every"));
}

/// Provides a context of its own, as LTTng's headers for C do not declare it; without a word also
/// a second time under one name.
const PROVIDES: &str = r#"
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "robot.h"
struct app_context { uint32_t size; void *field; char *name; };
struct value { int kind; union { int64_t number; const char *text; double real; } of; };
struct provider {
    uint32_t size;
    const char *name;
    void *get_size, *record;
    void (*get_value)(void *, void *, struct value *);
    void *own;
};
void *lttng_ust_context_provider_register(struct provider *);
void lttng_ust_context_provider_unregister(void *);
static int turn;
static void get_value(void *context, void *probe, struct value *value)
{
    const struct app_context *const own = context;
    (void)probe;
    value->kind = (const int[]){0, 4, 8, 10, 11}[turn];
    value->of.number = -7;
    if (turn == 3)
        value->of.real = 0.5;
    if (turn == 4)
        value->of.text = own->name;
}
int main(void)
{
    struct provider own = {sizeof own, "$app.work", 0, 0, get_value, 0};
    struct provider wrong = {sizeof wrong, "work", 0, 0, get_value, 0};
    lttng_ust_tracepoint(robot, node_init, &own, "before", "");
    void *const registered = lttng_ust_context_provider_register(&own);
    if (!registered || lttng_ust_context_provider_register(&own) ||
        lttng_ust_context_provider_register(&wrong))
        return 1;
    for (turn = 0; turn < 5; turn++)
        lttng_ust_tracepoint(robot, node_init, &own, "during", "");
    lttng_ust_context_provider_unregister(registered);
    lttng_ust_tracepoint(robot, node_init, &own, "behind", "");
    return 0;
}
"#;

#[test]
fn events_carry_the_contexts_that_their_application_provides() {
    if !has_headers() {
        return;
    }
    let provides = source("drop_in_provides.c", PROVIDES);
    let program = compile("provides", "cc", &[], &[provides]);
    let program = program.to_str().expect("UTF-8");
    let [way, _] = ways();
    let values = |contexts: &str| -> Vec<String> {
        let scene = Scene::new();
        let words = ["--user", "robot", "--context", contexts];
        scene.record(&words, &["env", &way, program]);
        let value = |event: String| {
            let (_, value) = event.split_once("app_work_item = ")?;
            Some(value.trim_end_matches(" }").to_owned())
        };
        scene.events().into_iter().filter_map(value).collect()
    };
    let expect = [
        "",
        "",
        "-7",
        "18446744073709551609",
        "0.5",
        "$app.work:item",
        "",
    ];
    let quoted: Vec<_> = expect.iter().map(|text| format!("\"{text}\"")).collect();
    assert_eq!(values("procname,$app.work:item"), quoted);
    assert_eq!(values("procname"), [""; 0]);
}

/// A text that is too long, a child, and threads.
const MUCH: &str = r#"
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "robot.h"
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *write_some(void *from)
{
    for (int i = 0; i < 1000; i++)
        lttng_ust_tracepoint(robot, node_init, from, "thread", "");
    return 0;
}
int main(void)
{
    static char text[2000];
    pthread_t threads[3];
    memset(text, 'x', sizeof text - 1);
    lttng_ust_tracepoint(robot, node_init, text, text, "behind");
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, write_some, text);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    const pid_t child = fork();
    if (!child) {
        lttng_ust_tracepoint(robot, node_init, text, "child", "");
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status;
}
"#;

#[test]
fn threads_children_and_texts_that_are_too_long_are_recorded() {
    if !has_headers() {
        return;
    }
    let much = source("drop_in_much.c", MUCH);
    let program = compile("much", "cc", &["-pthread"], &[much]);
    let program = program.to_str().expect("UTF-8");
    let scene = Scene::new();
    let [way, _] = ways();
    scene.record(&["--user", "robot"], &["env", &way, program]);
    let events = scene.events();
    let count = |what: &str| events.iter().filter(|event| event.contains(what)).count();
    assert_eq!((events.len(), count("\"thread\"")), (3002, 3000));
    assert_eq!(count("\"child\""), 1);
    assert_eq!(count("xxx...\""), 1, "{}", events[0]);
}
