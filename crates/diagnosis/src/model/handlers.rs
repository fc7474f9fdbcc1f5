//! The pass over the events: interrupts, softirqs, timers, NMIs.

use trace::EventView;

use super::build::Builder;
use super::chain::{NewNode, NodeId};
use super::cpu::{Armed, HardFrame, LeftHandler, NESTING_MAX, VECTORS_MAX};
use super::tasks::{SoftFrame, VersionId};
use super::timeline::{Contended, Mark, Occupant, Segment, What};
use super::wake::By;
use crate::StepKind;
use event::vectors::{UNKNOWN_INTERRUPT, UNLISTED_FIRST};
use kernel_state::bind::{Handler, IRQ_THREAD_WAKE_NS_MAX, irq_of_thread};
use kernel_state::{Caller, Kernel};

/// A later expiry is not believed: the timer was started again where we did not see it.
pub(super) const LATENESS_MAX_NS: i64 = 10_000_000_000;
/// Steps of a handler's chain behind which an expiry may be put.
const REBASE_DEPTH_MAX: u8 = 8;
/// The flag of a wait that keeps the CPU (the kernel's `LCB_F_SPIN`).
const SPINS: u64 = 1;
/// So many waits for locks are looked through for the one that ends.
const CONTENDED_OPEN_MAX: usize = 1024;
/// An NMI handler that is said to take longer is not believed.
const NMI_MAX_NS: i64 = 1_000_000_000;

impl Builder {
    /// Who has a CPU, where no handler runs there.
    fn caller(&self, kernel: &Kernel, cpu: u32) -> Option<Caller> {
        let state = &self.cpus[cpu as usize];
        let task = state.current.filter(|_| state.frames.is_empty())?;
        let process = kernel.current(cpu).map(|id| kernel.process(id));
        Some(Caller {
            task: task.0,
            in_futex: process.is_some_and(|process| process.waits_in_futex()),
        })
    }

    pub(super) fn handler(
        &mut self,
        kernel: &Kernel,
        handler: Handler,
        cpu: u32,
        now_ns: i64,
        event: &EventView<'_>,
    ) {
        let Some(handler) = handler.of(event) else {
            return;
        };
        if handler.is_of_timer() {
            let caller = self.caller(kernel, cpu);
            self.cycles.timer(cpu, handler, event, caller);
        }
        match handler {
            Handler::IrqEntry { irq, name } => {
                let irq = event.i64(irq);
                if let Some(name) = name {
                    self.irq_actions.add(irq, event.text(name));
                }
                self.hard_entry(cpu, now_ns, irq as i32);
            }
            Handler::VectorEntry(number) => self.hard_entry(cpu, now_ns, number),
            Handler::IrqExit { irq } => self.hard_exit(cpu, now_ns, event.i64(irq) as i32),
            Handler::VectorExit(number) => self.hard_exit(cpu, now_ns, number),
            Handler::SoftirqRaise { vec, context } => {
                let within = context.map(|context| context.within(event));
                let by = By::of(kernel, cpu, within);
                self.raise(cpu, now_ns, event.u64(vec), by);
            }
            Handler::SoftirqEntry { vec } => self.soft_entry(cpu, now_ns, event.u64(vec)),
            Handler::SoftirqExit { vec } => self.soft_exit(cpu, now_ns, event.u64(vec)),
            Handler::HrtimerStart {
                hrtimer,
                expires,
                soft,
                ..
            } => {
                let expires_ns = event.i64(expires);
                let soft_ns = soft.map_or(expires_ns, |soft| event.i64(soft));
                self.arm(event.u64(hrtimer), soft_ns, expires_ns);
            }
            Handler::HrtimerCancel { hrtimer } => {
                self.timers.remove(&event.u64(hrtimer));
            }
            Handler::HrtimerExpireEntry { hrtimer, now, .. } => {
                self.timer_entry(cpu, now_ns, event.u64(hrtimer), event.i64(now));
            }
            Handler::HrtimerExpireExit => self.timer_exit(cpu, now_ns),
            Handler::Nmi { delta_ns } => self.nmi(cpu, now_ns, event.i64(delta_ns)),
            Handler::PageFault { address } => {
                self.page_fault(cpu, now_ns, address.map(|address| event.u64(address)));
            }
            Handler::ContentionBegin { flags } => {
                if event.u64(flags) & SPINS != 0 {
                    self.cpu(cpu).timeline.contended.push(Contended {
                        begin_ns: now_ns,
                        end_ns: i64::MAX,
                    });
                }
            }
            Handler::ContentionEnd => self.contention_ends(cpu, now_ns),
            Handler::Vector(_) => {}
        }
    }

