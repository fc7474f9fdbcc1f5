//! What each thread read and wrote, through which of its files.

use std::sync::Arc;

use crate::reports::options::ReportOptions;
use crate::reports::ordered::Ordered;
use kernel_state::bind::Operation;
use kernel_state::{Comm, FileKind, Kernel, ProcId, Process, Request};

/// Bytes of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bytes {
    pub read: u64,
    pub written: u64,
}

impl Bytes {
    fn add(&mut self, bytes: u64, write: bool) {
        let sum = if write {
            &mut self.written
        } else {
            &mut self.read
        };
        *sum = sum.saturating_add(bytes);
    }
}

/// A file from its opening to its closing.
#[derive(Clone, Debug)]
pub(super) struct OpenFile {
    pub name: Arc<str>,
    kind: FileKind,
    open_ns: i64,
    close_ns: Option<i64>,
    pub bytes: Bytes,
}

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub tid: i32,
    pub comm: Comm,
    pub pid: Option<i32>,
    pub disk: Bytes,
    pub net: Bytes,
    pub unknown: Bytes,
    pub block: Bytes,
    /// By descriptor: all files that it led to, one after the other.
    pub files: Ordered<i64, Vec<OpenFile>>,
}

impl Thread {
    fn new(process: &Process) -> Thread {
        Thread {
            tid: process.tid,
            comm: process.comm,
            pid: process.pid,
            disk: Bytes::default(),
            net: Bytes::default(),
            unknown: Bytes::default(),
            block: Bytes::default(),
            files: Ordered::default(),
        }
    }

    /// All bytes that were read by system calls.
    pub fn read(&self) -> u64 {
        self.disk.read + self.net.read + self.unknown.read
    }

    /// All bytes that were written by system calls.
    pub fn written(&self) -> u64 {
        self.disk.written + self.net.written + self.unknown.written
    }

    fn open_file(&mut self, fd: i64) -> Option<&mut OpenFile> {
        let last = self.files.get_mut(&fd)?.last_mut()?;
        last.close_ns.is_none().then_some(last)
    }

    /// The name of the file that `fd` led to at an instant.
    pub fn name_at(&self, fd: i64, at_ns: i64) -> Option<&str> {
        let files = self.files.get(&fd)?;
        let after = files.partition_point(|file| file.open_ns <= at_ns);
        let was_open = |file: &&OpenFile| file.close_ns.is_none_or(|close_ns| at_ns <= close_ns);
        // The first that was open then: at the instant of a close and an open, the closing one.
        let from = after.saturating_sub(2);
        files[from..after]
            .iter()
            .find(was_open)
            .map(|file| &*file.name)
    }
}

/// All threads.
#[derive(Debug)]
pub(super) struct Threads {
    begin_ns: i64,
    all: Ordered<u32, Thread>,
}

impl Threads {
    pub fn new(begin_ns: i64) -> Threads {
        Threads {
            begin_ns,
            all: Ordered::default(),
        }
    }

    pub fn get(&self, id: ProcId) -> Option<&Thread> {
        self.all.get(&id.0)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Thread> {
        self.all.values()
    }

    /// All threads get the names that they have in all reports.
    pub fn name(&mut self, kernel: &Kernel, options: &ReportOptions) {
        options.name_threads(kernel, self.all.iter_mut(), |thread| &mut thread.comm);
    }

    fn thread(&mut self, kernel: &Kernel, id: ProcId) -> &mut Thread {
        let thread = self.all.entry(id.0);
        thread.or_insert_with(|| Thread::new(kernel.process(id)))
    }

    pub fn block(&mut self, kernel: &Kernel, id: ProcId, bytes: u64, write: bool) {
        self.thread(kernel, id).block.add(bytes, write);
    }

    /// Takes in a request; the rank of its thread.
    pub fn request(
        &mut self,
        kernel: &Kernel,
        process: ProcId,
        owner: ProcId,
        request: &Request,
    ) -> u32 {
        self.thread(kernel, process);
        self.thread(kernel, owner);
        if !request.failed {
            let bytes = request.size.and_then(|size| u64::try_from(size).ok());
            let written = request.to.or(request.fd);
            for (direction, fd) in [(Operation::Read, request.fd), (Operation::Write, written)] {
                if let Some(fd) = fd.filter(|_| request.operation.is(direction)) {
                    let write = direction == Operation::Write;
                    self.moved(kernel, (process, owner), fd, bytes.unwrap_or(0), write);
                }
            }
        }
        for id in [process, owner] {
            self.thread(kernel, id).comm = kernel.process(id).comm;
        }
        self.all.get_index_of(&process.0).unwrap_or(0) as u32
    }

    /// Bytes went through a descriptor.
    fn moved(
        &mut self,
        kernel: &Kernel,
        (process, owner): (ProcId, ProcId),
        fd: i64,
        bytes: u64,
        write: bool,
    ) {
        let begin_ns = self.begin_ns;
        let files = kernel.process(owner);
        let thread = self.thread(kernel, owner);
        if thread.open_file(fd).is_none()
            && let Some(file) = files.files.get(&fd)
        {
            // It was open when the window began.
            thread.files.entry(fd).or_default().push(OpenFile {
                name: file.name.clone(),
                kind: file.kind,
                open_ns: begin_ns,
                close_ns: None,
                bytes: Bytes::default(),
            });
        }
        let mut kind = FileKind::Unknown;
        if let Some(file) = thread.open_file(fd) {
            file.bytes.add(bytes, write);
            kind = file.kind;
        }
        let thread = self.thread(kernel, process);
        let sum = match kind {
            FileKind::Disk => &mut thread.disk,
            FileKind::Net | FileKind::MaybeNet => &mut thread.net,
            FileKind::Unknown => &mut thread.unknown,
        };
        sum.add(bytes, write);
    }

    pub fn opened(&mut self, kernel: &Kernel, owner: ProcId, fd: i64) {
        let process = kernel.process(owner);
        let Some(file) = process.files.get(&fd) else {
            return;
        };
        let file = OpenFile {
            name: file.name.clone(),
            kind: file.kind,
            open_ns: kernel.now_ns(),
            close_ns: None,
            bytes: Bytes::default(),
        };
        let files = &mut self.thread(kernel, owner).files;
        files.entry(fd).or_default().push(file);
    }

    pub fn closed(&mut self, kernel: &Kernel, owner: ProcId, fd: i64) {
        let thread = self.all.get_mut(&owner.0);
        if let Some(file) = thread.and_then(|thread| thread.open_file(fd)) {
            file.close_ns = Some(kernel.now_ns());
        }
    }

    pub fn renamed(&mut self, kernel: &Kernel, owner: ProcId, fd: i64) {
        let process = kernel.process(owner);
        let Some(file) = process.files.get(&fd) else {
            return;
        };
        match self.thread(kernel, owner).open_file(fd) {
            Some(open) => open.name = file.name.clone(),
            None => self.opened(kernel, owner, fd),
        }
    }

    /// The files that a thread seemed to have are its process's.
    pub fn grouped(&mut self, kernel: &Kernel, process: ProcId, leader: ProcId) {
        let thread = self.thread(kernel, process);
        thread.pid = Some(kernel.process(leader).tid);
        let files = std::mem::take(&mut thread.files);
        let leader = self.thread(kernel, leader);
        for (fd, opened) in files {
            leader.files.entry(fd).or_insert(opened);
        }
    }
}
