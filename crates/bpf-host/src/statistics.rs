//! Numbers of a running watch: samples, losses, and what the kernel says that our programs cost.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use abi::{Histogram, raw};
use event::{Duration, Error, Result};
use libbpf_rs::{Object, libbpf_sys};

use crate::object;

/// What a watch has counted since it began.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Chains that ended at a target, suppressed ones included.
    pub samples: u64,
    /// The longest of them.
    pub worst: Duration,
    /// All of them.
    pub histogram: Histogram,
    /// Over the threshold but not reported: rate limit, not the worst, enough hits.
    pub suppressed: u64,
    /// Hits without room in the ring, and calls that the kernel left out because a program would
    /// have interrupted itself.
    pub lost: u64,
    /// Chains that were cut because they were too old or too long to hand on.
    pub stale: u64,
    /// Frames that were reset because an exit was missed.
    pub repaired: u64,
    /// Wake-ups of tasks that the watch does not know and that may be targets.
    pub untracked: u64,
    /// Tasks that the kernel had no storage for when asked; the next look resolves them.
    pub storage_failures: u64,
    /// Activations of targets over the threshold of which the end was not seen.
    pub dropped: u64,
    /// Activations of targets whose wake-up was not seen: they count from their own timer's expiry,
    /// or from when they were seen to run.
    pub unseen: u64,
    /// The latter: how long they had waited before nobody knows.
    pub undated: u64,
    /// Those of which nothing says when they began.
    pub unplaced: u64,
    /// Those, over the threshold, of tasks that were no targets any more at their end.
    pub unmeant: u64,
    /// Targets that are called otherwise now, and are none any more.
    pub renamed: u64,
    /// Programs of the command that never slept, and were at work for longer than the threshold:
    /// nothing of that was judged.
    pub unslept: u64,
    /// What tasks did from when they became targets (by their name, or as they were born and gave
    /// themselves a priority) to their first sleep, where that was longer than the threshold.
    pub start_ups: u64,
    /// Waits of targets beyond the time-out that were over before the next look: no hit tells them.
    pub overlooked: u64,
}

impl Statistics {
    /// Activations of targets that nobody could judge, or not from their begin; those whose wake-up
    /// alone was not seen are no part of it.
    pub fn unjudged(&self) -> u64 {
        self.untracked + self.unplaced + self.unmeant
    }

    /// The sample of this rank, 0 to 1, rounded up, and never above the longest; none when empty.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let found = self.histogram.quantile(quantile);
        found.map(|found| found.min(self.worst))
    }

    /// Sums the CPUs' counters.
    pub(crate) fn read(object: &Object) -> Result<Self> {
        let mut sum = Statistics::default();
        for counters in object::per_cpu::<raw::Counters>(object, "counters", 0)? {
            sum.samples += counters.samples;
            sum.worst = sum.worst.max(Duration::from_ns(counters.worst_ns as i64));
            sum.histogram.add(&counters.buckets);
            sum.suppressed += counters.suppressed;
            sum.lost += counters.lost;
            sum.stale += counters.stale;
            sum.repaired += counters.repaired;
            sum.untracked += counters.untracked;
            sum.storage_failures += counters.storage_failures;
            sum.dropped += counters.dropped;
            sum.unseen += counters.unseen;
            sum.undated += counters.undated;
            sum.unplaced += counters.unplaced;
            sum.unmeant += counters.unmeant;
            sum.renamed += counters.renamed;
            sum.unslept += counters.unslept;
            sum.start_ups += counters.start_ups;
            sum.overlooked += counters.overlooked;
        }
        sum.lost += recursion_misses(object);
        Ok(sum)
    }
}

/// What the kernel says of one program's cost since the watch began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCost {
    /// The program, named after its tracepoint.
    pub program: String,
    /// How often it ran.
    pub calls: u64,
    /// How long it ran in all, the kernel's own measuring included.
    pub run_ns: u64,
}

pub(crate) fn program_costs(object: &Object) -> Vec<ProgramCost> {
    let cost = |(program, info): (String, ProgramInfo)| ProgramCost {
        program,
        calls: info.run_cnt,
        run_ns: info.run_time_ns,
    };
    program_infos(object).into_iter().map(cost).collect()
}

/// How many steps the verifier took for each program.
pub(crate) fn verified_steps(object: &Object) -> Vec<(String, u32)> {
    let steps = |(program, info): (String, ProgramInfo)| (program, info.verified_steps);
    program_infos(object).into_iter().map(steps).collect()
}

/// Calls that the kernel left out because a program would have interrupted itself.
pub(crate) fn recursion_misses(object: &Object) -> u64 {
    let infos = program_infos(object).into_iter();
    infos.map(|(_, info)| info.recursion_misses).sum()
}

/// What the kernel knows of a loaded program, cut to what we ask.
struct ProgramInfo {
    run_cnt: u64,
    run_time_ns: u64,
    recursion_misses: u64,
    verified_steps: u32,
}

fn program_infos(object: &Object) -> Vec<(String, ProgramInfo)> {
    let loaded = object.progs().filter(|program| program.autoload());
    let info = |program: libbpf_rs::Program<'_>| {
        let name = program.name().to_string_lossy().into_owned();
        program_info(&program).map(|info| (name, info))
    };
    loaded.filter_map(info).collect()
}

fn program_info(program: &libbpf_rs::Program<'_>) -> Option<ProgramInfo> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    let fd = program.as_fd().as_raw_fd();
    // SAFETY: `info` is as long as `length` says and lives for the call; its pointers are null.
    let result =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(fd, (&raw mut info).cast(), &raw mut length) };
    (result == 0).then_some(ProgramInfo {
        run_cnt: info.run_cnt,
        run_time_ns: info.run_time_ns,
        recursion_misses: info.recursion_misses,
        verified_steps: info.verified_insns,
    })
}

/// The kernel counts the run time of BPF programs while this lives.
#[derive(Debug)]
pub(crate) struct RunTimeStatistics {
    _fd: OwnedFd,
}

impl RunTimeStatistics {
    /// # Errors
    /// [`event::ErrorKind::PermissionDenied`] without CAP_SYS_ADMIN.
    pub(crate) fn enable() -> Result<Self> {
        // SAFETY: a system call without pointers.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            let cause = std::io::Error::from_raw_os_error(-fd);
            return Err(
                Error::io("cannot measure the run time of BPF programs", cause)
                    .fix("run it as root"),
            );
        }
        // SAFETY: the descriptor is new and ours.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(RunTimeStatistics { _fd: fd })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_quantile_is_above_the_longest() {
        let mut statistics = Statistics::default();
        assert_eq!(statistics.quantile(0.5), None);
        let mut buckets = [0; raw::BUCKETS_MAX];
        buckets[300] = 5;
        statistics.histogram.add(&buckets);
        let (lower, upper, _) = statistics.histogram.counts().next().expect("counted");
        statistics.worst = lower + Duration::from_ns(1);
        assert!(statistics.worst < upper);
        assert_eq!(statistics.quantile(0.999), Some(statistics.worst));
    }
}
