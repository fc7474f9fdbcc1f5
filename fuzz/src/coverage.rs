//! Which edges of the readers an input runs over: LLVM's inline 8-bit counters, which a stable
//! compiler makes too (`rustc.sh`). Without them every input looks alike, and that is said.

use std::sync::atomic::{AtomicUsize, Ordering};

static START: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Called by every instrumented object before `main`, with the counters of the whole program.
///
/// # Safety
/// Only for the code that the compiler makes: the range must be the counters'.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    START.store(start as usize, Ordering::Relaxed);
    LENGTH.store(
        (stop as usize).saturating_sub(start as usize),
        Ordering::Relaxed,
    );
}

/// The counters, and what was seen of them.
#[derive(Debug, Default)]
pub struct Coverage {
    /// For each counter, a bit for each magnitude that it had.
    seen: Vec<u8>,
    edges: usize,
}

impl Coverage {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Coverage {
            seen: vec![0; LENGTH.load(Ordering::Relaxed)],
            edges: 0,
        }
    }

    /// How many edges there are; zero where the readers were compiled without counters.
    pub fn total(&self) -> usize {
        self.seen.len()
    }

    /// How many of them were seen.
    pub fn edges(&self) -> usize {
        self.edges
    }

    /// Forgets the counts of the run before.
    pub fn reset(&self) {
        for_each_word(|word| *word = 0);
    }

    /// Looks at the counts of a run; returns how many counters had a magnitude not seen before.
    pub fn look(&mut self) -> usize {
        let mut new = 0;
        let mut at = 0;
        let (seen, edges) = (&mut self.seen, &mut self.edges);
        for_each_word(|word| {
            if *word != 0 {
                for (place, count) in word.to_ne_bytes().into_iter().enumerate() {
                    let Some(seen) = seen.get_mut(at + place).filter(|_| count != 0) else {
                        continue;
                    };
                    let bit = magnitude(count);
                    *edges += usize::from(*seen == 0);
                    new += usize::from(*seen & bit == 0);
                    *seen |= bit;
                }
            }
            at += 8;
        });
        new
    }
}

/// A bit for 1, 2, 3, up to 7, 15, 31, 127, 255.
fn magnitude(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..8 => 8,
        8..16 => 16,
        16..32 => 32,
        32..128 => 64,
        _ => 128,
    }
}

/// Hands out the counters, eight at a time; the last few may be left out.
fn for_each_word(mut each: impl FnMut(&mut u64)) {
    let (start, length) = (
        START.load(Ordering::Relaxed),
        LENGTH.load(Ordering::Relaxed),
    );
    if start == 0 {
        return;
    }
    for at in (0..length - length % 8).step_by(8) {
        let word = (start + at) as *mut u64;
        // SAFETY: inside of the counters' section, which lives as long as the program; only this
        // thread runs instrumented code, and unaligned access is asked for as such.
        unsafe {
            let mut value = word.read_unaligned();
            let before = value;
            each(&mut value);
            if value != before {
                word.write_unaligned(value);
            }
        }
    }
}
