//! Whether the loads together had CPUs to load: one that is kept from running completes something
//! now and then, and loads nothing.
//!
//! Each load asks for all of its CPUs. What they get is held against what those had free and what
//! they had at all, a stretch after the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use event::{Cpu, Duration};
use host::groups;
use host::steal::{self, Spare};

use super::{Running, left};

/// A stretch, and the least of one that is judged at the end.
const STRETCH: Duration = Duration::from_ms(5_000);
const STRETCH_MIN: Duration = Duration::from_ms(2_000);
/// Where their CPUs had free so many times what the loads took, something kept them from it.
const FREE_MAX: f64 = 4.0;
/// Where others than us had so many times what the loads took, nobody can call it their load.
const OTHERS_MAX: f64 = 15.0;
/// A group that is out of its quota for more than this part of the time is no load.
const OUT_OF_QUOTA_MAX: f64 = 0.5;

/// Where everything stood at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
struct Moment {
    at: Duration,
    /// CPU time of all loads, and of this process with whatever else it started.
    loads: Duration,
    own: Duration,
    /// For how long each of the loads' CPUs was free, and was taken by the hypervisor.
    cpus: BTreeMap<Cpu, Spare>,
    /// For how long each control group of the loads was out of its quota.
    out_of_quota: BTreeMap<PathBuf, Duration>,
}

/// The loads of a run, from look to look.
#[derive(Debug, Default)]
pub struct Starved {
    /// When the stretch began.
    begin: Option<Moment>,
    last: Option<Moment>,
    found: Option<String>,
}

impl Starved {
    /// Takes a look at `loads`, behind their own.
    pub fn look(&mut self, at: Duration, loads: &[Running]) {
        if loads.is_empty() || loads.iter().any(|load| load.ended.is_some()) {
            return;
        }
        let taken = loads.iter().map(|load| load.progress.cpu_time());
        let taken: Duration = taken.sum();
        let all = left::cpu_time_of(std::process::id());
        let of_cpus: BTreeMap<Cpu, Spare> = steal::spare_of_cpus().into_iter().collect();
        let cpus = loads.iter().flat_map(|load| load.progress.cpus());
        let spare = |cpu: &Cpu| Some((*cpu, *of_cpus.get(cpu)?));
        let programs = loads
            .iter()
            .flat_map(|load| left::programs_below(load.keeper.id()));
        self.add(Moment {
            at,
            loads: taken,
            own: (all - taken).max(Duration::ZERO),
            cpus: cpus.filter_map(spare).collect(),
            out_of_quota: groups::out_of_quota(Path::new("/"), programs),
        });
    }

    fn add(&mut self, moment: Moment) {
        let begin = self.begin.get_or_insert_with(|| moment.clone());
        if moment.at - begin.at >= STRETCH {
            let found = judge(begin, &moment);
            self.found = self.found.take().or(found);
            self.begin = Some(moment.clone());
        }
        self.last = Some(moment);
    }

    /// Why the loads were none, if that is so.
    pub fn found(&self) -> Option<String> {
        self.found.clone().or_else(|| {
            let (begin, last) = self.begin.as_ref().zip(self.last.as_ref())?;
            let is_long = last.at - begin.at >= STRETCH_MIN;
            is_long.then(|| judge(begin, last)).flatten()
        })
    }
}

/// Why the loads were none between two moments, if that is so.
fn judge(from: &Moment, to: &Moment) -> Option<String> {
    let span = to.at - from.at;
    let (when, loads) = (
        format!("from {} to {} of the run", from.at, to.at),
        to.loads - from.loads,
    );
    let of_cpus = |of: fn(&Spare) -> Duration| -> Duration {
        let each = to.cpus.iter().filter_map(|(cpu, now)| {
            // The kernel's count of idle time may go back a little.
            Some((of(now) - of(from.cpus.get(cpu)?)).max(Duration::ZERO))
        });
        each.sum()
    };
    let count = to.cpus.len();
    let whole_ns = span.as_ns() as f64 * count as f64;
    for (folder, now) in &to.out_of_quota {
        let Some(before) = from.out_of_quota.get(folder) else {
            continue;
        };
        let share = (*now - *before).as_ns() as f64 / whole_ns.max(1.0);
        if share > OUT_OF_QUOTA_MAX {
            return Some(format!(
                "its control group was out of its quota for {:.0} % of the time {when}: cpu.max \
                 or cpu.cfs_quota_us in {}",
                share * 100.0,
                folder.display()
            ));
        }
    }
    let (free, stolen) = (of_cpus(|cpu| cpu.idle), of_cpus(|cpu| cpu.stolen));
    let taken_ns = loads.as_ns() as f64;
    let took = format!("all loads together took {loads} of CPU time {when}");
    if free.as_ns() as f64 > taken_ns * FREE_MAX {
        return Some(format!(
            "{took}, and their {count} CPUs had {free} free: something kept them from running (a \
             quota, a disk, a freezer)"
        ));
    }
    let own = to.own - from.own;
    let others_ns = whole_ns - (loads + own + free + stolen).as_ns() as f64;
    (others_ns > taken_ns * OTHERS_MAX).then(|| {
        let others = Duration::from_ns(others_ns as i64);
        format!("{took}, and others took {others} of their {count} CPUs: see top")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In so many seconds of two CPUs, in milliseconds: taken by loads and by us, free, stolen, and
    /// out of quota.
    fn judged(seconds: i64, [loads, own, free, stolen, quota]: [i64; 5]) -> Option<String> {
        let moment = |at: i64| {
            let ms = |per_second: i64| Duration::from_ms(1_000 + per_second * at);
            let cpu = Spare {
                idle: ms(free / 2),
                stolen: ms(stolen / 2),
            };
            Moment {
                at: Duration::from_ms(at * 1_000),
                loads: ms(loads),
                own: ms(own),
                cpus: [(Cpu(0), cpu), (Cpu(1), cpu)].into(),
                out_of_quota: [(PathBuf::from("/cg/slow"), ms(quota))].into(),
            }
        };
        let mut starved = Starved::default();
        (0..=seconds).for_each(|at| starved.add(moment(at)));
        starved.found()
    }

    #[test]
    fn loads_that_leave_their_cpus_free_or_to_others_are_none() {
        let check = |per_second_ms: [i64; 5], expect: Option<&str>| {
            for seconds in [2, 5, 13] {
                let found = judged(seconds, per_second_ms);
                let as_expected = match (&found, expect) {
                    (Some(found), Some(expect)) => found.contains(expect),
                    (None, None) => true,
                    _ => false,
                };
                assert!(as_expected, "{seconds} s of {per_second_ms:?}: {found:?}");
            }
            // Too short to tell.
            assert_eq!(judged(1, per_second_ms), None);
        };
        check([1_900, 20, 80, 0, 0], None);
        // On a busy machine, a sixth.
        check([330, 20, 0, 0, 0], None);
        // While gaps are looked for.
        check([1_200, 600, 200, 0, 0], None);
        check([20, 20, 1_960, 0, 1_960], Some("/cg/slow"));
        check([20, 20, 1_960, 0, 0], Some("CPUs had"));
        check([100, 20, 1_880, 0, 0], Some("kept them from running"));
        // Behind others: a hog that is more urgent, or a nice value.
        check([30, 20, 0, 0, 0], Some("others took"));
        // The application that is measured, and the hypervisor, take what they take.
        check([60, 1_900, 0, 0, 0], None);
        check([60, 40, 0, 1_900, 0], None);
        // A quota of one CPU and a half.
        check([1_500, 0, 500, 0, 500], None);
    }
}
