//! Pages that were taken and given back, as text.

use std::fmt::Write;

use views::reports::Cell;

use super::bars::{Bar, bars};
use super::cells::{count, thread};
use super::page::{LogSoFar, Page};

pub(super) fn write(page: &Page<'_>, _: &mut LogSoFar, out: &mut String) {
    let bar = |[process, pages]: [&Cell; 2]| Bar {
        value: count(pages) as f64,
        text: format!("{} pages", count(pages)),
        label: thread(process),
    };
    for (class, title) in [
        ("allocd", "Per-TID Memory Allocations"),
        ("freed", "Per-TID Memory Deallocations"),
    ] {
        let rows: Vec<Bar> = page.cells(class, ["process", "pages"]).map(bar).collect();
        bars(title, "Process", &rows, out);
    }
    if let Some(cells) = page.cells("total", ["allocd", "freed"]).next() {
        let [allocated, freed] = cells.map(count);
        let _ = writeln!(
            out,
            "\nTotal memory usage:\n- {allocated} pages allocated\n- {freed} pages freed"
        );
    }
}
