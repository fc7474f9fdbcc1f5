//! Bounds of one run: memory by a counting allocator, time by a watchdog.
//!
//! What ends a run for good (no memory left, no end in sight) keeps the input in a file first.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Memory that one run may hold at once before it counts as a finding.
pub const MEMORY_BYTES_MAX: usize = 192 << 20;
/// Memory at which the process ends: the machine is others' too.
const MEMORY_BYTES_LAST: usize = 1 << 30;
/// Processor time that one run may take before it counts as a finding.
pub const RUN_MS_MAX: u64 = 1500;
/// Processor time at which the process ends.
const RUN_MS_LAST: u64 = 60_000;
/// The status of a process that had to end.
const STATUS_ENDED: i32 = 70;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static RUNS: AtomicU64 = AtomicU64::new(0);
static IS_RUNNING: AtomicBool = AtomicBool::new(false);
/// The input that runs, for the file that is left behind; its memory is the engine's.
static INPUT_AT: AtomicUsize = AtomicUsize::new(0);
static INPUT_BYTES: AtomicUsize = AtomicUsize::new(0);
static LEFT_BEHIND: Mutex<Option<std::fs::File>> = Mutex::new(None);

/// Counts what is allocated.
pub struct Counting;

// SAFETY: everything is the system's allocator's doing; counting touches no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: as for the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grown(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.realloc(at, layout, size) }
    }
}

fn grown(size: usize) {
    let live = LIVE.fetch_add(size, Ordering::Relaxed).saturating_add(size);
    PEAK.fetch_max(live, Ordering::Relaxed);
    if live > MEMORY_BYTES_LAST && IS_RUNNING.load(Ordering::Relaxed) {
        end("memory without bound");
    }
}

/// What one run took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Memory held at once, beyond what was held before.
    pub memory_bytes: usize,
    /// Processor time.
    pub cpu_ms: u64,
}

/// Runs `run` on `input` and says what it took.
pub fn watched<T>(input: &[u8], run: impl FnOnce(&[u8]) -> T) -> (T, Taken) {
    INPUT_AT.store(input.as_ptr() as usize, Ordering::Relaxed);
    INPUT_BYTES.store(input.len(), Ordering::Relaxed);
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    RUNS.fetch_add(1, Ordering::Relaxed);
    let begin_ms = cpu_ms();
    IS_RUNNING.store(true, Ordering::Release);
    let result = run(input);
    IS_RUNNING.store(false, Ordering::Release);
    let taken = Taken {
        memory_bytes: PEAK.load(Ordering::Relaxed).saturating_sub(before),
        cpu_ms: cpu_ms().saturating_sub(begin_ms),
    };
    (result, taken)
}

/// Processor time of this thread.
pub fn cpu_ms() -> u64 {
    clock_ms(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ms(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the result is ours; a clock that is none leaves it zero.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// The clock of the processor time of this thread, for other threads.
fn clock_of_this_thread() -> libc::clockid_t {
    let mut clock = libc::CLOCK_THREAD_CPUTIME_ID;
    // SAFETY: this thread is alive, and the result is ours.
    unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
    clock
}

/// Starts the watchdog over this thread; what it ends leaves its input in `file`. It counts
/// processor time: on a busy machine a short run may take long.
pub fn start(file: std::fs::File) {
    *LEFT_BEHIND.lock().unwrap_or_else(|held| held.into_inner()) = Some(file);
    let clock = clock_of_this_thread();
    std::thread::spawn(move || {
        let (mut last, mut begin_ms) = (0, 0);
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let (runs, now_ms) = (RUNS.load(Ordering::Relaxed), clock_ms(clock));
            let is_same = runs == last && IS_RUNNING.load(Ordering::Acquire);
            if !is_same {
                (last, begin_ms) = (runs, now_ms);
            }
            if now_ms.saturating_sub(begin_ms) > RUN_MS_LAST {
                end("no end in sight");
            }
        }
    });
}

/// Ends the process; the input is kept.
fn end(why: &str) -> ! {
    IS_RUNNING.store(false, Ordering::Release);
    let at = INPUT_AT.load(Ordering::Relaxed) as *const u8;
    let length = INPUT_BYTES.load(Ordering::Relaxed);
    if let Ok(mut file) = LEFT_BEHIND.try_lock()
        && let Some(file) = file.as_mut()
        && !at.is_null()
    {
        // SAFETY: the engine keeps the input while it runs, and it runs still.
        let input = unsafe { std::slice::from_raw_parts(at, length) };
        let _ = file.write_all(input);
    }
    eprintln!("fuzz: {why}; the input was kept as 'ended' beside the findings");
    // SAFETY: nothing of the process is needed any more.
    unsafe { libc::_exit(STATUS_ENDED) }
}
