//! What `make` hands on to those that it starts, and what it leaves behind.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a chore of the Makefile with a cargo that only says what flags of make it was given.
fn flags_that_cargo_sees(chore: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = std::env::temp_dir().join(format!("rtscope-makefile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let cargo = folder.join("cargo");
    std::fs::write(&cargo, "#!/bin/sh\necho \"flags: $MAKEFLAGS\"\n").expect("a cargo");
    std::fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).expect("a mode");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("make")
        .args(["--old-file=deps", "--old-file=ui", chore])
        .args(["DESTDIR=/elsewhere", "PREFIX=/usr"])
        .env("PATH", format!("{}:{path}", folder.display()))
        .current_dir(root)
        .output();
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    String::from_utf8_lossy(&output.expect("make starts").stdout).into_owned()
}

#[test]
fn libraries_that_cargo_builds_are_not_installed_where_the_program_will_be() {
    let check = |chore: &str| {
        let seen = flags_that_cargo_sees(chore);
        let mut flags = seen.lines().filter(|line| line.starts_with("flags:"));
        let flags = flags.next().unwrap_or_else(|| panic!("no cargo: {seen}"));
        assert!(!flags.contains("DESTDIR"), "{chore}: {flags}");
    };
    check("build");
    check("static");
}

/// All below a folder that is ours: files, and folders that no other package has.
fn ours(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_own = name == ".debug" || name.to_string_lossy().contains("rtscope");
        match path.is_dir() && !is_own {
            true => found.extend(ours(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn what_is_uninstalled_leaves_neither_a_file_nor_a_folder_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = std::env::temp_dir().join(format!("rtscope-installed-{}", std::process::id()));
    let make = |chore: &str| {
        let mut make = Command::new("make");
        make.args(["--old-file=build", chore]).current_dir(&root);
        // Any program will do: the pages that it does not print are empty.
        make.arg("RTSCOPE=/bin/true").arg("PREFIX=/usr/local");
        make.arg(format!("DESTDIR={}", folder.display()));
        let output = make.output().expect("make starts");
        assert!(output.status.success(), "{chore}: {output:?}");
    };
    make("install");
    let installed = ours(&folder);
    make("uninstall");
    let left = ours(&folder);
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    assert!(installed.len() > 5, "{installed:?}");
    assert_eq!(left, Vec::<PathBuf>::new());
}
