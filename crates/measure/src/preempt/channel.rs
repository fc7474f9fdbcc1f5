//! The ways by which one thread can wake another one with a message, also of another process.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use event::{Error, Result};
use rustix::thread::futex::Flags;

use super::mechanism::{Between, Mechanism};
use super::meeting::Meeting;
use super::semaphore::{Posix, SystemV};
use super::way::{Address, Channel};

/// Makes one.
///
/// # Errors
/// When this kernel has it not, or refuses it to us.
pub(super) fn open(
    mechanism: Mechanism,
    between: Between,
    meeting: &Arc<Meeting>,
) -> Result<Box<dyn Channel>> {
    let failed = |cause| {
        let what = format!("cannot use a {}", mechanism.name());
        Error::io(what, cause).fix("see ulimit -n, ulimit -q and the kernel's configuration")
    };
    Ok(match mechanism {
        Mechanism::Futex => Box::new(Futex {
            meeting: meeting.clone(),
            flags: match between {
                Between::Threads => Flags::PRIVATE,
                Between::Processes => Flags::empty(),
            },
            seen: AtomicU32::new(0),
        }),
        Mechanism::PosixSemaphore => Box::new(Posix::new(meeting, between).map_err(failed)?),
        Mechanism::SystemVSemaphore => Box::new(SystemV::new().map_err(failed)?),
        Mechanism::Pipe => {
            let (reader, writer) = rustix::pipe::pipe().map_err(|error| failed(error.into()))?;
            Box::new(Bytes::new(reader, writer))
        }
        Mechanism::Eventfd => {
            use rustix::event::{EventfdFlags, eventfd};
            let fd = eventfd(0, EventfdFlags::SEMAPHORE).map_err(|error| failed(error.into()))?;
            let other = fd.try_clone().map_err(failed)?;
            Box::new(Bytes::new(fd, other))
        }
        Mechanism::Socketpair => {
            let (reader, writer) = UnixDatagram::pair().map_err(failed)?;
            Box::new(Socket { reader, writer })
        }
        Mechanism::MessageQueue => Box::new(Queue::open().map_err(failed)?),
        Mechanism::Signal => Box::new(Signal::default()),
    })
}

struct Futex {
    meeting: Arc<Meeting>,
    flags: Flags,
    /// Only the receiver's.
    seen: AtomicU32,
}

impl Channel for Futex {
    fn send(&self) {
        self.meeting.gate.open_for(self.flags);
    }

    fn receive(&self) {
        let seen = self.seen.load(Ordering::Relaxed);
        let opened = self.meeting.gate.wait_with(seen, self.flags);
        self.seen.store(opened, Ordering::Relaxed);
    }
}

/// A message is eight bytes: what an eventfd wants, and a pipe takes.
struct Bytes {
    reader: File,
    writer: File,
}

impl Bytes {
    fn new(reader: OwnedFd, writer: OwnedFd) -> Bytes {
        Bytes {
            reader: reader.into(),
            writer: writer.into(),
        }
    }
}

impl Channel for Bytes {
    fn send(&self) {
        (&self.writer).write_all(&1u64.to_ne_bytes()).ok();
    }

    fn receive(&self) {
        (&self.reader).read_exact(&mut [0; 8]).ok();
    }
}

struct Socket {
    reader: UnixDatagram,
    writer: UnixDatagram,
}

impl Channel for Socket {
    fn send(&self) {
        self.writer.send(&[0; 8]).ok();
    }

    fn receive(&self) {
        self.reader.recv(&mut [0; 8]).ok();
    }
}

/// A POSIX message queue without a name: it is unlinked as soon as it is open.
struct Queue(libc::mqd_t);

/// The bytes of a message: what the queue is made for.
const MESSAGE_BYTES: usize = 8;

impl Queue {
    fn open() -> std::io::Result<Queue> {
        let name = format!("/rtscope-{}\0", std::process::id());
        let name = name.as_ptr().cast::<libc::c_char>();
        // SAFETY: the name ends with a zero; the attributes are whole, and only read.
        let queue = unsafe {
            let mut attributes: libc::mq_attr = std::mem::zeroed();
            attributes.mq_maxmsg = 4;
            attributes.mq_msgsize = MESSAGE_BYTES as libc::c_long;
            let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
            libc::mq_open(name, flags, 0o600, &raw mut attributes)
        };
        if queue < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: as above.
        unsafe { libc::mq_unlink(name) };
        Ok(Queue(queue))
    }
}

impl Channel for Queue {
    fn send(&self) {
        let message = [0u8; MESSAGE_BYTES];
        // SAFETY: the message is of the length that is told, and only read.
        unsafe { libc::mq_send(self.0, message.as_ptr().cast(), MESSAGE_BYTES, 0) };
    }

    fn receive(&self) {
        let mut message = [0u8; MESSAGE_BYTES];
        // SAFETY: there is room for the longest message that the queue takes.
        unsafe {
            libc::mq_receive(
                self.0,
                message.as_mut_ptr().cast(),
                MESSAGE_BYTES,
                std::ptr::null_mut(),
            )
        };
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { libc::mq_close(self.0) };
    }
}

/// A real-time signal to one thread, which has it blocked and waits for it.
#[derive(Default)]
struct Signal {
    process: AtomicI32,
    tid: AtomicI32,
}

impl Channel for Signal {
    fn aim(&self, receiver: Address) {
        self.process.store(receiver.process.0, Ordering::Relaxed);
        self.tid.store(receiver.tid.0, Ordering::Relaxed);
    }

    fn send(&self) {
        let of = |id: &AtomicI32| id.load(Ordering::Relaxed);
        let (process, tid) = (of(&self.process), of(&self.tid));
        // SAFETY: takes integers only; the receiver lives until it was told the end.
        unsafe { libc::syscall(libc::SYS_tgkill, process, tid, libc::SIGRTMIN()) };
    }

    fn receive(&self) {
        // SAFETY: the set is made before its use; the kernel only reads it.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGRTMIN());
            libc::sigwaitinfo(&raw const set, std::ptr::null_mut());
        }
    }
}
