//! Ends the sleep of a measuring thread before its instant: when the measurement is over, or when
//! the clock was set back and the instant lies hours ahead.

use std::os::unix::thread::JoinHandleExt;
use std::sync::Once;
use std::thread::JoinHandle;

/// Ignored unless somebody handles it, so that one that comes late does no harm.
pub(crate) const SIGNAL: libc::c_int = libc::SIGURG;

/// Does nothing: that it was called ends the sleep.
extern "C" fn wake_up(_: libc::c_int) {}

/// Makes this process ready for [`nudge`]; before the first thread that is to be nudged.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all zero is an empty mask without flags, so that sleeps are not begun again; the
        // handler touches nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = wake_up as extern "C" fn(libc::c_int) as usize;
            libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut());
        }
    });
}

/// Ends the present sleep of `thread`, if it sleeps.
pub(crate) fn nudge<T>(thread: &JoinHandle<T>) {
    if thread.is_finished() {
        return;
    }
    // SAFETY: it is not joined yet, as there is a handle to it.
    unsafe { libc::pthread_kill(thread.as_pthread_t(), SIGNAL) };
}
