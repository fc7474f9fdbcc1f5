//! Check on the running kernel that trackers measure what happened, to the nanosecond where the
//! scene knows it: all of them watch one scene at once, which writes down when it did what.

mod scene;
#[path = "tracker_scene/mod.rs"]
mod tracker_scene;

use std::time::{Duration as Time, Instant};

use abi::trackers::{KEYS_MAX, ROWS_BITS};
use bpf_host::trackers::{KeySum, Losses, Tracker, TrackerConfig, TrackerWatch, call_number};
use bpf_host::{Targets, WatchConfig};
use event::evidence::tracked::{Tracked, TrackedHit};
use event::{Duration, TaskPattern};
use tracker_scene::{Scene, Span, function, interrupts, softirqs};

/// Everything is a hit: the scene is short, and the ring is emptied while it plays.
fn config(only: Vec<u64>, targets: Targets) -> TrackerConfig {
    TrackerConfig {
        watch: WatchConfig {
            targets,
            threshold: Duration::from_ns(1),
            rate_limit_interval: Duration::ZERO,
            ..WatchConfig::default()
        },
        only,
        stacks: true,
        pair: None,
        turns: false,
    }
}

fn of_scene() -> Targets {
    Targets::Tasks(vec![TaskPattern::parse("scene-*").expect("names tasks")])
}

/// The trackers that watch the scene, each with the keys that it is asked for.
fn asked() -> Vec<(&'static str, Vec<u64>, Targets)> {
    let sleeps = vec![call_number("clock_nanosleep").expect("a call")];
    let wakes = vec![function("hrtimer_wakeup")];
    let flushes = vec![function("flush_to_ldisc")];
    vec![
        ("syscall", sleeps, of_scene()),
        ("offcpu", vec![], of_scene()),
        ("wakeup", vec![], of_scene()),
        ("futex", vec![], of_scene()),
        ("pagefault", vec![], of_scene()),
        ("block", vec![], of_scene()),
        ("io", vec![], of_scene()),
        ("workqueue", flushes, of_scene()),
        ("timer", wakes, Targets::All),
        ("irq", vec![-1i64 as u64], Targets::All),
        ("softirq", vec![1], Targets::All),
    ]
}

/// What one tracker said of the scene.
struct Seen {
    tracker: &'static Tracker,
    hits: Vec<TrackedHit>,
    counts: Vec<u64>,
    losses: Losses,
}

impl Seen {
    /// The intervals of a series that a task of this name had.
    fn of(&self, series: &str, comm: &str) -> Vec<&Tracked> {
        let number = self.tracker.series.iter().position(|name| *name == series);
        let number = number.expect("a series");
        let hits = self.hits.iter().map(|hit| &hit.tracked);
        let is_it = |tracked: &&Tracked| {
            let task = tracked.task.as_ref();
            tracked.series == number && task.is_some_and(|task| task.comm == comm)
        };
        hits.filter(is_it).collect()
    }
}

fn within(tracked: &Tracked, span: &Span) -> bool {
    span.begin_ns <= tracked.begin.as_ns() && tracked.end.as_ns() <= span.end_ns
}

/// Each span holds exactly one interval, and there are no others.
fn one_in_each(what: &str, intervals: &[&Tracked], spans: &[Span]) {
    for span in spans {
        let inside = intervals.iter().filter(|tracked| within(tracked, span));
        assert_eq!(inside.count(), 1, "{what}: {span:?} {intervals:#?}");
    }
    assert_eq!(intervals.len(), spans.len(), "{what}: {intervals:#?}");
}

fn check_calls(seen: &Seen, scene: &Scene) {
    let calls = seen.of("system call", "scene-sleeper");
    one_in_each("sleeps", &calls, &scene.sleeps);
    for (call, wake_ns) in calls.iter().zip(&scene.wakes_ns) {
        // A sleep lasts until its time has come.
        assert!(call.end.as_ns() >= *wake_ns, "{call:?} {wake_ns}");
        assert_eq!(call.detail, 0, "it returned 0: {call:?}");
    }
}

