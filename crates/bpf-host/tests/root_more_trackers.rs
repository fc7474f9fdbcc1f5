//! Check on the running kernel that the trackers of packets, connections, locks, futexes and calls
//! between CPUs measure what happened: threads of ours do it and write down when.

mod scene;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration as Time;

use bpf_host::trackers::{Tracker, TrackerConfig, TrackerWatch, drop_reason};
use bpf_host::{Targets, WatchConfig};
use event::evidence::tracked::Tracked;
use event::{Duration, TaskPattern};
use scene::{ASIDE, STAGE, become_task, monotonic_ns};

const LOOPBACK: u64 = 1;

fn start(name: &str, targets: Targets, only: Vec<u64>) -> TrackerWatch {
    let config = TrackerConfig {
        watch: WatchConfig {
            targets,
            threshold: Duration::from_ns(1),
            rate_limit_interval: Duration::ZERO,
            ..WatchConfig::default()
        },
        only,
        ..TrackerConfig::default()
    };
    let tracker = Tracker::find(name).expect("a tracker");
    TrackerWatch::start(tracker, &config).unwrap_or_else(|error| panic!("{name}: {error:#}"))
}

fn of_scene() -> Targets {
    Targets::Tasks(vec![TaskPattern::parse("scene-*").expect("names tasks")])
}

/// The intervals of a series until now; nothing was lost.
fn intervals(watch: &mut TrackerWatch, series: usize) -> Vec<Tracked> {
    let hits = watch.take().expect("hits");
    let losses = watch.statistics().expect("counters").losses;
    assert_eq!(
        losses.lost + losses.full + losses.recursion,
        0,
        "{losses:?}"
    );
    let tracked = hits.into_iter().map(|hit| hit.tracked);
    tracked.filter(|tracked| tracked.series == series).collect()
}

/// Runs `act` as a thread of this name on a CPU, and says when it began and ended.
fn played<T: Send>(name: &str, cpu: usize, act: impl FnOnce() -> T + Send) -> (i64, T, i64) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            become_task(name, cpu, 0);
            let begin_ns = monotonic_ns();
            let done = act();
            (begin_ns, done, monotonic_ns())
        });
        thread.join().expect("a thread")
    })
}

fn is_within(tracked: &Tracked, begin_ns: i64, end_ns: i64) -> bool {
    begin_ns <= tracked.begin.as_ns() && tracked.end.as_ns() <= end_ns
}

