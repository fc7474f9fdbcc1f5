//! What verbs that read a trace were asked to do.

use std::path::PathBuf;

use diagnosis::{TaskFilter, Until};
use event::{Cpu, Duration, Error, ErrorKind, Instant, Result};

use super::tasks::{no_groups, processes, tasks};
use super::{WallWord, positive_duration};
use crate::flags;

/// A time that was typed; what it means depends on the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeWord {
    /// An instant of the trace's clock.
    At(Instant),
    /// So long after the trace's first event.
    AfterStart(Duration),
    /// An instant of the wall clock.
    Wall(WallWord),
}

impl TimeWord {
    /// Reads `530.25` (seconds), `+1.5s`, or what [`WallWord::parse`] reads.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] names the text and both forms.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = || {
            Error::new(ErrorKind::InvalidInput, "not a time of a trace")
                .found(format!("'{text}'"))
                .fix(
                    "give seconds of the trace's clock (530.25), time after its start (+1.5s), or \
                     a date (2026-11-20T09:07:19.5Z, '2026-11-20 09:07:19.5')",
                )
        };
        if let Some(wall) = WallWord::parse(text) {
            return Ok(TimeWord::Wall(wall));
        }
        if let Some(duration) = text.strip_prefix('+') {
            return Duration::parse(duration)
                .map(TimeWord::AfterStart)
                .map_err(|_| refuse());
        }
        let seconds = Duration::parse(&format!("{text}s")).map_err(|_| refuse())?;
        Ok(TimeWord::At(Instant::from_ns(seconds.as_ns())))
    }
}

/// The part of a trace to look at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowOptions {
    /// From here.
    pub begin: Option<TimeWord>,
    /// Up to here.
    pub end: Option<TimeWord>,
    /// Only these; empty means all. Whether they exist is for the trace to say.
    pub cpus: Vec<Cpu>,
    /// Times of day are in UTC.
    pub utc: bool,
}

impl WindowOptions {
    pub(super) fn new(typed: &flags::Window) -> Result<Self> {
        let time = |text: &Option<String>| text.as_deref().map(TimeWord::parse).transpose();
        let cpus = typed.cpu.as_deref().map(Cpu::parse_list).transpose()?;
        Ok(WindowOptions {
            begin: time(&typed.begin)?,
            end: time(&typed.end)?,
            cpus: cpus.unwrap_or_default(),
            utc: false,
        })
    }
}

/// A diagnosis, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnoseOptions {
    /// The traces, of one time.
    pub traces: Vec<PathBuf>,
    /// Whose activations; empty: whatever the trace's own hits name, else every real-time task.
    pub tasks: TaskFilter,
    /// Where an activation ends.
    pub until: Until,
    /// Those that took longer.
    pub over: Option<Duration>,
    /// At most so many, the worst first.
    pub worst: Option<u64>,
    /// Where to look.
    pub window: WindowOptions,
    /// JSON instead of text.
    pub json: bool,
}

impl DiagnoseOptions {
    /// From what was typed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word without a meaning.
    pub fn new(typed: &flags::Diagnose) -> Result<Self> {
        no_groups(&typed.groups)?;
        if typed.worst == Some(0) {
            let error = Error::new(ErrorKind::InvalidInput, "--worst of zero says nothing");
            return Err(error
                .found("'0'")
                .fix("give --worst a number above zero, as in 5"));
        }
        let over = |text: &String| positive_duration("--over", text);
        Ok(DiagnoseOptions {
            traces: typed.trace.clone(),
            tasks: tasks(&typed.task, typed.tid)?.or(processes(&typed.pid, &typed.process)?),
            until: typed.until.into(),
            over: typed.over.as_ref().map(over).transpose()?,
            worst: typed.worst,
            window: WindowOptions::new(&typed.window)?,
            json: typed.json,
        })
    }
}

/// A summary, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct InfoOptions {
    /// The traces, read as one.
    pub traces: Vec<PathBuf>,
    /// Where to look.
    pub window: WindowOptions,
    /// What breaks the standard is an error.
    pub strict: bool,
    /// JSON instead of text.
    pub json: bool,
}

impl InfoOptions {
    /// From what was typed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word without a meaning.
    pub fn new(typed: &flags::Info) -> Result<Self> {
        Ok(InfoOptions {
            traces: typed.trace.clone(),
            window: WindowOptions::new(&typed.window)?,
            strict: typed.strict,
            json: typed.json,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_instant_or_an_offset() {
        let check = |text: &str, expect: Option<TimeWord>| {
            assert_eq!(TimeWord::parse(text).ok(), expect, "{text}");
        };
        check(
            "530.25",
            Some(TimeWord::At(Instant::from_ns(530_250_000_000))),
        );
        for date in [
            "2026-11-23T10:50:41Z",
            "2026-11-23T10:50:41+00:00",
            "10:50:41",
        ] {
            let found = TimeWord::parse(date);
            assert!(matches!(found, Ok(TimeWord::Wall(_))), "{date}");
        }
        check("+1.5s", Some(TimeWord::AfterStart(Duration::from_ms(1500))));
        check("+1.5", None);
        check("noon", None);
        check("", None);
    }
}
