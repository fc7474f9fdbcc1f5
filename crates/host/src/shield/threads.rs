//! The kernel's threads: those that run anywhere, and those that serve interrupts.

use std::path::Path;

use event::{Cpu, Error, ErrorKind, NamePattern, Result};

use super::{Change, Step, list};
use crate::tune::{Policy, TaskId};

/// Flags of a task (include/linux/sched.h): it is the kernel's; nobody may move it.
const KERNEL_THREAD: u64 = 0x0020_0000;
const NO_SETAFFINITY: u64 = 0x0400_0000;
/// How the threads of interrupts are called: `irq/24-eth0`.
const INTERRUPT: &str = "irq/";

/// A priority for the interrupt threads of some names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptPrio {
    pattern: NamePattern,
    prio: u32,
}

impl InterruptPrio {
    /// From what was typed: `irq/*-eth0=85`.
    ///
    /// # Errors
    /// For what is no pattern of names with a real-time priority.
    pub fn parse(text: &str) -> Result<InterruptPrio> {
        let refuse = || {
            Error::new(
                ErrorKind::InvalidInput,
                "not a priority of interrupt threads",
            )
            .found(format!("'{text}'"))
            .fix("give a pattern of their names and 1 to 99, as in --irq-prio 'irq/*-eth0=85'")
        };
        let (pattern, prio) = text.rsplit_once('=').ok_or_else(refuse)?;
        let prio = prio.parse().ok().filter(|prio| (1..=99).contains(prio));
        Ok(InterruptPrio {
            pattern: NamePattern::parse(pattern).map_err(|_| refuse())?,
            prio: prio.ok_or_else(refuse)?,
        })
    }
}

/// One thread of the kernel, as its files say.
struct KernelThread {
    task: TaskId,
    flags: u64,
    policy: Policy,
    cpus: Vec<Cpu>,
}

impl KernelThread {
    /// None for a task that is not the kernel's, or is gone.
    fn read(root: &Path, tid: i32) -> Option<KernelThread> {
        let folder = root.join("proc").join(tid.to_string());
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let stat = text("stat")?;
        let flags = field(&stat, 9)?;
        if flags & KERNEL_THREAD == 0 {
            return None;
        }
        let status = text("status")?;
        let mut lines = status.lines();
        let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(KernelThread {
            task: TaskId::of(tid, &text("comm")?, &stat)?,
            flags,
            policy: Policy::new(
                u32::try_from(field(&stat, 41)?).ok()?,
                u32::try_from(field(&stat, 40)?).ok()?,
                nice(&stat)?,
            ),
            cpus: Cpu::parse_list(allowed.trim()).ok()?,
        })
    }

    fn serves_interrupt(&self) -> bool {
        self.task.comm.starts_with(INTERRUPT)
    }
}

/// A field of proc(5)'s stat by its number there; the second may hold spaces and brackets.
fn field(stat: &str, number: usize) -> Option<u64> {
    word(stat, number)?.parse().ok()
}

fn nice(stat: &str) -> Option<i32> {
    word(stat, 19)?.parse().ok()
}

fn word(stat: &str, number: usize) -> Option<&str> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(number - 3)
}

fn all(root: &Path) -> Vec<KernelThread> {
    let entries = std::fs::read_dir(root.join("proc")).into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut tids: Vec<i32> = names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect();
    tids.sort_unstable();
    let read = |tid| KernelThread::read(root, tid);
    tids.into_iter().filter_map(read).collect()
}

/// The kernel's threads that may run on a shielded CPU and elsewhere, kthreadd among them, are kept
/// to the others. Those of one CPU belong to it, those of interrupts follow their interrupt.
pub(super) fn confine(root: &Path, shielded: &[Cpu]) -> Vec<Step> {
    let change = |thread: KernelThread| {
        if thread.flags & NO_SETAFFINITY != 0 || thread.serves_interrupt() {
            return None;
        }
        let is_inside = |cpu: &&Cpu| shielded.contains(cpu);
        let free: Vec<Cpu> = thread
            .cpus
            .iter()
            .filter(|cpu| !is_inside(cpu))
            .copied()
            .collect();
        (free.len() < thread.cpus.len() && !free.is_empty()).then(|| {
            Step::Set(Change::Affinity {
                task: thread.task,
                before: list(&thread.cpus),
                after: list(&free),
            })
        })
    };
    all(root).into_iter().filter_map(change).collect()
}