    fn hard_entry(&mut self, cpu: u32, now_ns: i64, irq: i32) {
        if irq <= UNLISTED_FIRST && !self.cpu(cpu).frames.is_empty() {
            // A part of the interrupt that is known to have the CPU.
            return;
        }
        let kind = StepKind::Hardirq;
        let step = NewNode {
            time_ns: now_ns,
            kind,
            cpu,
            id: irq,
            version: VersionId::NONE,
        };
        let base = self.arena.add(NodeId::NONE, step);
        let state = self.cpu(cpu);
        if state.frames.len() >= NESTING_MAX {
            self.miss_exits(cpu, 0);
        }
        let state = self.cpu(cpu);
        state.left_handler = None;
        state.frames.push(HardFrame {
            irq,
            base,
            current: base,
        });
        self.mark(cpu, now_ns, false);
    }

    fn hard_exit(&mut self, cpu: u32, now_ns: i64, irq: i32) {
        let state = self.cpu(cpu);
        let Some(depth) = state.frames.iter().rposition(|frame| frame.irq == irq) else {
            if irq > UNLISTED_FIRST {
                self.basis.unpaired += 1;
                self.cpu(cpu).timeline.doubt_last();
                self.mark(cpu, now_ns, false);
            }
            return;
        };
        self.miss_exits(cpu, depth + 1);
        let state = self.cpu(cpu);
        state.left_handler = Some(LeftHandler {
            irq,
            chain: state.frames[depth].base,
            end_ns: now_ns,
        });
        state.frames.truncate(depth);
        self.mark(cpu, now_ns, false);
    }

    /// The exits of all interrupts but the first `kept` were not recorded.
    pub(super) fn miss_exits(&mut self, cpu: u32, kept: usize) {
        let frames = &mut self.cpu(cpu).frames;
        // Taken out they need room of their own.
        if frames.len() <= kept {
            return;
        }
        let missed = frames.split_off(kept);
        self.basis.unpaired += missed.len() as u64;
        for frame in missed {
            if let Some(begun) = self.arena.get(frame.base) {
                let begin_ns = begun.time_ns;
                self.cpu(cpu).timeline.doubt(frame.irq, begin_ns);
            }
        }
    }

    /// The chain of what wakes somebody on the CPU now. Where the tracer says that a hard interrupt
    /// does, and recorded no event of it, the chain begins here: the task on the CPU has no part.
    /// Nor has it where nothing tells whether it was interrupted.
    pub(super) fn context_of_waker(&mut self, cpu: u32, now_ns: i64, by: By) -> NodeId {
        let state = &self.cpus[cpu as usize];
        if by != By::Hard || !state.frames.is_empty() {
            let is_task = by == By::Task || self.is_handled(cpu);
            return match self.ends(cpu) || !is_task {
                true => NodeId::NONE,
                false => self.context(cpu),
            };
        }
        let step = NewNode {
            time_ns: now_ns,
            kind: StepKind::Hardirq,
            cpu,
            id: UNKNOWN_INTERRUPT,
            version: VersionId::NONE,
        };
        self.arena.add(NodeId::NONE, step)
    }

    /// The chain of the interrupt that wakes its own thread `wakee` here, and is over with it.
    pub(super) fn handler_of_thread(
        &mut self,
        cpu: u32,
        now_ns: i64,
        wakee: VersionId,
    ) -> Option<NodeId> {
        let state = &mut self.cpus[cpu as usize];
        let left = state.left_handler?;
        let comm = self.tasks.version(wakee)?.comm();
        if irq_of_thread(comm) != Some(left.irq) || now_ns - left.end_ns > IRQ_THREAD_WAKE_NS_MAX {
            return None;
        }
        state.left_handler = None;
        state.timeline.lengthen(left.irq, (left.end_ns, now_ns));
        Some(left.chain)
    }

