//! What the store promises, on files of its own.

use std::fs::File;

use super::*;
use crate::interval::{Series, Worst};
use crate::kind::Kind;
use crate::test_data::{MINUTE_NS, sample};
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monitor.db");
    Place {
        _folder: folder,
        path,
    }
}

fn create(path: &Path, limits: Limits) -> Result<Store> {
    let run = Run {
        host: "h".to_owned(),
        kernel: "6.18".to_owned(),
        boot_id: "b".to_owned(),
        ..Run::default()
    };
    Store::create(path, &run, 0, limits)
}

fn all(store: &Store, range: Range) -> Vec<Interval> {
    let mut intervals = Vec::new();
    let read = store.read(range, |_, interval| {
        intervals.push(interval);
        Ok(())
    });
    read.expect("it reads");
    intervals
}

/// For tests of thousands of intervals: the machine does not fall.
fn in_a_hurry(store: &Store) {
    let off = store.connection().execute_batch("PRAGMA synchronous = OFF");
    off.expect("it is set");
}

fn stored(appended: Appended) {
    assert!(matches!(appended, Appended::Stored), "{appended:?}");
}

#[test]
fn what_went_in_comes_out_while_somebody_writes() {
    let place = place();
    let mut writer = create(&place.path, Limits::default()).expect("a store");
    for number in 0..3 {
        stored(writer.append(sample(number)));
    }
    let reader = Store::open(&place.path).expect("it opens");
    assert_eq!(all(&reader, Range::ALL), [sample(0), sample(1), sample(2)]);
    let middle = Range {
        begin_ns: 5 * MINUTE_NS + 1,
        end_ns: 10 * MINUTE_NS - 1,
    };
    assert_eq!(all(&reader, middle), [sample(1)]);
    stored(writer.append(sample(3)));
    assert_eq!(all(&reader, Range::ALL).len(), 4);
    let runs = reader.runs().expect("runs");
    assert_eq!((runs.len(), runs[0].1.kernel.as_str()), (1, "6.18"));
}

#[test]
fn what_was_late_is_in_the_interval_in_which_it_ended_however_late_it_is_told() {
    let place = place();
    let mut store = create(&place.path, Limits::default()).expect("a store");
    for number in 0..3 {
        stored(store.append(sample(number)));
    }
    let late = |at_ns: i64| Late {
        at_ns,
        cause: "told later".to_owned(),
        ..Late::default()
    };
    let second_ns = sample(1).head.begin_ns;
    assert!(store.add_late(&late(second_ns)));
    assert!(store.add_late(&late(second_ns - 1)));
    assert!(
        !store.add_late(&late(sample(2).head.end_ns)),
        "that is open"
    );
    let counts = |store: &Store| {
        let all = all(store, Range::ALL).into_iter();
        all.map(|one| one.late.len()).collect::<Vec<_>>()
    };
    assert_eq!(counts(&store), [2, 2, 1]);
    assert_eq!(all(&store, Range::ALL)[1].late[1], late(second_ns));
    // No interval has more than it may.
    (0..100).for_each(|_| assert!(store.add_late(&late(second_ns))));
    assert_eq!(counts(&store), [2, crate::late::LATE_MAX, 1]);
    // Removed with it.
    store.limit(Limits {
        age: Duration::from_ns(1),
        ..Limits::default()
    });
    stored(store.append(sample(9)));
    assert_eq!(counts(&store), [1]);
    let left = store
        .connection()
        .query_row("SELECT count(*) FROM late", [], |row| row.get(0));
    assert_eq!(left, Ok(1));
}

/// What a tracker measured beside the phases of an interval.
fn tracked(number: i64) -> Interval {
    let mut interval = sample(number);
    let kind = Kind::tracked("block", "device", "woken by");
    interval.series.push(Series {
        phase: kind.clone(),
        ..interval.series[0].clone()
    });
    interval.worst.push(Worst {
        phase: kind,
        key: Some("vda read".to_owned()),
        ..interval.worst[0].clone()
    });
    interval
}

#[test]
fn what_trackers_measure_is_kept_beside_the_phases_and_an_older_program_refuses_it_as_newer() {
    let place = place();
    let mut store = create(&place.path, Limits::default()).expect("a store");
    let version = |store: &Store| -> i64 {
        let row = store
            .connection()
            .query_row("PRAGMA user_version", [], |row| row.get(0));
        row.expect("a version")
    };
    stored(store.append(sample(0)));
    assert_eq!(version(&store), 1, "an older program reads it");
    for number in 1..3 {
        stored(store.append(tracked(number)));
    }
    assert_eq!(version(&store), 2);
    let reader = Store::open(&place.path).expect("it opens");
    let expect = [sample(0), tracked(1), tracked(2)];
    assert_eq!(all(&reader, Range::ALL), expect);
    let found = reader.kind_named("block_device").expect("read");
    assert_eq!(found.as_ref().and_then(Kind::other), Some("woken by"));
    assert!(reader.kind_named("switch").expect("read").is_some());
    assert_eq!(reader.kind_named("block_queue").expect("read"), None);
}

