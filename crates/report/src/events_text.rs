//! Events as lines of text, byte for byte as babeltrace2 prints them, by the same options.

mod bodies;
mod clock;
mod field;
mod head;
mod line;
mod options;
mod times;
mod value;

use trace::{EventView, Trace};

use line::Line;

pub use bodies::EventBodies;
pub use options::{EventClock, EventNames, EventOrigin, EventTextOptions};
pub use times::EventTimes;

/// Writes events as text. One per walk: it remembers the time of the event before.
pub struct EventText<'t> {
    times: EventTimes,
    bodies: EventBodies<'t>,
    line: Line,
}

impl<'t> EventText<'t> {
    /// A writer for the events of `trace`.
    pub fn new(trace: &'t Trace, options: EventTextOptions) -> Self {
        EventText {
            times: EventTimes::new(options),
            bodies: EventBodies::new(trace, options),
            line: Line::default(),
        }
    }

    /// Appends the line of `event`, with its newline. Texts keep their bytes, whatever their
    /// encoding.
    pub fn write(&mut self, event: &EventView<'_>, out: &mut Vec<u8>) {
        self.line.clear();
        if let Some(time) = self.bodies.time(event) {
            self.times.add(time, &mut self.line);
        }
        self.bodies.add(event, &mut self.line);
        out.extend_from_slice(self.line.text());
    }
}
