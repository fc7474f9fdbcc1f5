//! Periods as text.

use std::fmt::Write;

use views::reports::{Cell, Table};

use super::bars::distribution;
use super::calendar::Calendar;
use super::cells::{count, name, us};
use super::page::{LogSoFar, Page};

pub(super) fn write(page: &Page<'_>, _: &mut LogSoFar, out: &mut String) {
    let has = |class| page.tables(class).next().is_some();
    let groups = groups(page);
    if has("per_period_stats") {
        stats(page, None, out);
        for group in &groups {
            heading(group, out);
            stats(page, Some(group), out);
        }
    }
    if has("freq_duration") {
        freqs(page, None, out);
        for group in &groups {
            heading(group, out);
            freqs(page, Some(group), out);
        }
    }
    for table in page.tables("log").chain(page.tables("top")) {
        if page.begins(table) {
            periods_head(table, out);
        }
        periods(table, page.calendar, out);
    }
    for table in page.tables("aggregated_stats") {
        aggregated(table, page.calendar, out);
    }
}

/// The groups that tables speak of, in their order.
fn groups<'a>(page: &Page<'a>) -> Vec<&'a str> {
    let mut groups: Vec<&str> = Vec::new();
    for group in page
        .tick
        .tables
        .iter()
        .filter_map(|table| table.group.as_deref())
    {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

fn heading(group: &str, out: &mut String) {
    let _ = writeln!(out, "\n\n### Group: {group} ###");
}

/// The tables of a class and a group.
fn of_group<'a>(
    page: &Page<'a>,
    class: &'a str,
    group: Option<&'a str>,
) -> impl Iterator<Item = &'a Table> {
    let of_group = move |table: &&Table| table.group.as_deref() == group;
    page.tables(class).filter(of_group)
}

fn stats<'a>(page: &Page<'a>, group: Option<&'a str>, out: &mut String) {
    let tree = page.cells("tree", ["name", "level"]);
    let levels: Vec<(&str, i64)> = tree.map(level).collect();
    out.push_str("Period tree:\n");
    branch(&levels, 0, out);
    for table in of_group(page, "per_period_stats", group) {
        per_period(table, out);
    }
    for global in [false, true] {
        let half = |class| of_group(page, class, group).nth(usize::from(global));
        for (class, unit) in [
            ("per_parent_stats", " (us)"),
            ("per_parent_percentage", " (%)"),
            ("per_parent_count", ""),
        ] {
            if let Some(table) = half(class) {
                per_parent(table, unit, out);
            }
        }
    }
}

fn level([of, level]: [&Cell; 2]) -> (&str, i64) {
    match level {
        Cell::Number(level) => (name(of), *level),
        _ => (name(of), 0),
    }
}

/// Prints the definitions of one level; all that are inside of one once for each that is directly
/// inside, as lttng-analyses does.
fn branch(tree: &[(&str, i64)], level: i64, out: &mut String) {
    let mut rest = tree;
    while let Some(((name, _), after)) = rest.split_first() {
        let inside = after.iter().take_while(|(_, inner)| *inner > level).count();
        let (inside, siblings) = after.split_at(inside);
        let indent = (level as usize).saturating_sub(1) * 4;
        let line = if level == 0 { "" } else { "|-- " };
        let _ = writeln!(out, "{:indent$}{line}{name}", "");
        let direct = inside.iter().filter(|(_, inner)| *inner == level + 1);
        for _ in direct {
            branch(inside, level + 1, out);
        }
        rest = siblings;
    }
}

const DURATIONS: [&str; 5] = [
    "min_duration",
    "avg_duration",
    "max_duration",
    "stdev_duration",
    "runtime",
];

fn per_period(table: &Table, out: &mut String) {
    if table.rows.is_empty() {
        return;
    }
    let line = |first: &str, count: &str, durations: [&str; 5], out: &mut String| {
        let [min, average, max, deviation, runtime] = durations;
        let spread = format!("{max:>12}  {deviation:>12} {runtime:>12}");
        let _ = writeln!(
            out,
            "{first:<25} {count:>8}  {min:>12}  {average:>12}  {spread}"
        );
    };
    let _ = writeln!(out, "\n{} (us)", table.class.title);
    let titles = ["Min", "Avg", "Max", "Stdev", "Runtime"];
    line("Period", "Count", titles, out);
    let periods = table.cells(["name", "count"]);
    for ([of, number], durations) in periods.zip(table.cells(DURATIONS)) {
        let durations = durations.map(us);
        let durations = durations.each_ref().map(String::as_str);
        line(name(of), &count(number).to_string(), durations, out);
    }
}

