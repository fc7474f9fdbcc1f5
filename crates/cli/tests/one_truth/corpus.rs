//! The same claims about recordings of real kernels, whole and damaged. Needs RTSCOPE_CORPUS.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use diagnosis::{Diagnosis, Grade, Query, TaskFilter, diagnose};
use event::TimeRange;
use testkit::Corpus;
use trace::{EventView, Item, Trace};

use crate::answers::{Answer, Answers, Told};
use crate::damage::{Damage, Kind, Opened};
use crate::prove::{Claim, at_most};
use crate::{adds_up, agree};

/// Recordings of kernels that are no CTF: files, or directories of pages, from an archive's root
/// on.
const OTHERS: [(&str, &[&str]); 3] = [
    ("lab/jack-rt612-trace.dat.tar.xz", &["trace.dat"]),
    ("lab/jack-rt612-single-ftrace.tar.xz", &[""]),
    ("lab/memcached-rt612-ftrace.tar.xz", &[""]),
];
/// A recording is damaged at so many places, each time anew.
const DAMAGES: usize = 5;
/// Larger recordings are damaged less often: each time is a walk or two.
const DAMAGED_EVENTS_MAX: usize = 400_000;

type OnDiskClaim = fn(&OnDisk) -> Claim;

const CLAIMS: [(&str, OnDiskClaim); 10] = [
    (
        "states of each CPU add up to the range",
        adds_up::states_of_each_cpu_add_up_to_the_range,
    ),
    (
        "states of each thread add up to the range",
        adds_up::states_of_each_thread_add_up_to_the_range,
    ),
    (
        "a CPU is busy in resources when it is in states",
        adds_up::a_cpu_is_busy_in_resources_when_it_is_in_states,
    ),
    (
        "every report says how much is unknown",
        adds_up::every_report_says_how_much_is_unknown,
    ),
    (
        "a CPU that idles is not busy in cputop",
        adds_up::a_cpu_that_idles_is_not_busy_in_cputop,
    ),
    (
        "a thread has the same time in cputop and states",
        agree::a_thread_has_the_same_time_in_cputop_and_states,
    ),
    (
        "threads run as long as their CPUs in states",
        agree::threads_run_as_long_as_their_cpus_in_states,
    ),
    (
        "diagnose splits the waits that schedlog lists",
        agree::diagnose_splits_the_waits_that_schedlog_lists,
    ),
    (
        "counts and the worst wait are the same in all verbs",
        agree::counts_and_the_worst_wait_are_the_same_in_all_verbs,
    ),
    (
        "check counts the wake-ups that schedstats counts",
        agree::check_counts_the_wakeups_that_schedstats_counts,
    ),
];

/// A recording in the corpus.
struct OnDisk {
    name: String,
    path: PathBuf,
    answers: Answers,
}

impl OnDisk {
    /// None where the trace is no kernel's.
    fn open(name: String, path: PathBuf) -> Option<OnDisk> {
        let trace = Trace::open(&path).ok()?;
        let switch = |class: &event::EventClass| class.kernel_name() == "sched_switch";
        trace.classes().iter().find(|class| switch(class))?;
        let answers = Answers::of(&trace).unwrap_or_else(|why| panic!("{name}: {why}"));
        Some(OnDisk {
            name,
            path,
            answers,
        })
    }
}

impl Told for OnDisk {
    fn opened(&self) -> Opened {
        Trace::open(&self.path)
            .expect("it was opened before")
            .into()
    }

    fn answers(&self) -> Answer<Answers> {
        Ok(self.answers.clone())
    }

    fn names(&self) -> BTreeSet<String> {
        BTreeSet::from(["*".to_owned()])
    }

    /// Nobody knows: what is asked is that no wait is longer than it can be.
    fn waits_at(&self, _tid: i32, _at_ns: i64) -> bool {
        true
    }
}

/// All recordings of kernels in the corpus.
fn recordings(corpus: &Corpus) -> Vec<OnDisk> {
    let mut places = corpus.ctf_traces();
    for (archive, files) in OTHERS {
        let root = corpus.unpack(archive);
        for file in files {
            let (name, path) = match *file {
                "" => (archive.to_owned(), root.clone()),
                file => (format!("{archive}/{file}"), root.join(file)),
            };
            places.push((name, path));
        }
    }
    let dat = "kernelshark/trace1.dat";
    places.push((dat.to_owned(), corpus.path().join(dat)));
    let open = |(name, path)| OnDisk::open(name, path);
    places.into_iter().filter_map(open).collect()
}

