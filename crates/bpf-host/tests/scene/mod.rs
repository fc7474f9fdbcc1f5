//! Real-time threads for the tests: a periodic victim, a hog, relays. Every one is bounded: a hog
//! spins for at most 300 ms, on one CPU, below a limit of real-time run time.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
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

/// Runs a hog to its end: SCHED_FIFO `fifo` on the stage.
pub fn hog(fifo: i32, duration: Duration) {
    let hog = std::thread::spawn(move || {
        become_task("scene-hog", STAGE, fifo);
        spin(duration);
    });
    hog.join().unwrap();
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
