//! The main promise, live: `rtscope demo` makes a task late in a random way, and what the watch
//! says of it is compared with what the culprits measured of themselves.
//!
//! `RTSCOPE_RUNS` runs with one hog, a quarter as many with two and with none; `RTSCOPE_SEED`
//! repeats them. A failed case keeps its snapshots and prints where they are.
//!
//! Who is *guilty* of a hit: a hog whose own `[start, stop]` overlaps the hit's activation. Who is
//! *innocent*: everybody else of the experiment, and any other task that is said to have run ahead
//! of the victim, because nobody else is real-time on that CPU. What the machine did itself
//! (interrupts, sections of the kernel, the hypervisor) may be named, after the guilty.

use std::process::Command;

use cli::demo::jack::SaidLine;
use cli::demo::part::Truth;
use serde_json::Value;
use tempfile::TempDir;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");
/// What lies between a hog's own clock reading and its switch, both ends, and the skew between
/// the two sources of instants.
const SKEW_NS: i64 = 30_000;
/// Why time before a timer's interrupt is unexplained.
const LATE_TIMER: &str = "a late timer without a stack";
/// How long jackd's own word may take to reach us on a machine that is busy otherwise.
const SAID_MAX_NS: i64 = 250_000_000;
/// Shorter runs and smaller shares need not be named beside a larger one.
const NAMED_MIN_NS: i64 = 500_000;
const NAMED_MIN_SHARE: f64 = 0.02;

/// One run: its folder survives a failure.
struct Case {
    folder: Option<TempDir>,
    words: Vec<String>,
}

impl Case {
    fn new(words: Vec<String>) -> Case {
        let folder = Some(tempfile::tempdir().expect("a folder"));
        Case { folder, words }
    }

    /// What the demo says, as JSON.
    fn run(&self) -> Value {
        let folder = self.folder.as_ref().expect("a folder");
        let output = Command::new(RTSCOPE)
            .args(["demo", "--json"])
            .args(&self.words)
            .current_dir(folder.path())
            .output()
            .expect("rtscope starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 3)),
            "{:?}: {stderr}",
            self.words
        );
        std::fs::write(folder.path().join("demo.json"), &output.stdout).expect("saved");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(folder) = self.folder.take()
        {
            let path = folder.keep();
            eprintln!(
                "kept in {}: rtscope demo {}",
                path.display(),
                self.words.join(" ")
            );
        }
    }
}

/// xorshift64: the runs differ, and a seed repeats them.
struct Random(u64);

impl Random {
    fn seeded() -> Random {
        let seed = std::env::var("RTSCOPE_SEED").ok();
        let seed = seed.and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) | 1);
        eprintln!("RTSCOPE_SEED={seed}");
        Random(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Names as people give them: with spaces, of 15 bytes, not ASCII, cut in a letter's middle.
    fn name(&mut self, role: &str) -> String {
        match self.below(6) {
            0 => format!("{role} two words"),
            1 => format!("{role:_<15}"),
            2 => format!("{role} Würfel µ"),
            3 => format!("{role}日本語テスト"),
            4 => format!("-{role}:/$'\""),
            _ => format!("{role}{}", self.below(1_000_000)),
        }
    }

    fn words(&mut self, faults: u8) -> Vec<String> {
        let cpus = capture::capabilities::gather().machine.cpus_allowed;
        let cpu = cpus[self.below(cpus.len() as u64) as usize];
        let mut words = vec![
            "hog".to_owned(),
            format!("--faults={faults}"),
            format!("--cpu={}", cpu.0),
            format!("--hog-ms={}", 1 + self.below(300)),
            format!("--hog-name={}", self.name("h1")),
            format!("--second-name={}", self.name("h2")),
            format!("--victim-name={}", self.name("v")),
        ];
        let decoys = ["--decoy-low", "--decoy-other-cpu"];
        words.extend(
            decoys
                .iter()
                .filter(|_| self.coin())
                .map(|word| (*word).to_owned()),
        );
        words
    }
}

