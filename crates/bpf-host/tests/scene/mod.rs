//! Real-time threads for the tests: a periodic victim, a hog, relays. Every one is bounded: a hog
//! spins for at most 300 ms, on one CPU, below a limit of real-time run time.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod fault;
pub mod process;
pub mod quota;

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The CPU that the scenes are played on; the tests' own threads stay off it.
pub const STAGE: usize = 1;
/// A CPU beside it.
pub const ASIDE: usize = 0;
/// No scene needs more real-time run time in one piece; the kernel kills us beyond it.
const REAL_TIME_LIMIT: Duration = Duration::from_secs(2);

/// Names the calling thread, pins it and makes it SCHED_FIFO; zero keeps it fair.
pub fn become_task(name: &str, cpu: usize, fifo: i32) {
    let limit = REAL_TIME_LIMIT.as_micros() as u64;
    let limit = libc::rlimit {
        rlim_cur: limit,
        rlim_max: limit,
    };
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: all pointers are to locals that live for the calls.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(
            libc::sched_setaffinity(0, size_of_val(&set), &raw const set),
            0
        );
        assert_eq!(libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit), 0);
        if fifo > 0 {
            let param = libc::sched_param {
                sched_priority: fifo,
            };
            assert_eq!(
                libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param),
                0
            );
        }
    }
}

/// The calling thread's id.
pub fn tid() -> i32 {
    // SAFETY: a system call without arguments.
    unsafe { libc::gettid() }
}

/// Spins; never for more than 300 ms.
pub fn spin(duration: Duration) {
    let end = Instant::now() + duration.min(Duration::from_millis(300));
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Takes so much time of a CPU; never for more than 300 ms.
fn burn(duration: Duration) {
    let taken = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let (begin, end) = (taken(), Instant::now() + Duration::from_millis(300));
    while taken() - begin < duration && Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Runs a hog to its end: SCHED_FIFO `fifo` on the stage.
pub fn hog(fifo: i32, duration: Duration) {
    let hog = std::thread::spawn(move || {
        become_task("scene-hog", STAGE, fifo);
        spin(duration);
    });
    hog.join().unwrap();
}

/// A hog of SCHED_FIFO `fifo` on the stage that raises itself to `ceiling` while it spins, as the
/// owner of a mutex with a ceiling does; its id.
pub fn hog_with_ceiling(fifo: i32, ceiling: i32, duration: Duration) -> i32 {
    let hog = std::thread::spawn(move || {
        become_task("scene-hog", STAGE, fifo);
        let set = |priority: i32| {
            let param = libc::sched_param {
                sched_priority: priority,
            };
            // SAFETY: the call reads one structure that lives for it.
            assert_eq!(unsafe { libc::sched_setparam(0, &raw const param) }, 0);
        };
        set(ceiling);
        spin(duration);
        set(fifo);
        tid()
    });
    hog.join().unwrap()
}

/// A hog that spins until told, as [`spin_until`] does: SCHED_FIFO `fifo` on the stage, where it
/// runs when this returns.
pub fn hog_until(fifo: i32, over: &Arc<AtomicBool>) -> JoinHandle<()> {
    let begun = Arc::new(AtomicBool::new(false));
    let (begins, over) = (Arc::clone(&begun), Arc::clone(over));
    let hog = std::thread::spawn(move || {
        become_task("scene-hog", STAGE, fifo);
        begins.store(true, Ordering::Release);
        spin_until(&over);
    });
    while !begun.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    hog
}

/// A thread that a timer wakes every 2 ms, until it is dropped.
pub struct Victim {
    pub tid: i32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Victim {
    /// Each activation calls `work`.
    pub fn start(name: &'static str, fifo: i32, mut work: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let number = Arc::new(AtomicI32::new(0));
        let (stopped, tid_of_thread) = (Arc::clone(&stop), Arc::clone(&number));
        let thread = std::thread::spawn(move || {
            become_task(name, STAGE, fifo);
            tid_of_thread.store(tid(), Ordering::Release);
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(2));
                work();
            }
        });
        while number.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        Victim {
            tid: number.load(Ordering::Acquire),
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// How a thread of a scene is scheduled.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    Fifo(i32),
    Fair,
}

/// The period and the work of [`overrun`].
const PERIOD_NS: i64 = 10_000_000;
const WORK: Duration = Duration::from_millis(12);

/// A thread whose work outlasts its period, so often; it waits for absolute times, as a control
/// loop does, and is due in a row.
pub fn overrun(policy: Policy, periods: usize) {
    let thread = std::thread::spawn(move || {
        let fifo = match policy {
            Policy::Fifo(fifo) => fifo,
            Policy::Fair => 0,
        };
        become_task("scene-victim", STAGE, fifo);
        let mut due_ns = monotonic_ns();
        for _ in 0..=periods {
            due_ns += PERIOD_NS;
            sleep_until(due_ns);
            spin(WORK);
        }
    });
    thread.join().unwrap();
}

pub fn monotonic_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

pub fn sleep_until(due_ns: i64) {
    let due = libc::timespec {
        tv_sec: due_ns / 1_000_000_000,
        tv_nsec: due_ns % 1_000_000_000,
    };
    // SAFETY: the call reads one initialised struct.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const due,
            std::ptr::null_mut(),
        );
    }
}

/// `struct sched_attr` (include/uapi/linux/sched/types.h), its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const SCHED_DEADLINE: u32 = 6;

/// A thread under SCHED_DEADLINE with a budget of half of its work, so often; it yields where its
/// work is done.
pub fn over_budget(periods: usize) {
    let thread = std::thread::spawn(move || {
        // It may run on all CPUs: the kernel takes no other.
        let name = c"scene-victim";
        let attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            policy: SCHED_DEADLINE,
            flags: 0,
            nice: 0,
            priority: 0,
            runtime_ns: 6_000_000,
            deadline_ns: 10_000_000,
            period_ns: 10_000_000,
        };
        // SAFETY: both calls read memory that lives for them.
        unsafe {
            libc::prctl(libc::PR_SET_NAME, name.as_ptr());
            assert_eq!(
                libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0),
                0
            );
        }
        for _ in 0..=periods {
            burn(WORK);
            std::thread::yield_now();
        }
    });
    thread.join().unwrap();
}

