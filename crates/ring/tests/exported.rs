//! What the probe's library exports is what `packaging/abi` promises to programs that have it.

use std::path::Path;
use std::process::Command;

#[test]
fn the_probe_exports_what_is_promised() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("librtscope-probe.so.1");
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    let mut make = Command::new("make");
    make.arg("--silent").arg("-C").arg(&probe);
    make.arg(format!("OUT={}", folder.path().display()));
    // A debug build does as well, and is there sooner.
    let done = make
        .arg("CFLAGS=-O0")
        .arg(&library)
        .output()
        .expect("make starts");
    assert!(done.status.success(), "{done:?}");
    let headers = headers(&probe.join("include"));
    testkit::check_exported(&library, "librtscope-probe.so.1", &headers);
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
