//! The lines of events behind their times: name, contexts and payload.

use event::{EventClass, Field, FieldId, Name, Scope};
use symbols::UserSymbols;
use trace::{EventView, Trace};

use super::code::CodeField;
use super::field::FieldWriter;
use super::head;
use super::line::{EventLines, Piece};
use super::options::{Codes, EventClock, EventTextOptions};
use super::value::Style;

/// Writes the lines of events without the times in front of them: all that one event says by
/// itself, so that threads can write ahead of the merge.
pub struct EventBodies<'t> {
    trace: &'t Trace,
    options: EventTextOptions,
    /// Made when the first event of a class comes: a trace may declare a thousand and use ten.
    classes: Vec<Option<ClassText<'t>>>,
}

/// What all lines of a class share.
struct ClassText<'t> {
    /// Each value with what stands before it since the value before.
    values: Vec<(Piece, FieldWriter<'t>)>,
    /// Those among the values that are addresses of code: place, name of the field, what it is.
    codes: Vec<(usize, Name, CodeField)>,
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

impl<'t> EventBodies<'t> {
    /// A writer for the events of `trace`.
    pub fn new(trace: &'t Trace, options: EventTextOptions) -> Self {
        EventBodies {
            trace,
            options,
            classes: trace.classes().iter().map(|_| None).collect(),
        }
    }

    /// The time that [`EventTimes`](super::EventTimes) writes in front, in units of the clock that
    /// is shown; none for an event that has no time.
    #[inline]
    pub fn time(&self, event: &EventView<'_>) -> Option<i64> {
        event.is_timed().then(|| match self.options.clock {
            EventClock::TraceSeconds => event.time().as_ns(),
            EventClock::Cycles => event.ticks() as i64,
            _ => self.trace.wall_ns(event.time()),
        })
    }

    #[inline]
    fn class(&mut self, event: &EventView<'_>) -> Option<&mut ClassText<'t>> {
        let place = event.class().0 as usize;
        let class = self.classes.get_mut(place)?;
        let new = || ClassText::new(self.trace, &self.trace.classes()[place], &self.options);
        Some(class.get_or_insert_with(new))
    }

    /// The same with the names of code.
    pub(super) fn write_named(
        &mut self,
        event: &EventView<'_>,
        line: &mut EventLines,
        names: &mut UserSymbols,
    ) {
        let kernel = self.trace.symbols();
        let Some(class) = self.class(event) else {
            return;
        };
        let mut codes = class.codes.iter().peekable();
        for (place, (before, field)) in class.values.iter_mut().enumerate() {
            line.piece(before);
            field.write(event, line);
            while let Some((_, name, code)) = codes.next_if(|(code, ..)| *code == place) {
                code.write(event, (&mut *names, kernel), name, line);
            }
        }
        line.piece(&class.end);
    }

    /// Adds what stands behind the time, with the newline.
    #[inline]
    pub fn write(&mut self, event: &EventView<'_>, line: &mut EventLines) {
        let Some(class) = self.class(event) else {
            return;
        };
        for (before, field) in &mut class.values {
            line.piece(before);
            field.write(event, line);
        }
        line.piece(&class.end);
    }
}

impl<'t> ClassText<'t> {
    fn new(trace: &Trace, class: &'t EventClass, options: &EventTextOptions) -> Self {
        let codes = Codes::new(options.color);
        let (mut values, mut codes_named) = (Vec::new(), Vec::new());
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
                if let Some(code) = CodeField::new(trace, class, *id, field) {
                    codes_named.push((values.len(), field.name.clone(), code));
                }
                values.push((Piece::new(&text), writer));
                text = after.as_bytes().to_vec();
            }
            text.extend_from_slice(b" }");
        }
        text.push(b'\n');
        ClassText {
            values,
            codes: codes_named,
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
