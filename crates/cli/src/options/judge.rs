//! What verbs that judge traces were asked to do.

use std::path::PathBuf;

use diagnosis::{TaskFilter, Until};
use event::{Duration, Error, ErrorKind, Result};

use super::tasks::{no_groups, processes, tasks};
use super::{WindowOptions, positive_duration};
use crate::flags;

/// A check, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckOptions {
    /// The traces.
    pub traces: Vec<PathBuf>,
    /// Where the rules stand.
    pub rules: Option<PathBuf>,
    /// More of them.
    pub rule: Vec<String>,
    /// Where the result goes as JUnit.
    pub junit: Option<PathBuf>,
    /// Where to look.
    pub window: WindowOptions,
    /// Of a store: only the last so long.
    pub last: Option<Duration>,
    /// JSON instead of text.
    pub json: bool,
}

impl CheckOptions {
    /// From what was typed.
    ///
    /// # Errors
    /// [`event::ErrorKind::InvalidInput`] for a word without a meaning.
    pub fn new(typed: &flags::Check) -> Result<Self> {
        no_groups(&typed.groups)?;
        let over = typed.over.iter();
        let rules = over.flat_map(|over| {
            let tasks = typed.task.iter();
            tasks.map(move |task| format!("response of {task} within {over}"))
        });
        Ok(CheckOptions {
            traces: typed.traces.clone(),
            rules: typed.rules.clone(),
            rule: typed.rule.iter().cloned().chain(rules).collect(),
            junit: typed.junit.clone(),
            window: WindowOptions::new(&typed.window)?,
            last: last(typed.last.as_ref())?,
            json: typed.json,
        })
    }
}

fn last(typed: Option<&String>) -> Result<Option<Duration>> {
    let length = |text: &String| positive_duration("--last", text);
    typed.map(length).transpose()
}

/// A comparison, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffOptions {
    /// The traces before.
    pub before: Vec<PathBuf>,
    /// Those after.
    pub after: Vec<PathBuf>,
    /// Whose activations; empty: those of all real-time tasks.
    pub tasks: TaskFilter,
    /// Where an activation ends.
    pub until: Until,
    /// Those that took longer.
    pub over: Option<Duration>,
    /// At most so many of each.
    pub worst: usize,
    /// Where the result goes as JUnit.
    pub junit: Option<PathBuf>,
    /// Where to look.
    pub window: WindowOptions,
    /// Of a store after, where to look; else as before.
    pub window_after: Option<WindowOptions>,
    /// Of one store: the last so long, against as long before it.
    pub last: Option<Duration>,
    /// JSON instead of text.
    pub json: bool,
}

impl DiffOptions {
    /// From what was typed.
    ///
    /// # Errors
    /// [`event::ErrorKind::InvalidInput`] for a word without a meaning.
    pub fn new(typed: &flags::Diff) -> Result<Self> {
        no_groups(&typed.groups)?;
        let over = typed.over.as_deref();
        let (before, after) = match (&typed.traces[..], &typed.after[..]) {
            ([before, after], []) => (vec![before.clone()], vec![after.clone()]),
            // The last days against those before them.
            ([one], []) if typed.last.is_some() => (vec![one.clone()], vec![one.clone()]),
            (_, []) => return Err(not_two(typed.traces.len())),
            (before, after) => (before.to_vec(), after.to_vec()),
        };
        Ok(DiffOptions {
            before,
            after,
            tasks: tasks(&typed.task, typed.tid)?.or(processes(&typed.pid, &typed.process)?),
            until: typed.until.into(),
            over: over
                .map(|text| positive_duration("--over", text))
                .transpose()?,
            worst: typed.worst,
            junit: typed.junit.clone(),
            window: WindowOptions::new(&typed.window)?,
            window_after: (typed.after_begin.is_some() || typed.after_end.is_some())
                .then(|| {
                    WindowOptions::new(&flags::Window {
                        begin: typed.after_begin.clone(),
                        end: typed.after_end.clone(),
                        cpu: None,
                    })
                })
                .transpose()?,
            last: last(typed.last.as_ref())?,
            json: typed.json,
        })
    }
}

fn not_two(traces: usize) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        "nobody says which traces are after",
    )
    .found(format!("{traces} traces and no --after"))
    .fix("rtscope diff OLD NEW, or rtscope diff OLD-1 OLD-2 --after NEW-1 NEW-2")
}