#[test]
fn what_holds_of_generated_recordings_holds_of_real_ones() {
    let Some(corpus) = Corpus::find("one_truth::corpus") else {
        return;
    };
    let recordings = recordings(&corpus);
    assert!(recordings.len() > 10, "{} recordings", recordings.len());
    let mut broken = Vec::new();
    for recording in &recordings {
        for (what, claim) in CLAIMS {
            if let Err(why) = claim(recording) {
                broken.push(format!("{}: {what}: {why}", recording.name));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The same numbers each time (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// The files that hold events, at a path or below it.
fn streams(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.flat_map(|entry| streams(&entry.path())).collect();
    let of_pages = files.iter().any(|file| file.ends_with("trace_pipe_raw"));
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_small = fs::metadata(file).is_ok_and(|status| status.len() < 4096);
        let is_stream = !of_pages || name == "trace_pipe_raw";
        name != "metadata" && !is_small && is_stream
    });
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).expect("copied");
        return;
    }
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

fn hash(trace: &Trace, event: &EventView<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let class = &trace.classes()[event.class().0 as usize];
    (event.time().as_ns(), event.cpu(), &class.name).hash(&mut hasher);
    for place in 0..class.fields.len() {
        let field = event::FieldId(place as u16);
        if class.fields[place].scope == event::Scope::Payload {
            event.i64(field).hash(&mut hasher);
            event.text(field).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn hashes(trace: &Trace) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Ok(Some(item)) = cursor.next() {
        if let Item::Event(event) = item {
            found.insert(hash(trace, &event));
        }
    }
    found
}

/// The worst activations of all tasks.
fn worst(trace: &Trace) -> Option<Diagnosis> {
    let query = Query {
        tasks: TaskFilter::parse(&["*"]).expect("a pattern"),
        worst: 30,
        ..Query::default()
    };
    diagnose(trace, &query).ok()
}

/// Whatever the damaged recording says to know, the whole one says too.
fn claim_of_damage(whole: &OnDisk, damaged: &Trace) -> Claim {
    let answers = Answers::of(damaged)?;
    let zero = Default::default();
    for (tid, states) in answers.threads() {
        let of_whole = whole.answers.threads.get(tid).unwrap_or(&zero);
        let what = format!("thread {tid}: on a CPU");
        at_most(&what, states.on_cpu_ns(), of_whole.on_cpu_ns())?;
    }
    for (cpu, states) in &answers.cpus {
        let of_whole = whole.answers.cpus.get(cpu).copied().unwrap_or_default();
        at_most(
            &format!("CPU {cpu}: idle"),
            states.idle_ns,
            of_whole.idle_ns,
        )?;
        let busy = |states: crate::answers::CpuStates| states.run_ns + states.call_ns;
        at_most(&format!("CPU {cpu}: busy"), busy(*states), busy(of_whole))?;
    }
    Ok(())
}

/// Verdicts about what was recorded whole name nobody else.
fn claim_of_verdicts(whole: &Trace, damaged: &Trace) -> Claim {
    let Some(found) = worst(damaged) else {
        return Ok(());
    };
    let every = Query {
        tasks: TaskFilter::parse(&["*"]).expect("a pattern"),
        worst: 0,
        ..Query::default()
    };
    let all = diagnose(whole, &every).map_err(|error| error.to_string())?;
    let by_end: BTreeMap<_, _> = all
        .activations
        .iter()
        .map(|late| ((late.task.tid, late.end), late))
        .collect();
    let known = found.activations.iter();
    for late in known.filter(|late| late.ledger.grade == Grade::Complete) {
        let Some(of_whole) = by_end.get(&(late.task.tid, late.end)) else {
            return Err(format!(
                "{} ended at {}: nothing did",
                late.task.comm, late.end
            ));
        };
        let first = |late: &diagnosis::LateActivation| {
            let first = late.ledger.terms.first();
            first.map(|term| format!("{:?} {}", term.kind, term.duration))
        };
        if late.origin == of_whole.origin && first(late) != first(of_whole) {
            let (said, truth) = (first(late), first(of_whole));
            return Err(format!(
                "{} late at {}: {said:?}, whole {truth:?}",
                late.task.comm, late.end
            ));
        }
    }
    Ok(())
}

#[test]
fn damage_makes_nothing_known_of_real_recordings() {
    let Some(corpus) = Corpus::find("one_truth::corpus") else {
        return;
    };
    let mut random = Random(1);
    let (mut broken, mut asked) = (Vec::new(), 0);
    for recording in &recordings(&corpus) {
        let whole = recording.opened();
        let events = hashes(&whole);
        if events.len() > DAMAGED_EVENTS_MAX {
            continue;
        }
        for _ in 0..DAMAGES {
            let dir = tempfile::tempdir().expect("a folder");
            let path = dir.path().join("trace");
            copy(&recording.path, &path);
            let files = streams(&path);
            if files.is_empty() {
                break;
            }
            let kinds = [Kind::Ones(64), Kind::Ones(4096), Kind::Cut];
            let damage = Damage {
                stream: random.below(files.len()),
                at: random.below(1000),
                kind: kinds[random.below(kinds.len())],
            };
            let file = &files[damage.stream];
            let mut bytes = fs::read(file).expect("a stream");
            damage.apply(&mut bytes);
            fs::write(file, bytes).expect("damaged");
            // What lies before the events, as the formats of trace.dat, may be needed to open it.
            let Ok(damaged) = Trace::open(&path) else {
                continue;
            };
            // Bytes that read as other events are what nobody can know of.
            if !hashes(&damaged).is_subset(&events) {
                continue;
            }
            asked += 1;
            let of_damage = [
                claim_of_damage(recording, &damaged),
                claim_of_verdicts(&whole, &damaged),
            ];
            let Some(again) = OnDisk::open(recording.name.clone(), path.clone()) else {
                continue;
            };
            let claims = CLAIMS.iter().map(|(_, claim)| claim(&again));
            for why in claims.chain(of_damage).filter_map(Result::err) {
                broken.push(format!("{}: {damage:?}: {why}", recording.name));
            }
        }
    }
    assert!(asked > 20, "{asked} recordings");
    assert!(broken.is_empty(), "of {asked}:\n{}", broken.join("\n"));
}
