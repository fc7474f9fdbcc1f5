//! `rtscope cat --live --user`: events of applications as they come, kept nowhere.
//!
//! They are recorded like others, into a temporary folder that goes when the print-out ends, and
//! read from there: one way of reading rings, one order of time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use capture::{LiveTrace, RecordConfig, RecordSummary};
use event::{Error, Result};
use report::EventTextOptions;

use super::follow::follow_until;
use super::print::Print;
use crate::options::Passing;
use crate::signals;

/// How often a recording that begins is looked for.
const BEGIN_PERIOD: Duration = Duration::from_millis(10);

/// Prints events until the command ends, or Ctrl-C.
pub(super) fn pass(print: &mut Print<'_>, text: EventTextOptions, passing: &Passing) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("rtscope-live-").tempdir();
    let failed = |cause| Error::io("cannot make a temporary folder", cause);
    let folder = folder.map_err(|cause| failed(cause).fix("set TMPDIR to a writable folder"))?;
    let stop = signals::take_over()?;
    let config = RecordConfig {
        kernel: false,
        user: Some(passing.user.clone()),
        command: (!passing.command.is_empty()).then(|| passing.command.clone()),
        stop: Arc::clone(&stop),
        ..RecordConfig::new(folder.path().join("live"))
    };
    let capabilities = host::capabilities::gather_cpus();
    let command_line = capture::own_command_line();
    let (followed, recorded) = std::thread::scope(|scope| {
        let recorder = scope.spawn(|| capture::record(&config, &capabilities, &command_line));
        let is_over = || recorder.is_finished();
        let followed = match begun(&config, is_over) {
            Some(live) => follow_until(print, text, (&config.output, live), is_over),
            None => Ok(()),
        };
        // Also where lines could not be written: nobody reads on.
        stop.store(true, Ordering::Release);
        let recorded = recorder.join();
        (
            followed,
            recorded.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    });
    followed?;
    say_ending(&recorded?);
    Ok(())
}

/// The recording, once it is there; nothing when it ended before.
fn begun(config: &RecordConfig, is_over: impl Fn() -> bool) -> Option<Option<LiveTrace>> {
    loop {
        // Asked before the look: what is over by then is there, or never will be.
        let is_over = is_over();
        match LiveTrace::find(&config.output) {
            Ok(live) => return Some(live),
            Err(_) if is_over => return None,
            Err(_) => std::thread::sleep(BEGIN_PERIOD),
        }
    }
}

/// What the lines do not show: stdout is theirs.
fn say_ending(summary: &RecordSummary) {
    for refused in &summary.user.refused {
        note!("not recorded: {refused}");
    }
    let command = summary.command.map_or(String::new(), |end| end.to_string());
    if !command.is_empty() {
        note!("{command}");
    }
}
