//! Whether a clock is as fine as the kernel says.

use host::clock::Clock;

/// So often the clock is read.
const READS: usize = 20_000;

/// Says on stderr what the clock's steps are where they are coarser than the kernel says; `always`
/// says it whatever they are.
pub(super) fn look(clock: Clock, always: bool) {
    let reported_ns = clock.resolution_ns();
    let times: Vec<i64> = (0..READS).map(|_| clock.now_ns()).collect();
    let steps = times.windows(2).map(|pair| pair[1] - pair[0]);
    let Some(least_ns) = steps.filter(|step_ns| *step_ns > 0).min() else {
        return;
    };
    if always || least_ns > reported_ns {
        note!("WARN: reported clock resolution: {reported_ns} nsec");
        note!("WARN: measured clock resolution approximately: {least_ns} nsec");
    }
}
