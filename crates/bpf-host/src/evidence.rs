//! Reading the evidence rings, which the kernel overwrites while we read.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use abi::raw;
use event::evidence::{self, Machine};
use event::{Cpu, Error, Instant, Result};
use libbpf_rs::{MapCore, Object};
use memmap2::{Mmap, MmapOptions};

use crate::{kernel, object};

/// What the rings hold now.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The records, in the order of their times.
    pub records: Vec<evidence::Evidence>,
    /// Slots that were overwritten while they were read, or make no sense.
    pub overtaken: u64,
    /// Records that newer ones had overwritten before; history, unless they are about what is asked
    /// for.
    pub overwritten: u64,
    /// Of which CPUs that is, and up to when.
    pub gone: Vec<Gone>,
}

/// Records of a CPU that newer ones have overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// The CPU.
    pub cpu: Cpu,
    /// They are older than this.
    pub before: Instant,
}

/// So many records are looked at for when the ones before them were written: a few tell of a moment
/// before their own.
const WRITTEN_WITH: usize = 8;

/// Before when a ring's records are gone of which these numbers and times are left, the oldest
/// first: those before the number `first`.
fn gone_before(left: &[(u64, Instant)], first: u64) -> Instant {
    let behind = left.iter().filter(|(number, _)| *number >= first);
    let times = behind.take(WRITTEN_WITH).map(|(_, time)| *time);
    // Nothing is left that says when.
    times.max().unwrap_or(Instant::MAX)
}

/// The mapped rings of all CPUs. A clone reads the same rings, from any thread, without a system
/// call, and what they held last when the watch is gone.
#[derive(Clone)]
pub struct EvidenceRings {
    mapping: Arc<Mmap>,
    cpus: usize,
    machine: Machine,
}

const RING_BYTES: usize = size_of::<raw::EvidenceRing>();
const SLOT_BYTES: usize = size_of::<raw::Evidence>();
const SLOTS_OFFSET: usize = std::mem::offset_of!(raw::EvidenceRing, slots);

impl EvidenceRings {
    pub(crate) fn map(object: &Object) -> Result<Self> {
        let map = object::map(object, "evidence")?;
        let cpus = map.max_entries() as usize;
        let fd = map.as_fd().as_raw_fd();
        // SAFETY: the length is the map's own, which nobody can shrink; the bytes change under us
        // and are therefore read as atomic words only.
        let mapping = unsafe { MmapOptions::new().len(cpus * RING_BYTES).map(fd) }
            .map_err(|cause| Error::io("cannot map the evidence rings", cause))?;
        Ok(EvidenceRings {
            mapping: Arc::new(mapping),
            cpus,
            machine: Machine {
                model: kernel::preemption_model(),
            },
        })
    }

    /// All whole records that the rings hold now: the newest of each CPU.
    pub fn read(&self) -> Evidence {
        self.read_new(&mut Vec::new())
    }

    /// Those that came since `seen` was last handed in: how many of each CPU were read. One that is
    /// being written comes the next time.
    pub fn read_new(&self, seen: &mut Vec<u64>) -> Evidence {
        let mut found = Evidence::default();
        seen.resize(self.cpus, 0);
        for (cpu, seen) in seen.iter_mut().enumerate() {
            let ring = cpu * RING_BYTES;
            let head = self.word(ring).load(Ordering::Acquire);
            let first = head.saturating_sub(raw::EVIDENCE_SLOTS as u64);
            found.overwritten += first.saturating_sub(*seen);
            let (mut open, mut left) = (head, Vec::new());
            for number in first.max(*seen)..head {
                let slot = number as usize % raw::EVIDENCE_SLOTS;
                let at = ring + SLOTS_OFFSET + slot * SLOT_BYTES;
                let record = self
                    .slot(at, number)
                    .and_then(|slot| abi::decode_evidence(&slot, Cpu(cpu as u32), &self.machine));
                match record {
                    Some(record) => {
                        left.push((number, record.time()));
                        found.records.push(record);
                    }
                    None => {
                        found.overtaken += 1;
                        open = open.min(number);
                    }
                }
            }
            // Meanwhile the writer went on.
            let end = self.word(ring).load(Ordering::Acquire);
            let first = end.saturating_sub(raw::EVIDENCE_SLOTS as u64);
            if first > *seen {
                let before = gone_before(&left, first);
                found.gone.push(Gone {
                    cpu: Cpu(cpu as u32),
                    before,
                });
            }
            *seen = open;
        }
        found.records.sort_by_key(evidence::Evidence::time);
        found
    }

    /// The slot at this byte, if it holds this record, whole, before and after it was copied.
    fn slot(&self, at: usize, number: u64) -> Option<raw::Evidence> {
        let whole = 2 * number + 2;
        if self.word(at).load(Ordering::Acquire) != whole {
            return None;
        }
        let mut copy = [0u8; SLOT_BYTES];
        for (index, bytes) in copy.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(
                &self
                    .word(at + 8 * index)
                    .load(Ordering::Relaxed)
                    .to_ne_bytes(),
            );
        }
        fence(Ordering::Acquire);
        (self.word(at).load(Ordering::Relaxed) == whole)
            .then(|| raw::read(&copy))
            .flatten()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        let bytes = &self.mapping[at..at + 8];
        // SAFETY: in bounds by the slice above, aligned because the mapping is page-aligned and
        // `at` a multiple of 8; an atomic may share memory with a writer in the kernel.
        unsafe { &*bytes.as_ptr().cast::<AtomicU64>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_older_than_what_was_written_next_whatever_that_tells_of() {
        let check = |left: &[(u64, i64)], first: u64, expect: Instant| {
            let at = |(number, ns): &(u64, i64)| (*number, Instant::from_ns(*ns));
            let left: Vec<_> = left.iter().map(at).collect();
            assert_eq!(gone_before(&left, first), expect);
        };
        let at = Instant::from_ns;
        check(&[(5, 100), (6, 110)], 5, at(110));
        // The waker of a hit is told of as it was long before.
        check(&[(5, 3), (6, 110), (7, 111)], 5, at(111));
        // These were overwritten while they were read.
        check(&[(5, 100), (6, 110), (9, 200)], 9, at(200));
        let many: Vec<_> = (0..100)
            .map(|number| (number, 10 * number as i64))
            .collect();
        check(&many, 0, at(70));
        check(&[(5, 100)], 200, Instant::MAX);
    }
}
