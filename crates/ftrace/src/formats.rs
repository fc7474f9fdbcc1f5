//! The formats of a set of tracepoints, found by number or name.

use std::collections::BTreeMap;

use event::Result;

use crate::{EventFormat, EventName, PageLayout, Tracefs};

/// Everything that is needed to understand the pages of an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Formats {
    /// The layout of a sub-buffer.
    pub layout: PageLayout,
    /// The events by number.
    events: BTreeMap<u16, EventFormat>,
}

impl Formats {
    /// From formats that were read elsewhere.
    pub fn new(layout: PageLayout, events: impl IntoIterator<Item = EventFormat>) -> Self {
        Formats {
            layout,
            events: events.into_iter().map(|event| (event.id, event)).collect(),
        }
    }

    /// Reads the formats of `events` from this kernel.
    ///
    /// # Errors
    /// When a file cannot be read or makes no sense.
    pub fn load(tracefs: &Tracefs, events: &[EventName]) -> Result<Self> {
        let formats: Result<Vec<_>> = events.iter().map(|event| tracefs.format(event)).collect();
        Ok(Formats::new(tracefs.page_layout()?, formats?))
    }

    /// The event with the number that a record begins with.
    pub fn by_id(&self, id: u16) -> Option<&EventFormat> {
        self.events.get(&id)
    }

    /// The event `name` of any system.
    pub fn by_name(&self, name: &str) -> Option<&EventFormat> {
        self.events.values().find(|event| event.name == name)
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = &EventFormat> {
        self.events.values()
    }
}
