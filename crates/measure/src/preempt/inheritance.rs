//! A lock that an urgent thread waits for: does its owner run meanwhile, or a third?
//!
//! Three threads on each CPU. The low one holds the lock and wakes the high one, which wants it,
//! and then the middle one, which wants the CPU. When the lock hands on priority, the middle one
//! runs after the high one; else it runs while the high one waits, and that is an inversion.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use event::{Cpu, Duration, Error, Result};

use super::gate::Gate;
use super::place::Place;
use super::spin;
use crate::histogram::{Histogram, Recorder};
use crate::worker;
use host::clock::Clock;
use host::task::Policy;

/// How long the low thread keeps the lock once it is wanted.
const HOLD_NS: i64 = 20_000;
/// How long the middle thread wants the CPU.
const MIDDLE_NS: i64 = 300_000;

/// What the lock does with the priority of who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Its owner inherits it (PTHREAD_PRIO_INHERIT).
    Inherit,
    /// Nothing: the default of a mutex.
    Plain,
}

impl Protocol {
    /// As it is typed and written.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Inherit => "inherit",
            Protocol::Plain => "plain",
        }
    }
}

/// What to try.
#[derive(Clone, Debug)]
pub struct InheritancePlan {
    /// Three threads on each of these, all at the same time.
    pub cpus: Vec<Cpu>,
    /// Priority of the high thread (SCHED_FIFO); the others are one and two below.
    pub prio: u32,
    /// The lock.
    pub protocol: Protocol,
    /// How often the lock is taken.
    pub rounds: u64,
    /// From one round to the next.
    pub interval: Duration,
    /// The width of a histogram's bucket.
    pub bucket: Duration,
    /// How many buckets there are.
    pub buckets: usize,
}

/// What the three threads of one CPU found.
#[derive(Clone, Debug, PartialEq)]
pub struct Inheritance {
    /// The CPU.
    pub cpu: Cpu,
    /// How long the high thread waited for the lock.
    pub wait: Histogram,
    /// Rounds in which the middle thread ran while the high one waited.
    pub inversions: u64,
    /// How long it ran then, in all.
    pub robbed: Duration,
    /// Whether the kernel took the CPU from a thread: the rounds ended then.
    pub lost_cpu: bool,
}

/// A mutex of the C library, whose protocol can be chosen.
struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: it is a mutex: any thread may lock it, and it is never moved while threads use it.
unsafe impl Sync for Mutex {}
// SAFETY: as above; no thread owns it when it is moved.
unsafe impl Send for Mutex {}

impl Mutex {
    fn set_up(&self, protocol: Protocol) -> Result<()> {
        let number = match protocol {
            Protocol::Inherit => libc::PTHREAD_PRIO_INHERIT,
            Protocol::Plain => libc::PTHREAD_PRIO_NONE,
        };
        // SAFETY: the attributes are made before their use and ended after it; the mutex is at its
        // final place, and nobody uses it yet.
        let status = unsafe {
            let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attributes);
            libc::pthread_mutexattr_setprotocol(&raw mut attributes, number);
            let status = libc::pthread_mutex_init(self.0.get(), &raw const attributes);
            libc::pthread_mutexattr_destroy(&raw mut attributes);
            status
        };
        if status != 0 {
            let cause = std::io::Error::from_raw_os_error(status);
            let what = format!("cannot make a mutex of the protocol {}", protocol.name());
            return Err(Error::io(what, cause)
                .fix("use a kernel with CONFIG_FUTEX_PI=y, or try --mutex plain"));
        }
        Ok(())
    }

    fn lock(&self) {
        // SAFETY: the mutex was set up before the threads that lock it were started.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    fn unlock(&self) {
        // SAFETY: as above, and the caller holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

struct Shared {
    place: Place,
    mutex: Mutex,
    high: Gate,
    middle: Gate,
    /// Whether the high thread wants the lock and has it not.
    waits: AtomicBool,
    wait: Recorder,
    /// For how long the middle thread ran in this round while the high one waited.
    robbed_now_ns: AtomicI64,
    rounds: AtomicU64,
    inversions: AtomicU64,
    robbed_ns: AtomicI64,
    over: AtomicBool,
}

/// Runs all groups until their rounds are over or `stop` is raised; one that loses its CPU ends.
///
/// # Errors
/// When the C library has no such mutex, and what keeps a thread from its CPU or priority.
pub fn run(plan: &InheritancePlan, stop: &Arc<AtomicBool>) -> Result<Vec<Inheritance>> {
    let mut groups = Vec::new();
    let mut failure = None;
    for &cpu in &plan.cpus {
        match Group::start(cpu, plan, stop) {
            Ok(group) => groups.push(group),
            Err(error) => {
                // Those that run already are ended before the error is told.
                stop.store(true, Ordering::Relaxed);
                failure = Some(error);
                break;
            }
        }
    }
    let found: Vec<Inheritance> = groups.into_iter().map(Group::finish).collect();
    failure.map_or(Ok(found), Err)
}

struct Group {
    cpu: Cpu,
    shared: Arc<Shared>,
    /// High, middle, low.
    threads: Vec<std::thread::JoinHandle<Option<()>>>,
}

impl Group {
    fn start(cpu: Cpu, plan: &InheritancePlan, stop: &Arc<AtomicBool>) -> Result<Group> {
        let shared = Arc::new(Shared {
            place: Place::new(cpu),
            mutex: Mutex(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)),
            high: Gate::default(),
            middle: Gate::default(),
            waits: AtomicBool::new(false),
            wait: Recorder::new(plan.bucket, plan.buckets),
            robbed_now_ns: AtomicI64::new(0),
            rounds: AtomicU64::new(0),
            inversions: AtomicU64::new(0),
            robbed_ns: AtomicI64::new(0),
            over: AtomicBool::new(false),
        });
        shared.mutex.set_up(plan.protocol)?;
        let mut group = Group {
            cpu,
            shared,
            threads: Vec::new(),
        };
        let place = Some(cpu);
        let own = group.shared.clone();
        let high = worker::start("rtscope-high".into(), place, Policy::Fifo(plan.prio), {
            move || want_lock(&own)
        });
        group.keep(high)?;
        let own = group.shared.clone();
        let policy = Policy::Fifo(plan.prio - 1);
        let middle = worker::start("rtscope-middle".into(), place, policy, move || {
            want_cpu(&own);
        });
        group.keep(middle)?;
        let (own, stop, plan) = (group.shared.clone(), stop.clone(), plan.clone());
        let policy = Policy::Fifo(plan.prio - 2);
        let low = worker::start("rtscope-low".into(), place, policy, move || {
            conduct(&own, &plan, &stop);
        });
        group.keep(low)?;
        Ok(group)
    }

    fn keep(
        &mut self,
        started: Result<(event::Tid, std::thread::JoinHandle<Option<()>>)>,
    ) -> Result<()> {
        match started {
            Ok((_, thread)) => {
                self.threads.push(thread);
                Ok(())
            }
            Err(error) => {
                self.end();
                Err(error)
            }
        }
    }

    fn end(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        self.shared.high.open();
        self.shared.middle.open();
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }

    fn finish(mut self) -> Inheritance {
        // The low thread ends by itself; the others are told then.
        if let Some(low) = self.threads.pop() {
            low.join().ok();
        }
        self.end();
        Inheritance {
            cpu: self.cpu,
            wait: self.shared.wait.read(),
            inversions: self.shared.inversions.load(Ordering::Relaxed),
            robbed: Duration::from_ns(self.shared.robbed_ns.load(Ordering::Relaxed)),
            lost_cpu: self.shared.place.is_lost(),
        }
    }
}

