//! Time in which no recording of the kernel that was opened ran, or none of a CPU.
//!
//! Traces that are opened together need not overlap. What a CPU did while none of them was
//! recorded is not known, however quiet it was before and behind. Applications' traces have no part
//! in this: their rings hold what the applications said, and say nothing of CPUs.

use std::collections::BTreeSet;

use event::{Cpu, Duration, Instant, TimeRange};

use crate::{LossCause, Lost, LostFrom};

/// The key of `env` under which a trace says whose kernel it recorded.
pub(crate) const HOST: &str = "hostname";
/// The wall clock is set by less than this while archives follow each other; where it is set by
/// more, the time between them never was, and nobody knows it either.
const SLEW_MAX: Duration = Duration::from_ns(1_000_000_000);

/// A recording of a kernel: when it ran, and of which CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Covered {
    /// Whose kernel, where the trace says it.
    pub host: Option<String>,
    /// On the clock of all traces.
    pub range: TimeRange,
    /// What was added to its own times to be there, when its own clock is the kernel's monotonic
    /// one.
    pub shift_ns: Option<i64>,
    /// None where it does not say which.
    pub cpus: Vec<Cpu>,
}

impl Covered {
    /// Another directory of the same trace.
    pub fn join(&mut self, other: Covered) {
        self.range.begin = self.range.begin.min(other.range.begin);
        self.range.end = self.range.end.max(other.range.end);
        // Of any CPU, where one of them does not say.
        match other.cpus.is_empty() {
            true => self.cpus.clear(),
            false if self.cpus.is_empty() => {}
            false => self.cpus.extend(other.cpus),
        }
    }

    fn of(&self, cpu: Cpu) -> bool {
        self.cpus.is_empty() || self.cpus.contains(&cpu)
    }

    /// Its end, moved to where `next` begins when that took over by the kernel's own clock: each
    /// archive of a session is placed by the wall clock of its own begin.
    fn end_before(&self, next: &Covered) -> Instant {
        let (Some(own_ns), Some(next_ns)) = (self.shift_ns, next.shift_ns) else {
            return self.range.end;
        };
        let slew_ns = next_ns.saturating_sub(own_ns);
        let took_over = self.range.end + Duration::from_ns(slew_ns) >= next.range.begin;
        match took_over && slew_ns.unsigned_abs() <= SLEW_MAX.as_ns().unsigned_abs() {
            true => self.range.end.max(next.range.begin),
            false => self.range.end,
        }
    }
}

/// What is not known because of it, in the order of time. `parts` are all recordings of kernels;
/// those of several hosts are silent each by itself.
pub(crate) fn silences(parts: &[Covered]) -> Vec<Lost> {
    if parts.len() < 2 {
        return Vec::new();
    }
    let named: BTreeSet<&str> = parts
        .iter()
        .filter_map(|part| part.host.as_deref())
        .collect();
    let mut lost = match named.len() {
        0 | 1 => of_host(&parts.iter().collect::<Vec<_>>()),
        _ => {
            let hosts: BTreeSet<_> = parts.iter().map(|part| part.host.as_deref()).collect();
            let of = |host| {
                parts
                    .iter()
                    .filter(move |part| part.host.as_deref() == host)
            };
            let all = hosts
                .into_iter()
                .map(|host| of_host(&of(host).collect::<Vec<_>>()));
            all.flatten().collect()
        }
    };
    lost.sort_by_key(|lost| (lost.range.begin, lost.cpu));
    lost
}

/// Those of one host: where it has no recording at all, nothing of any CPU is known; else of a CPU
/// that those which ran then did not have.
fn of_host(parts: &[&Covered]) -> Vec<Lost> {
    let begin = parts.iter().map(|part| part.range.begin).min();
    let end = parts.iter().map(|part| part.range.end).max();
    let (Some(begin), Some(end)) = (begin, end) else {
        return Vec::new();
    };
    let whole = TimeRange { begin, end };
    let of_all = uncovered(parts, whole);
    let mut lost: Vec<Lost> = of_all.iter().map(|range| silence(None, *range)).collect();
    let cpus: BTreeSet<Cpu> = parts
        .iter()
        .flat_map(|part| part.cpus.iter().copied())
        .collect();
    for cpu in cpus {
        let own: Vec<&Covered> = parts.iter().filter(|part| part.of(cpu)).copied().collect();
        let first = own.iter().map(|part| part.range.begin).min();
        // Before its first recording a CPU is one whose events begin later.
        let begin = first.unwrap_or(begin);
        let ranges = uncovered(&own, TimeRange { begin, end }).into_iter();
        let ranges = ranges.flat_map(|range| without(range, &of_all));
        lost.extend(ranges.map(|range| silence(Some(cpu), range)));
    }
    lost
}