/// How many intervals lie in each sleep.
fn blocked_in_sleeps(seen: &Seen, scene: &Scene) -> Vec<usize> {
    let blocked = seen.of("blocked", "scene-sleeper");
    let of_sleep = |span: &Span| {
        // A timer's interrupt wakes it: whoever runs there then has nothing to do with it.
        let is_it = |tracked: &&&Tracked| within(tracked, span) && tracked.other.is_none();
        blocked.iter().filter(is_it).count()
    };
    scene.sleeps.iter().map(of_sleep).collect()
}

fn check_off_cpu(seen: &Seen, scene: &Scene) {
    let found = blocked_in_sleeps(seen, scene);
    assert!(
        found.iter().all(|count| *count == 1),
        "{found:?} {:?} {:#?}",
        scene.sleeps,
        seen.of("blocked", "scene-sleeper")
    );
    // The spinner was preempted for the whole of the hog's run.
    let preempted = seen.of("preempted", "scene-spinner");
    let by_hog = preempted.iter().filter(|tracked| {
        let other = tracked.other.as_ref();
        let holds =
            tracked.begin.as_ns() <= scene.hog.begin_ns && tracked.end.as_ns() >= scene.hog.end_ns;
        // The victim may have preempted it, and the hog the victim.
        let urgent = ["scene-hog", "scene-victim"];
        holds && other.is_some_and(|task| urgent.contains(&task.comm.as_str()))
    });
    assert_eq!(by_hog.count(), 1, "{:?} {preempted:#?}", scene.hog);
    let blocked = seen.of("blocked", "scene-spinner");
    let during = |tracked: &&&Tracked| {
        tracked.begin.as_ns() < scene.hog.end_ns && tracked.end.as_ns() > scene.hog.begin_ns
    };
    assert_eq!(blocked.iter().filter(during).count(), 0, "it was runnable");
}

/// The victim's timer expires while the hog runs: it is woken then, and comes after the hog.
fn check_wake_ups(seen: &Seen, scene: &Scene) {
    let late = seen.of("wake-up", "scene-victim");
    let late = late.iter().filter(|tracked| {
        tracked.begin.as_ns() < scene.hog.end_ns && tracked.end.as_ns() >= scene.hog.end_ns
    });
    let late: Vec<_> = late.collect();
    assert_eq!(late.len(), 1, "{:?} {late:#?}", scene.hog);
    assert_eq!(late[0].other.as_ref().expect("somebody").comm, "scene-hog");
}

fn check_futex(seen: &Seen, scene: &Scene) {
    let waits = seen.of("mutex", "scene-waiter");
    one_in_each("mutex", &waits, &[scene.mutex]);
    let owner = waits[0].other.as_ref().expect("who let it go");
    assert_eq!(owner.comm, "scene-owner");
    assert_eq!(waits[0].detail, owner.tid.0 as u64, "{waits:?}");
}

fn check_faults(seen: &Seen, scene: &Scene) {
    let faults = seen.of("minor", "scene-sleeper");
    for (span, address) in &scene.faults {
        let at = |tracked: &&&Tracked| tracked.detail == *address;
        let found: Vec<_> = faults.iter().filter(at).collect();
        assert!(
            found.len() == 1 && within(found[0], span),
            "{address:#x} {span:?} {found:?}"
        );
    }
}

fn check_block(seen: &Seen, scene: &Scene) {
    let is_read = |tracked: &&&Tracked| tracked.key & 0xff == 0;
    for series in ["queue", "device"] {
        let requests = seen.of(series, "scene-sleeper");
        let reads: Vec<_> = requests.iter().filter(is_read).copied().collect();
        one_in_each(series, &reads, &scene.reads);
    }
    let devices = seen.of("device", "scene-sleeper");
    for queue in seen.of("queue", "scene-sleeper") {
        let follows = |device: &&&Tracked| device.begin == queue.end;
        assert_eq!(devices.iter().filter(follows).count(), 1, "{queue:?}");
    }
}

fn check_io(seen: &Seen, scene: &Scene) {
    let is_read = |tracked: &&&Tracked| tracked.key & 0xff == 0;
    let of = |series: &str| {
        let asked = seen.of(series, "scene-sleeper").into_iter();
        asked
            .filter(|tracked| is_read(&tracked))
            .collect::<Vec<_>>()
    };
    let (calls, asked) = (of("system call"), of("file system"));
    one_in_each("system call", &calls, &scene.reads);
    one_in_each("file system", &asked, &scene.reads);
    for asked in asked {
        let around = |call: &&&Tracked| call.begin <= asked.begin && call.end >= asked.end;
        assert_eq!(calls.iter().filter(around).count(), 1, "{asked:?}");
    }
}

