//! What a push promises, with targets that fail and stores that change in between.

use std::collections::BTreeMap;

use abi::monitor::Phase;
use event::{Cpu, Duration, Error, ErrorKind};
use monitor::{Appended, Histogram, Interval, Limits, Scope, Series};

use super::*;
use crate::Directory;

const MINUTE_NS: i64 = 60_000_000_000;
const DAY_NS: i64 = 86_400_000_000_000;

fn interval(begin_ns: i64) -> Interval {
    Interval {
        head: Head {
            begin_ns,
            end_ns: begin_ns + MINUTE_NS,
            elapsed: Duration::from_ns(MINUTE_NS),
            ..Head::default()
        },
        series: vec![Series {
            scope: Scope::RealTime,
            phase: Phase::Switch.into(),
            cpu: Cpu(0),
            sum: Duration::from_us(9),
            min: Duration::from_us(1),
            max: Duration::from_us(5),
            histogram: Histogram(vec![(200, 3)]),
        }],
        ..Interval::default()
    }
}

/// Files by name; takes so many, then none.
#[derive(Default)]
struct Memory {
    files: BTreeMap<String, Vec<u8>>,
    takes: Option<usize>,
}

impl Target for Memory {
    fn name(&self) -> String {
        "memory".to_owned()
    }
    fn meet(&mut self, _known: bool) -> Result<()> {
        Ok(())
    }
    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        if self.takes == Some(0) {
            return Err(Error::new(ErrorKind::Io, "the target is away"));
        }
        self.takes = self.takes.map(|takes| takes - 1);
        self.files.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }
    fn list(&mut self, folder: &str) -> Result<Vec<String>> {
        let folder = format!("{folder}/");
        let names = self
            .files
            .keys()
            .filter_map(|name| name.strip_prefix(&folder));
        Ok(names.map(str::to_owned).collect())
    }
}

struct Place {
    folder: tempfile::TempDir,
    what: Push,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let what = Push {
        store: folder.path().join("monitor.db"),
        ..Push::default()
    };
    Place { folder, what }
}

fn store(place: &Place, boot_id: &str, limits: Limits) -> Store {
    let run = Run {
        host: "a b".to_owned(),
        kernel: "6.18".to_owned(),
        boot_id: boot_id.to_owned(),
        ..Run::default()
    };
    Store::create(&place.what.store, &run, 0, limits).expect("a store")
}

fn append(store: &mut Store, begin_ns: i64) {
    assert!(matches!(store.append(interval(begin_ns)), Appended::Stored));
}

#[test]
fn pushed_twice_is_once_and_a_days_file_grows_under_its_name() {
    let place = place();
    let mut target = Memory::default();
    let mut store = store(&place, "b1", Limits::default());
    append(&mut store, 0);
    append(&mut store, MINUTE_NS);
    let first = push(&place.what, &mut target).expect("pushed");
    assert_eq!((first.files, first.intervals), (3, 2));
    let names: Vec<_> = target.files.keys().cloned().collect();
    assert_eq!(
        names,
        [
            "v1/day/date=1970-01-01/host=a%20b/b1-0.parquet",
            "v1/interval/date=1970-01-01/host=a%20b/b1-0.parquet",
            "v1/phase/date=1970-01-01/host=a%20b/b1-0.parquet",
        ]
    );
    let before = target.files.clone();
    assert_eq!(
        push(&place.what, &mut target).expect("pushed"),
        Pushed::default()
    );
    let again = Push {
        again: true,
        ..place.what.clone()
    };
    assert_eq!(push(&again, &mut target).expect("pushed"), first);
    assert_eq!(target.files, before);
    append(&mut store, 2 * MINUTE_NS);
    append(&mut store, DAY_NS);
    let more = push(&place.what, &mut target).expect("pushed");
    assert_eq!((more.files, more.intervals), (6, 4));
    assert_eq!(target.files.len(), 6);
    assert_ne!(target.files[&names[0]], before[&names[0]]);
}

#[test]
fn a_push_that_fails_in_the_middle_goes_on_there() {
    let place = place();
    let mut store = store(&place, "b1", Limits::default());
    for day in 0..5 {
        append(&mut store, day * DAY_NS);
    }
    let mut whole = Memory::default();
    let other = Push {
        store: place.folder.path().join("copy.db"),
        ..Push::default()
    };
    for suffix in ["", "-wal"] {
        let name = |path: &Path| format!("{}{suffix}", path.display());
        std::fs::copy(name(&place.what.store), name(&other.store)).expect("copied");
    }
    push(&other, &mut whole).expect("pushed");
    assert_eq!(whole.files.len(), 15);
    let mut target = Memory::default();
    let mut files = 0;
    for _ in 0..20 {
        target.takes = Some(4);
        match push(&place.what, &mut target) {
            Ok(pushed) => {
                files += pushed.files;
                break;
            }
            Err(error) => assert_eq!(error.what(), "the target is away"),
        }
    }
    // The last call had only what was left.
    assert!(files <= 3, "{files}");
    assert_eq!(target.files, whole.files);
}

