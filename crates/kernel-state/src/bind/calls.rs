//! Events of system calls, in all generations of names.

use std::collections::HashMap;

use event::{EventClass, FieldId, FieldType, Scope};
use trace::EventView;

/// A system call begins or returns.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Entry {
        /// Index into [`CallNames`].
        call: u32,
        file_call: Option<FileCall>,
        connect: Option<ConnectFields>,
        futex: Option<FutexFields>,
        /// The thread group, from the stream's context.
        pid: Option<FieldId>,
    },
    Exit {
        /// Index into [`CallNames`], where the class is that of one call.
        call: Option<u32>,
        /// With whether it is signed.
        ret: Option<(FieldId, bool)>,
    },
}

/// What a request on a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Open,
    Read,
    Write,
    /// It reads one file and writes another one, without the program's memory between them.
    Transfer,
    Close,
    Sync,
}

impl Operation {
    /// Whether it is this one too: a transfer reads and writes.
    pub fn is(self, other: Operation) -> bool {
        let both = [Operation::Read, Operation::Write];
        self == other || self == Operation::Transfer && both.contains(&other)
    }
}

/// How a system call on files is read, by its name.
#[derive(Clone, Copy, Debug)]
pub enum FileCall {
    OpenPath {
        filename: FieldId,
        /// Without them nobody knows whether the next program has the file.
        flags: Option<FieldId>,
    },
    Socket,
    Dup {
        old: FieldId,
        new: Option<FieldId>,
        flags: Option<FieldId>,
    },
    DupFcntl {
        fd: FieldId,
        cmd: FieldId,
    },
    OnFile(Operation, FieldId),
    Transfer {
        from: FieldId,
        to: FieldId,
    },
    SyncAll,
    /// It is on files, but asks for nothing that is followed.
    Other,
}

impl FileCall {
    /// How events of this class, which enter the call `name`, are read.
    pub fn bind(name: &str, class: &EventClass) -> Option<FileCall> {
        let field = |field: &str| class.field(field);
        let open_path = |filename: Option<FieldId>| {
            filename.map(|filename| FileCall::OpenPath {
                filename,
                flags: None,
            })
        };
        let on_file = |operation| field("fd").map(|fd| FileCall::OnFile(operation, fd));
        let transfer = |from, to| {
            let (from, to) = field(from).zip(field(to))?;
            Some(FileCall::Transfer { from, to })
        };
        let bound = match name {
            "open" | "openat" => match (field("filename"), field("flags")) {
                (Some(filename), flags @ Some(_)) => Some(FileCall::OpenPath { filename, flags }),
                _ => None,
            },
            // Its flags are in a structure.
            "openat2" => open_path(field("filename")),
            "creat" => open_path(field("pathname")),
            "socket" => Some(FileCall::Socket),
            "dup" => field("fildes").map(|old| FileCall::Dup {
                old,
                new: None,
                flags: None,
            }),
            "dup2" | "dup3" => field("oldfd").map(|old| FileCall::Dup {
                old,
                new: field("newfd"),
                flags: field("flags").filter(|_| name == "dup3"),
            }),
            "fcntl" => match (field("fd"), field("cmd")) {
                (Some(fd), Some(cmd)) => Some(FileCall::DupFcntl { fd, cmd }),
                _ => None,
            },
            "close" => on_file(Operation::Close),
            "read" | "recvmsg" | "recvfrom" | "readv" | "pread" | "pread64" | "preadv"
            | "preadv2" => on_file(Operation::Read),
            "write" | "sendmsg" | "sendto" | "writev" | "pwrite" | "pwrite64" | "pwritev"
            | "pwritev2" => on_file(Operation::Write),
            "fsync" | "fdatasync" | "sync_file_range" => on_file(Operation::Sync),
            "sync" => Some(FileCall::SyncAll),
            "splice" | "copy_file_range" => transfer("fd_in", "fd_out"),
            "tee" => transfer("fdin", "fdout"),
            "sendfile" | "sendfile64" => transfer("in_fd", "out_fd"),
            _ => return None,
        };
        Some(bound.unwrap_or(FileCall::Other))
    }
}

/// The fields of `connect` that name the peer.
#[derive(Clone, Copy, Debug)]
pub struct ConnectFields {
    pub fd: FieldId,
    pub family: FieldId,
    pub address: FieldId,
    pub port: FieldId,
}

/// The calls that begin with what they do, and those that only wait.
const FUTEX: [&str; 2] = ["futex", "futex_time32"];
const FUTEX_WAIT: &str = "futex_wait";

/// The fields of a call on one futex.
#[derive(Clone, Copy, Debug)]
pub struct FutexFields {
    address: FieldId,
    /// None: it waits.
    operation: Option<FieldId>,
    /// The value that its word has while it waits, and the address of the time-out.
    expects: Option<(FieldId, FieldId)>,
}

/// What a call on a futex does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FutexCommand {
    /// It takes a lock with priority inheritance, and may wait for it.
    Lock,
    /// It may wait, without a time-out, for its word to lose this value.
    WaitAt(u32),
    /// It may wait.
    Wait,
    /// It wakes one who waits.
    Wake,
    /// It wakes several who wait.
    WakeAll,
    /// It does neither.
    Other,
}

impl FutexCommand {
    /// Whether its caller may sleep in it.
    pub fn may_wait(self) -> bool {
        !matches!(
            self,
            FutexCommand::Wake | FutexCommand::WakeAll | FutexCommand::Other
        )
    }
}

