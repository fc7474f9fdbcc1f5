//! What a watch prints: each hit with its verdict, one live line, and how it ended.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bpf_host::{Beside, Statistics};
use capture::watch::{CallReport, Called, HitReport, Status, WatchObserver};
use diagnosis::{Diagnosis, quoted};
use event::evidence::{Kin, LateOne, TaskRef};
use event::{Duration, Result, TaskPattern, Tid};
use report::{TextStyle, hit_text};
use serde_json::{Value, json};
use trace::Trace;

use super::book::Book;
use super::called::{call_json, called_text, held_back_json, nothing_late_text, when_called};
use super::command::Command;
use super::config;
use super::exec::Running;
use super::explained::diagnosis;
use super::heard::Ears;
use super::hits_page::HitsView;
use super::json::{cost_json, hit_line, snapshot_json};
use super::orphans::Orphan;
use super::pinned;
use super::scope::{
    Scope, asked, has_judged, nobody_waits_text, overlooked_text, slept_json, slept_text,
    start_ups_text, unjudged_text, unslept_text,
};
use super::targets::{Matched, Whom};
use super::threads::name_now;
use crate::exit::tell;
use crate::flags::Watch;
use crate::live::Live;
use crate::options::{Target, WatchOptions};
use crate::paint::{Color, Paint};
use crate::signals::{self, Request};
use crate::verbs::board::Board;
use crate::verbs::{again, diagnose as diagnose_verb, page};

/// The schema of `--json` lines.
const SCHEMA: &str = "rtscope.watch";
const SCHEMA_VERSION: u32 = 1;

/// Prints what the watch sees.
pub struct Observer {
    json: bool,
    exec: Option<String>,
    running: Running,
    /// Who went on though the command had ended, once that is known.
    orphans: Vec<Orphan>,
    paint: Paint,
    live: Live,
    sequence: u64,
    beginning: String,
    /// All that was late.
    book: Book,
    command: Option<Command>,
    /// How it is heard when the application says that it was late.
    ears: Option<Ears>,
    /// At so many calls nothing was late.
    open_calls: u64,
    /// Calls that the limits held back.
    calls_in_short: u64,
    /// Not all that was late are ordinary threads beside real-time ones.
    late_for_somebody: bool,
    /// Whom nobody was when it began, and when it is looked for them again.
    waits_for: Option<Whom>,
    /// Who was there when it began.
    began_with: Option<Matched>,
    looks_at: Duration,
    /// Of whom, and to where.
    scope: Scope,
    telling: Telling,
    /// The screen, with `--tui`.
    board: Option<Board>,
}

/// How hits are told.
#[derive(Default)]
struct Telling {
    /// All that is known of each.
    verbose: bool,
    /// The watch that shows whether an advice helped; none: that of the diagnosis.
    check: Option<String>,
    /// Where the page of the worst one goes.
    html: Option<PathBuf>,
    /// The worst one that has its page.
    worst: Duration,
    /// The page of all of them.
    view: Option<HitsView>,
    /// Warnings that were said.
    warned: HashSet<String>,
}

/// The tasks that a pattern means, in words.
fn meant(pattern: &TaskPattern) -> String {
    match pattern {
        TaskPattern::Name(name) => format!("tasks called {}", name.text()),
        TaskPattern::Tid(tid) => format!("task {tid}"),
        TaskPattern::Pid(pid) => format!("process {pid}"),
        TaskPattern::Process(name) => format!("processes called {}", name.text()),
        TaskPattern::Prio(..) => format!("tasks of {pattern}"),
        TaskPattern::RealTime => "every real-time task".to_owned(),
    }
}

/// All that are meant, in words.
pub(in crate::verbs) fn whom_text(options: &WatchOptions) -> String {
    let Target::Tasks(patterns) = &options.target else {
        return "every real-time task".to_owned();
    };
    let command = options.command.first();
    let command = command.map(|word| word.display().to_string());
    // Beside a command a name means its tasks alone.
    let is_of_it = |pattern: &TaskPattern| command.is_some() && !pattern.is_an_id();
    let named = patterns.iter().map(|pattern| match &command {
        Some(word) if is_of_it(pattern) => format!("{} of {word} and its children", meant(pattern)),
        _ => meant(pattern),
    });
    let groups = options
        .groups
        .iter()
        .map(|asked| format!("tasks of {asked}"));
    let mut all: Vec<String> = named.chain(groups).collect();
    match &command {
        Some(word) if all.is_empty() => all.push(format!("{word} and its children")),
        Some(word) if !patterns.iter().any(is_of_it) => {
            return format!("{} while {word} runs", all.join(", "));
        }
        _ => {}
    }
    all.join(", ")
}

