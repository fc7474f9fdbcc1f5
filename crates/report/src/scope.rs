//! What a recording cannot tell from the end of the work.

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
