//! The metadata as LTTng writes it: plain TSDL, names escaped with a leading underscore.

use std::fmt::Write;

use event::{Base, Integer, IntegerMapping, Result, Scope};

use crate::{LOSSES_BETWEEN, LOSSES_KEY};

use super::refusal::refuse;
use super::wire::{BODY, ClassWire, Int, Kind, Link, Member, Node, Shows, written_name};
use super::{ClockMeta, Dialect, EnvValue, HeaderKind, Lowered, TraceMeta};

/// Nanoseconds per second.
const NS_PER_S: i64 = 1_000_000_000;

/// Types, the clock's types and both event headers, as every trace of LTTng begins.
const BASIC_TYPES: &str = "\
/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 27; align = 1; signed = false; } := uint27_t;

";

const EVENT_HEADERS: &str = "\
struct event_header_compactSUFFIX {
\tenum : uint5_t { compact = 0 ... 30, extended = 31 } id;
\tvariant <id> {
\t\tstruct {
\t\t\tuint27_clock_CLOCK_t timestamp;
\t\t} compact;
\t\tstruct {
\t\t\tuint32_t id;
\t\t\tuint64_clock_CLOCK_t timestamp;
\t\t} extended;
\t} v;
} align(8);

struct event_header_largeSUFFIX {
\tenum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;
\tvariant <id> {
\t\tstruct {
\t\t\tuint32_clock_CLOCK_t timestamp;
\t\t} compact;
\t\tstruct {
\t\t\tuint32_t id;
\t\t\tuint64_clock_CLOCK_t timestamp;
\t\t} extended;
\t} v;
} align(8);

";

/// The whole metadata of a trace.
pub(super) fn metadata(meta: &TraceMeta, streams: &[Lowered<'_>]) -> Result<String> {
    let mut text = String::from(BASIC_TYPES);
    trace_block(&mut text, &meta.uuid);
    environment(&mut text, meta);
    for (place, clock) in meta.clocks.iter().enumerate() {
        let name = clock_name(clock, place);
        clock_block(&mut text, clock, &name);
        let suffix = if place == 0 {
            String::new()
        } else {
            format!("_{name}")
        };
        let headers = EVENT_HEADERS.replace("CLOCK", &name);
        text.push_str(&headers.replace("SUFFIX", &suffix));
    }
    for (id, stream) in streams.iter().enumerate() {
        stream_block(&mut text, id, stream, meta)?;
        let classes = stream.meta.classes.iter().zip(&stream.classes);
        for (class_id, (class, wire)) in classes.enumerate() {
            let level = stream.meta.log_level(class_id);
            event_block(&mut text, (id, class_id), (&class.name, level), wire)?;
        }
    }
    Ok(text)
}

/// A clock's name as a word.
fn clock_name(clock: &ClockMeta, place: usize) -> String {
    let name = written_name(&clock.name, Dialect::Ctf18);
    match name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        true => name,
        false => format!("clock{place}"),
    }
}

/// `8-4-4-4-12` hexadecimal digits.
pub(super) fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in uuid.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        push(&mut text, format_args!("{byte:02x}"));
    }
    text
}

/// Formatting into a `String` cannot fail.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(arguments);
}

fn trace_block(text: &mut String, uuid: &[u8; 16]) {
    push(
        text,
        format_args!(
            "trace {{\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"{}\";\n\tbyte_order = le;\n\
             \tpacket.header := struct {{\n\t\tuint32_t magic;\n\t\tuint8_t  uuid[16];\n\
             \t\tuint32_t stream_id;\n\t\tuint64_t stream_instance_id;\n\t}};\n}};\n\n",
            uuid_text(uuid)
        ),
    );
}

fn environment(text: &mut String, meta: &TraceMeta) {
    text.push_str("env {\n");
    for (name, value) in environment_of(meta) {
        let name = written_name(&name, Dialect::Ctf18);
        match value {
            EnvValue::Text(value) => push(text, format_args!("\t{name} = {};\n", quoted(&value))),
            EnvValue::Integer(value) => push(text, format_args!("\t{name} = {value};\n")),
        }
    }
    text.push_str("};\n\n");
}

/// The environment with what it says of losses.
pub(super) fn environment_of(meta: &TraceMeta) -> Vec<(String, EnvValue)> {
    let others = meta
        .environment
        .iter()
        .filter(|(name, _)| name != LOSSES_KEY);
    let between = (LOSSES_KEY.to_owned(), EnvValue::from(LOSSES_BETWEEN));
    let between = (!meta.losses_are_vague).then_some(between);
    others.cloned().chain(between).collect()
}

