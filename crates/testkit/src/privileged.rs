//! One privileged test at a time: tracefs, BPF statistics and real-time priorities are global.

use std::fs::{File, OpenOptions};
use std::io::Write;

use rustix::fs::FlockOperation;

/// The lock file; `cargo xtask lock` takes the same one.
const LOCK_PATH: &str = "/run/lock/rtscope-privileged.lock";
/// Set by a parent that holds the lock for us.
const LOCK_HELD: &str = "RTSCOPE_PRIVILEGED_LOCK_HELD";
/// Where skipped tests are listed for the last lines of `make test`.
const SKIPS: &str = "RTSCOPE_SKIPS";
/// How often a repeated test repeats.
const RUNS: &str = "RTSCOPE_RUNS";
/// `RTSCOPE_RUNS` of `make test-all`.
const RUNS_OF_ALL: u32 = 200;

/// The right to use tracefs, BPF and real-time priorities until it is dropped.
pub struct Privileged {
    _lock: Option<File>,
}

/// Waits for the privileged lock of this machine.
///
/// # Panics
/// When the process is not root, or the lock cannot be opened: such a test must fail, not pass
/// without having looked.
#[must_use = "the lock is free again when the guard is dropped"]
pub fn privileged() -> Privileged {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test needs root: sudo make test"
    );
    if std::env::var_os(LOCK_HELD).is_some() {
        // The parent holds it for the whole run, which runs one test at a time.
        return Privileged { _lock: None };
    }
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(LOCK_PATH);
    let file = file.unwrap_or_else(|error| panic!("cannot open {LOCK_PATH}: {error}"));
    rustix::fs::flock(&file, FlockOperation::LockExclusive)
        .unwrap_or_else(|error| panic!("cannot lock {LOCK_PATH}: {error}"));
    Privileged { _lock: Some(file) }
}

/// Says that `test` cannot run on this machine, and why; `make test` lists it at its end. The
/// caller returns at once.
pub fn skip(test: &str, why: &str) {
    eprintln!("skipped: {test}: {why}");
    let Some(path) = std::env::var_os(SKIPS) else {
        return;
    };
    let file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{test}: {why}"));
    assert!(
        written.is_ok(),
        "cannot list the skipped test {test}: {written:?}"
    );
}

/// Whether two CPUs are open to this process, one for a hog and one for those who look on; where
/// not, `test` is listed as skipped.
///
/// # Panics
/// When the kernel does not say.
pub fn two_cpus(test: &str) -> bool {
    let open = rustix::thread::sched_getaffinity(None).expect("our CPUs");
    let enough = open.count() >= 2;
    if !enough {
        skip(test, "one CPU");
    }
    enough
}

/// How often a repeated test runs: `RTSCOPE_RUNS`, else `default`.
pub fn runs(default: u32) -> u32 {
    std::env::var(RUNS)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Whether this is the long run, `make test-all`.
pub fn is_all() -> bool {
    runs(0) >= RUNS_OF_ALL
}

/// Those of `cases` that the run has time for: all of them in `make test-all`, and the first `core`
/// of them else.
pub fn core_of<T>(cases: &[T], core: usize) -> &[T] {
    match is_all() {
        true => cases,
        false => &cases[..core.min(cases.len())],
    }
}

/// Whether there is time for a test of many seconds that is no part of `make test`; where not,
/// `test` is listed as skipped.
pub fn long(test: &str) -> bool {
    if !is_all() {
        skip(test, "it takes long: make test-all runs it");
    }
    is_all()
}
