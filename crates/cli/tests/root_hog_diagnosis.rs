//! The main promise on this kernel: a recording of a delay names who made it, and nobody else.
//! Random lengths, names and decoys; repeated `RTSCOPE_RUNS` times.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capture::{RecordConfig, record};
use cli::demo::hog::{HogExperiment, HogOptions, HogTruth};
use cli::demo::part::Truth;
use diagnosis::{Diagnosis, LateActivation, Query, TaskFilter, TermKind, diagnose};
use event::{Duration, Instant, Tid};
use trace::Trace;

/// The skew between a part's own clock readings and the kernel's events, and what the part does
/// between a reading and the event: far below this, far above noise.
const SKEW: Duration = Duration::from_ms(1);

/// xorshift64: the runs differ, and a seed repeats them.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn name(&mut self) -> String {
        let length = 3 + self.below(10);
        (0..length)
            .map(|_| char::from(b'a' + self.below(26) as u8))
            .collect()
    }
}

fn options(random: &mut Random, faults: usize) -> HogOptions {
    let mut cpus = capture::capabilities::gather().machine.cpus_allowed;
    assert!(cpus.len() >= 2, "two CPUs are needed");
    let cpu = cpus.swap_remove(random.below(cpus.len() as u64) as usize);
    let lengths_us = [1_000 + random.below(299_000), 1_000 + random.below(99_000)];
    HogOptions {
        program: PathBuf::from(env!("CARGO_BIN_EXE_rtscope")),
        cpu,
        other_cpu: cpus[0],
        victim_name: format!("v{}", random.name()),
        period_us: 5_000,
        hogs: lengths_us[..faults]
            .iter()
            .map(|us| (format!("h{}", random.name()), *us))
            .collect(),
        decoy_low: random.below(2) == 1,
        decoy_other_cpu: random.below(2) == 1,
    }
}

/// Runs the experiment under a recording and diagnoses the victim's activations over 500 us.
fn run(options: &HogOptions) -> (HogTruth, Diagnosis) {
    let folder = tempfile::tempdir().expect("a folder");
    let stop = Arc::new(AtomicBool::new(false));
    let config = RecordConfig {
        stop: stop.clone(),
        ..RecordConfig::new(folder.path().join("t"))
    };
    let recording = std::thread::spawn(move || {
        let facts = capture::capabilities::gather();
        let summary = record(&config, &facts, "test").expect("recorded");
        assert_eq!(summary.lost(), 0, "{summary:?}");
        summary.path
    });
    wait_for_recording(folder.path());
    let mut experiment = HogExperiment::start(options).expect("started");
    let tid = Tid(experiment.victim_pid() as i32);
    let hogs = experiment.provoke().expect("provoked");
    let truth = experiment.finish(hogs).expect("finished");
    stop.store(true, Ordering::Release);
    let path = recording.join().expect("recorded");
    let tasks = TaskFilter::from(tid);
    let threshold = Some(Duration::from_us(500));
    let query = Query {
        tasks,
        threshold,
        worst: 0,
        ..Query::default()
    };
    let diagnosis = diagnose(&Trace::open(path).expect("opens"), &query).expect("diagnosed");
    (truth, diagnosis)
}

/// Waits until the first stream of the recording is there: events have been coming in by then.
fn wait_for_recording(folder: &Path) {
    let kernel = folder
        .join(format!(".t.partial-{}", std::process::id()))
        .join("kernel");
    for _ in 0..1000 {
        let streams = std::fs::read_dir(&kernel).map_or(0, Iterator::count);
        if streams > 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no recording in {}", kernel.display());
}

fn waits(activation: &LateActivation) -> impl Iterator<Item = (&str, Duration)> {
    activation
        .ledger
        .terms
        .iter()
        .filter_map(|term| match &term.kind {
            TermKind::RunQueueWait { behind } => Some((behind.comm.as_str(), term.duration)),
            _ => None,
        })
}

/// The activation that was due before `hog` was done and ended after it.
fn behind<'a>(diagnosis: &'a Diagnosis, hog: &Truth) -> Option<&'a LateActivation> {
    let stop = Instant::from_ns(hog.stop_ns as i64);
    diagnosis
        .activations
        .iter()
        .find(|late| late.origin < stop && late.end + SKEW > stop)
}

