//! `rtscope diff STORE`: whether phases became slower between two parts of stores.

use std::path::PathBuf;

use diagnosis::ranks_by_chance;
use event::{Duration, Error, ErrorKind, Result};
use monitor::{
    PhaseTrend, Range, Store, StoreComparison, StoreSide, change_line, compare_stores,
    store_comparison_json, store_comparison_text,
};
use report::{Case, CaseOutcome, junit};

use crate::exit::{Outcome, print_answer, write_file};
use crate::options::{DiffOptions, WindowOptions};

/// Which parts are compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Sides {
    /// The last so long, and as long before that, of one store.
    Last(PathBuf, Duration),
    /// A part of each.
    Parts(Box<[(PathBuf, WindowOptions); 2]>),
}

/// Compares two parts of stores.
///
/// # Errors
/// When a store cannot be read, and for flags that a store has no answer to.
pub fn diff(sides: &Sides, options: &DiffOptions) -> Result<Outcome> {
    if options.tasks.is_explicit() || options.over.is_some() {
        let what = "a monitor's store is compared by its phases";
        return Err(Error::new(ErrorKind::Unsupported, what)
            .found("--task or --over")
            .fix("leave them away: 'rtscope monitor --task' counts a task apart, in scope named"));
    }
    let [before, after] = match sides {
        Sides::Last(path, length) => {
            let store = Store::open(path)?;
            let after = super::last(*length);
            let before = Range {
                begin_ns: after.begin_ns.saturating_sub(length.as_ns()),
                end_ns: after.begin_ns,
            };
            [
                StoreSide::read(&store, before)?,
                StoreSide::read(&store, after)?,
            ]
        }
        Sides::Parts(parts) => {
            let [before, after] = &**parts;
            let side = |(path, window): &(PathBuf, WindowOptions)| {
                let store = Store::open(path)?;
                StoreSide::read(&store, super::resolve(window, &store)?)
            };
            [side(before)?, side(after)?]
        }
    };
    let comparison = compare_stores(before, after, ranks_by_chance);
    if let Some(file) = &options.junit {
        write_file(file, &as_junit(&comparison))?;
    }
    match options.json {
        true => print_answer(&format!("{:#}\n", store_comparison_json(&comparison)))?,
        false => print_answer(&store_comparison_text(&comparison))?,
    }
    Ok(outcome(&comparison))
}

fn outcome(comparison: &StoreComparison) -> Outcome {
    let any = |wanted: PhaseTrend| comparison.changes.iter().any(|one| one.trend == wanted);
    let unsaved = comparison.sides.iter().map(|side| side.head.unsaved);
    let says_nothing = comparison
        .changes
        .iter()
        .all(|one| one.trend == PhaseTrend::TooFew);
    if any(PhaseTrend::Slower) {
        Outcome::Exceeded
    } else if says_nothing || unsaved.sum::<u64>() > 0 {
        Outcome::Inconclusive
    } else {
        Outcome::Fine
    }
}

fn as_junit(comparison: &StoreComparison) -> String {
    let cases = comparison.changes.iter().map(|change| {
        let outcome = match change.trend {
            PhaseTrend::Slower => CaseOutcome::Failed,
            PhaseTrend::Faster | PhaseTrend::NotResolved => CaseOutcome::Passed,
            PhaseTrend::TooFew => CaseOutcome::Unsure,
        };
        let name = format!("{} {}", change.scope.name(), change.phase.name());
        (name, outcome, change_line(change))
    });
    let cases: Vec<Case> = cases.collect();
    let [before, after] = &comparison.sides;
    let basis = format!(
        "{} intervals before, {} after",
        before.intervals, after.intervals
    );
    junit("monitor", &cases, &basis)
}
