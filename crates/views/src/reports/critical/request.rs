//! What the time of one request went to: the critical path back from the thread that ended it, to
//! where it began, with who had the CPU while a thread of it waited for one, and what interrupted
//! it.

use event::evidence::TaskRef;
use event::{Duration, Prio, Result, Tid, TimeRange};
use trace::{Item, Lost, Trace};

use super::limits::{NODES_MAX, STEPS_MAX};
use super::path::{Follower, Step, What};
use super::recorder::{Begin, Recorder, record_again};
use super::terms::term;
pub use super::terms::{Did, Explained, LateBy, Part, Term};
use crate::reports::ordered::Ordered;
use kernel_state::{Change, CpuWhat, Follow, Holder, Kernel, ProcId, Shared, Sink, Waker};

/// The softirq of disks.
const BLOCK_SOFTIRQ: i64 = 4;
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
    walk.kernel.finish(end_ns, &mut Shared(&mut walk.seen));
    let Some(who) = walk.kernel.find(request.ended_by.0) else {
        return Ok(not_seen(request));
    };
    let steps = tiled(
        walk.path(trace, who, (begin_ns, end_ns)),
        (begin_ns, end_ns),
        who,
    );
    Ok(Explained {
        parts: walk.parts(&steps, request.ended_by),
        is_lossy,
    })
}

/// A request of whose thread the trace has nothing.
fn not_seen(request: &Request) -> Explained {
    let part = Part {
        task: TaskRef {
            tid: request.ended_by,
            comm: String::new(),
            prio: Prio::from_lttng(NICE_0),
        },
        did: Did::Unknown,
        term: Term::Unexplained,
        total: request.range.end - request.range.begin,
        pieces: 1,
    };
    Explained {
        parts: vec![part],
        is_lossy: true,
    }
}

/// The steps without a gap and without an overlap, whatever the trace says: the latest first, each
/// nanosecond of the request once.
fn tiled(steps: Vec<Step>, (begin_ns, end_ns): (i64, i64), who: ProcId) -> Vec<Step> {
    let mut tiled: Vec<Step> = Vec::new();
    let mut until_ns = end_ns;
    let gap = |begin_ns, end_ns| Step {
        begin_ns,
        end_ns,
        who,
        what: What::Unknown,
    };
    for mut step in steps {
        step.end_ns = step.end_ns.min(until_ns);
        step.begin_ns = step.begin_ns.max(begin_ns);
        if step.end_ns < until_ns && step.end_ns > begin_ns {
            tiled.push(gap(step.end_ns, until_ns));
            until_ns = step.end_ns;
        }
        if step.begin_ns < step.end_ns {
            until_ns = step.begin_ns;
            tiled.push(step);
        }
    }
    if until_ns > begin_ns {
        tiled.push(gap(begin_ns, until_ns));
    }
    tiled
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
    /// Handlers that ran on somebody's time.
    handlers: Vec<Handler>,
    /// The names of those that have one.
    named: Vec<(u32, i64, i64, String)>,
}

/// A handler ran on a task's time.
struct Handler {
    who: ProcId,
    cpu: u32,
    soft: bool,
    from_ns: i64,
    until_ns: i64,
}

/// As [`Seen`], of what lies before the window.
struct Before;

