//! Ends the sleep of a measuring thread before its instant: when the measurement is over, or when
//! the clock was set back and the instant lies hours ahead.

use std::os::unix::thread::JoinHandleExt;
use std::sync::Once;
use std::thread::JoinHandle;

/// Ignored unless somebody handles it, so that one that comes late does no harm.
const SIGNAL: libc::c_int = libc::SIGURG;

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

/// Keeps all other signals from this thread: another one takes them.
pub(crate) fn block_other_signals() {
    // SAFETY: the set is filled by the call before its use; nothing else is touched.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigdelset(&raw mut all, SIGNAL);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}
