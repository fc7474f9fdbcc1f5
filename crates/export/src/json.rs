//! JSON lines: `rtscope.events`, version 1. The first line names the schema, the clock and the
//! machine; then a line for each event, loss and unreadable place, in the order of time.

use std::path::Path;

use ctf::is_packet_bookkeeping;
use event::{Cpu, EventClass, Result, Scope};
use serde_json::json;
use trace::{Damage, EventView, Lost, Trace};

use crate::output::Output;
use crate::sink::{Sink, cause_word};
use crate::value::{FieldJson, push, text};

/// Name and version of what is written, raised when a reader must change.
const SCHEMA: &str = "rtscope.events";
const VERSION: u32 = 1;

/// Lines of JSON.
pub(crate) struct JsonLines<'t> {
    trace: &'t Trace,
    output: Output,
    classes: Vec<ClassJson>,
    line: Vec<u8>,
}

/// What all events of a class have in common.
struct ClassJson {
    /// `,"name":"sched_switch"`, and the part of the trace where there are several.
    name: Vec<u8>,
    scopes: Vec<ScopeJson>,
}

struct ScopeJson {
    /// `,"fields":{`
    begin: String,
    fields: Vec<(Vec<u8>, FieldJson)>,
}

/// What the scopes are called, in the order of a line.
const SCOPES: [(Scope, &str); 4] = [
    (Scope::Payload, "fields"),
    (Scope::EventContext, "context"),
    (Scope::StreamContext, "stream_context"),
    (Scope::PacketContext, "packet_context"),
];

impl<'t> JsonLines<'t> {
    pub fn create(trace: &'t Trace, path: &Path) -> Result<Self> {
        let mut lines = JsonLines {
            trace,
            output: Output::create(path)?,
            classes: trace
                .classes()
                .iter()
                .map(|class| ClassJson::new(class, trace))
                .collect(),
            line: Vec::new(),
        };
        let info = trace.info();
        let head = json!({
            "schema": SCHEMA,
            "version": VERSION,
            "wall_offset_ns": info.wall_offset.as_ns(),
            "environment": info.environment,
        });
        push(&mut lines.line, format_args!("{head}"));
        lines.end_line()?;
        Ok(lines)
    }

    fn end_line(&mut self) -> Result<()> {
        self.line.push(b'\n');
        self.output.write(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

impl ClassJson {
    fn new(class: &EventClass, trace: &Trace) -> Self {
        let mut name = b",\"name\":".to_vec();
        text(&class.name, &mut name);
        let parts = trace.parts();
        if let [_, _, ..] = &parts[..]
            && let Some(part) = parts.get(trace.part_of(class.id))
        {
            name.extend_from_slice(b",\"trace\":");
            text(&part.path, &mut name);
        }
        let scopes = SCOPES
            .iter()
            .map(|(scope, name)| ScopeJson::new(*scope, name, class))
            .filter(|scope| !scope.fields.is_empty() || scope.begin == ",\"fields\":{")
            .collect();
        ClassJson { name, scopes }
    }
}

impl ScopeJson {
    fn new(scope: Scope, name: &str, class: &EventClass) -> Self {
        let fields = class.fields.iter().enumerate();
        let own = fields.filter(|(_, f)| f.scope == scope && !is_packet_bookkeeping(f));
        let fields = own.map(|(place, field)| {
            let mut key = Vec::new();
            text(&field.name, &mut key);
            key.push(b':');
            (key, FieldJson::new(place, field))
        });
        ScopeJson {
            begin: format!(",\"{name}\":{{"),
            fields: fields.collect(),
        }
    }
}

impl Sink for JsonLines<'_> {
    fn event(&mut self, event: &EventView<'_>) -> Result<()> {
        let Some(class) = self.classes.get(event.class().0 as usize) else {
            return Ok(());
        };
        let line = &mut self.line;
        match event.is_timed() {
            true => {
                let (ns, wall) = (event.time().as_ns(), self.trace.wall_ns(event.time()));
                push(line, format_args!("{{\"time_ns\":{ns},\"wall_ns\":{wall}"));
            }
            false => line.extend_from_slice(b"{\"time_ns\":null,\"wall_ns\":null"),
        }
        cpu(event.cpu(), line);
        line.extend_from_slice(&class.name);
        for scope in &class.scopes {
            line.extend_from_slice(scope.begin.as_bytes());
            for (place, (key, field)) in scope.fields.iter().enumerate() {
                if place > 0 {
                    line.push(b',');
                }
                line.extend_from_slice(key);
                field.write(event, line);
            }
            line.push(b'}');
        }
        line.push(b'}');
        self.end_line()
    }

    fn lost(&mut self, lost: &Lost) -> Result<()> {
        let line = json!({"lost": {
            "cpu": lost.cpu.map(|cpu| cpu.0),
            "begin_ns": lost.range.begin.as_ns(),
            "end_ns": lost.range.end.as_ns(),
            "count": lost.count,
            "cause": cause_word(lost.cause),
        }});
        push(&mut self.line, format_args!("{line}"));
        self.end_line()
    }

    fn damage(&mut self, damage: &Damage) -> Result<()> {
        let line = json!({"damage": {
            "file": damage.file,
            "offset_bytes": damage.offset_bytes,
            "reason": damage.reason,
        }});
        push(&mut self.line, format_args!("{line}"));
        self.end_line()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.output.finish()
    }
}

fn cpu(cpu: Option<Cpu>, line: &mut Vec<u8>) {
    match cpu {
        Some(cpu) => push(line, format_args!(",\"cpu\":{}", cpu.0)),
        None => line.extend_from_slice(b",\"cpu\":null"),
    }
}
