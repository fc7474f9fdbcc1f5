//! SIGHUP to a monitor: the interval that is open loses nothing, whatever the settings say then.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use monitor::{Interval, Range, Run, Store};

/// A monitor with settings in a file, until it is dropped.
struct Running {
    child: Child,
    said: std::io::Lines<BufReader<std::process::ChildStderr>>,
    settings: PathBuf,
}

impl Running {
    fn start(settings: &Path) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        command.args(["monitor", "--config"]).arg(settings);
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = child.spawn().expect("it starts");
        let said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut running = Running {
            child,
            said,
            settings: settings.to_owned(),
        };
        running.wait_for("an interval every");
        running
    }

    fn wait_for(&mut self, words: &str) {
        let found = self
            .said
            .find(|line| line.as_ref().is_ok_and(|line| line.contains(words)));
        assert!(found.is_some(), "it ended without '{words}'");
    }

    /// Other settings, and what it says of them.
    fn reload(&mut self, text: &str, words: &str) {
        std::fs::write(&self.settings, text).expect("written");
        self.signal("-HUP");
        self.wait_for(words);
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_reload_closes_the_open_interval_only_where_something_else_is_counted() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let settings = folder.path().join("monitor.toml");
    let store = folder.path().join("monitor.db");
    let text = |more: &str| format!("store = '{}'\n{more}", store.display());
    let intervals = || {
        let store = Store::open(&store).expect("a store");
        let mut all: Vec<(i64, Interval)> = Vec::new();
        let read = store.read(Range::ALL, |run, interval| {
            all.push((run, interval));
            Ok(())
        });
        read.expect("it reads");
        let runs: Vec<(i64, Run)> = store.runs().expect("runs");
        (all, runs)
    };
    std::fs::write(&settings, text("every = '1h'")).expect("written");
    let mut running = Running::start(&settings);
    running.reload(&text("every = '2h'"), "settings read again");
    assert_eq!(intervals().0.len(), 0, "it is still open");
    running.reload(
        &text("every = '2h'\nevry = 1"),
        "the settings stay as they were",
    );
    assert_eq!(intervals().0.len(), 0, "it is still open");
    running.reload(&text("every = '2h'\nall = true"), "settings read again");
    let (first, _) = intervals();
    assert_eq!(first.len(), 1, "other tasks are counted from now on");
    running.signal("-INT");
    running.wait_for("intervals closed");
    let (all, runs) = intervals();
    let of: Vec<i64> = all.iter().map(|(run, _)| *run).collect();
    assert_eq!((of, runs.len()), (vec![1, 2], 2));
    assert_eq!((runs[0].1.all(), runs[1].1.all()), (false, true));
    // Nothing is counted in both.
    assert!(all[1].1.head.begin_ns >= all[0].1.head.end_ns);
}

#[test]
fn settings_that_are_read_again_put_off_no_end_of_an_interval() {
    const READ_AGAIN_EVERY: std::time::Duration = std::time::Duration::from_millis(300);
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let settings = folder.path().join("monitor.toml");
    let path = folder.path().join("monitor.db");
    let text = format!("store = '{}'\nevery = '1s'\n", path.display());
    std::fs::write(&settings, &text).expect("written");
    let mut running = Running::start(&settings);
    let closed = (0..20).any(|_| {
        // That is what is tested: it comes before an interval is over.
        std::thread::sleep(READ_AGAIN_EVERY);
        running.reload(&text, "settings read again");
        let heads = Store::open(&path).and_then(|store| store.heads());
        !heads.expect("a store").is_empty()
    });
    assert!(closed, "twenty times, and no interval was closed");
}
