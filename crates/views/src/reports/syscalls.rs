//! System calls, thread by thread: how often, how long, what they returned.

use std::rc::Rc;

use super::columns::{CALLS, PROCESS, SYSCALL, TIME_RANGE};
use super::errno::errno_name;
use super::kind::{Answers, Keeps, Lami, PLAIN, ReportKind};
use super::needs::{SWITCHES, SYSTEM_CALLS};
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::question::Question;
use super::statistics::Summary;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use kernel_state::{Change, Comm, Kernel, ProcId, Topic, Topics};

const PER_TID: TableClass = TableClass {
    name: "per-tid",
    title: "System call statistics",
    columns: &[
        SYSCALL,
        CALLS,
        Column::new("min_duration", "Minimum call duration", Kind::Duration),
        Column::new("avg_duration", "Average call duration", Kind::Duration),
        Column::new("max_duration", "Maximum call duration", Kind::Duration),
        Column::new(
            "stdev_duration",
            "Call duration standard deviation",
            Kind::Duration,
        ),
        Column::new("return_values", "Return values count", Kind::Text),
    ],
};
const COUNT: Column = Column::count("count", "Total system call count", "calls");
const TOTAL: TableClass = TableClass {
    name: "total",
    title: "Per-TID system call statistics",
    columns: &[PROCESS, COUNT],
};
const SUMMARY: TableClass = TableClass {
    name: "summary",
    title: "System call statistics - summary",
    columns: &[TIME_RANGE, PROCESS, COUNT],
};

/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "syscalls",
    reports: &[("syscallstats", Views::ALWAYS, "system calls by thread")],
    classes: &[&PER_TID, &TOTAL, &SUMMARY],
    needs: &[SWITCHES, SYSTEM_CALLS],
    lami: Lami {
        title: "System call statistics",
        description: "System calls by thread: count, duration, return values",
        tags: &["syscall", "stats"],
    },
    summary: Keeps::Columns {
        tables: &["total"],
        keys: &["process", "count"],
        of_stats: false,
    },
    answers: Answers::Window(|asked| Box::new(SyscallStats::new(asked.options))),
    ..PLAIN
};

/// One system call of one thread.
#[derive(Debug, Default)]
struct Calls {
    durations: Summary,
    /// By errno, zero for success, in the order of their appearance.
    returned: Ordered<i64, u64>,
}

#[derive(Debug)]
struct Thread {
    tid: i32,
    comm: Comm,
    pid: Option<i32>,
    total: u64,
    calls: Ordered<u32, Calls>,
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct SyscallStats {
    options: Rc<ReportOptions>,
    threads: Ordered<u32, Thread>,
}

impl SyscallStats {
    pub fn new(options: Rc<ReportOptions>) -> SyscallStats {
        SyscallStats {
            options,
            threads: Ordered::default(),
        }
    }

    fn exit(&mut self, kernel: &Kernel, id: ProcId, call: u32, duration_ns: i64, ret: i64) {
        let process = kernel.process(id);
        let thread = self.threads.entry(id.0).or_insert_with(|| Thread {
            tid: process.tid,
            comm: process.comm,
            pid: process.pid,
            total: 0,
            calls: Ordered::default(),
        });
        thread.total += 1;
        let calls = thread.calls.entry(call).or_default();
        calls.durations.add(duration_ns);
        let errno = ret.min(0).saturating_neg();
        *calls.returned.entry(errno).or_default() += 1;
    }
}

/// How often it returned what.
fn returned(calls: &Calls) -> Vec<(String, u64)> {
    let one = |(errno, count): (&i64, &u64)| {
        let name = match errno {
            0 => "success".to_owned(),
            errno => errno_name(*errno).map_or((-errno).to_string(), str::to_owned),
        };
        (name, *count)
    };
    calls.returned.iter().map(one).collect()
}

/// Two durations deviate too, but lttng-analyses does not say by how much.
const DEVIATION_COUNT_MIN: u64 = 3;

fn row(kernel: &Kernel, call: u32, calls: &Calls) -> Vec<Cell> {
    let durations = &calls.durations;
    let deviation = durations.deviation_ns();
    vec![
        Cell::Syscall(kernel.call_name(call).to_owned()),
        Cell::Count(durations.count),
        Cell::Duration(durations.min_ns),
        Cell::DurationFloat(durations.mean_ns()),
        Cell::Duration(durations.max_ns),
        Cell::duration_or_unknown(deviation.filter(|_| durations.count >= DEVIATION_COUNT_MIN)),
        Cell::Results(returned(calls)),
    ]
}

impl Question for SyscallStats {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Calls])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let Change::CallExit {
            process,
            cpu,
            call,
            begin_ns,
            ret,
        } = change
        else {
            return;
        };
        let wanted = self.options.wants_process(kernel, kernel.process(*process));
        if wanted && self.options.wants_cpu(*cpu) {
            let duration_ns = kernel.now_ns() - begin_ns;
            self.exit(kernel, *process, *call, duration_ns, ret.unwrap_or(0));
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        self.options
            .name_threads(kernel, self.threads.iter_mut(), |thread| &mut thread.comm);
        let mut total = span.table(&TOTAL);
        let mut tables = Vec::new();
        let mut threads: Vec<_> = self.threads.values().collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.total));
        for thread in threads {
            let tid = thread.tid;
            let name = thread.comm.text();
            let pid = thread.pid.map_or("?".to_owned(), |pid| pid.to_string());
            let subtitle = format!("{name} ({pid}, TID: {tid})");
            let mut table = span.subtable(&PER_TID, subtitle);
            let mut calls: Vec<_> = thread.calls.iter().collect();
            calls.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.durations.count));
            table.rows = calls
                .into_iter()
                .map(|(call, calls)| row(kernel, *call, calls))
                .collect();
            tables.push(table);
            total.rows.push(vec![
                Cell::Process {
                    name: Some(name),
                    pid: thread.pid,
                    tid: Some(tid),
                },
                Cell::Count(thread.total),
            ]);
        }
        tables.push(total);
        tables
    }
}
