//! The critical path of a task: what its time went to, followed backwards through whoever woke it.
//!
//! Where the task was blocked, the path goes on in the thread that woke it, as long as the wait
//! lasted; where an interrupt woke it, the wait belongs to the interrupt's device.

use std::rc::Rc;

use super::cputop::share;
use super::options::ReportOptions;
use super::ordered::Ordered;
use super::sched::process_cell;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use super::window::Question;
use crate::kernel::{Change, Kernel, ProcId, Waker};

const WHO: Column = Column::new("process", "Thread", Kind::Process);
const WHAT: Column = Column::new("what", "What", Kind::Text);
const SUMS: TableClass = TableClass {
    name: "sums",
    title: "What the critical path consists of",
    columns: &[
        WHO,
        WHAT,
        Column::new("total", "In all", Kind::Duration),
        Column::new("share", "Share", Kind::Ratio),
        Column::count("count", "Times", "times"),
    ],
};
const STEPS: TableClass = TableClass {
    name: "steps",
    title: "The critical path",
    columns: &[
        Column::new("time_range", "From and to", Kind::Range),
        Column::new("duration", "Duration", Kind::Duration),
        WHO,
        WHAT,
    ],
};
/// All tables of the report.
pub(super) const CLASSES: &[&TableClass] = &[&SUMS, &STEPS];

/// So many threads may wait for each other in a chain; what lies deeper is called blocked.
const DEPTH_MAX: usize = 64;

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Runs,
    WaitsForCpu,
    /// Until this woke it; none when nothing did before the window's end.
    Blocked(Option<Waker>),
    Unknown,
}

/// From its begin to the next one's.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    begin_ns: i64,
    what: What,
}

/// A piece of the path.
#[derive(Clone, Copy, Debug)]
struct Step {
    begin_ns: i64,
    end_ns: i64,
    who: ProcId,
    what: What,
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct CriticalPath {
    options: Rc<ReportOptions>,
    begin_ns: i64,
    threads: Ordered<u32, Vec<Stretch>>,
}

impl CriticalPath {
    pub fn new(options: Rc<ReportOptions>, begin_ns: i64) -> CriticalPath {
        CriticalPath {
            options,
            begin_ns,
            threads: Ordered::default(),
        }
    }

    fn now(&mut self, id: ProcId, begin_ns: i64, what: What) {
        let stretches = self.threads.entry(id.0).or_default();
        stretches.push(Stretch { begin_ns, what });
    }

    /// What a thread did before it was first seen to change.
    fn first(&mut self, id: ProcId, since_ns: Option<i64>, what: What) {
        let stretches = self.threads.entry(id.0).or_default();
        if stretches.is_empty() {
            let begin_ns = self.begin_ns;
            let what = since_ns.map_or(What::Unknown, |_| what);
            stretches.push(Stretch { begin_ns, what });
        }
    }

    /// The thread that was asked for: of several, the one that changed most often.
    fn target(&self, kernel: &Kernel) -> Option<ProcId> {
        let wanted = self.threads.iter().filter(|(id, _)| {
            let process = kernel.process(ProcId(**id));
            process.tid != 0 && self.options.wants_process(process)
        });
        let most = wanted.max_by_key(|(_, stretches)| stretches.len());
        most.map(|(id, _)| ProcId(*id))
    }

    /// Puts down, from the end back to the begin, what the path of `who` consists of.
    fn follow(&self, who: ProcId, begin_ns: i64, end_ns: i64, depth: usize, path: &mut Vec<Step>) {
        let stretches = self.threads.get(&who.0).map_or(&[][..], Vec::as_slice);
        let mut end_ns = end_ns;
        let mut place = stretches.partition_point(|stretch| stretch.begin_ns < end_ns);
        while end_ns > begin_ns {
            let stretch = place.checked_sub(1).map_or(
                Stretch {
                    begin_ns,
                    what: What::Unknown,
                },
                |place| stretches[place],
            );
            let from_ns = stretch.begin_ns.max(begin_ns);
            if from_ns < end_ns {
                match stretch.what {
                    What::Blocked(Some(Waker::Thread(waker)))
                        if waker != who && depth < DEPTH_MAX =>
                    {
                        self.follow(waker, from_ns, end_ns, depth + 1, path);
                    }
                    what => path.push(Step {
                        begin_ns: from_ns,
                        end_ns,
                        who,
                        what,
                    }),
                }
            }
            end_ns = end_ns.min(from_ns);
            place = place.saturating_sub(1);
        }
    }
}

/// Pieces that touch and say the same are one.
fn joined(path: Vec<Step>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for step in path.into_iter().rev() {
        match steps.last_mut() {
            Some(last)
                if last.who == step.who
                    && last.what == step.what
                    && last.end_ns == step.begin_ns =>
            {
                last.end_ns = step.end_ns;
            }
            _ => steps.push(step),
        }
    }
    steps
}

fn what_text(kernel: &Kernel, what: What) -> String {
    match what {
        What::Runs => "runs".to_owned(),
        What::WaitsForCpu => "waits for a CPU".to_owned(),
        What::Blocked(Some(by)) => format!("blocked until {}", kernel.waker_text(by)),
        What::Blocked(None) => "blocked".to_owned(),
        What::Unknown => "unknown".to_owned(),
    }
}

impl Question for CriticalPath {
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let now_ns = kernel.now_ns();
        match *change {
            Change::Woken {
                process,
                by,
                blocked_since_ns,
                ..
            } => {
                self.first(process, blocked_since_ns, What::Blocked(Some(by)));
                let last = self.threads.get_mut(&process.0);
                if let Some(last) = last.and_then(|stretches| stretches.last_mut())
                    && matches!(last.what, What::Blocked(None))
                {
                    last.what = What::Blocked(Some(by));
                }
                self.now(process, now_ns, What::WaitsForCpu);
            }
            Change::Switch {
                prev,
                prev_runnable,
                next,
                waited_since_ns,
                ..
            } => {
                if kernel.process(prev).tid != 0 {
                    self.first(prev, Some(now_ns), What::Runs);
                    let what = match prev_runnable {
                        true => What::WaitsForCpu,
                        false => What::Blocked(None),
                    };
                    self.now(prev, now_ns, what);
                }
                if kernel.process(next).tid != 0 {
                    self.first(next, waited_since_ns, What::WaitsForCpu);
                    self.now(next, now_ns, What::Runs);
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        let mut path = Vec::new();
        if let Some(target) = self.target(kernel) {
            self.follow(target, span.begin_ns, span.end_ns, 0, &mut path);
        }
        let steps = joined(path);
        let mut sums: Ordered<(u32, What), (i64, u64)> = Ordered::default();
        for step in &steps {
            let sum = sums.entry((step.who.0, step.what)).or_default();
            sum.0 += step.end_ns - step.begin_ns;
            sum.1 += 1;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
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
        let mut step_table = span.table(&STEPS);
        let row = |step: &Step| {
            vec![
                Cell::Range(step.begin_ns, step.end_ns),
                Cell::Duration(step.end_ns - step.begin_ns),
                process_cell(kernel, step.who),
                Cell::Text(what_text(kernel, step.what)),
            ]
        };
        step_table.rows = steps.iter().map(row).collect();
        vec![sum_table, step_table]
    }
}
