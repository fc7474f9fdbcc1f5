//! What a task has that can be changed from outside: its CPUs, its policy.

use event::Cpu;
use rustix::process::Pid;
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};

use crate::shield::{list, start_of};

/// A task that is the same one later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskId {
    /// Its id.
    pub tid: i32,
    /// Its name when it was looked at.
    pub comm: String,
    /// Its start in ticks since boot: a later task may have the same id.
    start: u64,
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.comm, self.tid)
    }
}

impl TaskId {
    /// The task of this id; none when there is none.
    pub fn find(tid: i32) -> Option<TaskId> {
        let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
        let comm = std::fs::read(format!("/proc/{tid}/comm")).ok()?;
        TaskId::of(tid, &String::from_utf8_lossy(&comm), &stat)
    }

    /// By the texts of its files `comm` and `stat`.
    pub(crate) fn of(tid: i32, comm: &str, stat: &str) -> Option<TaskId> {
        Some(TaskId {
            tid,
            comm: event::plain_text(comm.trim_ascii_end().as_bytes()),
            start: start_of(stat)?,
        })
    }

    pub(crate) fn is_there(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.tid));
        stat.ok().and_then(|stat| start_of(&stat)) == Some(self.start)
    }

    /// Where it may run, as a list.
    pub(crate) fn affinity(&self) -> Option<String> {
        let set = rustix::thread::sched_getaffinity(Pid::from_raw(self.tid)).ok()?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        let cpus: Vec<Cpu> = cpus.map(|cpu| Cpu(cpu as u32)).collect();
        Some(list(&cpus))
    }

    pub(crate) fn set_affinity(&self, cpus: &str) -> std::io::Result<()> {
        let mut set = CpuSet::new();
        let cpus = Cpu::parse_list(cpus).map_err(std::io::Error::other)?;
        cpus.iter().for_each(|cpu| set.set(cpu.0 as usize));
        Ok(rustix::thread::sched_setaffinity(
            Pid::from_raw(self.tid),
            &set,
        )?)
    }

    pub(crate) fn policy(&self) -> Option<Policy> {
        let mut policy = Policy::default();
        let size = size_of::<Policy>() as u32;
        // SAFETY: the structure is as long as the size says, all of it plain integers, and lives
        // for the call.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_getattr, self.tid, &raw mut policy, size, 0) };
        (result == 0).then_some(policy)
    }

    pub(crate) fn set_policy(&self, policy: &Policy) -> std::io::Result<()> {
        let policy = Policy {
            size: size_of::<Policy>() as u32,
            ..*policy
        };
        // SAFETY: the structure is as long as its first field says, and lives for the call.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_setattr, self.tid, &raw const policy, 0) };
        match result {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// How a task is scheduled, whole: `struct sched_attr` of the kernel in its first version
/// (include/uapi/linux/sched/types.h).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    #[serde(skip)]
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const OTHER: u32 = 0;
const FIFO: u32 = 1;
const ROUND_ROBIN: u32 = 2;
const BATCH: u32 = 3;
const IDLE: u32 = 5;
const DEADLINE: u32 = 6;

impl Policy {
    /// By the numbers that proc(5) has in `stat`.
    pub(crate) fn new(policy: u32, priority: u32, nice: i32) -> Policy {
        Policy {
            policy,
            priority,
            nice,
            ..Policy::default()
        }
    }

    /// The same as SCHED_FIFO at `priority`, or at its own real-time policy.
    pub(crate) fn real_time(self, priority: u32) -> Policy {
        let policy = match self.policy {
            ROUND_ROBIN => ROUND_ROBIN,
            _ => FIFO,
        };
        self.with_policy(policy, priority)
    }

    /// As arguments of `chrt`.
    pub(crate) fn chrt(self) -> String {
        let letter = match self.policy {
            FIFO => 'f',
            ROUND_ROBIN => 'r',
            BATCH => 'b',
            IDLE => 'i',
            _ => 'o',
        };
        format!("-{letter} -p {}", self.priority)
    }

    /// By the letter of a flag of `chrt`.
    pub(super) fn of_letter(letter: char) -> Option<u32> {
        Some(match letter {
            'f' => FIFO,
            'r' => ROUND_ROBIN,
            'o' => OTHER,
            'b' => BATCH,
            'i' => IDLE,
            _ => return None,
        })
    }

    /// The same with this policy and real-time priority; whether its children inherit that stays.
    pub(super) fn with_policy(self, policy: u32, priority: u32) -> Policy {
        Policy {
            policy,
            priority,
            runtime_ns: 0,
            deadline_ns: 0,
            period_ns: 0,
            ..self
        }
    }

    /// Whether the kernel takes a priority with a policy.
    pub(super) fn takes(policy: u32, priority: u32) -> bool {
        match policy {
            FIFO | ROUND_ROBIN => (1..=99).contains(&priority),
            _ => priority == 0,
        }
    }

    /// The same with this nice value, where that says how the task is scheduled.
    pub(super) fn with_nice(self, nice: i32) -> Policy {
        match self.policy {
            FIFO | ROUND_ROBIN | DEADLINE => self,
            _ => Policy { nice, ..self },
        }
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.policy {
            FIFO => write!(f, "FIFO {}", self.priority),
            ROUND_ROBIN => write!(f, "RR {}", self.priority),
            BATCH => write!(f, "batch nice {}", self.nice),
            IDLE => write!(f, "idle nice {}", self.nice),
            DEADLINE => f.write_str("DEADLINE"),
            _ => write!(f, "nice {}", self.nice),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_has_is_read_and_put_back() {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let task = TaskId::find(own).expect("this thread");
        assert!(task.is_there());
        let (cpus, policy) = (
            task.affinity().expect("CPUs"),
            task.policy().expect("a policy"),
        );
        task.set_affinity(&cpus).expect("its own");
        task.set_policy(&policy).expect("its own");
        assert_eq!((task.affinity(), task.policy()), (Some(cpus), Some(policy)));
        let other = TaskId {
            start: task.start + 1,
            ..task
        };
        assert!(!other.is_there());
        assert_eq!(TaskId::find(i32::MAX), None);
    }

    #[test]
    fn a_policy_is_said_as_ps_says_it() {
        let check = |policy: Policy, expect: &str| assert_eq!(policy.to_string(), expect);
        let nice = Policy::default().with_nice(-5);
        check(nice, "nice -5");
        check(nice.with_policy(FIFO, 50), "FIFO 50");
        check(nice.with_policy(IDLE, 0), "idle nice -5");
    }
}
