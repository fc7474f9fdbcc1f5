//! Places at which a trace does not say what happened.

use super::{Change, Kernel, Sink};

/// "1 place", "2 places".
pub fn places(count: u64) -> String {
    match count {
        1 => "1 place".to_owned(),
        count => format!("{count} places"),
    }
}

/// From when on a loss hides nothing any more. What happens at its end comes behind what was lost:
/// nothing begins and is over within one instant of a clock. Only where it begins at that very
/// instant, nobody knows which came first.
pub fn known_from_ns(from_ns: i64, until_ns: i64) -> i64 {
    match from_ns < until_ns {
        true => until_ns,
        false => until_ns.saturating_add(1),
    }
}

impl Kernel {
    /// Events were lost between two instants of the wall clock, on one CPU or nobody knows on
    /// which. Nothing that was under way when they were, or is until then, is known any more. A
    /// loss is best told at its begin.
    pub fn lost<S: Sink>(&mut self, cpu: Option<u32>, from_ns: i64, until_ns: i64, sink: &mut S) {
        let until_ns = until_ns.max(from_ns);
        if until_ns <= self.now_ns && from_ns < self.now_ns {
            self.goes_back(cpu, (from_ns, until_ns));
        }
        self.lose(cpu, (from_ns, until_ns), sink);
    }

    /// The event that comes is so much earlier than the last one on its CPU.
    #[cold]
    pub(super) fn steps_back<S: Sink>(&mut self, cpu: u32, last_ns: i64, sink: &mut S) {
        let back_ns = (self.now_ns, last_ns);
        self.goes_back(Some(cpu), back_ns);
        self.lose(Some(cpu), back_ns, sink);
    }

    fn lose<S: Sink>(&mut self, cpu: Option<u32>, (from_ns, until_ns): (i64, i64), sink: &mut S) {
        self.now_ns = self.now_ns.max(from_ns);
        self.known_from_ns = self.known_from_ns.max(known_from_ns(from_ns, until_ns));
        self.lost_from_ns = self.lost_from_ns.max(from_ns);
        let all = match cpu {
            Some(cpu) => cpu..cpu.saturating_add(1),
            None => 0..self.cpus.len() as u32,
        };
        for cpu in all {
            let Some(state) = self.cpus.get_mut(cpu as usize) else {
                continue;
            };
            state.losses += 1;
            state.note_open_handlers();
            state.handlers.clear();
            state.raised = Default::default();
            let (has_moved, current) = (state.run.moved, state.current);
            if let Some(task) = current {
                self.doubt_call(task);
            }
            if has_moved {
                self.settle_moved(cpu, Some((from_ns, until_ns)), sink);
            }
            self.lose_run(cpu, from_ns);
        }
        sink.change(
            self,
            &Change::Lost {
                cpu,
                from_ns,
                until_ns,
            },
        );
    }

    /// A clock went back to `from_ns`, or what was lost before the last event is found only now: of
    /// that time nothing more is known, nor of what began up to here.
    fn goes_back(&mut self, cpu: Option<u32>, (from_ns, until_ns): (i64, i64)) {
        self.known_from_ns = self.known_from_ns.max(until_ns.saturating_add(1));
        let join = |before: &mut (i64, i64)| {
            let touches = before.0 <= until_ns && from_ns <= before.1;
            *before = match touches {
                true => (before.0.min(from_ns), before.1.max(until_ns)),
                false => (from_ns, until_ns),
            };
        };
        match cpu {
            Some(cpu) => {
                let state = self.cpus.get_mut(cpu as usize);
                state
                    .into_iter()
                    .for_each(|state| join(&mut state.gone_back_ns));
            }
            None => {
                join(&mut self.gone_back_ns);
                let all = self.cpus.iter_mut();
                all.for_each(|state| join(&mut state.gone_back_ns));
            }
        }
    }

    /// Whether a task that waits for a CPU since then may have run meanwhile, as events were lost.
    /// Inside of a loss, what begins there is followed all the same.
    pub(super) fn has_lost_since(&self, since_ns: i64) -> bool {
        let is_over = self.now_ns >= self.known_from_ns;
        !self.is_known_since(since_ns) && (is_over || since_ns <= self.lost_from_ns)
    }

    /// Whether something that began at `since_ns` and is still open is known: no event was lost
    /// since, and it did not begin later than now.
    pub fn is_known_since(&self, since_ns: i64) -> bool {
        since_ns >= self.known_from_ns && since_ns <= self.now_ns
    }

    /// What began earlier and is still open is not known: events were lost since.
    pub fn known_from_ns(&self) -> i64 {
        self.known_from_ns
    }
}
