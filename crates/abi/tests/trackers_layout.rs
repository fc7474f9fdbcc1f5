//! Check that every record of `bpf/trackers/record.h` has the same size and offsets in C and Rust.

mod compiler;

use std::mem::offset_of;

use abi::trackers::*;
use compiler::{Claims, claim};

fn claims() -> Claims {
    let mut claims = Claims::new();
    claim!(
        claims,
        RawTracked,
        "rts_tracked",
        [
            begin_ns, end_ns, key, detail, group, cpu, series, flags, more, padding, task, other,
            label
        ]
    );
    claim!(
        claims,
        RawHit,
        "rts_tracker_hit",
        [number, tracked, stack, other_stack]
    );
    claim!(
        claims,
        RawSeries,
        "rts_tracker_series",
        [
            count, sum_ns, min_ns, max_ns, hits, suppressed, worst, buckets
        ]
    );
    claim!(
        claims,
        RawLosses,
        "rts_tracker_losses",
        [lost, full, unpaired, keys_full, storage_failures]
    );
    claim!(claims, RawKey, "rts_tracker_key", [key, group, series]);
    claim!(
        claims,
        RawSum,
        "rts_tracker_sum",
        [count, sum_ns, max_ns, detail, label]
    );
    claim!(claims, RawRow, "rts_tracker_row", [key, sum]);
    claim!(claims, RawWideSum, "rts_tracker_wide_sum", [sum, buckets]);
    claim!(claims, RawOpen, "rts_tracker_open", [tracked, issued_ns]);
    claim!(
        claims,
        RawConfig,
        "rts_tracker_config",
        [
            threshold_ns,
            waiting_ns,
            preempt_count_offset,
            prio_max,
            only_length,
            target_kind,
            cpus_filtered,
            turns,
            stacks,
            oracle,
            padding,
            name,
            only
        ]
    );
    pair_claims(&mut claims);
    constants(&mut claims);
    claims
}

fn constants(claims: &mut Claims) {
    for (name, value) in [
        ("RTS_SERIES_MAX", SERIES_MAX),
        ("RTS_ONLY_MAX", ONLY_MAX),
        ("RTS_KEYS_MAX", KEYS_MAX),
        ("RTS_ROWS_BITS", ROWS_BITS),
        ("RTS_WIDE_KEYS_MAX", WIDE_KEYS_MAX),
        ("RTS_OPEN_MAX", OPEN_MAX),
        ("RTS_TRACKED_OPEN", TRACKED_OPEN as usize),
        ("-RTS_SMALL_FIRST", -SMALL_FIRST as usize),
        ("RTS_CALL_OF_32_BITS", CALL_OF_32_BITS),
        ("RTS_SMALL_KEYS", SMALL_KEYS),
        ("RTS_SMALL_SERIES", SMALL_SERIES),
        ("RTS_PAIR_NUMBERS", PAIR_NUMBERS),
        ("RTS_PAIR_ARGUMENTS", PAIR_ARGUMENTS),
        ("RTS_PAIR_SLOTS", PAIR_SLOTS),
        ("RTS_PAIR_TEXT", PAIR_TEXT),
        ("RTS_PAIR_SITES", PAIR_SITES),
        ("RTS_MARK_NOTHING", usize::from(MARK_NOTHING)),
        ("RTS_MARK_CONSTANT", usize::from(MARK_CONSTANT)),
        ("RTS_MARK_REGISTER", usize::from(MARK_REGISTER)),
        ("RTS_MARK_MEMORY", usize::from(MARK_MEMORY)),
        ("RTS_MARK_NO_REGISTER", usize::from(MARK_NO_REGISTER)),
    ] {
        claims.push((name.to_owned(), value));
    }
}

fn pair_claims(claims: &mut Claims) {
    claim!(
        claims,
        RawMarkArgument,
        "rts_mark_argument",
        [offset, base, index, kind, shift, size_bytes, is_signed]
    );
    claim!(claims, RawMark, "rts_mark", [arguments]);
    claim!(claims, RawPairKey, "rts_pair_key", [numbers, text]);
    claim!(claims, RawPairOpen, "rts_pair_open", [begin_ns, task]);
    claim!(
        claims,
        RawPairFrame,
        "rts_pair_frame",
        [now_ns, prio, key, arguments, slots, looked_at]
    );
    claim!(
        claims,
        RawPairCounts,
        "rts_pair_counts",
        [seen, matched, alone]
    );
    claim!(
        claims,
        RawPairSeen,
        "rts_pair_seen",
        [key, time_ns, side, tid]
    );
}

#[test]
fn every_record_of_the_trackers_has_the_layout_of_the_c_header() {
    compiler::check("trackers_layout", "bpf/trackers/record.h", &claims());
}
