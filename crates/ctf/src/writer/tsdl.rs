//! The metadata as LTTng writes it: plain TSDL, names escaped with a leading underscore.

use std::fmt::Write;

use event::{
    Base, Error, ErrorKind, EventClass, Field, FieldType, Integer, IntegerMapping, Result, Scope,
};

use crate::{LOSSES_BETWEEN, LOSSES_KEY};

use super::{ClockMeta, EnvValue, HeaderKind, StreamMeta, TraceMeta};

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

const PACKET_CONTEXT: &str = "\
struct packet_context {
\tuint64_clock_CLOCK_t timestamp_begin;
\tuint64_clock_CLOCK_t timestamp_end;
\tuint64_t content_size;
\tuint64_t packet_size;
\tuint64_t packet_seq_num;
\tunsigned long events_discarded;
\tuint32_t cpu_id;
};

struct event_header_compact {
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

struct event_header_large {
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
pub(super) fn metadata(meta: &TraceMeta) -> Result<String> {
    identifier(&meta.clock.name)?;
    let mut text = String::from(BASIC_TYPES);
    trace_block(&mut text, &meta.uuid);
    environment(&mut text, &meta.environment)?;
    clock(&mut text, &meta.clock);
    text.push_str(&PACKET_CONTEXT.replace("CLOCK", &meta.clock.name));
    for (id, stream) in meta.streams.iter().enumerate() {
        stream_block(&mut text, id, stream)?;
        for (class_id, class) in stream.classes.iter().enumerate() {
            event_block(&mut text, id, class_id, stream, class)?;
        }
    }
    Ok(text)
}

/// `8-4-4-4-12` hexadecimal digits.
fn uuid_text(uuid: &[u8; 16]) -> String {
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

fn environment(text: &mut String, entries: &[(String, EnvValue)]) -> Result<()> {
    text.push_str("env {\n");
    for (name, value) in entries {
        identifier(name)?;
        match value {
            EnvValue::Text(value) => push(text, format_args!("\t{name} = {};\n", quoted(value))),
            EnvValue::Integer(value) => push(text, format_args!("\t{name} = {value};\n")),
        }
    }
    push(
        text,
        format_args!("\t{LOSSES_KEY} = \"{LOSSES_BETWEEN}\";\n"),
    );
    text.push_str("};\n\n");
    Ok(())
}

fn clock(text: &mut String, clock: &ClockMeta) {
    let ClockMeta {
        name,
        frequency_hz,
        wall_offset_ns,
    } = clock;
    let seconds = wall_offset_ns.div_euclid(NS_PER_S);
    let rest_ns = wall_offset_ns.rem_euclid(NS_PER_S);
    let cycles = i128::from(rest_ns) * i128::from(*frequency_hz) / i128::from(NS_PER_S);
    push(text, format_args!("clock {{\n\tname = \"{name}\";\n"));
    push(text, format_args!("\tdescription = \"Monotonic Clock\";\n"));
    push(
        text,
        format_args!("\tfreq = {frequency_hz}; /* Frequency, in Hz */\n"),
    );
    text.push_str("\t/* clock value offset from Epoch is: offset * (1/freq) */\n");
    if i128::from(*frequency_hz) == i128::from(NS_PER_S) {
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

fn stream_block(text: &mut String, id: usize, stream: &StreamMeta) -> Result<()> {
    let header = match stream.header {
        HeaderKind::Compact => "event_header_compact",
        HeaderKind::Large => "event_header_large",
    };
    push(
        text,
        format_args!("stream {{\n\tid = {id};\n\tevent.header := struct {header};\n"),
    );
    text.push_str("\tpacket.context := struct packet_context;\n");
    if !stream.event_context.is_empty() {
        let context: Vec<&Field> = stream.event_context.iter().collect();
        text.push_str("\tevent.context := ");
        structure(text, &context, 1)?;
        text.push_str(";\n");
    }
    text.push_str("};\n\n");
    Ok(())
}

fn event_block(
    text: &mut String,
    stream_id: usize,
    id: usize,
    stream: &StreamMeta,
    class: &EventClass,
) -> Result<()> {
    let of_scope = |scope| -> Vec<&Field> {
        class
            .fields
            .iter()
            .filter(|field| field.scope == scope)
            .collect()
    };
    let (payload, context) = (of_scope(Scope::Payload), of_scope(Scope::EventContext));
    // A class read from a trace also lists the stream's context, which was written above.
    let inherited = |field: &&Field| stream.event_context.iter().any(|f| f.name == field.name);
    let shared = of_scope(Scope::StreamContext)
        .iter()
        .filter(|f| inherited(f))
        .count();
    if payload.len() + context.len() + shared != class.fields.len() {
        return Err(
            refuse("fields of this scope belong to the stream, not to its events")
                .found(format!("event '{}'", class.name)),
        );
    }
    push(
        text,
        format_args!(
            "event {{\n\tname = {};\n\tid = {id};\n",
            quoted(&class.name)
        ),
    );
    push(text, format_args!("\tstream_id = {stream_id};\n"));
    if !context.is_empty() {
        text.push_str("\tcontext := ");
        structure(text, &context, 1)?;
        text.push_str(";\n");
    }
    text.push_str("\tfields := ");
    structure(text, &payload, 1)?;
    text.push_str(";\n};\n\n");
    Ok(())
}

/// `struct { … }` with its members a line each, at `depth`.
fn structure(text: &mut String, fields: &[&Field], depth: usize) -> Result<()> {
    text.push_str("struct {\n");
    for (place, field) in fields.iter().enumerate() {
        identifier(&field.name)?;
        text.extend(std::iter::repeat_n('\t', depth + 1));
        member(text, field, &fields[..place], depth + 1)?;
        text.push_str(";\n");
    }
    text.extend(std::iter::repeat_n('\t', depth));
    text.push('}');
    Ok(())
}

/// A member with its type before and its length behind the name.
fn member(text: &mut String, field: &Field, earlier: &[&Field], depth: usize) -> Result<()> {
    let name = &field.name;
    match &field.ty {
        FieldType::Text { size_bytes } => {
            scalar(
                text,
                &FieldType::Integer(Integer {
                    text: true,
                    ..Integer::le(8, true)
                }),
                depth,
            )?;
            push(text, format_args!(" _{name}[{size_bytes}]"));
        }
        FieldType::Array { element, count } => {
            scalar(text, element, depth)?;
            push(text, format_args!(" _{name}[{count}]"));
        }
        FieldType::Sequence { element, length } => {
            let is_length = |f: &&&Field| f.name == *length || format!("_{}", f.name) == *length;
            let Some(length) = earlier.iter().find(is_length) else {
                return Err(refuse("a sequence needs its length field before it")
                    .found(format!("'{name}' wants '{length}'")));
            };
            scalar(text, element, depth)?;
            push(text, format_args!(" _{name}[ _{} ]", length.name));
        }
        ty => {
            scalar(text, ty, depth)?;
            push(text, format_args!(" _{name}"));
        }
    }
    Ok(())
}

/// A type that needs nothing behind the name.
fn scalar(text: &mut String, ty: &FieldType, depth: usize) -> Result<()> {
    match ty {
        FieldType::Integer(integer) => int(text, integer),
        FieldType::Enum(integer, mappings) => {
            text.push_str("enum : ");
            int(text, integer)?;
            text.push_str(" { ");
            for IntegerMapping { label, first, last } in mappings.iter() {
                let label = quoted(label);
                let (first, last) = (bound(*first, integer), bound(*last, integer));
                match first == last {
                    true => push(text, format_args!("{label} = {first}, ")),
                    false => push(text, format_args!("{label} = {first} ... {last}, ")),
                }
            }
            text.push('}');
            Ok(())
        }
        FieldType::Float {
            size_bits,
            big_endian,
            ..
        } => {
            let (exponent, mantissa) = match size_bits {
                32 => (8, 24),
                64 => (11, 53),
                _ => return Err(refuse("a float must have 32 or 64 bits")),
            };
            let order = byte_order(*big_endian);
            push(
                text,
                format_args!(
                    "floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = 8;\
                     {order} }}"
                ),
            );
            Ok(())
        }
        FieldType::String => {
            text.push_str("string");
            Ok(())
        }
        FieldType::Struct(fields) => structure(text, &fields.iter().collect::<Vec<_>>(), depth),
        FieldType::Text { .. } | FieldType::Array { .. } | FieldType::Sequence { .. } => Err(
            refuse("an array's elements must not be arrays: put them into a structure"),
        ),
        FieldType::Bool(integer) | FieldType::Flags(integer, _) => int(text, integer),
        FieldType::Variant { .. }
        | FieldType::Optional { .. }
        | FieldType::Blob { .. }
        | FieldType::WideText { .. } => Err(refuse(
            "variants, optional fields, blobs and wide texts are read, not written",
        )),
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

fn int(text: &mut String, integer: &Integer) -> Result<()> {
    let whole = matches!(integer.size_bits, 8 | 16 | 32 | 64);
    if !whole || integer.align_bits > 8 {
        return Err(
            refuse("integers must be whole bytes, aligned to bytes").found(format!(
                "{} bits at {}",
                integer.size_bits, integer.align_bits
            )),
        );
    }
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
            "integer {{ size = {}; align = 8; signed = {}; encoding = {encoding}; \
             base = {base};{} }}",
            integer.size_bits,
            u8::from(integer.signed),
            byte_order(integer.big_endian),
        ),
    );
    Ok(())
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

/// Names go into the metadata bare: letters, digits and underscores only.
fn identifier(name: &str) -> Result<()> {
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain {
        return Ok(());
    }
    Err(
        refuse("a name in a trace is made of letters, digits and underscores")
            .found(format!("'{name}'")),
    )
}

fn refuse(what: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, what)
}
