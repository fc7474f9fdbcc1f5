//! LTTV's RT_CHECK: tasks that do not get enough of a CPU within their period.

use std::rc::Rc;

use super::columns::THREAD;
use super::kind::{Answers, Lami, PLAIN, ReportKind, Subject};
use super::needs::SWITCHES;
use super::options::{ReportOptions, RtRule, Views};
use super::ordered::Ordered;
use super::question::Question;
use super::sched::process_cell;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use kernel_state::{Change, Kernel, Pause, ProcId, Topic, Topics};

const CHECKS: TableClass = TableClass {
    name: "checks",
    title: "Tasks and their periods",
    columns: &[
        THREAD,
        Column::new("period", "Period", Kind::Duration),
        Column::new("needed", "Needed", Kind::Duration),
        Column::count("periods", "Periods", "periods"),
        Column::count("not_judged", "Not judged", "periods"),
        Column::count("short", "Too short", "periods"),
        Column::count("starved", "Of these starved", "periods"),
        Column::new("least", "Least run", Kind::Duration),
        Column::new("worst_range", "Worst, from and to", Kind::Range),
    ],
};
/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "rtcheck",
    reports: &[(
        "rtcheck",
        Views::ALWAYS,
        "tasks that get too little CPU in a period (--rt)",
    )],
    classes: &[&CHECKS],
    needs: &[SWITCHES],
    subject: Subject::RtRules,
    lami: Lami {
        title: "Real-time check",
        description: "Tasks that do not get enough of a CPU within their period",
        tags: &["sched", "check"],
    },
    answers: Answers::Window(|asked| Box::new(RtCheck::new(asked.options))),
    ..PLAIN
};

/// A thread under one rule. Periods begin where the thread first ran.
#[derive(Debug)]
struct Watched {
    rule: usize,
    begin_ns: i64,
    /// In the period that begins at `begin_ns`.
    ran_ns: i64,
    waited_ns: i64,
    unknown_ns: i64,
    /// Up to when `ran_ns` and `waited_ns` are counted.
    since_ns: i64,
    doing: Doing,
    periods: u64,
    not_judged: u64,
    short: u64,
    starved: u64,
    /// The least run, and its period's begin.
    worst: Option<(i64, i64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Runs,
    Waits,
    Sleeps,
    /// Nobody knows.
    Unknown,
    /// It has ended: the period in which it did is none any more.
    Gone,
}

impl Watched {
    fn new(rule: usize, begin_ns: i64) -> Watched {
        Watched {
            rule,
            begin_ns,
            ran_ns: 0,
            waited_ns: 0,
            unknown_ns: 0,
            since_ns: begin_ns,
            doing: Doing::Runs,
            periods: 0,
            not_judged: 0,
            short: 0,
            starved: 0,
            worst: None,
        }
    }

    /// Counts up to `now_ns`, and judges the periods that are over.
    fn advance(&mut self, now_ns: i64, rule: &RtRule) {
        if self.doing == Doing::Gone {
            return;
        }
        loop {
            let end_ns = self.begin_ns.saturating_add(rule.period_ns);
            let until_ns = now_ns.min(end_ns);
            let ns = (until_ns - self.since_ns).max(0);
            match self.doing {
                Doing::Runs => self.ran_ns += ns,
                Doing::Waits => self.waited_ns += ns,
                Doing::Unknown => self.unknown_ns += ns,
                Doing::Sleeps | Doing::Gone => {}
            }
            self.since_ns = until_ns;
            if now_ns < end_ns {
                return;
            }
            self.judge(rule);
            if self.doing == Doing::Sleeps && now_ns - end_ns >= rule.period_ns {
                self.sleep_through(now_ns, rule);
            }
        }
    }

    fn judge(&mut self, rule: &RtRule) {
        self.periods += 1;
        let is_short = self.ran_ns < rule.needed_ns;
        if is_short && self.ran_ns + self.unknown_ns >= rule.needed_ns {
            self.not_judged += 1;
            self.next_period(rule);
            return;
        }
        if is_short {
            self.short += 1;
            // With the time that it waited it would have had enough.
            self.starved += u64::from(self.ran_ns + self.waited_ns >= rule.needed_ns);
        }
        if self.worst.is_none_or(|(ran_ns, _)| self.ran_ns < ran_ns) {
            self.worst = Some((self.ran_ns, self.begin_ns));
        }
        self.next_period(rule);
    }

