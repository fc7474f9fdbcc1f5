//! Hits in short order: the window of each holds its cause, however soon it ends behind another.

mod scene;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use event::Cpu;
use host::task::Policy;
use scene::{Victim, Watch, pause, thread};
use serde_json::Value;

/// Where a snapshot takes longer than the time between two hits, they share one.
const HITS_MIN: usize = 5;
/// The machine itself may stand still in one of them, or the kernel hide a switch: where it did so
/// more often, they are watched again.
const SPOILED_MAX: usize = 1;
const TRIES: usize = 3;

/// Whether its cause is named. Who had a CPU is not known in the microseconds from where the
/// recorder ran again to that CPU's first event.
fn is_named(hit: &Value) -> bool {
    hit["diagnosis"]["verdict"]["conclusive"] == true
}

/// Fills the ring of `cpu` with wake-ups and switches.
fn ping_pong(cpu: Cpu, rounds: u32) {
    let (ping, pinged) = mpsc::sync_channel::<()>(0);
    let (pong, ponged) = mpsc::sync_channel::<()>(0);
    let echo = thread("echo", cpu, Policy::Ordinary, move || {
        while pinged.recv().is_ok() && pong.send(()).is_ok() {}
    });
    let caller = thread("caller", cpu, Policy::Ordinary, move || {
        for _ in 0..rounds {
            ping.send(()).expect("it listens");
            ponged.recv().expect("it answers");
        }
    });
    caller.join().expect("it ends");
    echo.join().expect("it ends");
}

/// What is told of hits a millisecond behind each other.
fn close_hits() -> Vec<Value> {
    let (cpu, other) = scene::cpus();
    let is_long = Arc::new(AtomicBool::new(false));
    let work = Arc::clone(&is_long);
    // The next one begins a millisecond behind each.
    let victim = Victim::working(cpu, Policy::Fifo(30), 5_000, move || {
        if work.load(Ordering::Acquire) {
            scene::burn(4);
        }
    });
    let more = "--over 3ms --until block --rate 1000/s --max-hits 12 --for 15s";
    let more: Vec<&str> = more.split(' ').collect();
    let mut watch = Watch::start("close-hits", victim.tid, &more);
    ping_pong(other, 20_000);
    is_long.store(true, Ordering::Release);
    pause(200);
    is_long.store(false, Ordering::Release);
    scene::hits(&watch.finish()).into_iter().cloned().collect()
}

#[test]
fn a_hit_a_millisecond_behind_another_has_its_window() {
    let _alone = testkit::privileged();
    let mut last = Vec::new();
    for _ in 0..TRIES {
        let hits = close_hits();
        assert!(hits.len() >= HITS_MIN, "{} hits", hits.len());
        if hits.iter().filter(|hit| !is_named(hit)).count() <= SPOILED_MAX {
            return;
        }
        last = hits;
    }
    let told: Vec<_> = last.iter().map(scene::sentence).collect();
    panic!("{told:#?}");
}
