//! Check that providers written for LTTng-UST compile unchanged, in C and C++ and by two compilers,
//! and that what they record is what their macros say. Needs no privilege; root_lttng_source.rs
//! compares with LTTng itself.

mod recorded;

use std::path::{Path, PathBuf};
use std::process::Command;

use recorded::{Scene, libraries, probe, run, scratch};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lttng_source")
}

/// Compiles the program against our header.
fn compiled(compiler: &str, language: &[&str]) -> PathBuf {
    let place = scratch().join(format!("every-{compiler}"));
    std::fs::create_dir_all(&place).expect("a folder");
    let include = probe().join("include");
    let compile = |source: &str| {
        let object = place.join(source).with_extension("o");
        let mut command = Command::new(compiler);
        command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-c"]);
        command.args(language).arg(folder().join(source));
        command.arg("-o").arg(&object);
        command.arg("-I").arg(include.join("rtscope/lttng"));
        run(command.arg("-I").arg(&include).arg("-I").arg(folder()));
        object
    };
    let program = place.join("every");
    let mut link = Command::new(compiler);
    link.arg("-o").arg(&program);
    link.arg(compile("main.c")).arg(compile("words.c"));
    link.arg("-L").arg(libraries()).arg("-lrtscope-probe");
    run(link.arg(format!("-Wl,-rpath,{}", libraries().display())));
    program
}

const EXPECT: &str = include_str!("lttng_source/expect.txt");

#[test]
fn every_macro_records_what_it_says() {
    let check = |compiler: &str, language: &[&str]| {
        if !recorded::exists(compiler) {
            testkit::skip("lttng_source", &format!("{compiler} is not installed"));
            return;
        }
        let scene = Scene::new();
        let program = compiled(compiler, language);
        let patterns = "every,robot,lttng_ust_tracef,lttng_ust_tracelog";
        scene.record(&["--user", patterns], &[program]);
        scene.check_babeltrace("lttng_source");
        let source = folder().join("words.c");
        let found = scene
            .events()
            .join("\n")
            .replace(source.to_str().expect("UTF-8"), "words.c");
        assert_eq!(
            found.trim_end(),
            EXPECT.trim_end(),
            "{compiler} {language:?}"
        );
    };
    check("gcc", &["-std=gnu11"]);
    check("clang", &["-std=gnu11"]);
    let cpp = ["-x", "c++", "-std=gnu++17"];
    check("g++", &cpp);
    check("clang++", &cpp);
}

/// Providers alone: of a call without fields pedants are warned, here as with LTTng's header.
#[test]
fn providers_compile_without_a_warning_for_pedants() {
    let place = scratch().join("pedantic");
    std::fs::create_dir_all(&place).expect("a folder");
    let source = place.join("provider.c");
    let check_one = |header: &str, compiler: &str, language: &[&str]| {
        let text = format!(
            "#define LTTNG_UST_TRACEPOINT_CREATE_PROBES\n#define LTTNG_UST_TRACEPOINT_DEFINE\n\
             #include \"{header}\"\n"
        );
        std::fs::write(&source, text).expect("the provider's text");
        if !recorded::exists(compiler) {
            testkit::skip("lttng_source", &format!("{compiler} is not installed"));
            return;
        }
        let include = probe().join("include");
        let mut command = Command::new(compiler);
        command.args(["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c"]);
        command.args(language).arg(&source).arg("-o");
        command.arg(place.join(compiler));
        command.arg("-I").arg(include.join("rtscope/lttng"));
        run(command.arg("-I").arg(&include).arg("-I").arg(folder()));
    };
    let check = |compiler: &str, language: &[&str]| {
        check_one("every.h", compiler, language);
        check_one("robot.h", compiler, language);
    };
    for compiler in ["gcc", "clang"] {
        check(compiler, &["-std=c11"]);
    }
    for compiler in ["g++", "clang++"] {
        check(compiler, &["-x", "c++", "-std=c++11"]);
        check(compiler, &["-x", "c++", "-std=c++17"]);
    }
}

/// Fields that are written into no record are what filters are for.
#[test]
fn a_field_that_is_not_written_is_seen_by_a_filter() {
    let scene = Scene::new();
    let program = compiled("gcc", &["-std=gnu11"]);
    let check = |filter: &str, expect: usize| {
        let command = [program.as_os_str(), "wait".as_ref()];
        scene.record(&["--user", &format!("every:numbers {filter}")], &command);
        assert_eq!(scene.events().len(), expect, "{filter}");
    };
    check("hidden >= 6", 3);
    check("hidden_d > 0.25 && i < 6", 2);
    check("hidden_e == 12 && h == 70000", 1);
}

/// A program that is linked with nothing of ours, and a provider that is preloaded or not.
#[test]
fn a_provider_may_come_as_a_library_or_not_at_all() {
    let place = scratch().join("apart");
    std::fs::create_dir_all(&place).expect("a folder");
    let include = probe().join("include");
    let main = "#define LTTNG_UST_TRACEPOINT_DEFINE\n\
        #define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE\n\
        #include \"robot.h\"\n\
        int main(void) { tracepoint(robot, node_init, 0, \"a\", \"b\"); return 0; }\n";
    let provider = "#define TRACEPOINT_CREATE_PROBES\n#include \"robot.h\"\n";
    let compile = |name: &str, text: &str, flags: &[&str]| {
        let source = place.join(name).with_extension("c");
        std::fs::write(&source, text).expect("a source");
        let mut command = Command::new("cc");
        command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
        command.arg(place.join(name)).arg(&source);
        command.arg("-I").arg(include.join("rtscope/lttng"));
        command.arg("-I").arg(&include).arg("-I").arg(folder());
        run(command.args(flags));
        place.join(name).to_str().expect("UTF-8").to_owned()
    };
    let program = compile("program", main, &["-ldl"]);
    let search = format!("-L{}", libraries().display());
    let found = format!("-Wl,-rpath,{}", libraries().display());
    let flags = ["-shared", "-fPIC", &search, "-lrtscope-probe", &found];
    let library = compile("provider.so", provider, &flags);
    run(&mut Command::new(&program));
    let scene = Scene::new();
    let preload = format!("LD_PRELOAD={library}");
    scene.record(&["--user", "robot"], &["env", &preload, &program]);
    let expect = "robot:node_init: { node = 0x0, name = \"a\", namespace = \"b\" }";
    assert_eq!(scene.events(), [expect]);
}
