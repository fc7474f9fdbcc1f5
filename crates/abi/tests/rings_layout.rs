//! Check that the shared memory of traced processes is the same to C and to Rust.

mod compiler;

use std::mem::offset_of;

use abi::filters;
use abi::rings::*;
use compiler::{Claims, claim};

fn claims() -> Claims {
    let mut claims = Claims::new();
    claim!(
        claims,
        Header,
        "rtscope_header",
        [
            magic,
            version,
            header_bytes,
            file_bytes,
            begin_ns,
            begin_counter,
            pair_counter,
            pair_ns,
            pid,
            clock,
            mode,
            rseq,
            rings_length,
            block_ns,
            controls_offset,
            switches_offset,
            switches_bytes,
            filters_offset,
            filters_bytes,
            objects_offset,
            objects_bytes,
            table_offset,
            table_bytes,
            data_offset,
            ring_bytes,
            subbuffer_bytes,
            table_used,
            filters_used,
            objects_used,
            unregistered,
            name,
            sets_length,
            padding,
            session,
            more,
            room_bytes,
            subbuffers,
            padding_behind,
        ]
    );
    claims.extend(sets());
    claims.extend(parts());
    claims
}

/// What belongs to each recorder.
fn sets() -> Claims {
    let mut claims = Claims::new();
    claim!(
        claims,
        Set,
        "rtscope_set",
        [
            session,
            data_offset,
            ring_bytes,
            subbuffer_bytes,
            mode,
            padding
        ]
    );
    claim!(claims, Filters, "rtscope_filters", [at]);
    claims
}

/// What a ring file holds besides its header.
fn parts() -> Claims {
    let mut claims = Claims::new();
    claim!(
        claims,
        Ring,
        "rtscope_ring",
        [head, owner, lost, tail, lost_stated, absent]
    );
    claim!(
        claims,
        Switch,
        "rtscope_switch",
        [enabled, sets, id, filter]
    );
    claim!(claims, Record, "rtscope_record", [words, id, tid, time]);
    claim!(
        claims,
        Entry,
        "rtscope_entry",
        [
            entry_bytes,
            text_bytes,
            id,
            kind,
            switch_offset,
            code_address
        ]
    );
    claim!(
        claims,
        Loaded,
        "rtscope_loaded",
        [
            entry_bytes,
            build_id_bytes,
            path_bytes,
            begin,
            bytes,
            bias,
            noticed_ns
        ]
    );
    claims
}