#[test]
fn a_store_of_the_first_kind_is_read_as_it_is_and_gets_its_new_column_from_a_writer() {
    let place = place();
    let mut store = create(&place.path, Limits::default()).expect("a store");
    stored(store.append(sample(0)));
    let older = "ALTER TABLE interval DROP COLUMN hidden; DROP TABLE late; DROP TABLE kind;
                 ALTER TABLE interval DROP COLUMN lost_tracked; ALTER TABLE worst DROP COLUMN key";
    store.connection().execute_batch(older).expect("as it was");
    drop(store);
    let hidden = |store: &Store| {
        let intervals = all(store, Range::ALL).into_iter();
        intervals.map(|one| one.head.hidden).collect::<Vec<_>>()
    };
    let reader = Store::open(&place.path).expect("it opens");
    assert_eq!(hidden(&reader), [0]);
    assert!(all(&reader, Range::ALL)[0].late.is_empty());
    let mut writer = create(&place.path, Limits::default()).expect("it is taken over");
    stored(writer.append(sample(1)));
    assert_eq!(hidden(&writer), [0, 3]);
    assert_eq!(all(&writer, Range::ALL)[1].late, sample(1).late);
    // Also for who began to read before.
    assert_eq!(hidden(&reader), [0, 3]);
    assert_eq!(reader.heads().expect("heads").len(), 2);
}

#[test]
fn a_second_writer_is_refused_by_name_and_a_dead_one_leaves_no_lock() {
    let place = place();
    let first = create(&place.path, Limits::default()).expect("a store");
    let refused = create(&place.path, Limits::default()).expect_err("it is taken");
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    let found = refused.value_found().expect("who");
    assert!(found.contains(&std::process::id().to_string()), "{found}");
    assert!(refused.fixed_by().is_some());
    drop(first);
    create(&place.path, Limits::default()).expect("it is free again");
}

#[test]
fn a_store_that_is_broken_newer_or_something_else_is_refused_in_three_parts() {
    let check = |harm: &dyn Fn(&Path), expect: ErrorKind| {
        let place = place();
        let mut store = create(&place.path, Limits::default()).expect("a store");
        for number in 0..50 {
            stored(store.append(sample(number)));
        }
        drop(store);
        harm(&place.path);
        for error in [
            create(&place.path, Limits::default()).err(),
            Store::open(&place.path)
                .and_then(|store| store.read(Range::ALL, |_, _| Ok(())).map(|()| store))
                .err(),
        ] {
            let error = error.expect("it is refused");
            assert_eq!(error.kind(), expect, "{error:#}");
            assert!(error.value_found().is_some() && error.fixed_by().is_some());
        }
    };
    let sql = |text: &'static str| {
        move |path: &Path| {
            let connection = Connection::open(path).expect("opens");
            connection.execute_batch(text).expect("runs");
        }
    };
    check(&sql("PRAGMA user_version = 3"), ErrorKind::Unsupported);
    check(&sql("PRAGMA application_id = 1"), ErrorKind::Corrupt);
    let text = |path: &Path| std::fs::write(path, "not a database at all, but a text").expect("x");
    check(&text, ErrorKind::Corrupt);
    let cut = |path: &Path| {
        let file = File::options().write(true).open(path).expect("opens");
        let length = file.metadata().expect("a length").len();
        file.set_len(length / 2 / 4096 * 4096).expect("cut");
    };
    check(&cut, ErrorKind::Corrupt);
    let absent = Store::open(Path::new("/nonexistent/store")).expect_err("absent");
    assert_eq!(absent.kind(), ErrorKind::NotFound);
}