/// A clock's offset as whole seconds and ticks.
pub(super) fn offset(clock: &ClockMeta) -> (i64, i64) {
    let seconds = clock.wall_offset_ns.div_euclid(NS_PER_S);
    let rest_ns = clock.wall_offset_ns.rem_euclid(NS_PER_S);
    let ticks = i128::from(rest_ns) * i128::from(clock.frequency_hz) / i128::from(NS_PER_S);
    (seconds, ticks as i64)
}

fn clock_block(text: &mut String, clock: &ClockMeta, name: &str) {
    let (frequency_hz, wall_offset_ns) = (clock.frequency_hz, clock.wall_offset_ns);
    let (seconds, cycles) = offset(clock);
    push(text, format_args!("clock {{\n\tname = \"{name}\";\n"));
    push(text, format_args!("\tdescription = \"Monotonic Clock\";\n"));
    push(
        text,
        format_args!("\tfreq = {frequency_hz}; /* Frequency, in Hz */\n"),
    );
    text.push_str("\t/* clock value offset from Epoch is: offset * (1/freq) */\n");
    // Readers want the ticks of an offset to be positive; its seconds need not be.
    if i128::from(frequency_hz) == i128::from(NS_PER_S) && wall_offset_ns >= 0 {
        push(text, format_args!("\toffset = {wall_offset_ns};\n}};\n\n"));
    } else {
        push(
            text,
            format_args!("\toffset_s = {seconds};\n\toffset = {cycles};\n}};\n\n"),
        );
    }
    for (bits, align) in [(27, 1), (32, 8), (64, 8)] {
        push(
            text,
            format_args!(
                "typealias integer {{\n\tsize = {bits}; align = {align}; signed = false;\n\
                 \tmap = clock.{name}.value;\n}} := uint{bits}_clock_{name}_t;\n\n"
            ),
        );
    }
}

fn stream_block(
    text: &mut String,
    id: usize,
    stream: &Lowered<'_>,
    meta: &TraceMeta,
) -> Result<()> {
    let place = stream.meta.clock;
    let clock = meta.clocks.get(place).map(|clock| clock_name(clock, place));
    let is_timed = stream.meta.header != HeaderKind::Untimed;
    let clock = match (&clock, is_timed) {
        (None, true) => return Err(refuse("a stream's clock does not exist")),
        (clock, _) => clock.as_deref().unwrap_or_default(),
    };
    let suffix = if place == 0 {
        String::new()
    } else {
        format!("_{clock}")
    };
    let header = match stream.meta.header {
        HeaderKind::Compact => format!("struct event_header_compact{suffix}"),
        HeaderKind::Large => format!("struct event_header_large{suffix}"),
        HeaderKind::Untimed => "struct { uint32_t id; } align(8)".to_owned(),
    };
    push(
        text,
        format_args!("stream {{\n\tid = {id};\n\tevent.header := {header};\n"),
    );
    text.push_str("\tpacket.context := struct {\n");
    if is_timed {
        for name in ["timestamp_begin", "timestamp_end"] {
            push(text, format_args!("\t\tuint64_clock_{clock}_t {name};\n"));
        }
    }
    text.push_str("\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n");
    text.push_str("\t\tuint64_t packet_seq_num;\n\t\tunsigned long events_discarded;\n");
    if !stream.meta.has_no_cpu {
        text.push_str("\t\tuint32_t cpu_id;\n");
    }
    members(text, &stream.packet_context, 1)?;
    text.push_str("\t};\n");
    if !stream.event_context.is_empty() {
        text.push_str("\tevent.context := ");
        structure(text, &stream.event_context, 1)?;
        text.push_str(";\n");
    }
    text.push_str("};\n\n");
    Ok(())
}

fn event_block(
    text: &mut String,
    (stream_id, id): (usize, usize),
    (name, log_level): (&str, Option<i64>),
    wire: &ClassWire,
) -> Result<()> {
    push(
        text,
        format_args!("event {{\n\tname = {};\n\tid = {id};\n", quoted(name)),
    );
    push(text, format_args!("\tstream_id = {stream_id};\n"));
    if let Some(level) = log_level {
        push(text, format_args!("\tloglevel = {level};\n"));
    }
    for (scope, members) in BODY.into_iter().zip(&wire.scopes) {
        match scope {
            Scope::EventContext if !members.is_empty() => text.push_str("\tcontext := "),
            Scope::Payload => text.push_str("\tfields := "),
            _ => continue,
        }
        structure(text, members, 1)?;
        text.push_str(";\n");
    }
    text.push_str("};\n\n");
    Ok(())
}

/// `struct { … }` with its members a line each, at `depth`.
fn structure(text: &mut String, parts: &[Member], depth: usize) -> Result<()> {
    text.push_str("struct {\n");
    members(text, parts, depth)?;
    text.extend(std::iter::repeat_n('\t', depth));
    text.push('}');
    Ok(())
}