#[test]
fn a_packet_is_measured_from_its_receive_to_its_copy_and_a_dropped_one_has_its_reason() {
    const BYTES: usize = 77;
    /// Of IP and UDP, before it.
    const HEADERS: u64 = 28;
    let _privileged = testkit::privileged();
    let mut watch = start("net", of_scene(), vec![LOOPBACK]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("an address");
    let mut sender = TcpStream::connect(address).expect("connected");
    let (mut receiver, _) = listener.accept().expect("accepted");
    // One at a time: what waits together is merged into one packet.
    for _ in 0..5 {
        let (sent_ns, ..) = played("scene-sender", ASIDE, || {
            sender.write_all(&[1; BYTES]).expect("sent");
        });
        let mut bytes = [0; BYTES];
        let (reads_ns, _, read_ns) = played("scene-reader", STAGE, || {
            receiver.read_exact(&mut bytes).expect("received");
        });
        let copied = intervals(&mut watch, 0);
        assert_eq!(copied.len(), 1, "{copied:#?}");
        let tracked = &copied[0];
        // It was there before anybody read.
        let waited = tracked.begin.as_ns() < reads_ns && tracked.end.as_ns() > reads_ns;
        assert!(
            waited && is_within(tracked, sent_ns, read_ns),
            "{tracked:?} {reads_ns}"
        );
        assert_eq!(
            (tracked.key, tracked.label.as_str()),
            (LOOPBACK << 32, "lo")
        );
        assert!(
            tracked.detail > BYTES as u64,
            "with its headers: {tracked:?}"
        );
        assert_eq!(tracked.task.as_ref().expect("a task").comm, "scene-reader");
    }

    let nobody = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = nobody.local_addr().expect("an address");
    drop(nobody);
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut watch = start("net", Targets::All, vec![LOOPBACK]);
    let (begin_ns, _, end_ns) = played("scene-sender", ASIDE, || {
        sender.send_to(&[1; BYTES], address).expect("sent");
        // The kernel's answer that nobody listens: the packet was dropped before it.
        sender.connect(address).expect("an address");
        sender.send(&[1; BYTES]).expect("sent");
        sender.recv(&mut [0; 1]).expect_err("nobody listens");
    });
    let dropped = intervals(&mut watch, 1);
    let ours = dropped.iter().filter(|tracked| {
        is_within(tracked, begin_ns, end_ns) && tracked.detail == BYTES as u64 + HEADERS
    });
    let ours: Vec<_> = ours.collect();
    assert_eq!(ours.len(), 2, "{dropped:#?}");
    for tracked in ours {
        let reason = drop_reason(tracked.key as u32);
        assert_eq!(reason.as_deref(), Some("NO_SOCKET"), "{tracked:?}");
    }
}

#[test]
fn a_connection_is_measured_until_it_is_accepted_and_from_there_to_the_first_byte() {
    const PAUSE: Time = Time::from_millis(5);
    let _privileged = testkit::privileged();
    let mut watch = start("ttfb", of_scene(), vec![]);
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(listener) = TcpListener::bind(address) else {
            testkit::skip("a connection is measured, IPv6", "the machine has none");
            continue;
        };
        let server = listener.local_addr().expect("an address");
        let connects_ns = monotonic_ns();
        let mut client = TcpStream::connect(server).expect("connected");
        let connected_ns = monotonic_ns();
        let (accepts_ns, (accepted_ns, sends_ns), sent_ns) = played("scene-server", ASIDE, || {
            let (mut connection, _) = listener.accept().expect("accepted");
            let accepted_ns = monotonic_ns();
            std::thread::sleep(PAUSE);
            let sends_ns = monotonic_ns();
            connection.write_all(b"first").expect("sent");
            connection.write_all(b"second").expect("sent");
            (accepted_ns, sends_ns)
        });
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("answered");
        let port = client.local_addr().expect("an address").port();

        let hits = watch.take().expect("hits");
        let of = |series| {
            let tracked = hits.iter().map(|hit| &hit.tracked);
            let found: Vec<_> = tracked.filter(|tracked| tracked.series == series).collect();
            assert_eq!(found.len(), 1, "{address}: {hits:#?}");
            assert_eq!(
                (found[0].more, found[0].is_open),
                (port, false),
                "{address}"
            );
            let task = found[0].task.as_ref().expect("a task");
            assert_eq!(task.comm, "scene-server");
            found[0].clone()
        };
        let (queued, answered) = (of(0), of(1));
        let within = |ns: i64, from_ns, to_ns| (from_ns..=to_ns).contains(&ns);
        assert!(
            within(queued.begin.as_ns(), connects_ns, connected_ns),
            "{queued:?}"
        );
        assert!(
            within(queued.end.as_ns(), accepts_ns, accepted_ns),
            "{queued:?}"
        );
        assert_eq!(
            answered.begin, queued.end,
            "one goes on where the other ends"
        );
        assert!(
            within(answered.end.as_ns(), sends_ns, sent_ns),
            "{answered:?}"
        );
        let peer = (u128::from(answered.detail) << 64) | u128::from(answered.key);
        let peer = std::net::Ipv6Addr::from(peer);
        let client = client.local_addr().expect("an address").ip();
        assert_eq!(peer.to_canonical(), client.to_canonical());
    }
    let losses = watch.statistics().expect("counters").losses;
    assert!(!losses.forbid_a_statement(), "{losses:?}");
}

/// A thread that keeps a CPU busy in user mode while this lives.
struct Busy {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Busy {
    fn start(name: &'static str, cpu: usize, act: impl Fn() + Send + 'static) -> Busy {
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            become_task(name, cpu, 0);
            while !until.load(Ordering::Relaxed) {
                act();
            }
        });
        Busy {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a busy thread");
        }
    }
}

