//! What `make` hands on to those that it starts.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
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
