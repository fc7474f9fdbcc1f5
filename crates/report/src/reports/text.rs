//! Tables as text: those of lttng-analyses as it prints them, character by character.

use std::fmt::Write;

use views::reports::{Cell, Family, Report, Table, Tick};

use super::bars::{Bar, bars, histogram};
use super::calendar::Calendar;
use super::{io_text, irq_text, periods_text, sched_text, views_text};

/// What one report finds, as text: tick by tick.
#[derive(Debug)]
pub struct ReportText {
    report: Report,
    calendar: Calendar,
    log: LogSoFar,
}

/// What the next part of a log has to know of those before.
#[derive(Debug, Default)]
pub(super) struct LogSoFar {
    /// How wide its columns are, where that hangs on what they hold.
    pub widths: Vec<usize>,
    /// Whether some of it lies outside of the range that was asked for.
    pub has_outside: bool,
}

impl ReportText {
    /// With the times of `calendar`.
    pub fn new(report: Report, calendar: Calendar) -> ReportText {
        ReportText {
            report,
            calendar,
            log: LogSoFar::default(),
        }
    }

    /// What the next tick of this report adds.
    pub fn tick(&mut self, tick: &Tick) -> String {
        let mut out = String::new();
        let calendar = self.calendar;
        let page = Page { tick, calendar };
        if self.report.family == Family::Flame {
            // Programs read it, and know no head.
            views_text::write(&page, &mut self.log, &mut out);
            return out;
        }
        if !tick.continues {
            let range = calendar.with_dates().range(tick.begin_ns, tick.end_ns);
            let _ = writeln!(out, "Timerange: {range}");
        }
        match self.report.family {
            Family::Cpu => cpu(&page, &mut out),
            Family::Sched => sched_text::write(&page, &mut out),
            Family::Irq => irq_text::write(&page, self.report.views, &mut out),
            Family::Io => io_text::write(&page, &mut self.log, &mut out),
            Family::Memory => memory(&page, &mut out),
            Family::Syscalls => syscalls(&page, &mut out),
            Family::Periods => periods_text::write(&page, &mut out),
            _ => views_text::write(&page, &mut self.log, &mut out),
        }
        for table in tick.tables.iter().filter(|table| table.is_unknown_time()) {
            unknown(table, &mut out);
        }
        out
    }
}

/// The tables of one tick.
pub(super) struct Page<'a> {
    pub tick: &'a Tick,
    pub calendar: Calendar,
}

impl<'a> Page<'a> {
    /// Whether a table begins here, and does not only go on.
    pub fn begins(&self, table: &Table) -> bool {
        let is = |first: &Table| std::ptr::eq(first, table);
        !(self.tick.continues && self.tick.tables.first().is_some_and(is))
    }

    /// Whether a table ends here.
    pub fn ends(&self, table: &Table) -> bool {
        let is = |last: &Table| std::ptr::eq(last, table);
        !(self.tick.goes_on && self.tick.tables.last().is_some_and(is))
    }

