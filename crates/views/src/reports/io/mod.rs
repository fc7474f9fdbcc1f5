//! Files, disks and network: who read and wrote, how much and how long.

mod kind;
mod tables;
mod threads;

pub(super) use kind::KIND;

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use super::durations::Durations;
use super::log::{Bytes, Record, or_none, some};
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::question::Question;
use super::sorted_log::SortedLog;
use super::spill::Spill;
use super::statistics::Summary;
use super::table::{Span, Table};
use super::top::Top;
use kernel_state::bind::Operation;
use kernel_state::{Block, Change, Kernel, ProcId, Request, Topic, Topics};

use threads::Threads;

/// The kernel's sector, whatever the disk has.
const SECTOR_BYTES: u64 = 512;

/// The categories of requests that have statistics, in order.
const CATEGORIES: [(Operation, &str, &str); 4] = [
    (Operation::Open, "open", "Open"),
    (Operation::Read, "read", "Read"),
    (Operation::Write, "write", "Write"),
    (Operation::Sync, "sync", "Sync"),
];

/// A request as logs and tops have it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    begin_ns: i64,
    end_ns: i64,
    call: u32,
    process: ProcId,
    fd: Option<i64>,
    /// To which descriptor a transfer writes.
    to: Option<i64>,
    size: Option<i64>,
}

/// A request of the log.
#[derive(Clone, Copy, Debug)]
struct Logged {
    /// Of its thread.
    rank: u64,
    entry: Entry,
}

