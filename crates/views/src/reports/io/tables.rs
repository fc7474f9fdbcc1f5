//! The tables of files, disks and network.

use std::cmp::Reverse;

use super::threads::Thread;
use super::{CATEGORIES, Entry, Interface, Io};
use crate::reports::columns::{CALLS, PROCESS, SYSCALL};
use crate::reports::histogram::Edges;
use crate::reports::ordered::Ordered;
use crate::reports::sched::summary;
use crate::reports::statistics::Summary;
use crate::reports::table::{Cell, Column, Kind, Span, Table, TableClass};
use kernel_state::Kernel;

const MIN_CALL: Column = Column::new("min_latency", "Minimum call latency", Kind::Duration);
const SYSCALL_STATS: TableClass = TableClass {
    name: "syscall-latency-stats",
    title: "System call latency statistics",
    columns: &[
        Column::new("obj", "System call category", Kind::Text),
        CALLS,
        MIN_CALL,
        Column::new("avg_latency", "Average call latency", Kind::Duration),
        Column::new("max_latency", "Maximum call latency", Kind::Duration),
        Column::new(
            "stdev_latency",
            "System call latency standard deviation",
            Kind::Duration,
        ),
    ],
};
const DISK_STATS: TableClass = TableClass {
    name: "disk-latency-stats",
    title: "Partition latency statistics",
    columns: &[
        Column::new("obj", "Partition", Kind::Disk),
        Column::count("count", "Access count", "accesses"),
        Column::new("min_latency", "Minimum access latency", Kind::Duration),
        Column::new("avg_latency", "Average access latency", Kind::Duration),
        Column::new("max_latency", "Maximum access latency", Kind::Duration),
        Column::new(
            "stdev_latency",
            "System access latency standard deviation",
            Kind::Duration,
        ),
    ],
};
const FREQ: TableClass = TableClass {
    name: "freq",
    title: "I/O request latency distribution",
    columns: &[
        Column::new("latency_lower", "Latency (lower bound)", Kind::Duration),
        Column::new("latency_upper", "Latency (upper bound)", Kind::Duration),
        Column::count("count", "Request count", "requests"),
    ],
};
const REQUESTS: &[Column] = &[
    Column::new("time_range", "Call time range", Kind::Range),
    Column::new("out_of_range", "System call out of range?", Kind::Bool),
    Column::new("duration", "Call duration", Kind::Duration),
    SYSCALL,
    Column::new("size", "Read/write size", Kind::Size),
    PROCESS,
    Column::new("path", "File path", Kind::Path),
    Column::new("fd", "File descriptor", Kind::Fd),
];
const TOP: TableClass = TableClass {
    name: "top-syscall",
    title: "Top system call latencies",
    columns: REQUESTS,
};
const LOG: TableClass = TableClass {
    name: "log",
    title: "I/O operations log",
    columns: REQUESTS,
};
const SIZE: Column = Column::new("size", "Operations size", Kind::Size);
const PER_PROCESS: TableClass = TableClass {
    name: "per-process-top",
    title: "Per-process top I/O operations",
    columns: &[
        PROCESS,
        Column::new("size", "Total operations size", Kind::Size),
        Column::new("disk_size", "Disk operations size", Kind::Size),
        Column::new("net_size", "Network operations size", Kind::Size),
        Column::new("unknown_size", "Unknown operations size", Kind::Size),
    ],
};
const PER_FILE: TableClass = TableClass {
    name: "per-file-top",
    title: "Per-file top I/O operations",
    columns: &[
        Column::new("path", "File path/info", Kind::Path),
        SIZE,
        Column::new("fd_owners", "File descriptor owners", Kind::Text),
    ],
};
const PER_PROCESS_BLOCK: TableClass = TableClass {
    name: "per-process-top-block",
    title: "Per-process top block I/O operations",
    columns: &[PROCESS, SIZE],
};
const DISK: Column = Column::new("disk", "Disk", Kind::Disk);
const DISK_SECTORS: TableClass = TableClass {
    name: "per-disk-top-sector",
    title: "Per-disk top sector I/O operations",
    columns: &[DISK, Column::count("count", "Sector count", "sectors")],
};
const DISK_REQUESTS: TableClass = TableClass {
    name: "per-disk-top-request",
    title: "Per-disk top I/O requests",
    columns: &[
        DISK,
        Column::count("count", "Request count", "I/O requests"),
    ],
};
const DISK_TIMES: TableClass = TableClass {
    name: "per-disk-top-rps",
    title: "Per-disk top I/O request time/sector",
    columns: &[
        DISK,
        Column::new("rtps", "Request time/sector", Kind::Duration),
    ],
};
const PER_NETIF: TableClass = TableClass {
    name: "per-netif-top",
    title: "Per-network interface top I/O operations",
    columns: &[Column::new("netif", "Network interface", Kind::NetIf), SIZE],
};

