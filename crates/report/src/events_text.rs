//! Events as lines of text, byte for byte as babeltrace2 prints them, by the same options.

mod clock;
mod field;
mod head;
mod line;
mod options;
mod value;

use event::{EventClass, Field, FieldId, Scope};
use trace::{EventView, Trace};

use clock::ClockText;
use field::FieldWriter;
use line::{Line, Piece};
use options::Codes;
use value::Style;

pub use options::{EventClock, EventNames, EventOrigin, EventTextOptions};

/// Writes events as text. One per walk: it remembers the time of the event before.
pub struct EventText<'t> {
    trace: &'t Trace,
    options: EventTextOptions,
    clock: ClockText,
    /// Before a time, between time and delta, and after both.
    around_time: [Piece; 3],
    /// Of the event before, on the clock that is shown.
    last: Option<i64>,
    classes: Vec<ClassText<'t>>,
    line: Line,
}

/// What all lines of a class share.
struct ClassText<'t> {
    /// Each value with what stands before it since the value before.
    values: Vec<(Piece, FieldWriter<'t>)>,
    /// After the last value.
    end: Piece,
}

/// Members of a packet's context that are about the packet itself.
const PACKET_FACTS: [&str; 6] = [
    "timestamp_begin",
    "timestamp_end",
    "content_size",
    "packet_size",
    "packet_seq_num",
    "events_discarded",
];

/// The groups of a line in their order, as babeltrace2 calls them.
const GROUPS: [(Scope, &str); 4] = [
    (Scope::PacketContext, "stream.packet.context"),
    (Scope::StreamContext, "stream.event.context"),
    (Scope::EventContext, "event.context"),
    (Scope::Payload, "event.fields"),
];

impl<'t> EventText<'t> {
    /// A writer for the events of `trace`.
    pub fn new(trace: &'t Trace, options: EventTextOptions) -> Self {
        let class = |class| ClassText::new(trace, class, &options);
        EventText {
            trace,
            options,
            clock: ClockText::default(),
            around_time: around_time(&options),
            last: None,
            classes: trace.classes().iter().map(class).collect(),
            line: Line::default(),
        }
    }

    /// Appends the line of `event`, with its newline. Texts keep their bytes, whatever their
    /// encoding.
    pub fn write(&mut self, event: &EventView<'_>, out: &mut Vec<u8>) {
        self.line.clear();
        if event.is_timed() {
            self.write_time(event);
        }
        let Some(class) = self.classes.get_mut(event.class().0 as usize) else {
            return;
        };
        for (before, field) in &mut class.values {
            self.line.piece(before);
            field.write(event, &mut self.line);
        }
        self.line.piece(&class.end);
        out.extend_from_slice(self.line.text());
    }

    fn write_time(&mut self, event: &EventView<'_>) {
        let time = match self.options.clock {
            EventClock::TraceSeconds => event.time().as_ns(),
            EventClock::Cycles => event.ticks() as i64,
            _ => self.trace.wall_ns(event.time()),
        };
        let (clock, line) = (self.options.clock, &mut self.line);
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

/// Digits of a time in ticks, and the least of a difference.
const CYCLES_DIGITS: usize = 20;
const DELTA_DIGITS: usize = 12;

fn write_cycles_since(last: i64, time: i64, line: &mut Line) {
    let delta = (time as u64).wrapping_sub(last as u64);
    let digits = delta.checked_ilog10().unwrap_or(0) as usize + 1;
    line.byte(b'+');
    line.digits(delta, digits.max(DELTA_DIGITS));
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

impl<'t> ClassText<'t> {
    fn new(trace: &Trace, class: &'t EventClass, options: &EventTextOptions) -> Self {
        let codes = Codes::new(options.color);
        let mut values = Vec::new();
        let mut text = head::text(trace, class, options).into_bytes();
        let mut is_first = true;
        for (scope, name) in GROUPS {
            let fields = shown_fields(class, scope);
            // A payload without fields shows its empty braces, any other empty group is left out.
            if fields.is_empty() && !(scope == Scope::Payload && trace.has_payload(class.id)) {
                continue;
            }
            text.extend_from_slice(if is_first { b"" } else { b", " });
            is_first = false;
            if options.names.scope {
                let (bold, reset) = (codes.bold, codes.reset);
                text.extend_from_slice(format!("{bold}{name}{reset} = ").as_bytes());
            }
            let names = match scope {
                Scope::Payload => options.names.payload,
                _ => options.names.context,
            };
            let style = Style { names, codes };
            text.push(b'{');
            for (place, (id, field)) in fields.iter().enumerate() {
                text.extend_from_slice(if place > 0 { b", " } else { b" " });
                style.name(&field.name, &mut text);
                let writer = FieldWriter::new(*id, &field.ty, style);
                let (before, after) = match writer.is_simple() {
                    true => (codes.bold, codes.reset),
                    false => ("", ""),
                };
                text.extend_from_slice(before.as_bytes());
                values.push((Piece::new(&text), writer));
                text = after.as_bytes().to_vec();
            }
            text.extend_from_slice(b" }");
        }
        text.push(b'\n');
        ClassText {
            values,
            end: Piece::new(&text),
        }
    }
}

/// The fields of a scope that are about the event.
fn shown_fields(class: &EventClass, scope: Scope) -> Vec<(FieldId, &Field)> {
    let is_packets = |field: &Field| {
        scope == Scope::PacketContext && PACKET_FACTS.contains(&field.name.as_str())
    };
    let fields = class.fields.iter().enumerate();
    let shown = fields.filter(|(_, field)| field.scope == scope && !is_packets(field));
    shown
        .map(|(place, field)| (FieldId(place as u16), field))
        .collect()
}
