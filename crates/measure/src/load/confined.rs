//! Whether a load may still run on all the CPUs on which it could: one that somebody moves away
//! (affinity, a cpuset, hotplug) leaves a CPU without its load, and goes on completing things.

use std::collections::BTreeSet;

use event::{Cpu, Duration};

/// Whoever changes a process for a moment takes no CPU away.
const GONE: Duration = Duration::from_ms(1_000);

/// The CPUs of a load, from look to look.
#[derive(Clone, Debug, Default)]
pub(super) struct Confined {
    /// Those on which it could run at any time.
    ever: BTreeSet<Cpu>,
    /// Since when one of them is missing.
    since: Option<Duration>,
    found: Option<String>,
}

impl Confined {
    /// Takes a look: `now` are the CPUs that any of its processes may have; none between two.
    pub(super) fn look(&mut self, at: Duration, now: &BTreeSet<Cpu>) {
        if now.is_empty() {
            return;
        }
        self.ever.extend(now);
        let missing: Vec<Cpu> = self.ever.difference(now).copied().collect();
        if missing.is_empty() {
            self.since = None;
            return;
        }
        let since = *self.since.get_or_insert(at);
        if at - since >= GONE && self.found.is_none() {
            let list = host::shield::list(&missing);
            self.found = Some(format!(
                "nothing of it may run on CPU {list} from {since} of the run on (affinity, a \
                 cpuset or hotplug): see taskset -p"
            ));
        }
    }

    /// Those on which it could run at any time.
    pub(super) fn ever(&self) -> impl Iterator<Item = &Cpu> {
        self.ever.iter()
    }

    /// Which CPUs it lost and when, if it did.
    pub(super) fn found(&mut self) -> Option<String> {
        self.found.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_a_load_loses_for_a_second_is_told_and_one_that_it_never_had_is_not() {
        // Half a second from look to look.
        let check = |looks: &[&[u32]], expect: Option<&str>| {
            let mut confined = Confined::default();
            for (at, cpus) in looks.iter().enumerate() {
                let cpus = cpus.iter().copied().map(Cpu).collect();
                confined.look(Duration::from_ms(500 * at as i64), &cpus);
            }
            let found = confined.found();
            let as_expected = match (&found, expect) {
                (Some(found), Some(expect)) => found.contains(expect),
                (None, None) => true,
                _ => false,
            };
            assert!(as_expected, "{looks:?}: {found:?}");
        };
        check(&[&[0, 1], &[0, 1], &[0, 1]], None);
        check(&[&[0, 1], &[1], &[1], &[1]], Some("CPU 0 from 500.000 ms"));
        check(&[&[0, 1], &[1], &[1], &[0, 1]], None);
        check(&[&[0, 1], &[1], &[0, 1], &[1], &[1]], None);
        // The end was cut: it came back, and that it had gone stays known.
        check(&[&[0, 1, 2], &[1], &[1], &[1], &[0, 1, 2]], Some("CPU 0,2"));
        // Nothing of it was there to be asked.
        check(&[&[0, 1], &[], &[], &[], &[0, 1]], None);
        // A cpuset of its own from the begin.
        check(&[&[1], &[1], &[1], &[1]], None);
        check(&[], None);
    }
}