pub(super) const CLASSES: &[&TableClass] = &[
    &SYSCALL_STATS,
    &DISK_STATS,
    &FREQ,
    &TOP,
    &LOG,
    &PER_PROCESS,
    &PER_FILE,
    &PER_PROCESS_BLOCK,
    &DISK_SECTORS,
    &DISK_REQUESTS,
    &DISK_TIMES,
    &PER_NETIF,
];

/// Names that many files share: the process's is added.
const GENERIC: [&str; 4] = ["pipe", "socket", "anon_inode", "unknown"];

/// A file, through whichever descriptors.
#[derive(Debug, Default)]
struct FileSum {
    read: u64,
    written: u64,
    /// The first descriptor of each process.
    owners: Ordered<i32, i64>,
}

impl Io {
    pub(super) fn tables(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        let mut tables = Vec::new();
        if self.views.stats {
            tables.push(self.call_stats(span));
            tables.extend(self.disk_stats(span));
        }
        if self.views.top {
            self.tops(kernel, span, &mut tables);
        }
        if self.views.usage {
            self.usage(span, &mut tables);
        }
        if self.views.freq {
            self.freqs(span, &mut tables);
        }
        if self.views.log {
            tables.push(self.log(kernel, span));
        }
        tables
    }

    fn entry(&self, kernel: &Kernel, entry: &Entry) -> Vec<Cell> {
        let thread = self.threads.get(entry.process);
        let leader = |thread: &Thread| self.threads.get(kernel.find(thread.pid?)?);
        let own = |thread: &&Thread| thread.pid == Some(thread.tid);
        let owner = thread
            .filter(own)
            .or_else(|| thread.and_then(leader))
            .or(thread);
        let name = |fd| owner.and_then(|owner| owner.name_at(fd, entry.end_ns));
        let path = |fd| match (name(fd), entry.to) {
            (Some(name), None) => Cell::Path(name.to_owned()),
            (None, None) => Cell::Unknown,
            (from, Some(to)) => {
                let [from, to] = [from, name(to)].map(|name| name.unwrap_or("unknown"));
                Cell::Path(format!("{from} -> {to}"))
            }
        };
        let before = |begin_ns| entry.begin_ns < begin_ns;
        let after = |end_ns| entry.end_ns > end_ns;
        let out =
            self.options.begin_ns.is_some_and(before) || self.options.end_ns.is_some_and(after);
        let size = entry.size.and_then(|size| u64::try_from(size).ok());
        vec![
            Cell::Range(entry.begin_ns, entry.end_ns),
            Cell::Bool(out),
            Cell::Duration(entry.end_ns - entry.begin_ns),
            Cell::Syscall(kernel.call_name(entry.call).to_owned()),
            size.map_or(Cell::Empty, Cell::Size),
            Cell::Process {
                name: thread.map(|thread| thread.comm.text()),
                pid: None,
                tid: Some(kernel.process(entry.process).tid),
            },
            entry.fd.map_or(Cell::Empty, path),
            entry.fd.map_or(Cell::Empty, Cell::Fd),
        ]
    }

    pub(super) fn log(&mut self, kernel: &Kernel, span: Span) -> Table {
        let mut table = span.table(&LOG);
        let part = self.log.part();
        let rows = part.iter().map(|logged| self.entry(kernel, &logged.entry));
        table.rows = rows.collect();
        table
    }

