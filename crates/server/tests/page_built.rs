//! The page is built beside its sources, which are not touched here. Needs Node.js with the
//! packages of `ui/`; no privilege.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// A copy of what the page is built from.
fn copied(from: &Path, to: &Path) {
    std::fs::create_dir(to.join("src")).expect("a folder");
    for file in std::fs::read_dir(from.join("src")).expect("sources") {
        let file = file.expect("a name");
        std::fs::copy(file.path(), to.join("src").join(file.file_name())).expect("copied");
    }
    for name in ["build.mjs", "package.json", "tsconfig.json"] {
        std::fs::copy(from.join(name), to.join(name)).expect(name);
    }
    symlink(from.join("node_modules"), to.join("node_modules")).expect("linked");
}

#[test]
fn what_is_built_anew_and_is_the_same_stays_as_old_as_it_is() {
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    let ui = ui.canonicalize().expect("it is there");
    let has_node = Command::new("node").arg("--version").output().is_ok();
    if !has_node || !ui.join("node_modules/esbuild").exists() {
        return testkit::skip(
            "page_built",
            "no Node.js with the packages of ui/ (make ui)",
        );
    }
    let place = tempfile::tempdir().expect("a folder");
    copied(&ui, place.path());
    let build = || {
        let mut built = Command::new("node");
        built.arg("build.mjs").current_dir(place.path());
        assert!(built.status().expect("it starts").success());
    };
    build();
    let (page, script) = (
        place.path().join("dist/index.html"),
        place.path().join("dist/app.js"),
    );
    let past = SystemTime::UNIX_EPOCH;
    for path in [&page, &script] {
        let file = std::fs::File::options().append(true).open(path);
        file.and_then(|file| file.set_modified(past))
            .expect("set back");
    }
    let is_old = |path: &Path| {
        std::fs::metadata(path)
            .expect("built")
            .modified()
            .expect("a time")
            == past
    };
    std::fs::write(place.path().join("src/index.html"), "another").expect("written");
    build();
    assert!(is_old(&script), "what is the same was written");
    assert!(!is_old(&page), "what changed was not written");
    assert_eq!(std::fs::read_to_string(&page).expect("text"), "another");
}
