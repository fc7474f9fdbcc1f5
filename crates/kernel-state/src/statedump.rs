//! What the tracer says of the state that was there before its first event.

use trace::EventView;

use super::process::{Comm, File, FileKind, Process};
use super::{Change, Kernel, ProcId, Sink};
use crate::bind::Dump;

/// `O_CLOEXEC` of Linux on all machines but alpha, parisc and sparc.
const O_CLOEXEC: i64 = 0o2_000_000;

impl Kernel {
    pub(super) fn state_dump<S: Sink>(&mut self, event: &EventView<'_>, dump: Dump, sink: &mut S) {
        match dump {
            Dump::Tracked { tid } => {
                let now_ns = self.now_ns;
                let task = self.processes.find_or_add(event.i64(tid) as i32);
                let process = self.processes.get_mut(task);
                process.tracked_ns = process.tracked_ns.or(Some(now_ns));
            }
            Dump::Program { .. } => {
                self.programs.dump(dump, event);
            }
            // What only a ledger asks for.
            Dump::Quota { .. } | Dump::Limits(_) => {}
            Dump::Disk { dev, name } => {
                let name = event::plain_text(event.text(name));
                let dev = event.u64(dev);
                self.disks.name(dev, &name);
                sink.change(self, &Change::DiskNamed { dev, name: &name });
            }
            Dump::Process {
                tid,
                pid,
                name,
                prio,
                table,
                ..
            } => {
                let (tid, pid) = (event.i64(tid) as i32, event.i64(pid) as i32);
                if let Some(table) = table {
                    self.tables.entry(event.u64(table)).or_insert(pid);
                }
                let prio = prio.map(|prio| event.i64(prio) as i32);
                self.dumped_process(tid, pid, Comm::new(event.text(name)), prio, sink);
            }
            Dump::File {
                pid,
                table,
                fd,
                filename,
                flags,
            } => {
                let by_table = || self.tables.get(&event.u64(table?)).copied();
                let owner = match pid {
                    Some(pid) => Some(event.i64(pid) as i32),
                    None => by_table(),
                };
                let Some(owner) = owner else { return };
                let file = File {
                    name: event::plain_text(event.text(filename)).into(),
                    kind: FileKind::Unknown,
                    cloexec: event.i64(flags) & O_CLOEXEC != 0,
                };
                self.dumped_file(owner, event.i64(fd), file, sink);
            }
        }
    }

    fn dumped_process<S: Sink>(
        &mut self,
        tid: i32,
        pid: i32,
        comm: Comm,
        prio: Option<i32>,
        sink: &mut S,
    ) {
        let id = self.leader(tid, None, Comm::default());
        let process = self.processes.get_mut(id);
        process.pid = Some(pid);
        process.comm = comm;
        // What the scheduler's events said is newer.
        process.prio = process.prio.or(prio);
        if pid == tid {
            return;
        }
        let leader = self.leader(pid, Some(pid), comm);
        self.hand_over_files(id, leader);
        let change = Change::Grouped {
            process: id,
            leader,
        };
        sink.change(self, &change);
    }

    fn leader(&mut self, tid: i32, pid: Option<i32>, comm: Comm) -> ProcId {
        match self.processes.find(tid) {
            Some(id) => id,
            None => self.processes.add(Process {
                tid,
                pid,
                comm,
                ..Process::default()
            }),
        }
    }

    /// Descriptors that a thread opened before its process was known belong to the process.
    fn hand_over_files(&mut self, from: ProcId, to: ProcId) {
        let files = std::mem::take(&mut self.processes.get_mut(from).files);
        let process = self.processes.get_mut(to);
        for (fd, file) in files {
            let kept = process.files.entry(fd).or_insert_with(|| file.clone());
            if kept.name.is_empty() {
                kept.name = file.name;
            }
        }
    }

    fn dumped_file<S: Sink>(&mut self, owner: i32, fd: i64, file: File, sink: &mut S) {
        let owner = self.leader(owner, Some(owner), Comm::default());
        let files = &mut self.processes.get_mut(owner).files;
        if let Some(open) = files.get_mut(&fd) {
            open.name = file.name;
            sink.change(self, &Change::FileRenamed { owner, fd });
        } else {
            files.insert(fd, file);
            sink.change(self, &Change::FileOpened { owner, fd });
        }
    }
}
