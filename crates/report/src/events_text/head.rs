//! What stands between the time and the fields of a line: where the event is from, and its name.

use event::EventClass;
use trace::Trace;

use super::options::{Codes, EventOrigin, EventTextOptions};

/// LTTng's log levels by their numbers.
const LOG_LEVELS: [&str; 15] = [
    "EMERG",
    "ALERT",
    "CRIT",
    "ERR",
    "WARNING",
    "NOTICE",
    "INFO",
    "DEBUG_SYSTEM",
    "DEBUG_PROGRAM",
    "DEBUG_PROCESS",
    "DEBUG_MODULE",
    "DEBUG_UNIT",
    "DEBUG_FUNCTION",
    "DEBUG_LINE",
    "DEBUG",
];

/// `host:procname:(vpid) name: `, as much of it as is asked for and the trace knows.
pub(super) fn text(trace: &Trace, class: &EventClass, options: &EventTextOptions) -> String {
    let codes = Codes::new(options.color);
    let named = |name: &str, value: &str| match options.names.header {
        true => format!("{}{name}{} = {value}", codes.bold, codes.reset),
        false => value.to_owned(),
    };
    // It separates these parts only in lines that begin with a time.
    let after_time = if trace.class_facts(class.id).is_timed {
        ", "
    } else {
        ""
    };
    let mut text = String::new();
    if options.origin.trace {
        // babeltrace2 puts nothing between a trace's name and what follows, or two commas.
        text += &named("trace", &trace_name(trace, class));
        text += if options.names.header { ", " } else { "" };
        text += if options.names.header { after_time } else { "" };
    }
    let parts = origin(trace, class, options.origin);
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, value)| named(name, value))
        .collect();
    let (between, after) = match options.names.header {
        true => (after_time, after_time),
        false => (":", " "),
    };
    text += &parts.join(between);
    text += if parts.is_empty() { "" } else { after };
    let name = format!("{}{}{}", codes.event_name, class.name, codes.reset);
    text + &named("name", &name) + if options.names.header { ", " } else { ": " }
}

/// Where an event is from, by babeltrace2's names.
fn origin(trace: &Trace, class: &EventClass, wanted: EventOrigin) -> Vec<(&'static str, String)> {
    let environment = trace.environment_of(class.id);
    let facts = trace.class_facts(class.id);
    let entry = |name: &str| environment.get(name).cloned();
    let level = facts.log_level.and_then(|level| {
        let name = LOG_LEVELS.get(usize::try_from(level).ok()?)?;
        Some(format!("TRACE_{name} ({level})"))
    });
    let vpid = entry("vpid").map(|vpid| format!("({vpid})"));
    let parts = [
        (wanted.hostname, "trace:hostname", entry("hostname")),
        (wanted.domain, "trace:domain", entry("domain")),
        (wanted.procname, "trace:procname", entry("procname")),
        (wanted.vpid, "trace:vpid", vpid),
        (wanted.log_level, "loglevel", level),
        (wanted.emf, "model.emf.uri", facts.emf_uri),
    ];
    let parts = parts.into_iter().filter(|(wanted, ..)| *wanted);
    parts
        .filter_map(|(_, name, value)| value.map(|value| (name, value)))
        .collect()
}

/// The host and the directory below the root.
fn trace_name(trace: &Trace, class: &EventClass) -> String {
    let host = trace.environment_of(class.id).get("hostname").cloned();
    let path = trace.class_facts(class.id).trace_path;
    let path = Some(path).filter(|path| !path.is_empty());
    let parts: Vec<String> = [host, path].into_iter().flatten().collect();
    parts.join("/")
}