fn check_work(seen: &Seen, scene: &Scene) {
    for series in ["queued to start", "run"] {
        let work = seen.of(series, "scene-sleeper");
        for span in &scene.flushes {
            // What still waits to start from the flush before is not queued once more.
            let meets = |tracked: &&Tracked| {
                tracked.begin.as_ns() <= span.end_ns && tracked.end.as_ns() >= span.begin_ns
            };
            assert!(work.iter().any(meets), "{series} {span:?} {work:#?}");
        }
        let worker = |tracked: &&&Tracked| {
            tracked
                .other
                .as_ref()
                .is_some_and(|task| task.comm.starts_with("kworker"))
        };
        assert_eq!(work.iter().filter(worker).count(), work.len());
    }
}

/// A real-time task has no timer slack: its timer expires at the very nanosecond that it asked for.
fn check_timers(seen: &Seen, scene: &Scene) {
    let late = seen.tracker.series.iter().position(|name| *name == "late");
    for wake_ns in &scene.wakes_ns {
        let hits = seen.hits.iter().map(|hit| &hit.tracked);
        let is_it =
            |tracked: &&Tracked| Some(tracked.series) == late && tracked.begin.as_ns() == *wake_ns;
        assert_eq!(hits.filter(is_it).count(), 1, "{wake_ns}");
    }
}

/// The kernel's own count lies between what was counted before we looked and after, but for what
/// each CPU was just doing.
fn check_counts(seen: &Seen, series: usize, inside: u64, outside: u64) {
    let cpus = std::thread::available_parallelism().expect("CPUs").get() as u64;
    let count = seen.counts[series];
    let name = seen.tracker.name;
    assert!(
        (inside.saturating_sub(cpus)..=outside).contains(&count),
        "{name}: {inside} {count} {outside}"
    );
}

/// How often a scene is played again of which something was hidden.
const REPLAYS_MAX: usize = 12;

/// A scene, and what was seen of it.
struct Watched {
    scene: Scene,
    seen: Vec<Seen>,
    /// Interrupts of local timers and softirqs of timers, while all trackers were there.
    inside: (u64, u64),
    /// The same from before the first to behind the last.
    outside: (u64, u64),
}

impl Watched {
    /// For some ms, the kernel under which this was written calls no program on a CPU
    /// (docs/monitor.md, hidden samples), and a ring is full of what other timers did while nobody
    /// reads it: then nobody was told of all that happened.
    fn is_hidden(&self) -> bool {
        let is_told = |seen: &Seen| seen.losses.lost == 0 && is_told(seen, &self.scene);
        !self.seen.iter().all(is_told)
    }
}

/// Whether each thing that happened was told of; [`check_block`] and so on say whether rightly.
fn is_told(seen: &Seen, scene: &Scene) -> bool {
    let in_each = |series: &str, comm: &str, spans: &[Span]| {
        let told = seen.of(series, comm);
        let is_told = |span: &Span| told.iter().any(|tracked| within(tracked, span));
        spans.iter().all(is_told)
    };
    let during = |series: &str, comm: &str, time_ns: i64| {
        let mut told = seen.of(series, comm).into_iter();
        told.any(|one| one.begin.as_ns() < time_ns && one.end.as_ns() >= time_ns)
    };
    match seen.tracker.name {
        "offcpu" => {
            let found = blocked_in_sleeps(seen, scene);
            let hidden = found.iter().filter(|count| **count == 0).count();
            hidden == 0 && during("preempted", "scene-spinner", scene.hog.end_ns)
        }
        "wakeup" => during("wake-up", "scene-victim", scene.hog.end_ns),
        "futex" => in_each("mutex", "scene-waiter", &[scene.mutex]),
        "block" => ["queue", "device"]
            .iter()
            .all(|series| in_each(series, "scene-sleeper", &scene.reads)),
        "timer" => scene.wakes_ns.iter().all(|wake_ns| {
            let mut begins = seen.hits.iter().map(|hit| hit.tracked.begin.as_ns());
            begins.any(|begin_ns| begin_ns == *wake_ns)
        }),
        _ => true,
    }
}

