//! `rtscope diff`: what made tasks late in one trace and not in the other.

use std::path::Path;

use diagnosis::{CauseChange, Comparison, Diagnosis, Query, compare, diagnose};
use event::Result;
use report::{comparison_json, comparison_text};

use crate::exit::{Outcome, print};
use crate::flags;
use crate::options::DiffOptions;
use crate::verbs::opened;

/// Runs the verb.
pub fn run(typed: &flags::Diff) -> Result<Outcome> {
    let options = DiffOptions::new(typed)?;
    let ask = |path: &Path| -> Result<Diagnosis> {
        let query = Query {
            tasks: options.tasks.clone(),
            until: options.until,
            threshold: options.over,
            worst: options.worst,
            ..Query::default()
        };
        diagnose(&opened::open(path)?, &query)
    };
    let comparison = compare(&ask(&options.before)?, &ask(&options.after)?);
    let outcome = outcome(&comparison);
    match options.json {
        true => print(&format!("{:#}\n", comparison_json(&comparison)))?,
        false => print(&comparison_text(&comparison))?,
    }
    if nothing_to_compare(&comparison) {
        eprintln!(
            "warning: no task that was asked for was activated in one of the traces (without \
             --task: no real-time task)\n  \
             found: {} activations before, {} after\n  \
             fix:  'rtscope report schedtop TRACE' names the tasks that were",
            comparison.activations.0, comparison.activations.1
        );
    }
    Ok(outcome)
}

/// Whether a trace holds nothing of the question: its silence is no news.
fn nothing_to_compare(comparison: &Comparison) -> bool {
    comparison.activations.0 == 0 || comparison.activations.1 == 0
}

fn outcome(comparison: &Comparison) -> Outcome {
    let is_worse = |change: CauseChange| {
        matches!(
            change,
            CauseChange::New | CauseChange::More | CauseChange::Slower
        )
    };
    if comparison.holes > 0 || nothing_to_compare(comparison) {
        Outcome::Inconclusive
    } else if comparison.causes.iter().any(|cause| is_worse(cause.change)) {
        Outcome::Exceeded
    } else {
        Outcome::Fine
    }
}

#[cfg(test)]
mod tests {
    use event::Duration;

    use super::*;

    #[test]
    fn the_silence_of_a_trace_without_activations_is_no_good_news() {
        let check = |activations, holes, expect| {
            let comparison = Comparison {
                causes: Vec::new(),
                activations,
                floor: Duration::ZERO,
                holes,
            };
            assert_eq!(outcome(&comparison), expect, "{activations:?}, {holes}");
        };
        check((7, 7), 0, Outcome::Fine);
        check((7, 7), 1, Outcome::Inconclusive);
        check((0, 7), 0, Outcome::Inconclusive);
        check((7, 0), 0, Outcome::Inconclusive);
    }
}
