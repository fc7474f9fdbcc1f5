//! Walks that own their trace: what is selected, found by name, and found again by seeking.

use std::sync::Arc;

use event::{Cpu, ErrorKind, Instant, TimeRange};
use expr::Expr;
use face::{Accessor, Selection, Step, Walk};
use testkit::{SAMPLE_EVENTS, SyntheticTrace, Task, write_sample};
use trace::Trace;

fn sample() -> (tempfile::TempDir, Arc<Trace>) {
    let dir = tempfile::tempdir().unwrap();
    write_sample(dir.path()).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    (dir, Arc::new(trace))
}

fn filtered(filter: &str) -> Selection {
    Selection {
        filter: Some(Expr::parse(filter).unwrap()),
        ..Selection::default()
    }
}

/// Events and lost events that a walk has yet to give.
fn count(walk: &mut Walk) -> (u64, u64) {
    let (mut events, mut lost) = (0, 0);
    loop {
        match walk.advance().unwrap() {
            Step::Event => events += 1,
            Step::Lost(loss) => lost += loss.count.unwrap(),
            Step::Damage(damage) => panic!("{damage:?}"),
            Step::End => return (events, lost),
        }
    }
}

#[test]
fn a_selection_leaves_out_events_and_never_losses() {
    let (_dir, trace) = sample();
    let check = |selection: Selection, expect: u64| {
        let mut walk = Walk::new(&trace, selection).unwrap();
        assert_eq!(count(&mut walk), (expect, 7));
        assert!(walk.event().is_none(), "nothing stands at the end");
    };
    check(Selection::default(), SAMPLE_EVENTS);
    check(
        Selection {
            cpus: vec![Cpu(0)],
            ..Selection::default()
        },
        SAMPLE_EVENTS / 2,
    );
    check(filtered("user == \"ann\""), 34);
    check(filtered("status < 0 && $cpu == 1"), 0);
    check(filtered("status < 0"), 10);
    let range = TimeRange {
        begin: Instant::from_ns(1_040_000_000),
        end: Instant::from_ns(1_060_000_000),
    };
    check(
        Selection {
            range,
            ..Selection::default()
        },
        60,
    );
}

#[test]
fn what_no_event_can_be_is_refused() {
    let (_dir, trace) = sample();
    let check = |selection: Selection, expect: ErrorKind| {
        let error = Walk::new(&trace, selection).err().unwrap();
        assert_eq!(error.kind(), expect, "{error:#}");
        assert!(error.fixed_by().is_some(), "{error:#}");
    };
    let range = TimeRange {
        begin: Instant::from_ns(2),
        end: Instant::from_ns(2),
    };
    check(
        Selection {
            range,
            ..Selection::default()
        },
        ErrorKind::InvalidInput,
    );
    check(
        Selection {
            cpus: vec![Cpu(0), Cpu(2)],
            ..Selection::default()
        },
        ErrorKind::NotFound,
    );
    let walk = Walk::new(&trace, filtered("usr == \"ann\"")).unwrap();
    assert_eq!(
        walk.notes().len(),
        1,
        "a filter that matches nothing says why"
    );
    let error = Accessor::bind(&trace, "usr").unwrap_err();
    assert_eq!(error.fixed_by(), Some("did you mean 'user'?"));
}

#[test]
fn a_field_bound_by_name_is_found_in_each_class_that_has_it_and_in_no_other() {
    let (_dir, trace) = sample();
    let [id, user, load, sizes] =
        ["id", "user", "load", "sizes"].map(|name| Accessor::bind(&trace, name).unwrap());
    let mut walk = Walk::new(&trace, Selection::default()).unwrap();
    let mut found = Vec::new();
    while found.len() < 6 {
        assert_eq!(walk.advance().unwrap(), Step::Event);
        let event = walk.event().unwrap();
        let user = user
            .text(&event)
            .map(|text| text.escape_ascii().to_string());
        found.push((id.i64(&event), user, load.f64(&event)));
        assert_eq!(id.text(&event), None, "a number is no text");
        assert_eq!(sizes.i64(&event), None, "a sequence is no number");
    }
    let text = |text: &str| Some(text.to_owned());
    let expect = [
        (Some(0), text("ann"), None),
        (None, None, None),
        (Some(0), None, Some(0.0)),
        (Some(1), text("bob"), None),
        (None, None, None),
        (Some(1), None, Some(0.01)),
    ];
    assert_eq!(found, expect);
}

#[test]
fn seeking_goes_forward_and_back_and_stays_inside_of_the_selection() {
    let (_dir, trace) = sample();
    let selection = Selection {
        range: TimeRange {
            begin: Instant::from_ns(1_010_000_000),
            end: Instant::from_ns(1_040_000_000),
        },
        ..filtered("user present")
    };
    let mut walk = Walk::new(&trace, selection).unwrap();
    let mut check = |time_ns: i64, expect: u64| {
        walk.seek(Instant::from_ns(time_ns)).unwrap();
        assert_eq!(count(&mut walk).0, expect, "from {time_ns}");
    };
    check(1_039_000_000, 1);
    check(1_020_000_000, 20);
    check(0, 30);
    check(1_039_000_001, 0);
    check(i64::MAX, 0);
    check(i64::MIN, 30);
}

#[test]
fn a_walk_outlives_its_opener_and_moves_between_threads() {
    let hog = Task::rt(2, "hog", 60);
    let trace = Arc::new(SyntheticTrace::new().at(5).run(hog).at(9).wake(hog).build());
    let mut walk = Walk::new(&trace, Selection::default()).unwrap();
    drop(trace);
    assert_eq!(walk.advance().unwrap(), Step::Event);
    let events = std::thread::spawn(move || count(&mut walk).0);
    assert_eq!(events.join().unwrap(), 2);
}