fn check_ledgers(diagnosis: &Diagnosis) {
    for activation in &diagnosis.activations {
        let sum: Duration = activation
            .ledger
            .terms
            .iter()
            .map(|term| term.duration)
            .sum();
        assert_eq!(sum, activation.latency(), "{activation:#?}");
    }
}

/// Checks that `hog` is named, with its run time as its share: from the activation's due time or
/// the hog's start, whichever is later.
fn check_named(diagnosis: &Diagnosis, hog: &Truth) {
    let Some(late) = behind(diagnosis, hog) else {
        panic!("{hog:?} in {diagnosis:#?}")
    };
    let start = late.origin.max(Instant::from_ns(hog.start_ns as i64));
    let delay = Instant::from_ns(hog.stop_ns as i64) - start;
    let named: Duration = waits(late)
        .filter(|(comm, _)| *comm == hog.name)
        .map(|(_, wait)| wait)
        .sum();
    // Interrupts in the hog's time are terms of their own.
    let is_handler = |kind: &TermKind| {
        matches!(
            kind,
            TermKind::Hardirq { .. } | TermKind::Softirq { .. } | TermKind::Nmi
        )
    };
    let terms = late.ledger.terms.iter();
    let handlers: Duration = terms
        .filter(|term| is_handler(&term.kind))
        .map(|term| term.duration)
        .sum();
    let allowed = Duration::from_ns((delay.as_ns() / 100).max(SKEW.as_ns()));
    assert!(
        named <= delay + allowed && named + handlers + allowed >= delay,
        "{named} of {delay} by {hog:?} in {late:#?}"
    );
}

fn check_nobody_innocent(truth: &HogTruth, diagnosis: &Diagnosis) {
    let guilty = |comm: &str| truth.hogs.iter().any(|hog| hog.name == comm);
    for decoy in &truth.decoys {
        // Before it was real-time, the victim was a fair task among others, decoys included.
        let real_time = |place: &usize| diagnosis.activations[*place].task.prio.is_real_time();
        let accused = diagnosis
            .groups
            .iter()
            .filter(|group| group.members.first().is_some_and(real_time))
            .flat_map(|group| &group.verdict.culprits);
        for culprit in accused {
            // What is said of the kernel's way in a task's name (no preemption point) can be true
            // of a decoy: it happened to be there.
            let TermKind::RunQueueWait { behind } = &culprit.kind else {
                continue;
            };
            let is_decoy = behind.comm.as_str() == decoy.name;
            assert!(
                !is_decoy || guilty(&decoy.name),
                "{truth:?}\n{diagnosis:#?}"
            );
        }
    }
}

fn seed() -> Random {
    let seed = std::env::var("RTSCOPE_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) | 1);
    eprintln!("RTSCOPE_SEED={seed}");
    Random(seed)
}

#[test]
fn one_hog_is_named_with_its_run_time() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("one_hog_is_named_with_its_run_time") {
        return;
    }
    let mut random = seed();
    for _ in 0..testkit::runs(5) {
        // Longer than the victim's period: some activation surely waits.
        let mut options = options(&mut random, 1);
        options.hogs[0].1 = options.hogs[0].1.max(10_000);
        let (truth, diagnosis) = run(&options);
        check_ledgers(&diagnosis);
        check_named(&diagnosis, &truth.hogs[0]);
        check_nobody_innocent(&truth, &diagnosis);
    }
}

#[test]
fn two_hogs_are_both_named() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("two_hogs_are_both_named") {
        return;
    }
    let mut random = seed();
    for _ in 0..testkit::runs(5).div_ceil(4) {
        let mut options = options(&mut random, 2);
        for hog in &mut options.hogs {
            hog.1 = hog.1.max(10_000);
        }
        let (truth, diagnosis) = run(&options);
        check_ledgers(&diagnosis);
        for hog in &truth.hogs {
            check_named(&diagnosis, hog);
        }
        check_nobody_innocent(&truth, &diagnosis);
    }
}

#[test]
fn without_a_hog_no_hog_is_named() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("without_a_hog_no_hog_is_named") {
        return;
    }
    let mut random = seed();
    for _ in 0..testkit::runs(5).div_ceil(4) {
        let (truth, diagnosis) = run(&options(&mut random, 0));
        check_ledgers(&diagnosis);
        check_nobody_innocent(&truth, &diagnosis);
        assert!(truth.victim.activations > 0, "{truth:?}");
    }
}