fn per_parent(table: &Table, unit: &str, out: &mut String) {
    if table.rows.is_empty() {
        return;
    }
    let line = |first: [&str; 2], numbers: [&str; 4], out: &mut String| {
        let ([period, parent], [min, average, max, deviation]) = (first, numbers);
        let _ = writeln!(
            out,
            "{period:<25} {parent:<25}  {min:>12}  {average:>12}  {max:>12}  {deviation:>12}"
        );
    };
    let of = table.subtitle.as_deref().unwrap_or_default();
    let _ = writeln!(out, "\n{}{unit}\n{of}", table.class.title);
    line(["Period", "Parent"], ["Min", "Avg", "Max", "Stdev"], out);
    let [min, average, max, deviation] = match table.class.place("min") {
        Some(_) => ["min", "avg", "max", "stdev"],
        None => [
            "min_duration",
            "avg_duration",
            "max_duration",
            "stdev_duration",
        ],
    };
    let keys = ["name", "parent", min, average, max, deviation];
    for [period, parent, min, average, max, deviation] in table.cells(keys) {
        let numbers = [
            (min, true),
            (average, false),
            (max, true),
            (deviation, false),
        ];
        let numbers = numbers.map(|(cell, whole)| number(cell, whole));
        let names = [name(period), name(parent)];
        line(names, numbers.each_ref().map(String::as_str), out);
    }
}

/// Durations in microseconds; other numbers as they are, whole ones cut.
fn number(cell: &Cell, whole: bool) -> String {
    match cell {
        Cell::Count(count) => count.to_string(),
        Cell::Float(value) if whole => format!("{}", value.trunc() as i64),
        Cell::Float(value) => format!("{value:.3}"),
        cell => us(cell),
    }
}

/// The kinds of distributions stand in another order than in the tables.
fn freqs<'a>(page: &Page<'a>, group: Option<&'a str>, out: &mut String) {
    let is_global = |table: &&Table| of(table).contains("Global ");
    let is_own = |table: &&Table| of(table).contains("Duration of period: ");
    for table in of_group(page, "freq_duration", group).filter(is_own) {
        freq(table, "us", out);
    }
    for global in [false, true] {
        for (class, unit) in [
            ("freq_duration", "us"),
            ("freq_ratio", "%"),
            ("freq_count", "instances"),
        ] {
            let tables = of_group(page, class, group).filter(|table| !is_own(table));
            for table in tables.filter(|table| is_global(table) == global) {
                freq(table, unit, out);
            }
        }
    }
}

fn of(table: &Table) -> &str {
    table.subtitle.as_deref().unwrap_or_default()
}

fn freq(table: &Table, unit: &str, out: &mut String) {
    let title = format!("{} - {}", table.class.title, of(table));
    distribution(&title, unit, table, out);
}

fn period_line(first: &str, [name, begin, end]: [&str; 3], out: &mut String) {
    let _ = writeln!(out, "{first} {name:<24} {begin:<35} {end:<35}");
}

fn periods_head(table: &Table, out: &mut String) {
    let _ = writeln!(out, "\n{}", table.class.title);
    let first = format!("{:<20} {:<19} {:>15}", "Begin", "End", "Duration (us)");
    period_line(&first, ["Name", "Begin capture", "End capture"], out);
}

const PERIOD: [&str; 6] = [
    "begin_ts",
    "end_ts",
    "duration",
    "name",
    "begin_captures",
    "end_captures",
];

fn periods(table: &Table, calendar: Calendar, out: &mut String) {
    for [begin, end, duration, of, begun, ended] in table.cells(PERIOD) {
        let (Cell::Time(begin_ns), Cell::Time(end_ns)) = (begin, end) else {
            continue;
        };
        let (begin, end) = (calendar.time(*begin_ns), calendar.time(*end_ns));
        let first = format!("[{begin:<18}, {end:<18}] {:>15}", us(duration));
        let (begin, end) = (captures(begun), captures(ended));
        let at = |place: usize| {
            [&begin, &end].map(|captures| captures.get(place).map_or("", String::as_str))
        };
        let [begun, ended] = at(0);
        period_line(&first, [name(of), begun, ended], out);
        let blank = format!("{:<18} {:<18} {:>18}", "", "", "");
        for place in 1..begin.len().max(end.len()) {
            let [begun, ended] = at(place);
            period_line(&blank, ["", begun, ended], out);
        }
    }
}