    fn call_stats(&self, span: Span) -> Table {
        let mut table = span.table(&SYSCALL_STATS);
        for (category, (_, _, title)) in self.categories.iter().zip(CATEGORIES) {
            let mut row = vec![Cell::Text(title.to_owned())];
            row.extend(summary(&category.durations));
            table.rows.push(row);
        }
        table
    }

    fn disk_stats(&self, span: Span) -> Option<Table> {
        let mut table = span.table(&DISK_STATS);
        for disk in self.disks.values().filter(|disk| disk.requests.count > 0) {
            let mut row = vec![Cell::Disk(disk.name.clone())];
            row.extend(summary(&disk.wanted));
            table.rows.push(row);
        }
        (!self.disks.is_empty()).then_some(table)
    }

    fn tops(&mut self, kernel: &Kernel, span: Span, tables: &mut Vec<Table>) {
        for (place, (_, name, _)) in CATEGORIES.iter().enumerate() {
            let mut table = span.subtable(&TOP, *name);
            let entries: Vec<Entry> = self.categories[place].top.sorted().copied().collect();
            let rows = entries.iter().map(|entry| self.entry(kernel, entry));
            table.rows = rows.collect();
            tables.push(table);
        }
    }

    fn freqs(&self, span: Span, tables: &mut Vec<Table>) {
        let calls = self.categories.iter().zip(CATEGORIES);
        let calls = calls
            .map(|(category, (_, name, _))| (name.to_owned(), &category.all, category.durations));
        let disks = self.disks.values();
        let disks = disks.map(|disk| (format!("disk: {}", disk.name), &disk.all, disk.wanted));
        for (name, all, durations) in calls.chain(disks) {
            let mut table = span.subtable(&FREQ, name);
            all.fill(self.edges_of(&durations), &mut table);
            tables.push(table);
        }
    }

    /// From the least to the greatest request, whatever was asked for.
    fn edges_of(&self, durations: &Summary) -> Edges {
        Edges {
            min: durations.min_ns as f64 / 1000.0,
            max: durations.max_ns as f64 / 1000.0,
            count: self.options.bins.count,
        }
    }

    fn usage(&self, span: Span, tables: &mut Vec<Table>) {
        tables.push(self.per_process(span, "read", Thread::read, |bytes| bytes.read));
        tables.push(self.per_process(span, "written", Thread::written, |bytes| bytes.written));
        let files = self.files();
        tables.push(self.per_file(span, "read", &files, |file| file.read));
        tables.push(self.per_file(span, "written", &files, |file| file.written));
        tables.push(self.per_process_block(span, "read", |thread| thread.block.read));
        tables.push(self.per_process_block(span, "written", |thread| thread.block.written));
        self.per_disk(span, tables);
        tables.push(self.per_interface(span, "received", |interface| interface.received));
        tables.push(self.per_interface(span, "sent", |interface| interface.sent));
    }

    fn limited(&self, mut table: Table, rows: impl Iterator<Item = Vec<Cell>>) -> Table {
        for row in rows {
            if self.options.is_full(table.rows.len()) {
                break;
            }
            table.rows.push(row);
        }
        table
    }

    fn per_process(
        &self,
        span: Span,
        name: &str,
        total: fn(&Thread) -> u64,
        part: fn(&super::threads::Bytes) -> u64,
    ) -> Table {
        let mut threads: Vec<_> = self.threads.iter().collect();
        threads.sort_by_key(|thread| Reverse(total(thread)));
        let row = |thread: &Thread| {
            vec![
                process(thread),
                Cell::Size(total(thread)),
                Cell::Size(part(&thread.disk)),
                Cell::Size(part(&thread.net)),
                Cell::Size(part(&thread.unknown)),
            ]
        };
        let table = span.subtable(&PER_PROCESS, name);
        self.limited(table, threads.into_iter().map(row))
    }

