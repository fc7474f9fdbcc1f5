//! The metadata as CTF 2 has it, in the specification's final form: JSON fragments, each begun by a
//! record separator. Headers and contexts are the same bytes as in CTF 1.8.

use event::{Base, IntegerMapping, Result, Scope, WideEncoding};
use serde_json::{Map, Value as Json, json};

use super::refusal::refuse;
use super::tsdl::{environment_of, offset};
use super::wire::{BODY, Choice, ClassWire, Int, Kind, Link, Member, Node, Shows, Span};
use super::{EnvValue, HeaderKind, Lowered, TraceMeta};

/// Begins each fragment.
const RECORD_SEPARATOR: char = '\u{1e}';

/// The whole metadata of a trace.
pub(super) fn metadata(meta: &TraceMeta, streams: &[Lowered<'_>]) -> Result<String> {
    let uuid: Vec<u8> = meta.uuid.to_vec();
    let mut fragments = vec![json!({"type": "preamble", "version": 2, "uuid": uuid})];
    fragments.push(trace_class(meta));
    for (place, clock) in meta.clocks.iter().enumerate() {
        let (seconds, cycles) = offset(clock);
        fragments.push(json!({
            "type": "clock-class",
            "id": clock_id(place),
            "name": clock.name,
            "frequency": clock.frequency_hz,
            "origin": "unix-epoch",
            "offset-from-origin": {"seconds": seconds, "cycles": cycles},
        }));
    }
    for (id, stream) in streams.iter().enumerate() {
        fragments.push(stream_class(id, stream, meta)?);
        let classes = stream.meta.classes.iter().zip(&stream.classes);
        for (class_id, (class, wire)) in classes.enumerate() {
            let level = stream.meta.log_level(class_id);
            fragments.push(event_class((id, class_id), (&class.name, level), wire)?);
        }
    }
    let texts = fragments
        .iter()
        .map(|json| format!("{RECORD_SEPARATOR}{json:#}\n"));
    Ok(texts.collect())
}

fn clock_id(place: usize) -> String {
    format!("clock{place}")
}

fn trace_class(meta: &TraceMeta) -> Json {
    let value = |value: EnvValue| match value {
        EnvValue::Text(text) => Json::from(text),
        EnvValue::Integer(number) => Json::from(number),
    };
    let entries = environment_of(meta).into_iter();
    let environment: Map<String, Json> = entries.map(|(name, v)| (name, value(v))).collect();
    json!({
        "type": "trace-class",
        "name": "",
        "uid": super::tsdl::uuid_text(&meta.uuid),
        "environment": environment,
        "packet-header-field-class": structure(vec![
            part("magic", unsigned(32, 8, Some("packet-magic-number"))),
            part("uuid", json!({
                "type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"],
            })),
            part("stream_id", unsigned(32, 8, Some("data-stream-class-id"))),
            part("stream_instance_id", unsigned(64, 8, Some("data-stream-id"))),
        ]),
    })
}

fn stream_class(id: usize, stream: &Lowered<'_>, meta: &TraceMeta) -> Result<Json> {
    let is_timed = stream.meta.header != HeaderKind::Untimed;
    let mut context = Vec::new();
    if is_timed {
        let end = "packet-end-default-clock-timestamp";
        context.push(part(
            "timestamp_begin",
            unsigned(64, 8, Some("default-clock-timestamp")),
        ));
        context.push(part("timestamp_end", unsigned(64, 8, Some(end))));
    }
    let counter = "discarded-event-record-counter-snapshot";
    context.push(part(
        "content_size",
        unsigned(64, 8, Some("packet-content-length")),
    ));
    context.push(part(
        "packet_size",
        unsigned(64, 8, Some("packet-total-length")),
    ));
    context.push(part(
        "packet_seq_num",
        unsigned(64, 8, Some("packet-sequence-number")),
    ));
    context.push(part("events_discarded", unsigned(64, 8, Some(counter))));
    if !stream.meta.has_no_cpu {
        context.push(part("cpu_id", unsigned(32, 8, None)));
    }
    context.extend(parts(&stream.packet_context)?);
    let mut class = json!({
        "type": "data-stream-class",
        "id": id,
        "name": stream.meta.name,
        "event-record-header-field-class": event_header(stream.meta.header),
        "packet-context-field-class": structure(context),
    });
    if is_timed {
        if stream.meta.clock >= meta.clocks.len() {
            return Err(refuse("a stream's clock does not exist"));
        }
        class["default-clock-class-id"] = clock_id(stream.meta.clock).into();
    }
    if !stream.event_context.is_empty() {
        let context = structure(parts(&stream.event_context)?);
        class["event-record-common-context-field-class"] = context;
    }
    Ok(class)
}

