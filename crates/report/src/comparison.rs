//! Diagnoses side by side, as text, as JSON (schema `rtscope.diff` version 1) and as JUnit.

use std::fmt::Write;

use diagnosis::{CauseChange, CauseSide, ComparedCause, ComparedShare, Comparison, LoadsApart};
use serde_json::{Value, json};

use crate::count::counted;
use crate::xml::escaped;

/// A paragraph for all activations and one per cause, those that changed first.
pub fn comparison_text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for share in &comparison.whole {
        let (change, name) = (share.change.name(), share_name(share.share));
        let (before, after) = (share.before, share.after);
        let chance = share_chance(share);
        let _ = writeln!(out, "{change:<13}{name} of all activations");
        let _ = writeln!(out, "{:<13}before {before}, after {after}; {chance}", "");
    }
    for cause in &comparison.causes {
        let _ = writeln!(out, "{:<13}{}", cause.change.name(), cause.signature);
        let _ = writeln!(out, "{:<13}before: {}", "", side(&cause.before));
        let _ = writeln!(out, "{:<13}after:  {}", "", side(&cause.after));
        let _ = writeln!(out, "{:<13}{}", "", chance(cause));
    }
    if comparison.causes.is_empty() {
        let (before, after) = comparison.recordings;
        let _ = match (comparison.unknown, before + after) {
            ((0, 0), 2) => writeln!(out, "Neither trace has a late activation."),
            ((0, 0), all) => writeln!(out, "None of the {all} traces has a late activation."),
            (_, 2) => writeln!(out, "No late activation is known of in either trace."),
            (_, all) => writeln!(out, "No late activation is known of in the {all} traces."),
        };
    }
    let _ = writeln!(out, "{}", basis(comparison));
    out
}

/// What all rests on.
fn basis(comparison: &Comparison) -> String {
    let (before, after) = comparison.activations;
    let mut out = format!("{before} activations before, {after} after");
    match comparison.recordings {
        (1, 1) => out.push_str(
            "; with one recording of each nobody knows how much recordings of the same differ: \
             give several (--after)",
        ),
        (before, after) => {
            let _ = write!(out, ", in {before} and {after} recordings");
        }
    }
    if comparison.floor.as_ns() > 0 {
        let _ = write!(out, "; shorter ones than {} are left out", comparison.floor);
    }
    if comparison.unknown != (0, 0) {
        let (before, after) = comparison.unknown;
        let _ = write!(
            out,
            "; {before} before and {after} after may have been late, nobody knows"
        );
    }
    if comparison.holes > 0 {
        let _ = write!(
            out,
            "; events are missing in {}",
            counted(comparison.holes, "place")
        );
    }
    if comparison.unknown != (0, 0) || comparison.holes > 0 {
        out.push_str(match comparison.may_differ {
            true => ", and the answer could be another: diagnose each",
            false => ", which would not change the answer",
        });
    }
    if let Some(apart) = &comparison.loads {
        let _ = write!(out, "; the loads differ: {}", loads_apart(apart));
    }
    out
}

/// How far the loads of both sides are apart, and who differs most.
pub fn loads_apart(apart: &LoadsApart) -> String {
    let percent = |share: f64| share * 100.0;
    format!(
        "{:.0} % of all CPU time went to other programs: {} had {:.0} % of it before and {:.0} % \
         after",
        percent(apart.share),
        event::plain_text(apart.name.as_bytes()),
        percent(apart.before),
        percent(apart.after)
    )
}

fn side(side: &CauseSide) -> String {
    match side.count {
        0 => "none".to_owned(),
        count => format!("{count}, median {}, worst {}", side.median, side.worst),
    }
}

/// What a share of all is called: `median`, `p99`.
fn share_name(share: f64) -> String {
    match share {
        0.5 => "median".to_owned(),
        share => format!("p{}", (share * 1e4).round() / 1e2),
    }
}

fn share_chance(share: &ComparedShare) -> String {
    match share.p {
        Some(p) => format!("by chance: p = {p:.2e}"),
        None => "nobody knows whether by chance".to_owned(),
    }
}

fn chance(cause: &ComparedCause) -> String {
    let count = format!("by chance: counts p = {:.2e}", cause.p_count);
    let latencies = match cause.p_latency {
        Some(p) => format!("{count}, latencies p = {p:.2e}"),
        None => format!("{count}, too few latencies to tell"),
    };
    match cause.p_recordings {
        Some(p) => format!("{latencies}; recordings p = {p:.2e}"),
        None => latencies,
    }
}

