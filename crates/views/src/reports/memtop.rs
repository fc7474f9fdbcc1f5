//! Pages that threads took and gave back.

use std::rc::Rc;

use super::columns::{PROCESS, TIME_RANGE};
use super::kind::{Answers, Keeps, Lami, PLAIN, ReportKind};
use super::needs::{PAGES, SWITCHES};
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::question::Question;
use super::table::{Cell, Column, Span, Table, TableClass};
use kernel_state::{Change, Comm, Kernel, ProcId, Topic, Topics};

const ALLOCATED: TableClass = TableClass {
    name: "allocd",
    title: "Per-TID top allocated memory",
    columns: &[PROCESS, Column::count("pages", "Allocated pages", "pages")],
};
const FREED: TableClass = TableClass {
    name: "freed",
    title: "Per-TID top freed memory",
    columns: &[PROCESS, Column::count("pages", "Freed pages", "pages")],
};
const ALLOCATED_PAGES: Column = Column::count("allocd", "Total allocated pages", "pages");
const FREED_PAGES: Column = Column::count("freed", "Total freed pages", "pages");
const TOTAL: TableClass = TableClass {
    name: "total",
    title: "Total allocated/freed memory",
    columns: &[ALLOCATED_PAGES, FREED_PAGES],
};
const SUMMARY: TableClass = TableClass {
    name: "summary",
    title: "Memory usage - summary",
    columns: &[TIME_RANGE, ALLOCATED_PAGES, FREED_PAGES],
};

/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "memory",
    reports: &[("memtop", Views::ALWAYS, "who took and gave back pages")],
    classes: &[&ALLOCATED, &FREED, &TOTAL, &SUMMARY],
    needs: &[SWITCHES, PAGES],
    lami: Lami {
        title: "Top memory usage",
        description: "Pages that threads took and gave back",
        tags: &["memory", "top"],
    },
    summary: Keeps::Columns {
        tables: &["total"],
        keys: &["allocd", "freed"],
        of_stats: false,
    },
    answers: Answers::Window(|asked| Box::new(MemTop::new(asked.options))),
    ..PLAIN
};

#[derive(Debug)]
struct Pages {
    tid: i32,
    comm: Comm,
    allocated: u64,
    freed: u64,
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct MemTop {
    options: Rc<ReportOptions>,
    threads: Ordered<u32, Pages>,
}

impl MemTop {
    pub fn new(options: Rc<ReportOptions>) -> MemTop {
        MemTop {
            options,
            threads: Ordered::default(),
        }
    }

    fn pages(&mut self, kernel: &Kernel, id: ProcId, cpu: u32) -> Option<&mut Pages> {
        let process = kernel.process(id);
        let wanted = self.options.wants_process(kernel, process) && self.options.wants_cpu(cpu);
        let pages = || Pages {
            tid: process.tid,
            comm: process.comm,
            allocated: 0,
            freed: 0,
        };
        wanted.then(|| self.threads.entry(id.0).or_insert_with(pages))
    }

    fn table(&self, span: Span, class: &'static TableClass, count: fn(&Pages) -> u64) -> Table {
        let mut table = span.table(class);
        let mut threads: Vec<_> = self.threads.values().collect();
        threads.sort_by_key(|pages| std::cmp::Reverse(count(pages)));
        for pages in threads {
            let process = Cell::Process {
                name: Some(pages.comm.text()),
                pid: None,
                tid: Some(pages.tid),
            };
            table.rows.push(vec![process, Cell::Count(count(pages))]);
            if self.options.is_full(table.rows.len()) {
                break;
            }
        }
        table
    }
}

impl Question for MemTop {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Pages])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        match change {
            Change::PageAllocated { process, cpu } => {
                if let Some(pages) = self.pages(kernel, *process, *cpu) {
                    pages.allocated += 1;
                }
            }
            Change::PageFreed { process, cpu } => {
                if let Some(pages) = self.pages(kernel, *process, *cpu) {
                    pages.freed += 1;
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        self.options
            .name_threads(kernel, self.threads.iter_mut(), |pages| &mut pages.comm);
        let allocated = |pages: &Pages| pages.allocated;
        let freed = |pages: &Pages| pages.freed;
        let mut total = span.table(&TOTAL);
        total.rows.push(vec![
            Cell::Count(self.threads.values().map(allocated).sum()),
            Cell::Count(self.threads.values().map(freed).sum()),
        ]);
        vec![
            self.table(span, &ALLOCATED, allocated),
            self.table(span, &FREED, freed),
            total,
        ]
    }
}