    fn per_process_block(&self, span: Span, name: &str, bytes: fn(&Thread) -> u64) -> Table {
        let mut threads: Vec<_> = self.threads.iter().collect();
        threads.retain(|thread| bytes(thread) > 0);
        threads.sort_by_key(|thread| Reverse(bytes(thread)));
        let row = |thread: &Thread| vec![process(thread), Cell::Size(bytes(thread))];
        let table = span.subtable(&PER_PROCESS_BLOCK, name);
        self.limited(table, threads.into_iter().map(row))
    }

    /// All files by their name.
    fn files(&self) -> Ordered<String, FileSum> {
        let mut files: Ordered<String, FileSum> = Ordered::default();
        for thread in self.threads.iter() {
            for (fd, opened) in &thread.files {
                for file in opened {
                    let generic = GENERIC.iter().any(|name| file.name.starts_with(name));
                    let name = match generic {
                        true => format!("{} ({})", file.name, thread.comm.text()),
                        false => file.name.to_string(),
                    };
                    let sum = files.entry(name).or_default();
                    sum.read = sum.read.saturating_add(file.bytes.read);
                    sum.written = sum.written.saturating_add(file.bytes.written);
                    sum.owners
                        .entry(thread.pid.unwrap_or(thread.tid))
                        .or_insert(*fd);
                }
            }
        }
        files
    }

    fn per_file(
        &self,
        span: Span,
        name: &str,
        files: &Ordered<String, FileSum>,
        bytes: fn(&FileSum) -> u64,
    ) -> Table {
        let mut used: Vec<_> = files.iter().filter(|(_, file)| bytes(file) > 0).collect();
        used.sort_by_key(|(_, file)| Reverse(bytes(file)));
        let owner = |(pid, fd): (&i32, &i64)| {
            let mut leaders = self.threads.iter().filter(|thread| thread.tid == *pid);
            let comm = leaders.next_back().map(|thread| thread.comm.text());
            format!("fd {fd} in {} ({pid}) ", comm.unwrap_or_default())
        };
        let row = |(name, file): (&String, &FileSum)| {
            vec![
                Cell::Path(name.clone()),
                Cell::Size(bytes(file)),
                Cell::Text(file.owners.iter().map(owner).collect()),
            ]
        };
        let table = span.subtable(&PER_FILE, name);
        self.limited(table, used.into_iter().map(row))
    }

    fn per_disk(&self, span: Span, tables: &mut Vec<Table>) {
        let mut disks: Vec<_> = self.disks.values().collect();
        disks.retain(|disk| disk.requests.count > 0);
        let times = disks.clone();
        let name = |disk: &&super::Disk| Cell::Disk(disk.name.clone());
        disks.sort_by_key(|disk| Reverse(disk.sectors));
        let rows = disks
            .iter()
            .map(|disk| vec![name(disk), Cell::Count(disk.sectors)]);
        tables.push(self.limited(span.table(&DISK_SECTORS), rows));
        let mut disks = times.clone();
        disks.sort_by_key(|disk| Reverse(disk.requests.count));
        let rows = disks
            .iter()
            .map(|disk| vec![name(disk), Cell::Count(disk.requests.count)]);
        tables.push(self.limited(span.table(&DISK_REQUESTS), rows));
        let rows = times
            .iter()
            .map(|disk| vec![name(disk), Cell::DurationFloat(disk.requests.mean_ns())]);
        tables.push(self.limited(span.table(&DISK_TIMES), rows));
    }

    fn per_interface(&self, span: Span, name: &str, bytes: fn(&Interface) -> u64) -> Table {
        let mut interfaces: Vec<_> = self.interfaces.iter().collect();
        interfaces.sort_by_key(|(_, interface)| Reverse(bytes(interface)));
        let table = span.subtable(&PER_NETIF, name);
        let rows = interfaces.into_iter().map(|(name, interface)| {
            let name = event::plain_text(name);
            vec![Cell::NetIf(name), Cell::Size(bytes(interface))]
        });
        self.limited(table, rows)
    }
}

fn process(thread: &Thread) -> Cell {
    Cell::Process {
        name: Some(thread.comm.text()),
        pid: thread.pid,
        tid: Some(thread.tid),
    }
}
