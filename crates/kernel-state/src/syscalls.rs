//! System calls from entry to exit, and the requests on files that some of them are.

use std::sync::Arc;

use event::FieldId;
use trace::EventView;

use crate::bind::{self, ConnectFields, FileCall, FutexCommand, Operation};

use super::process::{File, FileKind, ProcId};
use super::{Change, Kernel, Sink, Topic};

/// `O_CLOEXEC` of Linux on all machines but alpha, parisc and sparc.
const O_CLOEXEC: i64 = 0o2_000_000;
/// `F_DUPFD` and `F_DUPFD_CLOEXEC` of `fcntl`.
const F_DUPFD: [i64; 2] = [0, 1030];
/// Calls on files that lttng-analyses leaves out.
const NEWER: [&str; 9] = [
    "copy_file_range",
    "creat",
    "openat2",
    "preadv2",
    "pwritev2",
    "sendfile",
    "sendfile64",
    "splice",
    "tee",
];
/// Calls that make threads, which return from them with 0.
const MAKERS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];
/// `AF_INET`.
const AF_INET: i64 = 2;

/// A system call that a thread is in.
#[derive(Clone, Debug)]
pub struct Call {
    /// Index into [`Kernel::call_name`].
    pub call: u32,
    pub begin_ns: i64,
    pub request: Option<Request>,
    /// The address of the lock for which it may wait, where it is a call on a futex.
    pub lock: Option<u64>,
    /// It may wait in a call on a futex, and the trace tells when it returns.
    pub in_futex: bool,
    /// It may have returned, or it is another thread's: events were lost where this one may have
    /// been, or it had left its CPU unseen.
    pub doubtful: bool,
}

/// A request on a file.
#[derive(Clone, Debug)]
pub struct Request {
    /// What was asked for.
    pub operation: Operation,
    /// Index into [`crate::Kernel::call_name`].
    pub call: u32,
    /// When it began.
    pub begin_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// On which descriptor; an opening one has it when it succeeded.
    pub fd: Option<i64>,
    /// To which one a transfer writes what it reads from `fd`.
    pub to: Option<i64>,
    /// The bytes that went over, once they did.
    pub size: Option<i64>,
    /// It failed.
    pub failed: bool,
    /// What an opening request opens.
    pub file: Option<File>,
}

impl Call {
    /// One that begins.
    pub(super) fn begins(call: u32, begin_ns: i64) -> Call {
        Call {
            call,
            begin_ns,
            request: None,
            lock: None,
            in_futex: false,
            doubtful: false,
        }
    }
}

