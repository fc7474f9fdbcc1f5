//! What is drawn, what happens because of it, and how the events of it look.

use std::fmt;

use proptest::prelude::*;
use testkit::{SyntheticTrace, Task};

use crate::machine::Machine;
use crate::truth::{Handler, Truth};

/// What may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Only time passes.
    Pass,
    Wake,
    Block,
    Preempt,
    /// A handler begins or ends, interrupts before the softirqs that they raised.
    Handler,
    Migrate,
    /// A system call begins or ends.
    Call,
    Prio,
    Rename,
    /// It runs another program.
    Exec,
    End,
    Fork,
    /// A task that has a CPU is moved to another one.
    Affinity,
    /// A CPU goes off, or on again.
    Hotplug,
}

/// What happens more often than else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Plain,
    /// Threads come and go.
    Lives,
    /// Tasks are moved from CPU to CPU, also those that have one.
    Moves,
    /// Priorities and names change.
    Changes,
}

/// One step: what, on which CPU, who, and how long after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    pub op: Op,
    pub cpu: u8,
    pub who: u8,
    pub after_ns: u32,
}

/// What happened, as the kernel would say it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Happening {
    Switch {
        prev: Task,
        prev_state: i64,
        next: Task,
        /// When the next task came on this CPU's run queue.
        arrived_ns: i64,
    },
    Waking {
        task: Task,
        target: u32,
    },
    Wakeup {
        task: Task,
        target: u32,
    },
    WakeupNew {
        task: Task,
        target: u32,
    },
    Migrate {
        task: Task,
        orig: u32,
        dest: u32,
    },
    HandlerBegin(Handler),
    HandlerEnd(Handler),
    SoftirqRaise(i32),
    Call(&'static str),
    CallEnd(&'static str),
    Boost {
        task: Task,
        prio: i32,
    },
    Rename {
        task: Task,
        name: &'static str,
    },
    Exec {
        task: Task,
        name: &'static str,
    },
    Exit(Task),
    Fork {
        parent: Task,
        child: Task,
    },
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    pub at_ns: i64,
    pub cpu: u32,
    /// The task that has the CPU, interrupted or not; of a switch, who leaves.
    pub tid: i32,
    pub what: Happening,
}

impl Record {
    /// The tasks that it speaks of, with their names, but idle.
    pub fn tasks(&self) -> Vec<Task> {
        let tasks = match self.what {
            Happening::Switch { prev, next, .. } => vec![prev, next],
            Happening::Waking { task, .. }
            | Happening::Wakeup { task, .. }
            | Happening::WakeupNew { task, .. }
            | Happening::Migrate { task, .. }
            | Happening::Boost { task, .. }
            | Happening::Exit(task) => vec![task],
            Happening::Rename { task, name } | Happening::Exec { task, name } => {
                vec![task, Task { comm: name, ..task }]
            }
            Happening::Fork { parent, child } => vec![parent, child],
            _ => Vec::new(),
        };
        tasks.into_iter().filter(|task| task.tid != 0).collect()
    }

    /// The names of these tasks.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tasks().into_iter().map(|task| task.comm)
    }

    /// The trace with this event behind all that it has.
    pub fn add_to(&self, trace: SyntheticTrace) -> SyntheticTrace {
        let trace = trace.at_ns(self.at_ns).cpu(self.cpu);
        match self.what {
            Happening::Switch {
                prev,
                prev_state,
                next,
                ..
            } => match prev_state {
                0 => trace.run(next),
                1 => trace.block(prev, next),
                2 => trace.block_uninterruptible(prev, next),
                0x20 => trace.end(prev, next),
                _ => trace.preempt(prev, next),
            },
            Happening::Waking { task, target } => trace.waking(task, target),
            Happening::Wakeup { task, target } => trace.wakeup(task, target),
            Happening::WakeupNew { task, target } => trace.wakeup_new(task, target),
            Happening::Migrate { task, orig, dest } => trace.migrate_from(task, orig, dest),
            Happening::HandlerBegin(Handler::Irq(irq)) => trace.irq(irq, "sound"),
            Happening::HandlerEnd(Handler::Irq(irq)) => trace.irq_end(irq),
            Happening::HandlerBegin(Handler::Timer) => trace.timer_irq(),
            Happening::HandlerEnd(Handler::Timer) => trace.timer_irq_end(),
            Happening::HandlerBegin(Handler::Softirq(vector)) => trace.softirq(vector),
            Happening::HandlerEnd(Handler::Softirq(vector)) => trace.softirq_end(vector),
            Happening::SoftirqRaise(vector) => trace.softirq_raise(vector),
            Happening::Call(name) => trace.call(name),
            Happening::CallEnd(name) => trace.call_end(name),
            Happening::Boost { task, prio } => trace.boost(task, prio),
            Happening::Rename { task, name } => trace.rename(task, name),
            Happening::Exec { task, name } => trace.exec(task, name),
            Happening::Exit(task) => trace.exit(task),
            Happening::Fork { parent, child } => trace.fork(parent, child),
        }
    }
}

fn who(task: Task) -> String {
    match task.tid {
        0 => "idle".to_owned(),
        tid => format!("{}-{tid} (prio {})", task.comm, task.prio),
    }
}

