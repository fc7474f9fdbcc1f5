//! Check that addresses of an application have names when the application is gone: of the program
//! and of a library without events that it loaded while it was recorded; and that another build of
//! a file names nothing. Needs no privilege.

mod recorded;

use std::path::Path;
use std::process::Command;

use recorded::{BESIDE_RECORDER, Scene, compile_with_probe, run};

/// Once it is recorded it loads a library, tells two addresses, says so and waits for its input's
/// end.
const PROGRAM: &str = r#"
#include <dlfcn.h>
static void here(void)
{
}
int main(int count, char **words)
{
    await_recorder();
    void *const library = count == 3 ? dlopen(words[1], RTLD_NOW) : 0;
    void *const plug = library ? dlsym(library, "plug") : 0;
    if (!plug)
        return 1;
    RTSCOPE_EVENT(robot, plugged, x64("caller", (uintptr_t)plug), x64("ip", (uintptr_t)here));
    return say_done(words[2]);
}
"#;

/// A library that knows nothing of us; its second build has another function in that place.
fn build_library(folder: &Path, function: &str) {
    let source = folder.join("plug.c");
    let text =
        format!("int {function}(int i);\nint {function}(int i)\n{{\n    return i + 1;\n}}\n");
    std::fs::write(&source, text).expect("the library's text");
    let flags = ["-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o"];
    run(Command::new("cc")
        .args(flags)
        .arg(folder.join("libplug.so"))
        .arg(source));
}

fn cat(scene: &Scene) -> (String, String) {
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let output = rtscope
        .arg("cat")
        .arg("--debug-info")
        .arg(scene.trace())
        .output();
    let output = output.expect("rtscope cat");
    let text = |bytes| String::from_utf8(bytes).expect("text in UTF-8");
    let (lines, said) = (text(output.stdout), text(output.stderr));
    let line = lines.lines().find(|line| line.contains("robot:plugged"));
    let line = line.unwrap_or_else(|| panic!("no event: {lines}{said}"));
    (line.to_owned(), said)
}

#[test]
fn addresses_of_a_process_that_is_gone_have_names_where_the_build_is_the_same() {
    let scene = Scene::new();
    let source = format!("{BESIDE_RECORDER}{PROGRAM}");
    let program = compile_with_probe("process_map", &source, &["-g"]);
    let folder = tempfile::tempdir().expect("a folder");
    build_library(folder.path(), "plug");
    let mut traced = Command::new(&program);
    traced.arg(folder.path().join("libplug.so"));
    scene.record_beside(&["--user", "robot"], traced);
    scene.check_babeltrace("process_map");

    let (line, said) = cat(&scene);
    let plug = "func = \"plug+0x0\", src = \"plug.c:";
    assert!(
        line.contains("caller_debug_info = { bin = \"libplug.so+0x"),
        "{line}{said}"
    );
    assert!(line.contains(plug), "{line}{said}");
    assert!(
        line.contains(", debug_info = { bin = \"process_map+0x"),
        "{line}"
    );
    assert!(
        line.contains("func = \"here+0x0\", src = \"main.c:"),
        "{line}{said}"
    );
    assert_eq!(said, "");

    build_library(folder.path(), "other");
    let (line, said) = cat(&scene);
    assert!(
        !line.contains("plug+0x0") && !line.contains("other"),
        "{line}"
    );
    assert!(line.contains("func = \"here+0x0\""), "{line}{said}");
    assert!(
        said.contains("the program is not the one that was traced"),
        "{said}"
    );
}