/// Constants and enumerations.
fn values() -> Claims {
    [
        ("RTSCOPE_MAGIC", MAGIC as usize),
        ("RTSCOPE_LAYOUT_VERSION", LAYOUT_VERSION as usize),
        (
            "RTSCOPE_LAYOUT_VERSION_SIZED",
            LAYOUT_VERSION_SIZED as usize,
        ),
        (
            "RTSCOPE_LAYOUT_VERSION_ONE_SET",
            LAYOUT_VERSION_ONE_SET as usize,
        ),
        ("RTSCOPE_SETS_MAX", SETS_MAX),
        ("RTSCOPE_ID_PADDING", usize::from(ID_PADDING)),
        ("RTSCOPE_SUBBUFFERS_MAX", SUBBUFFERS_MAX as usize),
        ("RTSCOPE_SUBBUFFER_BYTES_MIN", SUBBUFFER_BYTES_MIN as usize),
        ("RTSCOPE_RING_BYTES_MAX", RING_BYTES_MAX as usize),
        ("RTSCOPE_CPUS_MAX", CPUS_MAX as usize),
        ("RTSCOPE_PAYLOAD_BYTES_MAX", PAYLOAD_BYTES_MAX),
        ("RTSCOPE_PAIR_WIDTH_NS", PAIR_WIDTH_NS as usize),
        ("RTSCOPE_CLOCK_COUNTER", CLOCK_COUNTER as usize),
        ("RTSCOPE_CLOCK_MONOTONIC", CLOCK_MONOTONIC as usize),
        ("RTSCOPE_MODE_DISCARD", MODE_DISCARD as usize),
        ("RTSCOPE_MODE_OVERWRITE", MODE_OVERWRITE as usize),
        ("RTSCOPE_MODE_BLOCK", MODE_BLOCK as usize),
        ("RTSCOPE_ENABLED", usize::from(ENABLED)),
        ("RTSCOPE_FILTERED", usize::from(FILTERED)),
        ("RTSCOPE_LOSSES", LOSSES),
        ("RTSCOPE_FIELD_END", usize::from(FIELD_END)),
        ("RTSCOPE_FIELD_U8", usize::from(FIELD_U8)),
        ("RTSCOPE_FIELD_U64", usize::from(FIELD_U8) + 3),
        ("RTSCOPE_FIELD_I8", usize::from(FIELD_I8)),
        ("RTSCOPE_FIELD_I64", usize::from(FIELD_I8) + 3),
        ("RTSCOPE_FIELD_X8", usize::from(FIELD_X8)),
        ("RTSCOPE_FIELD_X64", usize::from(FIELD_X8) + 3),
        ("RTSCOPE_FIELD_F32", usize::from(FIELD_F32)),
        ("RTSCOPE_FIELD_F64", usize::from(FIELD_F64)),
        ("RTSCOPE_FIELD_TEXT", usize::from(FIELD_TEXT)),
        ("RTSCOPE_FIELD_BYTES", usize::from(FIELD_BYTES)),
        ("RTSCOPE_FIELD_HIDDEN", usize::from(FIELD_HIDDEN)),
        ("RTSCOPE_FIELD_BIG_ENDIAN", usize::from(FIELD_BIG_ENDIAN)),
        ("RTSCOPE_FIELD_ENUMERATION", usize::from(FIELD_ENUMERATION)),
        ("RTSCOPE_FIELD_ARRAY", usize::from(FIELD_ARRAY)),
        ("RTSCOPE_FIELD_SEQUENCE", usize::from(FIELD_SEQUENCE)),
        ("RTSCOPE_ENTRY_EVENT", ENTRY_EVENT as usize),
        ("RTSCOPE_ENTRY_ENUMERATION", ENTRY_ENUMERATION as usize),
        ("RTSCOPE_ENTRY_NOTE", ENTRY_NOTE as usize),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// Adds constants that C calls the same behind a prefix.
macro_rules! filter_constants {
    ($($name:ident)*) => {
        vec![$((
            concat!("RTSCOPE_FILTER_", stringify!($name)).to_owned(),
            filters::$name as usize,
        )),*]
    };
}

fn filter_claims() -> Claims {
    let mut claims: Claims = filter_constants!(
        INSTRUCTIONS_MAX REGISTERS PASS DROP PLACE SKIP SKIP_COUNTED LOAD INTEGER FLOAT FACT
        UNARY BINARY TEXT IF_COMPARE IF_NOT_ZERO IF_VALUE IF_TEXT IF_LIKE EQUAL
        NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL ADD SUBTRACT MULTIPLY DIVIDE
        REMAINDER AND OR XOR SHIFT_LEFT SHIFT_RIGHT ANY ONE BYTE SET
    );
    claim!(
        claims,
        filters::Filter,
        "rtscope_filter",
        [instructions_length, constants_bytes]
    );
    claim!(
        claims,
        filters::Instruction,
        "rtscope_instruction",
        [op, a, b, c, target, value]
    );
    claims
}

#[test]
fn filters_have_the_layout_of_the_c_header() {
    compiler::check(
        "filters_layout",
        "probe/include/rtscope/filter.h",
        &filter_claims(),
    );
}

#[test]
fn the_shared_memory_has_the_layout_of_the_c_header() {
    let mut all = claims();
    all.extend(values());
    let numbers = abi::numbers::NUMBERS.iter();
    let code = |(name, code, ..): &(&str, u8, u8, _)| {
        (format!("RTSCOPE_FIELD_{name}"), usize::from(*code))
    };
    all.extend(numbers.map(code));
    compiler::check("rings_layout", "probe/include/rtscope/layout.h", &all);
}
