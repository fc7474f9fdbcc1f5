//! A cyclic measurement as cyclictest of rt-tests writes it: status lines, histogram file.
//! Latencies are whole microseconds, cut, as there.

use event::Duration;
use measure::cyclic::Reading;
use measure::histogram::Histogram;

/// The shortest before there is a sample: what none exceeds.
pub(super) const MIN_UNKNOWN: i64 = 1_000_000;

/// The unit of a cyclictest's figures: microseconds, or nanoseconds with its `-N`.
pub(super) fn figure(duration: Duration, in_ns: bool) -> i64 {
    if in_ns {
        duration.as_ns()
    } else {
        duration.as_ns() / 1000
    }
}

/// One status line for each thread.
pub fn cyclictest_status(readings: &[Reading], in_ns: bool) -> String {
    let line = |(number, reading): (usize, &Reading)| {
        let extremes = reading.latency.extremes;
        let of = |duration: Option<Duration>| duration.map_or(0, |one| figure(one, in_ns));
        let min = extremes.map_or(MIN_UNKNOWN, |extremes| figure(extremes.min, in_ns));
        let (act, avg, max) = (
            of(extremes.map(|extremes| extremes.last)),
            of(reading.latency.mean()),
            of(extremes.map(|extremes| extremes.max)),
        );
        let width = if in_ns { 8 } else { 5 };
        format!(
            "T:{number:2} ({:5}) P:{:2} I:{} C:{:7} Min:{min:7} Act:{act:width$} \
             Avg:{avg:width$} Max:{max:8}\n",
            reading.tid.0,
            reading.plan.policy.prio(),
            reading.plan.interval.as_ns() / 1000,
            reading.latency.samples,
        )
    };
    readings.iter().enumerate().map(line).collect()
}

/// The histogram as `-h` and `--histfile` give it; with `sums` a column more, as `-H` does.
pub fn cyclictest_histogram(readings: &[Reading], sums: bool, in_ns: bool) -> String {
    let latencies: Vec<&Histogram> = readings.iter().map(|reading| &reading.latency).collect();
    // Of one thread there is nothing to add up.
    let sums = sums && latencies.len() > 1;
    let rows = latencies.iter().map(|one| one.buckets.len()).max();
    let mut text = String::from("# Histogram\n");
    for row in 0..rows.unwrap_or(0) {
        let counts = latencies
            .iter()
            .map(|one| one.buckets.get(row).copied().unwrap_or(0));
        text += &format!("{row:06} {}", tabbed(counts.clone()));
        if sums {
            text += &format!("\t{:06}", counts.sum::<u64>());
        }
        text.push('\n');
    }
    let samples = latencies.iter().map(|one| one.samples - one.overflows);
    let total = if sums {
        format!(" {:09}", samples.clone().sum::<u64>())
    } else {
        String::new()
    };
    let totals: Vec<String> = samples.map(|count| format!("{count:09}")).collect();
    text += &format!("# Total: {}{total}\n", totals.join(" "));
    let summary = |name: &str, of: &dyn Fn(&Histogram) -> Option<Duration>| {
        let values: Vec<i64> = latencies
            .iter()
            .map(|one| of(one).map_or(0, |value| figure(value, in_ns)))
            .collect();
        let cells: Vec<String> = values.iter().map(|value| format!("{value:05}")).collect();
        let worst = match (sums, name, values.iter().max()) {
            (true, "Max", Some(worst)) => format!(" {worst:05}"),
            _ => String::new(),
        };
        format!("# {name} Latencies: {}{worst}\n", cells.join(" "))
    };
    text += &summary("Min", &|one| one.extremes.map(|extremes| extremes.min));
    text += &summary("Avg", &|one| one.mean());
    text += &summary("Max", &|one| one.extremes.map(|extremes| extremes.max));
    let overflows: Vec<String> = latencies
        .iter()
        .map(|one| format!("{:05}", one.overflows))
        .collect();
    let all = latencies.iter().map(|one| one.overflows).sum::<u64>();
    let all = if sums {
        format!(" {all:05}")
    } else {
        String::new()
    };
    text += &format!("# Histogram Overflows: {}{all}\n", overflows.join(" "));
    text += "# Histogram Overflow at cycle number:\n";
    for (number, one) in latencies.iter().enumerate() {
        let cycles: Vec<String> = one
            .overflow_samples
            .iter()
            .map(|cycle| format!(" {cycle:05}"))
            .collect();
        text += &format!("# Thread {number}:{}", cycles.concat());
        let unnamed = one.overflows - one.overflow_samples.len() as u64;
        if unnamed > 0 {
            text += &format!(" # {unnamed:05} others");
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

fn tabbed(counts: impl Iterator<Item = u64>) -> String {
    let counts: Vec<String> = counts.map(|count| format!("{count:06}")).collect();
    counts.join("\t")
}

#[cfg(test)]
mod tests {
    use super::super::tests::reading;
    use super::*;

    #[test]
    fn a_status_line_is_cyclictests() {
        assert_eq!(
            cyclictest_status(&[reading([1, 5, 3])], false),
            "T: 0 ( 4242) P:80 I:1000 C:      3 Min:      1 Act:    3 Avg:    3 Max:       5\n"
        );
    }

    #[test]
    fn a_histogram_file_has_a_row_for_each_microsecond_and_its_summary() {
        let text = cyclictest_histogram(&[reading([1, 1, 900]), reading([0])], true, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "# Histogram");
        assert_eq!(lines[1], "000000 000000\t000001\t000001");
        assert_eq!(lines[2], "000001 000002\t000000\t000002");
        assert_eq!(
            lines[9..],
            [
                "# Total: 000000002 000000001 000000003",
                "# Min Latencies: 00001 00000",
                "# Avg Latencies: 00300 00000",
                "# Max Latencies: 00900 00000 00900",
                "# Histogram Overflows: 00001 00000 00001",
                "# Histogram Overflow at cycle number:",
                "# Thread 0: 00002",
                "# Thread 1:",
                "",
            ]
        );
    }
}
