//! `rtscope diff`: what made tasks late in one trace and not in the other.

use std::path::Path;

use analysis::{CauseChange, Comparison, Diagnosis, Query, TaskFilter, compare, diagnose};
use event::Result;
use report::{comparison_json, comparison_text};
use trace::Trace;

use crate::exit::{Outcome, print};
use crate::flags;
use crate::options::DiffOptions;

/// Runs the verb.
pub fn run(typed: &flags::Diff) -> Result<Outcome> {
    let options = DiffOptions::new(typed)?;
    let ask = |path: &Path| -> Result<Diagnosis> {
        let query = Query {
            tasks: TaskFilter {
                names: options.tasks.clone(),
                ..TaskFilter::default()
            },
            threshold: options.over,
            worst: options.worst,
            ..Query::default()
        };
        diagnose(&Trace::open(path)?, &query)
    };
    let comparison = compare(&ask(&options.before)?, &ask(&options.after)?);
    match options.json {
        true => print(&format!("{:#}\n", comparison_json(&comparison)))?,
        false => print(&comparison_text(&comparison))?,
    }
    Ok(outcome(&comparison))
}

fn outcome(comparison: &Comparison) -> Outcome {
    let is_worse = |change: CauseChange| {
        matches!(
            change,
            CauseChange::New | CauseChange::More | CauseChange::Slower
        )
    };
    if comparison.holes > 0 {
        Outcome::Inconclusive
    } else if comparison.causes.iter().any(|cause| is_worse(cause.change)) {
        Outcome::Exceeded
    } else {
        Outcome::Fine
    }
}