    fn raise(&mut self, cpu: u32, now_ns: i64, vector: u64, by: By) {
        let Some(place) = vector_place(vector) else {
            return;
        };
        let (kind, id) = (StepKind::SoftirqRaise, vector as i32);
        self.cpu(cpu).timeline.marks.push(Mark {
            time_ns: now_ns,
            kind,
            id,
        });
        // While it is pending, the first origin stays.
        if !self.cpu(cpu).raised[place].is_none() {
            return;
        }
        let context = self.context_of_waker(cpu, now_ns, by);
        let parent = self.arena.fresh(context, now_ns);
        let step = NewNode {
            time_ns: now_ns,
            kind,
            cpu,
            id,
            version: VersionId::NONE,
        };
        let node = self.arena.add(parent, step);
        self.cpu(cpu).raised[place] = node;
    }

    fn soft_entry(&mut self, cpu: u32, now_ns: i64, vector: u64) {
        let Some(place) = vector_place(vector) else {
            return;
        };
        let raised = std::mem::replace(&mut self.cpu(cpu).raised[place], NodeId::NONE);
        let Some(task) = self.cpu(cpu).current else {
            return;
        };
        let (kind, id) = (StepKind::Softirq, vector as i32);
        let step = NewNode {
            time_ns: now_ns,
            kind,
            cpu,
            id,
            version: VersionId::NONE,
        };
        let base = self.arena.add(raised, step);
        let softirqs = &mut self.tasks.state(task).softirqs;
        let missed = softirqs.len() as u64;
        // Softirqs do not nest: an older frame's exit was missed.
        softirqs.clear();
        softirqs.push(SoftFrame {
            vector: vector as u32,
            base,
            current: base,
        });
        self.basis.unpaired += missed;
        self.mark(cpu, now_ns, false);
    }

    fn soft_exit(&mut self, cpu: u32, now_ns: i64, vector: u64) {
        let current = self.cpu(cpu).current;
        let softirqs = current.map(|task| &mut self.tasks.state(task).softirqs);
        let frame = softirqs.and_then(|softirqs| softirqs.pop());
        let paired = frame.is_some_and(|frame| u64::from(frame.vector) == vector);
        self.basis.unpaired += u64::from(!paired);
        if frame.is_some() {
            self.mark(cpu, now_ns, false);
        }
    }

    /// A timer is armed; much slack is its owner's doing, who is due before it.
    fn arm(&mut self, hrtimer: u64, soft_ns: i64, expires_ns: i64) {
        let slack_ns = expires_ns.saturating_sub(soft_ns);
        let armed = match slack_ns >= self.slack_floor_ns {
            true => Armed {
                due_ns: soft_ns,
                slack_ns,
            },
            false => Armed {
                due_ns: expires_ns,
                slack_ns: 0,
            },
        };
        self.timers.insert(hrtimer, armed);
    }

