//! How long a measurement rested.

use std::sync::{Mutex, PoisonError};

use event::{Duration, Instant};
use host::clock::Clock;

/// How long a measurement rested; no measuring thread looks at it.
#[derive(Debug, Default)]
pub(super) struct Rests(Mutex<(Duration, Option<Instant>)>);

impl Rests {
    pub fn begin(&self) {
        self.with(|(_, since)| *since = Some(now()));
    }

    pub fn end(&self) {
        self.with(|(ended, since)| {
            let last = since.take().map_or(Duration::ZERO, |since| now() - since);
            *ended += last;
        });
    }

    /// Until now.
    pub fn so_far(&self) -> Duration {
        self.with(|(ended, since)| *ended + since.map_or(Duration::ZERO, |since| now() - since))
    }

    fn with<T>(&self, change: impl FnOnce(&mut (Duration, Option<Instant>)) -> T) -> T {
        // Whoever panicked there left two plain figures.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn now() -> Instant {
    Instant::from_ns(Clock::Monotonic.now_ns())
}