/// All that was found, as one object.
pub fn comparison_json(comparison: &Comparison) -> Value {
    let side = |side: &CauseSide| {
        json!({
            "count": side.count,
            "median_ns": side.median.as_ns(),
            "worst_ns": side.worst.as_ns(),
        })
    };
    let cause = |cause: &ComparedCause| {
        json!({
            "signature": cause.signature,
            "change": cause.change.name(),
            "before": side(&cause.before),
            "after": side(&cause.after),
            "p_count": cause.p_count,
            "p_latency": cause.p_latency,
            "p_recordings": cause.p_recordings,
        })
    };
    let share = |share: &ComparedShare| {
        json!({
            "share": share.share,
            "change": share.change.name(),
            "before_ns": share.before.as_ns(),
            "after_ns": share.after.as_ns(),
            "p": share.p,
        })
    };
    json!({
        "schema": "rtscope.diff",
        "version": 1,
        "whole": comparison.whole.iter().map(share).collect::<Vec<_>>(),
        "causes": comparison.causes.iter().map(cause).collect::<Vec<_>>(),
        "recordings_before": comparison.recordings.0,
        "recordings_after": comparison.recordings.1,
        "activations_before": comparison.activations.0,
        "activations_after": comparison.activations.1,
        "unknown_before": comparison.unknown.0,
        "unknown_after": comparison.unknown.1,
        "floor_ns": comparison.floor.as_ns(),
        "holes": comparison.holes,
        "may_differ": comparison.may_differ,
        "loads_apart": comparison.loads.as_ref().map(|apart| json!({
            "share": apart.share,
            "name": apart.name,
            "before": apart.before,
            "after": apart.after,
        })),
    })
}

/// The same as a test suite with a test for each cause, failed where it got worse, and one for what
/// all rests on, which is an error where there is a doubt.
pub fn comparison_junit(comparison: &Comparison, doubt: Option<&str>) -> String {
    let (causes, whole) = (&comparison.causes, &comparison.whole);
    let changes = causes.iter().map(|cause| cause.change);
    let changes = changes.chain(whole.iter().map(|share| share.change));
    let failures = changes.filter(|change| change.is_worse()).count();
    let (tests, errors) = (causes.len() + whole.len() + 1, u32::from(doubt.is_some()));
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rtscope diff\" \
         tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n"
    );
    let mut test = |name: &str, (element, said): (&str, String)| {
        let (name, said) = (escaped(name), escaped(said));
        let _ = write!(
            out,
            "  <testcase classname=\"rtscope diff\" name=\"{name}\">"
        );
        let _ = match element {
            "system-out" => write!(out, "<system-out>{said}</system-out>"),
            _ => write!(out, "<{element} message=\"{said}\"/>"),
        };
        out.push_str("</testcase>\n");
    };
    let recordings = match doubt {
        Some(doubt) => ("error", doubt.to_owned()),
        None => ("system-out", basis(comparison)),
    };
    test("recordings", recordings);
    let mut changed = |name: &str, change: CauseChange, sides: (String, String), chance: String| {
        let (change_name, (before, after)) = (change.name(), sides);
        let said = format!("{change_name}: before {before}; after {after}; {chance}");
        let element = match change.is_worse() {
            true => "failure",
            false => "system-out",
        };
        test(name, (element, said));
    };
    for share in whole {
        let name = format!("{} of all activations", share_name(share.share));
        let sides = (share.before.to_string(), share.after.to_string());
        changed(&name, share.change, sides, share_chance(share));
    }
    for cause in causes {
        let sides = (side(&cause.before), side(&cause.after));
        changed(&cause.signature, cause.change, sides, chance(cause));
    }
    out.push_str("</testsuite>\n");
    out
}

#[cfg(test)]
mod tests {
    use event::Duration;

    use super::*;

    #[test]
    fn a_cause_that_got_worse_is_a_failure_and_a_doubt_an_error() {
        let side = |count| CauseSide {
            count,
            median: Duration::from_us(5),
            worst: Duration::from_us(9),
        };
        let cause = |signature: &str, change| ComparedCause {
            signature: signature.to_owned(),
            before: side(0),
            after: side(7),
            change,
            p_count: 1e-9,
            p_latency: None,
            p_recordings: Some(0.1),
        };
        let median = ComparedShare {
            share: 0.5,
            before: Duration::from_us(5),
            after: Duration::from_us(9),
            change: CauseChange::Slower,
            p: Some(1e-4),
        };
        let comparison = Comparison {
            whole: vec![median],
            causes: vec![
                cause("a<b", CauseChange::New),
                cause("c", CauseChange::NotResolved),
            ],
            recordings: (3, 2),
            activations: (10, 20),
            unknown: (0, 0),
            without: 0,
            floor: Duration::ZERO,
            holes: 0,
            may_differ: false,
            loads: None,
        };
        let held = comparison_junit(&comparison, None);
        assert!(
            held.contains("tests=\"4\" failures=\"2\" errors=\"0\""),
            "{held}"
        );
        assert!(
            held.contains("name=\"a&lt;b\"><failure message=\"new: before none;"),
            "{held}"
        );
        assert!(
            held.contains("name=\"median of all activations\"><failure message=\"slower: "),
            "{held}"
        );
        assert!(held.contains("in 3 and 2 recordings"), "{held}");
        let open = comparison_junit(&comparison, Some("events are missing"));
        assert!(open.contains("errors=\"1\""), "{open}");
        assert!(
            open.contains("<error message=\"events are missing\"/>"),
            "{open}"
        );
    }
}