/// What of `whole` none of them covers.
fn uncovered(parts: &[&Covered], whole: TimeRange) -> Vec<TimeRange> {
    let mut parts = parts.to_vec();
    parts.sort_by_key(|part| part.range.begin);
    let (mut ranges, mut known_until) = (Vec::new(), whole.begin);
    let mut latest: Option<&Covered> = None;
    for part in parts {
        if let Some(latest) = latest {
            known_until = known_until.max(latest.end_before(part));
        }
        if known_until < part.range.begin {
            ranges.push(TimeRange {
                begin: known_until,
                end: part.range.begin,
            });
        }
        known_until = known_until.max(part.range.end);
        if latest.is_none_or(|latest| latest.range.end < part.range.end) {
            latest = Some(part);
        }
    }
    if known_until < whole.end {
        ranges.push(TimeRange {
            begin: known_until,
            end: whole.end,
        });
    }
    ranges
}

/// What is left of `range` without these, which are in order.
fn without(range: TimeRange, others: &[TimeRange]) -> Vec<TimeRange> {
    let (mut left, mut begin) = (Vec::new(), range.begin);
    for other in others {
        let end = other.begin.min(range.end);
        if begin < end {
            left.push(TimeRange { begin, end });
        }
        begin = begin.max(other.end);
    }
    if begin < range.end {
        left.push(TimeRange {
            begin,
            end: range.end,
        });
    }
    left
}

fn silence(cpu: Option<Cpu>, range: TimeRange) -> Lost {
    Lost {
        cpu,
        range,
        count: None,
        cause: LossCause::Silent,
        from: LostFrom::Recording,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By host, begin and end on the clock of all, what was added to its own times, its CPUs.
    type Part<'a> = (&'a str, i64, i64, Option<i64>, &'a [u32]);

    #[track_caller]
    fn check(parts: &[Part<'_>], expect: &[(Option<u32>, i64, i64)]) {
        let parts = parts
            .iter()
            .map(|(host, begin, end, shift_ns, cpus)| Covered {
                host: (!host.is_empty()).then(|| (*host).to_owned()),
                range: TimeRange {
                    begin: Instant::from_ns(*begin),
                    end: Instant::from_ns(*end),
                },
                shift_ns: *shift_ns,
                cpus: cpus.iter().copied().map(Cpu).collect(),
            });
        let found = silences(&parts.collect::<Vec<_>>());
        assert!(found.iter().all(|lost| lost.cause == LossCause::Silent));
        let ns = |lost: &Lost| (lost.range.begin.as_ns(), lost.range.end.as_ns());
        let of = |lost: &Lost| (lost.cpu.map(|cpu| cpu.0), ns(lost).0, ns(lost).1);
        assert_eq!(found.iter().map(of).collect::<Vec<_>>(), expect);
    }

    const TWO: &[u32] = &[0, 1];

    #[test]
    fn between_recordings_that_do_not_overlap_nothing_is_known_of_any_cpu() {
        let first: Part<'_> = ("a", 0, 10, None, TWO);
        check(&[first], &[]);
        check(&[first, ("a", 5, 20, None, TWO)], &[]);
        check(&[first, ("a", 10, 20, None, TWO)], &[]);
        check(&[first, ("a", 15, 20, None, TWO)], &[(None, 10, 15)]);
        check(&[("a", 15, 20, None, TWO), first], &[(None, 10, 15)]);
        // A short one inside of a long one ends nothing.
        let long = ("a", 0, 30, None, TWO);
        check(&[long, first, ("a", 15, 20, None, TWO)], &[]);
        // One that does not say which CPUs it has may have all.
        check(&[first, ("", 15, 20, None, &[])], &[(None, 10, 15)]);
    }

    #[test]
    fn a_cpu_is_unknown_while_only_recordings_of_others_ran() {
        let (first, last) = (("a", 0, 10, None, TWO), ("a", 15, 20, None, &[0][..]));
        check(&[first, last], &[(None, 10, 15), (Some(1), 15, 20)]);
        let third = ("a", 18, 25, None, &[1, 2][..]);
        let expect = [(None, 10, 15), (Some(1), 15, 18), (Some(0), 20, 25)];
        check(&[first, last, third], &expect);
    }

    #[test]
    fn hosts_are_silent_each_by_itself() {
        let (one, other) = (("a", 0, 10, None, TWO), ("b", 20, 30, None, TWO));
        check(&[one, other], &[]);
        let again = ("a", 40, 50, None, TWO);
        check(&[one, other, again], &[(None, 10, 40)]);
        // Who does not say whose kernel it is may be the one that is named.
        check(&[one, ("", 20, 30, None, TWO)], &[(None, 10, 20)]);
    }

    #[test]
    fn an_archive_that_took_over_by_the_kernels_clock_leaves_nothing_out() {
        let first = ("a", 0, 10, Some(0), TWO);
        // It begins at 10 by its own clock, and the wall clock was slewed by 7 meanwhile.
        check(&[first, ("a", 17, 30, Some(7), TWO)], &[]);
        check(&[first, ("a", 18, 30, Some(7), TWO)], &[(None, 10, 18)]);
        // The wall clock was set.
        let set_ns = 5_000_000_000;
        let later = ("a", set_ns + 10, set_ns + 30, Some(set_ns), TWO);
        check(&[first, later], &[(None, 10, set_ns + 10)]);
    }
}