fn members(text: &mut String, parts: &[Member], depth: usize) -> Result<()> {
    for member in parts {
        text.extend(std::iter::repeat_n('\t', depth + 1));
        declare(text, &member.node, &format!("_{}", member.name), depth + 1)?;
        text.push_str(";\n");
    }
    Ok(())
}

/// A type, a name and the dimensions behind it, the outermost first.
fn declare(text: &mut String, node: &Node, name: &str, depth: usize) -> Result<()> {
    let mut dimensions = String::new();
    let mut node = node;
    loop {
        match &node.kind {
            Kind::Array(element, count) => {
                push(&mut dimensions, format_args!("[{count}]"));
                node = element;
            }
            Kind::Sequence(element, link) => {
                push(&mut dimensions, format_args!("[ {} ]", path(link)));
                node = element;
            }
            Kind::Text(size_bytes) => {
                push(&mut dimensions, format_args!("[{size_bytes}]"));
                character(text);
                break;
            }
            Kind::CountedText(link) => {
                push(&mut dimensions, format_args!("[ {} ]", path(link)));
                character(text);
                break;
            }
            _ => {
                scalar(text, node, depth)?;
                break;
            }
        }
    }
    push(text, format_args!(" {name}{dimensions}"));
    Ok(())
}

fn character(text: &mut String) {
    let character = Integer {
        text: true,
        ..Integer::le(8, true)
    };
    int(text, &character);
}

/// A reference as TSDL spells it: inside out, or from the start of another scope.
fn path(link: &Link) -> String {
    let names: Vec<String> = link.names.iter().map(|name| format!("_{name}")).collect();
    let names = names.join(".");
    match link.scope {
        _ if link.is_here => names,
        Scope::StreamContext => format!("stream.event.context.{names}"),
        Scope::EventContext => format!("event.context.{names}"),
        Scope::PacketContext => format!("stream.packet.context.{names}"),
        _ => format!("event.fields.{names}"),
    }
}

/// A type that needs nothing behind the name.
fn scalar(text: &mut String, node: &Node, depth: usize) -> Result<()> {
    match &node.kind {
        Kind::Int(integer) => enumeration(text, integer),
        Kind::Float {
            size_bits,
            big_endian,
        } => {
            let digits = if *size_bits == 32 { (8, 24) } else { (11, 53) };
            push(
                text,
                format_args!(
                    "floating_point {{ exp_dig = {}; mant_dig = {}; align = {};{} }}",
                    digits.0,
                    digits.1,
                    node.align_bits,
                    byte_order(*big_endian)
                ),
            );
        }
        Kind::String => text.push_str("string"),
        Kind::Struct(members) => structure(text, members, depth)?,
        Kind::Variant {
            selector, choices, ..
        } => {
            push(text, format_args!("variant <{}> {{\n", path(selector)));
            for choice in choices {
                text.extend(std::iter::repeat_n('\t', depth + 1));
                declare(text, &choice.node, &choice.written, depth + 1)?;
                text.push_str(";\n");
            }
            text.extend(std::iter::repeat_n('\t', depth));
            text.push('}');
        }
        _ => return Err(refuse("CTF 1.8 has no such type")),
    }
    Ok(())
}

/// An integer with its labels, when it has some.
fn enumeration(text: &mut String, integer: &Int) {
    let Int { integer, shows, .. } = integer;
    match shows {
        Shows::Label(mappings) if !mappings.is_empty() => {
            text.push_str("enum : ");
            int(text, integer);
            text.push_str(" { ");
            for IntegerMapping { label, first, last } in mappings {
                let label = quoted(label);
                let (first, last) = (bound(*first, integer), bound(*last, integer));
                match first == last {
                    true => push(text, format_args!("{label} = {first}, ")),
                    false => push(text, format_args!("{label} = {first} ... {last}, ")),
                }
            }
            text.push('}');
        }
        _ => int(text, integer),
    }
}

/// A label's bound as TSDL spells it: an unsigned one keeps its 64 bits.
fn bound(value: i64, integer: &Integer) -> String {
    if integer.signed {
        value.to_string()
    } else {
        (value as u64).to_string()
    }
}

fn int(text: &mut String, integer: &Integer) {
    let base = match integer.base {
        Base::Binary => 2,
        Base::Octal => 8,
        Base::Decimal => 10,
        Base::Hexadecimal => 16,
    };
    let encoding = if integer.text { "UTF8" } else { "none" };
    push(
        text,
        format_args!(
            "integer {{ size = {}; align = {}; signed = {}; encoding = {encoding}; \
             base = {base};{} }}",
            integer.size_bits,
            integer.align_bits.max(1),
            u8::from(integer.signed),
            byte_order(integer.big_endian),
        ),
    );
}

fn byte_order(big_endian: bool) -> &'static str {
    if big_endian { " byte_order = be;" } else { "" }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push('?'),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