impl Observer {
    /// For a watch with `options`; `live` shows a line that says where it stands.
    pub fn new(options: &WatchOptions, paint: Paint, live: bool) -> Self {
        let whom = whom_text(options);
        let when = match (options.over, options.new_worst) {
            _ if !options.triggers.is_empty() => when_called(options),
            (Some(over), false) => format!("for more than {over:#}"),
            (Some(over), true) => format!("for each new worst over {over:#}"),
            (None, true) => "for each new worst".to_owned(),
            (None, false) => "that still waits".to_owned(),
        };
        let when = match options.timeout {
            Some(timeout) if options.over.is_some() || options.new_worst => {
                format!("{when}, and when it still waits after {timeout}")
            }
            Some(timeout) => format!("{when} after {timeout}"),
            None => when,
        };
        let beside = match config::beside(options) {
            Beside::Nobody => "",
            Beside::Woken => ", and real-time tasks that their real-time threads wake",
            Beside::All => ", and real-time tasks and those that work with them",
        };
        let scope = Scope {
            whom: format!("{whom}{beside}"),
            until: options.until,
            asked: asked(options),
            timeout: options.timeout,
        };
        Observer {
            json: options.json,
            exec: options.exec.clone(),
            running: Running::default(),
            orphans: Vec::new(),
            paint,
            live: Live::new(live && !options.json),
            sequence: 0,
            beginning: format!("watching {whom} {when}; Ctrl-C ends it"),
            book: Book::new(options),
            command: None,
            ears: None,
            open_calls: 0,
            calls_in_short: 0,
            late_for_somebody: false,
            waits_for: None,
            began_with: None,
            looks_at: NOBODY_AFTER,
            scope,
            telling: Telling::default(),
            board: None,
        }
    }

    /// Tells hits as was typed, and lets the same watch check what is advised.
    pub(super) fn tells(&mut self, typed: &Watch) {
        self.telling = Telling {
            verbose: typed.verbose,
            check: Some(again::same_watch(again::own_words())),
            html: typed.html.clone(),
            worst: Duration::ZERO,
            view: None,
            warned: HashSet::new(),
        };
    }

    /// Shows hits in a browser, if that was typed.
    pub(super) fn shows(&mut self, typed: &Watch) -> Result<()> {
        self.telling.view = typed.view.then(HitsView::open).transpose()?;
        Ok(())
    }

    /// Fills the terminal, if that was typed.
    pub(super) fn fills(&mut self, typed: &Watch) -> Result<()> {
        if typed.tui {
            self.board = Some(Board::open(&self.beginning)?);
            self.live = Live::new(false);
            // The screen counts letters.
            self.paint = Paint::choose(Color::Never);
        }
        Ok(())
    }

    /// Lets this command run when the watch is armed, and ends with it. Where there is none, what
    /// it hears are lines on the standard input.
    pub(super) fn runs(&mut self, command: Option<Command>, ears: Option<Ears>) {
        self.command = command;
        self.ears = ears;
    }

    /// Whether the application said that it was late, and nothing was.
    pub(super) fn has_open_calls(&self) -> bool {
        self.open_calls > 0
    }

    /// Whether the command has ended, and all that it printed is read. What it left running may
    /// print on.
    fn is_over(&mut self) -> bool {
        let Some(ended) = self.command.as_mut().map(Command::ended) else {
            // Of a pipeline.
            let ears = self.ears.as_ref().filter(|ears| ears.hears_lines());
            return ears.is_some_and(Ears::have_heard_all);
        };
        let has_heard = self.ears.as_ref().is_none_or(Ears::have_heard_all);
        ended.is_some_and(|since| has_heard || since.elapsed() > LAST_WORDS)
    }

    /// Says once more that this means nobody, if it still does after a while; at the end what
    /// became of those that it meant, where none was judged.
    pub(super) fn began_with(&mut self, matched: Matched, whom: Whom) {
        self.waits_for = matched.is_nobody().then_some(whom);
        self.began_with = Some(matched);
    }

