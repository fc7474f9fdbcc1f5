//! What a kind of reports is: names, tables, needs, what LAMI says of it, and who answers it. Each
//! file of a report has one; `mod.rs` lists them.

use std::rc::Rc;

use event::EventClass;
use trace::Trace;

use super::needs::Need;
use super::options::{ReportOptions, Views};
use super::question::Question;
use super::table::TableClass;

/// Reports about one thing, with tables of their own.
#[derive(Debug)]
pub struct ReportKind {
    /// What they are about, in a word.
    pub name: &'static str,
    /// Each by its name: which tables it shows, and what people read of it.
    pub(super) reports: &'static [(&'static str, Views, &'static str)],
    /// Second names of some of them.
    pub(super) aliases: &'static [(&'static str, &'static str)],
    /// The classes of all tables that they can have.
    pub classes: &'static [&'static TableClass],
    /// Events that they cannot do without.
    pub needs: &'static [Need],
    /// What has to be named for them.
    pub subject: Subject,
    /// What LAMI says of them.
    pub lami: Lami,
    /// What LAMI keeps of many windows.
    pub(super) summary: Keeps,
    /// Whether they name functions and locks of applications.
    pub names_code: bool,
    /// What they are told beyond what the kernel does.
    pub(super) told: &'static [Told],
    /// Who answers them.
    pub(super) answers: Answers,
}

/// What most kinds have. A kind names itself, its tables and who answers it.
pub(super) const PLAIN: ReportKind = ReportKind {
    name: "",
    reports: &[],
    aliases: &[],
    classes: &[],
    needs: &[],
    subject: Subject::None,
    lami: Lami {
        title: "",
        description: "",
        tags: &[],
    },
    summary: Keeps::AllWindows,
    names_code: false,
    told: &[],
    answers: Answers::Packets,
};

/// What a report has to be given besides the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Nothing.
    None,
    /// A definition of periods.
    Periods,
    /// A task.
    Task,
    /// Rules for tasks.
    RtRules,
}

/// What LAMI says of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Lami {
    /// Its title.
    pub title: &'static str,
    /// What it shows, in a line.
    pub description: &'static str,
    /// What it is found by.
    pub tags: &'static [&'static str],
}

/// What LAMI gets where there are many windows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keeps {
    /// The tables of all of them.
    AllWindows,
    /// Nothing.
    Nothing,
    /// Of these tables these columns, by key, in one table named `summary`.
    Columns {
        tables: &'static [&'static str],
        keys: &'static [&'static str],
        /// Nothing, where statistics were not asked for.
        of_stats: bool,
    },
}

/// What questions are told when one of them asks for it; it costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// What holds each CPU, stretch by stretch.
    Stretches,
    /// Who waits in which queue.
    Queues,
    /// Events that match the filter.
    MatchedEvents,
    /// The call stacks that events carry.
    Stacks,
}

/// Who answers the reports of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answers {
    /// A question over each window.
    Window(Asks),
    /// The same; for several hosts at once, what follows them all.
    WindowOrHosts(Asks),
    /// The log of all periods.
    Periods,
    /// The packets between hosts.
    Packets,
}

/// Makes the question over one window.
pub(super) type Asks = for<'a> fn(Asked<'a>) -> Box<dyn Question + 'a>;

/// What a question is made from.
pub(super) struct Asked<'a> {
    pub options: Rc<ReportOptions>,
    /// The tables that were asked for.
    pub views: Views,
    /// The window's first instant.
    pub begin_ns: i64,
    /// Events before it.
    pub events_before: u64,
    pub trace: &'a Trace,
}

impl ReportKind {
    /// What its reports need and a trace of these classes cannot have.
    pub fn missing(&self, classes: &[EventClass]) -> Vec<Need> {
        let is_met = |need: &&Need| classes.iter().any(|class| need.is_met_by(class));
        let missing = self.needs.iter().filter(|need| !is_met(need));
        missing.copied().collect()
    }

    /// Whether its questions are told this.
    pub(super) fn is_told(&self, what: Told) -> bool {
        self.told.contains(&what)
    }
}

/// A report that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// What it is about.
    pub kind: &'static ReportKind,
    /// Its tables, where its kind has a choice.
    pub views: Views,
}

impl PartialEq for Report {
    fn eq(&self, other: &Report) -> bool {
        std::ptr::eq(self.kind, other.kind) && self.views == other.views
    }
}

impl Eq for Report {}
