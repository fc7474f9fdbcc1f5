//! Snapshots of this kernel's flight recorder, read back by babeltrace2. Needs root.

use std::process::Command;

use capture::{
    EventSelection, History, Mode, Recorder, RecorderConfig, Seen, SnapshotFacts, capabilities,
    write_snapshot,
};
use event::evidence::{EndKind, Evidence, Frame, Hit, LateTimer, Mode as Interrupted, TaskRef};
use event::evidence::{PreemptionModel, PreemptionOff, Step, StepKind};
use event::{Cpu, Duration, Instant, Prio, Tid, TimeRange};

fn task(tid: i32, comm: &str, prio: i32) -> TaskRef {
    TaskRef {
        tid: Tid(tid),
        comm: comm.to_owned(),
        prio: Prio(prio),
    }
}

fn stack() -> Vec<Frame> {
    let frame = |address, symbol: &str| Frame {
        address,
        symbol: symbol.to_owned(),
    };
    vec![
        frame(0xffff_ffff_8100_0010, "hog_loop+0x10"),
        frame(0xffff_ffff_8100_0020, ""),
    ]
}

fn hit(window: TimeRange) -> Hit {
    let step = |kind, time, id, comm: &str| Step {
        time,
        kind,
        cpu: Cpu(0),
        id,
        prio: Prio(39),
        comm: comm.to_owned(),
    };
    Hit {
        id: 7,
        end_kind: EndKind::SwitchIn,
        origin: window.begin,
        end: window.end,
        threshold: Duration::from_us(100),
        task: task(42, "victim", 39),
        preemptions: 1,
        overflow: 0,
        stale: false,
        repaired: true,
        unseen: false,
        kin: Default::default(),
        ordinary: false,
        culprit: Some(task(43, "hog", 10)),
        steps: vec![
            step(StepKind::Hardirq, window.begin, -1, "local_timer"),
            step(StepKind::SwitchIn, window.end, 42, "victim"),
        ],
        cost: Duration::from_ns(12),
        waker_stack: stack(),
        wakee_stack: Vec::new(),
        culprit_stack: stack(),
    }
}

fn evidence(window: TimeRange) -> [Evidence; 2] {
    let late = LateTimer {
        cpu: Cpu(0),
        time: window.end,
        expiry: window.begin,
        lateness: window.duration(),
        hrtimer: 0xabc,
        function: 0xdef,
        interrupted: task(43, "hog", 10),
        mode: Interrupted::Kernel,
        steal: Duration::ZERO,
        stack: stack(),
        came_on: 0b10,
    };
    let off = PreemptionOff {
        cpu: Cpu(1),
        time: window.end,
        begin: window.begin,
        delay: window.duration(),
        task: task(43, "hog", 10),
        model: PreemptionModel::None,
        stack: stack(),
        flags: 0,
    };
    [Evidence::LateTimer(late), Evidence::PreemptionOff(off)]
}

/// Runs something that wakes and switches tasks.
fn make_events() {
    for _ in 0..30 {
        let status = Command::new("true").status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

#[test]
fn a_snapshot_holds_the_window_the_hit_and_the_evidence_as_they_were() {
    let _lock = testkit::privileged();
    let capabilities = SnapshotFacts::collect(&capabilities::gather(), "test");
    let mut recorder = Recorder::start(&RecorderConfig {
        events: EventSelection::default(),
        buffer_bytes_per_cpu: 1 << 20,
        mode: Mode::Overwrite,
        ..Default::default()
    })
    .expect("it starts");
    // What a drain takes is more than the events in it: each has the memory of a full ring.
    let mut history = History::new(recorder.drains_bytes(2));
    for _ in 0..2 {
        make_events();
        recorder.stop().expect("it stops");
        make_events();
        let running = recorder.resume().expect("it goes on");
        history.push(recorder.drain(running).expect("it drains"));
    }
    make_events();
    let now = Instant::from_ns(host::task::monotonic_ns() as i64);
    history.push(recorder.drain(now).expect("it drains"));
    let pages = history.overlapping(TimeRange::ALL);
    let drains = pages.cpus.iter().map(|cpu| cpu.spans.len()).max();
    assert_eq!(
        drains,
        Some(3),
        "a history for two full drains keeps three small ones"
    );
    let ranges: Vec<_> = pages.cpus.iter().filter_map(|cpu| cpu.range()).collect();
    let begin = ranges
        .iter()
        .map(|range| range.begin)
        .max()
        .expect("events");
    let end = ranges.iter().map(|range| range.end).min().expect("events");
    let window = TimeRange { begin, end };
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("snapshot");
    let formats = recorder.formats();
    let summary = write_snapshot(
        &root,
        &pages,
        &formats,
        &Seen {
            hits: &[hit(window)],
            evidence: &evidence(window),
            ..Seen::default()
        },
        &capabilities,
    )
    .expect("it is written");
    assert_eq!((summary.evidence_events, summary.missing.len()), (3, 0));
    assert!(summary.events() > 500);
    // The rings stood still twice: each CPU lost at least one event each time.
    assert_eq!(summary.discarded(), 2 * pages.cpus.len() as u64);
    read_back(&summary, window.end);
}

fn read_back(summary: &capture::SnapshotSummary, end: Instant) {
    let Ok(output) = Command::new("babeltrace2").arg(&summary.path).output() else {
        testkit::skip(
            "babeltrace2 reads a snapshot",
            "babeltrace2 is not installed",
        );
        return;
    };
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let other = |line: &&str| !line.contains("Tracer discarded 1 event ");
    assert_eq!(
        stderr.lines().find(other),
        None,
        "only the stops between drains are reported"
    );
    let expect = summary.events() + summary.dump_events + summary.evidence_events;
    // Who has a CPU is the recorder's own event, and in no count.
    let counted = text
        .lines()
        .filter(|line| !line.contains("rtscope_current"));
    assert_eq!(counted.count() as u64, expect);
    let line = |name: &str| {
        let found = text
            .lines()
            .find(|line| line.contains(&format!(" {name}: ")));
        found.unwrap_or_else(|| panic!("no {name}")).to_owned()
    };
    let hit = line("rtscope_hit");
    for part in [
        "id = 7",
        "\"switch_in\"",
        &format!("end_ns = {}", end.as_ns()),
        "comm = \"victim\"",
        "culprit_comm = \"hog\"",
        "culprit_prio = -90",
        "flags = 2",
        "symbol = \"hog_loop+0x10\"",
        "\"hardirq\"",
    ] {
        assert!(hit.contains(part), "{part} is not in {hit}");
    }
    assert!(line("rtscope_late_timer").contains("hrtimer = 0xABC"));
    assert!(line("rtscope_preemption_off").contains("\"none\""));
}
