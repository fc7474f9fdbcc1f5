//! A cyclic measurement as a table for people.

use event::Duration;
use measure::cyclic::{PHASES, Reading};
use measure::histogram::Histogram;

use super::units::us;
use super::{Cyclic, Late, carried, samples_over};

/// Cells of the picture: each is a doubling, from half a microsecond to 16 milliseconds.
const CELLS: usize = 16;
/// Where the first cell ends.
const FIRST_CELL_NS: i64 = 500;
/// From few samples to many, each step ten times as many.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One column of the table.
struct Column {
    name: &'static str,
    /// In letters, the gap before it included.
    width: usize,
    /// Those with the lowest rank go first where a line has no room for all.
    rank: usize,
    cell: fn(&Reading) -> String,
}

const fn column(
    name: &'static str,
    width: usize,
    rank: usize,
    cell: fn(&Reading) -> String,
) -> Column {
    Column {
        name,
        width,
        rank,
        cell,
    }
}

/// Of a task, and in microseconds of its latencies. The picture is the last, and left of its gap.
const COLUMNS: [Column; 11] = [
    column("CPU", 3, 10, |one| {
        one.plan
            .cpu
            .map_or("any".to_owned(), |cpu| cpu.0.to_string())
    }),
    column("thread", 9, 5, |one| one.tid.0.to_string()),
    column("samples", 10, 7, |one| one.latency.samples.to_string()),
    column("min", 8, 4, |one| {
        us(one.latency.extremes.map(|all| all.min))
    }),
    column("avg", 8, 6, |one| us(one.latency.mean())),
    column("p50", 8, 1, |one| us(carried(&one.latency, 0.5))),
    column("p99", 8, 2, |one| us(carried(&one.latency, 0.99))),
    column("p99.9", 8, 3, |one| us(carried(&one.latency, 0.999))),
    column("max", 10, 9, |one| {
        us(one.latency.extremes.map(|all| all.max))
    }),
    column("missed", 7, 8, |one| one.missed.to_string()),
    column(PICTURE, CELLS + 2, 0, |one| picture(&one.latency)),
];
const PICTURE: &str = "picture";

/// Those that a line of so many letters has room for.
fn columns_within(room: Option<usize>) -> Vec<&'static Column> {
    let mut columns: Vec<&Column> = COLUMNS.iter().collect();
    let is_wider = |columns: &[&Column]| {
        let width: usize = columns.iter().map(|column| column.width).sum();
        room.is_some_and(|room| width > room)
    };
    // Which CPU, and its longest, is the least that is said.
    for rank in 0..COLUMNS.len() - 2 {
        if is_wider(&columns) {
            columns.retain(|column| column.rank != rank);
        }
    }
    columns
}

/// A line of the table, of what each column says.
fn line(columns: &[&Column], cell: impl Fn(&Column) -> String) -> String {
    let cells = columns.iter().map(|column| {
        let (text, width) = (cell(column), column.width);
        match column.name == PICTURE {
            true => format!("  {text}"),
            false => format!("{text:>width$}"),
        }
    });
    cells.collect::<String>() + "\n"
}

/// The table, then what it rests on. Latencies are in microseconds. `–` is a quantile that these
/// samples cannot carry. Columns that have no room in a line of `room` letters are left out.
pub fn cyclic_text(cyclic: &Cyclic, room: Option<usize>) -> String {
    let columns = columns_within(room);
    let mut text = line(&columns, |column| column.name.to_owned());
    for reading in cyclic.readings {
        text += &line(&columns, |column| (column.cell)(reading));
    }
    text += match columns.iter().any(|column| column.name == PICTURE) {
        true => {
            "in us; picture: 0.5 us to 16 ms, a cell doubles the one before, a step is ten times \
             the samples\n"
        }
        false => "in us\n",
    };
    text += &phases(cyclic);
    text += &late(cyclic);
    if let Some(broken) = cyclic.broken {
        let thread = cyclic.readings.get(broken.thread);
        let tid = thread.map_or(0, |reading| reading.tid.0);
        text += &format!(
            "ended by sample {} of thread {tid}: {:#}\n",
            broken.sample, broken.latency
        );
    }
    text += &basis(cyclic);
    if !cyclic.complete {
        text += "interrupted: what stands here was measured until then\n";
    }
    for warning in cyclic.warnings {
        text += &format!("doubtful: {warning}\n");
    }
    text
}

