//! One recording of this kernel tells every verb the same: a table of verbs and quantities
//! (docs/one-truth.md). A twentieth of `RTSCOPE_RUNS` recordings, ten in `make test-all`; one else.

mod verbs_agree;

use std::process::{Child, Command, Stdio};

use verbs_agree::{check, rtscope};

const RUNS: &str = "RTSCOPE_RUNS";
/// Other tests repeat what takes milliseconds; a recording takes a second.
const RUNS_FOR_ONE: u32 = 20;

/// Programs that sleep, wake and end, until it is dropped.
struct Load(Child);

impl Load {
    fn start() -> Load {
        let mut shell = Command::new("timeout");
        let sleepers =
            "while :; do sleep 0.002; done & while :; do ls / >/dev/null; sleep 0.01; done";
        shell.args(["60", "sh", "-c", sleepers]);
        Load(shell.stdout(Stdio::null()).spawn().expect("a load"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // `timeout` hands the signal on to all that it started.
        let id = self.0.id().to_string();
        let _ = Command::new("kill").arg(id).status();
        let _ = self.0.wait();
    }
}

#[test]
fn every_verb_tells_the_same_of_one_recording_of_this_kernel() {
    let _guard = testkit::privileged();
    let asked = std::env::var(RUNS).ok().and_then(|runs| runs.parse().ok());
    let runs = asked.unwrap_or(1u32) / RUNS_FOR_ONE;
    for _ in 0..runs.max(1) {
        let dir = tempfile::tempdir().expect("a folder");
        let trace = dir.path().join("trace");
        let load = Load::start();
        let words = ["record", "--task", "*", "--duration", "1s", "-o"];
        let recorded = rtscope(&words, &trace);
        drop(load);
        let said =
            String::from_utf8_lossy(&recorded.stdout) + String::from_utf8_lossy(&recorded.stderr);
        assert_eq!(recorded.status.code(), Some(0), "{said}");
        println!("{:?}", check(&trace, &said));
    }
}
