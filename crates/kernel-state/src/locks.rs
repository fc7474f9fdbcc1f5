//! Which words of programs' memory are locks, by how threads wait for them with `futex`.
//!
//! A watch looks at the word itself (`bpf/blocked.h`); a recording has the call's arguments alone.

use std::collections::HashSet;

use crate::bind::FutexCommand;
use crate::process::ProcId;

/// A mutex of the GNU C library, of Rust's standard library or of Go's runtime has this value while
/// somebody waits for it (glibc `sysdeps/nptl/lowlevellock.h`).
const CONTENDED: u32 = 2;
/// So many words that are no locks are remembered. A counter passes the value above once; who
/// forgets one takes it for a lock then.
const COUNTERS_MAX: usize = 1 << 16;

/// A word of a process.
type Word = (ProcId, u64);

/// What was seen of words so far.
#[derive(Debug)]
pub(crate) struct Locks {
    /// Calls are told, and that they return: else nobody knows whether a thread is still in its.
    known: bool,
    /// Threads waited for these to lose another value: they count something.
    counters: HashSet<Word>,
}

impl Locks {
    /// Nothing was seen yet, in a trace with these calls, or without.
    pub fn new(known: bool) -> Locks {
        Locks {
            known,
            counters: HashSet::new(),
        }
    }

    /// Whether the trace tells who waits for a lock.
    pub fn are_known(&self) -> bool {
        self.known
    }

    /// Whether a thread that does this on `word` takes a lock.
    pub fn is_lock(&mut self, word: Word, command: FutexCommand) -> bool {
        match command {
            _ if !self.known => false,
            FutexCommand::Lock => true,
            FutexCommand::WaitAt(CONTENDED) => !self.counters.contains(&word),
            FutexCommand::WaitAt(_) | FutexCommand::Wait => {
                if self.counters.len() < COUNTERS_MAX {
                    self.counters.insert(word);
                }
                false
            }
            FutexCommand::WakeAll | FutexCommand::Other => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FutexCommand::{Lock, Other, Wait, WaitAt};

    #[test]
    fn a_word_at_two_is_a_lock_unless_it_counted_up_to_that() {
        let check = |commands: &[FutexCommand], expect: &[bool]| {
            let mut locks = Locks::new(true);
            let word = (ProcId(7), 0x1000);
            let found: Vec<bool> = commands
                .iter()
                .map(|command| locks.is_lock(word, *command))
                .collect();
            assert_eq!(found, expect, "{commands:?}");
        };
        check(&[WaitAt(2), WaitAt(2)], &[true, true]);
        check(&[Lock, Lock], &[true, true]);
        check(&[Other, WaitAt(2)], &[false, true]);
        // A counter, an event, a wait with a time-out.
        check(&[WaitAt(0), WaitAt(1), WaitAt(2)], &[false, false, false]);
        check(&[Wait, WaitAt(2)], &[false, false]);
    }

    #[test]
    fn without_returns_nobody_is_known_to_wait() {
        let mut locks = Locks::new(false);
        assert!(!locks.is_lock((ProcId(1), 0x1000), Lock));
    }

    #[test]
    fn a_word_is_that_of_one_process() {
        let mut locks = Locks::new(true);
        assert!(!locks.is_lock((ProcId(1), 0x1000), WaitAt(1)));
        assert!(locks.is_lock((ProcId(2), 0x1000), WaitAt(2)));
        assert!(!locks.is_lock((ProcId(1), 0x1000), WaitAt(2)));
    }
}
