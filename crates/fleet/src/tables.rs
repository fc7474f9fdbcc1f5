//! The tables of a fleet: their columns, and intervals as their rows. `docs/fleet.md` says what
//! each column means; a change of meaning raises [`VERSION`].

use std::collections::BTreeMap;

use abi::monitor::Mode;
use event::{Duration, Error, ErrorKind, Result};
use monitor::{Interval, Kind as Counted, PhaseSum, Run, Scope, Task, Worst};

use crate::columns::{Cell, Kind, Table};

/// Of the schema; it begins every path.
pub const VERSION: u32 = 1;

/// The file by which a fleet's folder or bucket is known.
pub(crate) const MARK: &str = "rtscope-fleet.json";

/// What stands in it.
pub(crate) fn mark() -> String {
    format!("{{\"schema\":\"rtscope.fleet\",\"version\":{VERSION}}}\n")
}

const INTERVAL: &[(&str, Kind)] = &[
    ("begin_time", Kind::Time),
    ("end_time", Kind::Time),
    ("begin_ns", Kind::Integer),
    ("elapsed_ns", Kind::Integer),
    ("boot_id", Kind::Text),
    ("kernel", Kind::Text),
    ("program", Kind::Text),
    ("lost", Kind::Integer),
    ("worst_missed", Kind::Integer),
    ("unsaved", Kind::Integer),
    ("cost_ns", Kind::Integer),
    ("hidden", Kind::Integer),
    ("lost_tracked", Kind::Integer),
];

const PHASE: &[(&str, Kind)] = &[
    ("begin_time", Kind::Time),
    ("begin_ns", Kind::Integer),
    ("boot_id", Kind::Text),
    ("kernel", Kind::Text),
    ("scope", Kind::Text),
    ("phase", Kind::Text),
    ("cpus", Kind::Integer),
    ("samples", Kind::Integer),
    ("sum_ns", Kind::Integer),
    ("min_ns", Kind::Integer),
    ("max_ns", Kind::Integer),
    ("p50_ns", Kind::Integer),
    ("p99_ns", Kind::Integer),
    ("p99_9_ns", Kind::Integer),
    ("bucket_end_ns", Kind::List),
    ("bucket_samples", Kind::List),
];

const DAY: &[(&str, Kind)] = &[
    ("boot_id", Kind::Text),
    ("kernel", Kind::Text),
    ("scope", Kind::Text),
    ("phase", Kind::Text),
    ("intervals", Kind::Integer),
    ("samples", Kind::Integer),
    ("sum_ns", Kind::Integer),
    ("min_ns", Kind::Integer),
    ("max_ns", Kind::Integer),
    ("bucket_end_ns", Kind::List),
    ("bucket_samples", Kind::List),
];

const WORST: &[(&str, Kind)] = &[
    ("time", Kind::Time),
    ("time_ns", Kind::Integer),
    ("begin_ns", Kind::Integer),
    ("boot_id", Kind::Text),
    ("kernel", Kind::Text),
    ("scope", Kind::Text),
    ("phase", Kind::Text),
    ("cpu", Kind::Integer),
    ("value_ns", Kind::Integer),
    ("timer_ns", Kind::Integer),
    ("wakeup_ns", Kind::Integer),
    ("switch_ns", Kind::Integer),
    ("return_ns", Kind::Integer),
    ("victim", Kind::Text),
    ("victim_tid", Kind::Integer),
    ("victim_prio", Kind::Integer),
    ("call", Kind::Text),
    ("running", Kind::Text),
    ("running_name", Kind::Text),
    ("running_tid", Kind::Integer),
    ("running_prio", Kind::Integer),
    ("function", Kind::Text),
    ("stack", Kind::Text),
    ("key", Kind::Text),
];

const LATE: &[(&str, Kind)] = &[
    ("time", Kind::Time),
    ("time_ns", Kind::Integer),
    ("latency_ns", Kind::Integer),
    ("task", Kind::Text),
    ("tid", Kind::Integer),
    ("prio", Kind::Integer),
    ("cause", Kind::Text),
    ("exact", Kind::Truth),
    ("snapshot", Kind::Text),
];

