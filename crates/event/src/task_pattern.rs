//! One way to name tasks, for every verb: by name, id, process or priority.

use crate::name_pattern::NamePattern;
use crate::{Error, ErrorKind, Prio, Result, Tid, kernel_threads};

/// What names tasks; `docs/tasks.md` has the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskPattern {
    /// Threads of this name: `jackd`, `jack*`, `name:123`.
    Name(NamePattern),
    /// The thread of this id: `123`, `tid:123`.
    Tid(Tid),
    /// All threads of the process of this id: `pid:123`.
    Pid(Tid),
    /// All threads of processes whose first thread or program's file has this name:
    /// `process:jackd`.
    Process(NamePattern),
    /// Tasks of these priorities, the more urgent first: `prio:50`, `prio:50-99`, `prio:dl`.
    Prio(Prio, Prio),
    /// Every real-time or deadline task, without the kernel's threads that only pass work on and
    /// without a watch's own: `rt`.
    RealTime,
}

/// A task, as far as it is known to whoever asks for it.
#[derive(Clone, Copy, Debug)]
pub struct NamedTask<'a> {
    /// Its id.
    pub tid: Tid,
    /// Its name.
    pub comm: &'a [u8],
    /// Its priority; none where nothing says it.
    pub prio: Option<Prio>,
    /// Its process; none where nothing says it, and it then counts as the first thread of its own.
    pub pid: Option<Tid>,
    /// The name of its process's first thread; none where that is not known.
    pub leader: Option<&'a [u8]>,
    /// The name of the file that its process runs, whatever its threads are called; none where that
    /// is not known.
    pub program: Option<&'a [u8]>,
    /// It is known to run a program: it is no thread of the kernel's, whatever its name.
    pub is_program: bool,
}

impl<'a> NamedTask<'a> {
    /// A task of which no process is known.
    pub fn alone(tid: Tid, comm: &'a [u8], prio: Prio) -> NamedTask<'a> {
        NamedTask {
            tid,
            comm,
            prio: Some(prio),
            pid: None,
            leader: None,
            program: None,
            is_program: false,
        }
    }

    /// Whether it is a thread of the kernel that only passes work on. Such threads are processes of
    /// their own.
    pub fn passes_work_on(&self) -> bool {
        let is_thread = self.pid.is_some_and(|pid| pid != self.tid);
        !self.is_program && !is_thread && kernel_threads::passes_work_on(self.comm)
    }

    /// Whether it takes the snapshots of a watch: nobody has a deadline for that.
    fn is_a_watch(&self) -> bool {
        let number = self.comm.strip_prefix(b"rtscope/");
        number.is_some_and(|number| number.iter().all(u8::is_ascii_digit))
    }
}

/// What a text names. The first form that fits holds; `name:` takes any name as it is.
pub const FORMS: &str = "give a name (jackd, 'jack*'), a thread id (123), pid:123, process:NAME, \
                         prio:50, prio:50-99, prio:dl or rt; a task called so is name:NAME";

impl TaskPattern {
    /// Reads what names tasks.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when it is empty or can name no task.
    pub fn parse(text: &str) -> Result<TaskPattern> {
        let refuse = |what: &str| {
            Error::new(ErrorKind::InvalidInput, what)
                .found(format!("'{text}'"))
                .fix(FORMS)
        };
        let id = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok().filter(|id| is_number && *id > 0);
            number
                .map(Tid)
                .ok_or_else(|| refuse("not the id of a task"))
        };
        if text.is_empty() {
            return Err(refuse("no task is named"));
        }
        if text == "rt" {
            return Ok(TaskPattern::RealTime);
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return id(text).map(TaskPattern::Tid);
        }
        match text.split_once(':') {
            Some(("name", name)) => NamePattern::parse(name).map(TaskPattern::Name),
            Some(("tid", number)) => id(number).map(TaskPattern::Tid),
            Some(("pid", number)) => id(number).map(TaskPattern::Pid),
            Some(("process", name)) => NamePattern::parse(name).map(TaskPattern::Process),
            Some(("prio", range)) => match prio_range(range) {
                Some((first, last)) => Ok(TaskPattern::Prio(first, last)),
                None => Err(refuse("not a priority from 1 to 99")),
            },
            _ => NamePattern::parse(text).map(TaskPattern::Name),
        }
    }

    /// Reads each of several.
    ///
    /// # Errors
    /// As [`TaskPattern::parse`].
    pub fn parse_all<T: AsRef<str>>(texts: &[T]) -> Result<Vec<TaskPattern>> {
        texts
            .iter()
            .map(|text| TaskPattern::parse(text.as_ref()))
            .collect()
    }

    /// Whether the task is meant. The idle task never is.
    pub fn matches(&self, task: &NamedTask<'_>) -> bool {
        if task.tid.is_idle() {
            return false;
        }
        match self {
            TaskPattern::Name(name) => name.matches(task.comm),
            TaskPattern::Tid(tid) => *tid == task.tid,
            TaskPattern::Pid(pid) => *pid == task.pid.unwrap_or(task.tid),
            TaskPattern::Process(name) => {
                let is_leader = task.pid.is_none_or(|pid| pid == task.tid);
                let leader = if is_leader {
                    Some(task.comm)
                } else {
                    task.leader
                };
                leader.is_some_and(|leader| name.matches(leader))
                    || task.program.is_some_and(|file| name.means_file(file))
            }
            TaskPattern::Prio(first, last) => task
                .prio
                .is_some_and(|prio| *first <= prio && prio <= *last),
            TaskPattern::RealTime => {
                let is_real_time = task.prio.is_some_and(Prio::is_real_time);
                is_real_time && !task.passes_work_on() && !task.is_a_watch()
            }
        }
    }

