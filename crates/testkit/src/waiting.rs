//! A task that waits behind another one, as often and as long as a test says.

use crate::{SyntheticTrace, Task};

/// Who waits.
pub const WORK: Task = Task::rt(7, "work", 60);
/// Whom it waits behind.
pub const HOG: Task = Task::rt(8, "hog", 80);

/// The task is woken every 10 ms, on CPU 0, and comes on so many microseconds later; what is late
/// waits behind the hog.
pub fn wake_ups(delays_us: &[i64]) -> SyntheticTrace {
    let mut trace = SyntheticTrace::new().at(0).run(HOG);
    for (turn, delay_us) in (1..).zip(delays_us) {
        trace = trace
            .at(turn * 10_000)
            .timer_irq()
            .waking(WORK, 0)
            .timer_irq_end();
        trace = trace
            .after(*delay_us)
            .block(HOG, WORK)
            .after(100)
            .block(WORK, Task::IDLE);
        trace = trace
            .after(100)
            .timer_irq()
            .waking(HOG, 0)
            .timer_irq_end()
            .run(HOG);
    }
    trace
}
