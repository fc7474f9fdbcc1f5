//! The published experiment as LTTng recorded it: a hog at RR 60 starves a sound card's interrupt
//! thread. The waits are those that lttng-schedtop printed for the same trace. Needs
//! RTSCOPE_CORPUS.

use std::path::{Path, PathBuf};
use std::process::Command;

use diagnosis::{Diagnosis, Query, TaskFilter, diagnose};
use trace::Trace;

/// Unpacks the trace into `into`; none when there is no corpus here.
fn unpack(into: &Path) -> Option<PathBuf> {
    let corpus = PathBuf::from(std::env::var_os("RTSCOPE_CORPUS")?);
    let archive = corpus.join("lab/jack-rt61-lttng-snapshot.tar.xz");
    let inside = "jack-rt61-lttng-snapshot/trace/xrun";
    let unpacked = Command::new("tar")
        .arg("-xJf")
        .arg(&archive)
        .arg("-C")
        .arg(into)
        .arg(inside)
        .status();
    assert!(
        unpacked.is_ok_and(|status| status.success()),
        "tar -xJf {}",
        archive.display()
    );
    Some(into.join(inside))
}

fn ask(trace: &Trace, task: &str) -> Diagnosis {
    let tasks = TaskFilter::parse(&[task]).expect("names tasks");
    let query = Query {
        tasks,
        worst: 1,
        ..Query::default()
    };
    diagnose(trace, &query).expect("the trace can be diagnosed")
}

#[test]
fn the_waits_are_those_of_lttng_schedtop_and_the_hog_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the trace");
    let Some(path) = unpack(folder.path()) else {
        return testkit::skip("corpus_jack", "RTSCOPE_CORPUS is not set");
    };
    let trace = Trace::open(path).expect("the trace opens");
    let check = |task: &str, wait_us: i64| {
        let diagnosis = ask(&trace, task);
        let late = &diagnosis.activations[0];
        let wakes = |step: &&diagnosis::Step| step.kind == diagnosis::StepKind::Waking;
        let woken = late.steps.iter().rfind(wakes).expect("it was woken");
        assert_eq!((late.end - woken.time).as_ns() / 1_000, wait_us, "{task}");
        let verdict = diagnosis.verdict().expect("it was late");
        let culprit = verdict.culprits[0].kind.task().expect("a task is named");
        assert_eq!(
            (culprit.comm.as_str(), culprit.prio.rt()),
            ("cpuburn", Some(60)),
            "{task}"
        );
        assert!(
            verdict.conclusive && late.ledger.is_good(),
            "{}",
            verdict.sentence
        );
        assert!(verdict.culprits[0].share > 0.98);
    };
    check("ksoftirqd/0", 518_236);
    check("rcuc/0", 514_959);
    check("ktimers/0", 514_870);
    check("irq/24-snd*", 512_147);
    let jackd = ask(&trace, "jackd");
    let steps: Vec<_> = jackd.activations[0]
        .steps
        .iter()
        .map(|s| s.comm.as_str())
        .collect();
    assert!(
        steps.contains(&"irq/24-snd_hda_"),
        "its chain leads through the interrupt's thread"
    );
    let culprit = jackd
        .verdict()
        .and_then(|verdict| verdict.culprits[0].kind.task());
    assert_eq!(culprit.map(|task| task.comm.as_str()), Some("cpuburn"));
}
