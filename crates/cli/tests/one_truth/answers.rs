//! What the reports say about one trace, by the names of their columns.

use std::collections::{BTreeMap, BTreeSet};

use event::{Instant, TimeRange};
use trace::Trace;
use views::reports::{Cell, REPORTS, Report, ReportOptions, Table, Tick, run_reports};

use crate::damage::Opened;
use crate::truth::Window;

/// What is asked; each is a report by its name.
const ASKED: [&str; 7] = [
    "cputop",
    "states",
    "resources",
    "schedlog",
    "schedstats",
    "schedtop",
    "dependency",
];

/// What a thread did, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStates {
    pub run_ns: i64,
    pub call_ns: i64,
    pub interrupted_ns: i64,
    pub waiting_ns: i64,
    pub blocked_ns: i64,
    pub unknown_ns: i64,
    /// At most so much less on a CPU: a switch was not recorded.
    pub inferred_ns: i64,
    /// Rows of this id: threads had it one after the other.
    pub rows: i64,
}

impl ThreadStates {
    /// The time between its switches.
    pub fn on_cpu_ns(&self) -> i64 {
        self.run_ns + self.call_ns + self.interrupted_ns
    }
}

/// What a CPU did, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuStates {
    pub idle_ns: i64,
    pub run_ns: i64,
    pub call_ns: i64,
    pub irq_ns: i64,
    pub softirq_ns: i64,
    pub unknown_ns: i64,
}

impl CpuStates {
    /// All but idle and unknown.
    pub fn busy_ns(&self) -> i64 {
        self.run_ns + self.call_ns + self.irq_ns + self.softirq_ns
    }
}

/// A wake-up and its switch-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    pub tid: i32,
    pub begin_ns: i64,
    pub end_ns: i64,
}

/// Count and longest of a thread's waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitStats {
    pub count: u64,
    pub max_ns: i64,
}

/// All answers.
#[derive(Clone, Debug)]
pub struct Answers {
    pub window: Window,
    /// `cputop`, its shares as time.
    pub top_ns: BTreeMap<i32, i64>,
    pub top_cpu_ns: BTreeMap<u32, i64>,
    pub threads: BTreeMap<i32, ThreadStates>,
    pub cpus: BTreeMap<u32, CpuStates>,
    /// `resources`, CPUs.
    pub busy_ns: BTreeMap<u32, i64>,
    /// `schedlog`.
    pub waits: Vec<Wait>,
    /// `schedtop`, the longest first.
    pub longest: Vec<Wait>,
    pub stats: BTreeMap<i32, WaitStats>,
    /// The table `unknown` behind each report that has one.
    pub unknown_ns: Vec<(&'static str, BTreeMap<u32, i64>)>,
    /// `dependency`: a thread, who had the CPU, for how long.
    pub behind_ns: BTreeMap<(i32, Option<i32>), i64>,
}

pub type Answer<T> = Result<T, String>;

/// A trace of which claims are made.
pub trait Told {
    /// It, to be asked.
    fn opened(&self) -> Opened;

    /// What of it is asked for: from when to when, inclusive.
    fn asked(&self) -> Option<Window> {
        None
    }

    /// The same for reports, which go by the wall clock.
    fn options(&self, trace: &Trace) -> ReportOptions {
        let wall_ns = |ns: i64| trace.wall_ns(Instant::from_ns(ns));
        let asked = self.asked();
        ReportOptions {
            begin_ns: asked.map(|window| wall_ns(window.begin_ns)),
            end_ns: asked.map(|window| wall_ns(window.end_ns)),
            ..ReportOptions::default()
        }
    }

    /// The same for verbs that go by the trace's clock.
    fn range(&self) -> TimeRange {
        let asked = self.asked();
        asked.map_or(TimeRange::ALL, |window| TimeRange {
            begin: Instant::from_ns(window.begin_ns),
            end: Instant::from_ns(window.end_ns + 1),
        })
    }

    /// What the reports say.
    fn answers(&self) -> Answer<Answers> {
        let trace = self.opened();
        Answers::asked(&trace, &self.options(&trace))
    }

    /// Names, or patterns, that mean all threads.
    fn names(&self) -> BTreeSet<String>;

    /// Whether a thread waits for a CPU right before this instant.
    fn waits_at(&self, tid: i32, at_ns: i64) -> bool;
}

/// A row whose cells are found by the keys of their columns.
struct Row<'t> {
    table: &'t Table,
    cells: &'t [Cell],
}

