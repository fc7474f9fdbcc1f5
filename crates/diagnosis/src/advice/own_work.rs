//! Advice where a task's own work took most of the time: where it goes, what can be taken out
//! of it, and what keeps others out of it who took a good part.

use event::evidence::TaskRef;

use super::{LOCK_MEMORY, check_threshold, then_check};
use crate::finding::{Advice, LateActivation, WaitedMutex};

/// Faults that cannot have taken this part of an activation are not why it is late.
const FAULTS_SHARE_MIN: f64 = 0.1;

/// Whether its page faults may have taken a good part of it: how long they took nobody tells.
pub(crate) fn may_be_faults(late: &LateActivation) -> bool {
    late.page_faults > 0 && late.page_faults_max.share_of(late.latency()) >= FAULTS_SHARE_MIN
}

/// For an activation that its task's own work made long; `mutexes` are those that it waited for.
/// Whether it was all alone, or else what to do against those who took a good part of it: where
/// that would have been enough, it comes first, as work cannot be left away.
pub(crate) fn own_work(
    late: &LateActivation,
    mutexes: &[WaitedMutex],
    (was_alone, others): (bool, Vec<Advice>),
) -> Vec<Advice> {
    let TaskRef { comm, tid, .. } = &late.task;
    let mut found = Vec::new();
    if may_be_faults(late) {
        let faults = late.page_faults;
        found.push((
            "lock-memory",
            format!("{comm} met {faults} pages that were not there yet, in the midst of its work"),
            LOCK_MEMORY.to_owned(),
        ));
    }
    if !mutexes.is_empty() {
        let count = mutexes.len();
        found.push((
            "hold-lock-shorter",
            format!("it waited for {count} of its program's mutexes in it"),
            "do less under the mutex, or hand the data over without one".to_owned(),
        ));
    }
    let why = match was_alone {
        true => "no other task had its CPU",
        false => "its own work is the longest part",
    };
    found.push((
        "profile-own-work",
        // To spin for a lock of its program's is its own work, as far as any event tells.
        format!("{why}: a profile says which of {comm}'s functions take it, or wait in a loop"),
        format!("perf record -g -t {tid} -- sleep 10; perf report --no-children"),
    ));
    let then_check = then_check(late, check_threshold(late));
    let are_enough = others.iter().all(|advice| advice.alone);
    let cause = others.iter().map(|advice| advice.cause + 1).max();
    let advice = |(rule, because, command): (&'static str, String, String)| Advice {
        rule,
        because,
        command,
        then_check: then_check.clone(),
        alone: are_enough,
        cause: cause.unwrap_or(0),
    };
    let is_given = |command: &String| others.iter().any(|given| given.command == *command);
    found.retain(|(_, _, command)| !is_given(command));
    let own: Vec<Advice> = found.into_iter().map(advice).collect();
    match are_enough {
        true => [others, own].concat(),
        false => [own, others].concat(),
    }
}