    fn next_period(&mut self, rule: &RtRule) {
        self.begin_ns += rule.period_ns;
        (self.ran_ns, self.waited_ns, self.unknown_ns) = (0, 0, 0);
    }

    /// Whole periods of sleep are alike: they are counted at once.
    fn sleep_through(&mut self, now_ns: i64, rule: &RtRule) {
        let periods = (now_ns - self.begin_ns) / rule.period_ns;
        if periods <= 1 {
            return;
        }
        self.judge(rule);
        let rest = periods - 1;
        self.periods += rest as u64;
        self.short += if rule.needed_ns > 0 { rest as u64 } else { 0 };
        self.begin_ns += rest * rule.period_ns;
        self.since_ns = self.begin_ns;
    }
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct RtCheck {
    options: Rc<ReportOptions>,
    watched: Ordered<u32, Vec<Watched>>,
}

impl RtCheck {
    pub fn new(options: Rc<ReportOptions>) -> RtCheck {
        RtCheck {
            options,
            watched: Ordered::default(),
        }
    }

    /// A thread does something else from an instant on.
    fn from(&mut self, kernel: &Kernel, id: ProcId, now_ns: i64, doing: Doing) {
        let process = kernel.process(id);
        let rules = &self.options.rt_rules;
        if !self.watched.contains_key(&id.0) {
            if doing != Doing::Runs {
                return;
            }
            let meant = |rule: &&RtRule| rule.task.matches(&kernel.named(process));
            let places = rules.iter().enumerate();
            let meant = places.filter(|(_, rule)| meant(rule));
            let watched: Vec<Watched> = meant.map(|(r, _)| Watched::new(r, now_ns)).collect();
            if watched.is_empty() {
                return;
            }
            self.watched.insert(id.0, watched);
        }
        for watched in self.watched.get_mut(&id.0).into_iter().flatten() {
            watched.advance(now_ns, &rules[watched.rule]);
            watched.doing = doing;
        }
    }
}

impl RtCheck {
    /// What a thread has done since its last change is not known.
    fn doubt(&mut self, id: ProcId) {
        for watched in self.watched.get_mut(&id.0).into_iter().flatten() {
            watched.doing = Doing::Unknown;
        }
    }

    /// Events were lost: whatever a thread did, it may have stopped.
    fn lost(&mut self, from_ns: i64) {
        for watched in self.watched.values_mut().flatten() {
            watched.advance(from_ns, &self.options.rt_rules[watched.rule]);
            watched.doing = Doing::Unknown;
        }
    }
}

impl Question for RtCheck {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Runs, Topic::Waits])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let now_ns = kernel.now_ns();
        match *change {
            Change::Woken { process, .. } => self.from(kernel, process, now_ns, Doing::Waits),
            Change::ScheduledIn { process, at_ns, .. } => {
                self.from(kernel, process, at_ns, Doing::Runs);
            }
            Change::Switch {
                prev,
                prev_runnable,
                pause,
                ..
            } => {
                let doing = match prev_runnable {
                    _ if pause == Pause::Gone => Doing::Gone,
                    true => Doing::Waits,
                    false => Doing::Sleeps,
                };
                self.from(kernel, prev, now_ns, doing);
            }
            Change::Unknown { process, .. } => self.doubt(process),
            Change::Lost { from_ns, .. } => self.lost(from_ns),
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        let mut table = span.table(&CHECKS);
        for (id, watched) in &mut self.watched {
            for watched in watched {
                let rule = &self.options.rt_rules[watched.rule];
                watched.advance(span.end_ns, rule);
                let (least, worst) = match watched.worst {
                    Some((ran_ns, begin_ns)) => (
                        Cell::Duration(ran_ns),
                        Cell::Range(begin_ns, begin_ns + rule.period_ns),
                    ),
                    None => (Cell::Unknown, Cell::Unknown),
                };
                table.rows.push(vec![
                    process_cell(kernel, ProcId(*id)),
                    Cell::Duration(rule.period_ns),
                    Cell::Duration(rule.needed_ns),
                    Cell::Count(watched.periods),
                    Cell::Count(watched.not_judged),
                    Cell::Count(watched.short),
                    Cell::Count(watched.starved),
                    least,
                    worst,
                ]);
            }
        }
        vec![table]
    }
}
