//! Frequencies and idle states of CPUs over time.

use event::{ClassId, EventClass, FieldId};
use trace::{EventView, Trace};

use crate::index::Loss;
use crate::series::Series;

/// The kernel can be built for fewer; bounds what a hostile trace makes us keep.
const CPUS_MAX: u64 = 8192;
/// The state of `cpu_idle` that says that the CPU leaves its idle state (`PWR_EVENT_EXIT`).
const LEAVES: u64 = 0xffff_ffff;
/// The number of a CPU that is in no idle state.
const AWAKE: i64 = -1;

/// What an event class says.
#[derive(Clone, Copy, Debug)]
struct Class {
    is_frequency: bool,
    state: FieldId,
    cpu: FieldId,
}

/// What is known so far, by CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Power {
    by_class: Vec<Option<Class>>,
    /// In kHz.
    pub frequencies: Vec<Series>,
    /// By the number of the idle state; -1: in none.
    pub idle_states: Vec<Series>,
}

impl Power {
    pub fn new(trace: &Trace) -> Power {
        Power {
            by_class: trace.classes().iter().map(bind).collect(),
            ..Power::default()
        }
    }

    /// Whether events of a class say something.
    pub fn reads(&self, class: ClassId) -> bool {
        matches!(self.by_class.get(class.0 as usize), Some(Some(_)))
    }

    /// Takes in an event; most say nothing of this.
    #[inline]
    pub fn event(&mut self, event: &EventView<'_>, now_ns: i64) {
        if let Some(Some(class)) = self.by_class.get(event.class().0 as usize) {
            self.take_in(*class, event, now_ns);
        }
    }

    fn take_in(&mut self, class: Class, event: &EventView<'_>, now_ns: i64) {
        let (cpu, state) = (event.u64(class.cpu), event.u64(class.state));
        if cpu >= CPUS_MAX {
            return;
        }
        let (all, value) = match class.is_frequency {
            true => (&mut self.frequencies, state as i64),
            false if state == LEAVES => (&mut self.idle_states, AWAKE),
            false => (&mut self.idle_states, state as i64),
        };
        let cpu = cpu as usize;
        if all.len() <= cpu {
            all.resize_with(cpu + 1, Series::default);
        }
        all[cpu].push(now_ns, value);
    }

    /// Makes them ready for questions. A CPU may set the frequency of others; its idle state it
    /// tells itself.
    pub fn finish(&mut self, losses: &[Loss]) {
        for series in &mut self.frequencies {
            series.finish(losses.iter().map(|loss| loss.begin_ns));
        }
        for (cpu, series) in self.idle_states.iter_mut().enumerate() {
            let is_its = |loss: &&Loss| loss.cpu.is_none_or(|of| of as usize == cpu);
            series.finish(losses.iter().filter(is_its).map(|loss| loss.begin_ns));
        }
    }
}

fn bind(class: &EventClass) -> Option<Class> {
    let is_frequency = match class.kernel_name() {
        "power_cpu_frequency" | "cpu_frequency" => true,
        "power_cpu_idle" | "cpu_idle" => false,
        _ => return None,
    };
    Some(Class {
        is_frequency,
        state: class.field("state")?,
        cpu: class.field("cpu_id")?,
    })
}
