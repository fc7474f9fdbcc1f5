//! The counters of a CPU by LTTng's names, `perf:cpu:NAME`, as the kernel numbers them.

use bpf_host::Counter;

/// How the names begin.
pub(super) const PREFIX: &str = "perf:cpu:";

/// The kinds of `perf_event_open` (include/uapi/linux/perf_event.h).
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const RAW: u32 = 4;

/// What the processor counts, by number, with the other name that some have.
const OF_HARDWARE: [&[&str]; 10] = [
    &["cpu-cycles", "cycles"],
    &["instructions"],
    &["cache-references"],
    &["cache-misses"],
    &["branch-instructions", "branches"],
    &["branch-misses"],
    &["bus-cycles"],
    &["stalled-cycles-frontend"],
    &["stalled-cycles-backend"],
    &["ref-cycles"],
];
/// What the kernel counts itself.
const OF_SOFTWARE: [&[&str]; 9] = [
    &["cpu-clock"],
    &["task-clock"],
    &["page-faults", "page-fault", "faults"],
    &["context-switches", "cs"],
    &["cpu-migrations", "migrations"],
    &["minor-faults"],
    &["major-faults"],
    &["alignment-faults"],
    &["emulation-faults"],
];
const CACHES: [&str; 6] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch"];
/// What is done with a cache: all of it, and what was not found there.
const USES: [[&str; 2]; 3] = [
    ["loads", "load-misses"],
    ["stores", "store-misses"],
    ["prefetches", "prefetch-misses"],
];

/// The counter `name`, without the prefix; `raw:rN:NAME` is one of the processor's own numbers.
pub(super) fn counter(name: &str) -> Option<Counter> {
    let (kind, config) = of_list(HARDWARE, &OF_HARDWARE, name)
        .or_else(|| of_list(SOFTWARE, &OF_SOFTWARE, name))
        .or_else(|| of_cache(name))
        .or_else(|| raw(name))?;
    Some(Counter {
        name: format!("{PREFIX}{name}"),
        kind,
        config,
    })
}

fn of_list(kind: u32, list: &[&[&str]], name: &str) -> Option<(u32, u64)> {
    let place = list.iter().position(|names| names.contains(&name))?;
    Some((kind, place as u64))
}

fn of_cache(name: &str) -> Option<(u32, u64)> {
    let (place, rest) = CACHES.iter().enumerate().find_map(|(place, cache)| {
        let rest = name.strip_prefix(cache)?.strip_prefix('-')?;
        Some((place as u64, rest))
    })?;
    let (of_use, result) = USES.iter().enumerate().find_map(|(of_use, names)| {
        let result = names.iter().position(|name| *name == rest)?;
        Some((of_use as u64, result as u64))
    })?;
    Some((CACHE, place | of_use << 8 | result << 16))
}

fn raw(name: &str) -> Option<(u32, u64)> {
    let (number, name) = name.strip_prefix("raw:r")?.split_once(':')?;
    let config = u64::from_str_radix(number, 16).ok()?;
    (!name.is_empty()).then_some((RAW, config))
}

/// What its field is called: LTTng's names have signs that those of fields cannot.
pub(super) fn field_name(counter: &Counter) -> String {
    let name = counter.name.replace("raw:r", "raw_r");
    name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_the_kernels_number_of_lttngs_name() {
        let check = |name: &str, expect: Option<(u32, u64)>| {
            let found = counter(name).map(|counter| (counter.kind, counter.config));
            assert_eq!(found, expect, "{name}");
        };
        check("cycles", Some((HARDWARE, 0)));
        check("cpu-cycles", Some((HARDWARE, 0)));
        check("page-faults", Some((SOFTWARE, 2)));
        check("cs", Some((SOFTWARE, 3)));
        check("L1-dcache-loads", Some((CACHE, 0)));
        check("LLC-store-misses", Some((CACHE, 2 | 1 << 8 | 1 << 16)));
        check("raw:r01c2:uops", Some((RAW, 0x1c2)));
        check("raw:r01c2:", None);
        check("raw:rxyz:uops", None);
        check("page", None);
        let faults = counter("page-faults").expect("a counter");
        assert_eq!(field_name(&faults), "perf_cpu_page_faults");
    }
}