/// A table of a part, as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartFile {
    /// The table's name.
    pub table: &'static str,
    /// What the file holds.
    pub bytes: Vec<u8>,
}

/// Intervals of one boot of a machine on one day, as rows.
pub struct Part {
    interval: Table,
    phase: Table,
    worst: Table,
    /// The boot that is added up, and its phases.
    run: Run,
    day: BTreeMap<(Scope, Counted), OfDay>,
}

/// A phase over a day.
#[derive(Default)]
struct OfDay {
    intervals: i64,
    sum: PhaseSum,
    min: Option<Duration>,
}

impl Default for Part {
    fn default() -> Part {
        Part {
            interval: Table::new(INTERVAL),
            phase: Table::new(PHASE),
            worst: Table::new(WORST),
            run: Run::default(),
            day: BTreeMap::new(),
        }
    }
}

impl Part {
    /// Appends an interval.
    pub fn add(&mut self, run: &Run, interval: &Interval) {
        self.run.boot_id.clone_from(&run.boot_id);
        self.run.kernel.clone_from(&run.kernel);
        let head = &interval.head;
        self.interval.push(&[
            Cell::Time(head.begin_ns),
            Cell::Time(head.end_ns),
            Cell::Integer(head.begin_ns),
            Cell::Integer(head.elapsed.as_ns()),
            Cell::Text(&run.boot_id),
            Cell::Text(&run.kernel),
            Cell::Text(&run.program),
            Cell::Integer(head.lost as i64),
            Cell::Integer(head.worst_missed as i64),
            Cell::Integer(head.unsaved as i64),
            Cell::Integer(head.cost.as_ns()),
            Cell::Integer(signed(head.hidden)),
            Cell::Integer(signed(head.lost_tracked)),
        ]);
        for scope in Scope::ALL {
            for phase in interval.kinds(scope) {
                self.phase(run, interval, scope, phase);
            }
        }
        for worst in &interval.worst {
            self.worst(run, head.begin_ns, worst);
        }
    }

    /// A phase over all CPUs, or what a tracker measured.
    fn phase(&mut self, run: &Run, interval: &Interval, scope: Scope, phase: Counted) {
        let Some(sum) = interval.phase(scope, phase.clone()) else {
            return;
        };
        let of_phase = interval.series.iter();
        let of_phase = of_phase.filter(|one| one.scope == scope && one.phase == phase);
        let (cpus, min) = of_phase.fold((0, Duration::MAX), |(cpus, min), series| {
            (cpus + 1, min.min(series.min))
        });
        let quantile = |quantile| Cell::integer(sum.quantile(quantile).map(Duration::as_ns));
        let (ends, counts) = lists(&sum);
        self.phase.push(&[
            Cell::Time(interval.head.begin_ns),
            Cell::Integer(interval.head.begin_ns),
            Cell::Text(&run.boot_id),
            Cell::Text(&run.kernel),
            Cell::Text(scope.name()),
            Cell::Text(phase.name()),
            Cell::Integer(cpus),
            Cell::Integer(signed(sum.histogram.samples())),
            Cell::Integer(sum.sum.as_ns()),
            Cell::Integer(min.as_ns()),
            Cell::Integer(sum.max.as_ns()),
            quantile(0.5),
            quantile(0.99),
            quantile(0.999),
            Cell::List(&ends),
            Cell::List(&counts),
        ]);
        let day = self.day.entry((scope, phase)).or_default();
        day.intervals += 1;
        day.min = Some(day.min.map_or(min, |known| known.min(min)));
        day.sum.sum += sum.sum;
        day.sum.max = day.sum.max.max(sum.max);
        day.sum.histogram.add(&sum.histogram);
    }