/// Has all CPUs on which this process runs pass a barrier: one calls the others for it.
fn barrier(command: libc::c_int) {
    // SAFETY: a call without pointers.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Has all CPUs on which this process runs forget a page: a CPU calls itself beside the others.
fn forget_a_page() {
    let (none, may) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping of our own, a write into it, and its end.
    unsafe {
        let page = libc::mmap(none, 1, may, private, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        page.cast::<u8>().write_volatile(1);
        assert_eq!(libc::munmap(page, 1), 0);
    }
}

#[test]
fn a_call_to_another_cpu_is_measured_from_its_request_to_its_end() {
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER: libc::c_int = 1 << 4;
    const BARRIERS: usize = 100; // two reports each fit into the ring
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a_call_to_another_cpu_is_measured_from_its_request_to_its_end") {
        return;
    }
    barrier(REGISTER);
    // Not of who is called: what interrupts that one may ask for calls as well.
    let caller = TaskPattern::parse("scene-caller").expect("names a task");
    let mut watch = start("ipi", Targets::Tasks(vec![caller]), vec![]);
    let busy = Busy::start("scene-busy", STAGE, std::hint::spin_loop);
    let (_, spans, _) = played("scene-caller", ASIDE, || {
        let span = |turn| {
            std::thread::sleep(Time::from_millis(1));
            if turn % 10 == 0 {
                forget_a_page();
            }
            let begin_ns = monotonic_ns();
            barrier(PRIVATE_EXPEDITED);
            (begin_ns, monotonic_ns())
        };
        (0..BARRIERS).map(span).collect::<Vec<_>>()
    });
    drop(busy);
    let hits = watch.take().expect("hits");
    let by_us = |tracked: &&Tracked| {
        let task = tracked.task.as_ref();
        task.is_some_and(|task| task.comm == "scene-caller")
    };
    let tracked: Vec<_> = hits.iter().map(|hit| &hit.tracked).filter(by_us).collect();
    // What a CPU calls for itself was asked for by nobody.
    assert_eq!(tracked.len(), hits.len(), "{hits:#?}");
    let inside = |series: usize, (begin_ns, end_ns): (i64, i64)| {
        let found = tracked.iter().filter(|tracked| {
            tracked.series == series
                && is_within(tracked, begin_ns, end_ns)
                && tracked.cpu.0 as usize == STAGE
        });
        found.copied().collect::<Vec<_>>()
    };
    // While the other CPU runs somebody else's task it is not called.
    let called = spans.iter().filter(|span| inside(0, **span).len() == 1);
    let called: Vec<_> = called.collect();
    let times: Vec<_> = tracked
        .iter()
        .map(|of| (of.series, of.cpu, of.begin, of.end))
        .collect();
    assert!(called.len() >= 3, "{spans:?} {times:?}");
    for span in called {
        let (requested, ran) = (inside(0, *span)[0], inside(1, *span));
        assert_eq!(ran.len(), 1, "{span:?} {tracked:#?}");
        assert_eq!((requested.end, requested.key), (ran[0].begin, ran[0].key));
    }
    let losses = watch.statistics().expect("counters").losses;
    assert!(!losses.forbid_a_statement(), "{losses:?}");
}

/// Maps and unmaps a page: both take the lock of the process's memory.
fn map() {
    let (none, may) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping of our own, and its end.
    unsafe {
        let page = libc::mmap(none, 4096, may, private, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        libc::munmap(page, 4096);
    }
}

#[test]
fn a_wait_for_a_lock_is_measured_with_who_has_it() {
    const WRITE: usize = 3;
    const NS_MAX: i64 = 5_000_000_000;
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("a_wait_for_a_lock_is_measured_with_who_has_it") {
        return;
    }
    let mut watch = start("lock", of_scene(), vec![]);
    let begin_ns = monotonic_ns();
    let parts = [
        Busy::start("scene-one", STAGE, map),
        Busy::start("scene-other", ASIDE, map),
    ];
    let mut waits: Vec<Tracked> = Vec::new();
    let is_owned = |tracked: &Tracked| tracked.other.is_some();
    // Who let the lock go in that moment has it no more.
    while !(waits.len() >= 20 && waits.iter().any(is_owned)) && monotonic_ns() - begin_ns < NS_MAX {
        let hits = watch.take().expect("hits").into_iter();
        waits.extend(
            hits.map(|hit| hit.tracked)
                .filter(|tracked| tracked.series == WRITE),
        );
        std::thread::yield_now();
    }
    drop(parts);
    let end_ns = monotonic_ns();
    let owned = waits.iter().filter(|tracked| is_owned(tracked)).count();
    assert!(waits.len() >= 20 && owned > 0, "{owned} of {}", waits.len());
    for tracked in &waits {
        let task = tracked.task.as_ref().expect("a task");
        assert!(is_within(tracked, begin_ns, end_ns), "{tracked:?}");
        if let Some(owner) = &tracked.other {
            assert_ne!(owner.tid, task.tid, "nobody waits for itself: {tracked:?}");
            assert!(
                owner.comm.starts_with("scene-"),
                "of this process: {tracked:?}"
            );
        }
    }
}

/// A file that two threads read through one descriptor: each read takes a mutex for its whole time.
struct Shared(std::fs::File);

impl Shared {
    const BYTES: usize = 1 << 20;

    fn new() -> Shared {
        let path =
            std::path::Path::new("/dev/shm").join(format!("rts-lock-{}", std::process::id()));
        std::fs::write(&path, vec![1; Shared::BYTES]).expect("written");
        let file = std::fs::File::open(&path).expect("opened");
        std::fs::remove_file(&path).expect("removed");
        Shared(file)
    }

    /// Reads all of it so often; when each read began and ended.
    fn read(&self, times: usize) -> Vec<(i64, i64)> {
        let mut bytes = vec![0; Shared::BYTES];
        let read = |_| {
            let begin_ns = monotonic_ns();
            // SAFETY: the buffer is as long as it says.
            unsafe {
                libc::lseek(std::os::fd::AsRawFd::as_raw_fd(&self.0), 0, libc::SEEK_SET);
                let buffer = bytes.as_mut_ptr().cast();
                libc::read(
                    std::os::fd::AsRawFd::as_raw_fd(&self.0),
                    buffer,
                    bytes.len(),
                );
            }
            (begin_ns, monotonic_ns())
        };
        (0..times).map(read).collect()
    }
}

#[test]
fn what_a_mutex_was_held_while_another_waited_is_told_with_both() {
    const MUTEX: usize = 1;
    const HELD: usize = 4;
    const HELD_MIN: usize = 11;
    // All that a round tells has room in the ring; how often two meet in one is chance.
    const READS: usize = 40;
    const ROUNDS: usize = 100;
    let name = "what_a_mutex_was_held_while_another_waited_is_told_with_both";
    let _privileged = testkit::privileged();
    if !testkit::two_cpus(name) {
        return;
    }
    let mut watch = start("lock", of_scene(), vec![]);
    let shared = Arc::new(Shared::new());
    let (mut hits, mut reads): (Vec<Tracked>, Vec<_>) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let parts = [("scene-one", STAGE), ("scene-other", ASIDE)].map(|(name, cpu)| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                become_task(name, cpu, 0);
                (scene::tid(), shared.read(READS))
            })
        });
        reads.extend(parts.map(|part| part.join().expect("a reader")));
        let told = watch.take().expect("hits").into_iter();
        hits.extend(told.map(|hit| hit.tracked));
        if hits.iter().filter(|hit| hit.series == HELD).count() >= HELD_MIN {
            break;
        }
    }
    let of = |series: usize| hits.iter().filter(move |tracked| tracked.series == series);
    assert_eq!(watch.statistics().expect("counters").losses.lost, 0);
    assert!(of(HELD).count() >= HELD_MIN, "{}", of(MUTEX).count());
    for held in of(HELD) {
        let (owner, waiter) = (
            held.task.as_ref().expect("it"),
            held.other.as_ref().expect("one"),
        );
        assert_ne!(owner.tid, waiter.tid, "{held:?}");
        // It ends with a wait of the other one, and is all of that or its last part.
        let mut waits = of(MUTEX);
        let wait = waits.find(|wait| (wait.key, wait.end) == (held.key, held.end));
        let wait = wait.unwrap_or_else(|| panic!("nobody waited: {held:?}"));
        assert_eq!(wait.task.as_ref().map(|task| task.tid), Some(waiter.tid));
        assert!(wait.begin <= held.begin, "{wait:?} {held:?}");
        // The mutex of the file is held in calls that read it, and only there.
        let Some((_, calls)) = reads.iter().find(|(tid, _)| *tid == owner.tid.0) else {
            continue;
        };
        let begin_ns = held.begin.as_ns();
        let inside = calls
            .iter()
            .any(|(begin, end)| (*begin..=*end).contains(&begin_ns));
        assert!(inside, "{held:?}");
    }
}

