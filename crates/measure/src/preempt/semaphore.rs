//! Semaphores as ways for a message: POSIX's in memory, and System V's in the kernel.

use std::sync::Arc;

use super::mechanism::Between;
use super::meeting::Meeting;
use super::way::Channel;

/// A semaphore in the memory that both sides see.
pub(super) struct Posix(Arc<Meeting>);

impl Posix {
    pub(super) fn new(meeting: &Arc<Meeting>, between: Between) -> std::io::Result<Posix> {
        let is_shared = libc::c_int::from(between == Between::Processes);
        // SAFETY: the memory is there for it, and nobody uses it yet.
        match unsafe { libc::sem_init(meeting.semaphore.get(), is_shared, 0) } {
            0 => Ok(Posix(meeting.clone())),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

impl Channel for Posix {
    fn send(&self) {
        // SAFETY: made by `new`, and there as long as the meeting is.
        unsafe { libc::sem_post(self.0.semaphore.get()) };
    }

    fn receive(&self) {
        // SAFETY: as above.
        unsafe { libc::sem_wait(self.0.semaphore.get()) };
    }
}

/// A set of one semaphore that nobody else can find.
pub(super) struct SystemV(libc::c_int);

impl SystemV {
    pub(super) fn new() -> std::io::Result<SystemV> {
        // SAFETY: takes integers only.
        match unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) } {
            id if id >= 0 => Ok(SystemV(id)),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    fn change(&self, by: libc::c_short) {
        let mut operation = libc::sembuf {
            sem_num: 0,
            sem_op: by,
            sem_flg: 0,
        };
        // SAFETY: one operation, which is read during the call.
        unsafe { libc::semop(self.0, &raw mut operation, 1) };
    }
}

impl Channel for SystemV {
    fn send(&self) {
        self.change(1);
    }

    fn receive(&self) {
        self.change(-1);
    }
}

impl Drop for SystemV {
    fn drop(&mut self) {
        // SAFETY: takes integers only; who still waits is told.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}