impl Row<'_> {
    fn cell(&self, key: &str) -> Answer<&Cell> {
        let columns = self.table.class.columns;
        let place = columns.iter().position(|column| column.key == key);
        let cell = place.and_then(|place| self.cells.get(place));
        cell.ok_or_else(|| format!("{} has no column '{key}'", self.table.class.name))
    }

    fn ns(&self, key: &str) -> Answer<i64> {
        match self.cell(key)? {
            Cell::Duration(ns) | Cell::Time(ns) => Ok(*ns),
            Cell::DurationFloat(ns) => Ok(ns.round() as i64),
            Cell::Empty | Cell::Unknown => Ok(0),
            other => Err(format!("{key} is no time: {other:?}")),
        }
    }

    /// A share of the window as time.
    fn share_ns(&self, key: &str) -> Answer<i64> {
        let window_ns = self.table.end_ns - self.table.begin_ns;
        match self.cell(key)? {
            Cell::Ratio(share) => Ok((share * window_ns as f64).round() as i64),
            other => Err(format!("{key} is no share: {other:?}")),
        }
    }

    fn tid(&self, key: &str) -> Answer<Option<i32>> {
        match self.cell(key)? {
            Cell::Process { tid, .. } => Ok(*tid),
            Cell::Text(text) if text == "idle" => Ok(Some(0)),
            Cell::Empty | Cell::Unknown | Cell::Text(_) => Ok(None),
            other => Err(format!("{key} is no thread: {other:?}")),
        }
    }

    fn cpu(&self, key: &str) -> Answer<u32> {
        match self.cell(key)? {
            Cell::Cpu(cpu) => Ok(*cpu),
            other => Err(format!("{key} is no CPU: {other:?}")),
        }
    }

    fn count(&self, key: &str) -> Answer<u64> {
        match self.cell(key)? {
            Cell::Count(count) => Ok(*count),
            other => Err(format!("{key} is no count: {other:?}")),
        }
    }

    fn wait(&self) -> Answer<Wait> {
        Ok(Wait {
            tid: self.tid("wakee_proc")?.unwrap_or(-1),
            begin_ns: self.ns("wakeup_ts")?,
            end_ns: self.ns("switch_ts")?,
        })
    }
}

/// The tables of each report, those that come in parts put together.
struct Tables(Vec<Vec<Table>>);

impl Tables {
    fn of(trace: &Trace, names: &[&str], options: &ReportOptions) -> Answer<Tables> {
        let report = |name: &&str| -> Answer<Report> {
            let named = REPORTS.iter().find(|named| named.name == *name);
            Ok(named.ok_or(format!("no report '{name}'"))?.report)
        };
        let reports = names.iter().map(report).collect::<Answer<Vec<_>>>()?;
        let mut tables = vec![Vec::new(); names.len()];
        let found = |tick: Tick| {
            tables[tick.report].extend(tick.tables);
            Ok(())
        };
        run_reports(trace, &reports, options, found).map_err(|error| error.to_string())?;
        Ok(Tables(tables))
    }

    fn each(
        &self,
        report: usize,
        class: &str,
        mut row: impl FnMut(Row<'_>) -> Answer<()>,
    ) -> Answer<()> {
        let of_class = self.0[report]
            .iter()
            .filter(|table| table.class.name == class);
        for table in of_class {
            for cells in &table.rows {
                row(Row { table, cells })?;
            }
        }
        Ok(())
    }
}

/// The rows of a table of one report.
pub fn rows(trace: &Trace, report: &str, class: &str, options: &ReportOptions) -> Vec<Vec<Cell>> {
    let tables = Tables::of(trace, &[report], options).expect("the report answers");
    let tables = tables.0.into_iter().flatten();
    let of_class = tables.filter(|table| table.class.name == class);
    of_class.flat_map(|table| table.rows).collect()
}

impl Answers {
    /// Asks all of them; none when the trace has no window.
    pub fn of(trace: &Trace) -> Answer<Answers> {
        Answers::asked(trace, &ReportOptions::default())
    }

    /// What `states` says of threads, without the row of those that nobody knows.
    pub fn threads(&self) -> impl Iterator<Item = (&i32, &ThreadStates)> {
        self.threads.iter().filter(|(tid, _)| **tid >= 0)
    }