/// Ways into the kernel to wait for a futex, beside the call of old that programs of 64 bits make.
#[derive(Clone, Copy, Debug)]
enum FutexCall {
    /// `futex_wait`, as of Linux 6.7.
    Wait,
    /// `futex_waitv`, as of 5.16.
    WaitOfSeveral,
    /// `futex` of the table for programs of 32 bits.
    #[cfg(target_arch = "x86_64")]
    Of32Bits,
}

const FUTEX_WAITV: libc::c_long = 449;
const FUTEX_WAKE: libc::c_long = 454;
const FUTEX_WAIT: libc::c_long = 455;
/// A word of 32 bits of this process alone.
const FUTEX_FLAGS: u32 = 2 | 128;

/// `struct futex_waitv`.
#[repr(C)]
struct FutexWaiter {
    value: u64,
    word: u64,
    flags: u32,
    reserved: u32,
}

/// Waits until the word is no longer 0; what the call returned.
fn wait_by(call: FutexCall, word: &AtomicU32) -> i64 {
    let address = word.as_ptr() as u64;
    let waiter = |word| FutexWaiter {
        value: 0,
        word,
        flags: FUTEX_FLAGS,
        reserved: 0,
    };
    let other = AtomicU32::new(0);
    let waiters = [waiter(address), waiter(other.as_ptr() as u64)];
    let (none, all, monotonic) = (0_u64, u64::from(u32::MAX), libc::CLOCK_MONOTONIC);
    // SAFETY: the words and the list live for the call.
    let result = unsafe {
        match call {
            FutexCall::Wait => libc::syscall(
                FUTEX_WAIT,
                address,
                0_u64,
                all,
                FUTEX_FLAGS,
                none,
                monotonic,
            ),
            FutexCall::WaitOfSeveral => {
                libc::syscall(FUTEX_WAITV, waiters.as_ptr(), 2, 0, none, monotonic)
            }
            #[cfg(target_arch = "x86_64")]
            FutexCall::Of32Bits => return futex_of_32_bits(address),
        }
    };
    match result {
        -1 => -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        result => result,
    }
}

