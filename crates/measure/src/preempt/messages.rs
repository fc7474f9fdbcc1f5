//! How long a message takes from one thread or process to another, by each way that the kernel
//! has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use event::{Cpu, Result};

use super::channel;
pub use super::mechanism::{Between, Mechanism};
use super::meeting::Meeting;
use super::place::Place;
use super::receiver::Receiver;
pub use super::sides::MessagePlan;
use super::sides::Shared;
use crate::histogram::{Histogram, Recorder};
use crate::worker;
use host::clock::Clock;
use host::task::Policy;

/// A message that did not come for so long is lost.
const LOST_NS: i64 = 1_000_000_000;

/// What one way took.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    /// The way.
    pub mechanism: Mechanism,
    /// Between whom.
    pub between: Between,
    /// Where the sender was.
    pub sender: Cpu,
    /// Where the receiver was.
    pub receiver: Cpu,
    /// From just before the sender's call to the return of the receiver's.
    pub latency: Histogram,
    /// Whether a message did not come.
    pub lost: bool,
    /// The CPU that the kernel took from its thread: the messages ended then.
    pub lost_cpu: Option<Cpu>,
}

/// Sends messages by one way until they are over, a CPU is lost or `stop` is raised.
///
/// # Errors
/// When this kernel has that way not, and what keeps a thread from its CPU or priority.
pub fn run(mechanism: Mechanism, plan: &MessagePlan, stop: &Arc<AtomicBool>) -> Result<Messages> {
    let meeting = Arc::new(Meeting::new()?);
    let shared = Arc::new(Shared {
        channel: channel::open(mechanism, plan.between, &meeting)?,
        meeting,
        receiver: plan.receiver,
        latency: Recorder::new(plan.bucket, plan.buckets),
        lost: AtomicBool::new(false),
        sender: Place::new(plan.sender),
    });
    let receiver = Receiver::start(&shared, plan)?;
    let (own, own_plan, stop) = (shared.clone(), plan.clone(), stop.clone());
    let (policy, place) = (Policy::Fifo(plan.prio - 1), Some(plan.sender));
    let sender = worker::start("rtscope-send".into(), place, policy, move || {
        send(&own, &own_plan, &stop);
    });
    let sent = sender.map(|(_, sender)| sender.join());
    shared.meeting.over.store(true, Ordering::Release);
    shared.channel.send();
    let lost = shared.lost.load(Ordering::Relaxed);
    receiver.end(lost);
    sent?.ok();
    Ok(Messages {
        mechanism,
        between: plan.between,
        sender: plan.sender,
        receiver: plan.receiver,
        latency: shared.latency.read(),
        lost,
        lost_cpu: shared.lost_cpu(),
    })
}

fn send(shared: &Shared, plan: &MessagePlan, stop: &AtomicBool) {
    let (clock, meeting) = (Clock::Monotonic, &shared.meeting);
    let mut at_ns = clock.now_ns();
    for round in 1..=plan.rounds {
        if !shared.sender.is_here() {
            return;
        }
        let begun_ns = clock.now_ns();
        shared.channel.send();
        loop {
            at_ns = (at_ns + plan.interval.as_ns()).max(clock.now_ns());
            clock.sleep_until(at_ns);
            if meeting.received.load(Ordering::Acquire) == round {
                let came_ns = meeting.came_ns.load(Ordering::Relaxed);
                shared.latency.add(came_ns - begun_ns);
                break;
            }
            if shared.lost_cpu().is_some() {
                return;
            }
            if clock.now_ns() - begun_ns > LOST_NS {
                shared.lost.store(true, Ordering::Relaxed);
                return;
            }
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}