/// The low thread: holds the lock while both others are woken.
fn conduct(shared: &Shared, plan: &InheritancePlan, stop: &AtomicBool) {
    let clock = Clock::Monotonic;
    let mut at_ns = clock.now_ns();
    for round in 1..=plan.rounds {
        if !shared.place.is_here() || shared.place.is_lost() {
            return;
        }
        shared.mutex.lock();
        shared.high.open();
        shared.middle.open();
        spin(clock.now_ns() + HOLD_NS, || false);
        shared.mutex.unlock();
        while shared.rounds.load(Ordering::Acquire) < round {
            if stop.load(Ordering::Relaxed) || shared.place.is_lost() {
                return;
            }
            at_ns = (at_ns + plan.interval.as_ns()).max(clock.now_ns());
            clock.sleep_until(at_ns);
        }
        at_ns = (at_ns + plan.interval.as_ns()).max(clock.now_ns());
        clock.sleep_until(at_ns);
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn want_lock(shared: &Shared) {
    let mut opened = 0;
    loop {
        opened = shared.high.wait(opened);
        if shared.over.load(Ordering::Acquire) {
            return;
        }
        let begun_ns = Clock::Monotonic.now_ns();
        shared.waits.store(true, Ordering::Release);
        shared.mutex.lock();
        shared.waits.store(false, Ordering::Release);
        let waited_ns = Clock::Monotonic.now_ns() - begun_ns;
        let is_here = shared.place.is_here();
        if is_here {
            shared.wait.add(waited_ns);
            // On another CPU nobody could have taken this one from it.
            let robbed_ns = shared.robbed_now_ns.swap(0, Ordering::AcqRel);
            if robbed_ns > 0 {
                shared.inversions.fetch_add(1, Ordering::Relaxed);
                shared.robbed_ns.fetch_add(robbed_ns, Ordering::Relaxed);
            }
        }
        shared.mutex.unlock();
        if !is_here {
            return;
        }
        shared.rounds.fetch_add(1, Ordering::Release);
    }
}

fn want_cpu(shared: &Shared) {
    let mut opened = 0;
    loop {
        opened = shared.middle.wait(opened);
        if shared.over.load(Ordering::Acquire) {
            return;
        }
        let inverted = shared.waits.load(Ordering::Acquire);
        let begun_ns = Clock::Monotonic.now_ns();
        spin(begun_ns + MIDDLE_NS, || false);
        // On another CPU it is in nobody's way.
        if !shared.place.is_here() {
            return;
        }
        if inverted {
            let ran_ns = Clock::Monotonic.now_ns() - begun_ns;
            shared.robbed_now_ns.store(ran_ns, Ordering::Release);
        }
    }
}