/// The parts of the samples of each thread: average, longest, and those of the longest sample.
fn phases(cyclic: &Cyclic) -> String {
    let mut text = String::new();
    for reading in cyclic.readings {
        let Some(phases) = &reading.phases else {
            continue;
        };
        let cells = |of: &dyn Fn(usize) -> Option<Duration>| -> String {
            let cell = |phase: usize| format!(" {:>9}", us(of(phase)));
            (0..PHASES.len()).map(cell).collect()
        };
        let part = |phase: usize| &phases.parts[phase];
        let rows = [
            ("avg", cells(&|phase| part(phase).mean())),
            (
                "max",
                cells(&|phase| part(phase).extremes.map(|one| one.max)),
            ),
            (
                "of the longest",
                cells(&|phase| Some(phases.longest[phase])),
            ),
        ];
        let names: String = PHASES.iter().map(|name| format!(" {name:>9}")).collect();
        text += &format!("phases of thread {:<8}{names}\n", reading.tid.0);
        for (name, cells) in rows {
            text += &format!("  {name:<23}{cells}\n");
        }
        if phases.unsplit > 0 {
            text += &format!(
                "  {} samples could not be split, the longest of {}\n",
                phases.unsplit,
                phases.unsplit_max.short()
            );
        }
    }
    if let Some(cost) = cyclic.phases_cost {
        let samples: u64 = cyclic.readings.iter().map(|one| one.latency.samples).sum();
        let each = cost.as_ns() / samples.max(1).cast_signed();
        text += &format!(
            "the phases cost {each} ns of CPU time a sample, in the kernel, with what they cost \
             the others' wake-ups and switches\n"
        );
    }
    text
}

/// How many samples were late, how many of them were explained, and what that cost.
fn late(cyclic: &Cyclic) -> String {
    let Some(late) = cyclic.late else {
        return String::new();
    };
    let samples: u64 = cyclic.readings.iter().map(|one| one.latency.samples).sum();
    let each_ns = late.cost.as_ns() / samples.max(1).cast_signed();
    format!(
        "{}\nthe watch cost {each_ns} ns of CPU time a sample, in the kernel, with what it cost \
         the others' wake-ups and switches\n",
        late_sentence(late, samples_over(cyclic.readings, late.over)),
    )
}

/// How many of the late samples were explained, and what became of the others.
fn late_sentence(late: &Late, samples: u64) -> String {
    let Late {
        explained,
        suppressed,
        lost,
        ..
    } = late;
    let over = late.count(samples);
    let mut text = format!("{over} samples over {:#}: {explained} explained", late.over);
    let unseen = over - explained - suppressed - lost;
    let others = [
        (*suppressed, "not, because longer ones are"),
        (*lost, "lost"),
        (unseen, "not seen by the watch"),
    ];
    for (count, why) in others.iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {count} {why}");
    }
    text
}

