//! A scene in which everything happens that trackers measure, and that writes down when: each span
//! is read from the same clock right before and right after. It spins for at most 100 ms in all.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Duration as Time;

use bpf_host::trackers::TrackerWatch;
use event::Instant;
use event::evidence::tracked::TrackedHit;

use crate::scene::{ASIDE, STAGE, spin};

const SLEEPS: usize = 20;
const PAGES: usize = 8;
const BLOCK_BYTES: usize = 4096;
const BLOCKS: usize = 16;
const FLUSHES: usize = 8;
/// The spinner gives up then.
const SPIN_NS_MAX: i64 = 300_000_000;

/// When something happened, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    pub begin_ns: i64,
    pub end_ns: i64,
}

/// What happened.
#[derive(Debug, Default)]
pub struct Scene {
    pub sleeps: Vec<Span>,
    /// For when each sleep asked to be woken.
    pub wakes_ns: Vec<i64>,
    /// With the address of the page.
    pub faults: Vec<(Span, u64)>,
    /// Empty where no disk could be read directly.
    pub reads: Vec<Span>,
    pub flushes: Vec<Span>,
    pub hog: Span,
    pub mutex: Span,
}

/// The moment on CLOCK_MONOTONIC.
pub fn now() -> Instant {
    Instant::from_ns(now_ns())
}

fn now_ns() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn span<R>(act: impl FnOnce() -> R) -> (Span, R) {
    let begin_ns = now_ns();
    let result = act();
    let end_ns = now_ns();
    (Span { begin_ns, end_ns }, result)
}

/// Names the thread, makes it urgent where it is, and only then moves it: as a fair task it would
/// wait there for the others.
fn become_urgent(name: &str, cpu: usize, fifo: i32) {
    let name = std::ffi::CString::new(name).unwrap();
    let param = libc::sched_param {
        sched_priority: fifo,
    };
    // SAFETY: all pointers are to locals that live for the calls.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        assert_eq!(
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param),
            0
        );
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(
            libc::sched_setaffinity(0, size_of_val(&set), &raw const set),
            0
        );
    }
}

/// Plays the scene while the trackers' rings are emptied; gives them back with what they held.
pub fn play(mut watches: Vec<TrackerWatch>) -> (Scene, Vec<TrackerWatch>, Vec<Vec<TrackedHit>>) {
    let disk = Disk::prepare();
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let player = std::thread::spawn(move || {
        let sleeper = std::thread::spawn(move || sleeper(disk));
        let mut scene = sleeper.join().expect("the sleeper");
        scene.hog = preemption();
        scene.mutex = contention();
        over.store(true, Ordering::Release);
        scene
    });
    let mut hits: Vec<Vec<TrackedHit>> = watches.iter().map(|_| Vec::new()).collect();
    let mut is_last = false;
    while !is_last {
        is_last = is_over.load(Ordering::Acquire);
        for (watch, hits) in watches.iter_mut().zip(&mut hits) {
            hits.extend(watch.take().expect("a ring"));
        }
        std::thread::sleep(Time::from_millis(2));
    }
    (player.join().expect("the player"), watches, hits)
}

fn sleeper(disk: Option<Disk>) -> Scene {
    let mut scene = Scene::default();
    // Opened before it has its name: what that asks of the kernel is not the scene's.
    let (mut master, mut slave) = terminal();
    become_urgent("scene-sleeper", ASIDE, 30);
    for _ in 0..SLEEPS {
        let wake_ns = now_ns() + 3_000_000;
        scene.wakes_ns.push(wake_ns);
        scene.sleeps.push(span(|| sleep_until(wake_ns)).0);
    }
    let pages = Pages::new();
    for number in 0..PAGES {
        let address = pages.0 + number * BLOCK_BYTES;
        // SAFETY: inside the mapping, which nobody else knows.
        let (span, ()) = span(|| unsafe { (address as *mut u8).write_volatile(1) });
        scene.faults.push((span, address as u64));
    }
    for _ in 0..FLUSHES {
        let (span, ()) = span(|| {
            master.write_all(b"x\n").expect("the terminal takes it");
            let mut line = [0; 8];
            assert_eq!(slave.read(&mut line).expect("the terminal gives it"), 2);
        });
        scene.flushes.push(span);
    }
    if let Some(disk) = disk {
        scene.reads = (0..BLOCKS)
            .map(|block| span(|| disk.read(block)).0)
            .collect();
    }
    scene
}