#[test]
fn a_full_disk_loses_no_closed_interval_that_memory_can_hold() {
    let place = place();
    let mut store = create(&place.path, Limits::default()).expect("a store");
    let pages = store.pragma("page_count").expect("pages");
    let limit = |store: &Store, pages: i64| {
        store
            .connection()
            .execute_batch(&format!("PRAGMA max_page_count = {pages}"))
            .expect("set");
    };
    limit(&store, pages);
    let mut number = 0;
    // What is free in the pages is used first.
    let error = loop {
        match store.append(sample(number)) {
            Appended::Waits(error, 1) => break error,
            other => stored(other),
        }
        number += 1;
        assert!(number < 1000);
    };
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error:#}");
    for more in 1..=WAITING_MAX as i64 + 1 {
        let appended = store.append(sample(number + more));
        let lost = matches!(appended, Appended::Lost(_));
        assert_eq!(lost, more >= WAITING_MAX as i64, "{more}: {appended:?}");
    }
    limit(&store, 10_000);
    stored(store.append(sample(number + WAITING_MAX as i64 + 2)));
    let intervals = all(&store, Range::ALL);
    assert_eq!(intervals.len() as i64, number + WAITING_MAX as i64 + 1);
    // The first one after the gap says how many are not there.
    let unsaved: Vec<u64> = intervals
        .iter()
        .map(|interval| interval.head.unsaved)
        .collect();
    assert_eq!(unsaved.iter().sum::<u64>(), 2);
    assert_eq!(unsaved[number as usize], 2);
}

#[test]
fn the_oldest_go_first_by_age_and_by_size() {
    let place = place();
    let age = Limits {
        age: Duration::from_ns(50 * MINUTE_NS),
        ..Limits::default()
    };
    let mut store = create(&place.path, age).expect("a store");
    in_a_hurry(&store);
    for number in 0..400 {
        stored(store.append(sample(number)));
    }
    let kept = all(&store, Range::ALL);
    assert_eq!(kept.len(), 11);
    assert_eq!(kept[10], sample(399));
    let tasks = store
        .connection()
        .query_row("SELECT count(*) FROM task", [], |row| row.get(0));
    let tasks: i64 = tasks.expect("a count");
    assert!(tasks < 400, "{tasks} names of nobody");
    drop(store);

    let size = Limits {
        bytes: 200 << 10,
        ..Limits::default()
    };
    let mut store = create(&place.path, size).expect("a store");
    in_a_hurry(&store);
    for number in 400..3000 {
        stored(store.append(sample(number)));
    }
    assert!(store.bytes().expect("a size") <= (200 << 10) + (64 << 10));
    let kept = all(&store, Range::ALL);
    assert!(kept.len() > 100);
    assert_eq!(kept.last(), Some(&sample(2999)));
}

#[test]
fn a_clock_that_is_years_ahead_for_a_moment_empties_no_store() {
    let place = place();
    let mut store = create(&place.path, Limits::default()).expect("a store");
    in_a_hurry(&store);
    for number in 0..300 {
        stored(store.append(sample(number)));
    }
    let ahead = |mut interval: Interval| {
        let head = &mut interval.head;
        head.end_ns += 70 * 366 * 24 * 60 * MINUTE_NS;
        interval
    };
    // Set within an interval, and back within the next one.
    stored(store.append(ahead(sample(300))));
    stored(store.append(sample(301)));
    let kept = all(&store, Range::ALL);
    assert!(kept.len() > 200, "{} of 302", kept.len());
    assert_eq!(kept.last(), Some(&sample(301)));
}

#[test]
fn a_store_that_is_removed_or_moved_is_begun_anew_and_nothing_is_lost() {
    let place = place();
    let moved = place.path.with_extension("moved");
    let check = |away: &dyn Fn()| {
        let mut store = create(&place.path, Limits::default()).expect("a store");
        let before = all(&store, Range::ALL).len();
        stored(store.append(sample(0)));
        away();
        let appended = store.append(sample(1));
        assert!(matches!(appended, Appended::StoredAnew), "{appended:?}");
        stored(store.append(sample(2)));
        assert_eq!(all(&store, Range::ALL), [sample(1), sample(2)]);
        before
    };
    assert_eq!(
        check(&|| std::fs::rename(&place.path, &moved).expect("moved")),
        0
    );
    let old = Store::open(&moved).expect("a store");
    assert_eq!(all(&old, Range::ALL), [sample(0)]);
    assert_eq!(
        check(&|| std::fs::remove_file(&place.path).expect("removed")),
        2
    );
}

#[test]
fn a_store_is_a_file_whatever_its_name() {
    let error = Store::create(Path::new(""), &Run::default(), 0, Limits::default());
    let error = error.expect_err("no file is named");
    assert_eq!(
        (error.kind(), error.what()),
        (ErrorKind::InvalidInput, "the store has no name")
    );
    let folder = tempfile::tempdir().expect("a folder");
    for name in [":memory:", "file:x?mode=memory"] {
        let file = store_file(Path::new(name)).expect("a name");
        assert!(file.is_absolute() && file.ends_with(name), "{file:?}");
        let path = folder.path().join(name);
        drop(Store::create(&path, &Run::default(), 0, Limits::default()).expect("a store"));
        assert!(path.is_file(), "{path:?}");
    }
}
