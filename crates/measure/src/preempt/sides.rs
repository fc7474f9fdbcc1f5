//! What sender and receiver were told, and what they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use event::{Cpu, Duration};

use super::mechanism::Between;
use super::meeting::Meeting;
use super::place::Place;
use super::way::Channel;
use crate::histogram::Recorder;

/// What to try.
#[derive(Clone, Debug)]
pub struct MessagePlan {
    /// Between whom.
    pub between: Between,
    /// Where the sender stays.
    pub sender: Cpu,
    /// Where the receiver stays.
    pub receiver: Cpu,
    /// Priority of the receiver (SCHED_FIFO); the sender's is one below.
    pub prio: u32,
    /// How many messages.
    pub rounds: u64,
    /// From one to the next.
    pub interval: Duration,
    /// The width of a histogram's bucket.
    pub bucket: Duration,
    /// How many buckets there are.
    pub buckets: usize,
}

/// What both sides have; a receiving process has a copy of all but the meeting.
pub(super) struct Shared {
    pub(super) channel: Box<dyn Channel>,
    pub(super) meeting: Arc<Meeting>,
    /// Where the receiver stays.
    pub(super) receiver: Cpu,
    pub(super) latency: Recorder,
    /// Whether a message did not come.
    pub(super) lost: AtomicBool,
    pub(super) sender: Place,
}

impl Shared {
    /// The CPU that the kernel took from its thread.
    pub(super) fn lost_cpu(&self) -> Option<Cpu> {
        let receiver = self.meeting.receiver_lost.load(Ordering::Acquire);
        self.sender.lost_cpu().or(receiver.then_some(self.receiver))
    }
}
