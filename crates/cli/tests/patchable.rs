//! Check that functions which were compiled with room at their entry are recorded by the library to
//! preload, and that a program cannot tell: arguments, results, exceptions and signals are as
//! without it. Needs no privilege.

mod recorded;

use std::path::{Path, PathBuf};
use std::process::Command;

use recorded::{Scene, compile, libraries, run};

const REGISTERS: &str = include_str!("patchable/registers.c");
const VALUES: &str = include_str!("patchable/values.c");
const THROWN: &str = include_str!("patchable/thrown.cpp");
const SIGNALS: &str = include_str!("patchable/signals.c");
const REPLACED: &str = include_str!("patchable/replaced.c");

/// The functions that [`VALUES`] enters.
const VALUES_ENTERED: &str = "add both count_down count_down count_down count_down half leaf main \
                              narrow spread sum";

const ENTRIES: &str = "rtscope_patchable";

/// Whether this machine is one that the library knows; the reason not to go on where it is not.
fn is_known_machine() -> bool {
    if !cfg!(target_arch = "x86_64") {
        testkit::skip("patchable", "done on x86-64 alone");
    }
    cfg!(target_arch = "x86_64")
}

fn preload() -> String {
    let path = libraries().join("librtscope-patchable.so");
    format!("LD_PRELOAD={}", path.to_str().expect("a path in UTF-8"))
}

/// Records a command, which must end with 0, with words for the environment; gives what `record`
/// said.
fn record_into(scene: &Scene, patterns: &str, environment: &[&str], command: &[&str]) -> String {
    let done = scene.beside("done");
    std::fs::remove_file(&done).ok();
    let shell = format!("\"$@\" && : > {}", done.display());
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    rtscope.args(["record", "--user", patterns, "-o"]);
    rtscope.arg(scene.trace()).args(["--", "env", &preload()]);
    rtscope.args(environment).args(["sh", "-c", &shell, "sh"]);
    rtscope.args(command);
    rtscope.env("RTSCOPE_DIR", scene.shared());
    rtscope.env("RTSCOPE_RING_SIZE", "4M");
    rtscope.env_remove("RTSCOPE_EVENTS");
    let said = run(&mut rtscope);
    assert!(done.exists(), "{command:?} failed: {said}");
    said
}

/// How many entries were lost.
fn lost(said: &str) -> usize {
    let (before, _) = said.rsplit_once(" lost").expect("how many were lost");
    let number = before.rsplit(' ').next().expect("a word");
    number.parse().expect("a number")
}

/// Records a program that loses nothing.
fn record(patterns: &str, environment: &[&str], program: &Path) -> Scene {
    let scene = Scene::new();
    let program = program.to_str().expect("a path in UTF-8");
    let said = record_into(&scene, patterns, environment, &[program]);
    assert_eq!(lost(&said), 0, "{program} {environment:?}");
    scene
}

/// The functions that were entered, as the trace and the disk name them.
fn entered(scene: &Scene) -> Vec<String> {
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    rtscope.args(["cat", "--debug-info"]).arg(scene.trace());
    let output = rtscope.output().expect("rtscope starts");
    // 3 tells of losses.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let entries = text.lines().filter(|line| line.contains(":func_entry: "));
    let names = entries.map(|line| {
        let of_address = line.split_once("addr_debug_info = ");
        let name = of_address.and_then(|(_, group)| group.split_once("func = \""));
        let (name, _) = name
            .and_then(|(_, name)| name.split_once("+0x0\""))
            .unwrap_or_else(|| panic!("no function begins there: {line}"));
        name.to_owned()
    });
    names.collect()
}

/// How often the function was entered.
fn count(entered: &[String], function: &str) -> usize {
    entered.iter().filter(|name| *name == function).count()
}