fn ns(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("no integer: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A hit's own activation, with the verdict on it.
struct Late<'a> {
    activation: &'a Value,
    verdict: &'a Value,
}

impl<'a> Late<'a> {
    fn of(hit: &'a Value) -> Late<'a> {
        let diagnosis = &hit["diagnosis"];
        let activations = list(&diagnosis["activations"]);
        let is_this = |late: &Value| late["hit"]["id"] == hit["hit"]["id"];
        let place = activations.iter().position(is_this);
        let place = place.unwrap_or_else(|| panic!("the hit is not in its snapshot: {hit:#}"));
        let has_it = |group: &&Value| list(&group["members"]).contains(&place.into());
        let group = list(&diagnosis["groups"]).iter().find(has_it);
        let group = group.unwrap_or_else(|| panic!("the hit has no verdict: {diagnosis:#}"));
        Late {
            activation: &activations[place],
            verdict: &group["verdict"],
        }
    }

    fn latency_ns(&self) -> i64 {
        ns(&self.activation["latency_ns"])
    }

    fn terms(&self) -> &'a [Value] {
        list(&self.activation["ledger"]["terms"])
    }

    fn culprits(&self) -> &'a [Value] {
        list(&self.verdict["culprits"])
    }

    /// The part of the run of `hog` that lies inside the activation.
    fn overlap_ns(&self, hog: &Truth) -> i64 {
        let begin = (hog.start_ns as i64).max(ns(&self.activation["origin_ns"]));
        let end = (hog.stop_ns as i64).min(ns(&self.activation["end_ns"]));
        (end - begin).max(0)
    }

    /// The sum of the terms that `is_asked` picks.
    fn sum_ns(&self, is_asked: impl Fn(&Value) -> bool) -> i64 {
        let asked = self.terms().iter().filter(|term| is_asked(term));
        asked.map(|term| ns(&term["duration_ns"])).sum()
    }

    /// The terms are each named once, and add up to the latency to the nanosecond.
    fn check_ledger(&self) {
        assert_eq!(
            self.sum_ns(|_| true),
            self.latency_ns(),
            "{:#}",
            self.activation
        );
        let mut names: Vec<String> = self
            .terms()
            .iter()
            .map(|term| format!("{} on {}", term["text"], term["cpu"]))
            .collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(
            names.len(),
            count,
            "a term is there twice: {:#}",
            self.activation
        );
    }

    /// On a virtual machine, the time for which a timer's interrupt did not come is not counted:
    /// the host kept the whole CPU, and this kernel has no record of it.
    fn check_explained(&self, share_max: f64, least_ns: i64) {
        let mut unexplained_ns = ns(&self.activation["ledger"]["unexplained_ns"]);
        if capture::capabilities::gather().machine.virtualised {
            unexplained_ns -= self.sum_ns(|term| term["reason"] == LATE_TIMER);
        }
        let allowed_ns = ((self.latency_ns() as f64 * share_max) as i64).max(least_ns);
        assert!(
            unexplained_ns <= allowed_ns,
            "{unexplained_ns} ns: {:#}",
            self.activation
        );
    }

    /// The share of `hog` is its measured run inside the activation within 1 %; its clock does not
    /// see the interrupts in it, the ledger does.
    fn check_share(&self, hog: &Truth) {
        let overlap_ns = self.overlap_ns(hog);
        let pid = u64::from(hog.pid);
        let named_ns = self.sum_ns(|term| term["task"]["tid"] == pid);
        let handlers = ["nmi", "hardirq", "softirq"];
        let handlers_ns = self.sum_ns(|term| handlers.iter().any(|kind| term["kind"] == *kind));
        let allowed_ns = (overlap_ns / 100).max(SKEW_NS);
        let fits = named_ns <= overlap_ns + allowed_ns
            && named_ns + handlers_ns >= overlap_ns - allowed_ns;
        assert!(
            fits,
            "{named_ns} ns of {overlap_ns} ns, handlers {handlers_ns} ns, by {hog:?}: {:#}",
            self.activation["ledger"]
        );
    }
}

/// What one hit said of the hogs: how many of them it named.
fn check_hit(truth: &Value, hogs: &[Truth], hit: &Value) -> usize {
    let late = Late::of(hit);
    late.check_ledger();
    let mut guilty: Vec<&Truth> = hogs.iter().filter(|hog| late.overlap_ns(hog) > 0).collect();
    guilty.sort_by_key(|hog| -late.overlap_ns(hog));
    let is_guilty = |tid: &Value| guilty.iter().any(|hog| *tid == u64::from(hog.pid));
    let cast = list(&truth["decoys"]).iter().chain([&truth["victim"]]);
    let cast: Vec<&Value> = cast.map(|part| &part["pid"]).collect();
    for culprit in late.culprits() {
        let tid = &culprit["task"]["tid"];
        let innocent = cast.contains(&tid)
            || hogs.iter().any(|hog| *tid == u64::from(hog.pid))
            || culprit["kind"] == "run_queue_wait";
        assert!(
            is_guilty(tid) || !innocent,
            "innocent: {culprit:#}\n{truth:#}"
        );
    }
    let must_be_named = |hog: &&&Truth| {
        let overlap_ns = late.overlap_ns(hog);
        let share = overlap_ns as f64 / late.latency_ns() as f64;
        overlap_ns > NAMED_MIN_NS + SKEW_NS && share > NAMED_MIN_SHARE
    };
    let wanted: Vec<u64> = guilty
        .iter()
        .filter(must_be_named)
        .map(|hog| u64::from(hog.pid))
        .collect();
    let tids = late
        .culprits()
        .iter()
        .filter_map(|culprit| culprit["task"]["tid"].as_u64());
    let named: Vec<u64> = tids.filter(|tid| wanted.contains(tid)).collect();
    assert_eq!(
        named, wanted,
        "named in this order: {:#}",
        late.verdict["culprits"]
    );
    // Where the hog made most of it, it comes first and nearly nothing stays open.
    if let Some(first) = guilty
        .first()
        .filter(|hog| late.overlap_ns(hog) * 2 > late.latency_ns())
    {
        let named = &late.culprits()[0]["task"];
        assert_eq!(named["comm"], first.name.as_str(), "{truth:#}");
        late.check_explained(0.05, 0);
        guilty.iter().for_each(|hog| late.check_share(hog));
    }
    named.len()
}

