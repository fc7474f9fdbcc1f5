//! Tables as text: those of lttng-analyses as it prints them, character by character.

use std::fmt::Write;

use views::reports::{Cell, Report, Table, Tick};

use super::calendar::Calendar;
use super::cells::{ns, percent};
use super::page::{LogSoFar, Page};
use super::{
    cpu_text, io_text, irq_text, memory_text, periods_text, sched_text, syscalls_text, views_text,
};

/// Writes the tables of one tick.
type Form = fn(&Page<'_>, &mut LogSoFar, &mut String);

/// Kinds of reports whose text lttng-analyses has laid out. All others have tables.
const FORMS: &[(&str, Form)] = &[
    ("cpu", cpu_text::write),
    ("sched", sched_text::write),
    ("irq", irq_text::write),
    ("io", io_text::write),
    ("memory", memory_text::write),
    ("syscalls", syscalls_text::write),
    ("periods", periods_text::write),
];

/// What programs read, and so has no head.
const HEADLESS: &str = "flame";

/// What one report finds, as text: tick by tick.
#[derive(Debug)]
pub struct ReportText {
    report: Report,
    form: Form,
    calendar: Calendar,
    log: LogSoFar,
}

impl ReportText {
    /// With the times of `calendar`.
    pub fn new(report: Report, calendar: Calendar) -> ReportText {
        let form = FORMS.iter().find(|(kind, _)| *kind == report.kind.name);
        ReportText {
            report,
            form: form.map_or(views_text::write, |(_, form)| *form),
            calendar,
            log: LogSoFar::default(),
        }
    }

    /// What the next tick of this report adds.
    pub fn tick(&mut self, tick: &Tick) -> String {
        let mut out = String::new();
        let calendar = self.calendar;
        let page = Page {
            tick,
            calendar,
            views: self.report.views,
        };
        let has_head = self.report.kind.name != HEADLESS;
        if has_head && !tick.continues {
            let range = calendar.with_dates().range(tick.begin_ns, tick.end_ns);
            let _ = writeln!(out, "Timerange: {range}");
        }
        (self.form)(&page, &mut self.log, &mut out);
        let unknown_time = tick.tables.iter().filter(|table| table.is_unknown_time());
        for table in unknown_time.filter(|_| has_head) {
            unknown(table, &mut out);
        }
        out
    }
}

/// One line a CPU: what the tables above do not cover.
fn unknown(table: &Table, out: &mut String) {
    let _ = writeln!(out, "{}:", table.class.title);
    for [cpu, unknown, share] in table.cells(["cpu", "unknown", "share"]) {
        let Cell::Cpu(cpu) = cpu else { continue };
        let (ms, share) = (ns(unknown) / 1e6, percent(share));
        let _ = writeln!(out, "  CPU {cpu}: {ms:.3} ms, {share:.2} %");
    }
    let _ = writeln!(out);
}
