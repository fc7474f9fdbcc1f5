//! What one recorded event costs here: the same cheap system call with and without its event in an
//! instance of our own.

use event::{Duration, Error, ErrorKind, Result};
use ftrace::{EventName, Instance, Tracefs};
use rustix::time::{ClockId, clock_gettime};

/// The event: a task that renames itself fires it once, and hardly anything else does.
const SYSTEM: &str = "task";
const NAME: &str = "task_rename";
/// Calls of each half of a round.
const CALLS: u32 = 20_000;
/// Halves alternate, so that a machine that slows down slows both.
const ROUNDS: usize = 15;
/// As large as a flight recorder's ring, which wraps too.
const BUFFER_BYTES: usize = 4 << 20;

/// The cost of one recorded event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventCost {
    /// The event that was measured, as `system:name`.
    pub event: String,
    /// Alternating rounds, with and without the event.
    pub rounds: usize,
    /// Calls in each half of a round.
    pub calls: u32,
    /// CPU time of a call with the event over one without: the median round.
    pub median_ns: f64,
    /// The round with the least.
    pub least_ns: f64,
    /// The round with the most.
    pub most_ns: f64,
}

/// Measures it in a thread of its own, whose name changes meanwhile.
///
/// # Errors
/// When tracefs is out of reach, this kernel lacks the event, or not every call was recorded.
pub fn measure_event_cost() -> Result<EventCost> {
    let panicked = |_| Error::new(ErrorKind::Io, "the measuring thread panicked");
    std::thread::spawn(measure).join().map_err(panicked)?
}

fn measure() -> Result<EventCost> {
    let event = EventName {
        system: SYSTEM.into(),
        name: NAME.into(),
    };
    let tracefs = Tracefs::find()?;
    let instance = Instance::create(&tracefs)?;
    instance.set_buffer_size(BUFFER_BYTES)?;
    instance.set_overwrite(true)?;
    let mut rounds = Vec::with_capacity(ROUNDS);
    // The first round warms the caches up and does not count.
    for _ in 0..=ROUNDS {
        let without = renames()?;
        instance.enable(&event)?;
        instance.start()?;
        let with = renames()?;
        instance.stop()?;
        instance.disable(&event)?;
        rounds.push((with - without).as_ns() as f64 / f64::from(CALLS));
    }
    rounds.remove(0);
    check_recorded(&instance)?;
    rounds.sort_by(f64::total_cmp);
    Ok(EventCost {
        event: format!("{SYSTEM}:{NAME}"),
        rounds: ROUNDS,
        calls: CALLS,
        median_ns: rounds[ROUNDS / 2],
        least_ns: rounds[0],
        most_ns: rounds[ROUNDS - 1],
    })
}

/// CPU time of so many renames.
fn renames() -> Result<Duration> {
    let refused = |error: rustix::io::Errno| Error::io("cannot rename a thread", error.into());
    let begin = cpu_time();
    for _ in 0..CALLS {
        rustix::thread::set_name(c"rtscope-cost").map_err(refused)?;
    }
    Ok(cpu_time() - begin)
}

fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_ns(spent.tv_sec * 1_000_000_000 + spent.tv_nsec)
}

/// An event that was not recorded costs nothing, and proves nothing.
fn check_recorded(instance: &Instance) -> Result<()> {
    let expected = u64::from(CALLS) * (ROUNDS as u64 + 1);
    let mut offered = 0;
    for cpu in instance.cpus() {
        offered += instance.statistics(*cpu)?.offered();
    }
    if offered >= expected {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Io, "not every measured call was recorded");
    Err(error
        .found(format!("{offered} events of {expected} calls"))
        .fix("rtscope doctor"))
}
