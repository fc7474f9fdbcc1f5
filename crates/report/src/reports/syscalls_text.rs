//! System calls as text.

use std::fmt::Write;

use views::reports::Cell;

use super::cells::{count, name, results, us};
use super::page::{LogSoFar, Page};

const KEYS: [&str; 7] = [
    "syscall",
    "count",
    "min_duration",
    "avg_duration",
    "max_duration",
    "stdev_duration",
    "return_values",
];

pub(super) fn write(page: &Page<'_>, _: &mut LogSoFar, out: &mut String) {
    let line = |cells: [&str; 7], out: &mut String| {
        let [call, count, min, average, max, deviation, returned] = cells;
        let durations = format!("{min:>14} {average:>14} {max:>12} {deviation:>10}");
        let _ = writeln!(out, "{call:<38} {count:>14} {durations}  {returned:<14}");
    };
    out.push_str("Per-TID syscalls statistics (usec)\n");
    let mut all = 0;
    let totals = page.cells("total", ["count"]);
    for ([total], table) in totals.zip(page.tables("per-tid")) {
        let title = table.subtitle.as_deref().unwrap_or_default();
        let columns = ["Count", "Min", "Average", "Max", "Stdev", "Return values"];
        let [counts, min, average, max, deviation, returned] = columns;
        line([title, counts, min, average, max, deviation, returned], out);
        for [call, calls, durations @ .., returned] in table.cells(KEYS) {
            let call = format!(" - {}", name(call));
            let calls = count(calls).to_string();
            let durations: [&Cell; 4] = durations;
            let [min, average, max, deviation] = durations.map(rounded);
            let returned = match returned {
                Cell::Results(all) => results(all),
                _ => String::new(),
            };
            let cells = [&*call, &calls, &min, &average, &max, &deviation, &returned];
            line(cells, out);
        }
        let calls = count(total);
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
