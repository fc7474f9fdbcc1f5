//! What a monitor says when it ends.

use std::process::Command;
use std::time::Duration;

/// The number in front of `words` in a text.
fn before<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.contains(words))?;
    line.split(words).next()?.split_whitespace().last()
}

#[test]
fn the_last_words_have_all_intervals_of_the_run_and_all_scopes() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    // Somebody who comes on a CPU all the time.
    let naps = || (0..1000).for_each(|_| std::thread::sleep(Duration::from_millis(5)));
    let sleeper = std::thread::Builder::new().name("scope-sleeper".to_owned());
    sleeper.spawn(naps).expect("a thread");
    let mut monitor = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    monitor.args(["monitor", "--every", "1s", "--for", "3500ms", "--all"]);
    monitor.args(["--task", "scope-sleeper", "--store", "m.db"]);
    let ended = monitor.current_dir(folder.path()).output();
    let ended = ended.expect("it starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let told = String::from_utf8_lossy(&ended.stdout);

    let closed = before(&said, " intervals closed");
    assert_eq!(closed, Some("4"), "{said}");
    assert_eq!(before(&told, " intervals from"), closed, "{told}");
    for scope in ["all", "named"] {
        let has = told.lines().any(|line| line.starts_with(scope));
        assert!(has, "{scope}: {told}");
    }
}