fn sleep_until(wake_ns: i64) {
    let time = libc::timespec {
        tv_sec: wake_ns / 1_000_000_000,
        tv_nsec: wake_ns % 1_000_000_000,
    };
    let (clock, flags) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
    // SAFETY: the pointer is to a local, and nothing is written.
    let result =
        unsafe { libc::clock_nanosleep(clock, flags, &raw const time, std::ptr::null_mut()) };
    assert_eq!(result, 0);
}

/// Fresh pages, each on its own.
struct Pages(usize);

impl Pages {
    fn new() -> Pages {
        let bytes = PAGES * BLOCK_BYTES;
        // SAFETY: a new mapping of our own.
        let address = unsafe {
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let may = libc::PROT_READ | libc::PROT_WRITE;
            let address = libc::mmap(std::ptr::null_mut(), bytes, may, private, -1, 0);
            assert_ne!(address, libc::MAP_FAILED);
            libc::madvise(address, bytes, libc::MADV_NOHUGEPAGE);
            address
        };
        Pages(address as usize)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: our own mapping, with its length.
        unsafe { libc::munmap(self.0 as *mut libc::c_void, PAGES * BLOCK_BYTES) };
    }
}

/// Both ends of a terminal: what is written into one comes out of the other through the kernel's
/// work.
fn terminal() -> (File, File) {
    let (mut master, mut slave) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: two descriptors are written; the rest may be null.
    let result = unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            none,
            std::ptr::null(),
            std::ptr::null(),
        )
    };
    assert_eq!(result, 0, "a terminal");
    // SAFETY: new descriptors that are ours.
    unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) }
}

/// A file that is read past the page cache.
struct Disk(File);

#[repr(align(4096))]
struct Block([u8; BLOCK_BYTES]);

impl Disk {
    /// None where the folder's file system cannot read so.
    fn prepare() -> Option<Disk> {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("tracker-scene");
        let mut file = File::create(&path).ok()?;
        file.write_all(&[1; BLOCKS * BLOCK_BYTES]).ok()?;
        file.sync_all().ok()?;
        let direct = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(&path);
        std::fs::remove_file(&path).ok();
        let disk = Disk(direct.ok()?);
        let mut block = Block([0; BLOCK_BYTES]);
        disk.0.read_exact_at(&mut block.0, 0).ok()?;
        // Memory that looks like a disk has no requests.
        let device = disk.0.metadata().ok()?.dev();
        (libc::major(device) > 0).then_some(disk)
    }

    fn read(&self, block: usize) {
        let mut bytes = Block([0; BLOCK_BYTES]);
        let at = (block * BLOCK_BYTES) as u64;
        self.0.read_exact_at(&mut bytes.0, at).expect("read");
    }
}

const PERIOD_NS: i64 = 2_000_000;

/// A spinner, a victim that sleeps until even milliseconds, and a hog that comes at an odd one and
/// runs ahead of both. The others go on until it has ended.
fn preemption() -> Span {
    let ready = Arc::new(Barrier::new(3));
    let over = Arc::new(AtomicBool::new(false));
    let begin_ns = now_ns() / PERIOD_NS * PERIOD_NS + 10 * PERIOD_NS;
    let part = |name: &'static str, fifo: i32, act: Box<dyn FnOnce(&AtomicBool) + Send>| {
        let (ready, over) = (Arc::clone(&ready), Arc::clone(&over));
        std::thread::spawn(move || {
            become_urgent(name, STAGE, fifo);
            ready.wait();
            act(&over);
        })
    };
    let spin_until = |over: &AtomicBool| {
        let give_up_ns = now_ns() + SPIN_NS_MAX;
        while !over.load(Ordering::Acquire) && now_ns() < give_up_ns {
            std::hint::spin_loop();
        }
    };
    let sleep_until_over = move |over: &AtomicBool| {
        let mut wake_ns = begin_ns;
        while !over.load(Ordering::Acquire) {
            wake_ns = (wake_ns + PERIOD_NS).max(now_ns() / PERIOD_NS * PERIOD_NS + PERIOD_NS);
            sleep_until(wake_ns);
        }
    };
    let (sender, hog) = std::sync::mpsc::channel();
    let run_ahead = move |over: &AtomicBool| {
        let soon_ns = now_ns() / PERIOD_NS * PERIOD_NS + 5 * PERIOD_NS;
        sleep_until(soon_ns.max(begin_ns) + PERIOD_NS / 2);
        let (ran, ()) = span(|| spin(Time::from_millis(20)));
        over.store(true, Ordering::Release);
        sender.send(ran).expect("somebody listens");
    };
    let parts = [
        part("scene-spinner", 10, Box::new(spin_until)),
        part("scene-victim", 15, Box::new(sleep_until_over)),
        part("scene-hog", 20, Box::new(run_ahead)),
    ];
    let hog = hog.recv().expect("the hog");
    for part in parts {
        part.join().expect("a part");
    }
    hog
}

