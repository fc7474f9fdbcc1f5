//! `rtscope diff`: what made tasks late in some traces and not in others.

use std::path::{Path, PathBuf};

use diagnosis::{Comparison, Diagnosis, Load, Query, compare_under, diagnose};
use event::{Error, ErrorKind, Result};
use kernel_state::places;
use report::{comparison_json, comparison_junit, comparison_text, loads_apart};

use crate::exit::{Outcome, print_answer, write_file};
use crate::flags;
use crate::options::DiffOptions;
use crate::verbs::store::{self, Sides};
use crate::verbs::{opened, window};

/// Runs the verb.
pub fn run(typed: &flags::Diff) -> Result<Outcome> {
    let options = DiffOptions::new(typed)?;
    if let Some(sides) = stores(&options)? {
        return store::diff(&sides, &options);
    }
    let ask = |path: &PathBuf| ask(path, &options);
    let side = |paths: &[PathBuf]| {
        let asked = paths.iter().map(ask).collect::<Result<Vec<_>>>()?;
        Ok(asked.into_iter().unzip::<_, _, Vec<_>, Vec<_>>())
    };
    let ((before, loads_before), (after, loads_after)) =
        (side(&options.before)?, side(&options.after)?);
    let comparison = compare_under((&before, &loads_before), (&after, &loads_after));
    let outcome = outcome(&comparison);
    if let Some(apart) = &comparison.loads {
        note!(
            "warning: the loads of the recordings differ: what changed cannot be told\n  \
             found: {}\n  \
             fix:  record both beside the same programs, or several on each side (--after)",
            loads_apart(apart)
        );
    }
    if let Some(path) = &options.junit {
        let doubt = doubt(&comparison);
        let junit = comparison_junit(&comparison, doubt.as_deref());
        write_file(path, &junit)?;
    }
    match options.json {
        true => print_answer(&format!("{:#}\n", comparison_json(&comparison)))?,
        false => print_answer(&comparison_text(&comparison))?,
    }
    if nothing_to_compare(&comparison) {
        note!(
            "warning: no task that was asked for was activated in one of the traces (without \
             --task: no real-time task)\n  \
             found: {} activations before, {} after\n  \
             fix:  'rtscope report schedtop TRACE' names the tasks that were",
            comparison.activations.0,
            comparison.activations.1
        );
    }
    Ok(outcome)
}

/// The parts of stores that are compared; none where traces are.
fn stores(options: &DiffOptions) -> Result<Option<Sides>> {
    let paths = [&options.before[..], &options.after[..]].concat();
    let is_store = store::are_stores(&paths)?;
    let of_stores = options.last.is_some() || options.window_after.is_some();
    match &paths[..] {
        _ if !is_store && of_stores => Err(store::only_stores("--last or --after-begin")),
        _ if !is_store => Ok(None),
        [one, other] => Ok(Some(match options.last {
            Some(length) => Sides::Last(other.clone(), length),
            None => {
                let after = options.window_after.as_ref().unwrap_or(&options.window);
                let before = (one.clone(), options.window.clone());
                Sides::Parts(Box::new([before, (other.clone(), after.clone())]))
            }
        })),
        many => Err(
            Error::new(ErrorKind::InvalidInput, "two stores are compared at a time")
                .found(format!("{} stores", many.len()))
                .fix("rtscope diff OLD --after NEW"),
        ),
    }
}

/// The answer of a recording, and the load under which it was made.
fn ask(path: &Path, options: &DiffOptions) -> Result<(Diagnosis, Load)> {
    let trace = opened::open(path)?;
    window::known_cpus(&options.window, &trace)?;
    let query = Query {
        tasks: options.tasks.clone(),
        until: options.until,
        threshold: options.over,
        worst: options.worst,
        range: window::resolve(&options.window, &trace)?,
        cpus: options.window.cpus.clone(),
        lengths: true,
    };
    let load = Load::read(&trace, query.range)?;
    Ok((diagnose(&trace, &query)?, load))
}

/// Whether a trace holds nothing of the question: its silence is no news.
fn nothing_to_compare(comparison: &Comparison) -> bool {
    comparison.without > 0
}

/// What forbids a statement.
fn doubt(comparison: &Comparison) -> Option<String> {
    if nothing_to_compare(comparison) {
        let without = comparison.without;
        return Some(format!("{without} of the traces hold no activation"));
    }
    if let Some(apart) = &comparison.loads {
        return Some(loads_apart(apart));
    }
    comparison.may_differ.then(|| {
        let unknown = comparison.unknown.0 + comparison.unknown.1;
        match comparison.holes {
            0 => format!("nobody knows whether {unknown} activations were late"),
            holes => format!("events are missing in {}", places(holes)),
        }
    })
}

fn outcome(comparison: &Comparison) -> Outcome {
    if doubt(comparison).is_some() {
        Outcome::Inconclusive
    } else if comparison.is_worse() {
        Outcome::Exceeded
    } else {
        Outcome::Fine
    }
}

#[cfg(test)]
mod tests {
    use diagnosis::LoadsApart;
    use event::Duration;

    use super::*;

    #[test]
    fn the_silence_of_a_trace_that_cannot_tell_is_no_good_news() {
        let other = LoadsApart {
            share: 0.3,
            name: "cc1".into(),
            before: 0.5,
            after: 0.2,
        };
        let check = |without, may_differ, loads: Option<&LoadsApart>, expect| {
            let comparison = Comparison {
                whole: Vec::new(),
                causes: Vec::new(),
                recordings: (1, 1),
                activations: (7, 7),
                unknown: (1, 0),
                without,
                floor: Duration::ZERO,
                holes: 1,
                may_differ,
                loads: loads.cloned(),
            };
            let said = outcome(&comparison);
            assert_eq!(said, expect, "{without}, {may_differ}");
        };
        check(0, false, None, Outcome::Fine);
        check(0, true, None, Outcome::Inconclusive);
        check(1, false, None, Outcome::Inconclusive);
        check(0, false, Some(&other), Outcome::Inconclusive);
    }
}
