//! Whether what a watch saw is whole: what its snapshot promises, and what was read of it.

use std::collections::BTreeMap;

use event::evidence::Sum;
use event::{Cpu, Instant, TimeRange};
use trace::{LossCause, Lost, LostFrom};

/// How many events of evidence each CPU has, and their sum, as `docs/format/evidence.md` says.
/// Snapshots of older versions do not say it.
const PROMISE: &str = "rtscope_evidence_events";

/// Who wrote the snapshot, and who reads it.
const VERSION: &str = "rtscope_version";
const OWN: &str = env!("CARGO_PKG_VERSION");

/// What a watch's snapshot must hold: something for each CPU that is named.
fn promised(environment: &BTreeMap<String, String>) -> Option<BTreeMap<u32, Sum>> {
    let said = environment.get(PROMISE)?;
    let cpus = said.split(',').filter(|each| !each.is_empty());
    let sum = |each: &str| {
        let (cpu, sum) = each.split_once(':')?;
        Some((cpu.parse().ok()?, Sum::parse(sum)?))
    };
    cpus.map(sum).collect()
}

/// What is missing of a watch's evidence beside the `losses` that are known: files that were taken
/// away, or that end where a packet does, and bytes that read as other events leave no other trace.
/// `read` is what each CPU had, `hits` how many of them tell of somebody who was late.
pub(super) fn missing(
    environment: &BTreeMap<String, String>,
    read: &BTreeMap<u32, Sum>,
    hits: usize,
    losses: &[Lost],
) -> Vec<Lost> {
    let lost = |cpu: Option<u32>| Lost {
        cpu: cpu.map(Cpu),
        range: TimeRange {
            begin: Instant::MIN,
            end: Instant::MAX,
        },
        count: None,
        cause: LossCause::Missing,
        from: LostFrom::Evidence,
    };
    let is_known = |cpu: Option<u32>| {
        let mut known = losses
            .iter()
            .filter(|lost| lost.from != LostFrom::Recording);
        known.any(|lost| lost.cpu.is_none() || cpu.is_none() || lost.cpu == cpu.map(Cpu))
    };
    let Some(promised) = promised(environment) else {
        // No snapshot is taken without a reason.
        let is_bare = hits == 0 && !is_known(None);
        return is_bare.then(|| lost(None)).into_iter().collect();
    };
    // Another version may give its records other fields: of them only the number is the same.
    let is_ours = environment.get(VERSION).is_none_or(|by| by == OWN);
    let others = promised.into_iter().filter(|(cpu, sum)| {
        let found = read.get(cpu).copied().unwrap_or_default();
        let is_same = found.events == sum.events && (found == *sum || !is_ours);
        !is_same && !is_known(Some(*cpu))
    });
    others.map(|(cpu, _)| lost(Some(cpu))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of events of this class, each with other bytes.
    fn sum(class: u32, events: u8) -> Sum {
        let mut sum = Sum::default();
        (0..events).for_each(|byte| sum.add(class, &[byte]));
        sum
    }

    fn check(said: Option<&str>, read: &[(u32, Sum)], hits: usize, expect: &[Option<u32>]) {
        let said = said.map(|said| (PROMISE.to_owned(), said.to_owned()));
        let environment = said.into_iter().collect();
        let read = read.iter().copied().collect();
        let found = missing(&environment, &read, hits, &[]);
        let found: Vec<_> = found.iter().map(|lost| lost.cpu.map(|cpu| cpu.0)).collect();
        assert_eq!(found, expect, "{environment:?}: {read:?}");
    }

    #[test]
    fn a_cpu_that_has_other_evidence_than_was_promised_lost_some() {
        let said = format!("0:{},1:{}", sum(0, 2), sum(0, 3));
        let said = Some(said.as_str());
        check(said, &[(0, sum(0, 2)), (1, sum(0, 3))], 1, &[]);
        check(said, &[(0, sum(0, 2)), (1, sum(0, 2))], 1, &[Some(1)]);
        check(said, &[(0, sum(0, 2)), (1, sum(1, 3))], 1, &[Some(1)]);
        check(said, &[(0, sum(0, 2))], 1, &[Some(1)]);
        check(said, &[], 0, &[Some(0), Some(1)]);
        // A tracker's snapshot has none.
        check(Some(""), &[], 0, &[]);
    }

    #[test]
    fn of_another_version_only_the_number_of_records_is_compared() {
        let check = |by: &str, read: Sum, expect: usize| {
            let said = [
                (PROMISE, format!("0:{}", sum(0, 2))),
                (VERSION, by.to_owned()),
            ];
            let environment = said.map(|(key, value)| (key.to_owned(), value)).into();
            let found = missing(&environment, &[(0, read)].into(), 1, &[]);
            assert_eq!(found.len(), expect, "{by}: {read}");
        };
        check(OWN, sum(0, 2), 0);
        check(OWN, sum(1, 2), 1);
        check("0.0.1", sum(1, 2), 0);
        check("0.0.1", sum(1, 1), 1);
    }

    #[test]
    fn without_a_promise_a_watch_saw_a_hit_at_least() {
        check(None, &[(0, sum(0, 2))], 1, &[]);
        check(None, &[(0, sum(0, 2))], 0, &[None]);
        check(None, &[], 0, &[None]);
        check(Some("what is this"), &[], 0, &[None]);
    }
}
