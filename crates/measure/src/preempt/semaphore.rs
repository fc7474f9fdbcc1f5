//! Semaphores as ways for a message: POSIX's in memory, and System V's in the kernel.

use std::sync::Arc;

use super::mechanism::Between;
use super::meeting::Meeting;
use super::way::Channel;
use crate::load::begin_ticks;

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

/// The semaphores of a set: the message's, two with a value that says whose it is, and one with
/// when its maker began. The kernel keeps a set when its maker is killed.
const SET: [libc::c_ushort; 3] = [0, 29_300, 29_539];
const BEGAN: libc::c_int = SET.len() as libc::c_int;
/// Values of semaphores have fifteen bits.
const VALUE_MASK: u64 = 0x7fff;
/// The kernel's list of all sets of this IPC namespace.
const LIST: &str = "/proc/sysvipc/sem";

/// A set that nobody else can find by a key.
pub(super) struct SystemV(libc::c_int);

impl SystemV {
    pub(super) fn new() -> std::io::Result<SystemV> {
        // SAFETY: takes integers only.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, BEGAN + 1, 0o600) };
        if id < 0 {
            return Err(std::io::Error::last_os_error());
        }
        let set = SystemV(id);
        let [message, first, second] = SET;
        let mut values = [message, first, second, began(std::process::id())];
        // SAFETY: as many values as the set has semaphores, which are only read.
        match unsafe { libc::semctl(id, 0, libc::SETALL, values.as_mut_ptr()) } {
            0 => Ok(set),
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

/// When a process began, as far as a semaphore can hold it.
fn began(pid: u32) -> libc::c_ushort {
    (begin_ticks(pid).unwrap_or_default() & VALUE_MASK) as libc::c_ushort
}

/// A set of semaphores that a dead process of ours left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftSemaphores {
    /// Its number, as `ipcs` prints it and `ipcrm -s` takes it.
    pub id: i32,
    /// Who made it.
    pub owner: u32,
}

/// Sets of semaphores whose makers are dead, in this IPC namespace.
pub fn left_semaphores() -> Vec<LeftSemaphores> {
    let list = std::fs::read_to_string(LIST).unwrap_or_default();
    ids(&list).filter_map(left_set).collect()
}

/// The numbers of the sets that have as many semaphores as ours.
fn ids(list: &str) -> impl Iterator<Item = libc::c_int> {
    // key semid perms nsems …, below a line of names.
    list.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let id = words.next()?.parse().ok()?;
        (words.nth(1)?.parse() == Ok(BEGAN + 1)).then_some(id)
    })
}

fn left_set(id: libc::c_int) -> Option<LeftSemaphores> {
    // SAFETY: takes integers only; a set that is gone meanwhile is an error.
    let ask = |number, what| unsafe { libc::semctl(id, number, what) };
    let is_ours = (1..)
        .zip(&SET[1..])
        .all(|(number, mark)| ask(number, libc::GETVAL) == libc::c_int::from(*mark));
    if !is_ours {
        return None;
    }
    // Nobody but its maker ever touched this one. Zero is a process of a namespace that we do not
    // see, which may live.
    let owner = u32::try_from(ask(1, libc::GETPID))
        .ok()
        .filter(|pid| *pid > 0)?;
    let lives =
        begin_ticks(owner).is_some() && libc::c_int::from(began(owner)) == ask(BEGAN, libc::GETVAL);
    (!lives).then_some(LeftSemaphores { id, owner })
}

impl LeftSemaphores {
    /// Removes it. What is gone meanwhile needs nobody.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn remove(&self) -> std::io::Result<()> {
        // SAFETY: takes integers only.
        if unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) } == 0 {
            return Ok(());
        }
        match std::io::Error::last_os_error() {
            gone if matches!(gone.raw_os_error(), Some(libc::EIDRM | libc::EINVAL)) => Ok(()),
            error => Err(error),
        }
    }
}

/// Has the threads that this one starts from now on their semaphores and message queues in an IPC
/// namespace of their own, where we may: the kernel ends it with its last process, however that
/// dies.
pub fn own_ipc() -> bool {
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    // SAFETY: no memory is shared any less by it, and no descriptor.
    unsafe { unshare_unsafe(UnshareFlags::NEWIPC) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_the_dead_is_left_and_one_of_the_living_or_of_others_is_not() {
        let living = SystemV::new().expect("a set");
        // SAFETY: takes integers only.
        let foreign = unsafe { libc::semget(libc::IPC_PRIVATE, BEGAN + 1, 0o600) };
        // SAFETY: the child makes a set, and ends by `_exit`.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            SystemV::new().map(std::mem::forget).ok();
            // SAFETY: the end of this process.
            unsafe { libc::_exit(0) };
        }
        let owner = pid.cast_unsigned();
        let of = |owner| move |one: &LeftSemaphores| one.owner == owner;
        // SAFETY: takes integers only; no status is asked for.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        let found: Vec<LeftSemaphores> = left_semaphores().into_iter().filter(of(owner)).collect();
        assert_eq!(found.len(), 1);
        let all = left_semaphores();
        assert!(
            !all.iter()
                .any(|one| one.id == living.0 || one.id == foreign)
        );
        found[0].remove().expect("removed");
        found[0].remove().expect("gone is gone");
        assert!(!left_semaphores().iter().any(of(owner)));
        // SAFETY: takes integers only.
        unsafe { libc::semctl(foreign, 0, libc::IPC_RMID) };
        drop(living);
    }

    #[test]
    fn sets_of_our_size_are_found_in_the_list_of_the_kernel() {
        let list = "key semid perms nsems uid gid cuid cgid otime ctime\n\
                      0     3   600     4   0   0    0    0     0     1\n\
                      7     5   600     1   0   0    0    0     0     1\n\
                      0\n";
        assert_eq!(ids(list).collect::<Vec<_>>(), [3]);
    }
}
