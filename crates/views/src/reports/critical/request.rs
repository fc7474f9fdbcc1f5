//! What the time of one request went to: the critical path back from the thread that ended it, to
//! where it began, with who had the CPU while a thread of it waited for one, and what interrupted
//! it.

use event::evidence::TaskRef;
use event::{Duration, Prio, Result, Tid, TimeRange};
use trace::{Item, Lost, Trace};

use super::limits::{NODES_MAX, STEPS_MAX};
use super::path::{Follower, Step, What};
use super::recorder::{Begin, Recorder, record_again};
use crate::reports::ordered::Ordered;
use kernel_state::{Change, CpuWhat, Follow, Holder, Kernel, ProcId, Sink, Topic, Topics, Waker};

/// The priority of a thread of which none was seen, on LTTng's scale.
const NICE_0: i32 = 20;

/// A request to be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// From where it began to where it ended.
    pub range: TimeRange,
    /// The thread in which it ended.
    pub ended_by: Tid,
}

/// What a thread of a request did.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Did {
    /// It ran.
    Ran,
    /// A handler of this name ran on its time; empty when none is known.
    Interrupted(String),
    /// It waited for a CPU that this task had; none when nobody knows which.
    Behind(Option<TaskRef>),
    /// It was blocked until this woke it, none of the threads.
    Blocked(String),
    /// The trace does not say.
    Unknown,
}

/// Something that took time of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The thread.
    pub task: TaskRef,
    /// What it did.
    pub did: Did,
    /// For how long in all.
    pub total: Duration,
    /// In so many pieces.
    pub pieces: u64,
}

/// Where the time of a request went. The parts add up to its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// The largest first.
    pub parts: Vec<Part>,
    /// Events were lost meanwhile, or the trace begins later: parts may be wrong.
    pub is_lossy: bool,
}

/// Explains a request from the events of `trace`.
///
/// # Errors
/// When the trace cannot be read.
pub fn explain_request(trace: &Trace, request: &Request) -> Result<Explained> {
    let (begin_ns, end_ns) = (
        trace.wall_ns(request.range.begin),
        trace.wall_ns(request.range.end),
    );
    let mut walk = Walk::new(trace, begin_ns);
    let offset_ns = trace.info().wall_offset.as_ns();
    let (mut begins_later, mut has_losses) = (true, false);
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next()? {
        match item {
            Item::Event(event) => {
                let now_ns = event.time().as_ns().saturating_add(offset_ns);
                if now_ns > end_ns {
                    break;
                }
                begins_later &= now_ns > begin_ns;
                walk.event(&event, now_ns);
            }
            Item::Lost(lost) => has_losses |= touches(&lost, request.range),
            Item::Damage(_) => has_losses = true,
        }
    }
    let is_lossy = begins_later || has_losses;
    // What runs on then has not been told yet.
    walk.kernel.finish(end_ns, &mut walk.seen);
    let Some(who) = walk.kernel.find(request.ended_by.0) else {
        return Ok(Explained {
            is_lossy: true,
            ..Explained::default()
        });
    };
    let steps = walk.path(trace, who, (begin_ns, end_ns));
    Ok(Explained {
        parts: walk.parts(&steps),
        is_lossy,
    })
}

fn touches(lost: &Lost, range: TimeRange) -> bool {
    lost.hides_what_happened() && lost.range.begin < range.end && lost.range.end > range.begin
}

/// The kernel up to the end of the request.
struct Walk {
    kernel: Kernel,
    begin: Begin,
    seen: Seen,
}

/// Who waited for a CPU until when, and who had it meanwhile.
struct Wait {
    who: ProcId,
    until_ns: i64,
    behind: Vec<(Holder, i64)>,
}

/// What happened in the window.
struct Seen {
    recorder: Recorder,
    waits: Vec<Wait>,
    /// A handler ran on somebody's time: where, from when, until when.
    handlers: Vec<(ProcId, u32, i64, i64)>,
    /// The names of those that have one.
    named: Vec<(u32, i64, i64, String)>,
}

/// As [`Seen`], of what lies before the window.
struct Before;

const TOPICS: Topics = Topics::of(&[Topic::Runs, Topic::Waits, Topic::Stretches, Topic::Handlers]);

impl Sink for Before {
    const TOPICS: Topics = TOPICS;

