//! What verbs that judge traces were asked to do.

use std::path::PathBuf;

use diagnosis::{TaskFilter, Until};
use event::{Duration, Result};

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
            json: typed.json,
        })
    }
}

/// A comparison, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffOptions {
    /// The trace before.
    pub before: PathBuf,
    /// The one after.
    pub after: PathBuf,
    /// Whose activations; empty: those of all real-time tasks.
    pub tasks: TaskFilter,
    /// Where an activation ends.
    pub until: Until,
    /// Those that took longer.
    pub over: Option<Duration>,
    /// At most so many of each.
    pub worst: usize,
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
        Ok(DiffOptions {
            before: typed.before.clone(),
            after: typed.after.clone(),
            tasks: tasks(&typed.task, typed.tid)?.or(processes(&typed.pid, &typed.process)?),
            until: typed.until.into(),
            over: over
                .map(|text| positive_duration("--over", text))
                .transpose()?,
            worst: typed.worst,
            json: typed.json,
        })
    }
}
