//! What an analysis finds: late activations, their ledgers, groups, the verdict.

use event::{Cpu, Duration, Instant, Prio, Tid, TimeRange};

use crate::lengths::Lengths;
use crate::query::Until;
use crate::term::{Sum, Term, TermKind, sums};
use event::evidence::{Hit, Stack, Step, StepKind, TaskRef};
use kernel_state::Inside;

/// What a number rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// All events of its time and CPUs are there.
    Complete,
    /// It was still open at an edge of the window, or begins before the window.
    Censored,
    /// Events were left out inside of it, for a tenth of it at most: as while the recorder stood
    /// still for a hit right before. A watch saw where it begins and ends.
    Paused,
    /// The switch that ends it was not recorded, or one on the CPU on which its task seems to wait
    /// still: it lasted for as long at least, or its task has run.
    Unrecorded,
    /// Events were lost inside it, or what a watch saw of it.
    Lossy,
}

impl Grade {
    /// Its name in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Grade::Complete => "complete",
            Grade::Censored => "censored",
            Grade::Paused => "paused",
            Grade::Unrecorded => "unrecorded",
            Grade::Lossy => "lossy",
        }
    }
}

/// A latency, split into named, exclusive terms that add up to it, to the nanosecond.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// The terms, the largest first.
    pub terms: Vec<Term>,
    /// What they add up to.
    pub total: Duration,
    /// What it rests on.
    pub grade: Grade,
}

/// The share of unexplained time that a good ledger may have.
const UNEXPLAINED_SHARE_MAX: f64 = 0.02;
/// The unexplained time that a good ledger may have, whatever its share.
const UNEXPLAINED_MAX: Duration = Duration::from_us(5);

impl Ledger {
    /// The time without a proven cause.
    pub fn unexplained(&self) -> Duration {
        self.terms
            .iter()
            .filter(|term| term.kind.is_unexplained())
            .map(|term| term.duration)
            .sum()
    }

    /// The terms with those of one name and priority added up, the longest first.
    pub fn sums(&self) -> Vec<Sum> {
        sums(&self.terms)
    }

    /// Whether the unexplained time is at most 2 % or 5 µs, whichever is more.
    pub fn is_good(&self) -> bool {
        !self.is_much(self.unexplained())
    }

    /// Whether `time` is more than a good ledger may leave unexplained.
    pub(crate) fn is_much(&self, time: Duration) -> bool {
        time > UNEXPLAINED_MAX && time.share_of(self.total) > UNEXPLAINED_SHARE_MAX
    }
}

/// A step of a hit beside the nearest event of the kernel trace that means the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepCheck {
    /// Index into the activation's steps.
    pub step: usize,
    /// The event's time minus the step's; none when the trace has no such event nearby.
    pub delta: Option<Duration>,
}

/// One activation that was late.
#[derive(Clone, Debug, PartialEq)]
pub struct LateActivation {
    /// The task.
    pub task: TaskRef,
    /// Where its latency begins.
    pub origin: Instant,
    /// Where its latency ends.
    pub end: Instant,
    /// The CPU on which it ended, or waits.
    pub cpu: Cpu,
    /// The steps of its chain, in time order; a hit's own when there is one.
    pub steps: Vec<Step>,
    /// Steps that are not in the list.
    pub steps_left_out: u32,
    /// The hit that the watch recorded for it, reproduced exactly.
    pub hit: Option<Hit>,
    /// The cross-check of a hit's steps with the kernel trace; empty without a hit.
    pub checks: Vec<StepCheck>,
    /// Where its time went.
    pub ledger: Ledger,
    /// Page faults of its task in it. What they took without a device is its own run: the kernel
    /// has no event for their end.
    pub page_faults: usize,
    /// What they took of that at most, as far as they needed no device.
    pub page_faults_max: Duration,
    /// Other CPUs that nearly all of that time idled or, for a real-time task, ran what it beats.
    pub free_meanwhile: Vec<Cpu>,
    /// What of it the hypervisor may have taken, at most, as far as the evidence tells.
    pub stolen_max: Duration,
    /// Its task slept for others right before, amid a cycle of its timer, while releases of that
    /// passed: it catches up with those, and was late before it was woken.
    pub slept_before: Option<TimeRange>,
    /// The longest stretch of its first cause in which the machine may have stood still, as other
    /// CPUs say, or none of a virtual machine contradicts where interrupts were off; else zero.
    pub unseen_max: Duration,
}

impl LateActivation {
    /// End minus origin.
    pub fn latency(&self) -> Duration {
        self.end - self.origin
    }

