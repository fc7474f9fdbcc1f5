//! The reports that lttng-analyses does not have, as text: tables, with plots over time.

use std::fmt::Write;

use views::reports::{Cell, Table};

use super::cells::ns;
use super::grid::Grid;
use super::page::{LogSoFar, Page};
use super::plain_text;

/// Columns of a plot.
const WIDTH: usize = 80;
/// Lines of a plot.
const HEIGHT: usize = 12;
/// Eighths of a character, from nothing to all.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn write(page: &Page<'_>, so_far: &mut LogSoFar, out: &mut String) {
    for table in &page.tick.tables {
        match table.class.name {
            "series" => plot(table, out),
            "busy" => strips(table, out),
            // It stands behind the tables of every report.
            _ if table.is_unknown_time() => {}
            "stacks" => collapsed(table, out),
            // Numbers of events do not stand beside times.
            "event-stacks" if !page.tick.tables.iter().any(has_times) => counted(table, out),
            "event-stacks" => {}
            _ => {
                let ends = (page.begins(table), page.ends(table));
                let grid = Grid::of(table, page.calendar);
                out.push_str(&grid.part(ends, &mut so_far.widths));
            }
        }
    }
}

/// The columns of a plot that a stretch of the table's time covers.
fn covered(table: &Table, begin_ns: i64, end_ns: i64) -> std::ops::RangeInclusive<usize> {
    let whole_ns = (table.end_ns - table.begin_ns).max(1) as f64;
    let place = |ns: i64| {
        let share = (ns - table.begin_ns) as f64 / whole_ns;
        ((share * WIDTH as f64) as usize).min(WIDTH - 1)
    };
    place(begin_ns)..=place((end_ns - 1).max(begin_ns))
}

/// The longest interval of each column.
fn plot(table: &Table, out: &mut String) {
    let mut columns = [0.0_f64; WIDTH];
    for [range, longest] in table.cells(["time_range", "max_interval"]) {
        let Cell::Range(begin_ns, end_ns) = range else {
            continue;
        };
        for place in covered(table, *begin_ns, *end_ns) {
            columns[place] = columns[place].max(ns(longest) / 1000.0);
        }
    }
    let max = columns.iter().copied().fold(0.0, f64::max);
    if max <= 0.0 {
        return;
    }
    let _ = writeln!(
        out,
        "{} (µs, the longest of each column)",
        plain_text::title(table)
    );
    for line in (0..HEIGHT).rev() {
        let bar = |value: &f64| {
            let eighths = (value / max * HEIGHT as f64 - line as f64) * 8.0;
            BLOCKS[eighths.clamp(0.0, 8.0).ceil() as usize]
        };
        let bars: String = columns.iter().map(bar).collect();
        let label = match line {
            line if line == HEIGHT - 1 => format!("{max:.3}"),
            0 => "0".to_owned(),
            _ => String::new(),
        };
        let _ = writeln!(out, "{label:>12} │{}", bars.trim_end());
    }
    let _ = writeln!(out, "{:>12} └{:─<WIDTH$}\n", "", "");
}

/// How busy each resource was, column by column.
fn strips(table: &Table, out: &mut String) {
    let mut names: Vec<&str> = Vec::new();
    let mut strips: Vec<[f64; WIDTH]> = Vec::new();
    for cells in table.cells(["resource", "time_range", "share"]) {
        let [
            Cell::Text(name),
            Cell::Range(begin_ns, end_ns),
            Cell::Ratio(share),
        ] = cells
        else {
            continue;
        };
        if names.last() != Some(&name.as_str()) {
            names.push(name);
            strips.push([0.0; WIDTH]);
        }
        let Some(strip) = strips.last_mut() else {
            continue;
        };
        for place in covered(table, *begin_ns, *end_ns) {
            strip[place] = strip[place].max(*share);
        }
    }
    if names.is_empty() {
        return;
    }
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    let _ = writeln!(
        out,
        "{} (the busiest stretch of each column)",
        plain_text::title(table)
    );
    for (name, strip) in names.iter().zip(&strips) {
        let block = |share: &f64| BLOCKS[(share * 8.0).clamp(0.0, 8.0).ceil() as usize];
        let blocks: String = strip.iter().map(block).collect();
        let _ = writeln!(out, "{name:<width$} │{}", blocks.trim_end());
    }
    out.push('\n');
}

fn has_times(table: &Table) -> bool {
    table.class.name == "stacks" && !table.rows.is_empty()
}

/// A line per stack with how many events happened in it: the same form.
fn counted(table: &Table, out: &mut String) {
    for [stack, count] in table.cells(["stack", "count"]) {
        if let (Cell::Text(stack), Cell::Count(count)) = (stack, count) {
            let _ = writeln!(out, "{stack} {count}");
        }
    }
}

/// A line per stack with its own time in microseconds: what `flamegraph.pl` and others read.
fn collapsed(table: &Table, out: &mut String) {
    for [stack, own] in table.cells(["stack", "self"]) {
        let Cell::Text(stack) = stack else { continue };
        let us = (ns(own) / 1000.0).round();
        if us > 0.0 {
            let _ = writeln!(out, "{stack} {us}");
        }
    }
}
