//! `rtscope cat --live`: the events of a recording while it is written.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use capture::LiveTrace;
use event::{Error, ErrorKind, Instant, Result, TimeRange};
use report::{EventText, EventTextOptions, EventTimes};
use trace::{OpenOptions, Trace};

use super::print::Print;
use crate::signals;
use crate::verbs::filtered::{compile, cursor};

/// How often the recording is looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// Prints what is written until the recording ends, or Ctrl-C. Events come in the order of time, as
/// far as the recorder says that nothing earlier can come.
pub(super) fn follow(print: &mut Print<'_>, text: EventTextOptions) -> Result<()> {
    let [root] = &print.options.roots[..] else {
        return Err(
            Error::new(ErrorKind::InvalidInput, "--live reads one recording")
                .found(format!("{} were named", print.options.roots.len()))
                .fix("name the -o of one rtscope record"),
        );
    };
    let live = LiveTrace::find(&root.path)?;
    let stop = signals::take_over()?;
    let is_stopped = || stop.load(Ordering::Acquire);
    follow_until(print, text, (&root.path, live), is_stopped)
}

/// The same of the recording that will be at a path, at most until `is_stopped` says so.
pub(super) fn follow_until(
    print: &mut Print<'_>,
    text: EventTextOptions,
    (output, live): (&Path, Option<LiveTrace>),
    is_stopped: impl Fn() -> bool,
) -> Result<()> {
    let mut printed = Instant::MIN;
    let mut times = EventTimes::new(text);
    loop {
        // Asked before the last look, so that nothing can come after it: first who may end the
        // recording, then whether it ended.
        let is_stopped = is_stopped();
        let is_over = live.as_ref().is_none_or(LiveTrace::is_complete);
        let is_abandoned = live.as_ref().is_some_and(LiveTrace::is_abandoned);
        let until = match &live {
            Some(live) if !is_over => live.written_until(),
            _ => Instant::MAX,
        };
        let path = live.as_ref().map_or(output, LiveTrace::path);
        let range = TimeRange {
            begin: printed,
            end: until,
        };
        if until > printed {
            let options = OpenOptions {
                live: !is_over,
                ..print.options.open
            };
            match Trace::open_with(path, &options) {
                Ok(trace) => {
                    times = slice(print, &trace, range, EventText::after(&trace, text, times))?;
                    printed = until;
                }
                Err(error) if is_over => return Err(error),
                // There is no stream yet, or it got its final name just now.
                Err(_) => (),
            }
        }
        print.out.flush()?;
        if is_abandoned {
            return Err(Error::new(ErrorKind::NotFound, "the recorder was killed")
                .found(format!("{}, which it did not finish", path.display()))
                .fix(format!("rtscope recover {}", path.display())));
        }
        if is_over || is_stopped {
            return Ok(());
        }
        std::thread::sleep(LOOK_PERIOD);
    }
}

/// Prints what happened in `range`.
fn slice(
    print: &mut Print<'_>,
    trace: &Trace,
    range: TimeRange,
    mut text: EventText<'_>,
) -> Result<EventTimes> {
    let filter = print.options.filter.as_ref();
    print.filter = filter.map(|expr| compile(expr, trace)).transpose()?;
    if let Some(filter) = &print.filter
        && filter.program().needs_tasks()
    {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "--live cannot filter by the task that runs",
        )
        .found("the filter asks for a thread that its events do not name")
        .fix("record its context, or filter the trace when it is complete"));
    }
    let walk = cursor(trace, range, print.filter.as_ref());
    print.walk(walk, &mut text)?;
    Ok(text.into_times())
}