    fn worst(&mut self, run: &Run, begin_ns: i64, worst: &Worst) {
        let name = |task: &'_ Option<Task>| task.as_ref().map(|task| task.name.clone());
        let (victim, culprit) = (name(&worst.victim), name(&worst.culprit));
        let number = |task: &Option<Task>, of: fn(&Task) -> i32| {
            Cell::integer(task.as_ref().map(|task| of(task).into()))
        };
        let running = running(worst);
        let stack = (!worst.stack.is_empty()).then(|| worst.stack.join("\n"));
        self.worst.push(&[
            Cell::Time(worst.at_ns),
            Cell::Integer(worst.at_ns),
            Cell::Integer(begin_ns),
            Cell::Text(&run.boot_id),
            Cell::Text(&run.kernel),
            Cell::Text(worst.scope.name()),
            Cell::Text(worst.phase.name()),
            Cell::Integer(worst.cpu.0.into()),
            Cell::Integer(worst.value.as_ns()),
            Cell::integer(worst.timer.map(Duration::as_ns)),
            Cell::Integer(worst.parts[0].as_ns()),
            Cell::Integer(worst.parts[1].as_ns()),
            Cell::Integer(worst.parts[2].as_ns()),
            Cell::text(victim.as_deref()),
            number(&worst.victim, |task| task.tid),
            number(&worst.victim, |task| task.prio),
            Cell::text(worst.call.as_deref()),
            Cell::text(running.as_deref()),
            Cell::text(culprit.as_deref()),
            number(&worst.culprit, |task| task.tid),
            number(&worst.culprit, |task| task.prio),
            Cell::text(worst.function.as_deref()),
            Cell::text(stack.as_deref()),
            Cell::text(worst.key.as_deref()),
        ]);
    }

    /// The phases over the whole part.
    fn day(&self) -> Table {
        let mut table = Table::new(DAY);
        for ((scope, phase), day) in &self.day {
            let (ends, counts) = lists(&day.sum);
            table.push(&[
                Cell::Text(&self.run.boot_id),
                Cell::Text(&self.run.kernel),
                Cell::Text(scope.name()),
                Cell::Text(phase.name()),
                Cell::Integer(day.intervals),
                Cell::Integer(signed(day.sum.histogram.samples())),
                Cell::Integer(day.sum.sum.as_ns()),
                Cell::integer(day.min.map(Duration::as_ns)),
                Cell::Integer(day.sum.max.as_ns()),
                Cell::List(&ends),
                Cell::List(&counts),
            ]);
        }
        table
    }

