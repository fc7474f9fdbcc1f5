//! What a recording cannot tell from the end of the work, and what is not judged to it.

use crate::count::counted;

/// Which sleeps end it that may have been inside of it: what follows an article.
pub(crate) fn sleep_that_ends_work(locks_known: bool) -> &'static str {
    match locks_known {
        true => "sleep for a program's semaphore or answer ends the work, too",
        false => {
            "sleep for a program's lock, semaphore or answer ends the work, too (record --events \
             default,futex tells locks)"
        }
    }
}

/// A fair task hands no chain on: what it wakes begins with that. A real-time one hands on what it
/// did since it slept last.
pub(crate) const BEFORE_FAIR_WAKER: &str = "what a fair task did before it woke one of them, and \
                                            a real-time one before its last sleep, is not judged";

/// Start-ups that took longer than the limit, which nobody may take for work that was in time, and
/// how many of their tasks did not sleep at all; none where there are none.
pub(crate) fn long_start_ups(count: u64, unslept: u64) -> Option<String> {
    let start_ups = counted(count, "start-up");
    let scope = "what a task does that was just made, up to its first sleep, is not judged";
    let never = match unslept {
        0 => String::new(),
        1 => " (1 of them without a sleep)".to_owned(),
        all => format!(" ({all} of them without a sleep)"),
    };
    (count > 0).then(|| format!("{start_ups} took longer{never}: {scope}"))
}
