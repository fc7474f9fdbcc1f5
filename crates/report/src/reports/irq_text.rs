//! Interrupts and softirqs as text.

use std::fmt::Write;

use views::reports::{Cell, Table};

use super::bars::distribution;
use super::calendar::Calendar;
use super::cells::{count, us};
use super::page::{LogSoFar, Page};

pub(super) fn write(page: &Page<'_>, _: &mut LogSoFar, out: &mut String) {
    let views = page.views;
    if !page.tick.continues && (views.stats || views.freq) {
        stats_freq(page, out);
        if views.log {
            out.push('\n');
        }
    }
    for table in page.tables("log") {
        if page.begins(table) {
            log_head(out);
        }
        log(table, page.calendar, out);
    }
}

/// Of interrupts the raises are not there.
const STATS: [&str; 11] = [
    "irq",
    "count",
    "min_duration",
    "avg_duration",
    "max_duration",
    "stdev_duration",
    "raise_count",
    "min_latency",
    "avg_latency",
    "max_latency",
    "stdev_latency",
];

fn stats_freq(page: &Page<'_>, out: &mut String) {
    let hard = page.cells("hard-stats", STATS).map(|row| (true, row));
    let soft = page.cells("soft-stats", STATS).map(|row| (false, row));
    let mut freqs = page.tables("freq").peekable();
    let mut rows = hard.chain(soft).peekable();
    if rows.peek().is_none() {
        for table in freqs {
            if !table.rows.is_empty() {
                out.push('\n');
                freq(table, out);
            }
        }
        return;
    }
    let each_with_freq = freqs.peek().is_some();
    let mut before = None;
    for (is_hard, row) in rows {
        if each_with_freq || before != Some(is_hard) {
            if !each_with_freq && before.is_some() {
                out.push('\n');
            }
            header(is_hard, out);
            before = Some(is_hard);
        }
        stats_row(is_hard, row, out);
        if each_with_freq {
            if let Some(table) = freqs.next().filter(|table| !table.rows.is_empty()) {
                out.push('\n');
                freq(table, out);
            }
            out.push('\n');
        }
    }
}

fn header(is_hard: bool, out: &mut String) {
    let title = if is_hard { "Hard IRQ" } else { "Soft IRQ" };
    let columns = |first: &str| {
        let rest = format!("{:<12} {:<12} {:<10}", "min", "avg", "max");
        format!("{first} {rest}")
    };
    let durations = columns(&format!("{:<22} {:<14}", "", "count"));
    if is_hard {
        let _ = writeln!(out, "{title:<52} {:<12}", "Duration (us)");
        let _ = writeln!(out, "{durations} {:<12}\n{:-<82}|", "stdev", "");
        return;
    }
    let raises = columns(&format!("{:<3} {:<14}", " |", "count"));
    let titles = format!("{:<52} {:<12}", "Duration (us)", "Raise latency (us)");
    let _ = writeln!(out, "{title:<52} {titles}");
    let _ = writeln!(out, "{durations} {:<4} {raises} {:<12}", "stdev", "stdev");
    let _ = writeln!(out, "{:-<82}|{:-<60}", "", "");
}

fn stats_row(is_hard: bool, [irq, handled, rest @ ..]: [&Cell; 11], out: &mut String) {
    let Cell::Irq { nr, name, .. } = irq else {
        return;
    };
    let [min, average, max, deviation, raised, latencies @ ..] = rest;
    let (number, name) = (format!("{nr}:"), format!("<{name}>"));
    let durations = count(handled);
    let [min, average, max, deviation] = [min, average, max, deviation].map(us);
    let _ = write!(
        out,
        "{number:<3} {name:<18} {durations:>5} {min:>12} {average:>12} {max:>12} {deviation:>12}  |"
    );
    let raises = count(raised);
    if !is_hard && raises > 0 {
        let latencies: [&Cell; 4] = latencies;
        let [min, average, max, deviation] = latencies.map(us);
        let _ = write!(
            out,
            " {raises:>6} {min:>12} {average:>12} {max:>12} {deviation:>12}"
        );
    }
    out.push('\n');
}

fn freq(table: &Table, out: &mut String) {
    let of = table.subtitle.as_deref().unwrap_or_default();
    let title = format!("Handler duration frequency distribution {of}");
    distribution(&title, "µs", table, out);
}

fn log_head(out: &mut String) {
    let _ = writeln!(
        out,
        "{:<20} {:<19} {:>15} {:>4}  {:<9} {:>4}  {:<22}",
        "Begin", "End", "Duration (us)", "CPU", "Type", "#", "Name"
    );
}

fn log(table: &Table, calendar: Calendar, out: &mut String) {
    for row in table.cells(["time_range", "raised_ts", "cpu", "irq"]) {
        let [
            Cell::Range(begin_ns, end_ns),
            raised,
            Cell::Cpu(cpu),
            Cell::Irq { hard, nr, name },
        ] = row
        else {
            continue;
        };
        let (begin, end) = (calendar.time(*begin_ns), calendar.time(*end_ns));
        let duration = format!("{:.3}", (end_ns - begin_ns) as f64 / 1000.0);
        let kind = if *hard { "IRQ" } else { "SoftIRQ" };
        let name = match raised {
            Cell::Time(ns) => format!("{name} (raised at {})", calendar.time(*ns)),
            _ => name.clone(),
        };
        let _ = writeln!(
            out,
            "[{begin:<18}, {end:<18}] {duration:>15} {cpu:>4}  {kind:<9} {nr:>4}  {name:<22}"
        );
    }
}
