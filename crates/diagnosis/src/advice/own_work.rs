//! Advice where nobody else took the time: where the work goes, and what can be taken out of it.

use event::evidence::TaskRef;

use super::{check_threshold, then_check};
use crate::finding::{Advice, LateActivation, WaitedMutex};

/// For an activation that its task's own work made long; `mutexes` are those that it waited for.
pub(crate) fn own_work(late: &LateActivation, mutexes: &[WaitedMutex]) -> Vec<Advice> {
    let TaskRef { comm, tid, .. } = &late.task;
    let mut found = Vec::new();
    if late.page_faults > 0 {
        let faults = late.page_faults;
        found.push((
            "lock-memory",
            format!("{comm} met {faults} pages that were not there yet, in the midst of its work"),
            "mlockall(MCL_CURRENT | MCL_FUTURE) before the work, and touch its buffers once"
                .to_owned(),
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
    found.push((
        "profile-own-work",
        format!("nobody else took the time: a profile says which of {comm}'s functions do"),
        format!("perf record -g -t {tid} -- sleep 10; perf report --no-children"),
    ));
    let then_check = then_check(late, check_threshold(late));
    let advice = |(rule, because, command): (&'static str, String, String)| Advice {
        rule,
        because,
        command,
        then_check: then_check.clone(),
        alone: true,
    };
    found.into_iter().map(advice).collect()
}
