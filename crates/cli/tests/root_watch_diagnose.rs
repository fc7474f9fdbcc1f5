//! What the watch saw in the kernel and what is made of its snapshot: the same steps, the same
//! record, and instants that agree with the kernel's own events.

mod scene;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use event::{Cpu, Instant, TimeRange};
use host::task::{self, Policy};
use scene::{Victim, Watch, burn, pause, thread};
use serde_json::Value;
use trace::{Item, Trace};

/// Further apart than this, an interrupt between the two stamps is looked for. What a machine
/// really needs between them is printed, not asserted: it is a matter of caches.
const DELTA_MAX_NS: i64 = 1_000;
/// Further apart than this, a step was taken for another event.
const MISTAKEN_NS: i64 = 50_000;
/// The row of all kinds together.
const ALL: &str = "all";

/// Watches a victim that `hits` bursts of a hog make late, one after the other.
fn watch_bursts(case: &str, hits: usize) -> (Watch, Vec<Value>) {
    let (cpu, _) = scene::cpus();
    let _off = task::stay_off(cpu).expect("out of the way");
    let victim = Victim::start(cpu, Policy::Fifo(20), 1_000);
    let most = hits.to_string();
    let more = [
        "--over",
        "2ms",
        "--rate",
        "1000/s",
        "--max-hits",
        &most,
        "--for",
        "60s",
        "--buffer",
        "1M",
    ];
    let mut watch = Watch::start(case, victim.tid, &more);
    let hog = thread("hog", cpu, Policy::Fifo(60), move || {
        // More than are asked for: two hits of one moment share a drain.
        for _ in 0..2 * hits {
            burn(4);
            pause(60);
        }
    });
    let lines = watch.finish();
    hog.join().expect("ended");
    (watch, lines)
}

/// The activation of hit `id` in a diagnosis.
fn activation(diagnosis: &Value, id: &Value) -> Option<Value> {
    let activations = diagnosis["activations"].as_array()?;
    let of_hit = |late: &&Value| late["hit"]["id"] == *id;
    activations.iter().find(of_hit).cloned()
}

fn diagnose(snapshot: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args(["diagnose", "--json"])
        .arg(snapshot)
        .output()
        .expect("started");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// The commands that show whether an advice helped.
fn checks(diagnosis: &Value) -> Vec<&str> {
    let groups = diagnosis["groups"].as_array().into_iter().flatten();
    let advice = groups.filter_map(|group| group["verdict"]["advice"].as_array());
    let checks = advice.flatten().map(|advice| advice["then_check"].as_str());
    checks.map(|check| check.expect("a command")).collect()
}

#[test]
fn a_hit_is_the_same_from_the_watch_and_from_its_snapshot() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("a_hit_is_the_same_from_the_watch_and_from_its_snapshot") {
        return;
    }
    let (_watch, lines) = watch_bursts("same", 12);
    let hits = scene::hits(&lines);
    assert!(hits.len() >= 10, "{} hits", hits.len());
    for line in hits {
        let hit = &line["hit"];
        let snapshot = line["snapshot"]["path"].as_str().expect("a snapshot");
        let later = diagnose(Path::new(snapshot));
        let late = activation(&later, &hit["id"]).expect("the hit is in its snapshot");
        assert_eq!(late["steps"], hit["steps"], "the steps");
        assert_eq!(&late["hit"], hit, "the hit's own record");
        let live = activation(&line["diagnosis"], &hit["id"]).expect("explained at once");
        assert_eq!(live, late, "the whole explanation");
        for check in checks(&later) {
            assert!(check.starts_with("rtscope watch --"), "{check}");
            assert!(check.contains("--rate 1000/s --max-hits 12"), "{check}");
        }
    }
}

/// A step beside the kernel's event that means the same.
struct Compared {
    hit: u64,
    kind: String,
    /// The event's instant minus the step's.
    delta_ns: i64,
    /// An interrupt began between the two stamps, so that they are of different instants.
    interrupted: bool,
}