/// All trackers look at one scene.
fn watch_scene() -> Watched {
    let counts = || (interrupts("LOC:"), softirqs("TIMER:"));
    let between = |first: (u64, u64), last: (u64, u64)| (last.0 - first.0, last.1 - first.1);
    let before = counts();
    let started = asked().into_iter().map(|(name, only, targets)| {
        let tracker = Tracker::find(name).expect("a tracker");
        let mut config = config(only, targets);
        if ["irq", "softirq"].contains(&name) {
            // Of these only the counts are compared.
            config.watch.threshold = Duration::MAX;
        }
        TrackerWatch::start(tracker, &config).expect(name)
    });
    let watches: Vec<TrackerWatch> = started.collect();
    let first = counts();
    let (scene, watches, hits) = tracker_scene::play(watches);
    let last = counts();
    let seen = watches.iter().zip(hits);
    let seen = seen.map(|(watch, hits)| read(watch, hits)).collect();
    drop(watches);
    Watched {
        scene,
        seen,
        inside: between(first, last),
        outside: between(before, counts()),
    }
}

#[test]
fn all_trackers_measure_the_same_scene_as_it_was() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("all_trackers_measure_the_same_scene_as_it_was") {
        return;
    }
    let mut watched = watch_scene();
    for _ in 0..REPLAYS_MAX {
        if !watched.is_hidden() {
            break;
        }
        watched = watch_scene();
    }
    let Watched {
        scene,
        seen,
        inside,
        outside,
    } = watched;
    for seen in &seen {
        let (name, losses) = (seen.tracker.name, &seen.losses);
        // Whom the kernel had no storage for at birth, it had it for at the renaming.
        let missed = losses.lost + losses.full + losses.recursion;
        assert_eq!(missed, 0, "{name}: {losses:?}");
        match seen.tracker.name {
            "syscall" => check_calls(seen, &scene),
            "offcpu" => check_off_cpu(seen, &scene),
            "wakeup" => check_wake_ups(seen, &scene),
            "futex" => check_futex(seen, &scene),
            "pagefault" => check_faults(seen, &scene),
            "block" | "io" if scene.reads.is_empty() => testkit::skip(
                "all_trackers_measure_the_same_scene_as_it_was, block",
                "the test's folder lies on no disk",
            ),
            "block" => check_block(seen, &scene),
            "io" => check_io(seen, &scene),
            "workqueue" => check_work(seen, &scene),
            "timer" => check_timers(seen, &scene),
            "irq" => check_counts(seen, 0, inside.0, outside.0),
            "softirq" => check_counts(seen, 1, inside.1, outside.1),
            other => panic!("nobody checks {other}"),
        }
    }
}

/// Every interval was told: each row is the sum of those of its key.
fn check_rows(name: &str, keys: &[KeySum], hits: &[TrackedHit]) {
    for row in keys {
        let hits = hits.iter().map(|hit| &hit.tracked);
        let own =
            hits.filter(|hit| (hit.series, hit.key, hit.group) == (row.series, row.key, row.group));
        let own: Vec<Duration> = own.map(Tracked::duration).collect();
        let sum: Duration = own.iter().copied().sum();
        let max = own.iter().max().copied();
        assert_eq!(
            (own.len() as u64, sum),
            (row.count, row.sum),
            "{name}: {row:?}"
        );
        assert_eq!(max, Some(row.max), "{name}: {row:?}");
        if let Some(histogram) = &row.histogram {
            assert_eq!(histogram.samples(), row.count, "{name}: {row:?}");
            assert!(histogram.quantile(1.0) > max, "{name}: {row:?}");
        }
    }
}

fn read(watch: &TrackerWatch, hits: Vec<TrackedHit>) -> Seen {
    let statistics = watch.statistics().expect("counters");
    let series = &statistics.series;
    let keys = watch.keys().expect("keys");
    let in_keys = keys.iter().map(|sum| sum.count).sum::<u64>() + statistics.losses.keys_full;
    let counted = series.iter().map(|series| series.count).sum::<u64>();
    // Nobody counts for long between the two looks.
    assert!(
        in_keys >= counted,
        "{}: {in_keys} {counted}",
        watch.tracker().name
    );
    // Of a scene that is over: with others' the kernel goes on.
    let is_over = !["timer", "irq", "softirq"].contains(&watch.tracker().name);
    if is_over && statistics.losses.lost == 0 {
        check_rows(watch.tracker().name, &keys, &hits);
    }
    Seen {
        tracker: watch.tracker(),
        hits,
        counts: series.iter().map(|series| series.count).collect(),
        losses: statistics.losses,
    }
}

