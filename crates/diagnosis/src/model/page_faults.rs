//! Page faults, and how long they took at most: the kernel has no event for their end.

use std::collections::HashMap;

use event::Duration;

use super::tasks::VersionId;

/// A small page that needs no device takes so long at most: 1.3 to 1.5 us, and 4.3 us once in a
/// hundred times, on the machine of the tests.
const SMALL_FAULT_MAX: Duration = Duration::from_ns(5_000);
/// A huge page is cleared: 154 to 216 us there.
const HUGE_FAULT_MAX: Duration = Duration::from_ns(200_000);
/// A huge page has so many bytes, and is there after one fault.
const HUGE_PAGE_BITS: u32 = 21;

/// A task touched a page that was not there. Only its begin is an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageFault {
    pub time_ns: i64,
    pub by: VersionId,
    /// What it touched, where the event says it.
    pub address: Option<u64>,
}

/// The page faults of an activation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FaultsOf {
    pub count: usize,
    /// What they took at most, but for what a device took.
    pub took_max: Duration,
}

impl FaultsOf {
    /// A part of the address space with more than one fault has small pages.
    pub fn of<'a>(faults: impl Iterator<Item = &'a PageFault>) -> FaultsOf {
        let mut places: HashMap<u64, usize> = HashMap::new();
        let (mut count, mut huge) = (0, 0);
        for fault in faults {
            count += 1;
            match fault.address {
                Some(address) => *places.entry(address >> HUGE_PAGE_BITS).or_default() += 1,
                None => huge += 1,
            }
        }
        huge += places.values().filter(|faults| **faults == 1).count();
        let small = count - huge;
        let ns = |each: Duration, of: usize| each.as_ns().saturating_mul(of as i64);
        let took_max = ns(SMALL_FAULT_MAX, small).saturating_add(ns(HUGE_FAULT_MAX, huge));
        FaultsOf {
            count,
            took_max: Duration::from_ns(took_max),
        }
    }
}