/// One line, as short as a person can read it.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.at_ns as f64 / 1e3;
        write!(f, "{us:>12.3} us  CPU {}  ", self.cpu)?;
        match self.what {
            Happening::Switch {
                prev,
                prev_state,
                next,
                ..
            } => write!(f, "switch {} [{prev_state:#x}] -> {}", who(prev), who(next)),
            Happening::Waking { task, target } => write!(f, "waking {} for {target}", who(task)),
            Happening::Wakeup { task, target } => write!(f, "wakeup {} on {target}", who(task)),
            Happening::WakeupNew { task, target } => write!(f, "new {} on {target}", who(task)),
            Happening::Migrate { task, orig, dest } => {
                write!(f, "migrate {} from {orig} to {dest}", who(task))
            }
            Happening::HandlerBegin(handler) => write!(f, "{handler:?} begins"),
            Happening::HandlerEnd(handler) => write!(f, "{handler:?} ends"),
            Happening::SoftirqRaise(vector) => write!(f, "raise softirq {vector}"),
            Happening::Call(name) => write!(f, "call {name}"),
            Happening::CallEnd(name) => write!(f, "return from {name}"),
            Happening::Boost { task, prio } => write!(f, "boost {} to {prio}", who(task)),
            Happening::Rename { task, name } => write!(f, "rename {} to {name}", who(task)),
            Happening::Exec { task, name } => write!(f, "{} runs {name}", who(task)),
            Happening::Exit(task) => write!(f, "exit {}", who(task)),
            Happening::Fork { parent, child } => {
                write!(f, "{} forks {}", who(parent), who(child))
            }
        }
    }
}

/// What is drawn for one machine.
#[derive(Clone, Debug)]
pub struct Story {
    pub cpus: usize,
    /// Every CPU has a task when it begins.
    pub busy: bool,
    /// The clock of the events goes on by so much at once.
    pub clock_step_ns: i64,
    /// One of the tasks has a deadline (SCHED_DEADLINE).
    pub deadline: bool,
    pub draws: Vec<Draw>,
}

impl Story {
    /// What happened, and the truth. At the end all goes to sleep.
    pub fn play(&self) -> (Vec<Record>, Truth) {
        let mut machine = Machine::new(self.cpus, self.busy, self.clock_step_ns);
        if self.deadline {
            machine.give_deadline();
        }
        for draw in &self.draws {
            machine.step(*draw);
        }
        machine.drain();
        machine.finish()
    }
}

fn op(mood: Mood) -> BoxedStrategy<Op> {
    let often = |is_it: bool, weight: u32| if is_it { 6 * weight } else { weight };
    let (lives, moves) = (mood == Mood::Lives, mood == Mood::Moves);
    let changes = mood == Mood::Changes;
    let any = prop_oneof![
        1 => Just(Op::Pass),
        10 => Just(Op::Wake),
        6 => Just(Op::Block),
        5 => Just(Op::Preempt),
        6 => Just(Op::Handler),
        often(moves, 2) => Just(Op::Migrate),
        3 => Just(Op::Call),
        often(changes, 1) => Just(Op::Prio),
        often(changes, 1) => Just(Op::Rename),
        often(lives, 1) => Just(Op::End),
        often(lives, 2) => Just(Op::Fork),
    ];
    match mood {
        Mood::Moves => {
            prop_oneof![8 => any, 1 => Just(Op::Affinity), 1 => Just(Op::Hotplug)].boxed()
        }
        Mood::Changes => prop_oneof![12 => any, 1 => Just(Op::Exec)].boxed(),
        Mood::Plain | Mood::Lives => any.boxed(),
    }
}

fn draw(mood: Mood) -> impl Strategy<Value = Draw> {
    let after_ns = prop_oneof![
        4 => 100u32..3_000,
        4 => 3_000u32..200_000,
        2 => 200_000u32..6_000_000,
    ];
    (op(mood), 0u8..4, any::<u8>(), after_ns).prop_map(|(op, cpu, who, after_ns)| Draw {
        op,
        cpu,
        who,
        after_ns,
    })
}

/// Any story of up to four CPUs.
pub fn stories() -> impl Strategy<Value = Story> {
    let draws = prop::collection::vec(draw(Mood::Plain), 5..90);
    (1usize..=4, any::<bool>(), draws).prop_map(|(cpus, busy, draws)| Story {
        cpus,
        busy,
        clock_step_ns: 1,
        deadline: false,
        draws,
    })
}

/// The same in which something happens more often than else, with clocks of all steps; or those in
/// which tasks that have a CPU are moved to another one.
pub fn moody_stories(with_moves: bool) -> impl Strategy<Value = Story> {
    let moods = match with_moves {
        true => vec![Mood::Moves],
        false => vec![Mood::Plain, Mood::Lives, Mood::Changes],
    };
    let draws =
        prop::sample::select(moods).prop_flat_map(|mood| prop::collection::vec(draw(mood), 5..90));
    let clock_step_ns = prop_oneof![4 => Just(1i64), 1 => Just(1_000), 1 => Just(20_000)];
    let drawn = (1usize..=4, any::<[bool; 2]>(), clock_step_ns, draws);
    drawn.prop_map(|(cpus, [busy, deadline], clock_step_ns, draws)| Story {
        cpus,
        busy,
        clock_step_ns,
        deadline,
        draws,
    })
}