/// The same bits as LTTng's header in CTF 1.8.
fn event_header(kind: HeaderKind) -> Json {
    let (id_bits, time_bits, align_bits, last) = match kind {
        HeaderKind::Untimed => {
            return structure(vec![part(
                "id",
                unsigned(32, 8, Some("event-record-class-id")),
            )]);
        }
        HeaderKind::Compact => (5, 27, 1, 30),
        HeaderKind::Large => (16, 32, 8, 65534),
    };
    let time = |bits, align| unsigned(bits, align, Some("default-clock-timestamp"));
    let compact = structure(vec![part("timestamp", time(time_bits, align_bits))]);
    let extended = structure(vec![
        part("id", unsigned(32, 8, Some("event-record-class-id"))),
        part("timestamp", time(64, 8)),
    ]);
    let option = |name, class: Json, first, last| {
        let range = json!([[first, last]]);
        json!({"name": name, "field-class": class, "selector-field-ranges": range})
    };
    let variant = json!({
        "type": "variant",
        "selector-field-location": {"origin": "event-record-header", "path": ["id"]},
        "options": [
            option("compact", compact, 0, last),
            option("extended", extended, last + 1, last + 1),
        ],
    });
    let id = unsigned(id_bits, align_bits, Some("event-record-class-id"));
    let mut header = structure(vec![part("id", id), part("v", variant)]);
    header["minimum-alignment"] = 8.into();
    header
}

fn event_class(
    (stream_id, id): (usize, usize),
    (name, log_level): (&str, Option<i64>),
    wire: &ClassWire,
) -> Result<Json> {
    let mut class = json!({
        "type": "event-record-class",
        "id": id,
        "data-stream-class-id": stream_id,
        "name": name,
    });
    if let Some(level) = log_level {
        class["attributes"] = json!({"lttng.org,2009": {"log-level": level}});
    }
    for (scope, members) in BODY.into_iter().zip(&wire.scopes) {
        let key = match scope {
            Scope::EventContext if !members.is_empty() => "specific-context-field-class",
            Scope::Payload => "payload-field-class",
            _ => continue,
        };
        class[key] = structure(parts(members)?);
    }
    Ok(class)
}

fn structure(members: Vec<Json>) -> Json {
    json!({"type": "structure", "member-classes": members})
}

fn part(name: &str, class: Json) -> Json {
    json!({"name": name, "field-class": class})
}

fn parts(members: &[Member]) -> Result<Vec<Json>> {
    let part = |member: &Member| Ok(part(&member.name, field_class(&member.node)?));
    members.iter().map(part).collect()
}

/// One of the integers that every packet has.
fn unsigned(size_bits: u32, align_bits: u32, role: Option<&str>) -> Json {
    let mut class = json!({
        "type": "fixed-length-unsigned-integer",
        "length": size_bits,
        "byte-order": "little-endian",
        "alignment": align_bits,
    });
    if let Some(role) = role {
        class["roles"] = json!([role]);
    }
    class
}

