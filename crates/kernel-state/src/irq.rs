//! Interrupt and softirq handlers, CPU by CPU.

use trace::EventView;

use super::handlers::{Hard, Softirq};
use super::process::ProcId;
use super::run::{Belief, Holder};
use super::waker::CpuWhat;
use super::{Change, Kernel, Sink, WasSoftirq};
use crate::bind::Handler;

/// Vectors above are no softirqs: the kernel has ten.
const VECTORS_MAX: usize = 64;

/// The softirqs that were raised on one CPU, by their vector.
#[derive(Debug, Default)]
pub(super) struct Raised(Vec<Option<i64>>);

impl Raised {
    /// When one was raised that is not handled yet. A softirq is a level: raised again before its
    /// handler begins, it is raised once.
    fn vector(&mut self, vec: i64) -> Option<&mut Option<i64>> {
        let place = usize::try_from(vec).ok().filter(|vec| *vec < VECTORS_MAX)?;
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        Some(&mut self.0[place])
    }
}

impl Kernel {
    /// For who follows handlers by itself: a hard interrupt ends.
    pub fn note_interrupt(&mut self, cpu: u32, now_ns: i64) {
        if let Some(state) = self.cpus.get_mut(cpu as usize) {
            state.interrupted_ns = Some(now_ns);
        }
    }

