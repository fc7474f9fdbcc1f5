//! One pass over a trace, with all reports asked at once, window by window.

use std::rc::Rc;

use event::{Result, TimeRange};
use trace::{Item, Trace};

use super::cputop::CpuTop;
use super::io::Io;
use super::irq::Irq;
use super::memtop::MemTop;
use super::options::{Family, Report, ReportOptions};
use super::sched::Sched;
use super::syscalls::SyscallStats;
use super::table::{Span, Table};
use crate::kernel::{Change, Kernel, Sink};

/// A question over one window: it is told what changes, and answers in tables.
pub(super) trait Question {
    /// Takes in a change.
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>);
    /// The window ends.
    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table>;
}

/// What one report found in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Which of the reports that were asked for.
    pub report: usize,
    /// The window's first instant, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// Its last.
    pub end_ns: i64,
    /// Its tables, in the order of the report's kind; also empty ones.
    pub tables: Vec<Table>,
}

/// What limits all that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Events that were walked over.
    pub events: u64,
    /// Events that the tracer lost in that time, as far as it counted.
    pub lost: u64,
    /// Places at which events are missing.
    pub holes: u64,
    /// Places that could not be read.
    pub damages: u64,
}

/// A window that is open.
struct Window {
    begin_ns: i64,
    questions: Vec<Box<dyn Question>>,
}

impl Sink for Window {
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        for question in &mut self.questions {
            question.change(kernel, change);
        }
    }
}

/// Nothing is asked before the first window opens.
impl Sink for Option<Window> {
    #[inline]
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        if let Some(window) = self {
            window.change(kernel, change);
        }
    }
}

/// Walks over a trace once and hands out what each report finds in each window, as windows end.
///
/// # Errors
/// As [`trace::Cursor::next`]; what `found` returns.
pub fn run_reports(
    trace: &Trace,
    reports: &[Report],
    options: &ReportOptions,
    mut found: impl FnMut(Tick) -> Result<()>,
) -> Result<Pass> {
    let mut walk = Walk {
        reports,
        options: Rc::new(options.clone()),
        kernel: Kernel::new(trace),
        window: None,
        last_ns: None,
    };
    let mut pass = Pass::default();
    let offset_ns = trace.info().wall_offset.as_ns();
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next()? {
        match item {
            Item::Event(event) => {
                let now_ns = event.time().as_ns().saturating_add(offset_ns);
                if options.end_ns.is_some_and(|end_ns| now_ns > end_ns) {
                    break;
                }
                pass.events += 1;
                walk.advance(now_ns, &mut found)?;
                walk.kernel.event(&event, now_ns, &mut walk.window);
            }
            Item::Lost(lost) => {
                pass.holes += 1;
                pass.lost = pass.lost.saturating_add(lost.count.unwrap_or(0));
            }
            Item::Damage(_) => pass.damages += 1,
        }
    }
    if let Some(end_ns) = walk.last_ns {
        walk.close(end_ns, &mut found)?;
    }
    Ok(pass)
}

struct Walk<'a> {
    reports: &'a [Report],
    options: Rc<ReportOptions>,
    kernel: Kernel,
    window: Option<Window>,
    last_ns: Option<i64>,
}

impl Walk<'_> {
    /// Opens and closes windows before an event of this instant takes effect.
    fn advance(&mut self, now_ns: i64, found: &mut impl FnMut(Tick) -> Result<()>) -> Result<()> {
        self.last_ns = Some(now_ns);
        match &self.window {
            None if self
                .options
                .begin_ns
                .is_none_or(|begin_ns| now_ns >= begin_ns) =>
            {
                self.open(now_ns);
            }
            Some(window) => {
                let over = |refresh_ns| now_ns >= window.begin_ns.saturating_add(refresh_ns);
                if self.options.refresh_ns.is_some_and(over) {
                    self.close(now_ns, found)?;
                    self.open(now_ns);
                }
            }
            None => {}
        }
        Ok(())
    }

    fn open(&mut self, begin_ns: i64) {
        let questions = self
            .reports
            .iter()
            .map(|report| self.question(report, begin_ns));
        self.window = Some(Window {
            begin_ns,
            questions: questions.collect(),
        });
    }

    fn question(&self, report: &Report, begin_ns: i64) -> Box<dyn Question> {
        let options = self.options.clone();
        match report.family {
            Family::Cpu => Box::new(CpuTop::new(options, begin_ns)),
            Family::Sched => Box::new(Sched::new(options, report.views)),
            Family::Irq => Box::new(Irq::new(options, report.views)),
            Family::Io => Box::new(Io::new(options, report.views, begin_ns)),
            Family::Memory => Box::new(MemTop::new(options)),
            Family::Syscalls => Box::new(SyscallStats::new(options)),
        }
    }

    fn close(&mut self, end_ns: i64, found: &mut impl FnMut(Tick) -> Result<()>) -> Result<()> {
        let Some(mut window) = self.window.take() else {
            return Ok(());
        };
        let begin_ns = window.begin_ns;
        let span = Span { begin_ns, end_ns };
        for (report, question) in window.questions.iter_mut().enumerate() {
            found(Tick {
                report,
                begin_ns,
                end_ns,
                tables: question.finish(&self.kernel, span),
            })?;
        }
        Ok(())
    }
}
