//! Check on the running kernel that an activation begins no earlier than its task waited for
//! whoever wakes it: what that one did before is not its latency.

mod scene;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Time;

use bpf_host::{Targets, Watch, WatchConfig};
use event::evidence::{EndKind, Hit};
use event::{Duration, TaskPattern};
use scene::{ASIDE, STAGE, become_task};

const CYCLES: usize = 10;
const WORK: Time = Time::from_millis(8);
/// The victim sleeps for so long at a time, and so long before the end of the work it waits.
const SHORT: Time = Time::from_micros(300);
const THRESHOLD: Duration = Duration::from_ms(4);

/// A timer wakes a worker, which wakes the victim at the end of its work. The victim waits for it
/// from the begin of that work on, or shortly before its end.
fn victim_of_a_worker(waits_long: bool) -> Vec<Hit> {
    let config = WatchConfig {
        targets: Targets::Tasks(vec![TaskPattern::parse("scene-victim").expect("a name")]),
        threshold: THRESHOLD,
        rate_limit_interval: Duration::ZERO,
        end: EndKind::Blocked,
        ..WatchConfig::default()
    };
    let (watch, mut ring) = Watch::start(&config).expect("a watch");
    let ends = AtomicBool::new(waits_long);
    let (mut ours, mut theirs) = UnixStream::pair().expect("sockets");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            become_task("scene-worker", ASIDE, 20);
            for _ in 0..CYCLES {
                std::thread::sleep(SHORT);
                scene::spin(WORK);
                ends.store(true, Ordering::Release);
                scene::spin(2 * SHORT);
                theirs.write_all(&[0]).expect("posted");
            }
        });
        scope.spawn(|| {
            become_task("scene-victim", STAGE, 10);
            for _ in 0..CYCLES {
                while !ends.load(Ordering::Acquire) {
                    std::thread::sleep(SHORT);
                }
                ours.read_exact(&mut [0]).expect("a post");
                ends.store(waits_long, Ordering::Release);
            }
        });
    });
    watch.check_open().expect("looked");
    ring.wait(Time::from_millis(20)).expect("hits")
}

#[test]
fn what_a_waker_did_before_its_target_waited_for_it_makes_no_hit() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a worker beside its target") {
        return;
    }
    // The machine is busy: others may be in the way once or twice.
    let long = victim_of_a_worker(true);
    assert!(long.len() >= CYCLES - 3, "{long:#?}");
    let short = victim_of_a_worker(false);
    assert!(short.len() <= 2, "{short:#?}");
}
