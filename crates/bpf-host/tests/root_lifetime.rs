//! Check that nothing of a watch outlives it, however it ends, and that its evidence is whole.

mod scene;

use std::process::{Command, Stdio};
use std::time::Duration as Time;

use bpf_host::{Features, Watch, WatchConfig};
use event::Duration;
use event::evidence::{Evidence, Mode};
use scene::{STAGE, Victim, become_task, hog, spin};

/// Tells the test's own binary, started again, to be the watch that is killed.
const ROLE: &str = "RTSCOPE_TEST_WATCH_UNTIL_KILLED";

/// The ids of all BPF programs in the kernel.
fn programs() -> Vec<u32> {
    libbpf_rs::query::ProgInfoIter::default()
        .map(|program| program.id)
        .collect()
}

#[test]
fn a_watch_that_is_killed_leaves_no_program_behind() {
    if std::env::var_os(ROLE).is_some() {
        let _watch = Watch::start(&WatchConfig::default()).unwrap();
        println!("watching");
        std::thread::sleep(Time::from_secs(60));
        return;
    }
    let _privileged = testkit::privileged();
    let before = programs();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_watch_that_is_killed_leaves_no_program_behind",
            "--nocapture",
        ])
        .env(ROLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("watching")));
    let is_ours = |id: &u32| !before.contains(id);
    assert!(programs().iter().filter(|id| is_ours(id)).count() > 10);
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel frees programs after a grace period: nothing may be left once that is over.
    let gone = (0..300).any(|_| {
        std::thread::sleep(Time::from_millis(10));
        !programs().iter().any(is_ours)
    });
    assert!(gone, "{:?} are still there", programs());
}

#[test]
fn this_kernel_has_what_a_watch_needs_and_says_so() {
    let _privileged = testkit::privileged();
    let features = Features::probe();
    assert_eq!(features.explanation(), None);
    assert_eq!(features.attach_failure, None);
    assert!(features.ring_buffer && features.task_storage && features.task_iterator);
    assert!(features.statistics && features.switch_state);
    assert!(features.has("sched_switch") && !features.has("no_such_tracepoint"));
}

#[test]
fn evidence_is_whole_and_says_what_was_interrupted() {
    let _privileged = testkit::privileged();
    let _victim = Victim::start("scene-victim", 10, || ());
    let config = WatchConfig {
        late_timer_floor: Duration::from_ns(1),
        ..WatchConfig::default()
    };
    let (watch, _hits) = Watch::start(&config).unwrap();
    hog(20, Time::from_millis(100));
    // At once: on a busy machine the next stage would overwrite it.
    let of_hog = watch.evidence().read();
    // The victim preempts this one every 2 ms.
    let busy = std::thread::spawn(|| {
        become_task("scene-busy", STAGE, 0);
        spin(Time::from_millis(100));
    });
    busy.join().unwrap();
    let of_busy = watch.evidence().read();
    let (mut late_in_user, mut preempted) = (0, 0);
    for record in of_hog.records.iter().chain(&of_busy.records) {
        match record {
            Evidence::LateTimer(late) => {
                assert!(late.lateness >= config.late_timer_floor && late.hrtimer != 0);
                assert_eq!(late.time - late.expiry, late.lateness);
                assert_eq!(late.stack.is_empty(), late.mode != Mode::Kernel, "{late:?}");
                assert_eq!(
                    late.interrupted.tid.is_idle(),
                    late.mode == Mode::Idle,
                    "{late:?}"
                );
                let by_hog = late.interrupted.comm == "scene-hog";
                late_in_user += u32::from(late.mode == Mode::User && by_hog);
            }
            Evidence::PreemptionOff(off) => {
                assert!(off.delay >= config.late_timer_floor && !off.stack.is_empty());
                preempted += 1;
            }
            _ => {}
        }
    }
    // The hog spins in user mode under a timer every 2 ms.
    assert!(late_in_user > 0 && preempted > 0, "{of_hog:?} {of_busy:?}");
    assert!(of_hog.records.is_sorted_by_key(Evidence::time));
}