#[test]
fn what_is_still_open_is_reported_once_and_counted_when_it_ends() {
    let _privileged = testkit::privileged();
    let check = |name: &str, series: usize| {
        let mut config = config(vec![], of_scene());
        config.watch.waiting_after = Some(Duration::from_ms(20));
        config.watch.threshold = Duration::MAX;
        let tracker = Tracker::find(name).expect("a tracker");
        let mut watch = TrackerWatch::start(tracker, &config).expect("started");
        let waiter = tracker_scene::Waiter::start();
        let mut open = Vec::new();
        let mut began = Instant::now();
        while open.is_empty() {
            // Some kernels call no program of a few switches: nobody was told that it waits.
            if began.elapsed() > Time::from_secs(2) {
                waiter.stir();
                began = Instant::now();
            }
            open.extend(watch.check_open(tracker_scene::now()).expect("looked"));
            open.extend(watch.take().expect("taken"));
            std::thread::yield_now();
        }
        for _ in 0..3 {
            open.extend(watch.check_open(tracker_scene::now()).expect("looked"));
            open.extend(watch.take().expect("taken"));
        }
        assert_eq!(open.len(), 1, "{name}: {open:#?}");
        let tracked = &open[0].tracked;
        assert!(tracked.is_open && tracked.duration() >= Duration::from_ms(20));
        assert_eq!(tracked.series, series, "{name}");
        assert_eq!(tracked.task.as_ref().expect("a task").comm, "scene-waiter");
        // A call is named by its number alone.
        let label = if name == "syscall" {
            ""
        } else {
            "scene-waiter"
        };
        assert_eq!(tracked.label, label, "{name}");
        assert!(!open[0].stack.is_empty(), "{name}: where it waits");
        let before = watch.statistics().expect("counters").series[series].count;
        waiter.release();
        let after = watch.statistics().expect("counters").series[series].count;
        assert!(after > before, "{name}: {before} {after}");
    };
    check("syscall", 0);
    check("offcpu", 1);
    check("futex", 1);
}

#[test]
fn keys_that_the_table_has_no_room_for_are_counted_and_said() {
    let _privileged = testkit::privileged();
    let tracker = Tracker::find("futex").expect("a tracker");
    let mut config = config(vec![], of_scene());
    config.watch.threshold = Duration::MAX;
    let watch = TrackerWatch::start(tracker, &config).expect("started");
    // The first of each CPU have rows of their own.
    let cpus = std::thread::available_parallelism().expect("CPUs").get();
    let room = KEYS_MAX + (cpus << ROWS_BITS);
    let waits = room as u64 + 500;
    tracker_scene::wait_on_many(waits);
    let statistics = watch.statistics().expect("counters");
    let other = &statistics.series[1];
    // Its thread may have waited for something of its own beside them.
    assert!(other.count >= waits, "{other:?}");
    let keys = watch.keys().expect("keys");
    let in_rows: u64 = keys.iter().map(|sum| sum.count).sum();
    let counted: u64 = statistics.series.iter().map(|series| series.count).sum();
    assert_eq!(in_rows + statistics.losses.keys_full, counted);
    assert!(keys.len() <= room && statistics.losses.keys_full >= 500);
    // Nothing is missing from the sums.
    assert!(!statistics.losses.forbid_a_statement());
}

#[test]
fn a_question_without_an_answer_is_refused_before_anything_is_attached() {
    let _privileged = testkit::privileged();
    let tracker = Tracker::find("irq").expect("a tracker");
    let refused = |config: TrackerConfig, what: &str| {
        let error = TrackerWatch::start(tracker, &config).err().expect(what);
        assert!(error.what().contains(what), "{error}");
        assert!(error.fixed_by().is_some(), "{error}");
    };
    refused(config(vec![0; 33], Targets::All), "at most 32 keys");
    let mut waiting = config(vec![], Targets::All);
    waiting.watch.waiting_after = Some(Duration::from_ms(1));
    refused(waiting, "no time-out");
}
