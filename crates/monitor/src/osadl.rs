//! The store as the files of OSADL's kernel patch: `latency_hist/KIND/CPUn` and
//! `max_latency-CPUn`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use abi::monitor::{LINEAR_MAX, Phase};
use event::{Cpu, Duration, Error, ErrorKind, Result};

use crate::interval::{Interval, Scope, Worst};
use crate::store::{Range, Store};
use crate::task::Task;

/// The folders of the patch, and what lies in them here.
const KINDS: [(&str, Phase); 5] = [
    ("missed_timer_offsets", Phase::Timer),
    ("wakeup", Phase::Wakeup),
    ("switchtime", Phase::Switch),
    ("timerandwakeup", Phase::TimerWakeup),
    ("timerwakeupswitch", Phase::TimerWakeupSwitch),
];
const PRIO_MAX: i32 = 99;

/// Writes the intervals of `range`, added up, to `folder`.
///
/// # Errors
/// [`ErrorKind::NotFound`] when nothing was counted in this form; what the operating system says.
pub fn export_osadl(store: &Store, range: Range, folder: &Path) -> Result<()> {
    let mut sum = Interval::default();
    let mut worst: BTreeMap<(u8, u32), Worst> = BTreeMap::new();
    store.read(range, |_, interval| {
        for one in &interval.worst {
            let Some(phase) = one.phase.phase().filter(|_| one.scope == Scope::RealTime) else {
                continue;
            };
            let place = (phase as u8, one.cpu.0);
            let known = worst.get(&place).map(|known| known.value);
            if known < Some(one.value) {
                worst.insert(place, one.clone());
            }
        }
        sum.append(interval);
        Ok(())
    })?;
    if sum.linear.is_empty() {
        let what = "no interval was counted in OSADL's form";
        return Err(Error::new(ErrorKind::NotFound, what)
            .found(store.path().display().to_string())
            .fix("run 'rtscope monitor --linear' for a while"));
    }
    for (kind, phase) in KINDS {
        let folder = folder.join("latency_hist").join(kind);
        let write = |name: String, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text)
                .map_err(|cause| Error::io(format!("cannot write {}", path.display()), cause))
        };
        let made = std::fs::create_dir_all(&folder);
        made.map_err(|cause| Error::io(format!("cannot make {}", folder.display()), cause))?;
        for (_, cpu, linear) in sum.linear.iter().filter(|(of, ..)| *of == phase) {
            write(
                format!("CPU{}", cpu.0),
                &histogram(&sum, phase, *cpu, &linear.0),
            )?;
            let longest = worst.get(&(phase as u8, cpu.0));
            write(format!("max_latency-CPU{}", cpu.0), &longest_line(longest))?;
        }
    }
    Ok(())
}

fn histogram(sum: &Interval, phase: Phase, cpu: Cpu, counts: &[(u16, u64)]) -> String {
    let us = |duration: Duration| duration.as_ns() / 1000;
    let mut series = sum.series.iter();
    let series =
        series.find(|one| one.scope == Scope::RealTime && one.phase == phase && one.cpu == cpu);
    let samples: u64 = counts.iter().map(|(_, count)| count).sum();
    let longer = counts.iter().find(|(us, _)| usize::from(*us) == LINEAR_MAX);
    let longer = longer.map_or(0, |(_, count)| *count);
    let (min, max, all) = series.map_or((0, 0, 0), |one| (us(one.min), us(one.max), us(one.sum)));
    let average = all / (samples.max(1) as i64);
    let mut text = format!(
        "#Minimum latency: {min} microseconds\n#Average latency: {average} microseconds\n\
         #Maximum latency: {max} microseconds\n#Total samples: {samples}\n\
         #There are 0 samples lower than 0 microseconds.\n\
         #There are {longer} samples greater or equal than {LINEAR_MAX} microseconds.\n\
         #usecs\t         samples\n"
    );
    let mut counts = counts.iter().peekable();
    for us in 0..LINEAR_MAX {
        let here = counts.next_if(|(of, _)| usize::from(*of) == us);
        let _ = writeln!(text, "{us:6}\t{:16}", here.map_or(0, |(_, count)| *count));
    }
    text
}

/// Victim, its latency with the timer's part, and who had the CPU.
fn longest_line(worst: Option<&Worst>) -> String {
    let Some((worst, victim)) = worst.and_then(|worst| Some((worst, worst.victim.as_ref()?)))
    else {
        return "(none)\n".to_owned();
    };
    let us = |duration: Duration| duration.as_ns() / 1000;
    let nobody = Task::default();
    let culprit = worst.culprit.as_ref().unwrap_or(&nobody);
    let timer = worst.timer.map_or(0, us);
    format!(
        "{} {} {} ({timer}) {} <- {} {} {} {}.{:06}\n",
        victim.tid,
        PRIO_MAX - victim.prio,
        us(worst.value),
        victim.name,
        culprit.tid,
        PRIO_MAX - culprit.prio,
        culprit.name,
        worst.at_ns.div_euclid(1_000_000_000),
        worst.at_ns.rem_euclid(1_000_000_000) / 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::sample;

    #[test]
    fn a_file_has_a_row_for_each_microsecond_and_counts_what_is_longer() {
        let text = histogram(&sample(0), Phase::Timer, Cpu(0), &[(3, 4), (10240, 1)]);
        assert!(text.contains("#Total samples: 5\n"), "{text:.400}");
        assert!(text.contains("#There are 1 samples greater or equal than 10240"));
        let rows: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rows.len(), 10240);
        assert_eq!(rows[3], "     3\t               4");
    }

    #[test]
    fn the_longest_is_told_with_victim_and_culprit() {
        let interval = sample(1);
        let line = longest_line(interval.worst.first());
        assert_eq!(line, "7 50 5 (2) task7 <- 1 50 task1 300.000000\n");
        assert_eq!(longest_line(None), "(none)\n");
    }
}