fn field_class(node: &Node) -> Result<Json> {
    Ok(match &node.kind {
        Kind::Int(int) => integer(int),
        Kind::Float {
            size_bits,
            big_endian,
        } => json!({
            "type": "fixed-length-floating-point-number",
            "length": size_bits,
            "byte-order": byte_order(*big_endian),
            "alignment": node.align_bits,
        }),
        Kind::String => json!({"type": "null-terminated-string"}),
        Kind::Text(size_bytes) => json!({"type": "static-length-string", "length": size_bytes}),
        Kind::CountedText(link) => json!({
            "type": "dynamic-length-string",
            "length-field-location": location(link),
        }),
        Kind::Wide { encoding, span } => {
            let mut class = spanned("string", span);
            class["encoding"] = encoding_name(*encoding).into();
            class
        }
        Kind::Blob { span, media_type } => {
            let mut class = spanned("blob", span);
            class["media-type"] = media_type.as_str().into();
            class
        }
        Kind::Struct(members) => structure(parts(members)?),
        Kind::Array(element, count) => json!({
            "type": "static-length-array",
            "element-field-class": field_class(element)?,
            "length": count,
        }),
        Kind::Sequence(element, link) => json!({
            "type": "dynamic-length-array",
            "element-field-class": field_class(element)?,
            "length-field-location": location(link),
        }),
        Kind::Variant {
            selector, choices, ..
        } => variant(selector, choices)?,
        Kind::Optional {
            selector,
            content,
            ranges: there,
        } => {
            let mut class = json!({
                "type": "optional",
                "selector-field-location": location(selector),
                "field-class": field_class(content)?,
            });
            if let Some(there) = there {
                class["selector-field-ranges"] = ranges(there, selector.is_signed);
            }
            class
        }
    })
}

fn variant(selector: &Link, choices: &[Choice]) -> Result<Json> {
    // A choice that no value means is never chosen, and CTF 2 has no word for it.
    let choices = choices.iter().filter(|choice| !choice.ranges.is_empty());
    let option = |choice: &Choice| {
        Ok(json!({
            "name": choice.name,
            "field-class": field_class(&choice.node)?,
            "selector-field-ranges": ranges(&choice.ranges, selector.is_signed),
        }))
    };
    Ok(json!({
        "type": "variant",
        "selector-field-location": location(selector),
        "options": choices.map(option).collect::<Result<Vec<_>>>()?,
    }))
}

fn integer(int: &Int) -> Json {
    let integer = &int.integer;
    let sign = if integer.signed { "signed" } else { "unsigned" };
    let kind = match int.shows {
        Shows::Number | Shows::Label(_) => format!("fixed-length-{sign}-integer"),
        Shows::Truth => "fixed-length-boolean".to_owned(),
        Shows::Flags(_) => "fixed-length-bit-map".to_owned(),
    };
    let mut class = json!({
        "type": kind,
        "length": integer.size_bits,
        "byte-order": byte_order(integer.big_endian),
        "alignment": integer.align_bits.max(1),
    });
    match &int.shows {
        Shows::Flags(labels) => class["flags"] = labelled(labels, false),
        Shows::Truth => {}
        Shows::Number | Shows::Label(_) => {
            class["preferred-display-base"] = base(integer.base).into();
        }
    }
    if let Shows::Label(labels) = &int.shows {
        class["mappings"] = labelled(&without_ties(labels, integer.signed), integer.signed);
    }
    class
}

fn base(base: Base) -> u8 {
    match base {
        Base::Binary => 2,
        Base::Octal => 8,
        Base::Decimal => 10,
        Base::Hexadecimal => 16,
    }
}

/// Labels without order, as CTF 2 has them: `{"label": [[first, last], …], …}`.
fn labelled(mappings: &[IntegerMapping], is_signed: bool) -> Json {
    let mut labels = Map::new();
    for IntegerMapping { label, first, last } in mappings {
        let entry = labels.entry(label.clone()).or_insert_with(|| json!([]));
        if let Json::Array(ranges) = entry {
            ranges.push(range((*first, *last), is_signed));
        }
    }
    Json::Object(labels)
}