/// How the samples lie: a cell for each doubling of latency.
fn picture(latency: &Histogram) -> String {
    let mut cells = [0u64; CELLS];
    let place = |ns: i64| {
        let doublings = (ns / FIRST_CELL_NS)
            .checked_ilog2()
            .map_or(0, |log| log + 1);
        (doublings as usize).min(CELLS - 1)
    };
    for (bucket, samples) in latency.buckets.iter().enumerate() {
        cells[place(bucket as i64 * latency.width.as_ns())] += samples;
    }
    let beyond_ns = latency.buckets.len() as i64 * latency.width.as_ns();
    cells[place(beyond_ns)] += latency.overflows;
    let height = |&samples: &u64| match samples.checked_ilog10() {
        None => ' ',
        Some(log) => HEIGHTS[(log as usize).min(HEIGHTS.len() - 1)],
    };
    cells
        .iter()
        .map(height)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

fn basis(cyclic: &Cyclic) -> String {
    let seconds = |duration: Duration| duration.as_ns() as f64 / 1e9;
    let elapsed = seconds(cyclic.elapsed);
    let cost = 100.0 * seconds(cyclic.cpu_time) / elapsed.max(1e-9);
    let samples: u64 = cyclic.readings.iter().map(|one| one.latency.samples).sum();
    let below: u64 = cyclic
        .readings
        .iter()
        .map(|one| one.latency.below_zero)
        .sum();
    let mut text = format!(
        "{samples} samples in {elapsed:.1} s, policy {}, clock {}, Linux {}, preemption {}; \
         measuring took {cost:.2} % of a CPU\n",
        policies(cyclic.readings),
        cyclic.clock.name(),
        cyclic.kernel,
        cyclic.preemption,
    );
    if below > 0 {
        text +=
            &format!("the clock was set while we measured: {below} samples before their instant\n");
    }
    text
}

/// Each policy once, as in `fifo 80`.
fn policies(readings: &[Reading]) -> String {
    let mut names: Vec<String> = Vec::new();
    for reading in readings {
        let policy = reading.plan.policy;
        let name = match policy.prio() {
            0 => policy.name().to_owned(),
            prio => format!("{} {prio}", policy.name()),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::Late;
    use super::super::tests::{cyclic, reading};
    use super::*;

    #[test]
    fn a_thread_is_a_row_with_its_picture() {
        let readings = [reading(
            (0..100).map(|n| if n == 50 { 900 } else { 1 + n % 3 }),
        )];
        let warnings = ["a hypervisor runs below".to_owned()];
        let text = cyclic_text(&cyclic(&readings, &warnings), None);
        let row = text.lines().nth(1).expect("a row");
        let words: Vec<_> = row.split_whitespace().collect();
        assert_eq!(words[..5], ["1", "4242", "100", "1.0", "11.0"]);
        // p50 has fifty samples above it, p99 only one.
        assert_eq!(words[5..8], ["3.0", "–", "–"]);
        assert_eq!(words[8..10], ["900.0", "2"]);
        assert!(
            text.contains(
                "100 samples in 10.0 s, policy fifo 80, clock monotonic, Linux 6.12.1-rt"
            )
        );
        assert!(
            text.ends_with("doubtful: a hypervisor runs below\n"),
            "{text}"
        );
    }

    #[test]
    fn a_narrow_table_leaves_out_columns_and_keeps_the_longest() {
        let readings = [reading([1, 2, 900])];
        let check = |room: usize, expect: &str| {
            let text = cyclic_text(&cyclic(&readings, &[]), Some(room));
            let heading = text.lines().next().unwrap_or_default();
            let words: Vec<&str> = heading.split_whitespace().collect();
            assert_eq!(words.join(" "), expect, "{room}");
            for row in text.lines().take(2) {
                assert!(row.chars().count() <= room, "{room}: {row}");
            }
            assert_eq!(text.contains("picture"), expect.contains("picture"));
        };
        check(
            97,
            "CPU thread samples min avg p50 p99 p99.9 max missed picture",
        );
        check(79, "CPU thread samples min avg p50 p99 p99.9 max missed");
        check(78, "CPU thread samples min avg p99 p99.9 max missed");
        check(59, "CPU thread samples min avg max missed");
        check(20, "CPU max missed");
        check(13, "CPU max");
    }

    #[test]
    fn what_explaining_late_samples_cost_is_said() {
        let readings = [reading([1, 2, 3, 900])];
        let late = Late {
            over: Duration::from_us(100),
            explained: 1,
            suppressed: 3,
            lost: 2,
            cost: Duration::from_us(4),
            samples: vec![],
        };
        let explained = Cyclic {
            late: Some(&late),
            ..cyclic(&readings, &[])
        };
        let text = cyclic_text(&explained, None);
        let expect = "the watch cost 1000 ns of CPU time a sample";
        assert!(text.contains(expect), "{text}");
        assert!(!cyclic_text(&cyclic(&readings, &[]), None).contains("explained"));
    }

    #[test]
    fn each_late_sample_is_explained_or_it_is_said_why_not() {
        let check = |(explained, suppressed, lost): (u64, u64, u64), over: u64, expect: &str| {
            let late = Late {
                over: Duration::from_us(100),
                explained,
                suppressed,
                lost,
                cost: Duration::ZERO,
                samples: vec![],
            };
            assert_eq!(late_sentence(&late, over), expect);
        };
        check((0, 0, 0), 0, "0 samples over 100us: 0 explained");
        check((1, 0, 0), 1, "1 samples over 100us: 1 explained");
        let all = "16 samples over 100us: 2 explained, 3 not, because longer ones are, 1 lost, 10 \
                   not seen by the watch";
        check((2, 3, 1), 16, all);
        check((2, 0, 0), 1, "2 samples over 100us: 2 explained");
    }

    #[test]
    fn a_cell_is_a_doubling_and_its_height_a_power_of_ten() {
        let check = |samples_us: Vec<i64>, expect: &str| {
            assert_eq!(picture(&reading(samples_us).latency), expect);
        };
        check(vec![], "");
        check(vec![0], "▁");
        check(vec![1; 10], "  ▂");
        check(vec![2, 4], "   ▁▁");
        // Beyond the last bucket of 8 us.
        check(vec![900], "     ▁");
    }
}