    fn change(&mut self, _kernel: &Kernel, _change: &Change<'_>) {}
}

impl Sink for Seen {
    const TOPICS: Topics = TOPICS;

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        match *change {
            Change::Waited {
                process,
                until_ns,
                behind,
                ..
            } => self.waits.push(Wait {
                who: process,
                until_ns,
                behind: behind.to_vec(),
            }),
            Change::Stayed {
                cpu,
                what: CpuWhat::Irq | CpuWhat::Softirq,
                holder: Holder::Task(task),
                from_ns,
                until_ns,
                ..
            } => self.handlers.push((task, cpu, from_ns, until_ns)),
            Change::IrqExit { cpu, irq, begin_ns } => {
                let name = kernel.waker_text(Waker::Irq(irq));
                self.named.push((cpu, begin_ns, kernel.now_ns(), name));
            }
            Change::SoftirqExit {
                cpu, vec, begin_ns, ..
            } => {
                let name = kernel.waker_text(Waker::Softirq(vec));
                self.named.push((cpu, begin_ns, kernel.now_ns(), name));
            }
            _ if Recorder::TOPICS.has(change.topic()) => self.recorder.change(kernel, change),
            _ => {}
        }
    }
}

impl Walk {
    fn new(trace: &Trace, begin_ns: i64) -> Walk {
        let follow = Follow {
            stretches: true,
            queues: true,
            ..Follow::default()
        };
        let begin = Begin {
            ns: begin_ns,
            event: 0,
        };
        Walk {
            kernel: Kernel::new(trace, follow),
            begin,
            seen: Seen {
                recorder: Recorder::new(begin_ns, NODES_MAX),
                waits: Vec::new(),
                handlers: Vec::new(),
                named: Vec::new(),
            },
        }
    }

    fn event(&mut self, event: &trace::EventView<'_>, now_ns: i64) {
        if now_ns < self.begin.ns {
            self.begin.event += 1;
            return self.kernel.event(event, now_ns, &mut Before);
        }
        self.kernel.event(event, now_ns, &mut self.seen);
    }

    /// The way back from the request's end to its begin.
    fn path(&mut self, trace: &Trace, who: ProcId, (begin_ns, end_ns): (i64, i64)) -> Vec<Step> {
        let last = self.seen.recorder.last(who);
        if last.is_none() {
            // It ended the request, and never left its CPU.
            let what = What::Runs;
            return vec![Step {
                begin_ns,
                end_ns,
                who,
                what,
            }];
        }
        let mut follower = Follower::new(who, last, begin_ns, end_ns, STEPS_MAX);
        while let Err(needed) = follower.follow(&self.seen.recorder) {
            self.seen.recorder = Recorder::new(begin_ns, 0);
            match record_again(trace, self.begin, NODES_MAX, needed) {
                Some(recorder) => self.seen.recorder = recorder,
                None => follower.give_up(),
            }
        }
        let path = follower.into_path();
        let first_ns = path.steps.last().map_or(end_ns, |step| step.begin_ns);
        let mut steps = path.steps;
        if first_ns > begin_ns {
            // Steps beyond those that are kept.
            let what = What::Unknown;
            steps.push(Step {
                begin_ns,
                end_ns: first_ns,
                who,
                what,
            });
        }
        steps
    }

    fn parts(&self, steps: &[Step]) -> Vec<Part> {
        let mut sums: Ordered<(u32, Did), (i64, u64)> = Ordered::default();
        let mut add = |who: ProcId, did: Did, ns: i64| {
            if ns > 0 {
                let sum = sums.entry((who.0, did)).or_default();
                sum.0 += ns;
                sum.1 += 1;
            }
        };
        for step in steps {
            let length_ns = step.end_ns - step.begin_ns;
            match step.what {
                What::Runs => self.ran(step, &mut add),
                What::WaitsForCpu => self.waited(step, &mut add),
                What::Blocked(by) => {
                    let by = by.map_or_else(String::new, |by| self.kernel.waker_text(by));
                    add(step.who, Did::Blocked(by), length_ns);
                }
                What::Unknown => add(step.who, Did::Unknown, length_ns),
            }
        }
        let part = |((who, did), (total_ns, pieces)): ((u32, Did), (i64, u64))| Part {
            task: self.task(ProcId(who)),
            did,
            total: Duration::from_ns(total_ns),
            pieces,
        };
        let mut parts: Vec<Part> = sums.into_iter().map(part).collect();
        parts.sort_by_key(|part| -part.total.as_ns());
        parts
    }

    /// A run, without what interrupted it.
    fn ran(&self, step: &Step, add: &mut impl FnMut(ProcId, Did, i64)) {
        let mut own_ns = step.end_ns - step.begin_ns;
        for (who, cpu, from_ns, until_ns) in &self.seen.handlers {
            let ns = until_ns.min(&step.end_ns) - from_ns.max(&step.begin_ns);
            if *who == step.who && ns > 0 {
                own_ns -= ns;
                let mut named = self.seen.named.iter();
                let name = named.find(|(on, begin_ns, end_ns, _)| {
                    on == cpu && begin_ns <= from_ns && end_ns >= until_ns
                });
                let name = name.map_or_else(String::new, |(.., name)| name.clone());
                add(step.who, Did::Interrupted(name), ns);
            }
        }
        add(step.who, Did::Ran, own_ns);
    }