/// A fair thread that lets its sleeps be longer by `slack`, so often.
pub fn slack(slack: Duration, times: usize) {
    let thread = std::thread::spawn(move || {
        become_task("scene-victim", STAGE, 0);
        // SAFETY: a call without pointers.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack.as_nanos() as u64) };
        for _ in 0..times {
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    thread.join().unwrap();
}

/// A thread that waits for Rust's own mutex while another one sleeps with it for `duration`.
pub fn behind_lock(duration: Duration) {
    let (lock, begun) = (Mutex::new(()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let held = lock.lock().expect("nobody panics");
        let waits = scope.spawn(|| {
            become_task("scene-victim", STAGE, 10);
            // A timer begins its activation.
            std::thread::sleep(Duration::from_millis(2));
            begun.store(true, Ordering::Release);
            drop(lock.lock());
            std::thread::sleep(Duration::from_millis(2));
        });
        while !begun.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        std::thread::sleep(duration);
        drop(held);
        waits.join().expect("it ends");
    });
}

/// A lock of the C library's for one writer or several readers.
struct ReadersLock(UnsafeCell<libc::pthread_rwlock_t>);

// SAFETY: Nobody moves it while it is in use, and the C library's functions are made for threads.
unsafe impl Sync for ReadersLock {}

impl ReadersLock {
    fn call(&self, function: unsafe extern "C" fn(*mut libc::pthread_rwlock_t) -> i32) {
        // SAFETY: It was initialised, and is as long-lived as the borrow.
        assert_eq!(unsafe { function(self.0.get()) }, 0);
    }
}

/// A victim that sleeps for a lock inside its activation, which so many readers have for that long
/// and let go of one after the other.
pub fn behind_readers(duration: Duration, readers: u32) {
    let lock = ReadersLock(UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER));
    // Nobody lets go before the victim is about to wait, however busy the machine is.
    let have_it = Barrier::new(readers as usize + 1);
    std::thread::scope(|scope| {
        for number in 0..readers {
            let (lock, have_it) = (&lock, &have_it);
            scope.spawn(move || {
                lock.call(libc::pthread_rwlock_rdlock);
                have_it.wait();
                std::thread::sleep(duration + Duration::from_millis(5) * number);
                lock.call(libc::pthread_rwlock_unlock);
            });
        }
        scope.spawn(|| {
            become_task("scene-victim", STAGE, 10);
            have_it.wait();
            // A timer begins its activation.
            std::thread::sleep(Duration::from_millis(2));
            lock.call(libc::pthread_rwlock_wrlock);
            lock.call(libc::pthread_rwlock_unlock);
            std::thread::sleep(Duration::from_millis(2));
        });
    });
}

/// A thread that is told so often of work, each time after `pause`, by a counter that it sleeps on.
/// What lies beside that looks like a lock of three readers and a writer.
pub fn behind_counter(pause: Duration, times: u32) {
    let words = [3 << 3 | 2, 0, 0, 1, 0, 0, 0, 0].map(AtomicU32::new);
    let counter = &words[2];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            become_task("scene-victim", STAGE, 10);
            for seen in 0..times {
                while counter.load(Ordering::Acquire) == seen {
                    let flags = rustix::thread::futex::Flags::PRIVATE;
                    rustix::thread::futex::wait(counter, flags, seen, None).ok();
                }
            }
        });
        for _ in 0..times {
            std::thread::sleep(pause);
            counter.fetch_add(1, Ordering::Release);
            let flags = rustix::thread::futex::Flags::PRIVATE;
            rustix::thread::futex::wake(counter, flags, 1).expect("woken");
        }
    });
}

