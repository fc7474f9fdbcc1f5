//! One pass over a trace, with all reports asked at once, window by window.

use std::rc::Rc;

use event::{Instant, Result, TaskPattern, TimeRange};
use expr::Filter;
use trace::{EventView, Item, Lost, Trace};

use super::critical::Across;
use super::event_stacks::Carriers;
use super::hosts;
use super::kind::{Answers, Asked, Report, Told};
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::periods::PeriodLog;
use super::question::{Question, Tick};
use super::table::{Span, Table};
use super::unknown::Unknown;
use crate::hosts::Packets;
use crate::periods::{Matcher, Turn};
use kernel_state::bind::Binding;
use kernel_state::{Change, Follow, Kernel, Sink, Topics};

/// What limits all that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Events that were walked over.
    pub events: u64,
    /// Those of them that lie in the range that was asked for; the others only make the state.
    pub events_in_range: u64,
    /// Events that the tracer lost in that time, as far as it counted.
    pub lost: u64,
    /// Places at which events are missing.
    pub holes: u64,
    /// Places that could not be read.
    pub damages: u64,
    /// Periods that were not followed because too many were open.
    pub periods_refused: u64,
    /// Periods that began.
    pub periods_begun: u64,
    /// Periods that came to their end by themselves.
    pub periods_completed: u64,
    /// Where nothing was found: the names and ids that were asked for and that no thread has at the
    /// end of the walk.
    pub strangers: Vec<String>,
}

/// A window that is open.
struct Window<'a> {
    begin_ns: i64,
    unknown: Unknown,
    questions: Vec<Asking<'a>>,
}

/// A question, and the place of the report that asks it.
struct Asking<'a> {
    report: usize,
    topics: Topics,
    question: Box<dyn Question + 'a>,
}

/// All windows that are open, in the order of their begins: one for all time, or one per period.
#[derive(Default)]
struct Windows<'a> {
    open: Ordered<u64, Window<'a>>,
    /// What anybody in a window is told of.
    topics: Topics,
}

impl Windows<'_> {
    fn tell(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let topic = change.topic();
        for window in self.open.values_mut() {
            window.unknown.change(window.begin_ns, change);
            let told = window.questions.iter_mut();
            let told = told.filter(|asking| asking.topics.has(topic));
            told.for_each(|asking| asking.question.change(kernel, change));
        }
    }
}

impl Sink for Windows<'_> {
    // Where a change is made, its topic is known: what nobody is told of is not made.
    #[inline(always)]
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        if self.topics.has(change.topic()) {
            self.tell(kernel, change);
        }
    }
}

/// Walks over a trace once and hands out what each report finds in each window, as windows end.
///
/// # Errors
/// As [`trace::Cursor::next`]; a trace of several machines; what `found` returns; a filter of
/// events that makes no sense in this trace.
pub fn run_reports(
    trace: &Trace,
    reports: &[Report],
    options: &ReportOptions,
    mut found: impl FnMut(Tick) -> Result<()>,
) -> Result<Pass> {
    let mut walk = Walk::new(trace, reports, Rc::new(options.clone()))?;
    let mut pass = Pass::default();
    let mut rows = 0;
    let mut found = |tick: Tick| {
        let tables = tick.tables.iter();
        rows += tables
            .filter(|table| !table.is_unknown_time())
            .map(|table| table.rows.len())
            .sum::<usize>();
        found(tick)
    };
    let offset_ns = trace.info().wall_offset.as_ns();
    let mut result = Ok(());
    trace.cursor(TimeRange::ALL).each_while(|item| {
        match item {
            Item::Event(event) => {
                let now_ns = event.time().as_ns().saturating_add(offset_ns);
                if options.end_ns.is_some_and(|end_ns| now_ns > end_ns) {
                    return false;
                }
                result = walk.event(event, now_ns, &mut found);
            }
            Item::Lost(lost) => {
                if lost.hides_what_happened() {
                    walk.lost(lost, offset_ns);
                }
                pass.holes += 1;
                pass.lost = pass.lost.saturating_add(lost.count.unwrap_or(0));
            }
            // What it took of which CPU stands beside it as a loss.
            Item::Damage(_) => pass.damages += 1,
        }
        result.is_ok()
    })?;
    result?;
    walk.finish(&mut found)?;
    pass.events = walk.events;
    pass.events_in_range = walk.events_in_range;
    (pass.periods_begun, pass.periods_completed) = walk.periods;
    if rows == 0 {
        pass.strangers = strangers(&walk.kernel, options);
    }
    pass.periods_refused = walk.matcher.map_or(0, |matcher| matcher.refused);
    Ok(pass)
}

