//! Events as lines of text, byte for byte as babeltrace2 prints them by default.

mod clock;
mod field;

use event::{EventClass, Field, Scope};
use trace::{EventView, Trace};

use clock::ClockText;
use field::FieldWriter;

/// The clock that event lines show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventClock {
    /// The hour of the day in the local time zone.
    #[default]
    Local,
    /// The hour of the day in UTC.
    Utc,
    /// Seconds since 1970.
    WallSeconds,
    /// Seconds of the trace's own clock.
    TraceSeconds,
}

/// How event lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTextOptions {
    /// The clock that is shown.
    pub clock: EventClock,
    /// Without the time since the event before.
    pub no_delta: bool,
}

/// Writes events as text. One per walk: it remembers the time of the event before.
pub struct EventText<'t> {
    trace: &'t Trace,
    options: EventTextOptions,
    clock: ClockText,
    last_ns: Option<i64>,
    classes: Vec<ClassText<'t>>,
}

/// What all lines of a class share.
struct ClassText<'t> {
    /// Host, process and event name up to the colon.
    head: String,
    /// The groups in braces: packet context, stream's context, event's context, payload.
    groups: Vec<Vec<FieldWriter<'t>>>,
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

/// The groups of a line in their order.
const GROUPS: [Scope; 4] = [
    Scope::PacketContext,
    Scope::StreamContext,
    Scope::EventContext,
    Scope::Payload,
];

impl<'t> EventText<'t> {
    /// A writer for the events of `trace`.
    pub fn new(trace: &'t Trace, options: EventTextOptions) -> Self {
        let classes = trace
            .classes()
            .iter()
            .map(|class| ClassText::new(trace, class))
            .collect();
        EventText {
            trace,
            options,
            clock: ClockText::default(),
            last_ns: None,
            classes,
        }
    }

    /// Appends the line of `event`, with its newline. Texts keep their bytes, whatever their
    /// encoding.
    pub fn write(&mut self, event: &EventView<'_>, out: &mut Vec<u8>) {
        if event.is_timed() {
            let ns = match self.options.clock {
                EventClock::TraceSeconds => event.time().as_ns(),
                _ => self.trace.wall_ns(event.time()),
            };
            self.write_time(ns, out);
        }
        let Some(class) = self.classes.get(event.class().0 as usize) else {
            return;
        };
        out.extend_from_slice(class.head.as_bytes());
        for (place, group) in class.groups.iter().enumerate() {
            out.extend_from_slice(if place == 0 { b"{ " } else { b", { " });
            for (place, field) in group.iter().enumerate() {
                if place > 0 {
                    out.extend_from_slice(b", ");
                }
                field.write(event, out);
            }
            out.extend_from_slice(if group.is_empty() { b"}" } else { b" }" });
        }
        out.push(b'\n');
    }

    fn write_time(&mut self, ns: i64, out: &mut Vec<u8>) {
        self.clock.write(ns, self.options.clock, out);
        if !self.options.no_delta {
            match self.last_ns {
                None => out.extend_from_slice(b"(+?.?????????) "),
                Some(last_ns) => clock::write_delta(ns.wrapping_sub(last_ns), out),
            }
        }
        self.last_ns = Some(ns);
    }
}

impl<'t> ClassText<'t> {
    fn new(trace: &'t Trace, class: &'t EventClass) -> Self {
        let group = |scope| -> Vec<FieldWriter<'t>> {
            let shown = |field: &Field| {
                field.scope == scope
                    && !(scope == Scope::PacketContext && PACKET_FACTS.contains(&&*field.name))
            };
            let fields = class
                .fields
                .iter()
                .enumerate()
                .filter(|(_, field)| shown(field));
            fields
                .map(|(place, field)| FieldWriter::new(place, field))
                .collect()
        };
        // A payload without fields shows its empty braces, any other empty group is left out.
        let shown = |(scope, group): &(Scope, Vec<_>)| {
            !group.is_empty() || *scope == Scope::Payload && trace.has_payload(class.id)
        };
        let groups = GROUPS
            .into_iter()
            .map(|scope| (scope, group(scope)))
            .filter(shown);
        ClassText {
            head: head(trace, class),
            groups: groups.map(|(_, group)| group).collect(),
        }
    }
}

/// `host:procname:(vpid) name: `, what the trace knows of it.
fn head(trace: &Trace, class: &EventClass) -> String {
    let environment = trace.environment_of(class.id);
    let host = environment.get("hostname").cloned();
    let process = environment.get("procname").cloned();
    let vpid = environment.get("vpid").map(|vpid| format!("({vpid})"));
    let origin: Vec<String> = [host, process, vpid].into_iter().flatten().collect();
    let separator = if origin.is_empty() { "" } else { " " };
    format!("{}{separator}{}: ", origin.join(":"), class.name)
}