    /// Whether it means whoever has an id.
    pub fn is_an_id(&self) -> bool {
        matches!(self, TaskPattern::Tid(_) | TaskPattern::Pid(_))
    }

    /// Whether it asks for a task's process, which not every trace says.
    pub fn asks_for_process(&self) -> bool {
        matches!(self, TaskPattern::Pid(_) | TaskPattern::Process(_))
    }
}

/// As it is typed.
impl std::fmt::Display for TaskPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TaskPattern::Name(name) => {
                let text = name.text();
                // A name that would be read as something else says that it is one.
                let is_read_so = matches!(
                    TaskPattern::parse(text),
                    Ok(TaskPattern::Name(read)) if read == *name
                );
                let prefix = if is_read_so { "" } else { "name:" };
                write!(f, "{prefix}{text}")
            }
            TaskPattern::Tid(tid) => write!(f, "{tid}"),
            TaskPattern::Pid(pid) => write!(f, "pid:{pid}"),
            TaskPattern::Process(name) => write!(f, "process:{}", name.text()),
            TaskPattern::Prio(first, last) => match (last.rt(), first.rt()) {
                (Some(low), Some(high)) if low == high => write!(f, "prio:{low}"),
                (Some(low), Some(high)) => write!(f, "prio:{low}-{high}"),
                _ => f.write_str("prio:dl"),
            },
            TaskPattern::RealTime => f.write_str("rt"),
        }
    }
}

/// `50`, `50-99` or `dl`; the more urgent first.
fn prio_range(text: &str) -> Option<(Prio, Prio)> {
    if text == "dl" {
        return Some((Prio(i32::MIN), Prio(-1)));
    }
    let number = |text: &str| text.parse().ok().filter(|rt| (1..=99).contains(rt));
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high): (u32, u32) = (number(low)?, number(high)?);
    (low <= high).then(|| (Prio::from_rt(high), Prio::from_rt(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_in_one_way_and_written_as_it_is_read() {
        let check = |text: &str, expect: Option<&str>| {
            let found = TaskPattern::parse(text).ok();
            let written = found.as_ref().map(TaskPattern::to_string);
            assert_eq!(written.as_deref(), expect, "{text}");
            if let Some(found) = found {
                assert_eq!(
                    TaskPattern::parse(&found.to_string()).ok(),
                    Some(found),
                    "{text}"
                );
            }
        };
        check("jackd", Some("jackd"));
        check("irq/*-eth?", Some("irq/*-eth?"));
        check("123", Some("123"));
        check("tid:123", Some("123"));
        check("0123", Some("123"));
        check("name:123", Some("name:123"));
        check("name:rt", Some("name:rt"));
        check("name:jackd", Some("jackd"));
        check("name:pid:7", Some("name:pid:7"));
        check("name:name:x", Some("name:name:x"));
        check("pid:7", Some("pid:7"));
        check(
            "process:Client management",
            Some("process:Client management"),
        );
        check("prio:50", Some("prio:50"));
        check("prio:50-99", Some("prio:50-99"));
        check("prio:dl", Some("prio:dl"));
        check("rt", Some("rt"));
        check("-1", Some("-1"));
        check("a:b", Some("a:b"));
        check("*", Some("*"));
        for wrong in [
            "",
            "0",
            "99999999999",
            "tid:x",
            "tid:-1",
            "pid:",
            "pid:0",
            "process:",
            "name:",
            "prio:0",
            "prio:100",
            "prio:9-5",
            "prio:",
            "prio:5-",
            "*abcdefghijklmnop",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn a_task_is_meant_by_what_is_known_of_it() {
        let check = |pattern: &str, task: NamedTask<'_>, expect: bool| {
            let pattern = TaskPattern::parse(pattern).expect("a pattern");
            assert_eq!(pattern.matches(&task), expect, "{pattern} {task:?}");
        };
        let client = NamedTask {
            tid: Tid(7),
            comm: b"Client",
            prio: Some(Prio::from_rt(50)),
            pid: Some(Tid(5)),
            leader: Some(b"jackd"),
            program: Some(b"jackd-1.9-with-all"),
            is_program: false,
        };
        for meant in [
            "Client",
            "7",
            "pid:5",
            "process:jack*",
            "process:jackd-1*",
            "process:jackd-1.9-with-all",
            "prio:50",
            "prio:1-99",
            "rt",
            "*",
        ] {
            check(meant, client, true);
        }
        for other in [
            "jackd",
            "5",
            "pid:7",
            "process:Client",
            "process:jackd-1.9-with-none",
            "jackd-1*",
            "prio:49",
            "prio:dl",
            "name:7",
        ] {
            check(other, client, false);
        }
        let alone = NamedTask::alone(Tid(7), b"jackd", Prio::from_lttng(20));
        for meant in ["pid:7", "process:jackd", "jackd"] {
            check(meant, alone, true);
        }
        check("rt", alone, false);
        check("prio:1-99", alone, false);
        let handler = NamedTask::alone(Tid(8), b"irq/24-snd", Prio::from_rt(50));
        check("rt", handler, false);
        check("prio:50", handler, true);
        check("prio:dl", NamedTask::alone(Tid(9), b"edf", Prio(-1)), true);
        let mut program = handler;
        program.is_program = true;
        check("rt", program, true);
        program = handler;
        program.pid = Some(Tid(5));
        check("rt", program, true);
        let idle = NamedTask::alone(Tid(0), b"swapper/0", Prio::from_lttng(20));
        check("*", idle, false);
    }
}
