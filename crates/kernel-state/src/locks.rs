//! Which words of programs' memory are locks, by how threads wait for them with `futex`.
//!
//! A watch looks at the word itself (`bpf/blocked.h`); a recording has the call's arguments alone.
//!
//! Who had to sleep for a mutex leaves its word as if others still did, so it wakes them as it lets
//! go. Who does something else, and sleeps for the word again without that, waits there for its
//! next work, as workers of oneTBB do, and whoever uses folly's Baton.

use std::collections::{HashMap, HashSet};

use crate::bind::FutexCommand;
use crate::process::ProcId;

/// A mutex of the GNU C library, of Rust's standard library or of Go's runtime has this value while
/// somebody waits for it (glibc `sysdeps/nptl/lowlevellock.h`).
const CONTENDED: u32 = 2;
/// So many words that are no locks are remembered, so many that are, and so many threads that slept
/// for some. A counter passes the value above once; who forgets one takes it for a lock then.
const COUNTERS_MAX: usize = 1 << 16;

/// So many words are remembered of each of these threads: it may have one lock and wait for
/// another.
const WORDS_MAX: usize = 8;
/// Whom another one was faster than takes no longer to sleep again.
const AGAIN_NS_MAX: i64 = 50_000;

/// A word of a process.
type Word = (ProcId, u64);

/// What a thread does with a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    /// It takes a lock.
    pub is_lock: bool,
    /// It waits there for its next work, as it did when it seemed to take a lock.
    pub is_again: bool,
}

/// Where a thread slept last for what may be a lock.
#[derive(Clone, Copy, Debug)]
struct Slept {
    at: u64,
    /// When that call returned.
    until_ns: Option<i64>,
    /// It lets go of that, or is known not to have.
    settled: bool,
}

/// What was seen of words so far.
#[derive(Debug)]
pub(crate) struct Locks {
    /// Calls are told, and that they return: else nobody knows whether a thread is still in its.
    known: bool,
    /// Threads waited for these to lose another value: they count something.
    counters: HashSet<Word>,
    /// Threads that had slept for these let go of them.
    proven: HashSet<Word>,
    slept: HashMap<ProcId, Vec<Slept>>,
}

impl Locks {
    /// Nothing was seen yet, in a trace with these calls, or without.
    pub fn new(known: bool) -> Locks {
        Locks {
            known,
            counters: HashSet::new(),
            proven: HashSet::new(),
            slept: HashMap::new(),
        }
    }

    /// Whether the trace tells who waits for a lock.
    pub fn are_known(&self) -> bool {
        self.known
    }

    /// `thread` does this on `word`.
    pub fn enters(
        &mut self,
        thread: ProcId,
        word: Word,
        command: FutexCommand,
        now_ns: i64,
    ) -> Use {
        match command {
            _ if !self.known => Use::default(),
            FutexCommand::Lock => Use {
                is_lock: true,
                is_again: false,
            },
            FutexCommand::WaitAt(CONTENDED) => self.sleeps(thread, word, now_ns),
            FutexCommand::WaitAt(_) | FutexCommand::Wait => {
                self.counts(word);
                Use::default()
            }
            FutexCommand::Wake | FutexCommand::WakeAll => {
                self.lets_go(thread, word);
                // Of readers the last one wakes who waits for them.
                if command == FutexCommand::WakeAll {
                    self.prove(word);
                }
                Use::default()
            }
            FutexCommand::Other => Use::default(),
        }
    }

    /// Whether `thread`, which is about to sleep, has not let go of what it slept for before, as
    /// far as is seen. It is told once.
    pub fn is_kept(&mut self, thread: ProcId) -> bool {
        let mut is_kept = false;
        for slept in self.slept.get_mut(&thread).into_iter().flatten() {
            is_kept |= slept.until_ns.is_some() && !std::mem::replace(&mut slept.settled, true);
        }
        is_kept
    }

    /// `thread` wakes who sleeps for `word`.
    fn lets_go(&mut self, thread: ProcId, word: Word) {
        let mut slept = self.slept.get_mut(&thread).into_iter().flatten();
        if let Some(slept) = slept.find(|slept| slept.at == word.1) {
            slept.settled = true;
            self.prove(word);
        }
    }

