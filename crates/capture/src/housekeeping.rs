//! Where our own threads run: never on measured or isolated CPUs when there are others.

use event::Cpu;

use crate::facts::Machine;

/// The CPUs for our own threads: allowed, not isolated, not measured; where that leaves none, all
/// that are allowed.
pub(crate) fn cpus(machine: &Machine, measured: Option<&[Cpu]>) -> Vec<Cpu> {
    let free = |cpu: &Cpu| {
        !machine.cpus_isolated.contains(cpu) && !measured.unwrap_or_default().contains(cpu)
    };
    let chosen: Vec<_> = machine.cpus_allowed.iter().copied().filter(free).collect();
    if chosen.is_empty() {
        machine.cpus_allowed.clone()
    } else {
        chosen
    }
}

/// Moves the calling thread to `cpus`. A refusal is no harm: it then runs where it is allowed to.
pub(crate) fn pin(cpus: &[Cpu]) {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus {
        let index = cpu.0 as usize;
        if index < rustix::thread::CpuSet::MAX_CPU {
            set.set(index);
        }
    }
    if set.count() > 0 {
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

/// Schedules this thread before all fair tasks and behind every other real-time task (SCHED_FIFO
/// 1), so that a busy machine does not keep a stopped recorder waiting. Without the privilege it
/// stays as it is.
pub(crate) fn be_prompt() {
    let param = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads one initialised struct and affects this thread only.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &param) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_threads_stay_off_measured_and_isolated_cpus_when_others_exist() {
        let numbers = |list: &[u32]| list.iter().copied().map(Cpu).collect::<Vec<_>>();
        let check = |isolated: &[u32], measured: &[u32], expect: &[u32]| {
            let machine = Machine {
                cpus_allowed: numbers(&[0, 1, 2, 3]),
                cpus_isolated: numbers(isolated),
                ..Default::default()
            };
            assert_eq!(cpus(&machine, Some(&numbers(measured))), numbers(expect));
        };
        check(&[], &[], &[0, 1, 2, 3]);
        check(&[3], &[2], &[0, 1]);
        check(&[3], &[0, 1, 2], &[0, 1, 2, 3]);
    }
}