/// The interrupt threads that `wanted` names get its priorities; of several the last counts.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a pattern that names none of them.
pub(super) fn prioritize(root: &Path, wanted: &[InterruptPrio]) -> Result<Vec<Step>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let threads = all(root).into_iter().filter(KernelThread::serves_interrupt);
    let threads: Vec<KernelThread> = threads.collect();
    for one in wanted {
        let is_meant = |thread: &KernelThread| one.pattern.matches(thread.task.comm.as_bytes());
        if !threads.iter().any(is_meant) {
            return Err(nobody(one, &threads));
        }
    }
    let change = |thread: KernelThread| {
        let comm = thread.task.comm.clone();
        let mut meant = wanted.iter().rev();
        let prio = meant.find(|one| one.pattern.matches(comm.as_bytes()))?.prio;
        let after = thread.policy.real_time(prio);
        (after != thread.policy).then_some(Step::Set(Change::Schedule {
            task: thread.task,
            before: thread.policy,
            after,
        }))
    };
    Ok(threads.into_iter().filter_map(change).collect())
}

fn nobody(wanted: &InterruptPrio, threads: &[KernelThread]) -> Error {
    let what = format!("no interrupt thread is called {}", wanted.pattern.text());
    let error = Error::new(ErrorKind::NotFound, what);
    let names: Vec<&str> = threads.iter().map(|one| one.task.comm.as_str()).collect();
    match names.is_empty() {
        true => error
            .found("no thread of the kernel is called irq/…")
            .fix("boot a PREEMPT_RT kernel, or with threadirqs: then interrupts have threads"),
        false => error.found(names.join(", ")).fix(format!(
            "name one of them, as in --irq-prio '{}=85'",
            names[0]
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with kthreadd, a free thread of the kernel, one bound to CPU 1, a worker that
    /// nobody may move, an interrupt's thread and an ordinary process.
    fn machine() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let free = KERNEL_THREAD;
        let tasks = [
            (2, "kthreadd", free, "0-3", (0, 0)),
            (30, "kswapd (0)", free, "0-3", (0, 0)),
            (31, "rcuc/1", free, "1", (1, 1)),
            (32, "kworker/u8:0", free | NO_SETAFFINITY, "0-3", (0, 0)),
            (33, "irq/24-eth0", free, "0-3", (1, 50)),
            (400, "bash", 0, "0-3", (0, 0)),
        ];
        for (tid, comm, flags, cpus, (policy, prio)) in tasks {
            let task = folder.path().join("proc").join(tid.to_string());
            std::fs::create_dir_all(&task).expect("made");
            let before = "S 2 0 0 0 -1";
            let middle = "0 0 0 0 0 0 0 0 20 0 1 0 77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1";
            let stat = format!("{tid} ({comm}) {before} {flags} {middle} {prio} {policy} 0 0\n");
            let write = |name: &str, text: String| std::fs::write(task.join(name), text);
            write("stat", stat).expect("written");
            write("comm", format!("{comm}\n")).expect("written");
            write("status", format!("Cpus_allowed_list:\t{cpus}\n")).expect("written");
        }
        folder
    }

    fn shell(changes: &[Step]) -> Vec<String> {
        changes.iter().map(Step::shell).collect()
    }

    #[test]
    fn threads_of_the_kernel_that_run_anywhere_leave_and_those_of_one_cpu_stay() {
        let machine = machine();
        let changes = confine(machine.path(), &[Cpu(1), Cpu(3)]);
        assert_eq!(
            shell(&changes),
            [
                "taskset -cp 0,2 2 # kthreadd",
                "taskset -cp 0,2 30 # kswapd (0)"
            ]
        );
    }

    #[test]
    fn an_interrupt_thread_gets_the_priority_that_was_asked_for() {
        let machine = machine();
        let check = |texts: &[&str], expect: &[&str]| {
            let wanted = texts.iter().map(|text| InterruptPrio::parse(text));
            let wanted: Vec<_> = wanted.map(|one| one.expect("understood")).collect();
            let changes = prioritize(machine.path(), &wanted).expect("found");
            assert_eq!(shell(&changes), expect, "{texts:?}");
        };
        check(&[], &[]);
        check(&["irq/*=85"], &["chrt -f -p 85 33 # irq/24-eth0"]);
        check(
            &["irq/*=85", "irq/24-*=90"],
            &["chrt -f -p 90 33 # irq/24-eth0"],
        );
        check(&["irq/24-eth0=50"], &[]);
    }

    #[test]
    fn a_name_that_no_interrupt_thread_has_is_refused_with_those_that_are_there() {
        let machine = machine();
        let wanted = InterruptPrio::parse("bash=50").expect("understood");
        let refused =
            prioritize(machine.path(), std::slice::from_ref(&wanted)).expect_err("a shell");
        assert_eq!(refused.kind(), ErrorKind::NotFound);
        assert!(
            format!("{refused:#}").contains("irq/24-eth0"),
            "{refused:#}"
        );
        let empty = tempfile::tempdir().expect("a folder");
        let refused = prioritize(empty.path(), &[wanted]).expect_err("nobody");
        assert!(format!("{refused:#}").contains("threadirqs"), "{refused:#}");
        for text in ["irq/24", "irq/24=0", "irq/24=100", "=5", "irq/24=x"] {
            assert!(InterruptPrio::parse(text).is_err(), "{text}");
        }
    }
}
