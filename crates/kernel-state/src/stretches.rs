//! What a CPU does in a run, stretch by stretch: idle, a task, a call of it, or handlers.

use super::handlers::Handlers;
use super::run::{Belief, Part, Run};
use super::waker::CpuWhat;
use super::{Kernel, Sink};

/// A run with more stretches than this is told before it is over, as what it is so far.
const STRETCHES_MAX: usize = 1 << 14;

impl Run {
    /// From `from_ns` on, or the run's begin, the CPU has handled this; what interrupted a softirq
    /// is not part of it.
    pub fn handles(&mut self, what: CpuWhat, from_ns: i64) {
        let from_ns = from_ns.max(self.begin_ns);
        if what == CpuWhat::Irq {
            while self.stretches.last().is_some_and(|(ns, _)| *ns >= from_ns) {
                self.stretches.pop();
            }
            self.stretches.push((from_ns, what));
            return;
        }
        let is_before = |(ns, _): &(i64, CpuWhat)| *ns < from_ns;
        let first = self.stretches.iter().rposition(is_before);
        let first = first.map_or(0, |before| before + 1);
        let inside = self.stretches[first..].iter_mut();
        inside
            .filter(|(_, inside)| *inside != CpuWhat::Irq)
            .for_each(|(_, inside)| *inside = what);
        if self
            .stretches
            .get(first)
            .is_none_or(|(ns, _)| *ns != from_ns)
        {
            self.stretches.insert(first, (from_ns, what));
        }
    }

    /// The same of what it handles now.
    pub fn note_open(&mut self, handlers: &Handlers) {
        if let Some(softirq) = handlers.softirq() {
            self.handles(CpuWhat::Softirq, softirq.since_ns);
        }
        if let Some(since_ns) = handlers.hard_since_ns() {
            self.handles(CpuWhat::Irq, since_ns);
        }
        if self.is_found {
            let sure_ns = self.sure_ns();
            self.stretches.push((sure_ns, CpuWhat::Unknown));
        }
    }
}

impl Kernel {
    /// What a CPU does outside of handlers.
    pub(super) fn work_on(&self, cpu: u32) -> CpuWhat {
        let Some(state) = self.cpus.get(cpu as usize) else {
            return CpuWhat::Unknown;
        };
        match state.run.task() {
            Some(id) if self.processes.get(id).known_call().is_some() => CpuWhat::Call,
            Some(_) => CpuWhat::Task,
            None if state.run.idles() => CpuWhat::Idle,
            None => CpuWhat::Unknown,
        }
    }

    /// Notes what a CPU does now. A handler is noted where it ends: that of one is not certain
    /// whose end was not recorded.
    pub(super) fn follow<S: Sink>(&mut self, cpu: u32, sink: &mut S) {
        let (now_ns, work) = (self.now_ns, self.work_on(cpu));
        let Some(state) = self.cpus.get_mut(cpu as usize) else {
            return;
        };
        let stretches = &mut state.run.stretches;
        if stretches.last().is_none_or(|(_, last)| *last != work) {
            stretches.push((now_ns, work));
        }
        if stretches.len() > STRETCHES_MAX {
            self.tell_early(cpu, work, sink);
        }
    }

    /// Tells a run that goes on as what it is so far, so that memory is bounded.
    fn tell_early<S: Sink>(&mut self, cpu: u32, what: CpuWhat, sink: &mut S) {
        let end_ns = self.now_ns;
        let state = &mut self.cpus[cpu as usize];
        let holder = state.believed();
        state.note_open_handlers();
        let mut run = std::mem::take(&mut state.run);
        let begin_ns = std::mem::replace(&mut run.begin_ns, end_ns);
        let part = Part::known(holder, begin_ns, end_ns);
        self.tell(cpu, &run, part, sink);
        run.stretches.clear();
        run.stretches.push((end_ns, what));
        self.cpus[cpu as usize].run = run;
    }
}

impl super::CpuState {
    /// What is handled now counts as what it seems so far, as nothing more is known; not where
    /// nobody knows who has the CPU, or had it as that handler began.
    pub(super) fn note_open_handlers(&mut self) {
        if self.handlers.are_open() && matches!(self.run.belief, Belief::Switched(_)) {
            self.run.note_open(&self.handlers);
        }
    }
}

/// What a CPU did in a part of a run. Handlers are certain: their own events say so.
pub(super) fn stretches(
    all: &[(i64, CpuWhat)],
    part: Part,
    mut each: impl FnMut(CpuWhat, i64, i64),
) {
    let mut told_ns = part.begin_ns;
    let mut emit = |what: CpuWhat, until_ns: i64| {
        let until_ns = until_ns.min(part.end_ns);
        if until_ns > told_ns {
            each(what, told_ns, until_ns);
            told_ns = until_ns;
        }
    };
    let mut now = part.holder.work(CpuWhat::Unknown);
    for &(since_ns, what) in all {
        emit(now, since_ns);
        now = match what {
            CpuWhat::Irq | CpuWhat::Softirq => what,
            seen => part.holder.work(seen),
        };
    }
    emit(now, part.end_ns);
}
