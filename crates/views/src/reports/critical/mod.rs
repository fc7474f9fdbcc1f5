//! The critical path of a task: what its time went to, followed backwards through whoever woke it.
//!
//! Where the task was blocked, the path goes on in the thread that woke it, as long as the wait
//! lasted; where an interrupt woke it, the wait belongs to the interrupt's device.
//!
//! # Design constraints
//! - Memory does not grow with the trace: changes are kept up to a limit, and a trace that holds
//!   more is walked over again for those before.

mod across;
mod history;
mod limits;
mod path;
mod recorder;
pub mod request;
mod terms;

use std::rc::Rc;

use trace::Trace;

use limits::{NODES_MAX, STEPS_MAX, what_text};
use path::{Follower, Path, Step};
use recorder::{Recorder, record_again};

use super::cputop::share;
use super::kind::{Answers, Lami, PLAIN, ReportKind, Subject};
use super::needs::{SWITCHES, WAKE_UPS};
use super::options::{ReportOptions, Views};
use super::question::Question;
use super::sched::process_cell;
use super::table::{Cell, Span, Table, TableClass};
use crate::reports::columns::{DURATION, FROM_TO, SHARE, THREAD, TIMES, TOTAL, WHAT};
use kernel_state::{Change, Kernel, ProcId, Sink, Topics};

pub(super) use across::Across;
pub(super) use recorder::Begin;

const SUMS: TableClass = TableClass {
    name: "sums",
    title: "What the critical path consists of",
    columns: &[THREAD, WHAT, TOTAL, SHARE, TIMES],
};
const STEPS: TableClass = TableClass {
    name: "steps",
    title: "The critical path",
    columns: &[FROM_TO, DURATION, THREAD, WHAT],
};
/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "criticalpath",
    reports: &[(
        "criticalpath",
        Views::ALWAYS,
        "what a task's time went to (--procname, --tid)",
    )],
    classes: &[&SUMS, &STEPS, &across::SUMS, &across::STEPS],
    needs: &[SWITCHES, WAKE_UPS],
    subject: Subject::Task,
    lami: Lami {
        title: "Critical path",
        description: "What a task's time went to, through whoever woke it",
        tags: &["sched", "critical-path"],
    },
    answers: Answers::WindowOrHosts(|asked| {
        let begin = Begin {
            ns: asked.begin_ns,
            event: asked.events_before,
        };
        Box::new(CriticalPath::new(asked.options, asked.trace, begin))
    }),
    ..PLAIN
};

/// The question over one window.
pub(super) struct CriticalPath<'a> {
    options: Rc<ReportOptions>,
    trace: &'a Trace,
    begin: Begin,
    nodes_max: usize,
    recorder: Recorder,
}

impl<'a> CriticalPath<'a> {
    pub fn new(options: Rc<ReportOptions>, trace: &'a Trace, begin: Begin) -> CriticalPath<'a> {
        CriticalPath::keeping(NODES_MAX, options, trace, begin)
    }

    fn keeping(
        nodes_max: usize,
        options: Rc<ReportOptions>,
        trace: &'a Trace,
        begin: Begin,
    ) -> CriticalPath<'a> {
        CriticalPath {
            options,
            trace,
            begin,
            nodes_max,
            recorder: Recorder::new(begin.ns, nodes_max),
        }
    }

    /// The thread that was asked for: of several, the one that changed most often.
    fn target(&self, kernel: &Kernel) -> Option<ProcId> {
        let wanted = self.recorder.threads().filter(|(id, _)| {
            let process = kernel.process(*id);
            process.tid != 0 && self.options.wants_process(kernel, process)
        });
        let most = wanted.max_by_key(|(_, changes)| *changes);
        most.map(|(id, _)| id)
    }

    /// What the path consists of, from `end_ns` back to the window's begin.
    fn path(&mut self, kernel: &Kernel, end_ns: i64) -> Path {
        let Some(who) = self.target(kernel) else {
            return Path::default();
        };
        let last = self.recorder.last(who);
        let mut follower = Follower::new(who, last, self.begin.ns, end_ns, STEPS_MAX);
        while let Err(needed) = follower.follow(&self.recorder) {
            // Dropped first, so that there are never two.
            self.recorder = Recorder::new(self.begin.ns, 0);
            match record_again(self.trace, self.begin, self.nodes_max, needed) {
                Some(recorder) => self.recorder = recorder,
                None => follower.give_up(),
            }
        }
        follower.into_path()
    }
}

