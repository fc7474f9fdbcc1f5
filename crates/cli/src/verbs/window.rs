//! The part of a trace that a verb looks at.

use event::{Cpu, Duration, Error, ErrorKind, Instant, Result, TimeRange};
use trace::{Item, Trace};

use crate::options::{TimeWord, WindowOptions};

/// The range of time that was asked for.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when it is empty.
pub fn resolve(window: &WindowOptions, trace: &Trace) -> Result<TimeRange> {
    let relative = |word: &Option<TimeWord>| matches!(word, Some(TimeWord::AfterStart(_)));
    let start = match relative(&window.begin) || relative(&window.end) {
        true => first_instant(trace)?,
        false => Instant::MIN,
    };
    let instant = |word: TimeWord| match word {
        TimeWord::At(instant) => Ok(instant),
        TimeWord::AfterStart(duration) => Ok(start + duration),
        TimeWord::Wall(wall) => wall.resolve(trace, window.utc),
    };
    let range = TimeRange {
        begin: window.begin.map_or(Ok(Instant::MIN), instant)?,
        // What happens at that very instant is still inside, as it is for the peers.
        end: match window.end {
            Some(word) => instant(word)? + Duration::from_ns(1),
            None => Instant::MAX,
        },
    };
    if range.begin >= range.end {
        return Err(
            Error::new(ErrorKind::InvalidInput, "the time range is empty")
                .found(format!("from {} to {}", range.begin, range.end))
                .fix("let --begin lie before --end"),
        );
    }
    Ok(range)
}

/// Says so where the trace has nothing in `range`: an empty output alone says nothing of why.
pub fn warn_outside(range: TimeRange, trace: &Trace) {
    let outside = |whole: &TimeRange| range.end <= whole.begin || whole.end < range.begin;
    if trace.range().as_ref().is_some_and(outside) {
        warn_of_range(trace);
    }
}

/// Says where the trace begins and ends to whoever asked for a time at which nothing happened.
pub fn warn_of_range(trace: &Trace) {
    let whole = trace.range().unwrap_or(TimeRange::ALL);
    note!(
        "warning: no event lies in the time range\n  found: the trace goes from {} to {}\n  \
         fix:  give --begin and --end between these, or +SECONDS after the first",
        whole.begin,
        whole.end
    );
}

/// Whether what happened on `cpu` is wanted.
pub fn wants(window: &WindowOptions, cpu: Option<Cpu>) -> bool {
    window.cpus.is_empty() || cpu.is_some_and(|cpu| window.cpus.contains(&cpu))
}

/// Refuses CPUs that the trace does not have.
///
/// # Errors
/// [`ErrorKind::NotFound`] names the first, and those that it has.
pub fn known_cpus(window: &WindowOptions, trace: &Trace) -> Result<()> {
    let cpus = &trace.info().cpus;
    let Some(stranger) = window.cpus.iter().find(|cpu| !cpus.contains(cpu)) else {
        return Ok(());
    };
    let names: Vec<String> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
    let what = format!("the trace has no {stranger}");
    let error = Error::new(ErrorKind::NotFound, what).found(format!("CPUs {}", names.join(",")));
    Err(error.fix("choose among those with --cpu"))
}

/// The time of the first event.
fn first_instant(trace: &Trace) -> Result<Instant> {
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next()? {
        if let Item::Event(event) = item {
            return Ok(event.time());
        }
    }
    Ok(Instant::MIN)
}
