//! Packets through the kernel's network on this machine: from a sender over the loopback device to
//! a reader, and how long each waited for it (queuelat's question, of real packets).
//!
//! # Design constraints
//! - The kernel stamps each packet as its device hands it on; that stamp, the sender's and the
//!   reader's are of one clock, and a packet over which that was set is no sample.
//! - Nothing is measured before a packet that was let wait proved that stamps are made then, and
//!   not when it is read.

use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use event::{Cpu, Duration, Error, ErrorKind, Result};
use host::clock::Clock;
use host::task::Policy;

use crate::histogram::{Histogram, Recorder};
use crate::worker;

/// Number, instant and how far the clock was from CLOCK_MONOTONIC.
const PACKET_BYTES: usize = 24;
/// A clock that moved by more while a packet was on its way was set.
const SET_NS: i64 = 1_000_000;
/// How long the packet of the proof waits, and what its stamp must show of that.
const PROOF_WAITS: std::time::Duration = std::time::Duration::from_millis(2);
const PROOF_NS: i64 = 1_000_000;
/// The kernel begins to stamp soon after it was asked to.
const PROOFS_MAX: usize = 500;
/// How long the reader waits for a packet before it looks whether it is over.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(20);

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the sender is.
    pub sender: Cpu,
    /// Where the reader is.
    pub reader: Cpu,
    /// How the reader is scheduled; the sender is as urgent.
    pub policy: Policy,
    /// From one packet to the next.
    pub interval: Duration,
    /// So many are sent at once.
    pub burst: u32,
    /// The width of a histogram's bucket.
    pub bucket: Duration,
    /// How many buckets there are.
    pub buckets: usize,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// From the kernel's stamp to the reader.
    pub queued: Histogram,
    /// From the sender's call to the reader.
    pub whole: Histogram,
    /// How many were sent.
    pub sent: u64,
    /// How many of these never came.
    pub lost: u64,
    /// How many came over which the clock was set.
    pub unmeasured: u64,
    /// The most that waited when one was read.
    pub waiting_max: u64,
}

#[derive(Debug)]
struct Shared {
    queued: Recorder,
    whole: Recorder,
    sent: AtomicU64,
    read: AtomicU64,
    unmeasured: AtomicU64,
    waiting_max: AtomicU64,
    stop: AtomicBool,
    is_sent: AtomicBool,
}

/// Packets that are on their way.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Option<()>>>,
}

impl Run {
    /// Starts both sides, once it is proven that the kernel stamps packets as they come.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where it does not; else what kept a thread from its CPU or its
    /// priority, or us from the loopback device.
    pub fn start(plan: &Plan) -> Result<Run> {
        let cannot = |error| {
            let fix = "the loopback device must be up: sudo ip link set lo up";
            Error::io("no packet comes over the loopback device", error).fix(fix)
        };
        let (sender, reader) = sockets().map_err(cannot)?;
        prove(&sender, &reader, &cannot)?;
        let recorder = || Recorder::new(plan.bucket, plan.buckets);
        let shared = Arc::new(Shared {
            queued: recorder(),
            whole: recorder(),
            sent: AtomicU64::new(0),
            read: AtomicU64::new(0),
            unmeasured: AtomicU64::new(0),
            waiting_max: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            is_sent: AtomicBool::new(false),
        });
        let mut run = Run {
            shared,
            threads: Vec::new(),
        };
        let own = run.shared.clone();
        let place = (Some(plan.reader), plan.policy);
        let reads = move || read_all(&reader, &own);
        let (_, thread) = worker::start("rtscope-read".into(), place.0, place.1, reads)?;
        run.threads.push(thread);
        let (own, plan) = (run.shared.clone(), plan.clone());
        let place = (Some(plan.sender), plan.policy);
        let sends = move || send_all(&sender, &plan, &own);
        let (_, thread) = worker::start("rtscope-send".into(), place.0, place.1, sends)?;
        run.threads.push(thread);
        Ok(run)
    }

