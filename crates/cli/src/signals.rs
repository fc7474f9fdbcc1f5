//! Ctrl-C: the first stops and reports, the second warns, the third discards, the fourth kills.
//! Once what was gathered is complete, the next one leaves it as it is and ends. SIGTERM counts
//! too, and what comes within a second of the first is the same request: timeout(1) signals its
//! child and then the group, in which the child is again.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use capture::watch::Calls;
use event::{Error, Result};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1, SIGXFSZ};
use signal_hook::low_level;

/// How often we were asked to stop.
static REQUESTS: Requests = Requests::new();
/// So long after the first request another one is the same.
const SAME_REQUEST_NS: u64 = 1_000_000_000;
/// Said at the second request.
const WARNING: &[u8] = b"\nstopping already; once more discards what was gathered\n";

/// Said at a request that comes behind [`keep`].
const KEPT: &[u8] = b"\nstopped: the recording is complete, its worst latency was not looked for\n";

/// What the person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Go on.
    GoOn,
    /// Stop, and report what there is.
    Report,
    /// Stop, and throw away what there is.
    Discard,
}

/// What to do about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    Nothing,
    Warn,
    /// End at once: what was gathered is complete.
    Leave,
    Die,
}

/// The requests so far. Handlers of signals count them: atomics alone.
#[derive(Debug)]
struct Requests {
    count: AtomicUsize,
    /// When the first came; zero before.
    first_ns: AtomicU64,
    /// What was gathered is complete: there is nothing to discard any more.
    is_complete: AtomicBool,
}

impl Requests {
    const fn new() -> Self {
        Requests {
            count: AtomicUsize::new(0),
            first_ns: AtomicU64::new(0),
            is_complete: AtomicBool::new(false),
        }
    }

    /// Counts a request that comes at `now_ns`, unless it is the first one again.
    fn add(&self, now_ns: u64) -> Reaction {
        let now_ns = now_ns.max(1);
        let first = self
            .first_ns
            .compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err_and(|first_ns| now_ns.saturating_sub(first_ns) < SAME_REQUEST_NS) {
            return Reaction::Nothing;
        }
        if self.is_complete.load(Ordering::Relaxed) {
            return Reaction::Leave;
        }
        match self.count.fetch_add(1, Ordering::Relaxed) {
            0 | 2 => Reaction::Nothing,
            1 => Reaction::Warn,
            _ => Reaction::Die,
        }
    }

    /// Asks to stop, unless somebody did.
    fn stop(&self) {
        self.count.fetch_max(1, Ordering::Relaxed);
    }

    fn request(&self) -> Request {
        match self.count.load(Ordering::Relaxed) {
            0 => Request::GoOn,
            1 | 2 => Request::Report,
            _ => Request::Discard,
        }
    }
}

/// Raised by the first request, once signals are ours.
static ASKED: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

/// Takes SIGINT and SIGTERM over for the rest of the process; the flag is raised by the first.
/// SIGUSR1 does nothing from here on but what [`on_usr1`] adds.
/// Called again, by a verb that is made of others, it gives the same flag.
///
/// # Errors
/// When the operating system refuses.
pub fn take_over() -> Result<Arc<AtomicBool>> {
    let mut taken = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(asked) = &*taken {
        return Ok(asked.clone());
    }
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let handler = move || match REQUESTS.add(now_ns()) {
            Reaction::Nothing => {}
            // Who cannot be told is not told.
            Reaction::Warn => drop(rustix::io::write(std::io::stderr(), WARNING)),
            Reaction::Leave => {
                give_terminal_back();
                rustix::io::write(std::io::stderr(), KEPT).ok();
                low_level::exit(0);
            }
            Reaction::Die => {
                give_terminal_back();
                // Die of it, so that the parent sees why.
                low_level::emulate_default_handler(signal).ok();
            }
        };
        // SAFETY: the handler only touches atomics, reads a clock, writes to a file descriptor and
        // calls an async-signal-safe function.
        unsafe { low_level::register(signal, handler) }.map_err(refused)?;
        signal_hook::flag::register(signal, asked.clone()).map_err(refused)?;
    }
    // `pkill -USR1 rtscope` is for a watch that heeds it; no other one shall die of it.
    // SAFETY: the handler does nothing. Programs that we start do not inherit it.
    unsafe { low_level::register(SIGUSR1, || ()) }.map_err(refused)?;
    // Ctrl-Z: what the shell shows next is not to stand on our screen. Who goes on draws again.
    let stop = || {
        give_terminal_back();
        low_level::emulate_default_handler(SIGTSTP).ok();
    };
    // SAFETY: the handler touches atomics and a descriptor, and raises a signal.
    unsafe { low_level::register(SIGTSTP, stop) }.map_err(refused)?;
    *taken = Some(asked.clone());
    Ok(asked)
}

/// The screen as it was before, and the keys. Handlers of signals may call it.
fn give_terminal_back() {
    crate::live::leave_alternate_screen();
    crate::keys::give_back();
}

/// Calls at each SIGUSR1.
///
/// # Errors
/// When the operating system refuses.
pub fn on_usr1(calls: Arc<Calls>) -> Result<()> {
    // SAFETY: the handler touches an atomic, reads a clock and writes to a file descriptor.
    let registered = unsafe { low_level::register(SIGUSR1, move || calls.signal()) };
    registered.map(drop).map_err(refused)
}

/// A terminal that is closed ends this process no more.
///
/// # Errors
/// When the operating system refuses.
pub fn outlive_terminal() -> Result<()> {
    // SAFETY: the handler does nothing.
    let registered = unsafe { low_level::register(SIGHUP, || ()) };
    registered.map(drop).map_err(refused)
}

