//! What is served: a view, and newer ones of the same trace when that changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::cache::Change;
use crate::view::View;

/// Between two looks at whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Between two looks at the files.
const FILES_EVERY: Duration = Duration::from_secs(2);
/// And no more of the time goes into reading again than one part in so many.
const AGAIN_PART: u32 = 4;

/// A view that gives way to a newer one of its trace.
pub struct Served(RwLock<Arc<View>>);

impl Served {
    /// Serves this one first.
    pub fn new(view: Arc<View>) -> Served {
        Served(RwLock::new(view))
    }

    /// The newest.
    pub fn view(&self) -> Arc<View> {
        let view = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&view)
    }

    /// Makes the index, and reads the trace again whenever its files have changed, until `stop` is
    /// raised. What was known before is served meanwhile, and for as long as the trace cannot be
    /// read.
    pub fn keep_up(&self, stop: &AtomicBool) {
        let mut begun = Instant::now();
        self.view().build(stop);
        loop {
            let pause = (begun.elapsed() * AGAIN_PART).max(FILES_EVERY);
            if !rests(pause, stop) {
                return;
            }
            begun = Instant::now();
            let before = self.view();
            if before.change() == Change::None {
                continue;
            }
            // What is written just now may be readable in a moment.
            let Ok(view) = before.again() else { continue };
            view.build(stop);
            if stop.load(Ordering::Relaxed) {
                return;
            }
            if view.known().1.error.is_some() {
                continue;
            }
            let mut served = self.0.write().unwrap_or_else(PoisonError::into_inner);
            *served = Arc::new(view);
        }
    }
}

/// Waits; says no as soon as `stop` is raised.
fn rests(pause: Duration, stop: &AtomicBool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < pause {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    !stop.load(Ordering::Relaxed)
}
