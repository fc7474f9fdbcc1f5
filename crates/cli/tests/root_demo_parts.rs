//! The demo's processes on this machine: who delays whom, and that nobody is left behind. Needs
//! root for real-time priorities.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cli::demo::hog::{HogExperiment, HogOptions, HogTruth};
use cli::demo::jack::{JackExperiment, JackOptions};
use cli::demo::part::{Late, Truth};
use event::Cpu;

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_rtscope").into()
}

/// The last two CPUs: CPU 0 has the interrupts.
fn cpus() -> Option<(Cpu, Cpu)> {
    let mut cpus = capture::capabilities::gather().machine.cpus_allowed;
    Some((cpus.pop()?, cpus.pop()?))
}

fn run_hogs(hogs: &[(&str, u64)], decoys: bool) -> Option<HogTruth> {
    let (cpu, other_cpu) = cpus()?;
    let options = HogOptions {
        program: program(),
        cpu,
        other_cpu,
        victim_name: "parts-victim".into(),
        period_us: 5_000,
        hogs: hogs
            .iter()
            .map(|(name, length_us)| ((*name).to_owned(), *length_us))
            .collect(),
        decoy_low: decoys,
        decoy_other_cpu: decoys,
    };
    let mut experiment = HogExperiment::start(&options).expect("started");
    let hogs = experiment.provoke().expect("provoked");
    Some(experiment.finish(hogs).expect("finished"))
}

/// Whether an activation of the victim was due before `hog` was done, and ran only after it.
fn was_late_behind(truth: &HogTruth, hog: &Truth) -> bool {
    let behind = |late: &Late| late.due_ns < hog.stop_ns && late.ran_ns >= hog.stop_ns;
    truth.victim.late.iter().any(behind)
}

#[test]
fn the_victim_runs_again_only_after_the_hog() {
    let _alone = testkit::privileged();
    let Some(truth) = run_hogs(&[("parts-hog", 80_000)], true) else {
        return testkit::skip("the_victim_runs_again_only_after_the_hog", "one CPU");
    };
    let [hog] = &truth.hogs[..] else {
        panic!("{truth:?}")
    };
    assert!(hog.cpu_ns >= 80_000_000, "{hog:?}");
    assert!(was_late_behind(&truth, hog), "{truth:?}");
    assert_eq!(truth.decoys.len(), 2);
    assert!(
        truth.decoys.iter().all(|decoy| decoy.cpu_ns > 0),
        "{truth:?}"
    );
}

#[test]
fn the_second_hog_runs_behind_the_first() {
    let _alone = testkit::privileged();
    let hogs = [("parts-first", 60_000), ("parts-second", 30_000)];
    let Some(truth) = run_hogs(&hogs, false) else {
        return testkit::skip("the_second_hog_runs_behind_the_first", "one CPU");
    };
    let [first, second] = &truth.hogs[..] else {
        panic!("{truth:?}")
    };
    assert_eq!(
        (first.name.as_str(), second.name.as_str()),
        ("parts-first", "parts-second")
    );
    assert!(second.stop_ns > first.stop_ns, "{truth:?}");
    // One activation waited for both: due before the first was done, it ran after the second.
    let both = |late: &Late| late.due_ns < first.stop_ns && late.ran_ns >= second.stop_ns;
    assert!(truth.victim.late.iter().any(both), "{truth:?}");
}

#[test]
fn jackd_reports_an_xrun_when_the_hog_takes_its_cpu() {
    let _alone = testkit::privileged();
    let test = "jackd_reports_an_xrun_when_the_hog_takes_its_cpu";
    let facts = capture::capabilities::gather();
    let Some(jackd) = facts.jackd_path.clone() else {
        return testkit::skip(test, "jackd is not installed");
    };
    let Some((cpu, _)) = cpus() else {
        return testkit::skip(test, "one CPU");
    };
    let options = JackOptions {
        program: program(),
        jackd: jackd.into(),
        cpu,
        hog_name: "parts-rr60".into(),
    };
    let mut experiment = JackExperiment::start(&options).expect("started");
    let (pid, tid) = (experiment.jackd_pid(), experiment.victim_tid());
    let truth = experiment.provoke().expect("provoked");
    drop(experiment);
    assert!(
        i32::try_from(pid).is_ok_and(|pid| pid != tid),
        "the victim is a thread of its own"
    );
    // Half a second is many periods: jackd wakes up once, behind the hog, and says so once.
    assert_eq!(truth.xruns.len(), 1, "{truth:?}");
    assert!(truth.xruns[0].time_ns >= truth.hog.stop_ns, "{truth:?}");
    assert!(
        !std::path::Path::new(&format!("/proc/{pid}")).exists(),
        "jackd is left"
    );
}

#[test]
fn a_part_dies_with_its_parent_even_by_sigkill() {
    let _alone = testkit::privileged();
    let Some((cpu, _)) = cpus() else {
        return testkit::skip("a_part_dies_with_its_parent_even_by_sigkill", "one CPU");
    };
    let folder = tempfile::tempdir().expect("a folder");
    // The shell is the parent: it starts a part that would run for a minute (its stdin is a pipe
    // that stays open), sees it alive, and kills itself.
    let script = format!(
        "cd {}; mkfifo pipe; exec 3<>pipe; \
         {} demo-part busy --name parts-orphan --cpu {} --parent $$ <&3 & \
         until pgrep -x parts-orphan; do sleep 0.01; done; kill -9 $$",
        folder.path().display(),
        program().display(),
        cpu.0
    );
    let mut shell = Command::new("timeout");
    shell
        .args(["20", "bash", "-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = shell.status().expect("bash starts");
    // `timeout` ends as its child did; on time-out it would end with a code instead.
    assert_eq!(status.signal(), Some(9), "the part was never seen alive");
    for _ in 0..200 {
        let orphans = Command::new("pgrep").args(["-x", "parts-orphan"]).output();
        if !orphans.expect("pgrep starts").status.success() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("a part outlives its parent");
}