    /// How many were read by now, and the longest wait of one.
    pub fn so_far(&self) -> (u64, Option<Duration>) {
        let read = self.shared.read.load(Ordering::Relaxed);
        let extremes = self.shared.queued.read().extremes;
        (read, extremes.map(|extremes| extremes.max))
    }

    /// Whether a side ended by itself.
    pub fn is_over(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends it: what was sent is read first.
    pub fn finish(mut self) -> Reading {
        self.end();
        let of = |count: &AtomicU64| count.load(Ordering::Acquire);
        let (sent, read) = (of(&self.shared.sent), of(&self.shared.read));
        Reading {
            queued: self.shared.queued.read(),
            whole: self.shared.whole.read(),
            sent,
            lost: sent.saturating_sub(read),
            unmeasured: of(&self.shared.unmeasured),
            waiting_max: of(&self.shared.waiting_max),
        }
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // The sender first: the reader ends behind its last packet.
        while let Some(thread) = self.threads.pop() {
            thread.join().ok();
            self.shared.is_sent.store(true, Ordering::Release);
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end();
    }
}

fn sockets() -> std::io::Result<(UdpSocket, UdpSocket)> {
    let reader = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(reader.local_addr()?)?;
    // Nobody else's packets.
    reader.connect(sender.local_addr()?)?;
    reader.set_read_timeout(Some(PATIENCE))?;
    let on: libc::c_int = 1;
    // SAFETY: the option is an integer, which is read during the call.
    let set = unsafe {
        libc::setsockopt(
            reader.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match set {
        0 => Ok((sender, reader)),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// How far the two clocks are apart.
fn offset_ns() -> i64 {
    Clock::Realtime.now_ns() - Clock::Monotonic.now_ns()
}

fn packet(number: u64) -> [u8; PACKET_BYTES] {
    let mut bytes = [0; PACKET_BYTES];
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes[16..].copy_from_slice(&offset_ns().to_ne_bytes());
    bytes[8..16].copy_from_slice(&Clock::Realtime.now_ns().to_ne_bytes());
    bytes
}

/// A packet as it was read.
struct Came {
    number: u64,
    sent_ns: i64,
    offset_ns: i64,
    stamp_ns: i64,
    read_ns: i64,
}

/// The next packet with its stamp; none where none comes in time, or it has no stamp.
fn receive(reader: &UdpSocket) -> Option<Came> {
    let mut bytes = [0u8; PACKET_BYTES];
    // Aligned as the kernel's headers are.
    let mut control = [0u64; 16];
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: the message names memory that is there for as long as it says; headers of control
    // messages are walked as libc does it, and a stamp is read where its header says so.
    let (length, read_ns, stamp_ns) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let length = libc::recvmsg(reader.as_raw_fd(), &raw mut message, 0);
        let read_ns = Clock::Realtime.now_ns();
        let mut stamp_ns = None;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while length >= 0 && !header.is_null() {
            let kind = ((*header).cmsg_level, (*header).cmsg_type);
            if kind == (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) {
                let time = libc::CMSG_DATA(header).cast::<libc::timespec>();
                let time = time.read_unaligned();
                stamp_ns = Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        (length, read_ns, stamp_ns)
    };
    if length != PACKET_BYTES as isize {
        return None;
    }
    let word = |at: usize| {
        let word = bytes[at..].first_chunk().copied().unwrap_or_default();
        u64::from_ne_bytes(word)
    };
    Some(Came {
        number: word(0),
        sent_ns: word(8).cast_signed(),
        offset_ns: word(16).cast_signed(),
        stamp_ns: stamp_ns?,
        read_ns,
    })
}

/// Proves that stamps are made when a packet comes: one that is let wait has an old one.
fn prove(
    sender: &UdpSocket,
    reader: &UdpSocket,
    cannot: &dyn Fn(std::io::Error) -> Error,
) -> Result<()> {
    for _ in 0..PROOFS_MAX {
        sender.send(&packet(0)).map_err(cannot)?;
        std::thread::sleep(PROOF_WAITS);
        let came = receive(reader);
        if came.is_some_and(|came| came.read_ns - came.stamp_ns >= PROOF_NS) {
            return Ok(());
        }
    }
    let what = "this kernel stamps no packet when it comes";
    Err(Error::new(ErrorKind::Unsupported, what)
        .found("a packet that waited had a stamp of when it was read")
        .fix("measure the way through the network by other means: rtscope watch net"))
}

fn send_all(sender: &UdpSocket, plan: &Plan, shared: &Shared) {
    let clock = Clock::Monotonic;
    let mut at_ns = clock.now_ns();
    let mut number = 0;
    while !shared.stop.load(Ordering::Acquire) {
        at_ns = (at_ns + plan.interval.as_ns()).max(clock.now_ns());
        clock.sleep_until(at_ns);
        for _ in 0..plan.burst {
            // Counted before: the reader may be faster.
            shared.sent.store(number + 1, Ordering::Release);
            if sender.send(&packet(number)).is_err() {
                shared.sent.store(number, Ordering::Release);
                return;
            }
            number += 1;
        }
    }
}

fn read_all(reader: &UdpSocket, shared: &Shared) {
    let mut read = 0;
    loop {
        let is_sent = shared.is_sent.load(Ordering::Acquire);
        let Some(came) = receive(reader) else {
            if is_sent {
                return;
            }
            continue;
        };
        let sent = shared.sent.load(Ordering::Acquire);
        let waiting = sent.saturating_sub(came.number + 1);
        let most = shared.waiting_max.load(Ordering::Relaxed).max(waiting);
        shared.waiting_max.store(most, Ordering::Relaxed);
        read += 1;
        shared.read.store(read, Ordering::Release);
        if (offset_ns() - came.offset_ns).abs() > SET_NS {
            let unmeasured = shared.unmeasured.load(Ordering::Relaxed);
            shared.unmeasured.store(unmeasured + 1, Ordering::Relaxed);
            continue;
        }
        shared.queued.add(came.read_ns - came.stamp_ns);
        shared.whole.add(came.read_ns - came.sent_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_is_read_once_and_its_wait_is_a_part_of_its_way() {
        let cpu = rustix::thread::sched_getcpu();
        let cpu = Cpu(u32::try_from(cpu).expect("a CPU"));
        let plan = Plan {
            sender: cpu,
            reader: cpu,
            policy: Policy::Ordinary,
            interval: Duration::from_us(200),
            burst: 3,
            bucket: Duration::from_us(1),
            buckets: 10_000,
        };
        let run = match Run::start(&plan) {
            Ok(run) => run,
            Err(error) => return testkit::skip("packets over loopback", &error.to_string()),
        };
        while run.so_far().0 < 60 {
            std::thread::sleep(PROOF_WAITS);
        }
        let found = run.finish();
        assert_eq!(found.lost, 0, "{found:?}");
        assert!(found.sent >= 60, "{found:?}");
        let samples = (found.queued.samples, found.whole.samples);
        let expect = found.sent - found.unmeasured;
        assert_eq!(samples, (expect, expect));
        let (queued, whole) = (found.queued.mean(), found.whole.mean());
        assert!(queued < whole && queued > Some(Duration::ZERO), "{found:?}");
    }

    #[test]
    fn a_packet_that_waits_has_the_stamp_of_when_it_came() {
        let Ok((sender, reader)) = sockets() else {
            return testkit::skip("packets over loopback", "no loopback device");
        };
        let cannot = |error| Error::io("no packet", error);
        if let Err(error) = prove(&sender, &reader, &cannot) {
            return testkit::skip("packets over loopback", &error.to_string());
        }
        sender.send(&packet(7)).expect("sent");
        std::thread::sleep(PROOF_WAITS);
        let came = receive(&reader).expect("it came");
        assert_eq!(came.number, 7);
        assert!(came.sent_ns <= came.stamp_ns && came.stamp_ns + PROOF_NS <= came.read_ns);
    }
}