    /// A wait, by who had the CPU meanwhile: what lay before the step is cut off.
    fn waited(&self, step: &Step, add: &mut impl FnMut(ProcId, Did, i64)) {
        let mut left_ns = step.end_ns - step.begin_ns;
        let mut waits = self.seen.waits.iter();
        let wait = waits.find(|wait| wait.who == step.who && wait.until_ns == step.end_ns);
        for (holder, ns) in wait.iter().flat_map(|wait| wait.behind.iter().rev()) {
            let ns = (*ns).min(left_ns);
            left_ns -= ns;
            let task = holder.task().map(|task| self.task(task));
            add(step.who, Did::Behind(task), ns);
        }
        add(step.who, Did::Behind(None), left_ns);
    }

    fn task(&self, id: ProcId) -> TaskRef {
        let process = self.kernel.process(id);
        TaskRef {
            tid: Tid(process.tid),
            comm: process.comm.text(),
            prio: Prio::from_lttng(process.prio.unwrap_or(NICE_0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Instant;
    use testkit::{SyntheticTrace, Task};

    const WORKER: Task = Task::fair(1, "worker");
    const LOGGER: Task = Task::fair(2, "logger");
    const HOG: Task = Task::rt(3, "hog", 50);

    /// From 100 to 1100 µs a request: the worker runs, waits for the logger, which the hog puts
    /// off, is interrupted by a disk, and ends it.
    fn scene() -> SyntheticTrace {
        let trace = SyntheticTrace::new()
            .at(0)
            .timer_irq()
            .timer_irq_end()
            .run(WORKER)
            .cpu(1)
            .run(Task::IDLE);
        let trace = trace
            .cpu(0)
            .at(150)
            .waking(LOGGER, 1)
            .cpu(1)
            .at(160)
            .run(LOGGER);
        let trace = trace.cpu(0).at(200).block(WORKER, Task::IDLE);
        let trace = trace.cpu(1).at(300).waking(HOG, 1).preempt(LOGGER, HOG);
        let trace = trace.at(700).block(HOG, LOGGER);
        let trace = trace.at(900).waking(WORKER, 0).cpu(0).at(950).run(WORKER);
        let trace = trace.at(1000).irq(36, "disk").at(1030).irq_end(36);
        trace.at(1200).block(WORKER, Task::IDLE)
    }

    fn explained(begin_us: i64, end_us: i64, tid: i32) -> Explained {
        let at = |us: i64| Instant::from_ns(us * 1000);
        let range = TimeRange {
            begin: at(begin_us),
            end: at(end_us),
        };
        let request = Request {
            range,
            ended_by: Tid(tid),
        };
        explain_request(&scene().build(), &request).expect("read")
    }

    fn told(explained: &Explained) -> Vec<(i32, &'static str, i64)> {
        let parts = explained.parts.iter().map(|part| {
            let did = match &part.did {
                Did::Ran => "ran",
                Did::Interrupted(_) => "interrupted",
                Did::Behind(Some(task)) if task.comm == "hog" => "behind hog",
                Did::Behind(_) => "behind",
                Did::Blocked(_) => "blocked",
                Did::Unknown => "unknown",
            };
            (part.task.tid.0, did, part.total.as_ns() / 1000)
        });
        parts.collect()
    }

    #[test]
    fn a_request_is_followed_through_the_threads_that_it_waited_for() {
        let found = explained(100, 1100, WORKER.tid);
        assert_eq!(
            told(&found),
            [
                (2, "behind hog", 400),
                (2, "ran", 300),
                (1, "ran", 220),
                (1, "behind", 50),
                (1, "interrupted", 30),
            ],
            "{found:#?}"
        );
        assert!(!found.is_lossy, "{found:?}");
        let last = found.parts.last().map(|part| &part.did);
        let Some(Did::Interrupted(name)) = last else {
            panic!("{found:?}");
        };
        assert!(name.contains("disk"), "{name}");
    }

    #[test]
    fn the_parts_of_every_window_add_up_to_it() {
        for begin_us in [0, 100, 155, 250, 350, 800] {
            for end_us in [960, 1000, 1199] {
                let found = explained(begin_us, end_us, WORKER.tid);
                let sum: i64 = told(&found).iter().map(|(_, _, us)| us).sum();
                assert_eq!(sum, end_us - begin_us, "{begin_us} to {end_us}: {found:?}");
            }
        }
    }

    #[test]
    fn of_who_never_left_the_cpu_all_is_its_own_and_what_is_not_there_is_unknown() {
        assert_eq!(told(&explained(1050, 1150, WORKER.tid)), [(1, "ran", 100)]);
        let before = explained(-500, 1100, WORKER.tid);
        assert!(before.is_lossy);
        assert_eq!(explained(0, 1100, 99).parts, []);
    }
}