/// What was asked for by name or id and no thread has.
fn strangers(kernel: &Kernel, options: &ReportOptions) -> Vec<String> {
    let rules = options.rt_rules.iter().map(|rule| &rule.task);
    let patterns = options.tasks.patterns.iter().chain(rules);
    let is_meant = |pattern: &TaskPattern| {
        let mut all = kernel.processes();
        all.any(|(_, process)| pattern.matches(&kernel.named(process)))
    };
    let patterns = patterns.filter(|pattern| !is_meant(pattern));
    let names = options.names.iter();
    let is_called = |name: &str| {
        let mut all = kernel.processes();
        all.any(|(_, process)| process.comm.bytes() == name.as_bytes())
    };
    let names = names.filter(|name| !is_called(name)).cloned();
    let tids = options.tids.iter();
    let tids = tids.filter(|tid| kernel.find(**tid).is_none());
    let tids = tids.map(i32::to_string);
    let patterns = patterns.map(TaskPattern::to_string);
    names.chain(tids).chain(patterns).collect()
}

/// The events that were asked for; none: all.
struct Events(Option<Filter>);

impl Events {
    fn new(options: &ReportOptions, trace: &Trace) -> Result<Events> {
        let filter = options.events.as_ref();
        let filter = filter.map(|expr| {
            let expr = expr.naming_functions(|meant| trace.symbols().ranges(meant));
            Filter::new(&expr, trace.classes())
        });
        Ok(Events(filter.transpose()?))
    }

    fn matches(&mut self, event: &EventView<'_>) -> bool {
        self.0.as_mut().is_none_or(|filter| filter.matches(event))
    }
}

/// Whether these reports can be asked of several hosts at once: a path goes from one to the other,
/// in one window.
fn goes_across(reports: &[Report], options: &ReportOptions) -> bool {
    let crosses = |report: &Report| {
        let answers = report.kind.answers;
        matches!(answers, Answers::WindowOrHosts(_) | Answers::Packets)
    };
    let one_window = options.periods.list().is_empty() && options.refresh_ns.is_none();
    one_window && reports.iter().all(crosses)
}

/// The one window when no period was defined.
const WHOLE: u64 = 0;

struct Walk<'a> {
    trace: &'a Trace,
    reports: &'a [Report],
    options: Rc<ReportOptions>,
    kernel: Kernel,
    windows: Windows<'a>,
    matcher: Option<Matcher>,
    /// The events that intervals are between, when a report is about them.
    filter: Option<Events>,
    /// The stacks that events carry, when a report is about them.
    stacks: Option<Carriers<'a>>,
    /// When a report is about the periods themselves.
    log: Option<PeriodLog>,
    /// The packets of several hosts, when a report is about them.
    packets: Option<Packets>,
    /// The kernels of several hosts, when the critical path is asked for across them.
    across: Option<Across>,
    /// Losses that begin behind the last event so far.
    losses: Vec<Loss>,
    /// Whether a report follows the kernel, which is of one host then.
    follows_kernel: bool,
    /// From the first event to the last one so far.
    seen: Option<Span>,
    events: u64,
    events_in_range: u64,
    /// How many began, and how many completed.
    periods: (u64, u64),
}

/// Events are missing between two instants of the wall clock, on one CPU or nobody knows on which.
#[derive(Clone, Copy, Debug)]
struct Loss {
    cpu: Option<u32>,
    from_ns: i64,
    until_ns: i64,
}