/// A terminal that is closed asks to stop, as Ctrl-C does; not where that is to be ignored, as
/// nohup(1) says.
///
/// # Errors
/// When the operating system refuses.
pub fn heed_terminal() -> Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores(&status, SIGHUP) {
        return Ok(());
    }
    // The shell may signal too: whatever comes, nothing is discarded.
    let handler = || {
        REQUESTS.add(now_ns());
    };
    // SAFETY: the handler only touches atomics and reads a clock.
    unsafe { low_level::register(SIGHUP, handler) }.map_err(refused)?;
    let registered = signal_hook::flag::register(SIGHUP, take_over()?);
    registered.map(drop).map_err(refused)
}

/// Asks to stop, as the first Ctrl-C does.
pub fn stop() {
    REQUESTS.stop();
    let taken = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(asked) = &*taken {
        asked.store(true, Ordering::Relaxed);
    }
}

/// What was gathered is complete and was told: from here on a request ends this process at once,
/// with exit code 0.
pub fn keep() {
    REQUESTS.is_complete.store(true, Ordering::Relaxed);
}

/// SIGALRM ends this process no more, as it does not end cyclictest.
///
/// # Errors
/// When the operating system refuses.
pub fn outlive_alarm() -> Result<()> {
    // SAFETY: the handler does nothing.
    let registered = unsafe { low_level::register(SIGALRM, || ()) };
    registered.map(drop).map_err(refused)
}

/// A file that may not grow further (`ulimit -f`) is a failed write, as on a full disk, not the
/// end of this process. What it starts has the limit as it was: a handler does not outlive exec.
pub fn outlive_file_limit() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !ignores(&status, SIGXFSZ) {
        // SAFETY: the handler does nothing. Where there can be none, the signal ends the process.
        unsafe { low_level::register(SIGXFSZ, || ()) }.ok();
    }
}

/// Whether a process with this `/proc/PID/status` ignores `signal`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000) + now.tv_nsec as u64
}

fn refused(error: std::io::Error) -> Error {
    Error::io("cannot handle signals", error)
}

/// Whether the person asked to stop more than once.
pub fn is_asked_again() -> bool {
    REQUESTS.count.load(Ordering::Relaxed) > 1
}

/// What the person wants now.
pub fn request() -> Request {
    REQUESTS.request()
}

/// Whether what was gathered is to be thrown away; then this says so.
pub fn discarded() -> bool {
    let discarded = request() == Request::Discard;
    if discarded {
        note!("discarded");
    }
    discarded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_signal_is_ignored_is_a_bit_in_the_processs_status() {
        let check = |mask: &str, signal: i32, expect: bool| {
            let status = format!("SigBlk:\tffff\nSigIgn:\t{mask}\nSigCgt:\tffff\n");
            assert_eq!(ignores(&status, signal), expect, "{mask}");
        };
        check("0000000000000001", SIGHUP, true);
        check("0000000000000002", SIGHUP, false);
        check("0000000000000002", SIGINT, true);
        check("", SIGHUP, false);
    }

    #[test]
    fn what_comes_within_a_second_is_the_same_request_and_discarding_takes_a_third() {
        let check = |times_ms: &[u64], request: Request, last: Reaction| {
            let requests = Requests::new();
            let reactions: Vec<_> = times_ms
                .iter()
                .map(|ms| requests.add(ms * 1_000_000))
                .collect();
            assert_eq!(requests.request(), request, "{times_ms:?}");
            assert_eq!(reactions.last(), Some(&last), "{times_ms:?}");
        };
        check(&[0], Request::Report, Reaction::Nothing);
        check(&[7], Request::Report, Reaction::Nothing);
        // Of timeout(1), and of one inside of another.
        check(&[7, 7], Request::Report, Reaction::Nothing);
        check(&[7, 8, 9, 1006], Request::Report, Reaction::Nothing);
        check(&[7, 1007], Request::Report, Reaction::Warn);
        check(&[7, 8, 1007], Request::Report, Reaction::Warn);
        check(&[7, 2000, 2001], Request::Discard, Reaction::Nothing);
        check(&[7, 2000, 2001, 2002], Request::Discard, Reaction::Die);
    }

    #[test]
    fn what_is_complete_is_left_at_the_next_request_and_never_discarded() {
        let check = |before_ms: &[u64], behind_ms: &[u64], last: Reaction| {
            let requests = Requests::new();
            let add = |ms: &u64| requests.add(ms * 1_000_000);
            let _ = before_ms.iter().map(add).last();
            requests.is_complete.store(true, Ordering::Relaxed);
            assert_eq!(
                behind_ms.iter().map(add).last(),
                Some(last),
                "{before_ms:?}"
            );
        };
        check(&[], &[7], Reaction::Leave);
        check(&[7], &[1007], Reaction::Leave);
        // timeout(1)'s second signal, behind a recording that was complete at once.
        check(&[7], &[8], Reaction::Nothing);
        check(&[7, 2000], &[2001], Reaction::Leave);
    }

    #[test]
    fn whose_reader_has_gone_stops_once_and_discards_nothing() {
        let requests = Requests::new();
        (0..5).for_each(|_| requests.stop());
        assert_eq!(requests.request(), Request::Report);
        // Ctrl-C before it is no other request.
        let requests = Requests::new();
        requests.add(7_000_000);
        requests.stop();
        assert_eq!(requests.request(), Request::Report);
    }
}
