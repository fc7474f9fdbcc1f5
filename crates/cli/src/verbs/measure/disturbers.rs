//! A recording of whatever can take a CPU from a task, beside a measurement that wants to know.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capture::{EventSelection, RecordConfig, RecordSummary, own_command_line};
use event::{Error, Result};
use host::capabilities::Capabilities;

/// How often we look whether the recording has begun.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Whatever can take a CPU from a task.
const EVENTS: [&str; 4] = ["irq", "nmi", "irq:softirq_*", "sched:sched_switch"];

/// Runs `measure` from when the recording has begun, and ends the recording, which is in `output`
/// then.
pub(super) fn recorded<T>(
    output: &Path,
    capabilities: &Capabilities,
    measure: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let config = RecordConfig {
        events: EventSelection::new(EVENTS.map(str::to_owned)),
        ..RecordConfig::new(output)
    };
    let (stop, recording) = (config.stop.clone(), config.recording.clone());
    let record = || capture::record(&config, capabilities, &own_command_line());
    std::thread::scope(|scope| {
        let recorder = scope.spawn(record);
        while !recording.load(Ordering::Acquire) && !recorder.is_finished() {
            std::thread::sleep(LOOK_INTERVAL);
        }
        // A recorder that could not begin says why.
        let measured = (!recorder.is_finished()).then(measure);
        finish(&stop, recorder)?;
        measured.unwrap_or_else(|| Err(panicked("it ended before it was told to")))
    })
}

fn finish(
    stop: &Arc<AtomicBool>,
    recorder: std::thread::ScopedJoinHandle<Result<RecordSummary>>,
) -> Result<()> {
    stop.store(true, Ordering::Relaxed);
    let joined = recorder.join();
    joined
        .unwrap_or_else(|_| Err(panicked("it panicked")))
        .map(drop)
}

fn panicked(what: &str) -> Error {
    Error::io(
        "the recorder failed",
        std::io::Error::other(what.to_owned()),
    )
}
