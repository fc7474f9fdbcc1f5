//! CPUs of which a trace has no stream, though events of other CPUs name them.

use trace::{EventView, Trace};

use super::{CPUS_MAX, Kernel, Sink};
use crate::bind::{Binding, Known};

/// Those that were found. A gap between CPUs that have streams the trace itself tells as a loss;
/// whether there is one behind the last, only its events show.
#[derive(Clone, Debug)]
pub struct Unrecorded {
    /// From this number on a CPU has no stream.
    end: u32,
    found: Vec<u32>,
}

impl Unrecorded {
    /// None are found yet.
    pub fn new(trace: &Trace) -> Unrecorded {
        let last = trace.info().cpus.iter().rev();
        let last = last.map(|cpu| cpu.0).find(|cpu| *cpu < CPUS_MAX);
        let end = last.map_or(u32::MAX, |last| last + 1);
        Unrecorded {
            end: match trace.info().has_a_stream_of_every_cpu() {
                true => end,
                false => u32::MAX,
            },
            found: Vec::new(),
        }
    }

    /// An event names a CPU: whether its stream is missing, and that is news.
    #[inline]
    pub fn is_news(&mut self, cpu: u32) -> bool {
        self.end <= cpu && self.add(cpu)
    }

    #[cold]
    fn add(&mut self, cpu: u32) -> bool {
        // A number that no CPU can have was damaged.
        let is_new = cpu < CPUS_MAX && !self.found.contains(&cpu);
        if is_new {
            self.found.push(cpu);
        }
        is_new
    }

    /// Takes in which CPUs any event names.
    pub fn look(&mut self, binding: &Binding, event: &EventView<'_>) {
        if self.end == u32::MAX {
            return;
        }
        if let Some(Known::Sched(sched)) = binding.get(event.class()).map(|bound| bound.known) {
            for cpu in sched.cpus_named(event) {
                self.is_news(cpu);
            }
        }
    }

    /// All that were found.
    pub fn found(&self) -> &[u32] {
        &self.found
    }
}

impl Kernel {
    /// CPUs of which events were found to be missing for all the time.
    pub fn unrecorded(&self) -> &[u32] {
        self.unrecorded.found()
    }

    /// An event names a CPU that tasks are on, or come to. Where that has no stream, all that
    /// happened there is lost.
    #[inline]
    pub(super) fn names_cpu<S: Sink>(&mut self, cpu: u32, sink: &mut S) {
        if self.unrecorded.is_news(cpu) {
            self.lost(Some(cpu), self.now_ns, i64::MAX, sink);
        }
    }
}
