//! Which tasks are meant: those that patterns name, or all real-time tasks.

use event::{NamedTask, Prio, Result, TaskPattern, Tid};

use crate::{Kernel, Process};

/// Which tasks' activations are looked at. A task is meant when any pattern means it; a filter
/// without patterns means all real-time tasks that do work of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// `docs/tasks.md` has the language.
    pub patterns: Vec<TaskPattern>,
}

impl TaskFilter {
    /// From what was typed.
    ///
    /// # Errors
    /// As [`TaskPattern::parse`].
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<TaskFilter> {
        let patterns = TaskPattern::parse_all(texts)?;
        Ok(TaskFilter { patterns })
    }

    /// What these mean, too.
    #[must_use]
    pub fn or(mut self, patterns: Vec<TaskPattern>) -> TaskFilter {
        self.patterns.extend(patterns);
        self
    }

    /// Whether the filter names tasks itself.
    pub fn is_explicit(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// Whether the task is meant.
    pub fn matches(&self, task: &NamedTask<'_>) -> bool {
        match self.is_explicit() {
            true => self.patterns.iter().any(|pattern| pattern.matches(task)),
            false => TaskPattern::RealTime.matches(task),
        }
    }

    /// Whether processes are meant by their names.
    pub fn names_processes(&self) -> bool {
        let is_name = |pattern: &TaskPattern| matches!(pattern, TaskPattern::Process(_));
        self.patterns.iter().any(is_name)
    }

    /// Whether a task's process decides.
    pub fn asks_for_process(&self) -> bool {
        self.patterns.iter().any(TaskPattern::asks_for_process)
    }
}

impl Kernel {
    /// The name of a thread, or what its first wake-up called it.
    pub fn name<'a>(&self, process: &'a Process) -> &'a [u8] {
        match process.comm.bytes() {
            b"" => process.woken_as.bytes(),
            comm => comm,
        }
    }

    /// What is known of a thread now, for whoever names tasks.
    pub fn named<'a>(&'a self, process: &'a Process) -> NamedTask<'a> {
        let pid = process.pid.filter(|pid| *pid > 0);
        let leader = pid.and_then(|pid| self.find(pid));
        let leader = leader.map(|id| self.process(id).comm.bytes());
        NamedTask {
            tid: Tid(process.tid),
            comm: self.name(process),
            prio: process.prio.map(Prio::from_lttng),
            pid: pid.map(Tid),
            leader,
            program: self.programs.of(pid.unwrap_or(process.tid)),
            is_program: false,
        }
    }
}

/// One thread.
impl From<Tid> for TaskFilter {
    fn from(tid: Tid) -> TaskFilter {
        TaskFilter {
            patterns: vec![TaskPattern::Tid(tid)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_names_nothing_means_real_time_tasks_that_are_their_own() {
        let check = |texts: &[&str], tid: i32, comm: &str, prio: i32, expect: bool| {
            let filter = TaskFilter::parse(texts).expect("names tasks");
            let task = NamedTask::alone(Tid(tid), comm.as_bytes(), Prio(prio));
            assert_eq!(filter.matches(&task), expect, "{texts:?} {comm}");
        };
        check(&[], 7, "jackd", 89, true);
        check(&[], 7, "bash", 120, false);
        check(&[], 7, "irq/24-snd", 49, false);
        check(&[], 0, "swapper/0", 120, false);
        check(&["irq/24*"], 7, "irq/24-snd", 49, true);
        check(&["irq/24*"], 8, "jackd", 89, false);
        check(&["8", "rt"], 8, "bash", 120, true);
        check(&["8", "rt"], 9, "jackd", 89, true);
        check(&["8", "rt"], 10, "bash", 120, false);
    }
}
