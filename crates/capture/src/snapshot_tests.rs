//! Windows that hold their hits, and windows that do not.

use event::evidence::{EndKind, Kind, Step, StepKind, Sum, TaskRef};
use event::{Duration, Prio, Tid};

use super::*;

fn task(comm: &str) -> TaskRef {
    TaskRef {
        tid: Tid(9),
        comm: comm.to_owned(),
        prio: Prio(39),
    }
}

fn hit(origin_ns: i64, end_ns: i64, cpus: &[u32]) -> Hit {
    let step = |cpu: &u32| Step {
        time: Instant::from_ns(origin_ns),
        kind: StepKind::Waking,
        cpu: Cpu(*cpu),
        id: 9,
        prio: Prio(39),
        comm: "target".to_owned(),
    };
    Hit {
        id: 1,
        end_kind: EndKind::SwitchIn,
        origin: Instant::from_ns(origin_ns),
        end: Instant::from_ns(end_ns),
        threshold: Duration::from_ns(1),
        task: task("target"),
        preemptions: 0,
        overflow: 0,
        stale: false,
        repaired: true,
        unseen: false,
        kin: Default::default(),
        ordinary: false,
        culprit: Some(task("hog")),
        steps: cpus.iter().map(step).collect(),
        cost: Duration::from_ns(12),
        waker_stack: Vec::new(),
        wakee_stack: Vec::new(),
        culprit_stack: Vec::new(),
    }
}

fn totals(cpu: u32, window: Option<(i64, i64)>) -> CpuTotals {
    let range = |(begin, end)| TimeRange {
        begin: Instant::from_ns(begin),
        end: Instant::from_ns(end),
    };
    CpuTotals {
        cpu: Cpu(cpu),
        events: 0,
        discarded: 0,
        unknown: 0,
        damaged_pages: 0,
        backwards: 0,
        stacks: 0,
        unread: 0,
        size_bytes: 0,
        window: window.map(range),
    }
}

#[test]
fn a_window_that_begins_after_the_origin_says_which_part_is_missing() {
    let cpus = [
        totals(0, Some((10, 90))),
        totals(1, Some((30, 90))),
        totals(2, None),
    ];
    let check = |hit: Hit, expect: &[(u32, i64, i64)]| {
        let found: Vec<_> = missing_parts(&[hit], &cpus)
            .into_iter()
            .map(|part| (part.cpu.0, part.range.begin.as_ns(), part.range.end.as_ns()))
            .collect();
        assert_eq!(found, expect);
    };
    check(hit(40, 80, &[0, 1]), &[]);
    check(hit(20, 80, &[0, 1]), &[(1, 20, 30)]);
    check(hit(20, 25, &[1]), &[(1, 20, 25)]);
    check(hit(20, 80, &[2, 7]), &[(2, 20, 80), (7, 20, 80)]);
}

fn seen(hits: &[Hit]) -> Seen<'_> {
    Seen {
        hits,
        ..Seen::default()
    }
}

#[test]
fn evidence_that_was_overwritten_is_a_loss_of_its_cpu_up_to_what_is_left() {
    let formats = Formats::new(ftrace::PageLayout::LP64, []);
    let check = |gone: &[(u32, i64)], expect: &[(u32, i64)]| {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("snap");
        let gone = gone.iter().map(|(cpu, ns)| Gone {
            cpu: Cpu(*cpu),
            before: Instant::from_ns(*ns),
        });
        let seen = Seen {
            hits: &[hit(40, 80, &[0])],
            gone: &gone.collect::<Vec<_>>(),
            ..Seen::default()
        };
        let window = TimeRange {
            begin: Instant::from_ns(20),
            end: Instant::from_ns(90),
        };
        let mut trace = KernelTrace::create(
            &root,
            (Arc::new(KernelClasses::compile(&formats)), &[]),
            Vec::new(),
            0,
            true,
        )
        .expect("a trace");
        let encoded = evidence::encode(seen.hits, seen.evidence);
        trace
            .evidence(&encoded, seen.gone, window)
            .expect("written");
        drop(trace);
        let trace = trace::Trace::open(&root).expect("it is read");
        let mut cursor = trace.cursor(TimeRange::ALL);
        let mut found = Vec::new();
        while let Some(item) = cursor.next().expect("whole") {
            if let trace::Item::Lost(lost) = item {
                assert_eq!(lost.from, trace::LostFrom::Evidence);
                found.push((lost.cpu.expect("a CPU").0, lost.range.end.as_ns()));
            }
        }
        assert_eq!(found, expect);
    };
    check(&[], &[]);
    check(&[(0, 50), (1, 60)], &[(0, 50), (1, 60)]);
    // All that is gone is older than the window, and nothing is left of the ring.
    check(&[(0, 20)], &[]);
    check(&[(1, i64::MAX)], &[(1, 90)]);
}