impl Kernel {
    pub(super) fn call<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        call: bind::Call,
        sink: &mut S,
    ) {
        match call {
            bind::Call::Entry {
                call,
                file_call,
                connect,
                futex,
                pid,
            } => {
                if let Some(pid) = pid {
                    self.group_of_context(cpu, event.i64(pid) as i32);
                }
                if let Some(fields) = connect {
                    self.connect(event, cpu, fields, sink);
                }
                self.call_entry(event, cpu, call, file_call, sink);
                if let Some(process) = self.current(cpu) {
                    let futex = futex.map(|fields| fields.read(event));
                    if futex.is_some_and(|futex| self.enters_futex(process, futex, self.now_ns)) {
                        let surely = true;
                        sink.change(self, &Change::NoLock { process, surely });
                    }
                    sink.change(self, &Change::CallEntry { process, futex });
                }
            }
            bind::Call::Exit { call, ret } => {
                let value = |(ret, signed)| match (event.i64(ret), signed) {
                    (ret, false) if ret < 0 => i64::MAX,
                    (ret, _) => ret,
                };
                self.call_exit(cpu, call, ret.map(value), sink);
            }
        }
    }

    /// A system call begins on a CPU.
    fn call_entry<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        call: u32,
        file_call: Option<FileCall>,
        sink: &mut S,
    ) {
        let Some(id) = self.current(cpu) else { return };
        let begin_ns = self.now_ns;
        let process = self.processes.get_mut(id);
        process.has_called = true;
        process.call = Some(Call::begins(call, begin_ns));
        // Where nobody is told of requests, nobody asks for files.
        let file_call = file_call.filter(|_| S::TOPICS.has(Topic::Requests));
        let Some(file_call) = file_call else { return };
        let request = self.request(event, id, call, file_call, sink);
        if let Some(open) = &mut self.processes.get_mut(id).call {
            open.request = request;
        }
    }

    /// Whoever has a CPU is in a page fault that a program serves, or no more.
    pub fn note_fault(&mut self, cpu: u32, begins: bool) {
        let now_ns = self.now_ns;
        if let Some(id) = self.current(cpu) {
            self.processes.get_mut(id).fault_ns = begins.then_some(now_ns);
        }
    }

    /// A task may wait for a lock of its program's; whether it shows that its last such wait was
    /// for its next work.
    pub(super) fn enters_futex(
        &mut self,
        id: ProcId,
        (command, address): (FutexCommand, u64),
        now_ns: i64,
    ) -> bool {
        let word = (self.processes.owner(id), address);
        let used = self.locks.enters(id, word, command, now_ns);
        let in_futex = self.locks.are_known() && command.may_wait();
        if let Some(call) = &mut self.processes.get_mut(id).call {
            call.lock = used.is_lock.then_some(address);
            call.in_futex = in_futex;
        }
        used.is_again
    }

    fn request<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        id: ProcId,
        call: u32,
        file_call: FileCall,
        sink: &mut S,
    ) -> Option<Request> {
        let as_peer = self.follows.stale_names;
        if as_peer && NEWER.contains(&self.call_name(call)) {
            return None;
        }
        let cloexec = |flags: FieldId| event.i64(flags) & O_CLOEXEC != 0;
        let (operation, fd, file) = match file_call {
            FileCall::Other => return None,
            FileCall::SyncAll => (Operation::Sync, None, None),
            FileCall::OnFile(operation, fd) => (operation, Some(event.i64(fd)), None),
            FileCall::Transfer { from, .. } => (Operation::Transfer, Some(event.i64(from)), None),
            FileCall::OpenPath { filename, flags } => {
                let file = File {
                    name: text(event.text(filename)),
                    kind: FileKind::Disk,
                    cloexec: flags.is_some_and(cloexec),
                };
                (Operation::Open, None, Some(file))
            }
            FileCall::Socket => {
                let file = File {
                    name: "socket".into(),
                    kind: FileKind::Net,
                    cloexec: false,
                };
                (Operation::Open, None, Some(file))
            }
            FileCall::Dup { old, new, flags } => {
                let owner = self.processes.owner(id);
                if let Some(new) = new.map(|new| event.i64(new)) {
                    self.close_file(owner, new, sink);
                }
                let mut file = self.copy_of(owner, event.i64(old));
                file.cloexec = flags.is_some_and(cloexec);
                (Operation::Open, None, Some(file))
            }
            FileCall::DupFcntl { fd, cmd } => {
                let asked = event.i64(cmd);
                let place = F_DUPFD.iter().position(|cmd| *cmd == asked);
                let place = place.filter(|place| !as_peer || *place == 0)?;
                let owner = self.processes.owner(id);
                let mut file = self.copy_of(owner, event.i64(fd));
                file.cloexec = place == 1;
                (Operation::Open, None, Some(file))
            }
        };
        let to = match file_call {
            FileCall::Transfer { to, .. } => Some(event.i64(to)),
            _ => None,
        };
        Some(Request {
            operation,
            call,
            begin_ns: self.now_ns,
            end_ns: self.now_ns,
            fd,
            to,
            size: None,
            failed: false,
            file,
        })
    }

    fn copy_of(&self, owner: ProcId, fd: i64) -> File {
        let old = self.processes.get(owner).files.get(&fd);
        let (name, kind) = match old {
            Some(old) => (old.name.clone(), old.kind),
            None => (self.unknown_name(), FileKind::Unknown),
        };
        File {
            name,
            kind,
            cloexec: false,
        }
    }

    /// Nobody knows whether a thread is still in its call, or ever was.
    pub(super) fn doubt_call(&mut self, id: ProcId) {
        if let Some(call) = &mut self.processes.get_mut(id).call {
            call.doubtful = true;
        }
    }

    /// A system call ends on a CPU.
    fn call_exit<S: Sink>(&mut self, cpu: u32, call: Option<u32>, ret: Option<i64>, sink: &mut S) {
        let Some(id) = self.current(cpu) else {
            return self.call_begun_before(None, call, ret, sink);
        };
        let Some(call) = self.processes.get_mut(id).call.take() else {
            return self.call_begun_before(Some(id), call, ret, sink);
        };
        if call.in_futex {
            self.locks.returns(id, self.now_ns);
        }
        if !self.is_known_since(call.begin_ns) {
            // Its own exit may be lost, and this that of another call.
            return;
        }
        let change = Change::CallExit {
            process: id,
            cpu,
            call: call.call,
            begin_ns: call.begin_ns,
            ret,
        };
        sink.change(self, &change);
        if let (Some(mut request), Some(ret)) = (call.request, ret) {
            request.end_ns = self.now_ns;
            request.failed = ret < 0;
            self.request_exit(id, request, ret, sink);
        }
    }

    /// A system call returns that no event began: the first one of its thread had begun before the
    /// recording did.
    #[cold]
    fn call_begun_before<S: Sink>(
        &mut self,
        process: Option<ProcId>,
        call: Option<u32>,
        ret: Option<i64>,
        sink: &mut S,
    ) {
        let called = process.map(|id| &mut self.processes.get_mut(id).has_called);
        let has_called = called.is_some_and(|called| std::mem::replace(called, true));
        // A new thread returns from the call that made it.
        let makes = call.is_some_and(|call| MAKERS.contains(&self.call_name(call)));
        if has_called || makes && ret == Some(0) {
            return;
        }
        let change = Change::CallBegunBefore {
            process,
            call,
            since_ns: self.all_begun_ns(),
        };
        sink.change(self, &change);
    }

    fn request_exit<S: Sink>(&mut self, id: ProcId, mut request: Request, ret: i64, sink: &mut S) {
        let owner = self.processes.owner(id);
        if ret >= 0 {
            match request.operation {
                Operation::Open => request.fd = Some(ret),
                Operation::Read | Operation::Write | Operation::Transfer => {
                    request.size = Some(ret);
                }
                Operation::Close | Operation::Sync => {}
            }
            if request.operation == Operation::Open
                && !self.follows.stale_names
                && let Some(fd) = request.fd
            {
                // Who had it before closed it, also where nobody saw that: `close_range`, losses.
                self.close_file(owner, fd, sink);
            }
            let file = request.file.take();
            for (fd, file) in [(request.fd, file), (request.to, None)] {
                self.open_file(owner, fd, file, sink);
            }
        }
        let change = Change::RequestExit {
            process: id,
            owner,
            request: &request,
        };
        sink.change(self, &change);
        if let (Operation::Close, Some(fd), 0) = (request.operation, request.fd, ret) {
            self.close_file(owner, fd, sink);
        }
    }

    /// A descriptor exists, also when nobody saw it opened.
    fn open_file<S: Sink>(
        &mut self,
        owner: ProcId,
        fd: Option<i64>,
        file: Option<File>,
        sink: &mut S,
    ) {
        let Some(fd) = fd else { return };
        if self.processes.get(owner).files.contains_key(&fd) {
            return;
        }
        let file = file.unwrap_or_else(|| File {
            name: self.unknown_name(),
            kind: FileKind::Unknown,
            cloexec: false,
        });
        self.processes.get_mut(owner).files.insert(fd, file);
        sink.change(self, &Change::FileOpened { owner, fd });
    }

    pub(super) fn close_file<S: Sink>(&mut self, owner: ProcId, fd: i64, sink: &mut S) {
        if !self.processes.get(owner).files.contains_key(&fd) {
            return;
        }
        sink.change(self, &Change::FileClosed { owner, fd });
        self.processes.get_mut(owner).files.shift_remove(&fd);
    }

    /// A socket is connected: its descriptor gets the peer's address.
    fn connect<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        fields: ConnectFields,
        sink: &mut S,
    ) {
        let Some(id) = self.current(cpu) else { return };
        if event.i64(fields.family) != AF_INET {
            return;
        }
        let owner = self.processes.owner(id);
        let fd = event.i64(fields.fd);
        let Some(address) = ipv4(&event.value(fields.address)) else {
            return;
        };
        if let Some(file) = self.processes.get_mut(owner).files.get_mut(&fd) {
            file.name = format!("{address}:{}", event.i64(fields.port)).into();
            sink.change(self, &Change::FileRenamed { owner, fd });
        }
    }
}

fn text(bytes: &[u8]) -> Arc<str> {
    event::plain_text(bytes).into()
}

/// An address as LTTng writes it: four bytes, or before 2.6 one integer.
fn ipv4(value: &event::Value<'_>) -> Option<std::net::Ipv4Addr> {
    if let Some(bytes) = value.as_array() {
        let byte = |place: usize| bytes.get(place)?.as_i64()?.try_into().ok();
        let bytes: [u8; 4] = [byte(0)?, byte(1)?, byte(2)?, byte(3)?];
        return Some(bytes.into());
    }
    let whole: u32 = value.as_i64()?.try_into().ok()?;
    Some(whole.into())
}