/// What is told of a program or library: `functions = …, too_short = …, unknown = …, reason = …`.
fn told(scene: &Scene, name: &str) -> String {
    let events = scene.events();
    let path = format!("/{name}\", ");
    let told = events.iter().filter_map(|event| {
        let rest = event.strip_prefix("rtscope_patchable:object: ")?;
        Some(rest.split_once(&path)?.1)
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 1, "{name} is told of once: {events:?}");
    told[0].trim_end_matches(" }").to_owned()
}

/// Compiles the values' program in this way and records it: each of its functions must be entered.
fn check_values(compiler: &str, flags: &[&str]) {
    if !recorded::exists(compiler) {
        testkit::skip("patchable", &format!("{compiler} is not installed"));
        return;
    }
    let name = format!("values-{compiler}{}", flags.concat());
    let name = name.replace(['/', '=', ','], "_");
    let program = compile(compiler, &name, VALUES, &[flags, &["-g"]].concat());
    let scene = record(ENTRIES, &[], &program);
    scene.check_babeltrace("patchable");
    // Compilers call in what order they like.
    let mut names: Vec<_> = entered(&scene)
        .iter()
        .map(|name| name.split('(').next().expect("a name").to_owned())
        .collect();
    names.sort_unstable();
    assert_eq!(names.join(" "), VALUES_ENTERED, "{compiler} {flags:?}");
    let expect = "functions = 9, too_short = 0, unknown = 0, reason = \"\"";
    assert_eq!(told(&scene, &name), expect, "{compiler} {flags:?}");
}

#[test]
fn entries_are_recorded_whatever_the_compiler_laid_out() {
    if !is_known_machine() {
        return;
    }
    let plain = "-fcf-protection=none";
    for compiler in ["gcc", "g++", "clang", "clang++"] {
        check_values(compiler, &["-fpatchable-function-entry=5", plain]);
        check_values(
            compiler,
            &["-fpatchable-function-entry=7", "-fcf-protection"],
        );
        check_values(
            compiler,
            &["-fpatchable-function-entry=16,5", "-fcf-protection"],
        );
        check_values(compiler, &["-fpatchable-function-entry=8,3", plain, "-O0"]);
        check_values(
            compiler,
            &["-fpatchable-function-entry=6", "-fno-pie", "-no-pie"],
        );
    }
}

#[test]
fn a_function_with_less_room_than_a_call_needs_is_left_alone_and_counted() {
    if !is_known_machine() {
        return;
    }
    for compiler in ["gcc", "clang"] {
        for room in ["2", "4", "8,4", "9,5", "5,5"] {
            let name = format!("short-{compiler}-{room}").replace(',', "_");
            let flag = format!("-fpatchable-function-entry={room}");
            let program = compile(compiler, &name, VALUES, &[&flag]);
            let scene = record(ENTRIES, &[], &program);
            assert_eq!(entered(&scene), [""; 0], "{compiler} {room}");
            let reason = "reason = \"no function of it has room for a call at its entry\"";
            let expect = format!("functions = 0, too_short = 9, unknown = 0, {reason}");
            assert_eq!(told(&scene, &name), expect, "{compiler} {room}");
        }
    }
}

/// Its functions have no names any more, but the table for unwinding tells where they begin.
#[test]
fn a_program_without_symbols_is_recorded_too() {
    if !is_known_machine() {
        return;
    }
    let flags = ["-fpatchable-function-entry=10,4", "-s"];
    let program = compile("gcc", "stripped", VALUES, &flags);
    let scene = record(ENTRIES, &[], &program);
    let entries = scene.events();
    let entries = entries.iter().filter(|event| event.contains("func_entry"));
    assert_eq!(entries.count(), VALUES_ENTERED.split(' ').count());
}

#[test]
fn no_register_is_changed_on_any_way_that_a_record_takes() {
    if !is_known_machine() {
        return;
    }
    let filtered = format!("{ENTRIES}:func_entry addr > 0");
    let nothing = format!("{ENTRIES}:object");
    // main, and two functions a turn, of which the one that calls has no room.
    let all = 20_000 + 1;
    for compiler in ["gcc", "clang"] {
        let name = format!("registers-{compiler}");
        let program = compile(
            compiler,
            &name,
            REGISTERS,
            &["-fpatchable-function-entry=5"],
        );
        let ways: [(&str, &[&str], usize); 5] = [
            (ENTRIES, &[], all),
            (ENTRIES, &["RTSCOPE_RSEQ=off"], all),
            (ENTRIES, &["RTSCOPE_CLOCK=monotonic"], all),
            // A filter is given when the recorder has found the process, behind main's entry.
            (&filtered, &["WAIT=1"], all - 1),
            (&nothing, &[], 0),
        ];
        for (patterns, environment, expect) in ways {
            let scene = record(patterns, environment, &program);
            let events = scene.events();
            let found = events.iter().filter(|event| event.contains("func_entry"));
            let found = found.count();
            assert_eq!(found, expect, "{compiler} {patterns} {environment:?}");
        }
    }
}

#[test]
fn exceptions_backtraces_and_long_jumps_pass_through_recorded_functions() {
    if !is_known_machine() {
        return;
    }
    for compiler in ["g++", "clang++"] {
        let flags = ["-fpatchable-function-entry=5", "-fcf-protection", "-g"];
        let program = compile(compiler, &format!("thrown-{compiler}"), THROWN, &flags);
        for environment in [&[][..], &["RTSCOPE_RSEQ=off"]] {
            let names = entered(&record(ENTRIES, environment, &program));
            let times = ["main", "pass", "fail", "leap"].map(|part| {
                let of = |name: &&String| name.starts_with(part);
                names.iter().filter(of).count()
            });
            assert_eq!(times, [1, 1, 11, 11], "{compiler}: {names:?}");
        }
    }
}

/// The handler is entered in the middle of a record too, and may leave it for good.
#[test]
fn a_handlers_entries_are_recorded_wherever_the_signal_came() {
    if !is_known_machine() {
        return;
    }
    let flags = ["-fpatchable-function-entry=5", "-g"];
    let program = compile("gcc", "signals", SIGNALS, &flags);
    for environment in [&[][..], &["RTSCOPE_CLOCK=monotonic"]] {
        let scene = Scene::new();
        let out = scene.beside("out");
        let shell = format!("{} > {}", program.display(), out.display());
        let lost = lost(&record_into(
            &scene,
            ENTRIES,
            environment,
            &["sh", "-c", &shell],
        ));
        let said = std::fs::read_to_string(&out).expect("what the program says");
        let mut numbers = said.split_whitespace().map(|word| word.parse::<usize>());
        let mut number = || numbers.next().and_then(Result::ok).expect("a number");
        let (called, handled) = (number(), number());
        let names = entered(&scene);
        let recorded = count(&names, "on_alarm");
        assert_eq!((recorded, lost), (handled, 0), "{environment:?}");
        // One of eight signals leaves for good, maybe before the record of what was called.
        let worked = count(&names, "work");
        let least = called - handled / 8;
        assert!((least..=called).contains(&worked), "{worked} of {called}");
    }
}

/// By the kernel's clock a record calls memset and clock_gettime, which are the program's.
#[test]
fn a_program_with_a_memset_and_a_clock_of_its_own_does_not_record_without_end() {
    if !is_known_machine() {
        return;
    }
    let flags = ["-fpatchable-function-entry=5", "-fno-builtin", "-g"];
    let program = compile("gcc", "replaced", REPLACED, &flags);
    let program = program.to_str().expect("a path in UTF-8");
    for slow in ["RTSCOPE_CLOCK=monotonic", "RTSCOPE_RSEQ=off"] {
        let scene = Scene::new();
        let lost = lost(&record_into(&scene, ENTRIES, &[slow], &[program]));
        let names = entered(&scene);
        assert_eq!(count(&names, "own"), 100, "{slow}");
        // Each with what it calls in its turn.
        assert!(lost >= 400, "{slow}: {lost}");
    }
}

/// A library whose one function is `twice`; `before` runs in its constructor.
fn library(name: &str, before: &str, flags: &[&str]) -> PathBuf {
    let text = format!(
        "#include <pthread.h>\n#include <unistd.h>\n\
         int twice(int number) {{ return 2 * number; }}\n\
         static void *waits(void *nothing) {{ pause(); return nothing; }}\n\
         __attribute__((constructor, patchable_function_entry(0))) static void first(void)\n\
         {{ pthread_t thread; (void)thread; (void)waits; {before} }}\n"
    );
    let flags = [&["-shared", "-fPIC", "-g"], flags].concat();
    compile("gcc", name, &text, &flags)
}

const ROOM: &str = "-fpatchable-function-entry=5";

/// A program with the library that calls `twice` once.
fn user_of(library: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let text = "int twice(int);\nint main(void) { return twice(0); }\n";
    let library = library.to_str().expect("a path in UTF-8");
    let flags = [flags, &["-g", library]].concat();
    compile("gcc", name, text, &flags)
}

#[test]
fn the_libraries_that_a_program_is_loaded_with_are_recorded_with_it() {
    if !is_known_machine() {
        return;
    }
    let doubles = library("libdoubles.so", "", &[ROOM]);
    let program = user_of(&doubles, "doubles", &[ROOM]);
    let scene = record(ENTRIES, &[], &program);
    let names = entered(&scene);
    assert_eq!(names, ["main", "twice"]);
    for object in ["doubles", "libdoubles.so"] {
        let expect = "functions = 1, too_short = 0, unknown = 0, reason = \"\"";
        assert_eq!(told(&scene, object), expect);
    }
    // Whose files are recorded can be chosen.
    let scene = record(ENTRIES, &["RTSCOPE_PATCHABLE=other,libd*.so"], &program);
    assert_eq!(entered(&scene), ["twice"]);
}

#[test]
fn code_that_other_threads_may_run_is_left_alone_and_that_is_said() {
    if !is_known_machine() {
        return;
    }
    let early = "pthread_create(&thread, 0, waits, 0);";
    let threads = library("libearly.so", early, &[ROOM]);
    let program = user_of(&threads, "early", &[ROOM]);
    let scene = Scene::new();
    let path = program.to_str().expect("a path in UTF-8");
    let said = record_into(&scene, ENTRIES, &[], &[path]);
    assert_eq!(entered(&scene), [""; 0]);
    let found = "other threads run already, which may be in its code";
    let expect = format!("functions = 0, too_short = 0, unknown = 0, reason = \"{found}\"");
    assert_eq!(told(&scene, "early"), expect);
    assert_eq!(told(&scene, "libearly.so"), expect);
    let refused = format!("no function entries of {path}\n  found: {found}\n  fix:  ");
    assert!(said.contains(&refused), "{said}");
}

#[test]
fn threads_and_children_that_come_later_are_recorded() {
    if !is_known_machine() {
        return;
    }
    let text = "#include <pthread.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        static volatile int sink;\n\
        __attribute__((noinline)) void step(void) { sink = 1; }\n\
        static void *run(void *nothing)\n\
        { for (int n = 0; n < 1000; n++) step(); return nothing; }\n\
        int main(void)\n\
        { pthread_t threads[4]; int status = 1;\n\
        for (int n = 0; n < 4; n++) pthread_create(&threads[n], 0, run, 0);\n\
        for (int n = 0; n < 4; n++) pthread_join(threads[n], 0);\n\
        const pid_t child = fork();\n\
        if (child == 0) { for (int n = 0; n < 500; n++) step(); return 0; }\n\
        return waitpid(child, &status, 0) != child || status; }\n";
    let program = compile("clang", "later", text, &[ROOM, "-g"]);
    let names = entered(&record(ENTRIES, &[], &program));
    assert_eq!((count(&names, "run"), count(&names, "step")), (4, 4500));
}

/// Other threads may be there then, so that its code is not written to.
#[test]
fn a_library_that_is_opened_later_is_left_alone() {
    if !is_known_machine() {
        return;
    }
    let opened = library("libopened.so", "", &[ROOM]);
    let text = "#include <dlfcn.h>\n#include <string.h>\n\
        int main(int count, char **words)\n\
        { void *const library = dlopen(LIBRARY, RTLD_NOW); int (*twice)(int);\n\
        (void)words; void *const found = library ? dlsym(library, \"twice\") : 0;\n\
        memcpy(&twice, &found, sizeof twice);\n\
        return !found || twice(count) != 2; }\n";
    let define = format!("-DLIBRARY=\"{}\"", opened.display());
    let program = compile("gcc", "opens", text, &[ROOM, "-g", &define, "-ldl"]);
    assert_eq!(entered(&record(ENTRIES, &[], &program)), ["main"]);
}

/// As services of systemd have it with MemoryDenyWriteExecute.
#[test]
fn where_code_may_not_be_changed_the_program_runs_on_and_that_is_said() {
    if !is_known_machine() {
        return;
    }
    // PR_SET_MDWE, since Linux 6.3: what was not to be run when it was mapped never will be.
    let text = "#include <stdio.h>\n#include <sys/prctl.h>\n#include <unistd.h>\n\
        int main(int count, char **words)\n\
        { if (count < 2 || prctl(65, 1, 0, 0, 0) != 0) return 77;\n\
        execv(words[1], words + 1); return 1; }\n";
    let deny = compile("gcc", "deny", text, &[]);
    let denied = run_status(Command::new(&deny).arg("/bin/true"));
    if denied != Some(0) {
        testkit::skip("patchable", "this kernel cannot deny it (PR_SET_MDWE)");
        return;
    }
    let program = compile("gcc", "denied", VALUES, &[ROOM]);
    let scene = Scene::new();
    let words = [&deny, &program].map(|path| path.to_str().expect("a path in UTF-8"));
    let said = record_into(&scene, ENTRIES, &[], &words);
    assert!(said.contains("MemoryDenyWriteExecute=no"), "{said}");
    assert_eq!(entered(&scene), [""; 0]);
    let expect = "reason = \"the system forbids to change code\"";
    assert!(
        told(&scene, "denied").ends_with(expect),
        "{:?}",
        scene.events()
    );
}

#[test]
fn a_program_for_another_machine_says_that_it_is_not_done_there() {
    let tools = ["aarch64-linux-gnu-gcc", "qemu-aarch64"];
    if !tools.iter().all(|tool| recorded::exists(tool)) {
        testkit::skip("patchable", "it wants gcc-aarch64-linux-gnu and qemu-user");
        return;
    }
    let folder = recorded::scratch().join("arm64");
    let out = format!("OUT={}", folder.display());
    let library = folder.join("librtscope-patchable.so");
    let mut make = Command::new("make");
    make.args(["-s", "-C"]).arg(recorded::probe()).arg(&out);
    make.args(["CC=aarch64-linux-gnu-gcc", "CFLAGS=-O2 -g -Werror"]);
    run(make.arg(&library));
    let text = "int main(void) { return 0; }";
    let flags = ["-fpatchable-function-entry=2"];
    let program = compile("aarch64-linux-gnu-gcc", "elsewhere", text, &flags);
    let scene = Scene::new();
    let preload = format!("LD_PRELOAD={}", library.display());
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    rtscope.args(["record", "--user", ENTRIES, "-o"]);
    rtscope.arg(scene.trace()).args(["--", "qemu-aarch64"]);
    rtscope.args(["-L", "/usr/aarch64-linux-gnu", "-E", &preload]);
    rtscope.arg(program).env("RTSCOPE_DIR", scene.shared());
    rtscope.env_remove("RTSCOPE_EVENTS");
    let said = run(&mut rtscope);
    assert!(said.contains("found: done on x86-64 alone"), "{said}");
}

fn run_status(command: &mut Command) -> Option<i32> {
    command.status().expect("the program starts").code()
}

/// Entries alone would make calls that never return.
#[test]
fn a_flame_graph_is_not_drawn_of_entries_without_exits() {
    if !is_known_machine() {
        return;
    }
    let program = compile("gcc", "no-flames", VALUES, &[ROOM]);
    let scene = record(ENTRIES, &[], &program);
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let output = rtscope.args(["report", "flamegraph"]).arg(scene.trace());
    let output = output.output().expect("rtscope starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("-finstrument-functions"), "{said}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout)
            .matches("main")
            .count(),
        0
    );
}