    /// All tables of a class.
    pub fn tables(&self, class: &'a str) -> impl Iterator<Item = &'a Table> {
        let of_class = move |table: &&Table| table.class.name == class;
        self.tick.tables.iter().filter(of_class)
    }

    /// The rows of the first table of a class.
    pub fn rows(&self, class: &'a str) -> &'a [Vec<Cell>] {
        self.tables(class).next().map_or(&[], |table| &table.rows)
    }
}

/// A number of nanoseconds; zero when the cell is no duration.
pub(super) fn ns(cell: &Cell) -> f64 {
    match cell {
        Cell::Duration(ns) => *ns as f64,
        Cell::DurationFloat(ns) => *ns,
        _ => 0.0,
    }
}

/// Microseconds with three digits, `?` when nobody knows.
pub(super) fn us(cell: &Cell) -> String {
    match cell {
        Cell::Unknown => "?".to_owned(),
        cell => format!("{:.3}", ns(cell) / 1000.0),
    }
}

/// A count; zero when the cell is none.
pub(super) fn count(cell: &Cell) -> u64 {
    match cell {
        Cell::Count(count) | Cell::Size(count) => *count,
        _ => 0,
    }
}

/// The text of a cell that has a name.
pub(super) fn name(cell: &Cell) -> &str {
    match cell {
        Cell::Text(name)
        | Cell::Syscall(name)
        | Cell::Path(name)
        | Cell::Disk(name)
        | Cell::NetIf(name) => name,
        Cell::Process {
            name: Some(name), ..
        } => name,
        _ => "",
    }
}

/// `NAME (TID)`.
pub(super) fn thread(cell: &Cell) -> String {
    match cell {
        Cell::Process { tid: Some(tid), .. } => format!("{} ({tid})", name(cell)),
        _ => "Unknown (N/A)".to_owned(),
    }
}

/// A distribution: lower bound, upper bound, count.
pub(super) fn distribution(title: &str, table: &Table, out: &mut String) {
    let bin = |row: &Vec<Cell>| Bar {
        value: count(&row[2]) as f64,
        text: count(&row[2]).to_string(),
        label: format!("{:>7.3}", ns(&row[0]) / 1000.0),
    };
    let bins: Vec<Bar> = table.rows.iter().map(bin).collect();
    histogram(&format!("{title} (µs)"), &bins, out);
}

fn percent(cell: &Cell) -> f64 {
    match cell {
        Cell::Ratio(share) => share * 100.0,
        _ => 0.0,
    }
}

fn cpu(page: &Page<'_>, out: &mut String) {
    let percent_bar = |share: &Cell, label: String| Bar {
        value: percent(share),
        text: format!("{:.2} %", percent(share)),
        label,
    };
    let label = |process: &str, migrations: &str, prios: &str| {
        format!("  {process:<25} {migrations:>10}   {prios}")
    };
    let threads = page.rows("per-process").iter().map(|row| {
        let migrations = count(&row[1]).to_string();
        let mut bar = percent_bar(&row[3], label(&thread(&row[0]), &migrations, name(&row[2])));
        if let Some(inferred) = row.get(4).map(percent).filter(|share| *share >= 0.005) {
            let _ = write!(bar.label, "  inferred: {inferred:.2} %");
        }
        bar
    });
    let header = label("Process", "Migrations", "Priorities");
    bars("Per-TID Usage", &header, &threads.collect::<Vec<_>>(), out);
    let cpus = page.rows("per-cpu").iter().map(|row| {
        let cpu = match row[0] {
            Cell::Cpu(cpu) => cpu,
            _ => 0,
        };
        percent_bar(&row[1], format!("CPU {cpu}"))
    });
    bars("Per-CPU Usage", "", &cpus.collect::<Vec<_>>(), out);
    if let Some(row) = page.rows("total").first() {
        let _ = writeln!(out, "\nTotal CPU Usage: {:.2}%\n", percent(&row[0]));
    }
}

/// One line a CPU: what the tables above do not cover.
fn unknown(table: &Table, out: &mut String) {
    let _ = writeln!(out, "{}:", table.class.title);
    for row in &table.rows {
        let (Cell::Cpu(cpu), share) = (&row[0], percent(&row[2])) else {
            continue;
        };
        let _ = writeln!(
            out,
            "  CPU {cpu}: {:.3} ms, {share:.2} %",
            ns(&row[1]) / 1e6
        );
    }
    let _ = writeln!(out);
}

fn memory(page: &Page<'_>, out: &mut String) {
    let bar = |row: &Vec<Cell>| Bar {
        value: count(&row[1]) as f64,
        text: format!("{} pages", count(&row[1])),
        label: thread(&row[0]),
    };
    for (class, title) in [
        ("allocd", "Per-TID Memory Allocations"),
        ("freed", "Per-TID Memory Deallocations"),
    ] {
        let rows: Vec<Bar> = page.rows(class).iter().map(bar).collect();
        bars(title, "Process", &rows, out);
    }
    if let Some(row) = page.rows("total").first() {
        let (allocated, freed) = (count(&row[0]), count(&row[1]));
        let _ = writeln!(
            out,
            "\nTotal memory usage:\n- {allocated} pages allocated\n- {freed} pages freed"
        );
    }
}

fn syscalls(page: &Page<'_>, out: &mut String) {
    let line = |cells: [&str; 7], out: &mut String| {
        let [call, count, min, average, max, deviation, returned] = cells;
        let durations = format!("{min:>14} {average:>14} {max:>12} {deviation:>10}");
        let _ = writeln!(out, "{call:<38} {count:>14} {durations}  {returned:<14}");
    };
    out.push_str("Per-TID syscalls statistics (usec)\n");
    let mut all = 0;
    for (total, table) in page.rows("total").iter().zip(page.tables("per-tid")) {
        let title = table.subtitle.as_deref().unwrap_or_default();
        let columns = ["Count", "Min", "Average", "Max", "Stdev", "Return values"];
        let [counts, min, average, max, deviation, returned] = columns;
        line([title, counts, min, average, max, deviation, returned], out);
        for row in &table.rows {
            let call = format!(" - {}", name(&row[0]));
            let calls = count(&row[1]).to_string();
            let [min, average, max, deviation] = [2, 3, 4, 5].map(|place| rounded(&row[place]));
            let cells = [
                &*call,
                &calls,
                &min,
                &average,
                &max,
                &deviation,
                name(&row[6]),
            ];
            line(cells, out);
        }
        let calls = count(&total[1]);
        line(["Total:", &calls.to_string(), "", "", "", "", ""], out);
        let _ = writeln!(out, "{:-<113}", "");
        all += calls;
    }
    let _ = writeln!(out, "\nTotal syscalls: {all}");
}

/// Microseconds rounded to three digits, without zeros at the end but the first.
fn rounded(cell: &Cell) -> String {
    match cell {
        Cell::Unknown => "?".to_owned(),
        cell => {
            let rounded: f64 = us(cell).parse().unwrap_or(0.0);
            format!("{rounded:?}")
        }
    }
}