    /// The parts of a response; none where the work is not judged.
    pub fn parts(&self) -> Option<Parts> {
        let last = self.steps.last()?;
        let is_response = match last.kind {
            StepKind::Blocked | StepKind::UserReturn => true,
            // Still at work.
            StepKind::SwitchIn => last.time < self.end && self.hit.is_none(),
            _ => false,
        };
        let is_begin = |step: &&Step| step.kind == StepKind::SwitchIn && step.id == self.task.tid.0;
        let begin = self.steps.iter().rev().find(is_begin)?;
        let own_run = self.ledger.terms.iter();
        let own_run = own_run.filter(|term| term.kind == TermKind::OwnRun);
        let own_work: Duration = own_run.map(|term| term.duration).sum();
        let before = begin.time - self.origin;
        // It may have run before that: still at its last work when it was due, say.
        let all = own_work;
        let own_work = all.min(self.latency() - before);
        is_response.then_some(Parts {
            before,
            own_before: all - own_work,
            own_work,
            put_off: self.latency() - before - own_work,
        })
    }
}

/// A response from its origin to the end of the work, in three, which add up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Before the task was scheduled in for it.
    pub before: Duration,
    /// A part of that: it ran by then, for what it was at before.
    pub own_before: Duration,
    /// Its own work.
    pub own_work: Duration,
    /// After it ran first, while it could not go on: it waited for a CPU, a lock, a device.
    pub put_off: Duration,
}

/// A culprit: a term that matters, with its share.
#[derive(Clone, Debug, PartialEq)]
pub struct Culprit {
    /// Who and what; of several tasks, the one that ran for longest.
    pub kind: TermKind,
    /// How many tasks of that name and priority; 1 where the kind names none.
    pub tasks: usize,
    /// How long, all of them together.
    pub duration: Duration,
    /// The share of the latency, 0 to 1.
    pub share: f64,
    /// On which CPU.
    pub cpu: Cpu,
    /// When.
    pub range: TimeRange,
    /// Who was kept waiting for a CPU, where it is a task that the late one waits for.
    pub waiter: Option<TaskRef>,
    /// The priority with which it, or the late task itself, was there.
    pub waited_as: Option<Prio>,
}

/// A change that would remove a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The name of the rule; stable.
    pub rule: &'static str,
    /// Why it applies here.
    pub because: String,
    /// The command, or the change.
    pub command: String,
    /// How to see that it helped.
    pub then_check: String,
    /// Whether it would have been enough by itself; else each cause needs its own.
    pub alone: bool,
    /// Which cause it is against, by a number: what is against the same one is another way.
    pub cause: usize,
}

/// The answer for one late activation.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Who, what, how long and which share, in one sentence.
    pub sentence: String,
    /// The named causes, in the order of their share.
    pub culprits: Vec<Culprit>,
    /// Whether the evidence carries the sentence; else it only says why it does not.
    pub conclusive: bool,
    /// The time range of the trace to look at.
    pub range: TimeRange,
    /// Stacks that support it, each with what it is.
    pub stacks: Vec<(String, Stack)>,
    /// Mutexes of the program that the task waited for inside it, in order, each once.
    pub mutexes: Vec<WaitedMutex>,
    /// What speaks against other causes, where the verdict is conclusive: question and answer.
    pub excluded: Vec<(&'static str, String)>,
    /// What to change, the most effective first.
    pub advice: Vec<Advice>,
    /// Causes that matter, as the ledger calls them, against which nothing is known that helps.
    pub unadvised: Vec<String>,
}

/// A mutex of a program that a task waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitedMutex {
    /// Who waited.
    pub waiter: TaskRef,
    /// Since when.
    pub since: Instant,
    /// Where it lies in the waiter's memory.
    pub address: u64,
    /// The object that it is in, see [`Diagnosis::name_mutexes`].
    pub name: Option<String>,
}

impl Basis {
    /// Activations that may have been late, and of which nobody knows whether they were.
    pub fn may_be_late(&self) -> u64 {
        self.doubted + self.unwoken + self.unknown_wakers + self.stopped_asleep
    }

    /// Whether all that there was to judge is the start-up of tasks, and one of these worked for
    /// longer than what was asked for as late.
    pub fn is_of_start_ups(&self) -> bool {
        self.long_start_ups > 0 && self.start_ups >= self.activations
    }

