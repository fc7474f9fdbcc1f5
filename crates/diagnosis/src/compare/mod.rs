//! Diagnoses of before and after, side by side: which causes came, went, came more often or lasted
//! longer, and whether that can be chance.
//!
//! # Design constraints
//! - Late activations come in bursts: that one follows another says nothing new of their cause. A
//!   change is stated only where it also holds when each recording is cut into equal parts, and
//!   these are what is compared.
//! - How much recordings of the same differ, only several on a side can show: then a change sets
//!   apart all of one side from all of the other. Of one on each side only what is plainly more is
//!   called so, and only by more than its own long stretches differ.
//! - A cause sees only what is late of it. The median and the tail of all activations are compared
//!   as well, whatever made them so long; of what is called chance they have one half.
//! - Under another load other things are late. Where the loads of both sides are too far apart,
//!   nothing is said of a cause but that.

mod bounds;
mod cause;
mod chance;
#[cfg(test)]
mod level_tests;
mod load;
mod whole;

use std::collections::{BTreeMap, BTreeSet};

use event::Duration;

pub use self::cause::{CauseChange, CauseSide, ComparedCause};
use self::cause::{Lates, Side, activations, cause};
pub use self::chance::ranks_by_chance;
pub use self::load::{Load, LoadsApart};
pub use self::whole::ComparedShare;
use self::whole::whole;
use crate::finding::Diagnosis;
use crate::signature::{names_task, stable_task};
use crate::verdict::OWN_WORK;

/// Diagnoses of before and after, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// All activations, late or not: their median and their tail.
    pub whole: Vec<ComparedShare>,
    /// The causes: those that changed first, then by the worst latency.
    pub causes: Vec<ComparedCause>,
    /// Recordings on both sides.
    pub recordings: (usize, usize),
    /// Activations looked at, in all of before and of after.
    pub activations: (u64, u64),
    /// Those of them, and further ones, of which nobody knows whether they were late.
    pub unknown: (u64, u64),
    /// Recordings without any activation.
    pub without: u64,
    /// Shorter latencies are left out: one of the diagnoses does not list them.
    pub floor: Duration,
    /// Places at which events are missing, in all.
    pub holes: u64,
    /// Whether what nobody knows, `unknown` and `holes`, could make worse what is not, or nothing
    /// worse where something is.
    pub may_differ: bool,
    /// The loads are too far apart to tell what else made causes come or go, or the whole change:
    /// how far. Causes that this puts in doubt are not stated.
    pub loads: Option<LoadsApart>,
}

impl Comparison {
    /// Whether something got worse.
    pub fn is_worse(&self) -> bool {
        let shares = self.whole.iter().map(|share| share.change);
        let causes = self.causes.iter().map(|cause| cause.change);
        shares.chain(causes).any(CauseChange::is_worse)
    }
}

/// A change is stated when chance makes it less often than once in a hundred comparisons of all
/// that is compared together (Bonferroni).
const CHANCE_MAX: f64 = 0.01;
/// Where more of all CPU time went to other ordinary tasks, the loads are not the same.
const LOAD_APART_MAX: f64 = 0.1;

/// Compares diagnoses of the same question, which asked for [lengths](crate::Query::lengths).
pub fn compare(before: &[Diagnosis], after: &[Diagnosis]) -> Comparison {
    let all = || before.iter().chain(after);
    let floor = all().map(floor).max().unwrap_or_default();
    let groups = all().flat_map(|diagnosis| &diagnosis.groups);
    let mut causes: BTreeMap<&str, [Side; 2]> = groups
        .map(|group| {
            let signature = group.signature.as_str();
            let side = |side| lates(side, signature, floor);
            (signature, [side(before), side(after)])
        })
        .collect();
    let is_empty = |side: &Side| side.iter().all(|(_, lates)| lates.0.is_empty());
    causes.retain(|_, sides| !sides.iter().all(is_empty));
    let whole = whole(before, after, CHANCE_MAX / 2.0);
    let of_causes = match whole.shares.is_empty() {
        true => CHANCE_MAX,
        false => CHANCE_MAX / 2.0,
    };
    let chance_max = of_causes / causes.len().max(1) as f64;
    let sides: Vec<(&str, [Side; 2])> = causes.into_iter().collect();
    let compared = sides
        .iter()
        .map(|(signature, sides)| cause(signature, sides, chance_max, floor));
    let mut causes: Vec<ComparedCause> = compared.collect();
    let worst = |cause: &ComparedCause| cause.before.worst.max(cause.after.worst);
    causes.sort_by_key(|cause| {
        let is_open = cause.change == CauseChange::NotResolved;
        (is_open, std::cmp::Reverse(worst(cause)))
    });
    let is_without = |diagnosis: &&Diagnosis| diagnosis.basis.activations == 0;
    let is_worse = causes.iter().any(|one| one.change.is_worse());
    let of_causes = || bounds::may_differ(is_worse, &sides, (before, after), (chance_max, floor));
    let may_differ = match is_worse {
        _ if whole.is_surely_worse => false,
        true => of_causes(),
        false => whole.is_unsure || of_causes(),
    };
    Comparison {
        whole: whole.shares,
        causes,
        recordings: (before.len(), after.len()),
        activations: (activations(before.iter()), activations(after.iter())),
        unknown: (unknown(before), unknown(after)),
        without: all().filter(is_without).count() as u64,
        floor,
        holes: all().map(|diagnosis| diagnosis.basis.holes).sum(),
        may_differ,
        loads: None,
    }
}