    /// Prints how the watch ended.
    ///
    /// # Errors
    /// When stdout refuses.
    pub fn end(&mut self, status: &Status) -> Result<()> {
        self.running.finish();
        self.orphans = self
            .command
            .as_mut()
            .map_or_else(Vec::new, Command::orphans);
        self.book.close();
        self.live.clear();
        self.board = None;
        let statistics = &status.statistics;
        if self.json {
            let end = self.end_json(status);
            return self.json_line(end);
        }
        let mut text = self.book.text();
        if !text.is_empty() {
            text.insert(0, '\n');
        }
        let (nobody, why) = self.nobody_came(statistics);
        let judged = self.scope.judged(status, nobody);
        let _ = writeln!(text, "{}\n{judged}", summary(status));
        text += &why;
        let began_with = self.began_with.as_ref();
        if let Some(matched) = began_with.filter(|_| !has_judged(statistics)) {
            text += &matched.gone(name_now);
        }
        if status.hits > 0 && !self.late_for_somebody {
            text += &nobody_waits_text(self.scope.asked);
        }
        text += &unjudged_text(statistics);
        text += &slept_text(self.scope.asked, status);
        text += &unslept_text(self.scope.asked, statistics);
        text += &start_ups_text(self.scope.asked, statistics);
        text += &overlooked_text(self.scope.timeout, statistics);
        if self.calls_in_short > 0 {
            let _ = writeln!(
                text,
                "the application said so {} more times: counted, and not told (--rate)",
                self.calls_in_short
            );
        }
        text += &self.running.text();
        text += &self
            .command
            .as_mut()
            .and_then(|command| command.left(&self.orphans))
            .unwrap_or_default();
        tell(&text)
    }

    /// Who went on as the watch ended with the command that had started them.
    pub(in crate::verbs) fn orphans(&self) -> &[Orphan] {
        &self.orphans
    }

    /// The last line, where lines are for programs.
    fn end_json(&self, status: &Status) -> Value {
        let statistics = &status.statistics;
        let quantile = |q: f64| statistics.quantile(q).map(Duration::as_ns);
        json!({
            "type": "end",
            "elapsed_ns": status.elapsed.as_ns(),
            "hits": status.hits,
            "samples": statistics.samples,
            "worst_ns": statistics.worst.as_ns(),
            "p50_ns": quantile(0.5),
            "p99_ns": quantile(0.99),
            "p99_9_ns": quantile(0.999),
            "suppressed": statistics.suppressed,
            "lost": statistics.lost,
            "dropped": statistics.dropped,
            "stale": statistics.stale,
            "repaired": statistics.repaired,
            "untracked": statistics.untracked,
            "unseen": statistics.unseen,
            "undated": statistics.undated,
            "unplaced": statistics.unplaced,
            "unmeant": statistics.unmeant,
            "renamed": statistics.renamed,
            "unslept": statistics.unslept,
            "start_ups": statistics.start_ups,
            "overlooked": statistics.overlooked,
            "causes": self.book.causes.json(),
            "until": self.scope.until_name(),
            "calls_in_short": self.calls_in_short,
            "go_on": self.orphans.iter().map(Orphan::json).collect::<Value>(),
            "sleeps_inside": slept_json(status),
            "exec": self.exec.as_ref().map(|_| self.running.json()),
            "cost": cost_json(status),
        })
    }

    fn json_line(&mut self, line: Value) -> Result<()> {
        let line = self.numbered(line);
        tell(&format!("{line}\n"))
    }

    /// A line with what all of them have.
    fn numbered(&mut self, mut line: Value) -> Value {
        line["schema"] = SCHEMA.into();
        line["version"] = SCHEMA_VERSION.into();
        line["sequence"] = self.sequence.into();
        self.sequence += 1;
        line
    }
}

