//! Numbers that are names: a CPU, a task, a priority.

use std::fmt;

use crate::{Error, ErrorKind, Result};

/// A CPU by its kernel number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(pub u32);

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU {}", self.0)
    }
}

impl Cpu {
    /// Reads a list as the kernel writes it: `0-3,8`. The CPUs come in order, each once; an empty
    /// text is an empty list.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] names the text.
    pub fn parse_list(text: &str) -> Result<Vec<Cpu>> {
        let mut cpus = Vec::new();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.parse().ok().filter(|number| *number < CPUS_MAX);
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(not_a_cpu_list(text));
            };
            if first > last {
                return Err(not_a_cpu_list(text));
            }
            cpus.extend((first..=last).map(Cpu));
        }
        cpus.sort();
        cpus.dedup();
        Ok(cpus)
    }

    /// These as a list that [`Cpu::parse_list`] reads.
    pub fn list(cpus: &[Cpu]) -> String {
        let cpus: Vec<String> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
        cpus.join(",")
    }
}

/// More CPUs than the kernel can be built for (`NR_CPUS` ends at 8192): bounds a hostile list.
const CPUS_MAX: u32 = 8192;

fn not_a_cpu_list(text: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, "not a list of CPUs")
        .found(format!("'{text}'"))
        .fix("give numbers and ranges, as in 0-3,8")
}

/// A task (thread) by its id in the initial PID namespace. Tid 0 is the idle task, one per CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub i32);

impl Tid {
    /// The idle task: one task per CPU shares this number, so that it never identifies a task
    /// without its CPU.
    pub const IDLE: Tid = Tid(0);

    /// Whether this is an idle task.
    pub fn is_idle(self) -> bool {
        self == Tid::IDLE
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A priority on the kernel's internal scale, where less is more urgent: -1 is SCHED_DEADLINE (and
/// the stop class), 0 to 98 are SCHED_FIFO and SCHED_RR 99 to 1, 100 to 139 are nice -20 to 19
/// (kernel: `include/linux/sched/prio.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prio(pub i32);

/// `MAX_RT_PRIO` of the kernel: the first priority that is not real-time.
const MAX_RT_PRIO: i32 = 100;
/// `DEFAULT_PRIO` of the kernel: nice 0.
const DEFAULT_PRIO: i32 = 120;

impl Prio {
    /// From the value that LTTng writes: the kernel's minus `MAX_RT_PRIO`.
    pub fn from_lttng(value: i32) -> Self {
        Prio(value.saturating_add(MAX_RT_PRIO))
    }

    /// The value that LTTng writes: the kernel's minus `MAX_RT_PRIO`.
    pub fn lttng(self) -> i32 {
        self.0.saturating_sub(MAX_RT_PRIO)
    }

    /// From a real-time priority as `chrt` takes it, 1 to 99.
    pub fn from_rt(rt: u32) -> Self {
        Prio(MAX_RT_PRIO - 1 - rt.min(99) as i32)
    }

    /// The real-time priority as `chrt` prints it, 1 to 99; none for deadline and fair tasks.
    pub fn rt(self) -> Option<u32> {
        (0..MAX_RT_PRIO - 1)
            .contains(&self.0)
            .then(|| (MAX_RT_PRIO - 1 - self.0) as u32)
    }

    /// The nice value of a fair task, -20 to 19; none for others.
    pub fn nice(self) -> Option<i32> {
        (MAX_RT_PRIO..MAX_RT_PRIO + 40)
            .contains(&self.0)
            .then_some(self.0 - DEFAULT_PRIO)
    }

    /// Whether the task is scheduled before every fair task: real-time, deadline or stop class.
    pub fn is_real_time(self) -> bool {
        self.0 < MAX_RT_PRIO - 1
    }

    /// Whether the task has a deadline, and with it a runtime of its own. Threads of the stop class
    /// have this priority too on some kernels.
    pub fn has_deadline(self) -> bool {
        self.0 < 0
    }

    /// Whether a task of this priority goes before one of `other`.
    pub fn beats(self, other: Prio) -> bool {
        self.0 < other.0
    }
}

/// As people say it: `rt 60`, `nice 0`, `deadline`.
impl fmt::Display for Prio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rt() {
            Some(rt) => write!(f, "rt {rt}"),
            None if self.0 < 0 => f.write_str("deadline"),
            None => write!(f, "nice {}", self.0 - DEFAULT_PRIO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_read_as_the_kernel_writes_it() {
        let check = |text: &str, expect: Option<&[u32]>| {
            let cpus = Cpu::parse_list(text).ok();
            let numbers: Option<Vec<u32>> = cpus.map(|cpus| cpus.iter().map(|c| c.0).collect());
            assert_eq!(numbers.as_deref(), expect, "{text}");
        };
        check("0-3,8", Some(&[0, 1, 2, 3, 8]));
        check("1,0,1", Some(&[0, 1]));
        check("\n", Some(&[]));
        check("3-1", None);
        check("0,", None);
        check("0-4294967295", None);
        check("all", None);
    }

    #[test]
    fn a_priority_reads_as_people_say_it_on_every_scale() {
        let check = |kernel: i32, lttng: i32, text: &str| {
            assert_eq!(Prio(kernel).to_string(), text);
            assert_eq!(Prio(kernel).lttng(), lttng);
            assert_eq!(Prio::from_lttng(lttng), Prio(kernel));
        };
        check(39, -61, "rt 60");
        check(98, -2, "rt 1");
        check(0, -100, "rt 99");
        check(120, 20, "nice 0");
        check(139, 39, "nice 19");
        check(-1, -101, "deadline");
        assert_eq!(Prio::from_rt(60), Prio(39));
        let nice = [39, 100, 120, 139, 140].map(|kernel| Prio(kernel).nice());
        assert_eq!(nice, [None, Some(-20), Some(0), Some(19), None]);
        assert!(Prio::from_rt(60).beats(Prio::from_rt(1)));
    }
}