/// The same of programs of 32 bits: a word below 4 GiB.
#[cfg(target_arch = "x86_64")]
fn futex_of_32_bits(address: u64) -> i64 {
    const FUTEX_OF_32_BITS: u64 = 240;
    let mut result = FUTEX_OF_32_BITS;
    // SAFETY: nothing but the word is looked at; a call of 32 bits may lose these registers.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {word}",
            "int 0x80",
            "xchg rbx, {word}",
            word = inout(reg) address => _,
            inout("rax") result,
            in("rcx") libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            in("rdx") 0,
            in("rsi") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result as i32 as i64
}

/// A word that programs of 32 bits reach.
fn low_word() -> &'static AtomicU32 {
    #[cfg(target_arch = "x86_64")]
    let low = libc::MAP_32BIT;
    #[cfg(not(target_arch = "x86_64"))]
    let low = 0;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | low;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a page of our own, which stays.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), 4096, access, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED, "no page");
        &*page.cast::<AtomicU32>()
    }
}

#[test]
fn a_wait_for_a_futex_is_measured_whichever_call_it_is() {
    let _privileged = testkit::privileged();
    for call in [
        FutexCall::Wait,
        FutexCall::WaitOfSeveral,
        #[cfg(target_arch = "x86_64")]
        FutexCall::Of32Bits,
    ] {
        let mut watch = start("futex", of_scene(), vec![]);
        let word = low_word();
        let waked = std::thread::spawn(move || {
            become_task("scene-waker", ASIDE, 0);
            std::thread::sleep(Time::from_millis(30));
            word.store(1, Ordering::SeqCst);
            // Whichever of the two this kernel has.
            let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            let address = word.as_ptr();
            // SAFETY: the word stays.
            unsafe {
                if libc::syscall(FUTEX_WAKE, address, u64::from(u32::MAX), 1, FUTEX_FLAGS) < 0 {
                    libc::syscall(libc::SYS_futex, address, wake, 1);
                }
            }
        });
        let (begin_ns, result, end_ns) = played("scene-waiter", STAGE, || wait_by(call, word));
        waked.join().expect("the one who wakes");
        if result == -i64::from(libc::ENOSYS) {
            testkit::skip(
                &format!("a_wait_for_a_futex_is_measured_whichever_call_it_is ({call:?})"),
                "this kernel has no such call",
            );
            continue;
        }
        assert!(result >= 0, "{call:?}: {result}");
        let waits = intervals(&mut watch, 1);
        let of_word = |tracked: &&Tracked| tracked.key == word.as_ptr() as u64;
        let waits: Vec<_> = waits.iter().filter(of_word).collect();
        assert_eq!(waits.len(), 1, "{call:?}: {waits:#?}");
        assert!(is_within(waits[0], begin_ns, end_ns), "{call:?}: {waits:?}");
        let waker = waits[0].other.as_ref().expect("who woke it");
        assert_eq!(waker.comm, "scene-waker", "{call:?}");
    }
}

