//! A host that stands still: of every snapshot that the guest took, who was accused of it.

use std::path::Path;

use anyhow::{Context, Result};

use super::claim::Claim;
use super::judge::spans;
use super::verdict::{self, Verdict};

/// As the guest calls its victim, and the threshold of its watch.
const QUERY: [&str; 4] = ["--task", "lab-victim", "--over", "20ms"];
/// The function of the sections that the guest injects in its second part.
const SECTION: &str = "lab_drain_fifo";
/// What a verdict says of a stall.
const STILL: &str = "every CPU stood still at once";
/// Fewer snapshots of stalls would show nothing.
const SNAPSHOTS_MIN: usize = 5;

/// Diagnoses the snapshots in `result/nothing`, where there was no fault, and `result/section`,
/// where there were sections among the stalls. How many of those keep their name is luck: a stall
/// in one hides it. That a section is named while the other CPU beats is what the scenarios of two
/// CPUs show.
pub fn judge(result: &Path, program: &Path) -> Result<Vec<Claim>> {
    let verdicts = |name: &str| {
        let folder = result.join(name);
        verdict::diagnose(program, &folder, &QUERY)?;
        Verdict::all(&folder)
    };
    let nothing = verdicts("nothing")?;
    let path = result.join("section/truth");
    let truth = std::fs::read_to_string(&path);
    let truth = truth.with_context(|| format!("cannot read {}", path.display()))?;
    let sections = verdicts("section")?;
    Ok(claims(&nothing, &sections, &truth))
}

fn claims(nothing: &[Verdict], sections: &[Verdict], truth: &str) -> Vec<Claim> {
    let named = |verdict: &Verdict| {
        verdict.culprit()["kind"] == "interrupts_off" && verdict.culprit()["function"] == SECTION
    };
    let faulty = |verdict: &Verdict| spans(truth).any(|span| verdict.overlaps(span));
    let mut wrong: Vec<&str> = Vec::new();
    let all = nothing.iter().map(|verdict| (verdict, false));
    for (verdict, may) in all.chain(sections.iter().map(|verdict| (verdict, true))) {
        if verdict.is_conclusive() && !(may && named(verdict) && faulty(verdict)) {
            wrong.push(verdict.sentence());
        }
    }
    let both = || nothing.iter().chain(sections);
    let still = both().filter(|verdict| verdict.sentence().contains(STILL));
    let still = still.count();
    let right = sections.iter().filter(|verdict| verdict.is_conclusive());
    let right = right.filter(|verdict| named(verdict)).count();
    let (snapshots, injected) = (both().count(), spans(truth).count());
    vec![
        (
            format!(
                "of {snapshots} snapshots none accuses wrongly, {right} name one of {injected} \
                 real sections; wrong: {} {}",
                wrong.len(),
                wrong.join("\n    ")
            ),
            wrong.is_empty() && nothing.len() >= SNAPSHOTS_MIN,
        ),
        (
            format!("in {still} of them every CPU is seen to have stood still"),
            still >= SNAPSHOTS_MIN,
        ),
    ]
}