struct Mutex(std::cell::UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: a mutex is there to be shared.
unsafe impl Sync for Mutex {}

/// One thread holds a mutex while the other waits for it.
fn contention() -> Span {
    static MUTEX: Mutex = Mutex(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
    static HELD: AtomicI32 = AtomicI32::new(0);
    static READY: AtomicI32 = AtomicI32::new(0);
    let until = |set: &AtomicI32| {
        while set.load(Ordering::Acquire) == 0 {
            std::thread::sleep(Time::from_millis(1));
        }
    };
    HELD.store(0, Ordering::Release);
    READY.store(0, Ordering::Release);
    let owner = std::thread::spawn(move || {
        become_urgent("scene-owner", ASIDE, 12);
        // On a busy machine, the other one begins late.
        until(&READY);
        // SAFETY: the mutex is initialised and lives for ever.
        unsafe { libc::pthread_mutex_lock(MUTEX.0.get()) };
        HELD.store(1, Ordering::Release);
        std::thread::sleep(Time::from_millis(10));
        // SAFETY: locked above.
        unsafe { libc::pthread_mutex_unlock(MUTEX.0.get()) };
    });
    let waiter = std::thread::spawn(move || {
        become_urgent("scene-waiter", STAGE, 11);
        READY.store(1, Ordering::Release);
        until(&HELD);
        // SAFETY: as above; what is locked is unlocked.
        unsafe {
            let (span, _) = span(|| libc::pthread_mutex_lock(MUTEX.0.get()));
            libc::pthread_mutex_unlock(MUTEX.0.get());
            span
        }
    });
    owner.join().expect("the owner");
    waiter.join().expect("the waiter")
}

fn futex(word: &AtomicU32, operation: i32, value: u32) {
    let none = std::ptr::null::<libc::timespec>();
    // SAFETY: the word lives for the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, none) };
}

/// Waits that end at once, each on a word of its own.
pub fn wait_on_many(count: u64) {
    let waiter = std::thread::spawn(move || {
        become_urgent("scene-keys", ASIDE, 12);
        let words: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(1)).collect();
        for word in &words {
            futex(word, libc::FUTEX_WAIT, 0);
        }
    });
    waiter.join().expect("the waiter");
}

/// A thread that waits until it is released.
pub struct Waiter {
    word: Arc<AtomicU32>,
    thread: JoinHandle<()>,
}

impl Waiter {
    pub fn start() -> Waiter {
        let word = Arc::new(AtomicU32::new(0));
        let waits_on = Arc::clone(&word);
        let thread = std::thread::spawn(move || {
            become_urgent("scene-waiter", ASIDE, 12);
            while waits_on.load(Ordering::Acquire) == 0 {
                futex(&waits_on, libc::FUTEX_WAIT, 0);
            }
        });
        Waiter { word, thread }
    }

    /// It waits anew.
    pub fn stir(&self) {
        futex(&self.word, libc::FUTEX_WAKE, 1);
    }

    pub fn release(self) {
        self.word.store(1, Ordering::Release);
        futex(&self.word, libc::FUTEX_WAKE, 1);
        self.thread.join().expect("the waiter");
    }
}

/// The address of a function of the kernel.
pub fn function(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/kallsyms").expect("kallsyms");
    let line = text.lines().find(|line| {
        let mut words = line.split_ascii_whitespace().skip(2);
        words.next() == Some(name)
    });
    let address = line.and_then(|line| line.split_ascii_whitespace().next());
    u64::from_str_radix(address.expect("a function"), 16).expect("an address")
}

/// What the kernel has counted in a row of `/proc/interrupts`, on all CPUs.
pub fn interrupts(row: &str) -> u64 {
    sum("/proc/interrupts", row)
}

/// The same of `/proc/softirqs`.
pub fn softirqs(row: &str) -> u64 {
    sum("/proc/softirqs", row)
}

fn sum(path: &str, row: &str) -> u64 {
    let text = std::fs::read_to_string(path).expect("a table of the kernel");
    let line = text.lines().find(|line| line.trim_start().starts_with(row));
    let words = line.expect("a row").split_ascii_whitespace().skip(1);
    words.map_while(|word| word.parse::<u64>().ok()).sum()
}
