//! Who used the CPUs, as text.

use std::fmt::Write;

use views::reports::Cell;

use super::bars::{Bar, bars};
use super::cells::{count, cpu, name, percent, thread};
use super::page::{LogSoFar, Page};

pub(super) fn write(page: &Page<'_>, _: &mut LogSoFar, out: &mut String) {
    let percent_bar = |share: &Cell, label: String| Bar {
        value: percent(share),
        text: format!("{:.2} %", percent(share)),
        label,
    };
    let label = |process: &str, migrations: &str, prios: &str| {
        format!("  {process:<25} {migrations:>10}   {prios}")
    };
    let keys = ["process", "migrations", "prio_list", "usage", "inferred"];
    let threads = page.cells("per-process", keys);
    let threads = threads.map(|[process, migrations, prios, usage, inferred]| {
        let migrations = count(migrations).to_string();
        let mut bar = percent_bar(usage, label(&thread(process), &migrations, name(prios)));
        let inferred = percent(inferred);
        if inferred >= 0.005 {
            let _ = write!(bar.label, "  inferred: {inferred:.2} %");
        }
        bar
    });
    let header = label("Process", "Migrations", "Priorities");
    bars("Per-TID Usage", &header, &threads.collect::<Vec<_>>(), out);
    let cpus = page.cells("per-cpu", ["cpu", "usage"]);
    let cpus = cpus.map(|[number, usage]| percent_bar(usage, format!("CPU {}", cpu(number))));
    bars("Per-CPU Usage", "", &cpus.collect::<Vec<_>>(), out);
    if let Some([usage]) = page.cells("total", ["usage"]).next() {
        let _ = writeln!(out, "\nTotal CPU Usage: {:.2}%\n", percent(usage));
    }
}
