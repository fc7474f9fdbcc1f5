//! Check that every record of `bpf/syscall.h` has the same size and offsets in C and Rust.

mod compiler;

use std::mem::offset_of;

use abi::syscalls::*;
use compiler::{Claims, claim};

fn claims() -> Claims {
    let mut claims = Claims::new();
    claim!(
        claims,
        RawContent,
        "rts_content",
        [kind, argument, length, size]
    );
    claim!(
        claims,
        RawCall,
        "rts_call",
        [wanted, again, padding, entry, exit]
    );
    claim!(
        claims,
        RawSyscall,
        "rts_syscall",
        [
            time_ns, result, arguments, lost, tid, number, flags, lengths
        ]
    );
    claim!(
        claims,
        RawSyscallCounters,
        "rts_syscall_counters",
        [lost, left_out]
    );
    for (name, value) in [
        ("RTS_CALL_ARGUMENTS", ARGUMENTS),
        ("RTS_CALL_CONTENTS_MAX", CONTENTS_MAX),
        ("RTS_CALLS_MAX", CALLS_MAX),
        ("RTS_CALL_TEXT_BYTES", TEXT_BYTES),
        ("RTS_CALL_BLOCK_BYTES", BLOCK_BYTES),
        ("RTS_CALL_UNREADABLE", usize::from(UNREADABLE)),
        ("RTS_CONTENT_TEXT", usize::from(CONTENT_TEXT)),
        ("RTS_CONTENT_FIXED", usize::from(CONTENT_FIXED)),
        ("RTS_CONTENT_LENGTH", usize::from(CONTENT_LENGTH)),
        ("RTS_CONTENT_POINTED", usize::from(CONTENT_POINTED)),
        ("RTS_CONTENT_RESULT", usize::from(CONTENT_RESULT)),
        ("RTS_CONTENT_VECTOR", usize::from(CONTENT_VECTOR)),
        ("RTS_CONTENT_MESSAGE", usize::from(CONTENT_MESSAGE)),
        ("RTS_CONTENT_NAME", usize::from(CONTENT_NAME)),
        ("RTS_WANTED_ENTRY", usize::from(WANTED_ENTRY)),
        ("RTS_WANTED_EXIT", usize::from(WANTED_EXIT)),
        ("RTS_SYSCALL_EXIT", SYSCALL_EXIT as usize),
        ("RTS_SYSCALL_COMPAT", SYSCALL_COMPAT as usize),
        ("RTS_SYSCALL_AGAIN", SYSCALL_AGAIN as usize),
        ("RTS_SYSCALL_FAULT", SYSCALL_FAULT as usize),
    ] {
        claims.push((name.to_owned(), value));
    }
    claims
}

#[test]
fn every_record_of_system_calls_has_the_layout_of_the_c_header() {
    compiler::check("syscalls_layout", "bpf/syscall.h", &claims());
}
