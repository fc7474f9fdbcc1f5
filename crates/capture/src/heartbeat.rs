//! A timer on each CPU that does nothing but leave its interrupt in the flight recorder: where a
//! hypervisor does not say what it takes, one CPU's missing beats show that the machine stood still
//! while another seemed to have interrupts off.
//!
//! The kernel's own software clock for profiles is that timer: it runs in the hard interrupt on
//! every preemption model, wakes nobody and needs no thread.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use ctf::writer::EnvValue;
use event::{Cpu, Duration};

use crate::housekeeping;
use host::capabilities::Machine;

/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_CPU_CLOCK`.
const SOFTWARE: u64 = 1;
const CPU_CLOCK: u64 = 0;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOEXEC: libc::c_ulong = 1 << 3;
/// `struct perf_event_attr` in its first version, in words: type and size, config, period,
/// sample type, read format, flags, wake-ups, address.
const ATTRIBUTE_WORDS: usize = 8;

/// So many beats in the shortest latency that is watched for,
const BEATS_PER_THRESHOLD: i64 = 5;
/// but not more often than this, which takes some parts in a thousand of a CPU,
const PERIOD_MIN: Duration = Duration::from_ms(1);
/// and not less often: what stands still for longer is seen whatever is watched for.
const PERIOD_MAX: Duration = Duration::from_ms(4);

/// Beats until it is dropped.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    period: Duration,
    cpus: Vec<Cpu>,
    _timers: Vec<OwnedFd>,
}

impl Heartbeat {
    /// Beats where it can tell something: where the machine may stand still unseen, and has two
    /// CPUs that are not isolated. What the kernel refuses does not beat; the trace says which do.
    pub(crate) fn start(machine: &Machine, threshold: Duration) -> Option<Heartbeat> {
        let cpus = housekeeping::cpus(machine, None);
        if !machine.steal.may_stand_still_unseen() || cpus.len() < 2 {
            return None;
        }
        let period = period(threshold);
        let beats = cpus
            .into_iter()
            .filter_map(|cpu| Some((cpu, timer(cpu, period).ok()?)));
        let (cpus, timers): (Vec<Cpu>, Vec<OwnedFd>) = beats.unzip();
        (!cpus.is_empty()).then_some(Heartbeat {
            period,
            cpus,
            _timers: timers,
        })
    }

    /// What the trace says of it: how often, and where.
    pub(crate) fn environment(&self) -> [(String, EnvValue); 2] {
        [
            (
                "rtscope_heartbeat_ns".to_owned(),
                EnvValue::Integer(self.period.as_ns()),
            ),
            (
                "rtscope_heartbeat_cpus".to_owned(),
                EnvValue::Text(Cpu::list(&self.cpus)),
            ),
        ]
    }
}

fn period(threshold: Duration) -> Duration {
    let part = Duration::from_ns(threshold.as_ns() / BEATS_PER_THRESHOLD);
    part.clamp(PERIOD_MIN, PERIOD_MAX)
}

/// The kernel's software clock on `cpu`, which nobody reads.
fn timer(cpu: Cpu, period: Duration) -> io::Result<OwnedFd> {
    let size = (ATTRIBUTE_WORDS * size_of::<u64>()) as u64;
    let mut attribute = [0u64; ATTRIBUTE_WORDS];
    attribute[0] = SOFTWARE | size << 32;
    attribute[1] = CPU_CLOCK;
    attribute[2] = period.as_ns_unsigned();
    // SAFETY: the call reads `size` bytes of an attribute that outlives it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attribute.as_ptr(),
            -1,
            cpu.0 as libc::c_int,
            -1,
            CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::capabilities::StealReport;

    #[test]
    fn it_beats_several_times_in_what_is_watched_for_within_reason() {
        let check = |threshold_us: i64, expect_us: i64| {
            let found = period(Duration::from_us(threshold_us));
            assert_eq!(found, Duration::from_us(expect_us), "{threshold_us}");
        };
        check(50, 1_000);
        check(10_000, 2_000);
        check(300_000, 4_000);
    }

    #[test]
    fn it_is_still_where_it_could_tell_nothing() {
        let machine = |cpus: u32, steal| Machine {
            cpus_allowed: (0..cpus).map(Cpu).collect(),
            steal,
            ..Machine::default()
        };
        let threshold = Duration::from_ms(10);
        for (cpus, steal) in [
            (4, StealReport::BareMetal),
            (4, StealReport::Reported),
            (1, StealReport::NotReported),
        ] {
            let found = Heartbeat::start(&machine(cpus, steal), threshold);
            assert!(found.is_none(), "{cpus} {steal:?}");
        }
    }
}
