//! Does the urgent task run at once? Three experiments on real-time threads of our own.
//!
//! [`chain`]: each thread wakes a more urgent one on its CPU, which must take it at once
//! (preempt-test). [`inheritance`]: an urgent thread waits for a lock, and whoever holds it must
//! not wait for a third (pi_stress). [`messages`]: how long a message takes from one thread to
//! another or to another process, by each way that the kernel has (ptsematest, svsematest, pmqtest,
//! sigwaittest and kin).

pub mod chain;
mod channel;
mod defect;
mod gate;
pub mod inheritance;
mod mechanism;
mod meeting;
pub mod messages;
mod place;
mod receiver;
mod semaphore;
mod sides;
mod way;

pub use defect::{Defect, Findings};
pub use semaphore::{LeftSemaphores, left_semaphores, own_ipc};

/// How long a thread that should have been preempted goes on, for the others to see.
const INSIST_NS: i64 = 100_000;

/// Runs on the CPU until the clock shows `until_ns` or `enough` is true.
fn spin(until_ns: i64, enough: impl Fn() -> bool) {
    while !enough() && host::clock::Clock::Monotonic.now_ns() < until_ns {
        std::hint::spin_loop();
    }
}
