//! The flight recorder on this kernel: stop, drain, resume, trigger. Needs root.

use event::Instant;

use capture::{EventSelection, Mode, Recorder, RecorderConfig};
use ftrace::Page;

fn config(terms: &[&str], bytes: usize) -> RecorderConfig {
    RecorderConfig {
        events: EventSelection::new(terms),
        buffer_bytes_per_cpu: bytes,
        mode: Mode::Overwrite,
        ..Default::default()
    }
}

/// Runs something that wakes and switches tasks.
fn make_events(runs: u32) {
    for _ in 0..runs {
        let status = std::process::Command::new("true").status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

fn count(pages: &capture::Pages, formats: &ftrace::Formats) -> u64 {
    let mut events = 0;
    for bytes in pages.cpus.iter().flat_map(capture::CpuPages::iter) {
        let page = Page::parse(&formats.layout, bytes).expect("a sound page");
        for event in page.events() {
            event.expect("a sound record");
            events += 1;
        }
    }
    events
}

#[test]
fn a_drain_takes_all_that_the_rings_hold_and_recording_goes_on() {
    let _lock = testkit::privileged();
    let mut recorder = Recorder::start(&config(&[], 1 << 20)).expect("it starts");
    assert!(recorder.is_running().expect("a state"));
    for _ in 0..3 {
        make_events(20);
        recorder.stop().expect("it stops");
        let entries: u64 = recorder
            .statistics()
            .expect("statistics")
            .iter()
            .map(|cpu| cpu.entries)
            .sum();
        let pages = recorder.drain(Instant::MAX).expect("it drains");
        assert!(entries > 100);
        assert_eq!(count(&pages, &recorder.formats()), entries);
        recorder.resume().expect("it goes on");
    }
}

/// Has a thread of this name sleep and wake once, as a fair or as a real-time task.
fn wake_one(comm: &str, real_time: bool) {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let sleeper = std::thread::Builder::new().name(comm.to_owned());
    let sleeper = sleeper.spawn(move || {
        let (policy, priority) = match real_time {
            true => (libc::SCHED_FIFO, 1),
            false => (libc::SCHED_OTHER, 0),
        };
        let param = libc::sched_param {
            sched_priority: priority,
        };
        // SAFETY: the call reads one initialised struct and affects this thread only.
        assert_eq!(unsafe { libc::sched_setscheduler(0, policy, &param) }, 0);
        wait.recv()
    });
    let sleeper = sleeper.expect("a thread");
    // It counts as asleep when the kernel says so: the wake-up must be a real one.
    let stat = || {
        std::fs::read_dir("/proc/self/task")
            .expect("tasks")
            .flatten()
            .any(|task| {
                let text = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                text.contains(&format!("({comm}) S"))
            })
    };
    while !stat() {
        std::thread::yield_now();
    }
    go.send(()).expect("it listens");
    assert!(sleeper.join().is_ok_and(|received| received.is_ok()));
}

#[test]
fn waking_the_named_task_stops_the_ring_in_the_kernel() {
    let _lock = testkit::privileged();
    let check = |only_real_time: bool, real_time: bool, expect_stopped: bool| {
        let mut config = config(&["sched:sched_switch"], 64 << 10);
        config.stop_trigger = Some(capture::StopTrigger {
            comm: "rtscope-trig".to_owned(),
            real_time: only_real_time,
        });
        let mut recorder = Recorder::start(&config).expect("it starts");
        make_events(5);
        assert!(
            recorder.is_running().expect("a state"),
            "others do not stop it"
        );
        wake_one("rtscope-trig", real_time);
        assert_eq!(!recorder.is_running().expect("a state"), expect_stopped);
        let pages = recorder.drain(Instant::MAX).expect("it drains");
        assert!(pages.page_count() > 0);
    };
    check(false, false, true);
    check(true, true, true);
    // As a fair one it copies pages, and may wait for anything.
    check(true, false, false);
}

#[test]
fn a_ring_that_went_round_says_how_much_history_it_overwrote() {
    let _lock = testkit::privileged();
    let mut recorder = Recorder::start(&config(&["all"], 16 << 10)).expect("it starts");
    make_events(5);
    recorder.stop().expect("it stops");
    let overrun: u64 = recorder
        .statistics()
        .expect("statistics")
        .iter()
        .map(|cpu| cpu.overrun)
        .sum();
    let pages = recorder.drain(Instant::MAX).expect("it drains");
    assert!(overrun > 0);
    let formats = recorder.formats();
    let first = pages.cpus.iter().filter_map(|cpu| cpu.iter().next());
    let flagged = first
        .filter(|bytes| Page::parse(&formats.layout, bytes).is_ok_and(|page| page.missed.is_some()))
        .count();
    assert!(flagged > 0);
}

/// The newest events are those of the hit: a full ring must give them, too.
#[test]
fn a_full_ring_is_drained_to_its_newest_event() {
    let _lock = testkit::privileged();
    let mut recorder = Recorder::start(&config(&["all"], 4 << 20)).expect("it starts");
    let statistics = |recorder: &Recorder| recorder.statistics().expect("statistics");
    let is_full = |recorder: &Recorder| statistics(recorder).iter().any(|cpu| cpu.overrun > 0);
    while !is_full(&recorder) {
        make_events(10);
    }
    recorder.stop().expect("it stops");
    let entries: u64 = statistics(&recorder).iter().map(|cpu| cpu.entries).sum();
    let pages = recorder.drain(Instant::MAX).expect("it drains");
    assert_eq!(count(&pages, &recorder.formats()), entries);
    let left: u64 = statistics(&recorder).iter().map(|cpu| cpu.entries).sum();
    assert_eq!(left, 0);
}

#[test]
fn the_next_recorder_removes_the_instance_of_a_killed_one_but_none_that_somebody_reads() {
    let _lock = testkit::privileged();
    let mut child = std::process::Command::new("true").spawn().expect("a child");
    let dead = child.id();
    child.wait().expect("it ends");
    let tracefs = ftrace::Tracefs::find().expect("tracefs");
    let instance = |number: u32| {
        let path = tracefs
            .root()
            .join(format!("instances/rtscope-{dead}-{number}"));
        std::fs::create_dir(&path).expect("an instance");
        std::fs::write(path.join("events/sched/sched_switch/enable"), "1").expect("switched on");
        path
    };
    let (left, read) = (instance(1), instance(2));
    let pipe = std::fs::File::open(read.join("per_cpu/cpu0/trace_pipe_raw")).expect("a pipe");
    let recorder = Recorder::start(&config(&["sched:sched_switch"], 64 << 10)).expect("it starts");
    let enabled = std::fs::read_to_string(read.join("events/sched/sched_switch/enable"));
    let (left_stays, read_stays) = (left.exists(), read.exists());
    drop((recorder, pipe));
    for path in [left, read] {
        std::fs::remove_dir(path).ok();
    }
    assert_eq!((left_stays, read_stays), (false, true));
    assert_eq!(enabled.expect("a state").trim(), "1");
}
