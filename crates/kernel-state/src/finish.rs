//! The trace ends, or a window of it: what is open then.

use super::run::{Belief, Holder, Part};
use super::stretches::stretches;
use super::waker::CpuWhat;
use super::{Kernel, Sink};

impl Kernel {
    /// The trace ends: what every CPU did until now is told. Who was the first to be scheduled in
    /// that hides where it stops to idle is on it; one of a higher priority would have preempted
    /// it, which is recorded.
    pub fn finish<S: Sink>(&mut self, end_ns: i64, sink: &mut S) {
        self.now_ns = self.now_ns.max(end_ns);
        self.tell_first_runs(sink);
        self.cpu(self.cpus_of_trace.saturating_sub(1));
        for cpu in 0..self.cpus.len() as u32 {
            self.tell_before_loss(cpu, sink);
            let state = &mut self.cpus[cpu as usize];
            let hides_idle = state.hides_idle();
            state.note_open_handlers();
            let run = std::mem::take(&mut state.run);
            let part = |holder| Part {
                holder,
                begin_ns: run.begin_ns,
                end_ns,
                inferred: false,
            };
            match run.belief {
                Belief::Unseen if cpu < self.cpus_of_trace || self.cpus[cpu as usize].seen => {
                    self.tell_unseen(cpu, end_ns, sink)
                }
                Belief::Unseen => {}
                Belief::UntilFirstSwitch | Belief::Lost | Belief::Untracked => {
                    self.tell(cpu, &run, part(Holder::Unknown), sink);
                    self.doubt_woken_on(cpu);
                }
                Belief::Switched(Holder::Idle) if hides_idle => {
                    let all = self.processes.iter().map(|(id, _)| id);
                    let came = all.filter_map(|id| Some((self.arrived_ns(cpu, id)?, id)));
                    match came.min_by_key(|(at_ns, _)| *at_ns) {
                        Some((_, id)) => {
                            let both = (Holder::Idle, Holder::Task(id), None);
                            self.contradicted(cpu, &run, both, end_ns, sink);
                        }
                        None => {
                            // Who was there and was moved may have run.
                            self.settle_moved(cpu, Some((run.sure_ns(), i64::MAX)), sink);
                            self.tell(cpu, &run, part(Holder::Idle), sink);
                        }
                    }
                }
                Belief::Switched(holder) if run.is_found => {
                    // Behind the last event that shows it, it may have left the CPU unseen.
                    let sure_ns = run.sure_ns().min(end_ns);
                    self.settle_moved(cpu, None, sink);
                    let shown = Part::known(holder, run.begin_ns, sure_ns);
                    self.tell(cpu, &run, shown, sink);
                    let rest = Part::known(Holder::Unknown, sure_ns, end_ns);
                    self.tell(cpu, &run, rest, sink);
                }
                Belief::Switched(holder) => {
                    self.settle_moved(cpu, None, sink);
                    self.tell(cpu, &run, part(holder), sink);
                    if holder == Holder::Idle {
                        // An idle CPU takes a task at once: it may have, unrecorded.
                        self.doubt_waits_on(cpu);
                    }
                }
            }
        }
        self.tell_rest(sink);
    }

    /// Who left each CPU first has had it since its first event, if the trace holds all switches;
    /// where one is seen to be missing, there may be one more.
    fn tell_first_runs<S: Sink>(&mut self, sink: &mut S) {
        for cpu in 0..self.cpus.len() as u32 {
            if let Some((run, part)) = self.cpus[cpu as usize].first_run.take() {
                let holder = match self.contradictions {
                    0 => part.holder,
                    _ => Holder::Unknown,
                };
                self.tell_claimed(cpu, &run, Part { holder, ..part }, sink);
            }
        }
    }

    /// Who has each CPU, and what it does, since when: as far as the trace says yet. A window that
    /// ends before the trace takes it for what it is so far.
    pub fn open_runs(&self) -> impl Iterator<Item = (u32, Holder, i64)> {
        let seen = self.cpus.iter().enumerate();
        let seen = seen.filter(|(_, state)| state.run.belief != Belief::Unseen);
        seen.map(|(cpu, state)| {
            let begin_ns = state.run.begin_ns.max(state.told_ns);
            (cpu as u32, state.believed(), begin_ns)
        })
    }

    /// The stretches of the runs that are open: CPU, what, who, from, until.
    pub fn open_stretches(
        &self,
        end_ns: i64,
        mut each: impl FnMut(u32, CpuWhat, Holder, i64, i64),
    ) {
        for (cpu, holder, begin_ns) in self.open_runs() {
            let state = &self.cpus[cpu as usize];
            let part = Part::known(holder, begin_ns, end_ns);
            let tell = |what, from_ns, until_ns| each(cpu, what, holder, from_ns, until_ns);
            if state.handlers.are_open() && holder != Holder::Unknown {
                let mut run = state.run.clone();
                run.note_open(&state.handlers);
                stretches(&run.stretches, part, tell);
            } else {
                stretches(&state.run.stretches, part, tell);
            }
        }
    }
}
