//! What handles each interrupt, as its events name it.

use std::collections::BTreeMap;

/// Beyond so many devices that share one interrupt, the names of the others are not kept.
const ACTIONS_MAX: usize = 16;

/// The names of what handles each interrupt. Devices may share one: then each event says whose
/// handler it is of (`request_irq` with `IRQF_SHARED`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Actions(BTreeMap<i64, Vec<String>>);

impl Actions {
    /// Takes in the name that an event says.
    pub fn add(&mut self, irq: i64, name: &[u8]) {
        if name.is_empty() || self.place(irq, name).is_some() {
            return;
        }
        let names = self.0.entry(irq).or_default();
        if names.len() < ACTIONS_MAX {
            names.push(event::plain_text(name));
        }
    }

    /// Where [`Actions::at`] finds the one of this name.
    pub fn place(&self, irq: i64, name: &[u8]) -> Option<usize> {
        let names = self.0.get(&irq)?;
        let place = names.iter().position(|known| known.as_bytes() == name);
        // Names with other letters are rare.
        place.or_else(|| {
            let name = event::plain_text(name);
            names.iter().position(|known| *known == name)
        })
    }

    /// One name of an interrupt; empty where there is none.
    pub fn at(&self, irq: i64, place: usize) -> &str {
        let names = self.0.get(&irq);
        let name = names.and_then(|names| names.get(place));
        name.map_or("", String::as_str)
    }

    /// The name of an interrupt, or all of them, as `/proc/interrupts` has them; empty when no
    /// event said it.
    pub fn name(&self, irq: i64) -> String {
        self.0
            .get(&irq)
            .map(|names| names.join(", "))
            .unwrap_or_default()
    }
}
