//! Check that every record of `bpf/monitor.h` has the same size and offsets in C and Rust.

mod compiler;

use std::mem::offset_of;

use abi::monitor::*;
use compiler::{Claims, claim};

fn claims() -> Claims {
    let mut claims = Claims::new();
    claim!(
        claims,
        RawWorst,
        "rts_monitor_worst",
        [
            value_ns,
            at_ns,
            parts_ns,
            instruction,
            victim,
            culprit,
            cpu,
            call,
            mode,
            timer,
            padding,
            stack
        ]
    );
    claim!(
        claims,
        RawSums,
        "rts_monitor_sums",
        [sum_ns, max_ns, min_inverted_ns, busy]
    );
    claim!(
        claims,
        RawSeries,
        "rts_monitor_series",
        [sums, buckets, worst]
    );
    claim!(claims, RawLinear, "rts_monitor_linear", [counts]);
    claim!(
        claims,
        RawLosses,
        "rts_monitor_losses",
        [storage_failures, unpaired, worst_missed, hidden, unseen]
    );
    claim!(
        claims,
        RawConfig,
        "rts_monitor_config",
        [linear, until_return, every_task, padding]
    );
    let numbers = numbers().into_iter();
    claims.extend(numbers.map(|(name, value)| (name.to_owned(), value)));
    claims
}

fn numbers() -> Vec<(&'static str, usize)> {
    vec![
        ("RTS_MONITOR_PHASES", PHASES_MAX),
        ("RTS_MONITOR_PHASES_ROOM", PHASES_ROOM),
        ("RTS_MONITOR_GROUPS", GROUPS_MAX),
        ("RTS_GROUP_REAL_TIME", GROUP_REAL_TIME as usize),
        ("RTS_GROUP_NAMED", GROUP_NAMED as usize),
        ("RTS_LINEAR_MAX", LINEAR_MAX),
        ("RTS_PHASE_TIMER", Phase::Timer as usize),
        ("RTS_PHASE_WAKEUP", Phase::Wakeup as usize),
        ("RTS_PHASE_SWITCH", Phase::Switch as usize),
        ("RTS_PHASE_TIMER_WAKEUP", Phase::TimerWakeup as usize),
        (
            "RTS_PHASE_TIMER_WAKEUP_SWITCH",
            Phase::TimerWakeupSwitch as usize,
        ),
        ("RTS_PHASE_RETURN", Phase::Return as usize),
        ("RTS_PHASE_TOTAL", Phase::Total as usize),
        ("RTS_MODE_USER", Mode::User as usize),
        ("RTS_MODE_IDLE", Mode::Idle as usize),
        ("RTS_MODE_ENABLED", Mode::Enabled as usize),
    ]
}

#[test]
fn every_record_of_the_monitor_has_the_layout_of_the_c_header() {
    compiler::check("monitor_layout", "bpf/monitor.h", &claims());
}
