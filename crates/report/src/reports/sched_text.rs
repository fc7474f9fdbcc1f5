//! Wake-ups and their latencies as text.

use std::fmt::Write;

use views::reports::{Cell, Table};

use super::bars::distribution;
use super::calendar::Calendar;
use super::cells::{count, cpu, name, ns, thread, us};
use super::page::{LogSoFar, Page};

/// Least, mean, greatest and deviation.
const LATENCIES: [&str; 4] = ["min_latency", "avg_latency", "max_latency", "stdev_latency"];

pub(super) fn write(page: &Page<'_>, _: &mut LogSoFar, out: &mut String) {
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
        distribution(&title, "µs", table, out);
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
    for ([number], latencies) in table.cells(["count"]).zip(table.cells(LATENCIES)) {
        let [min, average, max, deviation] = latencies.map(us);
        let count = count(number).to_string();
        let _ = writeln!(out, "{}", line([&count, &min, &average, &max, &deviation]));
    }
}

fn latencies(cells: [&Cell; 4]) -> String {
    let [min, average, max, deviation] = cells.map(us);
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
    let wakees = table.cells(["process", "count", "prio_list"]);
    for ([process, number, prios], cells) in wakees.zip(table.cells(LATENCIES)) {
        let (thread, count) = (thread(process), count(number));
        let (latencies, prios) = (latencies(cells), name(prios));
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
    let prios = table.cells(["prio", "count"]);
    for ([prio, count_cell], cells) in prios.zip(table.cells(LATENCIES)) {
        let (prio, count) = (number(prio), count(count_cell));
        let _ = writeln!(out, "{prio:>4} {count:>8}  {}", latencies(cells));
    }
}

const WAKES: [&str; 7] = [
    "wakeup_ts",
    "switch_ts",
    "latency",
    "prio",
    "target_cpu",
    "wakee_proc",
    "waker_proc",
];

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
    for [woken, switched, latency, prio, target, wakee, waker] in table.cells(WAKES) {
        let (woken, switched) = (time(woken), time(switched));
        let latency = format!("{:.3}", ns(latency) / 1000.0);
        let (prio, cpu) = (number(prio), cpu(target));
        let (wakee, waker) = (thread(wakee), thread(waker));
        let range = format!("[{woken:<18}, {switched:<18}]");
        let _ = writeln!(
            out,
            "{range} {latency:>15} {prio:>10}  {cpu:>3}   {wakee:<25}  {waker:<25}"
        );
    }
}
