//! Threads of rising priority on one CPU, each woken by the one below it.
//!
//! The waker looks as soon as its call returns: a more urgent thread of the same CPU must have run
//! by then. A waker that was not preempted insists for a while, so that the delay shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use event::{Cpu, Duration, Error, ErrorKind, Result};

use super::gate::Gate;
use super::place::Place;
use super::{INSIST_NS, spin};
use crate::histogram::{Histogram, Recorder};
use crate::worker;
use host::clock::Clock;
use host::task::Policy;

/// What to try.
#[derive(Clone, Debug)]
pub struct ChainPlan {
    /// Where all threads stay.
    pub cpu: Cpu,
    /// Their real-time priorities (SCHED_FIFO); each wakes the next.
    pub prios: Vec<u32>,
    /// How often the chain runs.
    pub rounds: u64,
    /// From one round to the next.
    pub interval: Duration,
    /// The width of a histogram's bucket.
    pub bucket: Duration,
    /// How many buckets there are.
    pub buckets: usize,
}

/// What the threads of one CPU found.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The CPU.
    pub cpu: Cpu,
    /// Its steps, from the least urgent waker on.
    pub steps: Vec<Step>,
    /// Whether the kernel took the CPU from a thread: the chain ended then.
    pub lost_cpu: bool,
}

/// One step of the chain: a thread that wakes another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Priority of the waker.
    pub waker_prio: u32,
    /// Priority of who is woken.
    pub wakee_prio: u32,
    /// From just before the waker's call to the first instruction of who was woken.
    pub latency: Histogram,
    /// Wake-ups that returned before who was woken had run.
    pub not_at_once: u64,
}

struct Link {
    gate: Gate,
    begun_ns: AtomicI64,
    /// Rounds in which who is woken has run.
    ran: AtomicU32,
    latency: Recorder,
    /// The waker's call has returned, and who is woken had not run.
    returned_early: AtomicBool,
    not_at_once: AtomicU64,
}

impl Link {
    /// Counts a call that returned early, once: by whichever thread knows that both are on one CPU.
    fn count_early(&self) {
        if self.returned_early.swap(false, Ordering::AcqRel) {
            self.not_at_once.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Shared {
    place: Place,
    links: Vec<Link>,
    /// For the threads: this is the end.
    over: AtomicBool,
}

/// Runs the chain until its rounds are over, its CPU is lost or `stop` is raised.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for fewer than two threads; else what kept a thread from its CPU or
/// priority.
pub fn run(plan: &ChainPlan, stop: &Arc<AtomicBool>) -> Result<Chain> {
    if plan.prios.len() < 2 {
        return Err(
            Error::new(ErrorKind::InvalidInput, "one thread has nobody to preempt")
                .found(format!("{} threads", plan.prios.len()))
                .fix("choose --threads 2 or more"),
        );
    }
    let link = |_| Link {
        gate: Gate::default(),
        begun_ns: AtomicI64::new(0),
        ran: AtomicU32::new(0),
        latency: Recorder::new(plan.bucket, plan.buckets),
        returned_early: AtomicBool::new(false),
        not_at_once: AtomicU64::new(0),
    };
    let shared = Arc::new(Shared {
        place: Place::new(plan.cpu),
        links: (1..plan.prios.len()).map(link).collect(),
        over: AtomicBool::new(false),
    });
    let mut threads = Vec::new();
    let started = start(plan, stop, &shared, &mut threads);
    // The conductor is the last, and ends by itself; the others are told.
    if started.is_ok()
        && let Some(conductor) = threads.pop()
    {
        conductor.join().ok();
    }
    shared.over.store(true, Ordering::Release);
    for link in &shared.links {
        link.gate.open();
    }
    for thread in threads {
        thread.join().ok();
    }
    started?;
    let step = |(number, link): (usize, &Link)| Step {
        waker_prio: plan.prios[number],
        wakee_prio: plan.prios[number + 1],
        latency: link.latency.read(),
        not_at_once: link.not_at_once.load(Ordering::Relaxed),
    };
    Ok(Chain {
        cpu: plan.cpu,
        steps: shared.links.iter().enumerate().map(step).collect(),
        lost_cpu: shared.place.is_lost(),
    })
}

type Thread = std::thread::JoinHandle<Option<()>>;

fn start(
    plan: &ChainPlan,
    stop: &Arc<AtomicBool>,
    shared: &Arc<Shared>,
    threads: &mut Vec<Thread>,
) -> Result<()> {
    let name = |number: usize| format!("rtscope-pre{number}");
    let cpu = Some(plan.cpu);
    for number in (1..plan.prios.len()).rev() {
        let own = shared.clone();
        let policy = Policy::Fifo(plan.prios[number]);
        let body = move || be_woken(&own, number - 1);
        threads.push(worker::start(name(number), cpu, policy, body)?.1);
    }
    let (own, stop, plan) = (shared.clone(), stop.clone(), plan.clone());
    let policy = Policy::Fifo(plan.prios[0]);
    let body = move || conduct(&own, &plan, &stop);
    threads.push(worker::start(name(0), cpu, policy, body)?.1);
    Ok(())
}

/// The lowest thread: begins each round, and waits until it has reached the top.
fn conduct(shared: &Shared, plan: &ChainPlan, stop: &AtomicBool) {
    let mut at_ns = Clock::Monotonic.now_ns();
    let top = &shared.links[shared.links.len() - 1];
    for round in 1..=plan.rounds {
        wake(shared, &shared.links[0]);
        loop {
            at_ns = (at_ns + plan.interval.as_ns()).max(Clock::Monotonic.now_ns());
            Clock::Monotonic.sleep_until(at_ns);
            if top.ran.load(Ordering::Acquire) == round as u32 {
                break;
            }
            if stop.load(Ordering::Relaxed) || shared.place.is_lost() {
                return;
            }
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn be_woken(shared: &Shared, number: usize) {
    let link = &shared.links[number];
    let mut opened = 0;
    loop {
        opened = link.gate.wait(opened);
        let now_ns = Clock::Monotonic.now_ns();
        if shared.over.load(Ordering::Acquire) {
            return;
        }
        if !shared.place.is_here() {
            return;
        }
        link.ran.fetch_add(1, Ordering::Release);
        link.count_early();
        let begun_ns = link.begun_ns.load(Ordering::Relaxed);
        link.latency.add(now_ns - begun_ns);
        if let Some(next) = shared.links.get(number + 1) {
            wake(shared, next);
        }
    }
}

fn wake(shared: &Shared, link: &Link) {
    if !shared.place.is_here() {
        return;
    }
    let before = link.ran.load(Ordering::Acquire);
    let has_run = || link.ran.load(Ordering::Acquire) != before;
    let now_ns = Clock::Monotonic.now_ns();
    link.begun_ns.store(now_ns, Ordering::Relaxed);
    link.gate.open();
    if !has_run() {
        link.returned_early.store(true, Ordering::Release);
        let until_ns = Clock::Monotonic.now_ns() + INSIST_NS;
        spin(until_ns, || has_run() || shared.place.is_lost());
        // Threads of two CPUs need not wait for each other: one that was moved and has not run yet
        // counts nothing.
        if has_run() && shared.place.is_here() {
            link.count_early();
        }
    }
}