    /// The same, with long work of tasks that never slept, and cycles of a timer that are over the
    /// threshold if a sleep in them was inside the work: no answer lists them, and nobody may say
    /// that they were in time.
    pub fn unknown(&self) -> u64 {
        let inside = self.inside.iter().map(|found| found.over);
        let renamed = self.renamed.as_ref().map_or(0, |found| found.activations);
        self.may_be_late() + self.unslept + inside.sum::<u64>() + renamed
    }
}

impl Diagnosis {
    /// Replaces the command that shows whether an advice helped by that of whoever knows what was
    /// asked for: `check` is given the activation that the advice is about.
    pub fn check_with(&mut self, mut check: impl FnMut(&LateActivation) -> String) {
        for group in &mut self.groups {
            let first = group.members.first();
            let Some(late) = first.and_then(|first| self.activations.get(*first)) else {
                continue;
            };
            for advice in &mut group.verdict.advice {
                advice.then_check = check(late);
            }
        }
    }

    /// Names the mutexes that tasks waited for by whoever can open programs' files: `name` is asked
    /// for the object at an address of a thread's process at an instant.
    pub fn name_mutexes(&mut self, mut name: impl FnMut(Tid, Instant, u64) -> Option<String>) {
        for mutex in self
            .groups
            .iter_mut()
            .flat_map(|group| &mut group.verdict.mutexes)
        {
            mutex.name = name(mutex.waiter.tid, mutex.since, mutex.address);
        }
    }
}

/// Late activations of one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The cause, without ids that change from run to run; by it the watch of one day and that of
    /// another, or of another kernel, find the same cause again. `docs/ledger.md` has its rules.
    pub signature: String,
    /// Indices into [`Diagnosis::activations`], the worst first; where no task was named, those of
    /// the kernel's own threads behind the others.
    pub members: Vec<usize>,
    /// The worst latency.
    pub worst: Duration,
    /// The verdict on the first member.
    pub verdict: Verdict,
}

/// Something that makes a result doubtful, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What is doubtful and why.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

/// How much the findings rest on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Basis {
    /// Events read.
    pub events: u64,
    /// Events lost, as far as they were counted.
    pub lost: u64,
    /// Places where events are missing.
    pub holes: u64,
    /// Those of them in which a late activation may lie as a whole: they are no shorter than what
    /// was asked for as late, or nobody knows what is missing.
    pub wide_holes: u64,
    /// Activations of the tasks asked for, at most, that begin or end in one of the others, and may
    /// have been late.
    pub cut_by_holes_max: u64,
    /// Stretches of bytes that could not be read.
    pub damaged: u64,
    /// Begin and end events that had no partner and were discarded.
    pub unpaired: u64,
    /// Switches out of idle that the kernel did not record, inferred from the wake-up before them.
    pub inferred: u64,
    /// Activations of the tasks asked for that may have been late: their task may have run unseen,
    /// and nobody knows how long they lasted.
    pub doubted: u64,
    /// Sleeps for locks of programs are told from the end of work.
    pub locks_known: bool,
    /// Hits in the evidence, before the query's filter.
    pub hits: u64,
    /// Activations of the tasks asked for, late or not.
    pub activations: u64,
    /// How long these were, over the time of the recording; of none where nobody asked for
    /// [lengths](crate::Query::lengths).
    pub lengths: Lengths,
    /// The tasks were named by who asked.
    pub tasks_named: bool,
    /// The same by thread, the most first.
    pub judged: Vec<(TaskRef, u64)>,
    /// What was asked for as late; none: only the order counts.
    pub threshold: Option<Duration>,
    /// Where those that were found in the events end; hits end where their watch ended them.
    pub until: Until,
    /// Activations of the tasks asked for that had begun before the trace; where they are judged to
    /// the end of the work.
    pub unjudged: u64,
    /// The same of those whose wake-up in the trace was not recorded: they may have been late.
    pub unwoken: u64,
    /// Activations that began with the making of their task, which are judged to the switch-in
    /// alone; with the waits for a CPU of those before their first sleep.
    pub start_ups: u64,
    /// Those of them whose work was late, had anybody been waiting for it.
    pub long_start_ups: u64,
    /// Those of them that did not end with a sleep, of tasks that were named: of such a task no
    /// work is judged, only waits.
    pub unslept: u64,
    /// Activations of the tasks asked for that are late only if the task on the CPU of their
    /// wake-up made it; the trace does not show what interrupted that task.
    pub unknown_wakers: u64,
    /// Activations of the tasks asked for that may be late: their task was stopped, perhaps in its
    /// sleep, and nobody knows when that was to end.
    pub stopped_asleep: u64,
    /// Late activations of tasks that were asked for by a name that they had before; none: there
    /// are none.
    pub renamed: Option<Renamed>,
    /// What the application said as it was recorded, if nothing was longer then than is usual: no
    /// activation is told, as none is proven to be the one that it meant.
    pub open_call: Option<String>,
    /// What cannot be told from the end of the work: the longest first.
    pub inside: Vec<SleepsInside>,
    /// Activations that are late, too, and shorter than all that were looked at.
    pub left_out: u64,
    /// First and last event; none in an empty trace.
    pub window: Option<TimeRange>,
    /// The part of it in which activations were looked for.
    pub judged_in: Option<TimeRange>,
}