/// A worker that parks at a word, as one of oneTBB's does, and is told of its works there, each
/// 5 ms after the one before.
pub fn parked(works: &[Duration]) {
    const PARKED: u32 = 2;
    let flags = rustix::thread::futex::Flags::PRIVATE;
    let word = AtomicU32::new(PARKED);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            become_task("scene-victim", STAGE, 10);
            for &work in works {
                while word.load(Ordering::Acquire) == PARKED {
                    rustix::thread::futex::wait(&word, flags, PARKED, None).ok();
                }
                burn(work);
                word.store(PARKED, Ordering::Release);
            }
        });
        for _ in works {
            // It is at the work before for as long as others have its CPU.
            while word.load(Ordering::Acquire) != PARKED {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(5));
            word.store(0, Ordering::Release);
            rustix::thread::futex::wake(&word, flags, 1).expect("woken");
        }
    });
}

/// A worker that is told of its works by a counter, so many, and needs for each a lock that
/// somebody else has for `duration`.
pub fn served_behind_lock(duration: Duration, works: u32) {
    let flags = rustix::thread::futex::Flags::PRIVATE;
    // It begins beyond the values that locks have.
    let (lock, told, done) = (Mutex::new(()), AtomicU32::new(8), AtomicU32::new(8));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            become_task("scene-victim", STAGE, 10);
            for seen in 8..8 + works {
                while told.load(Ordering::Acquire) == seen {
                    rustix::thread::futex::wait(&told, flags, seen, None).ok();
                }
                drop(lock.lock());
                done.store(seen + 1, Ordering::Release);
            }
        });
        for seen in 8..8 + works {
            std::thread::sleep(Duration::from_millis(5));
            let held = lock.lock().expect("nobody panics");
            told.store(seen + 1, Ordering::Release);
            rustix::thread::futex::wake(&told, flags, 1).expect("woken");
            std::thread::sleep(duration);
            drop(held);
            while done.load(Ordering::Acquire) == seen {
                std::thread::yield_now();
            }
        }
    });
}

/// Spins until told; never for more than a second.
pub fn spin_until(over: &AtomicBool) {
    let end = Instant::now() + Duration::from_secs(1);
    while !over.load(Ordering::Relaxed) && Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Returns when the task is runnable.
pub fn until_runnable(tid: i32) {
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .unwrap_or_default()
            .starts_with('R')
    };
    while !state() {
        std::thread::yield_now();
    }
}
