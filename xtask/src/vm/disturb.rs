//! What the host does to a guest while it runs: nothing, others that want every CPU, or an emulator
//! that stands still again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// As a profile names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Leaves the emulator alone.
    Quiet,
    /// Wants every CPU for others.
    Busy,
    /// Stops the emulator for [`STALL`] at a time.
    Stalls,
}

/// Three times what such a guest's watch looks for.
const STALL: Duration = Duration::from_millis(60);
/// Between two stalls, at least and at most.
const PAUSE_MIN: Duration = Duration::from_millis(150);
const PAUSE_MAX: Duration = Duration::from_millis(600);

/// What is done to an emulator, until it is dropped.
pub struct Disturbance {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Disturbance {
    /// Begins what `host` does to the emulator `emulator`, which must be a child that nobody waits
    /// for before this is dropped: so its number is its own.
    pub fn begin(host: Host, emulator: u32) -> Disturbance {
        let over = Arc::new(AtomicBool::new(false));
        let threads = match host {
            Host::Quiet => vec![],
            Host::Busy => burners(&over),
            Host::Stalls => staller(&over, emulator).into_iter().collect(),
        };
        Disturbance { over, threads }
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().ok(); // it cannot panic
        }
    }
}

/// A thread for every CPU of the host.
fn burners(over: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let burn = |_| {
        let over = Arc::clone(over);
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })
    };
    (0..cpus).map(burn).collect()
}

fn staller(over: &Arc<AtomicBool>, emulator: u32) -> Option<JoinHandle<()>> {
    let emulator = Pid::from_raw(i32::try_from(emulator).ok()?)?;
    let over = Arc::clone(over);
    Some(std::thread::spawn(move || {
        let mut state = u64::from(std::process::id());
        while !over.load(Ordering::Relaxed) {
            std::thread::sleep(pause(&mut state));
            stop(emulator, STALL).ok(); // it may have ended
        }
    }))
}

/// Stops the emulator for `length`.
///
/// # Errors
/// When it has ended.
pub fn stop(emulator: Pid, length: Duration) -> rustix::io::Result<()> {
    kill_process(emulator, Signal::STOP)?;
    std::thread::sleep(length);
    kill_process(emulator, Signal::CONT)
}

/// The next pause of a row that looks random (xorshift); its state is never 0.
fn pause(state: &mut u64) -> Duration {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let span_ms = (PAUSE_MAX - PAUSE_MIN).as_millis() as u64;
    PAUSE_MIN + Duration::from_millis(*state % (span_ms + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_and_stay_within_their_bounds() {
        let mut state = 1;
        let pauses: Vec<Duration> = (0..100).map(|_| pause(&mut state)).collect();
        let within = |pause: &Duration| (PAUSE_MIN..=PAUSE_MAX).contains(pause);
        assert!(pauses.iter().all(within), "{pauses:?}");
        assert!(pauses.windows(2).any(|two| two[0] != two[1]));
    }
}