impl<'a> Walk<'a> {
    fn new(
        trace: &'a Trace,
        reports: &'a [Report],
        options: Rc<ReportOptions>,
    ) -> Result<Walk<'a>> {
        let of_hosts = |report: &Report| matches!(report.kind.answers, Answers::Packets);
        let about_hosts = reports.iter().all(of_hosts);
        let binding = Binding::new(trace);
        let several = binding.of_one_machine(trace).err().filter(|_| !about_hosts);
        let across = match several {
            Some(refusal) if !goes_across(reports, &options) => return Err(refusal),
            Some(_) => Some(Across::new(options.clone(), trace)?),
            None => None,
        };
        let follows_kernel = !about_hosts && across.is_none();
        if follows_kernel {
            binding.recorded_once(trace)?;
        }
        let asks = |what| reports.iter().any(|report| report.kind.is_told(what));
        let periods = &options.periods;
        let matcher = !periods.list().is_empty();
        let of_periods = |report: &&Report| matches!(report.kind.answers, Answers::Periods);
        let periods_views = reports.iter().filter(of_periods);
        let periods_views: Vec<Views> = periods_views.map(|report| report.views).collect();
        let follows = Follow {
            stretches: asks(Told::Stretches),
            queues: asks(Told::Queues),
            stale_names: options.as_lttng_analyses,
        };
        let filter = match asks(Told::MatchedEvents) {
            true => Some(Events::new(&options, trace)?),
            false => None,
        };
        let packets = reports
            .iter()
            .any(of_hosts)
            .then(|| Packets::new(trace))
            .transpose()?;
        Ok(Walk {
            trace,
            reports,
            kernel: Kernel::new(trace, follows),
            filter,
            stacks: Carriers::of(trace).filter(|_| asks(Told::Stacks)),
            windows: Windows::default(),
            matcher: matcher.then(|| Matcher::new(periods, trace.classes())),
            packets,
            across,
            losses: Vec::new(),
            follows_kernel,
            log: (!periods_views.is_empty())
                .then(|| PeriodLog::new(options.clone(), &periods_views)),
            seen: None,
            events: 0,
            events_in_range: 0,
            periods: (0, 0),
            options,
        })
    }

    fn lost(&mut self, lost: &Lost, offset_ns: i64) {
        if let Some(Events(Some(filter))) = &mut self.filter {
            filter.lost(lost.cpu);
        }
        let wall_ns = |instant: Instant| instant.as_ns().saturating_add(offset_ns);
        self.losses.push(Loss {
            cpu: lost.cpu.map(|cpu| cpu.0),
            from_ns: wall_ns(lost.range.begin),
            until_ns: wall_ns(lost.range.end),
        });
        self.lose(self.seen.map_or(i64::MAX, |seen| seen.end_ns));
    }

    /// Takes in the losses that have begun by now. One that begins behind the last event takes
    /// nothing away from what lies before that.
    fn lose(&mut self, now_ns: i64) {
        let windows = &mut self.windows;
        self.losses.retain(|loss| {
            let has_begun = loss.from_ns <= now_ns;
            if has_begun {
                let Loss {
                    cpu,
                    from_ns,
                    until_ns,
                } = *loss;
                self.kernel.lost(cpu, from_ns, until_ns, windows);
            }
            !has_begun
        });
    }

    /// Windows open and close before an event takes effect.
    fn event(
        &mut self,
        event: &EventView<'_>,
        now_ns: i64,
        found: &mut impl FnMut(Tick) -> Result<()>,
    ) -> Result<()> {
        if !self.losses.is_empty() {
            self.lose(now_ns);
        }
        let begin_ns = self.seen.map_or(now_ns, |seen| seen.begin_ns);
        // Where time goes backwards, the last event is not the latest.
        let end_ns = self.seen.map_or(now_ns, |seen| seen.end_ns.max(now_ns));
        self.seen = Some(Span { begin_ns, end_ns });
        if self
            .options
            .begin_ns
            .is_none_or(|begin_ns| now_ns >= begin_ns)
        {
            self.events_in_range += 1;
            if let Some(packets) = &mut self.packets {
                packets.event(event, now_ns);
            }
            match self.matcher.take() {
                Some(mut matcher) => {
                    let mut result = Ok(());
                    matcher.event(event, |turn| {
                        if result.is_ok() {
                            result = self.turn(&turn, now_ns, found);
                        }
                    });
                    self.matcher = Some(matcher);
                    result?;
                }
                None => self.refresh(now_ns, found)?,
            }
        }
        if let Some(across) = &mut self.across {
            let begin_ns = self.options.begin_ns;
            let in_range = begin_ns.is_none_or(|begin_ns| now_ns >= begin_ns);
            across.event(event, now_ns, in_range);
        }
        if let Some(stacks) = &mut self.stacks
            && let Some(change) = stacks.change(&self.kernel, event)
        {
            self.windows.change(&self.kernel, &change);
        }
        if self.follows_kernel {
            self.kernel.event(event, now_ns, &mut self.windows);
        }
        self.events += 1;
        if let Some(filter) = &mut self.filter
            && filter.matches(event)
        {
            let cpu = event.cpu().map_or(0, |cpu| cpu.0);
            self.windows.change(&self.kernel, &Change::Matched { cpu });
        }
        Ok(())
    }

    /// One window after the other, or only one.
    fn refresh(&mut self, now_ns: i64, found: &mut impl FnMut(Tick) -> Result<()>) -> Result<()> {
        let begin_ns = self.windows.open.get(&WHOLE).map(|window| window.begin_ns);
        let Some(begin_ns) = begin_ns else {
            self.open(WHOLE, now_ns);
            return Ok(());
        };
        let over = |refresh_ns| now_ns >= begin_ns.saturating_add(refresh_ns);
        if self.options.refresh_ns.is_some_and(over) {
            self.close(WHOLE, now_ns, found)?;
            self.open(WHOLE, now_ns);
        }
        Ok(())
    }

    /// A window for each period.
    fn turn(
        &mut self,
        turn: &Turn<'_>,
        now_ns: i64,
        found: &mut impl FnMut(Tick) -> Result<()>,
    ) -> Result<()> {
        if let Some(log) = &mut self.log {
            log.turn(turn, now_ns);
        }
        match turn {
            Turn::Begin { id, .. } => {
                self.periods.0 += 1;
                self.open(*id, now_ns);
            }
            Turn::End { id, completed, .. } => {
                self.periods.1 += u64::from(*completed);
                self.close(*id, now_ns, found)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, id: u64, begin_ns: i64) {
        let reports = self.reports.iter().enumerate();
        let questions = reports.filter_map(|(place, report)| {
            let question = self.question(report, begin_ns)?;
            Some(Asking {
                report: place,
                topics: question.topics(),
                question,
            })
        });
        let questions: Vec<_> = questions.collect();
        if questions.is_empty() {
            return;
        }
        let topics = questions.iter().map(|asking| asking.topics);
        self.windows.topics = topics.fold(Unknown::TOPICS, Topics::and);
        let window = Window {
            begin_ns,
            unknown: Unknown::default(),
            questions,
        };
        self.windows.open.insert(id, window);
    }

    /// The question of a report over one window; none when it is about all windows.
    fn question(&self, report: &Report, begin_ns: i64) -> Option<Box<dyn Question + 'a>> {
        let ask = match report.kind.answers {
            Answers::Window(ask) => ask,
            Answers::WindowOrHosts(ask) if self.across.is_none() => ask,
            _ => return None,
        };
        Some(ask(Asked {
            options: self.options.clone(),
            views: report.views,
            begin_ns,
            events_before: self.events,
            trace: self.trace,
        }))
    }

    fn close(
        &mut self,
        id: u64,
        end_ns: i64,
        found: &mut impl FnMut(Tick) -> Result<()>,
    ) -> Result<()> {
        let Some(window) = self.windows.open.shift_remove(&id) else {
            return Ok(());
        };
        let begin_ns = window.begin_ns;
        let span = Span { begin_ns, end_ns };
        let shown = !self.options.as_lttng_analyses;
        let unknown = shown.then(|| window.unknown.table(&self.kernel, &self.options, span));
        let unknown = unknown.flatten();
        for asking in window.questions {
            let (report, mut question) = (asking.report, asking.question);
            let mut unknown = unknown.clone();
            let mut first = question.finish(&self.kernel, span);
            let mut next = question.more(&self.kernel, span);
            if next.is_none() {
                first.extend(unknown.take());
            }
            // What nobody knows stands behind the last part of a log.
            let more = || {
                let mut part = next.take()?;
                next = question.more(&self.kernel, span);
                if next.is_none() {
                    part.extend(unknown.take());
                }
                Some(part)
            };
            self.hand_out(report, span, (first, more), found)?;
        }
        Ok(())
    }

    /// Hands out the tables of a report, which may come in parts.
    fn hand_out(
        &self,
        report: usize,
        span: Span,
        (first, mut more): (Vec<Table>, impl FnMut() -> Option<Vec<Table>>),
        found: &mut impl FnMut(Tick) -> Result<()>,
    ) -> Result<()> {
        let (mut next, mut continues) = (Some(first), false);
        while let Some(tables) = next {
            next = more();
            // What could not be read again is missing.
            self.options.spill.check()?;
            found(Tick {
                report,
                begin_ns: span.begin_ns,
                end_ns: span.end_ns,
                tables,
                continues,
                goes_on: next.is_some(),
            })?;
            continues = true;
        }
        Ok(())
    }

    /// The trace ends, and with it all windows.
    fn finish(&mut self, found: &mut impl FnMut(Tick) -> Result<()>) -> Result<()> {
        let Some(seen) = self.seen else { return Ok(()) };
        self.kernel.finish(seen.end_ns, &mut self.windows);
        match self.matcher.take() {
            Some(mut matcher) => {
                let mut result = Ok(());
                matcher.finish(|turn| {
                    if result.is_ok() {
                        result = self.turn(&turn, seen.end_ns, found);
                    }
                });
                self.matcher = Some(matcher);
                result?;
            }
            None => self.close(WHOLE, seen.end_ns, found)?,
        }
        self.whole(seen, found)
    }

    /// The reports that are about all windows.
    fn whole(&mut self, seen: Span, found: &mut impl FnMut(Tick) -> Result<()>) -> Result<()> {
        let mut log = self.log.take();
        for (report, asked) in self.reports.iter().enumerate() {
            let tables = match (asked.kind.answers, &mut log, &self.packets) {
                (Answers::Periods, Some(log), _) => {
                    let first = log.finish(asked.views, seen);
                    let more = || log.more(asked.views, seen);
                    self.hand_out(report, seen, (first, more), found)?;
                    continue;
                }
                (Answers::Packets, _, Some(packets)) => {
                    hosts::tables(&packets.finish(), &self.options, seen)
                }
                (Answers::WindowOrHosts(_), ..) => match &self.across {
                    Some(across) => across.tables(seen),
                    None => continue,
                },
                _ => continue,
            };
            self.hand_out(report, seen, (tables, || None), found)?;
        }
        Ok(())
    }
}
