//! What the trace of a process says of itself.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;

use ctf::writer::{
    ClockMeta, EnvValue, HeaderKind, StreamMeta, TraceMeta, TraceWriter, random_uuid,
};
use event::{EventClass, Result};
use ring::{LOSS_NAMES, Layout, Losses, Table};

use super::process::Common;
use super::{classes, contexts, map};

/// The names of folders that were given to processes: two can say the same of themselves.
#[derive(Debug, Default)]
pub(super) struct Folders {
    given: RefCell<HashMap<String, u32>>,
}

impl Folders {
    /// `name`, or with a number behind it when another has it.
    fn unused(&self, name: String) -> String {
        let mut given = self.given.borrow_mut();
        let count = given.entry(name.clone()).or_insert(0);
        *count += 1;
        match *count {
            1 => name,
            // No name of a process ends so, where two numbers stand behind the last dash.
            count => format!("{name}.{count}"),
        }
    }
}

/// Makes the trace of the process with the rings `layout`.
pub(super) fn create(
    layout: &Layout,
    table: &Table,
    common: &Common,
) -> Result<(TraceWriter, TraceMeta)> {
    let plain = |c: char| match c.is_ascii_alphanumeric() || "-_.".contains(c) {
        true => c,
        false => '_',
    };
    let name: String = layout.name.chars().map(plain).collect();
    let begin_ms = layout.begin_ns / 1_000_000;
    let name = format!("{}-{}-{begin_ms}", name.trim_matches('.'), layout.pid);
    let folder: PathBuf = common.folder.join(common.folders.unused(name));
    let (classes, log_levels) = described(table);
    let meta = TraceMeta {
        environment: environment(layout, common.trace_name),
        uuid: random_uuid()?,
        clocks: vec![ClockMeta::monotonic(common.wall_offset_ns)],
        losses_are_vague: true,
        streams: vec![
            StreamMeta {
                name: "channel0".to_owned(),
                header: HeaderKind::for_classes(classes.len()),
                classes,
                log_levels,
                event_context: contexts::fields(&common.wanted.contexts),
                ..StreamMeta::default()
            },
            map::stream(),
        ],
        ..TraceMeta::default()
    };
    let mut writer = TraceWriter::create(&folder, &meta)?;
    writer.tell(common.outlet.cloned());
    Ok((writer, meta))
}

/// The classes of the events of `table`, and their log levels.
pub(super) fn described(table: &Table) -> (Vec<EventClass>, Vec<Option<i64>>) {
    let events = table.events.iter().enumerate();
    let classes = events.map(|(place, event)| classes::class(event, place));
    let log_levels = table.events.iter();
    let log_levels = log_levels.map(|event| Some(i64::from(event.level)));
    (classes.collect(), log_levels.collect())
}

fn environment(layout: &Layout, trace_name: &str) -> Vec<(String, EnvValue)> {
    let text = |text: &str| EnvValue::Text(text.to_owned());
    let mut entries = vec![("hostname", text(&crate::environment::hostname()))];
    entries.extend([("domain", text("ust")), ("tracer_name", text("lttng-ust"))]);
    entries.extend(
        crate::environment::TRACER_VERSION.map(|(name, number)| (name, EnvValue::Integer(number))),
    );
    entries.extend([
        ("tracer_buffering_scheme", text("pid")),
        ("trace_name", text(trace_name)),
        ("vpid", EnvValue::Integer(i64::from(layout.pid))),
        ("procname", text(&layout.name)),
        ("architecture_bit_width", EnvValue::Integer(64)),
        ("rtscope_version", text(env!("CARGO_PKG_VERSION"))),
    ]);
    let entries = entries.into_iter();
    entries
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// What is known when a recording ends.
pub(super) struct Ending {
    pub losses: Losses,
    pub malformed: u64,
    /// Events with contexts that nobody knew.
    pub unknown: u64,
    /// How far the times can be off, where a counter was converted.
    pub clock_error_ns: Option<i64>,
}

impl Ending {
    /// As entries of the trace's environment.
    pub fn environment(&self) -> Vec<(String, EnvValue)> {
        let lost = LOSS_NAMES.iter().zip(self.losses);
        let lost = lost.filter(|(_, lost)| *lost > 0);
        let lost = lost.map(|(cause, lost)| (format!("lost: {cause}"), lost as i64));
        let mut facts: Vec<_> = lost.collect();
        facts.push(("malformed".to_owned(), self.malformed as i64));
        if self.unknown > 0 {
            facts.push(("context_unknown".to_owned(), self.unknown as i64));
        }
        let error = self.clock_error_ns;
        facts.extend(error.map(|ns| ("clock_error_ns".to_owned(), ns)));
        let facts = facts.into_iter().map(|(name, number)| {
            let name = name.replace([':', ' ', '-'], "_").replace("__", "_");
            (format!("rtscope_{name}"), EnvValue::Integer(number))
        });
        facts.collect()
    }
}
