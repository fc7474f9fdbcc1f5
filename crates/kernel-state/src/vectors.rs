//! Which events begin and end interrupts that have no number, and what they are called.

use std::collections::BTreeMap;

use event::EventClass;
use event::vectors::{UNKNOWN_INTERRUPT, UNLISTED_FIRST, VECTORS};

pub use event::vectors::{softirq_name, vector_name};

/// The name of an interrupt of which only the wake-up that it did is known.
const UNKNOWN: &str = "unknown";

/// What an event class says of an interrupt without a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Entry,
    Exit,
}

/// What is known of a class by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    /// Without what tracers put before it, and without `_entry` and `_exit`.
    pub middle: &'a str,
    pub edge: Edge,
    /// The tracer itself says that it is a vector's event.
    pub is_vector: bool,
}

/// What lttng-modules puts before the events of x86's vectors; ftrace names the group so.
const PREFIXES: [&str; 2] = ["x86_irq_vectors_", "irq_vectors:"];

/// Pairs that happen inside interrupts, and are none. Every other pair of the kernel's happens in
/// tasks or in softirqs, or has a meaning of its own before this table is asked.
const INSIDE: &[&str] = &[
    "csd_function",
    "funcgraph",
    "tasklet",
    "timer_expire",
    "kvm",
];
/// The same, by how they begin: packets are taken in wherever the driver does it.
const INSIDE_PREFIXES: &[&str] = &["netif_", "napi_", "net_"];

/// A class whose name has an edge.
pub(crate) fn named(name: &str) -> Option<Named<'_>> {
    let mut prefixes = PREFIXES.iter();
    let bare = prefixes.find_map(|prefix| name.strip_prefix(prefix));
    let rest = bare.unwrap_or(name);
    let entry = rest
        .strip_suffix("_entry")
        .map(|middle| (middle, Edge::Entry));
    let exit = || {
        rest.strip_suffix("_exit")
            .map(|middle| (middle, Edge::Exit))
    };
    let (middle, edge) = entry.or_else(exit)?;
    Some(Named {
        middle,
        edge,
        is_vector: bare.is_some(),
    })
}

/// The number of a vector that the table has.
pub(crate) fn listed(middle: &str) -> Option<i32> {
    let mut vectors = VECTORS.iter();
    vectors.find_map(|vector| (vector.event == middle).then_some(vector.number))
}

/// Whether a pair of events of this name can be an interrupt that the table does not have.
fn may_be_unlisted(named: &Named<'_>) -> bool {
    let is_inside = |prefix: &str| named.middle.starts_with(prefix);
    let is_known = INSIDE.contains(&named.middle) || INSIDE_PREFIXES.iter().any(|p| is_inside(p));
    !named.middle.is_empty() && (named.is_vector || !is_known)
}

/// The interrupts of a trace that [`VECTORS`] does not have, by the name of their pair of events.
#[derive(Clone, Debug, Default)]
pub struct Unlisted {
    numbers: BTreeMap<String, i32>,
}

impl Unlisted {
    /// Those of which both events are declared.
    pub(crate) fn new<'a>(classes: impl Iterator<Item = &'a EventClass>) -> Unlisted {
        let mut edges: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
        for class in classes {
            let Some(named) = named(class.kernel_name()) else {
                continue;
            };
            if listed(named.middle).is_some() || !may_be_unlisted(&named) {
                continue;
            }
            let (entry, exit) = edges.entry(named.middle).or_default();
            *entry |= named.edge == Edge::Entry;
            *exit |= named.edge == Edge::Exit;
        }
        let pairs = edges
            .into_iter()
            .filter(|(_, edges)| *edges == (true, true));
        let numbers = (0..).map(|place| UNLISTED_FIRST - place);
        Unlisted {
            numbers: pairs
                .map(|(name, _)| name.to_owned())
                .zip(numbers)
                .collect(),
        }
    }

    pub(crate) fn number(&self, middle: &str) -> Option<i32> {
        self.numbers.get(middle).copied()
    }

    /// The name of an interrupt that has no number of its own, also when a table has it.
    pub fn name(&self, number: i32) -> Option<&str> {
        let unlisted = || {
            let mut numbers = self.numbers.iter();
            numbers.find_map(|(name, own)| (*own == number).then_some(name.as_str()))
        };
        let unknown = (number == UNKNOWN_INTERRUPT).then_some(UNKNOWN);
        vector_name(number).or(unknown).or_else(unlisted)
    }
}

/// The number under which events of a class are an interrupt's, and which edge they are; `unsure`
/// when only their context tells.
pub(crate) fn vector_of(class: &EventClass, unlisted: &Unlisted) -> Option<(i32, Edge, bool)> {
    let named = named(class.kernel_name())?;
    if let Some(number) = listed(named.middle) {
        return Some((number, named.edge, false));
    }
    let number = unlisted.number(named.middle)?;
    Some((number, named.edge, !named.is_vector))
}
