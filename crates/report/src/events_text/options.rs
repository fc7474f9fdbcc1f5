//! How lines of events look: babeltrace2's options of its text.

/// The clock that event lines show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventClock {
    /// The time of the day.
    #[default]
    Day,
    /// Date and time of the day.
    Date,
    /// Seconds since 1970.
    WallSeconds,
    /// Seconds of the trace's own clock.
    TraceSeconds,
    /// Ticks of the stream's own clock.
    Cycles,
}

/// Which names are written before their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventNames {
    /// Of the payload's fields.
    pub payload: bool,
    /// Of the fields of contexts.
    pub context: bool,
    /// Of the parts of a line before its fields: `timestamp = …, delta = …, name = …`.
    pub header: bool,
    /// Of the groups in braces: `event.fields = { … }`.
    pub scope: bool,
}

impl EventNames {
    /// No names.
    pub const NONE: EventNames = EventNames {
        payload: false,
        context: false,
        header: false,
        scope: false,
    };
    /// All names.
    pub const ALL: EventNames = EventNames {
        payload: true,
        context: true,
        header: true,
        scope: true,
    };
}

impl Default for EventNames {
    fn default() -> Self {
        EventNames {
            payload: true,
            context: true,
            ..EventNames::NONE
        }
    }
}

/// What stands before an event's name, where the trace says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventOrigin {
    /// The trace's name: its host and its directory.
    pub trace: bool,
    /// The host.
    pub hostname: bool,
    /// The tracer's domain.
    pub domain: bool,
    /// The process of a trace of one process.
    pub procname: bool,
    /// Its id.
    pub vpid: bool,
    /// The log level of the event's class.
    pub log_level: bool,
    /// The EMF URI of the event's class.
    pub emf: bool,
}

impl EventOrigin {
    /// Nothing.
    pub const NONE: EventOrigin = EventOrigin {
        trace: false,
        hostname: false,
        domain: false,
        procname: false,
        vpid: false,
        log_level: false,
        emf: false,
    };
    /// Everything.
    pub const ALL: EventOrigin = EventOrigin {
        trace: true,
        hostname: true,
        domain: true,
        procname: true,
        vpid: true,
        log_level: true,
        emf: true,
    };
}

impl Default for EventOrigin {
    fn default() -> Self {
        EventOrigin {
            hostname: true,
            procname: true,
            vpid: true,
            ..EventOrigin::NONE
        }
    }
}

/// How event lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTextOptions {
    /// The clock that is shown.
    pub clock: EventClock,
    /// Days and hours in UTC, not in the local time zone.
    pub utc: bool,
    /// Without the time since the event before.
    pub no_delta: bool,
    /// The names that are shown.
    pub names: EventNames,
    /// What stands before an event's name.
    pub origin: EventOrigin,
    /// With the codes of a terminal that colour times, names and values.
    pub color: bool,
}

/// The codes around the parts of a line; empty without colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codes {
    pub reset: &'static str,
    /// The name of a field.
    pub field_name: &'static str,
    /// The name of a part of the line, and a value.
    pub bold: &'static str,
    pub time: &'static str,
    pub event_name: &'static str,
    pub unknown: &'static str,
}

impl Codes {
    pub fn new(color: bool) -> Codes {
        let code = |code: &'static str| if color { code } else { "" };
        Codes {
            reset: code("\x1b[0m"),
            field_name: code("\x1b[36m"),
            bold: code("\x1b[1m"),
            time: code("\x1b[1m\x1b[1m\x1b[33m"),
            event_name: code("\x1b[1m\x1b[1m\x1b[35m"),
            unknown: code("\x1b[1m\x1b[1m\x1b[31m"),
        }
    }
}
