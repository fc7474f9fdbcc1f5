//! A folder of rings that is none, or holds none, is named in the error, with what it is instead.
//! Needs no privilege.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

/// Who reads our standard error of a command that must fail, in the folder `home`.
fn error(home: &Path, words: &[&str], rings: Option<&str>) -> String {
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    rtscope.current_dir(home).args(words);
    rtscope.env_remove("RTSCOPE_DIR");
    rtscope.envs(rings.map(|rings| ("RTSCOPE_DIR", rings)));
    let output = rtscope.output().expect("rtscope starts");
    assert_eq!(output.status.code(), Some(1), "{words:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// By the flag and by the variable, for who looks and for who recovers.
fn check_looks(home: &Path, rings: &str, expect: &[&str]) {
    for verb in ["snapshot", "recover"] {
        let flag = error(home, &[verb, "--rings", rings], None);
        let variable = error(home, &[verb], Some(rings));
        assert_eq!(flag, variable);
        check(&flag, expect);
    }
}

/// For who records into a folder that the variable names.
fn check_record(home: &Path, rings: &str, expect: &[&str]) {
    for words in [&["record"][..], &["record", "--flight"]] {
        let words = [words, &["--user", "x:*", "--duration", "1ms"]].concat();
        check(&error(home, &words, Some(rings)), expect);
    }
}

fn check(error: &str, expect: &[&str]) {
    assert!(error.contains("\n  fix:  "), "{error}");
    for part in expect {
        assert!(error.contains(part), "no '{part}' in\n{error}");
    }
    assert!(
        error.starts_with("error: "),
        "nothing began before: {error}"
    );
}

#[test]
fn a_folder_of_rings_that_is_not_there_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    let expect = [
        "no folder of rings: away/rings\n",
        "found: no such directory",
    ];
    check_looks(home.path(), "away/rings", &expect);
    // A recorder makes it, but not what is above it.
    let expect = [
        "folder of rings away/rings\n",
        "found: no such directory: away\n",
        "fix:  mkdir -p away\n",
    ];
    check_record(home.path(), "away/rings", &expect);
}

#[test]
fn a_file_and_a_link_are_no_folder_of_rings() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("file"), "").expect("a file");
    symlink("rings", home.path().join("link")).expect("a link");
    for (rings, found) in [
        ("file", "found: a file, no directory"),
        ("link", "fix:  name what it leads to: rings\n"),
    ] {
        let expect = [&format!("no folder of rings: {rings}\n")[..], found];
        check_looks(home.path(), rings, &expect);
        check_record(home.path(), rings, &expect);
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named_with_what_to_do_instead() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("file"), "").expect("a file");
    let fix = "fix:  let RTSCOPE_DIR name another folder, here and for the applications\n";
    let expect = ["folder of rings file/rings\n", "file is no directory", fix];
    check_record(home.path(), "file/rings", &expect);
    check_looks(
        home.path(),
        "file/rings",
        &["what is above it is a file, no directory"],
    );
    // Nobody makes folders there.
    check_record(
        home.path(),
        "/sys/rings",
        &["cannot make /sys/rings\n", fix],
    );
}

#[test]
fn a_folder_that_others_may_write_to_is_refused_with_what_fixes_it() {
    let home = tempfile::tempdir().expect("a folder");
    let rings = home.path().join("rings");
    std::fs::create_dir(&rings).expect("a folder");
    std::fs::set_permissions(&rings, PermissionsExt::from_mode(0o777)).expect("open to all");
    let expect = ["rings is not to be trusted", "mode 777", "chmod u+rwx,go-w"];
    check_looks(home.path(), "rings", &expect);
    check_record(home.path(), "rings", &expect);
    std::fs::set_permissions(&rings, PermissionsExt::from_mode(0o700)).expect("ours alone");
    match chown(&rings, Some(4321), None) {
        Ok(()) => check_looks(
            home.path(),
            "rings",
            &["owner 4321", "sudo -u '#4321' rtscope"],
        ),
        Err(error) => testkit::skip(
            "a_folder_that_others_may_write_to_is_refused_with_what_fixes_it",
            &format!("its half about another's folder: {error}"),
        ),
    }
}

#[test]
fn a_folder_without_rings_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(home.path().join("rings")).expect("a folder");
    let expect = ["error: no rings\n", "found: no file rings-* in rings\n"];
    check_looks(home.path(), "rings", &expect);
}
