//! Single keys from the terminal on stdin, for what fills its screen: neither shown nor waited for
//! until the line is complete. The terminal gets its own way back at the end, when somebody stops
//! us, and when we die.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr,
};

/// How the terminal was.
static BEFORE: OnceLock<Termios> = OnceLock::new();
/// Whether it is another way now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether we are those whom the terminal hears; who is not must not touch it.
pub fn is_in_foreground() -> bool {
    let group = tcgetpgrp(std::io::stdin());
    group.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Takes keys one by one from here on; nothing where stdin is no terminal. Called again, it does
/// what a stop has undone.
pub fn take() {
    if TAKEN.load(Ordering::Relaxed) || !isatty(std::io::stdin()) || !is_in_foreground() {
        return;
    }
    let Ok(now) = tcgetattr(std::io::stdin()) else {
        return;
    };
    let mut single = BEFORE.get_or_init(|| now).clone();
    single.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
    if tcsetattr(std::io::stdin(), OptionalActions::Now, &single).is_ok() {
        TAKEN.store(true, Ordering::Relaxed);
    }
}

/// Makes the terminal what it was. Handlers of signals may call it.
pub fn give_back() {
    if TAKEN.swap(false, Ordering::Relaxed)
        && let Some(before) = BEFORE.get()
    {
        // Who cannot be given it back has no terminal any more.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
    }
}

/// The keys that were pressed since the last time.
pub fn pressed() -> Vec<u8> {
    let mut keys = Vec::new();
    while TAKEN.load(Ordering::Relaxed) && keys.len() < 64 {
        let stdin = std::io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut key = [0];
        let is_there = poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0);
        if !is_there || rustix::io::read(&stdin, &mut key) != Ok(1) {
            break;
        }
        keys.push(key[0]);
    }
    keys
}