/// `name = value`, the last name first.
fn captures(cell: &Cell) -> Vec<String> {
    let Cell::Captures(captures) = cell else {
        return Vec::new();
    };
    let mut captures: Vec<_> = captures.iter().collect();
    captures.sort_by(|(a, _), (b, _)| b.cmp(a));
    let text = |(name, value): &(String, Option<views::periods::Kept>)| {
        let value = value
            .as_ref()
            .map_or("None".to_owned(), ToString::to_string);
        format!("{name} = {value}")
    };
    captures.into_iter().map(text).collect()
}

const AGGREGATED: [&str; 6] = [
    "parent_name",
    "parent_begin_ts",
    "parent_end_ts",
    "child_name",
    "count",
    "parent_captures",
];

/// What is in each parent, a line for each kind.
fn aggregated(table: &Table, calendar: Calendar, out: &mut String) {
    let line = |range: &str, cells: [&str; 10], out: &mut String| {
        let [
            duration,
            name,
            child,
            count,
            min,
            average,
            max,
            deviation,
            runtime,
            captures,
        ] = cells;
        let parent = format!("{range} {duration:>18} {name:<15} {child:<24} {count:>12}");
        let _ = writeln!(
            out,
            "{parent} | {min:>10} {average:>12} {max:>12} {deviation:>12} {runtime:>13} | \
             {captures:>12}"
        );
    };
    let of = table.subtitle.as_deref().unwrap_or_default();
    let _ = writeln!(out, "\n{}\n{of}", table.class.title);
    let (parent, child) = (
        format!("{:<35} Parent {:<32}", "", ""),
        format!("{:<35}", ""),
    );
    let durations = format!("{:<25} Durations (us) {:<22}", "", "");
    let _ = writeln!(out, "{parent} | {child} | {durations} |");
    // Two titles are one column wider, and one narrower, than what stands below them.
    let titles = format!(
        "{:>10} {:>12} {:>12} {:>13} {:>12}",
        "Min", "Avg", "Max", "Stdev", "Runtime"
    );
    let first = format!(
        "{:<20} {:<19} {:>18} {:<15}",
        "Begin", "End", "Duration (us)", "Name"
    );
    let child = format!("{:<24} {:>12}", "| Child name", "Count");
    let _ = writeln!(
        out,
        "{first} {child} | {titles} | {:>12}",
        "Parent captures"
    );
    let cells = table.cells(AGGREGATED).zip(table.cells(DURATIONS));
    for ([parent, begin, end, child, number, kept], durations) in cells {
        let (Cell::Time(begin_ns), Cell::Time(end_ns)) = (begin, end) else {
            continue;
        };
        let (begin, end) = (calendar.time(*begin_ns), calendar.time(*end_ns));
        let duration = format!("{:.3}", (end_ns - begin_ns) as f64 / 1000.0);
        let [min, average, max, deviation, runtime] = durations.map(us);
        let count = count(number).to_string();
        let child = format!("| {}", name(child));
        let kept = one_line(kept);
        let cells = [
            &*duration,
            name(parent),
            &child,
            &count,
            &min,
            &average,
            &max,
            &deviation,
            &runtime,
            &kept,
        ];
        line(&format!("[{begin:<18}, {end:<18}]"), cells, out);
    }
}

/// `name = value, name = value` in the order in which they were kept.
fn one_line(cell: &Cell) -> String {
    let Cell::Captures(captures) = cell else {
        return String::new();
    };
    let text = |(name, value): &(String, Option<views::periods::Kept>)| {
        let value = value
            .as_ref()
            .map_or("None".to_owned(), ToString::to_string);
        format!("{name} = {value}")
    };
    match &captures[..] {
        [] => "None".to_owned(),
        captures => captures.iter().map(text).collect::<Vec<_>>().join(", "),
    }
}