    pub(super) fn interrupt<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        handler: Handler,
        sink: &mut S,
    ) {
        let Some(handler) = handler.of(event) else {
            return;
        };
        let now_ns = self.now_ns;
        let one_by_one = self.follows.stale_names;
        let Some(state) = self.cpu(cpu) else { return };
        match handler {
            Handler::IrqEntry { irq, name } => {
                let irq = event.i64(irq);
                match one_by_one {
                    true => state.handlers.enters_alone(Hard::Irq(irq), now_ns),
                    false => state.handlers.enters(Hard::Irq(irq), now_ns),
                }
                let name = name.map_or(&b""[..], |name| event.text(name));
                self.irq_actions.add(irq, name);
                sink.change(self, &Change::IrqEntry { irq, name });
            }
            Handler::IrqExit { irq } => {
                let irq = event.i64(irq);
                state.interrupted_ns = Some(now_ns);
                if let Some(begin_ns) = self.leaves(cpu, Hard::Irq(irq), sink) {
                    sink.change(self, &Change::IrqExit { cpu, irq, begin_ns });
                }
            }
            Handler::VectorEntry(vector) => state.handlers.enters(Hard::Vector(vector), now_ns),
            Handler::VectorExit(vector) => {
                state.interrupted_ns = Some(now_ns);
                self.leaves(cpu, Hard::Vector(vector), sink);
            }
            Handler::HrtimerExpireEntry { .. } => state.handlers.enters(Hard::Timer, now_ns),
            Handler::HrtimerExpireExit => {
                self.leaves(cpu, Hard::Timer, sink);
            }
            Handler::SoftirqRaise { vec, .. } => {
                if let Some(raised_ns) = state.raised.vector(event.i64(vec)) {
                    raised_ns.get_or_insert(now_ns);
                }
            }
            Handler::SoftirqEntry { vec } => {
                let vec = event.i64(vec);
                if let Some(raised_ns) = state.raised.vector(vec) {
                    let softirq = Softirq::new(cpu, vec, raised_ns.take(), now_ns);
                    match one_by_one {
                        true => state.handlers.enters_softirq_alone(softirq),
                        false => state.handlers.enters_softirq(softirq),
                    }
                }
            }
            Handler::SoftirqExit { vec } => self.softirq_ends(cpu, event.i64(vec), sink),
            _ => {}
        }
    }

    /// An interrupt's handler ends; when it began, if that was seen.
    fn leaves<S: Sink>(&mut self, cpu: u32, hard: Hard, sink: &mut S) -> Option<i64> {
        let (now_ns, work) = (self.now_ns, self.work_on(cpu));
        let (stretches, one_by_one) = (self.follows.stretches, self.follows.stale_names);
        let state = self.cpu(cpu)?;
        let Some(begin_ns) = state.handlers.leaves(hard, now_ns) else {
            if one_by_one {
                state.handlers.leave_all();
            }
            if hard != Hard::Timer {
                self.unseen_handler(cpu, sink);
            }
            return None;
        };
        if stretches && state.handlers.interrupts(hard) {
            state.run.handles(CpuWhat::Irq, begin_ns);
            state.run.stretches.push((now_ns, work));
        }
        Some(begin_ns)
    }

    fn softirq_ends<S: Sink>(&mut self, cpu: u32, vec: i64, sink: &mut S) {
        let (now_ns, work) = (self.now_ns, self.work_on(cpu));
        let stretches = self.follows.stretches;
        let Some(state) = self.cpu(cpu) else { return };
        let Some(softirq) = state.handlers.leaves_softirq(vec) else {
            return self.unseen_handler(cpu, sink);
        };
        if stretches {
            state.run.handles(CpuWhat::Softirq, softirq.since_ns);
            state.run.stretches.push((now_ns, work));
            self.tell_earlier(cpu, &softirq, sink);
        }
        let mut ran = std::mem::take(&mut self.softirq_ran);
        softirq.ran(now_ns, &mut ran);
        let change = Change::SoftirqExit {
            cpu,
            vec,
            raised_ns: softirq.raised_ns,
            begin_ns: softirq.begin_ns,
            ran: &ran,
        };
        sink.change(self, &change);
        self.softirq_ran = ran;
    }

    /// What a CPU did before the thread of a softirq was preempted in it was that softirq.
    fn tell_earlier<S: Sink>(&mut self, cpu: u32, softirq: &Softirq, sink: &mut S) {
        let Some(process) = self.current(cpu) else {
            return;
        };
        let work = softirq.earlier.iter();
        let work = work.filter(|(.., what)| matches!(what, CpuWhat::Task | CpuWhat::Call));
        for &(from_ns, until_ns, what) in work {
            let was = WasSoftirq {
                cpu,
                process,
                what,
                from_ns,
                until_ns,
            };
            sink.change(self, &Change::WasSoftirq(was));
        }
    }

    /// A switch takes a CPU from `prev`. No interrupt's handler spans it; a softirq's goes on when
    /// its thread does.
    pub(super) fn hand_over(&mut self, cpu: u32, prev: ProcId) {
        if self.follows.stale_names {
            return;
        }
        let now_ns = self.now_ns;
        let stretches = self.follows.stretches;
        let Some(state) = self.cpus.get_mut(cpu as usize) else {
            return;
        };
        let Some(mut softirq) = state.handlers.hand_over() else {
            return;
        };
        let belief = state.run.belief;
        softirq.losses = state.losses;
        if self.processes.get(prev).tid == 0 {
            return;
        }
        match belief {
            Belief::Switched(Holder::Task(task)) if task == prev => {
                softirq.pauses(&state.run, prev, now_ns);
            }
            Belief::Switched(_) | Belief::Unseen => return,
            Belief::UntilFirstSwitch | Belief::Lost | Belief::Untracked => {
                if stretches {
                    state.run.handles(CpuWhat::Softirq, softirq.since_ns);
                }
                softirq
                    .earlier
                    .push((softirq.since_ns, now_ns, CpuWhat::Softirq));
            }
        }
        self.processes.get_mut(prev).softirq = Some(softirq);
    }

    /// `next` has a CPU now: the softirq goes on in which it was preempted. A thread is not moved
    /// in one: the end of that was not recorded.
    #[inline]
    pub(super) fn go_on(&mut self, cpu: u32, next: ProcId) {
        if let Some(mut softirq) = self.processes.get_mut(next).softirq.take()
            && softirq.cpu == cpu
            && self.cpus[cpu as usize].losses == softirq.losses
        {
            softirq.since_ns = self.now_ns;
            self.cpus[cpu as usize].handlers.enters_softirq(softirq);
        }
    }
}
