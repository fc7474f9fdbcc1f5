//! The times in front of the lines of events, and the differences between them.

use super::clock::{self, ClockText};
use super::line::{EventLines, Piece};
use super::options::{Codes, EventClock, EventTextOptions};

/// Writes times and what lies between them, in the order of the lines.
pub struct EventTimes {
    options: EventTextOptions,
    clock: ClockText,
    /// Before a time, between time and delta, and after both.
    around_time: [Piece; 3],
    /// Of the event before, on the clock that is shown.
    last: Option<i64>,
}

/// The least digits of a time in ticks, and of a difference.
const CYCLES_DIGITS: usize = 20;
const DELTA_DIGITS: usize = 12;

impl EventTimes {
    /// A writer before the first line.
    pub fn new(options: EventTextOptions) -> Self {
        EventTimes {
            options,
            clock: ClockText::default(),
            around_time: around_time(&options),
            last: None,
        }
    }

    /// Adds what stands before the rest of a line: a [time](super::EventBodies::time) and how long
    /// it is after the last one.
    #[inline]
    pub fn write(&mut self, time: i64, line: &mut EventLines) {
        let clock = self.options.clock;
        let [before, between, after] = &self.around_time;
        line.piece(before);
        match clock {
            EventClock::Cycles => line.digits(time as u64, CYCLES_DIGITS),
            _ => self.clock.write(time, clock, self.options.utc, line),
        }
        if !self.options.no_delta {
            line.piece(between);
            match (self.last, clock) {
                (None, EventClock::Cycles) => line.bytes(b"+????????????"),
                (None, _) => line.bytes(b"+?.?????????"),
                (Some(last), EventClock::Cycles) => write_cycles_since(last, time, line),
                (Some(last), _) => clock::write_delta(time.wrapping_sub(last), line),
            }
        }
        line.piece(after);
        self.last = Some(time);
    }
}

fn write_cycles_since(last: i64, time: i64, line: &mut EventLines) {
    line.byte(b'+');
    line.digits((time as u64).wrapping_sub(last as u64), DELTA_DIGITS);
}

/// `[` and `] (` and `) `, or the names of both.
fn around_time(options: &EventTextOptions) -> [Piece; 3] {
    let codes = Codes::new(options.color);
    let (bold, time, reset) = (codes.bold, codes.time, codes.reset);
    let named = |name: &str| format!("{bold}{name}{reset} = ");
    let [before, between, after] = match (options.names.header, options.no_delta) {
        (false, false) => [format!("[{time}"), format!("{reset}] ("), ") ".to_owned()],
        (false, true) => [format!("[{time}"), String::new(), format!("{reset}] ")],
        (true, false) => [
            named("timestamp") + time,
            format!("{reset}, {}", named("delta")),
            ", ".to_owned(),
        ],
        (true, true) => [
            named("timestamp") + time,
            String::new(),
            format!("{reset}, "),
        ],
    };
    [before, between, after].map(|text| Piece::new(text.as_bytes()))
}
