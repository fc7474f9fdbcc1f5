//! Check on the running kernel that an action is called in the kernel with each hit, by trackers
//! and by the chain, and that one that the verifier refuses is refused in the verifier's words.

mod scene;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bpf_host::trackers::{Tracker, TrackerConfig, TrackerWatch};
use bpf_host::{Action, Targets, Watch, WatchConfig};
use event::{Duration, Error, ErrorKind, TaskPattern};
use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use scene::{STAGE, become_task};

/// The example, as its author would build it.
const EXAMPLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/count_culprits.bpf.o"));
const SLEEPS: usize = 20;

/// What was counted of one culprit: hits, and their time.
type Counts = BTreeMap<i32, (u64, u64)>;

fn config(action: Action) -> WatchConfig {
    let scene = TaskPattern::parse("scene-*").expect("names tasks");
    WatchConfig {
        targets: Targets::Tasks(vec![scene]),
        threshold: Duration::from_ns(1),
        rate_limit_interval: Duration::ZERO,
        action: Some(action),
        ..WatchConfig::default()
    }
}

fn example(folder: &Path) -> Action {
    let file = folder.join("count_culprits.bpf.o");
    std::fs::write(&file, EXAMPLE).expect("written");
    Action::read(&file).unwrap_or_else(|error| panic!("{error:#}"))
}

/// A task that a timer wakes now and then.
fn sleeps() {
    let sleeper = std::thread::spawn(|| {
        become_task("scene-sleeper", STAGE, 0);
        for _ in 0..SLEEPS {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    sleeper.join().expect("a sleeper");
}

/// The words of the example's map: who, how often, how long, and by which tracker.
fn counted() -> (Counts, Vec<String>) {
    let maps = MapInfoIter::default().filter(|map| map.name == "culprits");
    // The newest: the kernel frees those of a watch that has ended by and by.
    let id = maps.map(|map| map.id).max().expect("the action's map");
    let map = MapHandle::from_map_id(id).expect("a map");
    let mut trackers = Vec::new();
    let counts = map.keys().map(|key| {
        let value = map
            .lookup(&key, MapFlags::ANY)
            .expect("read")
            .expect("there");
        let word = |at: usize| u64::from_ne_bytes(value[at..at + 8].try_into().expect("eight"));
        let text = value[32..48]
            .split(|byte| *byte == 0)
            .next()
            .expect("a text");
        trackers.push(String::from_utf8_lossy(text).into_owned());
        let tid = i32::from_ne_bytes(key.as_slice().try_into().expect("four"));
        (tid, (word(0), word(8)))
    });
    let counts = counts.collect();
    (counts, trackers)
}

fn add(counts: &mut Counts, other: Option<i32>, took: Duration) {
    let count = counts.entry(other.unwrap_or(-1)).or_default();
    count.0 += 1;
    count.1 += took.as_ns_unsigned();
}

#[test]
fn an_action_sees_in_the_kernel_what_is_reported() {
    let _privileged = testkit::privileged();
    let folder = tempfile();
    let check = |name: &str, series_max: usize| {
        let tracker = Tracker::find(name).expect("a tracker");
        let config = TrackerConfig {
            watch: config(example(&folder.0)),
            ..TrackerConfig::default()
        };
        let mut watch = TrackerWatch::start(tracker, &config)
            .unwrap_or_else(|error| panic!("{name}: {error:#}"));
        sleeps();
        let mut expect = Counts::new();
        for hit in watch.take().expect("hits") {
            assert!(hit.tracked.series < series_max);
            let other = hit.tracked.other.as_ref().map(|other| other.tid.0);
            add(&mut expect, other, hit.tracked.duration());
        }
        let (counts, trackers) = counted();
        assert_eq!(watch.statistics().expect("counters").losses.lost, 0);
        assert_eq!(counts, expect, "{name}");
        assert!(counts.values().map(|(hits, _)| hits).sum::<u64>() >= SLEEPS as u64);
        assert!(trackers.iter().all(|of| of == name), "{trackers:?}");
    };
    check("wakeup", 1);
    check("syscall", 1);
}

#[test]
fn an_action_sees_the_late_tasks_of_a_chain() {
    let _privileged = testkit::privileged();
    let folder = tempfile();
    let (watch, mut ring) =
        Watch::start(&config(example(&folder.0))).unwrap_or_else(|error| panic!("{error:#}"));
    sleeps();
    let mut expect = Counts::new();
    for hit in ring.take().expect("hits") {
        add(
            &mut expect,
            hit.culprit.as_ref().map(|task| task.tid.0),
            hit.latency(),
        );
    }
    let (counts, trackers) = counted();
    assert_eq!(watch.statistics().expect("counters").lost, 0);
    assert_eq!(counts, expect);
    assert!(counts.values().map(|(hits, _)| hits).sum::<u64>() >= SLEEPS as u64);
    assert!(trackers.iter().all(String::is_empty), "{trackers:?}");
}

/// A folder of our own, which goes with the test.
struct Folder(PathBuf);

fn tempfile() -> Folder {
    let name = format!(
        "action-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    Folder(folder)
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Compiles an action as its author would.
fn compiled(folder: &Path, body: &str) -> Action {
    let source = folder.join("bad.bpf.c");
    let text = format!(
        "#include <linux/types.h>\n#include <linux/bpf.h>\n#include <rtscope/action.bpf.h>\n\
         char LICENSE[] SEC(\"license\") = \"GPL\";\n{body}\n"
    );
    std::fs::write(&source, text).expect("written");
    let object = folder.join("bad.bpf.o");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/include");
    let machine = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut builder = SkeletonBuilder::new();
    builder.source(&source).obj(&object);
    builder.clang_args([format!("-I{}", include.display()), machine]);
    if let Some(clang) = std::env::var_os("CLANG") {
        builder.clang(clang);
    }
    builder.build().expect("compiled");
    Action::read(&object).unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn an_action_that_the_verifier_refuses_is_refused_in_its_words() {
    let _privileged = testkit::privileged();
    let folder = tempfile();
    let check = |body: &str, why: &str, fix: &str| {
        let config = config(compiled(&folder.0, body));
        let of_chain = Watch::start(&config).err();
        let tracker = Tracker::find("wakeup").expect("a tracker");
        let config = TrackerConfig {
            watch: config,
            ..TrackerConfig::default()
        };
        let of_tracker = TrackerWatch::start(tracker, &config).err();
        for error in [of_chain, of_tracker] {
            let error: Error = error.expect("refused");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.what().contains("bad.bpf.o"), "{error:#}");
            let found = error.value_found().expect("the log");
            let last = found.lines().last().expect("a line");
            assert!(last.contains(why), "{error:#}");
            assert!(error.fixed_by().expect("a remedy").contains(fix));
        }
    };
    check(
        "int rtscope_action(struct rts_action_hit *hit) { return hit->cpu; }",
        "mem_or_null",
        "RTS_ACTION",
    );
    check(
        "RTS_ACTION(hit) { return bpf_skb_load_bytes(hit, 0, hit->label, 4); }",
        "bpf_skb_load_bytes",
        "clang -g",
    );
    check(
        "RTS_ACTION(hit) { return *(volatile int *)(hit->key); }",
        "invalid mem access 'scalar'",
        "clang -g",
    );
}
