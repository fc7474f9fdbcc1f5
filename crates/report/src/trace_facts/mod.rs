//! What a trace holds: its parts and streams, its events by class, what is missing.

mod json;
mod text;

use event::{ClassId, Cpu, Instant, Result, TimeRange};
use kernel_state::Unrecorded;
use kernel_state::bind::Binding;
use trace::{Damage, Disorder, Item, LossCause, Lost, PartInfo, Trace};

pub use json::trace_facts_json;
pub use text::trace_facts_text;

/// More damaged places are counted only.
const DAMAGES_MAX: usize = 16;
/// Events between two looks at how far the walk is.
const LOOK_EVENTS: u64 = 1 << 14;

/// What is known of a trace after one walk over it.
#[derive(Clone, Debug)]
pub struct TraceFacts {
    /// The CTF traces that it is made of.
    pub parts: Vec<PartInfo>,
    /// Wall clock (since 1970, UTC) minus trace clock, in nanoseconds.
    pub wall_offset_ns: i64,
    /// The CPUs that have a stream.
    pub cpus: Vec<Cpu>,
    /// Those that have none, though events name them.
    pub unrecorded: Vec<Cpu>,
    /// From the first event to the last; none without events.
    pub events_range: Option<(Instant, Instant)>,
    /// All events.
    pub events: u64,
    /// Events by class, the most frequent first; classes without events are left out.
    pub classes: Vec<ClassCount>,
    /// Classes that are declared.
    pub declared_classes: u64,
    /// What is missing.
    pub losses: Losses,
    /// The first places that could not be understood.
    pub damages: Vec<Damage>,
    /// All of them.
    pub damage_count: u64,
    /// Time that went backwards.
    pub disorder: Disorder,
}

/// How often a class occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// Its name.
    pub name: String,
    /// Its number in the trace.
    pub class: ClassId,
    /// Its events.
    pub events: u64,
}

/// Events that are known to be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Those that the tracer counted.
    pub discarded: u64,
    /// Places where it did.
    pub places: u64,
    /// Places where nobody knows how many.
    pub uncounted_places: u64,
}

impl Losses {
    fn add(&mut self, lost: &Lost) {
        match (lost.count, lost.cause) {
            (Some(count), LossCause::Discarded | LossCause::Unknown) => {
                self.discarded += count;
                self.places += 1;
            }
            _ => self.uncounted_places += 1,
        }
    }
}

impl TraceFacts {
    /// Walks over `range` of a trace, of all CPUs or of those in `cpus`. Now and then `look` is
    /// told where the walk has come to, and after how many events.
    ///
    /// # Errors
    /// What [`trace::Cursor::next`] says.
    pub fn gather(
        trace: &Trace,
        range: TimeRange,
        cpus: &[Cpu],
        mut look: impl FnMut(Instant, u64),
    ) -> Result<TraceFacts> {
        let wanted = |cpu: Option<Cpu>| cpus.is_empty() || cpu.is_some_and(|c| cpus.contains(&c));
        let mut counts = vec![0u64; trace.classes().len()];
        let mut events_range: Option<(Instant, Instant)> = None;
        let mut losses = Losses::default();
        let (mut damages, mut damage_count) = (Vec::new(), 0);
        let binding = Binding::new(trace);
        let mut unrecorded = Unrecorded::new(trace);
        let mut cursor = trace.cursor(range);
        let mut seen = 0u64;
        cursor.each(|item| {
            if let Item::Event(event) = item {
                seen += 1;
                if seen.is_multiple_of(LOOK_EVENTS) {
                    look(event.time(), seen);
                }
                unrecorded.look(&binding, event);
            }
            match item {
                Item::Event(event) if wanted(event.cpu()) => {
                    if let Some(count) = counts.get_mut(event.class().0 as usize) {
                        *count += 1;
                    }
                    if event.is_timed() {
                        let (first, last) =
                            events_range.get_or_insert((event.time(), event.time()));
                        *first = event.time().min(*first);
                        *last = event.time().max(*last);
                    }
                }
                Item::Lost(lost) if wanted(lost.cpu) => losses.add(lost),
                Item::Damage(damage) => {
                    damage_count += 1;
                    if damages.len() < DAMAGES_MAX {
                        damages.push(damage.clone());
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        let unrecorded: Vec<Cpu> = unrecorded.found().iter().copied().map(Cpu).collect();
        losses.uncounted_places +=
            unrecorded.iter().filter(|cpu| wanted(Some(**cpu))).count() as u64;
        Ok(TraceFacts {
            unrecorded,
            parts: trace.parts(),
            wall_offset_ns: trace.wall_ns(Instant::from_ns(0)),
            cpus: trace.info().cpus.clone(),
            events_range,
            events: counts.iter().sum(),
            classes: class_counts(trace, &counts),
            declared_classes: counts.len() as u64,
            losses,
            damages,
            damage_count,
            disorder: cursor.disorder(),
        })
    }
}

fn class_counts(trace: &Trace, counts: &[u64]) -> Vec<ClassCount> {
    let classes = trace.classes().iter().zip(counts);
    let mut classes: Vec<_> = classes
        .filter(|(_, events)| **events > 0)
        .map(|(class, events)| ClassCount {
            name: class.name.clone(),
            class: class.id,
            events: *events,
        })
        .collect();
    classes.sort_by(|a, b| b.events.cmp(&a.events).then(a.name.cmp(&b.name)));
    classes
}