#[test]
fn a_snapshot_without_pages_still_holds_its_evidence_and_stands_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("snap");
    let formats = Formats::new(ftrace::PageLayout::LP64, []);
    let facts = SnapshotFacts::default();
    let write = || {
        let hits = [hit(40, 80, &[0])];
        write_snapshot(&root, &Pages::default(), &formats, &seen(&hits), &facts)
    };
    let summary = write().expect("it is written");
    assert_eq!(
        (
            summary.evidence_events,
            summary.events(),
            summary.missing.len()
        ),
        (1, 0, 1)
    );
    assert!(root.join("kernel/metadata").exists() && root.join("kernel/evidence_0").exists());
    let again = write().expect_err("it is there already");
    assert_eq!(again.kind(), event::ErrorKind::AlreadyExists);
}

#[test]
fn a_snapshot_says_what_its_evidence_adds_up_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("snap");
    let formats = Formats::new(ftrace::PageLayout::LP64, []);
    let facts = SnapshotFacts::default();
    let hits = [hit(40, 80, &[0]), hit(50, 90, &[1])];
    write_snapshot(&root, &Pages::default(), &formats, &seen(&hits), &facts).expect("written");
    let trace = trace::Trace::open(&root).expect("a snapshot");
    let said = trace.info().environment.get("rtscope_evidence_events");
    let sum = |hit: &Hit| {
        let mut bytes = Vec::new();
        hit.encode(&mut bytes);
        let mut sum = Sum::default();
        sum.add(Kind::Hit.class(), &bytes);
        sum
    };
    let expect = format!("0:{},1:{}", sum(&hits[0]), sum(&hits[1]));
    assert_eq!(said, Some(&expect));
}

/// A page of one CPU whose events, which no format describes, are at these times.
fn page_of(times_ns: &[u64]) -> crate::pages::CpuPages {
    let mut bytes = times_ns[0].to_le_bytes().to_vec();
    bytes.extend((8 * times_ns.len() as u64).to_le_bytes());
    let mut last_ns = times_ns[0];
    for time_ns in times_ns {
        bytes.extend((1u32 | ((time_ns - last_ns) as u32) << 5).to_le_bytes());
        bytes.extend([0; 4]);
        last_ns = *time_ns;
    }
    bytes.resize(4096, 0);
    let layout = ftrace::PageLayout::LP64;
    let block = crate::pages::PageBlock::new(Cpu(0), layout, bytes);
    crate::pages::CpuPages {
        cpu: Cpu(0),
        spans: vec![crate::pages::PageSpan::whole(Arc::new(block))],
    }
}

#[test]
fn where_the_rings_stood_still_before_a_hit_was_over_its_end_is_a_loss() {
    let directory = tempfile::tempdir().expect("a directory");
    let check = |name: &str, stop_ns: Option<(i64, i64)>, expect: &[(i64, i64)]| {
        let range = |(begin_ns, end_ns)| TimeRange {
            begin: Instant::from_ns(begin_ns),
            end: Instant::from_ns(end_ns),
        };
        let pages = Pages {
            cpus: vec![page_of(&[20, 30])],
            until: Instant::from_ns(95),
            stops: stop_ns.map(range).into_iter().collect(),
        };
        let formats = Formats::new(ftrace::PageLayout::LP64, []);
        let root = directory.path().join(name);
        let hits = [hit(40, 80, &[0])];
        let facts = SnapshotFacts::default();
        write_snapshot(&root, &pages, &formats, &seen(&hits), &facts).expect("written");
        let trace = trace::Trace::open(&root).expect("a snapshot");
        let mut cursor = trace.cursor(TimeRange::ALL);
        let mut found = Vec::new();
        while let Some(item) = cursor.next().expect("whole") {
            if let trace::Item::Lost(lost) = item {
                found.push((lost.range.begin.as_ns(), lost.range.end.as_ns()));
            }
        }
        assert_eq!(found, expect, "{name}");
    };
    check("it-ran", None, &[]);
    check("it-stood", Some((30, 95)), &[(30, 95)]);
}