/// By begin; ties go by thread, whose requests never tie.
impl Ord for Logged {
    fn cmp(&self, other: &Logged) -> Ordering {
        let key = |logged: &Logged| (logged.entry.begin_ns, logged.rank);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Logged {
    fn partial_cmp(&self, other: &Logged) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Logged {}

impl PartialEq for Logged {
    fn eq(&self, other: &Logged) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Record for Logged {
    fn write(&self, to: &mut Vec<u8>) {
        let entry = &self.entry;
        [self.rank as i64, entry.begin_ns, entry.end_ns].write(to);
        [entry.call.into(), entry.process.0.into()].write(to);
        [or_none(entry.fd), or_none(entry.to), or_none(entry.size)].write(to);
    }

    fn read(from: &mut Bytes<'_>) -> Logged {
        let [rank, begin_ns, end_ns] = Record::read(from);
        let [call, process, fd, to, size] = <[i64; 5]>::read(from);
        Logged {
            rank: rank as u64,
            entry: Entry {
                begin_ns,
                end_ns,
                call: call as u32,
                process: ProcId(process as u32),
                fd: some(fd),
                to: some(to),
                size: some(size),
            },
        }
    }
}

/// The requests of one category.
#[derive(Debug)]
struct Category {
    durations: Summary,
    /// For the distribution.
    all: Durations,
    top: Top<Entry>,
}

/// A disk.
#[derive(Debug)]
struct Disk {
    name: String,
    sectors: u64,
    requests: Summary,
    /// Those that pass the filters.
    wanted: Summary,
    /// For the distribution.
    all: Durations,
}

impl Disk {
    fn new(dev: u64, name: Option<&str>, spill: &Spill) -> Disk {
        // `include/linux/kdev_t.h`: the low 20 bits are the minor number.
        let numbers = || format!("({},{})", dev >> 20, dev & 0xf_ffff);
        Disk {
            name: name.map_or_else(numbers, str::to_owned),
            sectors: 0,
            requests: Summary::default(),
            wanted: Summary::default(),
            all: Durations::new(spill),
        }
    }
}

/// The bytes that went over an interface.
#[derive(Debug, Default)]
struct Interface {
    received: u64,
    sent: u64,
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct Io {
    options: Rc<ReportOptions>,
    views: Views,
    threads: Threads,
    categories: [Category; CATEGORIES.len()],
    log: SortedLog<Logged>,
    disks: Ordered<u64, Disk>,
    interfaces: Ordered<Box<[u8]>, Interface>,
}

impl Io {
    pub fn new(options: Rc<ReportOptions>, views: Views, begin_ns: i64) -> Io {
        // One more than was asked for, as lttng-analyses.
        let keep = match options.limit {
            0 => 0,
            limit => limit + 1,
        };
        Io {
            views,
            threads: Threads::new(begin_ns),
            categories: std::array::from_fn(|_| Category {
                durations: Summary::default(),
                all: Durations::new(&options.spill),
                top: Top::new(keep),
            }),
            log: SortedLog::new(&options.spill),
            disks: Ordered::default(),
            interfaces: Ordered::default(),
            options,
        }
    }

    fn request(&mut self, process: ProcId, request: &Request, thread: u32) {
        let duration_ns = request.end_ns - request.begin_ns;
        let wanted =
            self.options.wants_duration(duration_ns) && self.options.wants_size(request.size);
        if !wanted {
            return;
        }
        let entry = Entry {
            begin_ns: request.begin_ns,
            end_ns: request.end_ns,
            call: request.call,
            process,
            fd: request.fd,
            to: request.to,
            size: request.size,
        };
        // Threads are numbered in the order of their appearance.
        let rank = u64::from(thread);
        if self.views.log {
            self.log.push(Logged { rank, entry });
        }
        for (category, (operation, ..)) in self.categories.iter_mut().zip(CATEGORIES) {
            if !request.operation.is(operation) {
                continue;
            }
            category.durations.add(duration_ns);
            if self.views.freq {
                category.all.add(duration_ns);
            }
            if self.views.top {
                category.top.push(duration_ns, rank, entry);
            }
        }
    }

    fn block(&mut self, kernel: &Kernel, dev: u64, name: Option<&Arc<str>>, block: &Block) {
        let duration_ns = block.end_ns - block.begin_ns;
        let bytes = block.sectors.saturating_mul(SECTOR_BYTES);
        let wanted = self.options.wants_duration(duration_ns)
            && self.options.wants_size(i64::try_from(bytes).ok());
        let disk = self.disks.entry(dev);
        let disk =
            disk.or_insert_with(|| Disk::new(dev, name.map(|name| &**name), &self.options.spill));
        disk.sectors = disk.sectors.saturating_add(block.sectors);
        disk.requests.add(duration_ns);
        if wanted {
            disk.wanted.add(duration_ns);
            if self.views.freq {
                disk.all.add(duration_ns);
            }
        }
        if let Some(process) = kernel.find(block.tid) {
            self.threads.block(kernel, process, bytes, block.write);
        }
    }

    fn interface(&mut self, name: &[u8]) -> &mut Interface {
        if !self.interfaces.contains_key(name) {
            self.interfaces.insert(name.into(), Interface::default());
        }
        &mut self.interfaces[name]
    }
}

impl Question for Io {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Requests])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        match change {
            Change::RequestExit {
                process,
                owner,
                request,
            } if self.options.wants_process(kernel, kernel.process(*process)) => {
                let thread = self.threads.request(kernel, *process, *owner, request);
                self.request(*process, request, thread);
            }
            Change::FileOpened { owner, fd } => self.threads.opened(kernel, *owner, *fd),
            Change::FileClosed { owner, fd } => self.threads.closed(kernel, *owner, *fd),
            Change::FileRenamed { owner, fd } => self.threads.renamed(kernel, *owner, *fd),
            Change::Grouped { process, leader } => self.threads.grouped(kernel, *process, *leader),
            Change::BlockDone {
                dev, disk, block, ..
            } => self.block(kernel, *dev, *disk, block),
            Change::DiskNamed { dev, name } => {
                let disk = self.disks.entry(*dev);
                let disk = disk.or_insert_with(|| Disk::new(*dev, None, &self.options.spill));
                disk.name = (*name).to_owned();
            }
            Change::Sent { interface, bytes } => self.interface(interface).sent += bytes,
            Change::Received { interface, bytes } => self.interface(interface).received += bytes,
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        self.threads.name(kernel, &self.options);
        self.tables(kernel, span)
    }

    fn more(&mut self, kernel: &Kernel, span: Span) -> Option<Vec<Table>> {
        (!self.log.is_told()).then(|| vec![self.log(kernel, span)])
    }
}