    /// A timer's callback begins: its expiry is the origin of what it wakes.
    fn timer_entry(&mut self, cpu: u32, now_ns: i64, hrtimer: u64, base_now_ns: i64) {
        if self.handler_base(cpu).is_none() {
            // Timers' functions were recorded, and not the interrupts in which they are called.
            self.hard_entry(cpu, now_ns, UNKNOWN_INTERRUPT);
        }
        let id = (hrtimer & 0x7fff_ffff) as i32;
        let kind = StepKind::Hrtimer;
        self.cpu(cpu).timeline.marks.push(Mark {
            time_ns: now_ns,
            kind,
            id,
        });
        let armed = self.timers.remove(&hrtimer);
        self.cpu(cpu).slack = None;
        let clock = self.other_clocks.reads(base_now_ns, now_ns);
        let (same_clock, ahead_ns) = (clock.ahead_ns.is_none(), clock.ahead_ns.unwrap_or(0));
        self.clock_sets.extend(clock.set.map(|by| (now_ns, by)));
        // By the trace's clock, as the timer's own is ahead of it now.
        let armed = armed.map(|armed| Armed {
            due_ns: armed.due_ns.saturating_sub(ahead_ns),
            ..armed
        });
        if let Some(armed) =
            armed.filter(|_| same_clock && !self.cpus[cpu as usize].frames.is_empty())
            && now_ns.saturating_sub(armed.due_ns) <= LATENESS_MAX_NS
        {
            self.serves_timer(cpu, armed.due_ns + armed.slack_ns, now_ns);
        }
        let Some(base) = self.handler_base(cpu) else {
            return;
        };
        let Some(first) = self.arena.get(base).copied() else {
            return;
        };
        let believed = |armed: &Armed| {
            // What calls it may have begun for others, before it was due.
            let lateness_ns = first.origin_ns.saturating_sub(armed.due_ns);
            armed.due_ns <= now_ns && lateness_ns <= LATENESS_MAX_NS
        };
        let mut chain = base;
        if let Some(armed) = armed.filter(believed)
            && first.depth <= REBASE_DEPTH_MAX
        {
            self.cpu(cpu).slack = (armed.slack_ns > 0).then_some(armed);
            let kind = StepKind::TimerExpiry;
            let origin = NewNode {
                time_ns: armed.due_ns,
                kind,
                cpu,
                id,
                version: VersionId::NONE,
            };
            chain = self.arena.rebase(base, origin);
        }
        let step = NewNode {
            time_ns: now_ns,
            kind,
            cpu,
            id,
            version: VersionId::NONE,
        };
        let node = self.arena.add(chain, step);
        self.set_handler_chain(cpu, node);
    }

    fn timer_exit(&mut self, cpu: u32, now_ns: i64) {
        self.cpu(cpu).slack = None;
        let frame = self.cpus[cpu as usize].frames.last();
        if frame.is_some_and(|frame| frame.irq == UNKNOWN_INTERRUPT) {
            self.hard_exit(cpu, now_ns, UNKNOWN_INTERRUPT);
            return;
        }
        if let Some(base) = self.handler_base(cpu) {
            self.set_handler_chain(cpu, base);
        }
    }

    /// The chain that the innermost handler on the CPU began with.
    fn handler_base(&self, cpu: u32) -> Option<NodeId> {
        let state = &self.cpus[cpu as usize];
        if let Some(frame) = state.frames.last() {
            return Some(frame.base);
        }
        let task = &self.tasks.states[state.current?.0 as usize];
        task.softirqs.last().map(|frame| frame.base)
    }

    fn set_handler_chain(&mut self, cpu: u32, chain: NodeId) {
        let state = &mut self.cpus[cpu as usize];
        if let Some(frame) = state.frames.last_mut() {
            frame.current = chain;
        } else if let Some(task) = state.current
            && let Some(frame) = self.tasks.state(task).softirqs.last_mut()
        {
            frame.current = chain;
        }
    }

    /// The wait that began last on the CPU ends first.
    fn contention_ends(&mut self, cpu: u32, now_ns: i64) {
        let waits = self.cpu(cpu).timeline.contended.iter_mut();
        let mut newest = waits.rev().take(CONTENDED_OPEN_MAX);
        if let Some(open) = newest.find(|lock| lock.end_ns == i64::MAX) {
            open.end_ns = now_ns;
        }
    }

    /// The event stands at the handler's end and says how long it took.
    fn nmi(&mut self, cpu: u32, now_ns: i64, delta_ns: i64) {
        if !(0..=NMI_MAX_NS).contains(&delta_ns) {
            self.basis.unpaired += 1;
            return;
        }
        let begin_ns = now_ns.saturating_sub(delta_ns);
        let timeline = &mut self.cpu(cpu).timeline;
        let task = timeline.at(begin_ns).task;
        timeline.push(Segment {
            begin_ns,
            occupant: Occupant::new(What::Nmi),
            task,
        });
        self.mark(cpu, now_ns, false);
    }
}

fn vector_place(vector: u64) -> Option<usize> {
    usize::try_from(vector)
        .ok()
        .filter(|place| *place < VECTORS_MAX)
}