    fn prove(&mut self, word: Word) {
        if self.proven.len() < COUNTERS_MAX {
            self.proven.insert(word);
        }
    }

    /// A call in which `thread` may have slept for a word returns.
    pub fn returns(&mut self, thread: ProcId, now_ns: i64) {
        for slept in self.slept.get_mut(&thread).into_iter().flatten() {
            slept.until_ns.get_or_insert(now_ns);
        }
    }

    fn sleeps(&mut self, thread: ProcId, word: Word, now_ns: i64) -> Use {
        if self.counters.contains(&word) {
            return Use::default();
        }
        if self.slept.len() >= COUNTERS_MAX {
            self.slept.clear();
        }
        let is_proven = self.proven.contains(&word);
        let slept = self.slept.entry(thread).or_default();
        let last = slept.iter().position(|slept| slept.at == word.1);
        let last = last.map(|place| slept.remove(place));
        let until_ns = last.and_then(|last| last.until_ns).filter(|_| !is_proven);
        let is_again = until_ns.is_some_and(|until_ns| now_ns - until_ns > AGAIN_NS_MAX);
        if slept.len() >= WORDS_MAX {
            slept.remove(0);
        }
        slept.push(Slept {
            at: word.1,
            until_ns: None,
            settled: is_proven || is_again,
        });
        if is_again {
            self.counts(word);
        }
        Use {
            is_lock: !is_again,
            is_again,
        }
    }

    fn counts(&mut self, word: Word) {
        if self.counters.len() < COUNTERS_MAX {
            self.counters.insert(word);
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
                .map(|command| locks.enters(ProcId(8), word, *command, 0).is_lock)
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
        let used = locks.enters(ProcId(1), (ProcId(1), 0x1000), Lock, 0);
        assert_eq!(used, Use::default());
    }

    #[test]
    fn a_word_is_that_of_one_process() {
        let mut locks = Locks::new(true);
        let mut is_lock = |of: u32, command| {
            let of = ProcId(of);
            locks.enters(of, (of, 0x1000), command, 0).is_lock
        };
        assert!(!is_lock(1, WaitAt(1)));
        assert!(is_lock(2, WaitAt(2)));
        assert!(!is_lock(1, WaitAt(2)));
    }

    #[test]
    fn who_sleeps_again_without_letting_go_waits_for_work() {
        let thread = ProcId(8);
        let word = (ProcId(7), 0x1000);
        // How long after it returned it sleeps again, and what it did on the word in between.
        let check = |after_ns: i64, between: Option<FutexCommand>, expect: bool| {
            let mut locks = Locks::new(true);
            assert!(locks.enters(thread, word, WaitAt(2), 0).is_lock);
            locks.returns(thread, 1_000_000);
            if let Some(command) = between {
                locks.enters(thread, word, command, 1_000_000);
            }
            let used = locks.enters(thread, word, WaitAt(2), 1_000_000 + after_ns);
            assert_eq!((used.is_again, used.is_lock), (expect, !expect));
            // From then on it is known.
            locks.returns(thread, 9_000_000);
            let used = locks.enters(thread, word, WaitAt(2), 99_000_000);
            assert_eq!(used.is_lock, between.is_some(), "{after_ns} {between:?}");
        };
        check(100_000, None, true);
        check(100_000, Some(FutexCommand::Wake), false);
        check(100_000, Some(FutexCommand::WakeAll), false);
        // It slept for another word in between.
        let mut locks = Locks::new(true);
        for (at, now_ns) in [(0x1000, 0), (0x2000, 1_000_000)] {
            assert!(
                locks
                    .enters(thread, (ProcId(7), at), WaitAt(2), now_ns)
                    .is_lock
            );
            locks.returns(thread, now_ns + 500_000);
        }
        assert!(locks.enters(thread, word, WaitAt(2), 2_000_000).is_again);
        // Another one had it first.
        let mut locks = Locks::new(true);
        locks.enters(thread, word, WaitAt(2), 0);
        locks.returns(thread, 1_000_000);
        assert!(locks.enters(thread, word, WaitAt(2), 1_010_000).is_lock);
    }
}