    /// The tables that have rows, as files.
    ///
    /// # Errors
    /// When memory for compressing them cannot be had.
    pub fn finish(self) -> Result<Vec<PartFile>> {
        let day = self.day();
        let tables = [
            ("interval", self.interval),
            ("phase", self.phase),
            ("day", day),
            ("worst", self.worst),
        ];
        let filled = tables.into_iter().filter(|(_, table)| table.rows() > 0);
        filled.map(|(name, table)| file(name, table)).collect()
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The ends of the buckets that are not empty, and their samples.
fn lists(sum: &PhaseSum) -> (Vec<i64>, Vec<i64>) {
    let buckets = sum.histogram.bounds_ns();
    buckets
        .map(|(_, end, count)| (signed(end), signed(count)))
        .unzip()
}

/// Late activations that a watch wrote down, as rows.
pub(crate) struct LateRows(Table);

impl Default for LateRows {
    fn default() -> LateRows {
        LateRows(Table::new(LATE))
    }
}

impl LateRows {
    /// Appends a line of `late.ndjson`.
    pub fn add(&mut self, line: &serde_json::Value) {
        let integer = |value: &serde_json::Value| Cell::integer(value.as_i64());
        let task = &line["task"];
        let wall_ns = line["wall_ns"].as_i64();
        self.0.push(&[
            wall_ns.map_or(Cell::None, Cell::Time),
            Cell::integer(wall_ns),
            integer(&line["latency_ns"]),
            Cell::text(task["comm"].as_str()),
            integer(&task["tid"]),
            integer(&task["prio"]),
            Cell::text(line["cause"].as_str()),
            line["exact"].as_bool().map_or(Cell::None, Cell::Truth),
            Cell::text(line["snapshot"].as_str()),
        ]);
    }

    /// The table as a file.
    pub fn finish(self) -> Result<PartFile> {
        file("late", self.0)
    }
}

fn file(table: &'static str, rows: Table) -> Result<PartFile> {
    let version = VERSION.to_string();
    let facts = [
        ("rtscope.fleet.table", table),
        ("rtscope.fleet.version", version.as_str()),
    ];
    let bytes = rows.finish(&facts).map_err(|cause| {
        Error::new(ErrorKind::Io, format!("cannot write the table {table}"))
            .found(cause.to_string())
            .fix("free some memory")
    })?;
    Ok(PartFile { table, bytes })
}

/// What had the CPU, in words that are the same on every machine: no numbers of CPUs, workers and
/// instructions.
fn running(worst: &Worst) -> Option<String> {
    // Who else was in a tracker's interval did not have the CPU.
    worst.phase.phase()?;
    let culprit = worst.culprit.as_ref()?;
    let name = match culprit.tid {
        0 => "idle CPU".to_owned(),
        _ => without_numbers(&culprit.name),
    };
    let function = worst.function.as_deref();
    let function = function.map(|function| function.split_once('+').map_or(function, |f| f.0));
    Some(match (function, worst.mode) {
        (Some(function), Mode::Kernel) => format!("{name}: {function}, interrupts off"),
        (_, Mode::Hidden) => format!("{name}, not seen"),
        (Some(function), Mode::Enabled) => format!("{name}: {function}"),
        _ => name,
    })
}

/// `kworker/0:2` as `kworker/*:*`; a number that ends a word belongs to it, as in `python3`.
fn without_numbers(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut before = None;
    let mut skips = false;
    for letter in name.chars() {
        let begins = before.is_some_and(|before: char| !before.is_alphanumeric());
        if letter.is_ascii_digit() && (skips || begins) {
            if !skips {
                text.push('*');
            }
            skips = true;
        } else {
            text.push(letter);
            skips = false;
        }
        before = Some(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use event::Cpu;

    use super::*;

    #[test]
    fn what_had_the_cpu_is_called_the_same_on_every_machine() {
        let check = |name: &str, expect: &str| assert_eq!(without_numbers(name), expect);
        check("kworker/0:2", "kworker/*:*");
        check("kworker/17:12-events", "kworker/*:*-events");
        check("kworker/u8:3", "kworker/u8:*");
        check("irq/36-virtio1", "irq/*-virtio1");
        check("python3", "python3");
        check("0day", "0day");
        check("pool-1-thread-42", "pool-*-thread-*");
    }

    #[test]
    fn a_function_of_the_kernel_is_named_without_its_offset() {
        let worst = |tid: i32, mode: Mode| Worst {
            scope: Scope::RealTime,
            phase: abi::monitor::Phase::Timer.into(),
            cpu: Cpu(0),
            value: Duration::from_us(5),
            at_ns: 0,
            timer: None,
            parts: [Duration::ZERO; 3],
            victim: None,
            culprit: Some(Task {
                tid,
                prio: 120,
                name: "cat".to_owned(),
            }),
            call: None,
            function: Some("console_flush_all+0x2c".to_owned()),
            mode,
            stack: Vec::new(),
            key: None,
        };
        let check = |tid: i32, mode: Mode, expect: &str| {
            assert_eq!(running(&worst(tid, mode)).as_deref(), Some(expect));
        };
        check(9, Mode::Kernel, "cat: console_flush_all, interrupts off");
        check(9, Mode::Enabled, "cat: console_flush_all");
        check(9, Mode::User, "cat");
        check(9, Mode::Hidden, "cat, not seen");
        check(0, Mode::Idle, "idle CPU");
        let nobody = Worst {
            culprit: None,
            ..worst(9, Mode::User)
        };
        assert_eq!(running(&nobody), None);
    }
}
