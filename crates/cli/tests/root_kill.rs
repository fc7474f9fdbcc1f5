//! A demo killed by SIGKILL at random moments: its processes die with it, and `doctor --clean`
//! leaves tracefs as it was before.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::Leftovers;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// Whether a task called `name` lives; one that is dead and not yet reaped does not.
fn lives(name: &str) -> bool {
    let output = Command::new("ps")
        .args(["-eo", "stat=,comm="])
        .output()
        .expect("ps starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .any(|line| line.trim_end().ends_with(name) && !line.trim_start().starts_with('Z'))
}

fn kill_after(delay: Duration, folder: &Path) {
    let mut demo = Command::new(RTSCOPE);
    demo.args([
        "demo",
        "hog",
        "--hog-name",
        "kill-hog",
        "--victim-name",
        "kill-victim",
    ]);
    demo.current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut demo = demo.spawn().expect("rtscope starts");
    std::thread::sleep(delay);
    demo.kill().expect("killed");
    demo.wait().expect("reaped");
}

#[test]
fn what_a_killed_run_leaves_is_removed() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let before = Leftovers::before(Path::new(RTSCOPE));
    let mut delay_ms = u64::from(std::process::id()) % 97;
    for _ in 0..testkit::runs(10) {
        // Spread over the life of a demo, which lasts about a second.
        delay_ms = (delay_ms + 137) % 1000;
        kill_after(Duration::from_millis(delay_ms), folder.path());
        let mut patience = 500;
        while lives("kill-hog") || lives("kill-victim") {
            patience -= 1;
            assert!(
                patience > 0,
                "a part outlives its demo, killed after {delay_ms} ms"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        before.check_removed(folder.path(), delay_ms);
    }
}
