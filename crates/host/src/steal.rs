//! What a hypervisor took from each CPU, as the kernel counts it: in ticks, without an instant.

use event::{Cpu, Duration};

/// What no task had of a CPU since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spare {
    /// While it was idle, also while a disk was waited for.
    pub idle: Duration,
    /// While the hypervisor had it.
    pub stolen: Duration,
}

/// Steal of each CPU since boot, where the kernel says it (`/proc/stat`, proc(5)).
pub fn of_cpus() -> Vec<(Cpu, Duration)> {
    let all = spare_of_cpus().into_iter();
    all.map(|(cpu, spare)| (cpu, spare.stolen)).collect()
}

/// The same, with its idle time.
pub fn spare_of_cpus() -> Vec<(Cpu, Spare)> {
    std::fs::read_to_string("/proc/stat").map_or_else(|_| Vec::new(), |text| parse(&text, tick()))
}

/// What was taken between two readings.
pub fn since(before: &[(Cpu, Duration)], now: &[(Cpu, Duration)]) -> Vec<(Cpu, Duration)> {
    let taken = |&(cpu, steal): &(Cpu, Duration)| {
        let (_, earlier) = before.iter().find(|(other, _)| *other == cpu)?;
        Some((cpu, Duration::from_ns(steal.as_ns() - earlier.as_ns())))
    };
    now.iter().filter_map(taken).collect()
}

/// Adds what was taken in another stretch of time.
pub fn add(sums: &mut Vec<(Cpu, Duration)>, more: &[(Cpu, Duration)]) {
    for &(cpu, steal) in more {
        match sums.iter_mut().find(|(other, _)| *other == cpu) {
            Some((_, sum)) => *sum += steal,
            None => sums.push((cpu, steal)),
        }
    }
}

fn tick() -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_ns(1_000_000_000 / per_second as i64)
}

/// `cpuN user nice system idle iowait irq softirq steal …`, in ticks.
fn parse(stat: &str, tick: Duration) -> Vec<(Cpu, Spare)> {
    let line = |line: &str| {
        // The first line is of all CPUs and has no number.
        let (number, figures) = line.strip_prefix("cpu")?.split_once(' ')?;
        let cpu = Cpu(number.parse().ok()?);
        let figures: Vec<&str> = figures.split_ascii_whitespace().collect();
        let time = |at: usize| {
            let ticks: i64 = figures.get(at)?.parse().ok()?;
            Some(Duration::from_ns(ticks.saturating_mul(tick.as_ns())))
        };
        let spare = Spare {
            idle: time(3)? + time(4)?,
            stolen: time(7)?,
        };
        Some((cpu, spare))
    };
    stat.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_figure_of_a_cpu_and_idle_the_fourth_with_the_fifth() {
        let ms = |time: Duration| time.as_ns() / 1_000_000;
        let check = |stat: &str, expect: &[(u32, i64, i64)]| {
            let found: Vec<_> = parse(stat, Duration::from_ms(10))
                .into_iter()
                .map(|(cpu, spare)| (cpu.0, ms(spare.stolen), ms(spare.idle)))
                .collect();
            assert_eq!(found, expect);
        };
        check(
            "cpu  1 1 1 1 1 1 1 9 0 0\ncpu3 1 2 3 4 5 6 7 8 9 10\nintr 5\n",
            &[(3, 80, 90)],
        );
        check("cpu0 1 2 3\n", &[]);
    }

    #[test]
    fn a_cpu_that_came_meanwhile_says_nothing() {
        let ms = Duration::from_ms;
        let before = [(Cpu(0), ms(10))];
        let now = [(Cpu(0), ms(30)), (Cpu(1), ms(5))];
        assert_eq!(since(&before, &now), [(Cpu(0), ms(20))]);
    }
    #[test]
    fn stretches_of_time_are_added_cpu_by_cpu() {
        let ms = Duration::from_ms;
        let mut sums = vec![(Cpu(0), ms(10))];
        add(&mut sums, &[(Cpu(1), ms(5)), (Cpu(0), ms(20))]);
        assert_eq!(sums, [(Cpu(0), ms(30)), (Cpu(1), ms(5))]);
    }
}