impl Sink for Before {
    fn change(&mut self, _kernel: &Kernel, _change: &Change<'_>) {}
}

impl Sink for Seen {
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
                what: what @ (CpuWhat::Irq | CpuWhat::Softirq),
                holder: Holder::Task(who),
                from_ns,
                until_ns,
                ..
            } => self.handlers.push(Handler {
                who,
                cpu,
                soft: what == CpuWhat::Softirq,
                from_ns,
                until_ns,
            }),
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
            return self.kernel.event(event, now_ns, &mut Shared(&mut Before));
        }
        self.kernel
            .event(event, now_ns, &mut Shared(&mut self.seen));
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
        // Steps beyond those that are kept are a gap.
        follower.into_path().steps
    }

    fn parts(&self, steps: &[Step], ended_by: Tid) -> Vec<Part> {
        let mut sums: Ordered<(u32, Did, Term), (i64, u64)> = Ordered::default();
        let mut add = |who: ProcId, did: Did, ns: i64| {
            if ns > 0 {
                let term = term(&did, &self.task(who), ended_by, Duration::from_ns(ns));
                let sum = sums.entry((who.0, did, term)).or_default();
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
                    let did = Did::Blocked {
                        by: by.map_or_else(String::new, |by| self.kernel.waker_text(by)),
                        disk: matches!(by, Some(Waker::Softirq(BLOCK_SOFTIRQ))),
                    };
                    add(step.who, did, length_ns);
                }
                What::Unknown => add(step.who, Did::Unknown, length_ns),
            }
        }
        let part = |((who, did, term), (total_ns, pieces)): ((u32, Did, Term), (i64, u64))| Part {
            task: self.task(ProcId(who)),
            did,
            term,
            total: Duration::from_ns(total_ns),
            pieces,
        };
        let mut parts: Vec<Part> = sums.into_iter().map(part).collect();
        parts.sort_by_key(|part| -part.total.as_ns());
        parts
    }

    /// A run, without what interrupted it: of handlers that seem to overlap, each moment is the
    /// first one's.
    fn ran(&self, step: &Step, add: &mut impl FnMut(ProcId, Did, i64)) {
        let handlers = self.seen.handlers.iter();
        let inside = |handler: &&Handler| {
            handler.who == step.who
                && handler.from_ns < step.end_ns
                && handler.until_ns > step.begin_ns
        };
        let mut handlers: Vec<&Handler> = handlers.filter(inside).collect();
        handlers.sort_by_key(|handler| handler.from_ns);
        let (mut own_ns, mut told_ns) = (step.end_ns - step.begin_ns, step.begin_ns);
        for handler in handlers {
            let until_ns = handler.until_ns.min(step.end_ns);
            let ns = (until_ns - handler.from_ns.max(told_ns)).max(0);
            told_ns = told_ns.max(until_ns);
            own_ns -= ns;
            let did = Did::Interrupted {
                name: self.handler_name(handler),
                soft: handler.soft,
            };
            add(step.who, did, ns);
        }
        add(step.who, Did::Ran, own_ns);
    }

    fn handler_name(&self, handler: &Handler) -> String {
        let mut named = self.seen.named.iter();
        let name = named.find(|(cpu, begin_ns, end_ns, _)| {
            *cpu == handler.cpu && *begin_ns <= handler.from_ns && *end_ns >= handler.until_ns
        });
        name.map_or_else(String::new, |(.., name)| name.clone())
    }

    /// A wait, by who had the CPU meanwhile: what lay before the step is cut off.
    fn waited(&self, step: &Step, add: &mut impl FnMut(ProcId, Did, i64)) {
        let mut left_ns = step.end_ns - step.begin_ns;
        let mut waits = self.seen.waits.iter();
        let wait = waits.find(|wait| wait.who == step.who && wait.until_ns == step.end_ns);
        for (holder, ns) in wait.iter().flat_map(|wait| wait.behind.iter().rev()) {
            let ns = (*ns).clamp(0, left_ns);
            left_ns -= ns;
            let did = match holder {
                Holder::Idle => Did::Idle,
                holder => Did::Behind(holder.task().map(|task| self.task(task))),
            };
            add(step.who, did, ns);
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
                Did::Interrupted { .. } => "interrupted",
                Did::Behind(Some(task)) if task.comm == "hog" => "behind hog",
                Did::Behind(_) => "behind",
                Did::Idle => "idle",
                Did::Blocked { .. } => "blocked",
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
                (1, "idle", 50),
                (1, "interrupted", 30),
            ],
            "{found:#?}"
        );
        assert!(!found.is_lossy, "{found:?}");
        let last = found.parts.last().map(|part| &part.did);
        let Some(Did::Interrupted { name, .. }) = last else {
            panic!("{found:?}");
        };
        assert!(name.contains("disk"), "{name}");
    }

    #[test]
    fn a_request_has_the_ledgers_terms_and_who_made_it_late() {
        let found = explained(100, 1100, WORKER.tid);
        let terms = found.terms().into_iter();
        let terms: Vec<_> = terms
            .map(|(term, total)| (term.tag(), total.as_ns() / 1000))
            .collect();
        assert_eq!(
            terms,
            [
                ("run_queue_wait", 400),
                ("upstream", 300),
                ("own_run", 220),
                ("idle_exit", 50),
                ("hardirq", 30),
            ]
        );
        let Some((LateBy::Task(hog), total)) = found.late_by() else {
            panic!("{found:?}");
        };
        assert_eq!((hog.comm.as_str(), total.as_ns()), ("hog", 400_000));
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

    /// Numbers that a seed draws.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, sides: u64) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((self.0 >> 33) % sides) as usize
        }
    }

    const TASKS: [Task; 4] = [WORKER, LOGGER, HOG, Task::rt(4, "other", 10)];

    /// Switches, wake-ups and handlers at odd nanoseconds, in any order: sense is not asked for.
    fn drawn(seed: u64) -> (Trace, i64) {
        let mut dice = Dice(seed);
        let (mut trace, mut now_ns) = (SyntheticTrace::new().run(Task::IDLE), 0);
        let mut on = [Task::IDLE; 2];
        for _ in 0..200 {
            now_ns += 1 + dice.below(9_973) as i64;
            let cpu = dice.below(2);
            let task = TASKS[dice.below(4)];
            trace = trace.at_ns(now_ns).cpu(cpu as u32);
            let prev = on[cpu];
            trace = match dice.below(8) {
                0..3 if !on.contains(&task) => {
                    on[cpu] = task;
                    match dice.below(2) {
                        0 => trace.block(prev, task),
                        _ => trace.preempt(prev, task),
                    }
                }
                3 => {
                    on[cpu] = Task::IDLE;
                    trace.block(prev, Task::IDLE)
                }
                4 | 5 => trace.waking(task, dice.below(2) as u32),
                6 => match dice.below(2) {
                    0 => trace.irq(36, "disk"),
                    _ => trace.irq_end(36),
                },
                _ => match dice.below(3) {
                    0 => trace.softirq(4),
                    1 => trace.softirq_end(4),
                    _ => trace.timer_irq(),
                },
            };
        }
        (trace.build(), now_ns)
    }

    #[test]
    fn terms_and_parts_add_up_to_the_nanosecond_whatever_happened() {
        for seed in 0..60 {
            let (trace, end_ns) = drawn(seed);
            let mut dice = Dice(seed ^ 0xdead_beef);
            for _ in 0..6 {
                let begin_ns = dice.below(end_ns as u64) as i64 - 1000;
                let length_ns = 1 + dice.below((end_ns - begin_ns) as u64) as i64;
                let request = Request {
                    range: TimeRange {
                        begin: Instant::from_ns(begin_ns),
                        end: Instant::from_ns(begin_ns + length_ns),
                    },
                    ended_by: Tid(1 + dice.below(5) as i32),
                };
                let found = explain_request(&trace, &request).expect("read");
                let terms: Duration = found.terms().iter().map(|(_, total)| *total).sum();
                assert_eq!(
                    found.total().as_ns(),
                    length_ns,
                    "{seed} {request:?} {found:#?}"
                );
                assert_eq!(terms, found.total(), "{seed} {request:?}");
                let is_sane = |part: &Part| part.total > Duration::ZERO && part.pieces > 0;
                assert!(found.parts.iter().all(is_sane), "{seed} {request:?}");
            }
        }
    }

    #[test]
    fn of_who_never_left_the_cpu_all_is_its_own_and_what_is_not_there_is_unknown() {
        assert_eq!(told(&explained(1050, 1150, WORKER.tid)), [(1, "ran", 100)]);
        let before = explained(-500, 1100, WORKER.tid);
        assert!(before.is_lossy);
        // Of a thread that is not in the trace nothing is known, and that adds up, too.
        assert_eq!(told(&explained(0, 1100, 99)), [(99, "unknown", 1100)]);
    }
}
