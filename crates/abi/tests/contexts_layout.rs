//! Check that every record of `bpf/context.h` has the same size and offsets in C and Rust.

mod compiler;

use std::mem::offset_of;

use abi::contexts::*;
use compiler::{Claims, claim};

fn claims() -> Claims {
    let mut claims = Claims::new();
    claim!(
        claims,
        RawContextConfig,
        "rts_context_config",
        [wanted, counters, cpus, bytes]
    );
    claim!(
        claims,
        RawContext,
        "rts_context",
        [
            time_ns,
            lost,
            tid,
            ppid,
            vpid,
            vtid,
            vppid,
            prio,
            nice,
            pid,
            comm,
            ids,
            virtual_ids,
            namespaces,
            counters,
            host
        ]
    );
    for (name, value) in [
        ("RTS_CONTEXT_COUNTERS", COUNTERS),
        ("RTS_CONTEXT_IDS", IDS),
        ("RTS_CONTEXT_NAMESPACES", NAMESPACES),
        ("RTS_CONTEXT_HOST_BYTES", HOST_BYTES),
        ("RTS_CONTEXT_NO_ID", NO_ID as usize),
        ("RTS_CONTEXT_TASK", WANTED_TASK as usize),
        ("RTS_CONTEXT_VIRTUAL", WANTED_VIRTUAL as usize),
        ("RTS_CONTEXT_ID", WANTED_ID as usize),
        ("RTS_CONTEXT_VIRTUAL_ID", WANTED_VIRTUAL_ID as usize),
        ("RTS_CONTEXT_NAMESPACE", WANTED_NAMESPACE as usize),
        ("RTS_CONTEXT_HOST", WANTED_HOST as usize),
    ] {
        claims.push((name.to_owned(), value));
    }
    claims
}

#[test]
fn every_record_of_contexts_has_the_layout_of_the_c_header() {
    compiler::check("contexts_layout", "bpf/context.h", &claims());
}