#[test]
fn what_the_store_has_lost_stays_in_the_target_and_what_it_lost_too_early_is_counted() {
    let place = place();
    let limits = Limits {
        age: Duration::from_ns(3 * MINUTE_NS),
        ..Limits::default()
    };
    let mut target = Memory::default();
    let mut store = store(&place, "b1", limits);
    for minute in 0..3 {
        append(&mut store, minute * MINUTE_NS);
    }
    push(&place.what, &mut target).expect("pushed");
    let old = target.files.clone();
    for minute in 3..6 {
        append(&mut store, minute * MINUTE_NS);
    }
    let pushed = push(&place.what, &mut target).expect("pushed");
    assert_eq!((pushed.intervals, pushed.missed), (3, 0));
    assert_eq!(target.files.len(), 6);
    assert!(old.iter().all(|(name, bytes)| &target.files[name] == bytes));
    for minute in 6..20 {
        append(&mut store, minute * MINUTE_NS);
    }
    // Four stay; ten of the fourteen were removed before they could be pushed.
    let pushed = push(&place.what, &mut target).expect("pushed");
    assert_eq!((pushed.intervals, pushed.missed), (4, 10));
    // Whoever has forgotten what was pushed pushes nothing a second time.
    let before = target.files.clone();
    std::fs::remove_file(place.folder.path().join("monitor.db-pushed")).expect("removed");
    let pushed = push(&place.what, &mut target).expect("pushed");
    assert_eq!((pushed.intervals, pushed.left_out), (0, 4));
    assert_eq!(target.files, before);
}

#[test]
fn a_store_that_was_begun_anew_and_another_boot_have_files_of_their_own() {
    let place = place();
    let mut target = Memory::default();
    let mut first = store(&place, "b1", Limits::default());
    (0..4).for_each(|minute| append(&mut first, minute * MINUTE_NS));
    push(&place.what, &mut target).expect("pushed");
    drop(first);
    let mut second = store(&place, "b2", Limits::default());
    append(&mut second, 4 * MINUTE_NS);
    push(&place.what, &mut target).expect("pushed");
    assert_eq!(target.files.len(), 6);
    drop(second);
    let old = target.files.clone();
    for suffix in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{suffix}", place.what.store.display())).ok();
    }
    let mut third = store(&place, "b2", Limits::default());
    append(&mut third, 5 * MINUTE_NS);
    let pushed = push(&place.what, &mut target).expect("pushed");
    assert_eq!((pushed.intervals, pushed.missed), (1, 0));
    assert_eq!(target.files.len(), 9);
    assert!(old.iter().all(|(name, bytes)| &target.files[name] == bytes));
}

#[test]
fn a_folder_that_is_away_is_told_and_nothing_is_written_below_it() {
    let place = place();
    let mut store = store(&place, "b1", Limits::default());
    append(&mut store, 0);
    let root = place.folder.path().join("fleet");
    let try_push = || push(&place.what, &mut Directory::new(&root));
    let check = |expect: &str| {
        let error = try_push().expect_err("it is away");
        assert!(error.what().contains(expect), "{error:#}");
        assert!(error.value_found().is_some() && error.fixed_by().is_some());
    };
    check("is not there");
    std::fs::create_dir(&root).expect("made");
    assert_eq!(try_push().expect("pushed").files, 3);
    append(&mut store, MINUTE_NS);
    let mounted = place.folder.path().join("away");
    std::fs::rename(&root, &mounted).expect("moved");
    check("is not there");
    // The empty folder below a mount.
    std::fs::create_dir(&root).expect("made");
    check("another one than before");
    assert_eq!(std::fs::read_dir(&root).expect("a folder").count(), 0);
    std::fs::remove_dir(&root).expect("removed");
    std::fs::rename(&mounted, &root).expect("moved");
    assert_eq!(try_push().expect("pushed").intervals, 2);
    let below = root.join("v1/phase/date=1970-01-01/host=a%20b");
    let names = std::fs::read_dir(below).expect("a folder").flatten();
    let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["b1-0.parquet"]);
}

#[test]
fn the_lines_of_a_watch_are_pushed_by_day_and_once() {
    let mut place = place();
    let snapshots = place.folder.path().join("snapshots");
    std::fs::create_dir(&snapshots).expect("made");
    place.what.snapshots = Some(snapshots.clone());
    let mut store = store(&place, "b1", Limits::default());
    append(&mut store, 0);
    let mut target = Memory::default();
    assert_eq!(push(&place.what, &mut target).expect("pushed").files, 3);
    let line = |ns: i64| {
        format!(
            "{{\"schema\":\"rtscope.late\",\"version\":1,\"wall_ns\":{ns},\"latency_ns\":7,\
             \"task\":{{\"tid\":1,\"comm\":\"x\",\"prio\":-51}},\"cause\":\"c\",\"exact\":true,\
             \"snapshot\":null}}\n"
        )
    };
    std::fs::write(snapshots.join("late.ndjson"), line(5) + &line(DAY_NS)).expect("written");
    assert_eq!(push(&place.what, &mut target).expect("pushed").files, 2);
    assert_eq!(push(&place.what, &mut target).expect("pushed").files, 0);
    assert!(
        target
            .files
            .contains_key("v1/late/date=1970-01-02/host=a%20b/watch-86400000000000.parquet")
    );
    std::fs::write(
        snapshots.join("late.ndjson"),
        line(5) + &line(DAY_NS) + &line(DAY_NS + 1),
    )
    .expect("written");
    assert_eq!(push(&place.what, &mut target).expect("pushed").files, 1);
    assert_eq!(target.files.len(), 5);
}