impl FutexFields {
    /// Whether it is of the call by which programs take their locks.
    pub(super) fn is_of_locks(&self) -> bool {
        self.operation.is_some()
    }

    /// The command and the futex's address.
    pub fn read(&self, event: &EventView<'_>) -> (FutexCommand, u64) {
        /// All but `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`.
        const FUTEX_CMD_MASK: i64 = 0x7f;
        let timeless = |(value, timeout): (FieldId, FieldId)| {
            (event.u64(timeout) == 0).then(|| event.u64(value) as u32)
        };
        /// `FUTEX_WAIT`.
        const WAIT: i64 = 0;
        let operation = self.operation.map_or(WAIT, |field| event.i64(field));
        let command = match operation & FUTEX_CMD_MASK {
            // And `FUTEX_WAIT_BITSET`.
            WAIT | 9 => match self.expects.and_then(timeless) {
                Some(value) => FutexCommand::WaitAt(value),
                None => FutexCommand::Wait,
            },
            // `FUTEX_LOCK_PI`, `_LOCK_PI2`.
            6 | 13 => FutexCommand::Lock,
            // `FUTEX_WAIT_REQUEUE_PI`.
            11 => FutexCommand::Wait,
            // `FUTEX_WAKE`, `_WAKE_BITSET`.
            1 | 10 if self.wakes(event) > 1 => FutexCommand::WakeAll,
            1 | 10 => FutexCommand::Wake,
            _ => FutexCommand::Other,
        };
        (command, event.u64(self.address))
    }

    /// How many a call that wakes does at most.
    fn wakes(&self, event: &EventView<'_>) -> i32 {
        self.expects.map_or(0, |(count, _)| event.u64(count) as i32)
    }
}

/// Whether events of this class tell that `futex` returns.
pub(super) fn is_futex_return(class: &EventClass) -> bool {
    let name = of_any_word_size(class.kernel_name());
    // The oldest name is that of all calls.
    name == "exit_syscall" || name == "syscall_exit_futex" || name == "sys_exit_futex"
}

/// Names of system calls, each once.
#[derive(Debug, Default)]
pub struct CallNames {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
}

impl CallNames {
    /// The name of a system call.
    pub fn get(&self, call: u32) -> &str {
        self.names.get(call as usize).map_or("", String::as_str)
    }

    fn index(&mut self, name: &str) -> u32 {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), index);
        index
    }
}

pub(super) fn bind(class: &EventClass, calls: &mut CallNames) -> Option<Call> {
    let name = class.kernel_name();
    if class.is_of_perf() {
        // Without the kernel's table of numbers, what `raw_syscalls` has names no call.
        return match name.strip_prefix("sys_enter_") {
            Some(call) => Some(entry(call, class, calls)),
            None => {
                let call = name.strip_prefix("sys_exit_")?;
                Some(leave(Some(call), class, calls))
            }
        };
    }
    if is_raw(class, name) {
        return None;
    }
    let name = of_any_word_size(name);
    if let Some(call) = name
        .strip_prefix("syscall_entry_")
        .or_else(|| name.strip_prefix("sys_"))
    {
        return Some(entry(call, class, calls));
    }
    let call = name.strip_prefix("syscall_exit_");
    if call.is_none() && !name.starts_with("exit_syscall") {
        return None;
    }
    Some(leave(call, class, calls))
}

/// The name of a call's event without what says that a program of 32 bits made it.
fn of_any_word_size(name: &str) -> &str {
    let rest = name.strip_prefix("compat_");
    rest.filter(|rest| rest.starts_with("syscall_"))
        .unwrap_or(name)
}

/// An event of `raw_syscalls`: the number of a call, and no name. LTTng 2.0 says `sys_exit` as the
/// call `exit` begins.
fn is_raw(class: &EventClass, name: &str) -> bool {
    match name {
        "sys_enter" => true,
        "sys_exit" => class.field("error_code").is_none(),
        _ => false,
    }
}

fn leave(call: Option<&str>, class: &EventClass, calls: &mut CallNames) -> Call {
    let signed = |ret: FieldId| match &class.fields[usize::from(ret.0)].ty {
        FieldType::Integer(integer) => (ret, integer.signed),
        _ => (ret, true),
    };
    Call::Exit {
        call: call.map(|call| calls.index(call)),
        ret: class.field("ret").map(signed),
    }
}

fn entry(call: &str, class: &EventClass, calls: &mut CallNames) -> Call {
    let field = |field: &str| class.field(field);
    let connect = || {
        Some(ConnectFields {
            fd: field("fd")?,
            family: field("family")?,
            address: field("v4addr")?,
            port: field("dport")?,
        })
    };
    let futex = || {
        let is_wait = call == FUTEX_WAIT;
        let operation = field("op").filter(|_| !is_wait);
        if operation.is_none() && !is_wait {
            return None;
        }
        Some(FutexFields {
            address: field("uaddr")?,
            operation,
            // No library takes its mutexes by the newer call.
            expects: field("val").zip(field("utime")).filter(|_| !is_wait),
        })
    };
    let is_futex = call == FUTEX_WAIT || FUTEX.contains(&call);
    let in_payload = class.field_in(Scope::Payload, "pid").is_some();
    Call::Entry {
        call: calls.index(call),
        file_call: FileCall::bind(call, class),
        connect: (call == "connect").then(connect).flatten(),
        futex: is_futex.then(futex).flatten(),
        pid: class
            .field_in(Scope::StreamContext, "pid")
            .filter(|_| !in_payload),
    }
}