/// Runs the demo with `faults` hogs; the largest number of hogs that one hit named.
fn named_in_one_hit(random: &mut Random, faults: u8) -> usize {
    let case = Case::new(random.words(faults));
    let said = case.run();
    let truth = &said["truth"];
    let hogs: Vec<Truth> = serde_json::from_value(truth["hogs"].clone()).expect("hogs");
    assert_eq!(hogs.len(), usize::from(faults), "{truth:#}");
    let hits = list(&said["hits"]);
    let named = hits
        .iter()
        .map(|hit| check_hit(truth, &hogs, hit))
        .max()
        .unwrap_or(0);
    assert!(faults == 0 || named > 0, "no hit names a hog: {truth:#}");
    if faults == 0 && !hits.is_empty() {
        eprintln!(
            "{} hits without a fault, of the machine's own doing",
            hits.len()
        );
    }
    if faults == 2 {
        // The second was let loose while the first ran, unless we were kept from our own CPU.
        assert!(
            named == 2 || hogs[1].start_ns > hogs[0].stop_ns + 1_000_000,
            "{truth:#}"
        );
    }
    named
}

#[test]
fn one_hog_is_named_first_with_its_run_time() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("one_hog_is_named_first_with_its_run_time") {
        return;
    }
    let mut random = Random::seeded();
    for _ in 0..testkit::runs(3) {
        named_in_one_hit(&mut random, 1);
    }
}

#[test]
fn two_hogs_are_named_in_their_order() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("two_hogs_are_named_in_their_order") {
        return;
    }
    let mut random = Random::seeded();
    let runs = testkit::runs(3).div_ceil(4);
    let both = (0..runs)
        .filter(|_| named_in_one_hit(&mut random, 2) == 2)
        .count();
    assert!(
        both as u32 * 4 >= runs * 3,
        "both named in {both} of {runs} runs"
    );
}

#[test]
fn without_a_hog_nobody_innocent_is_named() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("without_a_hog_nobody_innocent_is_named") {
        return;
    }
    let mut random = Random::seeded();
    for _ in 0..testkit::runs(3).div_ceil(4) {
        named_in_one_hit(&mut random, 0);
    }
}

#[test]
fn the_hog_that_made_jackd_late_is_named_beside_jackds_own_word() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("the_hog_that_made_jackd_late_is_named_beside_jackds_own_word") {
        return;
    }
    if capture::capabilities::gather().jackd_path.is_none() {
        let test = "the_hog_that_made_jackd_late_is_named_beside_jackds_own_word";
        return testkit::skip(test, "jackd is not installed");
    }
    let case = Case::new(vec!["jack".to_owned(), "--hog-name=an rr 60".to_owned()]);
    let said = case.run();
    let truth = &said["truth"];
    let hog: Truth = serde_json::from_value(truth["hog"].clone()).expect("a hog");
    let xruns: Vec<SaidLine> = serde_json::from_value(truth["xruns"].clone()).expect("lines");
    // Hits that the machine made itself may be there too; the hog must have no part in them.
    let hits = list(&said["hits"]);
    let met = |hit: &&Value| Late::of(hit).overlap_ns(&hog) > 0;
    let mut met_hits = hits.iter().filter(met);
    let (Some(hit), None) = (met_hits.next(), met_hits.next()) else {
        panic!("not one hit with the hog in it: {said:#}")
    };
    for other in hits.iter().filter(|hit| !met(hit)) {
        let culprits = Late::of(other).culprits();
        let named = culprits
            .iter()
            .any(|by| by["task"]["tid"] == u64::from(hog.pid));
        assert!(!named, "{culprits:#?}");
    }
    let late = Late::of(hit);
    late.check_ledger();
    late.check_explained(0.02, 5_000);
    late.check_share(&hog);
    assert_eq!(late.culprits()[0]["task"]["comm"], "an rr 60");
    assert_eq!(late.activation["task"]["comm"], "jackd");
    // An ordinary thread of jackd says it after the hit's end, when the machine lets it.
    let after_ns = |xrun: &SaidLine| xrun.time_ns as i64 - ns(&late.activation["end_ns"]);
    let at_once = |xrun: &&SaidLine| (0..SAID_MAX_NS).contains(&after_ns(xrun));
    assert!(xruns.iter().any(|xrun| at_once(&xrun)), "{truth:#}");
}
