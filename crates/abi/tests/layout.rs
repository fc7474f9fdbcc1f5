//! Check that every record of `bpf/event.h` has the same size and offsets in C and in Rust.
//!
//! A C compiler says what the header means: the test writes a small program that prints one number
//! per line, builds it with `cc`, and compares.

mod compiler;

use std::mem::offset_of;

use abi::raw::*;
use compiler::{Claims, claim};

fn claims() -> Claims {
    let mut claims = Claims::new();
    hits(&mut claims);
    late_ones(&mut claims);
    cycles(&mut claims);
    counters(&mut claims);
    configuration(&mut claims);
    groups(&mut claims);
    values(&mut claims);
    claims.extend(event::evidence::kernel_layout());
    claims
}

/// A hit and its parts.
fn hits(claims: &mut Claims) {
    claim!(
        claims,
        Step,
        "rts_step",
        [time_ns, cpu, id, prio, kind, padding, comm]
    );
    claim!(
        claims,
        Hit,
        "rts_hit",
        [
            id,
            origin_ns,
            end_ns,
            target,
            culprit,
            end_kind,
            preemptions,
            overflow,
            flags,
            steps_length,
            cost_ns,
            steps,
            waker_stack,
            wakee_stack,
            culprit_stack,
        ]
    );
}

/// A late activation in short.
fn late_ones(claims: &mut Claims) {
    claim!(
        claims,
        Late,
        "rts_late",
        [
            origin_ns,
            began_ns,
            end_ns,
            target,
            culprit,
            end_kind,
            preemptions,
        ]
    );
}

/// What was seen of a target's cycles.
fn cycles(claims: &mut Claims) {
    claim!(
        claims,
        Cycles,
        "rts_cycles",
        [
            task,
            cycles,
            sleeps,
            over,
            worst_begin_ns,
            worst_end_ns,
            gaps_length,
            by_others,
            gaps_us,
        ]
    );
}

/// Evidence, counters and profiles.
fn counters(claims: &mut Claims) {
    claim!(
        claims,
        Evidence,
        "rts_evidence",
        [sequence, time_ns, kind, padding, words]
    );
    claim!(
        claims,
        EvidenceRing,
        "rts_evidence_ring",
        [head, padding, slots]
    );
    claim!(
        claims,
        Counters,
        "rts_counters",
        [
            samples,
            worst_ns,
            suppressed,
            lost,
            stale,
            repaired,
            untracked,
            storage_failures,
            dropped,
            unseen,
            undated,
            unplaced,
            unmeant,
            renamed,
            unslept,
            start_ups,
            buckets,
        ]
    );
    claim!(
        claims,
        Profile,
        "rts_profile",
        [calls, total_ns, max_ns, buckets]
    );
    claim!(
        claims,
        Phases,
        "rts_phases",
        [entry_ns, wakeup_ns, switch_ns, padding]
    );
}

/// The configuration.
fn configuration(claims: &mut Claims) {
    claim!(
        claims,
        Pattern,
        "rts_pattern",
        [accept, loops, r#match, of_process, padding]
    );
    claim!(claims, Prios, "rts_prios", [first, last]);
    claim!(
        claims,
        Config,
        "rts_config",
        [
            threshold_ns,
            rate_limit_ns,
            hits_max,
            waiting_ns,
            evidence_floor_ns,
            window_ns,
            slack_floor_ns,
            steal_offset,
            irq_regs_offset,
            rq_offset,
            prio_max,
            softirq,
            irqs_length,
            irqs,
            tids_length,
            tids,
            pids_length,
            pids,
            prios_length,
            prios,
            namespaces_length,
            namespaces,
            family,
            levels_up,
            group_names_length,
            patterns_length,
            cpus_max,
            target_kind,
            end_kind,
            new_worst_only,
            waker_stacks,
            profile,
            cpus_filtered,
            real_time,
            notes_late,
            groups,
            in_namespace,
            acts,
            softirqs_in_tasks,
            family_named,
            beside,
            padding,
            cpus,
            patterns,
            group_names,
        ]
    );
}

/// Control groups.
fn groups(claims: &mut Claims) {
    claim!(claims, Group, "rts_group", [id, hierarchy, padding]);
    claim!(
        claims,
        GroupName,
        "rts_group_name",
        [
            head_length,
            tail_length,
            last_length,
            is_open,
            is_whole,
            padding,
            head,
            tail
        ]
    );
}

/// Constants and enumerations.
fn values(claims: &mut Claims) {
    for (name, value) in [
        ("RTS_ABI_VERSION", ABI_VERSION as usize),
        ("RTS_BUCKETS_MAX", BUCKETS_MAX),
        ("RTS_EVIDENCE_SLOTS", EVIDENCE_SLOTS),
        ("RTS_PROGRAMS_MAX", PROGRAMS_MAX),
        ("RTS_GROUPS_MAX", GROUPS_MAX),
        ("RTS_PHASE_THREADS_MAX", PHASE_THREADS_MAX),
        ("RTS_GAPS_MAX", GAPS_MAX),
        (
            "RTS_STEP_BLOCKED",
            event::evidence::StepKind::Blocked as usize,
        ),
        (
            "RTS_STEP_PREEMPTED",
            event::evidence::StepKind::Preempted as usize,
        ),
        (
            "RTS_END_WAITING",
            event::evidence::EndKind::Waiting as usize,
        ),
        ("RTS_MODE_IDLE", event::evidence::Mode::Idle as usize),
        ("RTS_MODE_ENABLED", event::evidence::Mode::Enabled as usize),
        ("RTS_TARGET_FLAGGED", TARGET_FLAGGED as usize),
        (
            "RTS_BLOCKED_MUTEX",
            event::evidence::BlockedOn::Mutex as usize,
        ),
        ("RTS_CHAIN_REPAIRED", CHAIN_REPAIRED as usize),
        ("RTS_CHAIN_UNSEEN", CHAIN_UNSEEN as usize),
        ("RTS_CHAIN_NEAR", CHAIN_NEAR as usize),
        ("RTS_CHAIN_STRANGER", CHAIN_STRANGER as usize),
        ("RTS_BESIDE_NOBODY", BESIDE_NOBODY as usize),
        ("RTS_BESIDE_WOKEN", BESIDE_WOKEN as usize),
        ("RTS_BESIDE_ALL", BESIDE_ALL as usize),
        (
            "(unsigned long)-RTS_IRQ_WORK",
            event::evidence::irq::IRQ_WORK.unsigned_abs() as usize,
        ),
    ] {
        claims.push((name.to_owned(), value));
    }
}

#[test]
fn every_record_has_the_layout_of_the_c_header() {
    compiler::check("layout", "bpf/event.h", &claims());
}