impl Question for CriticalPath<'_> {
    fn topics(&self) -> Topics {
        Recorder::TOPICS
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        self.recorder.change(kernel, change);
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        let path = self.path(kernel, span.end_ns);
        // In the order in which they come last.
        let mut sums: Vec<_> = path.sums.into_iter().rev().collect();
        sums.sort_by_key(|(_, (total_ns, _))| -total_ns);
        let mut sum_table = span.table(&SUMS);
        for ((who, what), (total_ns, count)) in sums {
            sum_table.rows.push(vec![
                process_cell(kernel, ProcId(who)),
                Cell::Text(what_text(kernel, what)),
                Cell::Duration(total_ns),
                Cell::Ratio(share(total_ns, span)),
                Cell::Count(count),
            ]);
        }
        let mut step_table = match path.left_out {
            0 => span.table(&STEPS),
            count => span.subtable(
                &STEPS,
                format!("its last {} steps, {count} before them", path.steps.len()),
            ),
        };
        let row = |step: &Step| {
            vec![
                Cell::Range(step.begin_ns, step.end_ns),
                Cell::Duration(step.end_ns - step.begin_ns),
                process_cell(kernel, step.who),
                Cell::Text(what_text(kernel, step.what)),
            ]
        };
        step_table.rows = path.steps.iter().rev().map(row).collect();
        vec![sum_table, step_table]
    }
}

#[cfg(test)]
mod tests {
    use kernel_state::Follow;

    use super::*;
    use event::TimeRange;
    use testkit::{SyntheticTrace, Task};
    use trace::Item;

    const A: Task = Task::rt(1, "a", 50);
    const B: Task = Task::fair(2, "b");
    const C: Task = Task::fair(3, "c");

    /// `a` sleeps in turn until `b`, which `c` wakes, wakes it, and for all of a long stretch in
    /// the middle, in which the others go on.
    fn trace() -> SyntheticTrace {
        let mut trace = SyntheticTrace::new().at(0).timer_irq().timer_irq_end();
        trace = trace.run(A).cpu(1).run(C).cpu(0);
        let mut at_us = 10;
        for turn in 0..30_000 {
            let sleeps = (10_000..25_000).contains(&turn);
            // It blocked when the long stretch began.
            if !sleeps && turn != 25_000 || turn == 10_000 {
                trace = trace.at(at_us).block(A, Task::IDLE);
            }
            trace = trace
                .cpu(1)
                .at(at_us + 3)
                .waking(B, 1)
                .at(at_us + 4)
                .block(C, B);
            trace = trace.at(at_us + 5).waking(C, 1);
            if !sleeps {
                trace = trace.at(at_us + 6).waking(A, 0).cpu(0).at(at_us + 7).run(A);
            }
            trace = trace.cpu(1).at(at_us + 8).block(B, C).cpu(0);
            at_us += 10;
        }
        trace
    }

    fn found(trace: &Trace, nodes_max: usize) -> (Vec<Table>, u64) {
        let options = ReportOptions {
            tids: vec![A.tid],
            ..ReportOptions::default()
        };
        let begin = Begin { ns: 0, event: 0 };
        let mut question = CriticalPath::keeping(nodes_max, Rc::new(options), trace, begin);
        let mut kernel = Kernel::new(trace, Follow::default());
        let mut cursor = trace.cursor(TimeRange::ALL);
        while let Some(item) = cursor.next().expect("a trace in memory can be walked") {
            if let Item::Event(event) = item {
                kernel.event(&event, event.time().as_ns(), &mut question.recorder);
            }
        }
        let span = Span {
            begin_ns: 0,
            end_ns: kernel.now_ns(),
        };
        let changes = question.recorder.history.end();
        (question.finish(&kernel, span), changes)
    }

    #[test]
    fn a_path_is_the_same_however_little_of_the_history_is_kept() {
        let trace = trace().build();
        let (all, changes) = found(&trace, usize::MAX);
        let (part, _) = found(&trace, 1);
        assert!(changes > 150_000, "{changes}: nothing is dropped");
        assert_eq!(all, part);
        let total_ns: i64 = all[0]
            .rows
            .iter()
            .map(|row| match row[2] {
                Cell::Duration(ns) => ns,
                _ => 0,
            })
            .sum();
        assert_eq!(total_ns, all[0].end_ns, "all of the window, once");
        assert!(
            all[0].rows.len() >= 4,
            "it goes through others: {:?}",
            all[0].rows
        );
    }

    #[test]
    fn of_a_long_path_the_last_steps_are_listed_and_all_are_summed_up() {
        let (tables, _) = found(&trace().build(), usize::MAX);
        let (sums, steps) = (&tables[0], &tables[1]);
        assert_eq!(steps.rows.len(), STEPS_MAX);
        let counted: u64 = sums
            .rows
            .iter()
            .map(|row| match row[4] {
                Cell::Count(count) => count,
                _ => 0,
            })
            .sum();
        let left_out = counted - STEPS_MAX as u64;
        let expect = format!("its last {STEPS_MAX} steps, {left_out} before them");
        assert_eq!(steps.subtitle.as_deref(), Some(expect.as_str()));
        let last = steps.rows.last().map(|row| row[0].clone());
        assert!(matches!(last, Some(Cell::Range(_, end_ns)) if end_ns == steps.end_ns));
    }
}