    /// The same with other options.
    pub fn asked(trace: &Trace, options: &ReportOptions) -> Answer<Answers> {
        let tables = Tables::of(trace, &ASKED, options)?;
        let first = tables.0.iter().flatten().next();
        let mut answers = Answers {
            window: first.map_or(
                Window {
                    begin_ns: 0,
                    end_ns: 0,
                },
                |table| Window {
                    begin_ns: table.begin_ns,
                    end_ns: table.end_ns,
                },
            ),
            top_ns: BTreeMap::new(),
            top_cpu_ns: BTreeMap::new(),
            threads: BTreeMap::new(),
            cpus: BTreeMap::new(),
            busy_ns: BTreeMap::new(),
            waits: Vec::new(),
            longest: Vec::new(),
            stats: BTreeMap::new(),
            unknown_ns: Vec::new(),
            behind_ns: BTreeMap::new(),
        };
        answers.read_cpus(&tables)?;
        answers.read_threads(&tables)?;
        answers.read_waits(&tables)?;
        answers.read_unknown(&tables)?;
        Ok(answers)
    }

    fn read_cpus(&mut self, tables: &Tables) -> Answer<()> {
        tables.each(0, "per-cpu", |row| {
            let ns = row.share_ns("usage")?;
            self.top_cpu_ns.insert(row.cpu("cpu")?, ns);
            Ok(())
        })?;
        tables.each(1, "cpus", |row| {
            let states = CpuStates {
                idle_ns: row.ns("idle")?,
                run_ns: row.ns("run")?,
                call_ns: row.ns("call")?,
                irq_ns: row.ns("irq")?,
                softirq_ns: row.ns("softirq")?,
                unknown_ns: row.ns("unknown")?,
            };
            self.cpus.insert(row.cpu("cpu")?, states);
            Ok(())
        })?;
        tables.each(2, "resources", |row| {
            if let Cell::Text(name) = row.cell("resource")?
                && let Some(cpu) = name.strip_prefix("CPU ")
            {
                let cpu = cpu.parse().map_err(|_| format!("no CPU: {name}"))?;
                self.busy_ns.insert(cpu, row.ns("busy")?);
            }
            Ok(())
        })
    }

    fn read_threads(&mut self, tables: &Tables) -> Answer<()> {
        tables.each(0, "per-process", |row| {
            let tid = row.tid("process")?.unwrap_or(-1);
            *self.top_ns.entry(tid).or_default() += row.share_ns("usage")?;
            Ok(())
        })?;
        tables.each(1, "threads", |row| {
            let tid = row.tid("process")?.unwrap_or(-1);
            let states = self.threads.entry(tid).or_default();
            states.run_ns += row.ns("run")?;
            states.call_ns += row.ns("call")?;
            states.interrupted_ns += row.ns("interrupted")?;
            states.waiting_ns += row.ns("waiting")?;
            states.blocked_ns += row.ns("blocked")?;
            states.unknown_ns += row.ns("unknown")?;
            states.inferred_ns += row.ns("inferred")?;
            states.rows += 1;
            Ok(())
        })
    }

    fn read_waits(&mut self, tables: &Tables) -> Answer<()> {
        tables.each(3, "log", |row| {
            self.waits.push(row.wait()?);
            Ok(())
        })?;
        tables.each(4, "per_tid_stats", |row| {
            let tid = row.tid("process")?.unwrap_or(-1);
            let stats = self.stats.entry(tid).or_default();
            stats.count += row.count("count")?;
            stats.max_ns = stats.max_ns.max(row.ns("max_latency")?);
            Ok(())
        })?;
        tables.each(5, "top", |row| {
            self.longest.push(row.wait()?);
            Ok(())
        })?;
        tables.each(6, "cpu", |row| {
            let pair = (row.tid("process")?.unwrap_or(-1), row.tid("behind")?);
            *self.behind_ns.entry(pair).or_default() += row.ns("total")?;
            Ok(())
        })
    }

    fn read_unknown(&mut self, tables: &Tables) -> Answer<()> {
        for (place, name) in ASKED.iter().enumerate() {
            let mut unknown_ns = BTreeMap::new();
            tables.each(place, "unknown", |row| {
                unknown_ns.insert(row.cpu("cpu")?, row.ns("unknown")?);
                Ok(())
            })?;
            self.unknown_ns.push((name, unknown_ns));
        }
        Ok(())
    }
}
