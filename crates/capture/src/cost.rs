//! Our own cost: the kernel's time in our programs and our processes' CPU time, beside the CPU time
//! that the machine had.

use event::Duration;
use rustix::time::{ClockId, clock_gettime};

/// What we cost since a meter was started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Run time of our programs in the kernel.
    pub programs: Duration,
    /// CPU time of this process, user and system.
    pub process: Duration,
    /// Elapsed time × online CPUs.
    pub available: Duration,
}

impl Cost {
    /// Both costs as a share of what was available, 0 to 1.
    pub fn share(&self) -> f64 {
        (self.programs + self.process).share_of(self.available)
    }
}

/// Measures [`Cost`] from its start.
#[derive(Clone, Copy, Debug)]
pub struct CostMeter {
    started: std::time::Instant,
    process_at_start: Duration,
    cpus: i64,
}

impl CostMeter {
    /// Starts at zero.
    pub fn start() -> CostMeter {
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as i64);
        CostMeter {
            started: std::time::Instant::now(),
            process_at_start: process_cpu_time(),
            cpus,
        }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        let elapsed = self.started.elapsed().as_nanos();
        Duration::from_ns(i64::try_from(elapsed).unwrap_or(i64::MAX))
    }

    /// The cost since the start; `programs` is the kernel's time in our programs since then.
    pub fn read(&self, programs: Duration) -> Cost {
        let available = self.elapsed().as_ns().saturating_mul(self.cpus);
        Cost {
            programs,
            process: process_cpu_time() - self.process_at_start,
            available: Duration::from_ns(available),
        }
    }
}

/// CPU time of this process so far, user and system.
fn process_cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::from_ns(spent.tv_sec * 1_000_000_000 + spent.tv_nsec)
}