/// The same, with the load under which each recording was made.
pub fn compare_under(
    (before, loads_before): (&[Diagnosis], &[Load]),
    (after, loads_after): (&[Diagnosis], &[Load]),
) -> Comparison {
    let mut comparison = compare(before, after);
    let limit = LOAD_APART_MAX
        .max(spread(loads_before))
        .max(spread(loads_after));
    let (mean_before, mean_after) = (Load::mean(loads_before), Load::mean(loads_after));
    let judged = before.iter().chain(after);
    let judged = judged.filter(|diagnosis| diagnosis.basis.tasks_named);
    let judged: BTreeSet<String> = judged
        .flat_map(|diagnosis| &diagnosis.basis.judged)
        .map(|(task, _)| stable_task(&task.comm))
        .collect();
    // Who is the cause is what changed, and no other load; nor is the work of who was late.
    let doubt = |is_own: bool, signature: &str| {
        let is_meant = |name: &str| names_task(signature, name) || is_own && judged.contains(name);
        let apart = mean_before.apart(&mean_after, is_meant);
        apart.filter(|apart| apart.share > limit)
    };
    let mut told = |apart: &Option<LoadsApart>| {
        let (known, found) = (&mut comparison.loads, apart.as_ref());
        if found.map(|apart| apart.share) > known.as_ref().map(|known| known.share) {
            known.clone_from(apart);
        }
    };
    let is_open = |change: CauseChange| change == CauseChange::NotResolved;
    for cause in comparison.causes.iter_mut() {
        let apart = doubt(cause.signature == OWN_WORK, &cause.signature);
        if !is_open(cause.change) && apart.is_some() {
            cause.change = CauseChange::NotResolved;
            told(&apart);
        }
    }
    // That all of it takes longer is so whatever made it.
    if !comparison.whole.iter().all(|share| is_open(share.change)) {
        told(&doubt(true, ""));
    }
    comparison
}

/// How far the loads of one side are apart, in the mean of all pairs: as much is chance.
fn spread(loads: &[Load]) -> f64 {
    let pairs = loads.iter().enumerate().flat_map(|(place, one)| {
        let others = loads[place + 1..].iter();
        others.map(|other| one.apart(other, |_| false).map_or(0.0, |apart| apart.share))
    });
    let pairs: Vec<f64> = pairs.collect();
    pairs.iter().sum::<f64>() / pairs.len().max(1) as f64
}

/// A watch has judged each activation, whatever its snapshot holds of it.
fn unknown(side: &[Diagnosis]) -> u64 {
    let found = side.iter().filter(|diagnosis| diagnosis.basis.hits == 0);
    found.map(|diagnosis| diagnosis.basis.unknown()).sum()
}

/// The least latency that a diagnosis lists, when it leaves late ones out.
fn floor(diagnosis: &Diagnosis) -> Duration {
    match diagnosis.activations.last() {
        Some(last) if diagnosis.basis.left_out > 0 => last.latency(),
        _ => Duration::ZERO,
    }
}

/// What is late of one cause in each recording of a side.
fn lates<'a>(side: &'a [Diagnosis], signature: &str, floor: Duration) -> Side<'a> {
    let of = |diagnosis: &'a Diagnosis| {
        let mut groups = diagnosis.groups.iter();
        let members = groups
            .find(|group| group.signature == signature)
            .map_or(&[][..], |group| &group.members);
        let lates = members.iter().map(|member| {
            let late = &diagnosis.activations[*member];
            (late.end, late.latency())
        });
        let lates = lates.filter(|(_, latency)| *latency >= floor);
        (diagnosis, Lates(lates.collect()))
    };
    side.iter().map(of).collect()
}
