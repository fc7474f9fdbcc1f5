//! Ctrl-C: the first stops and reports, the second discards, the third kills. SIGTERM counts too.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use event::{Error, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level;

/// How often we were asked to stop.
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

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

/// Raised by the first request, once signals are ours.
static ASKED: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

/// Takes SIGINT and SIGTERM over for the rest of the process; the flag is raised by the first.
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
        let handler = move || {
            if REQUESTS.fetch_add(1, Ordering::Relaxed) >= 2 {
                crate::live::leave_alternate_screen();
                // Third: die of it, so that the parent sees why.
                low_level::emulate_default_handler(signal).ok();
            }
        };
        // SAFETY: the handler only touches atomics, writes to a file descriptor and calls an
        // async-signal-safe function.
        unsafe { low_level::register(signal, handler) }.map_err(refused)?;
        signal_hook::flag::register(signal, asked.clone()).map_err(refused)?;
    }
    *taken = Some(asked.clone());
    Ok(asked)
}

fn refused(error: std::io::Error) -> Error {
    Error::io("cannot handle signals", error)
}

/// What the person wants now.
pub fn request() -> Request {
    match REQUESTS.load(Ordering::Relaxed) {
        0 => Request::GoOn,
        1 => Request::Report,
        _ => Request::Discard,
    }
}
