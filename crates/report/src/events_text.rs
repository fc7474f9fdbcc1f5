//! Events as lines of text, byte for byte as babeltrace2 prints them, by the same options.

mod bodies;
mod clock;
mod code;
mod field;
mod head;
mod line;
mod options;
mod times;
mod value;

use symbols::UserSymbols;
use trace::{EventView, Trace};

pub use bodies::EventBodies;
pub use line::EventLines;
pub use options::{EventClock, EventNames, EventOrigin, EventTextOptions};
pub use times::EventTimes;

/// Writes events as text. One per walk: it remembers the time of the event before.
pub struct EventText<'t> {
    times: EventTimes,
    bodies: EventBodies<'t>,
    names: Option<&'t mut UserSymbols>,
}

impl<'t> EventText<'t> {
    /// A writer for the events of `trace`.
    pub fn new(trace: &'t Trace, options: EventTextOptions) -> Self {
        EventText {
            times: EventTimes::new(options),
            bodies: EventBodies::new(trace, options),
            names: None,
        }
    }

    /// A writer that goes on behind what another one wrote, whose times are these.
    pub fn after(trace: &'t Trace, options: EventTextOptions, times: EventTimes) -> Self {
        EventText {
            times,
            ..EventText::new(trace, options)
        }
    }

    /// The times of what was written, for [`EventText::after`].
    pub fn into_times(self) -> EventTimes {
        self.times
    }

    /// With names of code behind fields that are addresses of it.
    pub fn with_names(mut self, names: &'t mut UserSymbols) -> Self {
        self.names = Some(names);
        self
    }

    /// Adds the line of `event`, with its newline. Texts keep their bytes, whatever their encoding.
    pub fn write(&mut self, event: &EventView<'_>, out: &mut EventLines) {
        if let Some(time) = self.bodies.time(event) {
            self.times.write(time, out);
        }
        match &mut self.names {
            None => self.bodies.write(event, out),
            Some(names) => self.bodies.write_named(event, out, names),
        }
    }
}
