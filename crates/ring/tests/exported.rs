//! What the probe's library exports is what `packaging/abi` promises to programs that have it, and
//! nothing besides: a function of a program's own is its own.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_probe_exports_what_is_promised_and_nothing_else() {
    let (_folder, library) = built("librtscope-probe.so.1");
    let headers = headers(&probe().join("include"));
    testkit::check_exported(&library, "librtscope-probe.so.1", &headers);
    for symbol in exported(&library) {
        assert!(headers.contains(&symbol), "{symbol} is in no header");
    }
}

#[test]
fn what_stands_in_for_lttng_exports_lttngs_names_alone() {
    for name in ["liblttng-ust.so.1", "liblttng-ust-tracepoint.so.1"] {
        let (_folder, library) = built(&format!("lttng-ust/{name}"));
        for symbol in exported(&library) {
            assert!(symbol.starts_with("lttng_ust_"), "{name}: {symbol}");
        }
    }
}

fn probe() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe")
}

/// A library of the probe's, and the folder that it is in.
fn built(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join(name);
    let mut make = Command::new("make");
    make.arg("--silent").arg("-C").arg(probe());
    make.arg(format!("OUT={}", folder.path().display()));
    // A debug build does as well, and is there sooner.
    let done = make.arg("CFLAGS=-O0").arg(&library).output();
    let done = done.expect("make starts");
    assert!(done.status.success(), "{done:?}");
    (folder, library)
}

/// The functions and variables that others can have from it; the linker's own are no names of C.
fn exported(library: &Path) -> Vec<String> {
    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only", "--format=posix"]);
    let done = nm.arg(library).output().expect("nm starts");
    assert!(done.status.success(), "{done:?}");
    let text = String::from_utf8(done.stdout).expect("utf-8");
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

/// The text of all headers below `folder`.
fn headers(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("headers") {
        let path = entry.expect("an entry").path();
        text += &match path.is_dir() {
            true => headers(&path),
            false => std::fs::read_to_string(&path).expect("a header"),
        };
    }
    text
}