/// A mutex of another library than the GNU C library's: what lies where that has the owner is data.
#[test]
fn a_number_beside_a_futex_is_no_owner_unless_it_wakes() {
    let _privileged = testkit::privileged();
    let mut watch = start("futex", of_scene(), vec![]);
    let word = low_word();
    // SAFETY: the page is this test's own.
    let data = unsafe { &*word.as_ptr().add(2).cast::<AtomicU32>() };
    let private = libc::FUTEX_PRIVATE_FLAG;
    let wakes = |name: &'static str| {
        std::thread::spawn(move || {
            become_task(name, ASIDE, 0);
            if name == "scene-owner" {
                // SAFETY: asks for a number.
                let tid = unsafe { libc::syscall(libc::SYS_gettid) };
                data.store(tid as u32, Ordering::SeqCst);
            }
            std::thread::sleep(Time::from_millis(30));
            let (address, wake) = (word.as_ptr(), libc::FUTEX_WAKE | private);
            // SAFETY: the word stays.
            unsafe { libc::syscall(libc::SYS_futex, address, wake, 1) };
        })
    };
    for (name, owner) in [("scene-other", false), ("scene-owner", true)] {
        word.store(2, Ordering::SeqCst);
        data.store(7, Ordering::SeqCst);
        let waker = wakes(name);
        std::thread::sleep(Time::from_millis(5));
        played("scene-waiter", STAGE, || {
            let (address, wait) = (word.as_ptr(), libc::FUTEX_WAIT | private);
            let none = std::ptr::null::<libc::timespec>();
            // SAFETY: the word stays.
            unsafe { libc::syscall(libc::SYS_futex, address, wait, 2, none) };
        });
        waker.join().expect("the one who wakes");
        let waits = intervals(&mut watch, 0);
        let waits: Vec<_> = waits
            .iter()
            .filter(|tracked| tracked.key == word.as_ptr() as u64)
            .collect();
        assert_eq!(waits.len(), 1, "{name}: {waits:#?}");
        let by = waits[0].other.as_ref().expect("who woke it");
        let expected = if owner { by.tid.0 as u64 } else { 0 };
        assert_eq!(waits[0].detail, expected, "{name}: {waits:?}");
    }
}
