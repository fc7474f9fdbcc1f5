//! Wake-ups and their latencies as text.

use std::fmt::Write;

use views::reports::{Cell, Table};

use super::calendar::Calendar;
use super::text::{Page, count, distribution, name, ns, thread, us};

pub(super) fn write(page: &Page<'_>, out: &mut String) {
    for table in page.tables("total_stats") {
        total(table, out);
    }
    for table in page.tables("per_tid_stats") {
        per_tid(table, out);
    }
    for table in page.tables("per_prio_stats") {
        per_prio(table, out);
    }
    for table in page.tables("freq") {
        let of = table.subtitle.as_deref().unwrap_or("None");
        let title = format!("Scheduling latency frequency distribution - {of}");
        distribution(&title, table, out);
    }
    for table in page.tables("log").chain(page.tables("top")) {
        if page.begins(table) {
            wakes_head(table, out);
        }
        wakes(table, page.calendar, out);
    }
}

fn number(cell: &Cell) -> i64 {
    match cell {
        Cell::Number(number) => *number,
        _ => 0,
    }
}

/// The title of a table, and whether it has rows at all.
fn heading(table: &Table, header: &str, out: &mut String) -> bool {
    if table.rows.is_empty() {
        return false;
    }
    let _ = writeln!(out, "\n{} (us)\n{header}", table.class.title);
    true
}

fn total(table: &Table, out: &mut String) {
    let line = |cells: [&str; 5]| {
        let [count, min, average, max, deviation] = cells;
        format!("{count:<12} {min:<12} {average:<12} {max:<12} {deviation:<12}")
    };
    if !heading(table, &line(["Count", "Min", "Avg", "Max", "Stdev"]), out) {
        return;
    }
    for row in &table.rows {
        let [min, average, max, deviation] = [1, 2, 3, 4].map(|place| us(&row[place]));
        let count = count(&row[0]).to_string();
        let _ = writeln!(out, "{}", line([&count, &min, &average, &max, &deviation]));
    }
}

/// Least, mean, greatest and deviation from the third column on.
fn latencies(row: &[Cell]) -> String {
    let [min, average, max, deviation] = [2, 3, 4, 5].map(|place| us(&row[place]));
    format!("{min:>12}  {average:>12}  {max:>12}  {deviation:>12}")
}

fn per_tid(table: &Table, out: &mut String) {
    let header = format!(
        "{:<25} {:>8}  {:>12}  {:>12}  {:>12}  {:>12}   Priorities",
        "Process", "Count", "Min", "Avg", "Max", "Stdev"
    );
    if !heading(table, &header, out) {
        return;
    }
    for row in &table.rows {
        let (thread, count) = (thread(&row[0]), count(&row[1]));
        let (latencies, prios) = (latencies(row), name(&row[6]));
        let _ = writeln!(out, "{thread:<25} {count:>8}  {latencies}   {prios}");
    }
}

fn per_prio(table: &Table, out: &mut String) {
    let header = format!(
        "{:>4} {:>8}  {:>12}  {:>12}  {:>12}  {:>12}",
        "Prio", "Count", "Min", "Avg", "Max", "Stdev"
    );
    if !heading(table, &header, out) {
        return;
    }
    for row in &table.rows {
        let (prio, count) = (number(&row[0]), count(&row[1]));
        let _ = writeln!(out, "{prio:>4} {count:>8}  {}", latencies(row));
    }
}

fn wakes_head(table: &Table, out: &mut String) {
    let _ = writeln!(out, "\n{}", table.class.title);
    let _ = writeln!(
        out,
        "{:<20} {:<19} {:>15} {:>10}  {:>3}   {:<25}  {:<25}",
        "Wakeup", "Switch", "Latency (us)", "Priority", "CPU", "Wakee", "Waker"
    );
}

fn wakes(table: &Table, calendar: Calendar, out: &mut String) {
    let time = |cell: &Cell| match cell {
        Cell::Time(ns) => calendar.time(*ns),
        _ => String::new(),
    };
    for row in &table.rows {
        let (woken, switched) = (time(&row[0]), time(&row[1]));
        let latency = format!("{:.3}", ns(&row[2]) / 1000.0);
        let prio = number(&row[3]);
        let cpu = match row[4] {
            Cell::Cpu(cpu) => cpu,
            _ => 0,
        };
        let (wakee, waker) = (thread(&row[5]), thread(&row[6]));
        let range = format!("[{woken:<18}, {switched:<18}]");
        let _ = writeln!(
            out,
            "{range} {latency:>15} {prio:>10}  {cpu:>3}   {wakee:<25}  {waker:<25}"
        );
    }
}
