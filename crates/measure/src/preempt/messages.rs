//! How long a message takes from one thread to another, by each way that the kernel has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use event::{Cpu, Duration, Result};

use super::channel::{self, Channel};
pub use super::mechanism::Mechanism;
use super::place::Place;
use crate::histogram::{Histogram, Recorder};
use crate::worker;
use host::clock::Clock;
use host::task::Policy;

/// A message that did not come for so long is lost.
const LOST_NS: i64 = 1_000_000_000;

/// What to try.
#[derive(Clone, Debug)]
pub struct MessagePlan {
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

/// What one way took.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    /// The way.
    pub mechanism: Mechanism,
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

struct Shared {
    channel: Box<dyn Channel>,
    begun_ns: AtomicI64,
    received: AtomicU64,
    latency: Recorder,
    over: AtomicBool,
    lost: AtomicBool,
    sender: Place,
    receiver: Place,
}

impl Shared {
    fn lost_cpu(&self) -> Option<Cpu> {
        self.sender.lost_cpu().or(self.receiver.lost_cpu())
    }
}

/// Sends messages by one way until they are over, a CPU is lost or `stop` is raised.
///
/// # Errors
/// When this kernel has that way not, and what keeps a thread from its CPU or priority.
pub fn run(mechanism: Mechanism, plan: &MessagePlan, stop: &Arc<AtomicBool>) -> Result<Messages> {
    let shared = Arc::new(Shared {
        channel: channel::open(mechanism)?,
        begun_ns: AtomicI64::new(0),
        received: AtomicU64::new(0),
        latency: Recorder::new(plan.bucket, plan.buckets),
        over: AtomicBool::new(false),
        lost: AtomicBool::new(false),
        sender: Place::new(plan.sender),
        receiver: Place::new(plan.receiver),
    });
    let own = shared.clone();
    let (policy, place) = (Policy::Fifo(plan.prio), Some(plan.receiver));
    let receiver = worker::start("rtscope-recv".into(), place, policy, move || receive(&own))?;
    shared.channel.aim(receiver.0);
    let (own, own_plan, stop) = (shared.clone(), plan.clone(), stop.clone());
    let (policy, place) = (Policy::Fifo(plan.prio - 1), Some(plan.sender));
    let sender = worker::start("rtscope-send".into(), place, policy, move || {
        send(&own, &own_plan, &stop);
    });
    let sent = sender.map(|(_, sender)| sender.join());
    shared.over.store(true, Ordering::Release);
    shared.channel.send();
    let lost = shared.lost.load(Ordering::Relaxed);
    // A receiver whose messages get lost may never hear of the end; it sleeps, and the process
    // ends it.
    if !lost {
        receiver.1.join().ok();
    }
    sent?.ok();
    Ok(Messages {
        mechanism,
        sender: plan.sender,
        receiver: plan.receiver,
        latency: shared.latency.read(),
        lost,
        lost_cpu: shared.lost_cpu(),
    })
}

fn send(shared: &Shared, plan: &MessagePlan, stop: &AtomicBool) {
    let clock = Clock::Monotonic;
    let mut at_ns = clock.now_ns();
    for round in 1..=plan.rounds {
        if !shared.sender.is_here() {
            return;
        }
        let begun_ns = clock.now_ns();
        shared.begun_ns.store(begun_ns, Ordering::Relaxed);
        shared.channel.send();
        loop {
            at_ns = (at_ns + plan.interval.as_ns()).max(clock.now_ns());
            clock.sleep_until(at_ns);
            if shared.received.load(Ordering::Acquire) == round {
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

fn receive(shared: &Shared) {
    loop {
        shared.channel.receive();
        let now_ns = Clock::Monotonic.now_ns();
        if shared.over.load(Ordering::Acquire) {
            return;
        }
        if !shared.receiver.is_here() {
            return;
        }
        let begun_ns = shared.begun_ns.load(Ordering::Relaxed);
        shared.latency.add(now_ns - begun_ns);
        shared.received.fetch_add(1, Ordering::Release);
    }
}