impl WatchObserver for Observer {
    fn armed(&mut self) -> Result<()> {
        note!("{}", self.beginning);
        match (&mut self.command, &mut self.ears) {
            (Some(command), _) => command.go(),
            (None, Some(ears)) => {
                ears.listen(None);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    fn hit(&mut self, report: &HitReport) -> Result<()> {
        self.live.clear();
        if signals::request() == Request::Discard {
            return Ok(());
        }
        let mut diagnosis = diagnosis(report);
        if let (Ok(diagnosis), Some(check)) = (&mut diagnosis, &self.telling.check) {
            diagnosis.check_with(|_| check.clone());
        }
        self.page(report, &diagnosis)?;
        if let Some(view) = &self.telling.view {
            view.show(report, &diagnosis);
        }
        // What is told may be another one than that which the application means.
        let is_stranger = report.hit.kin == Kin::Stranger;
        let is_open = |called: &Called| is_stranger || !called.inside.is_empty();
        self.open_calls += u64::from(report.called.as_ref().is_some_and(is_open));
        self.late_for_somebody |= !report.hit.ordinary;
        let line = self.numbered(hit_line(report, diagnosis.as_ref().ok()));
        self.book.hit(report, diagnosis.as_ref().ok())?;
        if let Some(command) = &self.exec {
            self.running.start(command, &line.to_string())?;
        }
        if self.json {
            tell(&format!("{line}\n"))?;
        } else {
            if let Ok(diagnosis) = &mut diagnosis {
                // What makes all answers doubtful is said with the first.
                let mut is_new = |text: &str| self.telling.warned.insert(text.to_owned());
                diagnosis.warnings.retain(|warning| is_new(&warning.what));
            }
            let text = self.hit_text(report, &diagnosis);
            if let Some(board) = &mut self.board {
                let (line, below) = pinned::lines(&text);
                let culprit = pinned::culprit(diagnosis.as_ref().ok());
                board.hit(report.hit.latency(), line, below, culprit);
                return Ok(());
            }
            tell(&text)?;
        }
        Ok(())
    }

    fn nothing_late(&mut self, report: &CallReport) -> Result<()> {
        self.live.clear();
        self.open_calls += 1;
        if self.json {
            let mut line = json!({ "type": "call", "trigger": call_json(&report.called) });
            if let Some(snapshot) = &report.snapshot {
                line["snapshot"] = snapshot_json(snapshot);
            }
            return self.json_line(line);
        }
        let text = nothing_late_text(report, &self.scope.whom);
        tell(&text)
    }

    fn held_back(&mut self, late: &LateOne) -> Result<()> {
        self.late_for_somebody |= late.task.prio.is_real_time();
        self.book.held_back(late)
    }

    fn call_held_back(&mut self, called: &Called, late: Option<&LateOne>) -> Result<()> {
        self.calls_in_short += 1;
        self.open_calls += u64::from(late.is_none());
        if let Some(late) = late {
            self.book.held_back(late)?;
        }
        match self.json {
            true => self.json_line(held_back_json(called, late)),
            false => Ok(()),
        }
    }

    fn status(&mut self, status: &Status) -> Result<bool> {
        self.running.reap();
        if let Some(board) = &mut self.board {
            let goes_on = board.show(vec![pinned::kind(status)], pinned::foot(status));
            return Ok(goes_on && !self.is_over() && signals::request() == Request::GoOn);
        }
        self.nobody_still(status);
        self.live.line(&live_text(status));
        Ok(!self.is_over() && signals::request() == Request::GoOn)
    }
}

/// What a command prints is read for so long after its end.
pub(in crate::verbs) const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(500);
/// So long it may take until those come who are asked for.
const NOBODY_AFTER: Duration = Duration::from_ms(5_000);

impl Observer {
    /// Whether, at the end, nobody was seen who is asked for, and why that may be.
    fn nobody_came(&self, statistics: &Statistics) -> (bool, String) {
        let was_there = has_judged(statistics) || statistics.start_ups + statistics.unslept > 0;
        let whom = self.waits_for.as_ref().filter(|_| !was_there);
        let Some(Ok(matched)) = whom.map(Matched::find) else {
            return (false, String::new());
        };
        (matched.is_nobody(), matched.too_late())
    }

    /// Says after a while that nobody came who is asked for.
    fn nobody_still(&mut self, status: &Status) {
        if status.elapsed < self.looks_at {
            return;
        }
        let Some(Ok(matched)) = self.waits_for.as_ref().map(Matched::find) else {
            return;
        };
        let too_late = matched.too_late();
        let is_nobody = matched.is_nobody();
        // Who was there may have ended.
        let has_judged = has_judged(&status.statistics);
        if !is_nobody || !too_late.is_empty() {
            self.waits_for = None;
        }
        if !too_late.is_empty() {
            self.live.clear();
            note_text!("{too_late}");
        } else if is_nobody && !has_judged && self.looks_at == NOBODY_AFTER {
            self.live.clear();
            note_text!(
                "nothing matched after {NOBODY_AFTER:#}:\n{}",
                matched.hints()
            );
        }
        self.looks_at = status.elapsed + NOBODY_AFTER;
    }

    /// Writes the page of a hit that is worse than those before.
    fn page(&mut self, report: &HitReport, diagnosis: &Result<Diagnosis>) -> Result<()> {
        let Telling { html, worst, .. } = &mut self.telling;
        let latency = report.hit.latency();
        let (Some(file), Some(snapshot), Ok(diagnosis)) = (html, &report.snapshot, diagnosis)
        else {
            return Ok(());
        };
        if latency <= *worst {
            return Ok(());
        }
        *worst = latency;
        let trace = Trace::open(&snapshot.path)?;
        page::write(file, &trace, &snapshot.path, diagnosis)
    }

    fn hit_text(&self, report: &HitReport, diagnosis: &Result<Diagnosis>) -> String {
        let hit = &report.hit;
        let before = match report.replaces {
            true => format!("\nhit {} is over; this replaces its report:", hit.id),
            false => String::new(),
        };
        let before = match &report.called {
            Some(called) => format!("{before}\n{}", called_text(called).trim_end()),
            None => before,
        };
        let before = match report.seen_as {
            Some(tid) => format!("{before}\n{}", of_host(&hit.task, tid)),
            None => before,
        };
        let text = match (diagnosis, &report.snapshot) {
            (Ok(diagnosis), Some(snapshot)) => {
                format!("\n{}", self.explained(diagnosis, &snapshot.path))
            }
            (Ok(_), None) => String::new(),
            (Err(error), _) => {
                let style = TextStyle {
                    color: self.paint.is_on(),
                    ..TextStyle::default()
                };
                format!("\n{}{error:#}\n", hit_text(hit, &style))
            }
        };
        before + &text
    }
}

impl Observer {
    fn explained(&self, diagnosis: &Diagnosis, snapshot: &Path) -> String {
        // The diagnosis rests on it: it was opened a moment ago.
        let info = Trace::open(snapshot).map(|trace| trace.info().clone());
        let path = quoted(&snapshot.display().to_string());
        let telling = diagnose_verb::Telling {
            trace: snapshot,
            more: format!("rtscope diagnose {path} -v"),
            info: &info.unwrap_or_default(),
            verbose: self.telling.verbose,
        };
        diagnose_verb::text(diagnosis, &telling, self.paint)
    }
}

/// Whom the ids of a hit mean, where `tid` is what this PID namespace calls its task.
fn of_host(task: &TaskRef, tid: Tid) -> String {
    let (name, host) = (&task.comm, task.tid);
    format!("{name} {tid} [{host} on the host]; ids and commands below are for the host:")
}

/// As [`summary`], short enough for a terminal of 80 columns.
fn live_text(status: &Status) -> String {
    let statistics = &status.statistics;
    let p999 = statistics.quantile(0.999);
    format!(
        "{:.1} s  samples {}  worst {}  p99.9 {}  hits {}  lost {}  cost {:.1} %",
        status.elapsed.as_ns() as f64 / 1e9,
        statistics.samples,
        statistics.worst.short(),
        p999.map_or("-".to_owned(), Duration::short),
        status.hits,
        statistics.lost,
        status.cost.share() * 100.0
    )
}

/// One line: how long, how much, how bad, what was lost, what it cost.
fn summary(status: &Status) -> String {
    let statistics = &status.statistics;
    let quantile = statistics.quantile(0.999);
    let p999 = quantile.map_or("-".to_owned(), |quantile| quantile.to_string());
    // Rare, and then it matters.
    let dropped = match statistics.dropped {
        0 => String::new(),
        dropped => format!("  dropped {dropped} (late, and the end not seen)"),
    };
    format!(
        "{}  samples {}  worst {}  p99.9 {p999}  hits {}  suppressed {}  lost {}{dropped}  \
         cost {:.2} %",
        status.elapsed,
        statistics.samples,
        statistics.worst,
        status.hits,
        statistics.suppressed,
        statistics.lost,
        status.cost.share() * 100.0
    )
}
