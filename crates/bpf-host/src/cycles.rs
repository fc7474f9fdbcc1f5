//! What was seen of the cycles of targets that a timer of their own wakes, or others.

use abi::SleepsInside;
use event::{Result, Tid};
use libbpf_rs::{MapCore, MapFlags, Object};

use crate::object;

/// Of all targets that slept in between; the one with the longest cycle first.
pub(crate) fn read(object: &Object) -> Result<Vec<SleepsInside>> {
    let map = object::map(object, "cycles")?;
    let mut found = Vec::new();
    for key in map.keys() {
        let value = map.lookup(&key, MapFlags::ANY);
        let value = value.map_err(|error| object::explain("read", &error))?;
        // Nothing where it went to make room for another one.
        found.extend(value.as_deref().and_then(abi::decode_cycles));
    }
    let mut found = of_one_kind(found);
    found.sort_by_key(|one| std::cmp::Reverse(one.worst.duration()));
    Ok(found)
}

/// Of each task one: what others gave it with and without such sleeps is added up. Where a timer of
/// its own wakes it steadily, and others do in between, its sleeps to a moment are its releases.
fn of_one_kind(found: Vec<SleepsInside>) -> Vec<SleepsInside> {
    let of_timer = found.iter().filter(|one| !one.by_others);
    let of_timer: Vec<Tid> = of_timer.map(|one| one.task.tid).collect();
    let mut kept: Vec<SleepsInside> = Vec::new();
    for one in found {
        if one.naps && of_timer.contains(&one.task.tid) {
            continue;
        }
        let same = |known: &&mut SleepsInside| {
            known.by_others && one.by_others && known.task.tid == one.task.tid
        };
        match kept.iter_mut().find(same) {
            Some(known) => add(known, &one),
            None => kept.push(one),
        }
    }
    kept
}

fn add(known: &mut SleepsInside, other: &SleepsInside) {
    known.cycles += other.cycles;
    known.sleeps += other.sleeps;
    known.over += other.over;
    known.naps |= other.naps;
    if other.worst.duration() > known.worst.duration() {
        known.worst = other.worst;
    }
}

/// Nothing was seen until now; how steady each timer is stays known.
pub(crate) fn forget(object: &Object) -> Result<()> {
    let map = object::map(object, "cycles")?;
    let keys: Vec<Vec<u8>> = map.keys().collect();
    for key in keys {
        // One that is gone made room for another one.
        map.delete(&key).ok();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use event::evidence::TaskRef;
    use event::{Instant, Prio, TimeRange};

    use super::*;

    fn one(by_others: bool, naps: bool, sleeps: u64) -> SleepsInside {
        SleepsInside {
            task: TaskRef {
                tid: Tid(7),
                comm: "x".to_owned(),
                prio: Prio::from_rt(50),
            },
            by_others,
            naps,
            cycles: 2,
            sleeps,
            over: 1,
            worst: TimeRange {
                begin: Instant::from_ns(0),
                end: Instant::from_ns(sleeps as i64),
            },
        }
    }

    #[test]
    fn what_others_gave_a_task_is_added_up_and_its_timers_releases_are_none_of_it() {
        let check = |given: &[SleepsInside], expect: &[(bool, u64, u64, i64)]| {
            let found = of_one_kind(given.to_vec());
            let found = found.iter().map(|one| {
                let worst_ns = one.worst.duration().as_ns();
                (one.by_others, one.sleeps, one.over, worst_ns)
            });
            assert_eq!(found.collect::<Vec<_>>(), expect, "{given:?}");
        };
        let of_timer = one(false, false, 30);
        let (asks, naps) = (one(true, false, 4), one(true, true, 5));
        check(&[asks.clone(), naps.clone()], &[(true, 9, 2, 5)]);
        check(
            &[asks, naps, of_timer.clone()],
            &[(true, 4, 1, 4), (false, 30, 1, 30)],
        );
        check(&[of_timer], &[(false, 30, 1, 30)]);
    }
}
