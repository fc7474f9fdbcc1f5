//! What a trace holds, as JSON, versioned.

use event::TimeRange;
use serde_json::{Value, json};
use trace::{PartInfo, StreamInfo};

use super::TraceFacts;

/// The version of the schema; it grows when a key changes its meaning or goes.
const VERSION: u32 = 1;

/// The facts as one JSON object of the schema `rtscope.info`.
pub fn trace_facts_json(facts: &TraceFacts) -> Value {
    let class = |class: &super::ClassCount| json!({"name": class.name, "events": class.events});
    let damage = |damage: &trace::Damage| {
        json!({
            "file": damage.file,
            "offset_bytes": damage.offset_bytes,
            "reason": damage.reason,
        })
    };
    let range = facts.events_range.map(|(first, last)| {
        json!({
            "first_ns": first.as_ns(),
            "last_ns": last.as_ns(),
            "duration_ns": last.since(first).as_ns(),
        })
    });
    json!({
        "schema": "rtscope.info",
        "version": VERSION,
        "wall_offset_ns": facts.wall_offset_ns,
        "cpus": facts.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
        "unrecorded_cpus": facts.unrecorded.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
        "events": facts.events,
        "events_range": range,
        "classes": facts.classes.iter().map(class).collect::<Vec<_>>(),
        "declared_classes": facts.declared_classes,
        "losses": {
            "discarded": facts.losses.discarded,
            "places": facts.losses.places,
            "uncounted_places": facts.losses.uncounted_places,
        },
        "damage_count": facts.damage_count,
        "damages": facts.damages.iter().map(damage).collect::<Vec<_>>(),
        "packets_put_in_order": facts.disorder.packets,
        "events_out_of_order": facts.disorder.events,
        "parts": facts.parts.iter().map(part_json).collect::<Vec<_>>(),
    })
}

fn part_json(part: &PartInfo) -> Value {
    let clock = |clock: &trace::ClockFacts| {
        json!({
            "name": clock.name,
            "frequency_hz": clock.frequency_hz,
            "wall_offset_ns": clock.wall_offset.as_ns(),
        })
    };
    let violation =
        |violation: &trace::Violation| json!({"line": violation.line, "what": violation.what});
    let uuid = |bytes: &[u8; 16]| {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    };
    json!({
        "path": part.path,
        "format": part.format,
        "format_version": part.format_version,
        "uuid": part.uuid.as_ref().map(uuid),
        "environment": part.environment,
        "clocks": part.clocks.iter().map(clock).collect::<Vec<_>>(),
        "streams": part.streams.iter().map(stream_json).collect::<Vec<_>>(),
        "violation_count": part.violations.count,
        "violations": part.violations.first.iter().map(violation).collect::<Vec<_>>(),
    })
}

fn stream_json(stream: &StreamInfo) -> Value {
    let range = |range: &TimeRange| json!([range.begin.as_ns(), range.end.as_ns()]);
    json!({
        "file": stream.file,
        "size_bytes": stream.size_bytes,
        "stream_class": stream.class,
        "cpu": stream.cpu.map(|cpu| cpu.0),
        "packets": stream.packets,
        "range_ns": stream.range.as_ref().map(range),
        "discarded": stream.discarded,
        "packet_gaps": stream.packet_gaps,
        "packets_back_in_time": stream.packets_back_in_time,
    })
}