/// The steps of a hit, compared; none when its snapshot does not hold it whole: it came while the
/// recorder was drained.
fn compared(line: &Value) -> Option<Vec<Compared>> {
    let late = activation(&line["diagnosis"], &line["hit"]["id"]).expect("explained");
    if late["ledger"]["grade"] != "complete" {
        return None;
    }
    let trace = Trace::open(line["snapshot"]["path"].as_str().expect("a snapshot"));
    let trace = trace.expect("opens");
    let checks = late["checks"].as_array().expect("checks").iter();
    let compared = checks.filter_map(|check| {
        let step = &late["steps"][check["step"].as_u64()? as usize];
        let kind = step["kind"].as_str()?.to_owned();
        let time_ns = step["time_ns"].as_i64()?;
        // What was not recorded cannot be compared: the switch out of idle on some kernels.
        let delta_ns = check["delta_ns"].as_i64()?;
        let between = TimeRange {
            begin: Instant::from_ns(time_ns.min(time_ns + delta_ns) + 1),
            end: Instant::from_ns(time_ns.max(time_ns + delta_ns)),
        };
        let cpu = Cpu(step["cpu"].as_u64()? as u32);
        Some(Compared {
            hit: line["hit"]["id"].as_u64()?,
            kind,
            delta_ns,
            interrupted: delta_ns.abs() > DELTA_MAX_NS && has_interrupt(&trace, cpu, between),
        })
    });
    Some(compared.collect())
}

fn has_interrupt(trace: &Trace, cpu: Cpu, between: TimeRange) -> bool {
    let mut cursor = trace.cursor(between);
    while let Some(item) = cursor.next().expect("read") {
        let Item::Event(event) = item else { continue };
        let name = &trace.classes()[event.class().0 as usize].name;
        let begins = name.ends_with("_entry") && !name.starts_with("timer_");
        if begins && event.cpu() == Some(cpu) {
            return true;
        }
    }
    false
}

fn quantile(sorted: &[i64], share: f64) -> i64 {
    let place = ((sorted.len() as f64 * share).ceil() as usize).max(1) - 1;
    sorted.get(place).copied().unwrap_or(0)
}

/// The distances in nanoseconds, sorted, by kind of step and of all.
#[derive(Default)]
struct Distances {
    by_kind: BTreeMap<String, Vec<i64>>,
    hits: usize,
    interrupted: usize,
}

impl Distances {
    fn add(&mut self, steps: Vec<Compared>) {
        self.hits += 1;
        for step in steps {
            let distance_ns = step.delta_ns.abs();
            if step.interrupted {
                self.interrupted += 1;
                continue;
            }
            if distance_ns > DELTA_MAX_NS {
                let (hit, kind) = (step.hit, &step.kind);
                eprintln!("hit {hit}: {kind} {} ns, nothing between", step.delta_ns);
            }
            for kind in [step.kind, ALL.to_owned()] {
                self.by_kind.entry(kind).or_default().push(distance_ns);
            }
        }
    }

    fn p99_ns(&mut self) -> i64 {
        self.by_kind
            .values_mut()
            .for_each(|all| all.sort_unstable());
        quantile(&self.by_kind[ALL], 0.99)
    }

    fn print(&self) {
        eprintln!("step            number   p50 ns   p99 ns   max ns");
        for (kind, sorted) in &self.by_kind {
            let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| quantile(sorted, share));
            eprintln!("{kind:<14} {:>7} {p50:>8} {p99:>8} {max:>8}", sorted.len());
        }
        let interrupted = self.interrupted;
        eprintln!("{interrupted} left out: an interrupt began between the two stamps");
    }
}

#[test]
fn the_steps_instants_agree_with_the_kernels_events() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("the_steps_instants_agree_with_the_kernels_events") {
        return;
    }
    let mut distances = Distances::default();
    let (_watch, lines) = watch_bursts("instants", 60);
    let hits = scene::hits(&lines);
    let whole = hits.iter().filter_map(|line| compared(line));
    whole.for_each(|steps| distances.add(steps));
    let drained = hits.len() - distances.hits;
    eprintln!(
        "{} hits, {drained} while the recorder was drained",
        hits.len()
    );
    assert!(distances.hits >= 50, "too few hits to compare");
    let p99_ns = distances.p99_ns();
    distances.print();
    let steps = distances.by_kind[ALL].len();
    assert!(steps >= 3 * distances.hits, "{steps} steps compared");
    assert!(distances.interrupted * 20 <= steps, "too many left out");
    assert!(p99_ns <= MISTAKEN_NS, "steps are taken for other events");
}
