//! For how long a measurement measured.

use std::sync::{Mutex, PoisonError};

use event::{Duration, Instant};
use host::clock::Clock;

/// From each begin until the CPUs are lent or the last thread has ended, whoever notices that when;
/// no measuring thread looks at it.
#[derive(Debug, Default)]
pub(super) struct Measured(Mutex<(Duration, Option<Instant>)>);

impl Measured {
    /// The threads measure from now on, if they did not.
    pub fn begin(&self) {
        self.with(|(_, since)| {
            since.get_or_insert_with(now);
        });
    }

    /// They measure no longer, for a while or for good; `ended` is when the last of them had ended,
    /// if so.
    pub fn end(&self, ended: Option<Instant>) {
        self.with(|(before, since)| *before += since.take().map_or(Duration::ZERO, until(ended)));
    }

    /// Until now.
    pub fn so_far(&self, ended: Option<Instant>) -> Duration {
        self.with(|(before, since)| *before + since.map_or(Duration::ZERO, until(ended)))
    }

    fn with<T>(&self, change: impl FnOnce(&mut (Duration, Option<Instant>)) -> T) -> T {
        // Whoever panicked there left two plain figures.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What lies behind an instant: until now, but nothing behind the end.
fn until(ended: Option<Instant>) -> impl Fn(Instant) -> Duration {
    move |since| (ended.unwrap_or_else(now) - since).max(Duration::ZERO)
}

pub(super) fn now() -> Instant {
    Instant::from_ns(Clock::Monotonic.now_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_last_thread_is_not_measured() {
        let measured = Measured::default();
        assert_eq!(measured.so_far(None), Duration::ZERO, "nobody began");
        measured.begin();
        let ended = now();
        while now() == ended {}
        let whole = measured.so_far(Some(ended));
        assert!(measured.so_far(None) > whole, "it goes on");
        assert_eq!(measured.so_far(Some(ended)), whole, "it stands still");
        // Who lends the CPUs afterwards adds nothing, nor does who gives them back.
        measured.end(Some(ended));
        measured.begin();
        measured.end(Some(ended));
        assert_eq!(measured.so_far(Some(ended)), whole);
    }
}