/// Activations that are as late as was asked for, of tasks that were meant by the name that they
/// worked under before, and are called otherwise by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The task of the longest of them, as it is called then.
    pub task: TaskRef,
    /// So many.
    pub activations: u64,
    /// The longest of them.
    pub longest: Duration,
}

impl Renamed {
    /// With one more, of `task`.
    pub(crate) fn with(before: Option<Renamed>, task: TaskRef, length: Duration) -> Renamed {
        let count = before.as_ref().map_or(0, |before| before.activations);
        let longest = before.filter(|before| before.longest >= length);
        let (task, longest) = longest.map_or((task, length), |it| (it.task, it.longest));
        Renamed {
            task,
            activations: count + 1,
            longest,
        }
    }
}

impl std::fmt::Display for Renamed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (task, longest) = (&self.task, self.longest);
        match self.activations {
            1 => write!(f, "an activation of {longest} is not judged")?,
            all => write!(f, "{all} activations, up to {longest}, are not judged")?,
        }
        write!(f, ": {task} was called otherwise before")
    }
}

/// A task that its own timer wakes steadily slept in between for what others did: where such a
/// sleep is inside of its work, that took longer than any of its activations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SleepsInside {
    /// The task.
    pub task: TaskRef,
    /// Cycles in which it did.
    pub cycles: u64,
    /// How often it did.
    pub sleeps: u64,
    /// The longest of these cycles: from its timer to the end of the last work before the next.
    pub worst: TimeRange,
    /// How many of them are longer than what was asked for as late.
    pub over: u64,
}

impl SleepsInside {
    pub(crate) fn new(task: TaskRef, found: &Inside) -> SleepsInside {
        let (begin_ns, end_ns) = found.worst_ns;
        SleepsInside {
            task,
            cycles: found.cycles,
            sleeps: found.sleeps,
            worst: TimeRange {
                begin: Instant::from_ns(begin_ns),
                end: Instant::from_ns(end_ns),
            },
            over: found.over.first().copied().unwrap_or(0),
        }
    }
}

impl std::fmt::Display for SleepsInside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let times = |count: u64| match count {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        let SleepsInside { task, worst, .. } = self;
        write!(
            f,
            "{task} also slept {} between releases by its timer, for others or for a length of \
             time; if that is inside its work, the worst took {} from {}",
            times(self.sleeps),
            worst.duration(),
            worst.begin
        )?;
        match self.over {
            0 => Ok(()),
            1 => f.write_str(", and 1 was late"),
            over => write!(f, ", and {over} were late"),
        }
    }
}

/// The answer to a [`Query`](crate::Query).
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// The late activations, the worst first.
    pub activations: Vec<LateActivation>,
    /// By cause, the cause with the most late time first; where no task was named, the user's tasks
    /// first and the longest one first.
    pub groups: Vec<Group>,
    /// What makes the result doubtful.
    pub warnings: Vec<Warning>,
    /// What it rests on.
    pub basis: Basis,
}

impl Diagnosis {
    /// The verdict on the first cause; none when nothing was late.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.groups.first().map(|group| &group.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    #[test]
    fn a_ledger_is_good_up_to_two_percent_or_five_microseconds_unexplained() {
        let check = |unexplained_ns: i64, total_ns: i64, expect: bool| {
            let term = Term {
                kind: TermKind::Unexplained(Reason::LongIdle),
                duration: Duration::from_ns(unexplained_ns),
                pieces: 1,
                range: TimeRange::ALL,
                cpu: Cpu(0),
                waiter: None,
                waited_as: None,
            };
            let total = Duration::from_ns(total_ns);
            let ledger = Ledger {
                terms: vec![term],
                total,
                grade: Grade::Complete,
            };
            assert_eq!(ledger.is_good(), expect, "{unexplained_ns} of {total_ns}");
        };
        check(5_000, 6_000, true);
        check(5_001, 6_000, false);
        check(20_000, 1_000_000, true);
        check(20_001, 1_000_000, false);
        check(0, 0, true);
    }
}