/// The mappings, cut so that a value's first label is the one of its narrowest range: that is the
/// one that readers show, now that order means nothing.
fn without_ties(mappings: &[IntegerMapping], is_signed: bool) -> Vec<IntegerMapping> {
    let wide = |bound: i64| match is_signed {
        true => i128::from(bound),
        false => i128::from(bound as u64),
    };
    let width = |m: &IntegerMapping| wide(m.last) - wide(m.first);
    let mut cut: Vec<IntegerMapping> = Vec::with_capacity(mappings.len());
    for (place, mapping) in mappings.iter().enumerate() {
        let wins = |earlier: &&IntegerMapping| width(earlier) < width(mapping);
        let mut rest = vec![(wide(mapping.first), wide(mapping.last))];
        for earlier in mappings[..place].iter().filter(|earlier| !wins(earlier)) {
            let (first, last) = (wide(earlier.first), wide(earlier.last));
            let split = |(a, b): (i128, i128)| {
                let before = (a, b.min(first - 1));
                let after = (a.max(last + 1), b);
                [before, after].into_iter().filter(|(a, b)| a <= b)
            };
            rest = rest.into_iter().flat_map(split).collect();
        }
        cut.extend(rest.into_iter().map(|(first, last)| IntegerMapping {
            label: mapping.label.clone(),
            first: first as i64,
            last: last as i64,
        }));
    }
    cut
}

fn range((first, last): (i64, i64), is_signed: bool) -> Json {
    match is_signed {
        true => json!([first, last]),
        false => json!([first as u64, last as u64]),
    }
}

fn ranges(all: &[(i64, i64)], is_signed: bool) -> Json {
    all.iter().map(|one| range(*one, is_signed)).collect()
}

fn spanned(what: &str, span: &Span) -> Json {
    match span {
        Span::Terminated => json!({"type": format!("null-terminated-{what}")}),
        Span::Bytes(bytes) => json!({"type": format!("static-length-{what}"), "length": bytes}),
        Span::Counted(link) => json!({
            "type": format!("dynamic-length-{what}"),
            "length-field-location": location(link),
        }),
    }
}

fn encoding_name(encoding: WideEncoding) -> String {
    let order = if encoding.big_endian { "be" } else { "le" };
    format!("utf-{}{order}", u32::from(encoding.unit_bytes) * 8)
}

fn byte_order(big_endian: bool) -> &'static str {
    if big_endian {
        "big-endian"
    } else {
        "little-endian"
    }
}

/// From the structure around, up and down again; or from the start of a scope.
fn location(link: &Link) -> Json {
    let names = link.names.iter().map(|name| Json::from(name.as_str()));
    if let Some(ups) = link.ups {
        let path: Vec<Json> = std::iter::repeat_n(Json::Null, ups).chain(names).collect();
        return json!({"path": path});
    }
    let origin = match link.scope {
        Scope::PacketHeader => "packet-header",
        Scope::PacketContext => "packet-context",
        Scope::EventHeader => "event-record-header",
        Scope::StreamContext => "event-record-common-context",
        Scope::EventContext => "event-record-specific-context",
        Scope::Payload => "event-record-payload",
    };
    json!({"origin": origin, "path": names.collect::<Vec<Json>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_label_of_a_value_stays_the_first() {
        let check = |mappings: &[(&str, i64, i64)], expect: &str| {
            let mapping = |(label, first, last): &(&str, i64, i64)| IntegerMapping {
                label: (*label).to_owned(),
                first: *first,
                last: *last,
            };
            let mappings: Vec<_> = mappings.iter().map(mapping).collect();
            let json = labelled(&without_ties(&mappings, false), false);
            assert_eq!(json.to_string(), expect);
        };
        check(&[("a", 1, 1), ("b", 0, 9)], r#"{"a":[[1,1]],"b":[[0,9]]}"#);
        check(&[("b", 0, 9), ("a", 1, 1)], r#"{"b":[[0,9]]}"#);
        check(
            &[("b", 0, 9), ("a", 5, 14)],
            r#"{"a":[[10,14]],"b":[[0,9]]}"#,
        );
        check(
            &[("m", -2, -1)],
            "{\"m\":[[18446744073709551614,18446744073709551615]]}",
        );
    }
}
