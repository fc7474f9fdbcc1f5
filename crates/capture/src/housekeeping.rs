//! Where our own threads run: never on measured or isolated CPUs when there are others.

use std::path::PathBuf;

use bpf_host::Targets;
use event::{Cpu, TaskPattern, Tid};

use host::capabilities::Machine;

/// The CPUs for our own threads: allowed, not isolated, not measured; where that leaves none, all
/// that are allowed.
pub fn cpus(machine: &Machine, measured: Option<&[Cpu]>) -> Vec<Cpu> {
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

/// The CPUs on which the targets of a watch may run, as far as it names tasks that are there: by
/// thread id, or by a name without a pattern.
pub(crate) fn of_targets(targets: &Targets) -> Vec<Cpu> {
    let Targets::Tasks(tasks) = targets else {
        return vec![];
    };
    let mut names = Vec::new();
    let mut tids = Vec::new();
    for task in tasks {
        match task {
            TaskPattern::Tid(tid) => tids.push(*tid),
            TaskPattern::Name(name) => names.extend(name.literal()),
            _ => {}
        }
    }
    if !names.is_empty() {
        tids.extend(called(&names));
    }
    let mut cpus: Vec<Cpu> = tids.iter().flat_map(|tid| allowed(*tid)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The threads of these names, which are cut as the kernel cuts them.
fn called(names: &[&[u8]]) -> Vec<Tid> {
    let folders = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let threads = folders("/proc".into())
        .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .flat_map(|entry| folders(entry.path().join("task")));
    let named = threads.filter(|thread| {
        let comm = std::fs::read(thread.path().join("comm")).unwrap_or_default();
        names.contains(&comm.strip_suffix(b"\n").unwrap_or(&comm))
    });
    named
        .filter_map(|thread| Some(Tid(thread.file_name().to_str()?.parse().ok()?)))
        .collect()
}

/// Where a thread may run; nothing when it is gone.
fn allowed(tid: Tid) -> Vec<Cpu> {
    let Some(set) = rustix::process::Pid::from_raw(tid.0)
        .and_then(|pid| rustix::thread::sched_getaffinity(Some(pid)).ok())
    else {
        return vec![];
    };
    let all = 0..rustix::thread::CpuSet::MAX_CPU;
    all.filter(|cpu| set.is_set(*cpu))
        .map(|cpu| Cpu(cpu as u32))
        .collect()
}

/// One more than the number of the last CPU that this machine can have, as the probe counts them;
/// the most where nobody knows.
pub(crate) fn cpus_possible() -> u32 {
    cpus_known().unwrap_or(abi::rings::CPUS_MAX)
}

/// The same to divide memory by: where nobody knows, those that we may use.
pub(crate) fn cpus_that_share() -> u32 {
    cpus_known().unwrap_or_else(|| {
        let ours = std::thread::available_parallelism();
        ours.map_or(1, |count| count.get() as u32)
    })
}

fn cpus_known() -> Option<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok()?;
    let last = list.trim_end().rsplit([',', '-']).next()?;
    Some(last.parse::<u32>().ok()?.saturating_add(1))
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

/// Schedules this thread before all fair tasks and behind the more urgent real-time tasks
/// (SCHED_FIFO 1), so that a busy machine does not keep a stopped recorder waiting; for tasks of
/// the same priority see [`let_equals_run`]. Without the privilege it stays as it is.
pub(crate) fn be_prompt() {
    be_scheduled(libc::SCHED_FIFO, 1);
}

/// Whether [`be_prompt`] makes a thread of ours a real-time task.
pub(crate) fn may_be_prompt() -> bool {
    let tried = std::thread::spawn(|| be_scheduled(libc::SCHED_FIFO, 1));
    tried.join().unwrap_or(false)
}

/// Schedules this thread as fair tasks are: while it works for long on what can wait, it makes
/// nobody late.
pub(crate) fn be_patient() {
    be_scheduled(libc::SCHED_OTHER, 0);
}

/// Whether the kernel allowed it.
fn be_scheduled(policy: i32, priority: i32) -> bool {
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the call reads one initialised struct and affects this thread only.
    unsafe { libc::sched_setscheduler(0, policy, &param) == 0 }
}

/// Lets tasks of the same priority run first. A task at SCHED_FIFO 1 is no less urgent than this
/// thread and would wait for all that it does; so long work calls this after every page. A fair
/// thread keeps its CPU: the scheduler shares that anyway, and each call could cost it a slice.
pub(crate) fn let_equals_run() {
    // SAFETY: both calls take no memory and affect this thread only.
    unsafe {
        if libc::sched_getscheduler(0) == libc::SCHED_FIFO {
            libc::sched_yield();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_a_target_are_those_on_which_it_may_run() {
        let here = rustix::thread::gettid().as_raw_nonzero().get();
        let ours = allowed(Tid(here));
        assert!(!ours.is_empty());
        let check = |text: &str, expect: &[Cpu]| {
            let task = TaskPattern::parse(text).expect("names tasks");
            assert_eq!(of_targets(&Targets::Tasks(vec![task])), expect, "{text}");
        };
        check(&here.to_string(), &ours);
        let name = std::fs::read_to_string(format!("/proc/self/task/{here}/comm"));
        let name = name.expect("our own name");
        let name = name.strip_suffix('\n').unwrap_or(&name);
        check(&format!("name:{name}"), &ours);
        check("rtscope-absent", &[]);
        // A pattern may mean any task of the machine.
        check("*", &[]);
        assert_eq!(of_targets(&Targets::RealTime), []);
    }

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
