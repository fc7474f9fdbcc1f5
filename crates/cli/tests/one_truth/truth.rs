//! What is true: who had each CPU at each nanosecond, what each task did, each wake-up and its end.

use std::collections::{BTreeMap, BTreeSet};

use testkit::Task;

/// A handler that has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Handler {
    Irq(i32),
    Timer,
    Softirq(i32),
}

/// Who has a CPU: a task or, without one, idle; and the innermost handler that interrupted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnCpu {
    pub task: Option<Task>,
    /// So many threads had its number before.
    pub life: u32,
    pub handler: Option<Handler>,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It ended, or has not begun.
    Gone,
    Blocked,
    Waiting {
        cpu: u32,
    },
    Running {
        cpu: u32,
        interrupted: bool,
        in_call: bool,
    },
}

/// A wake-up of a task that waits for a CPU, and when it was switched in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrueWait {
    pub tid: i32,
    /// Its name when it was switched in.
    pub comm: &'static str,
    pub waking_ns: i64,
    pub wakeup_ns: i64,
    /// None when it never was.
    pub switch_ns: Option<i64>,
    /// It slept, or was on its way to; else it was preempted there, and has not left its run queue.
    pub slept: bool,
}

/// A stretch of time, to its end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub begin_ns: i64,
    pub end_ns: i64,
}

impl Window {
    /// Its length.
    pub fn ns(self) -> i64 {
        (self.end_ns - self.begin_ns).max(0)
    }

    /// What both share.
    pub fn cut(self, other: Window) -> Window {
        Window {
            begin_ns: self.begin_ns.max(other.begin_ns),
            end_ns: self.end_ns.min(other.end_ns),
        }
    }
}

/// Values, each from an instant on.
type Line<T> = Vec<(i64, T)>;

/// The whole truth.
#[derive(Clone, Debug)]
pub struct Truth {
    cpus: Vec<Line<OnCpu>>,
    tasks: BTreeMap<i32, Line<Doing>>,
    pub waits: Vec<TrueWait>,
    pub end_ns: i64,
}

fn push<T: PartialEq>(line: &mut Line<T>, at_ns: i64, value: T) {
    if line.last().is_none_or(|(_, last)| *last != value) {
        line.push((at_ns, value));
    }
}

/// The stretches of a line inside of the window.
fn stretches<T: Copy>(line: &Line<T>, window: Window) -> impl Iterator<Item = (Window, T)> {
    let ends = line.iter().skip(1).map(|(at_ns, _)| *at_ns);
    let ends = ends.chain([i64::MAX]);
    let all = line
        .iter()
        .zip(ends)
        .map(move |((begin_ns, value), end_ns)| {
            let stretch = Window {
                begin_ns: *begin_ns,
                end_ns,
            };
            (stretch.cut(window), *value)
        });
    all.filter(|(stretch, _)| stretch.ns() > 0)
}

impl Truth {
    pub fn new(cpus: usize) -> Truth {
        Truth {
            cpus: vec![Line::new(); cpus],
            tasks: BTreeMap::new(),
            waits: Vec::new(),
            end_ns: 0,
        }
    }

    /// From now on this is so on the CPU.
    pub fn on_cpu(&mut self, cpu: usize, now_ns: i64, on: OnCpu) {
        push(&mut self.cpus[cpu], now_ns, on);
    }

    /// From now on the task does this.
    pub fn doing(&mut self, tid: i32, now_ns: i64, doing: Doing) {
        push(self.tasks.entry(tid).or_default(), now_ns, doing);
    }

    /// How many CPUs there are.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// All tasks' ids.
    pub fn tids(&self) -> impl Iterator<Item = i32> {
        self.tasks.keys().copied()
    }

    /// All threads that had a CPU: the number, and how many had it before.
    pub fn threads(&self) -> BTreeSet<(i32, u32)> {
        let all = self.cpus.iter().flatten();
        let threads = all.filter_map(|(_, on)| Some((on.task?.tid, on.life)));
        threads.collect()
    }

    /// How long this held on a CPU.
    pub fn cpu_ns(&self, cpu: u32, window: Window, is: impl Fn(&OnCpu) -> bool) -> i64 {
        let line = self.cpus.get(cpu as usize).map(|line| {
            let such = stretches(line, window).filter(|(_, on)| is(on));
            such.map(|(stretch, _)| stretch.ns()).sum()
        });
        line.unwrap_or(0)
    }

    /// How long a task did this.
    pub fn task_ns(&self, tid: i32, window: Window, is: impl Fn(&Doing) -> bool) -> i64 {
        let line = self.tasks.get(&tid).map(|line| {
            let such = stretches(line, window).filter(|(_, doing)| is(doing));
            such.map(|(stretch, _)| stretch.ns()).sum()
        });
        line.unwrap_or(0)
    }

    /// How long the task waited for a CPU while this held on it.
    pub fn waited_ns(&self, tid: i32, window: Window, is: impl Fn(&OnCpu) -> bool) -> i64 {
        let Some(line) = self.tasks.get(&tid) else {
            return 0;
        };
        let waited = stretches(line, window).map(|(stretch, doing)| match doing {
            Doing::Waiting { cpu } => self.cpu_ns(cpu, stretch, &is),
            _ => 0,
        });
        waited.sum()
    }
}

impl TrueWait {
    /// From the first event that tells of the wake-up to the switch, when it has ended.
    pub fn span(&self, shows_waking: bool) -> Option<Window> {
        let begin_ns = match shows_waking {
            true => self.waking_ns,
            false => self.wakeup_ns,
        };
        let end_ns = self.switch_ns?;
        Some(Window { begin_ns, end_ns })
    }
}
