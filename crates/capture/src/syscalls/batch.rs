//! Records between the kernel's rings and the trace: a text that could not be read when its call
//! began is taken from the call's end, before the beginning is written.

use std::collections::HashMap;

use abi::raw::read;
use abi::syscalls as raw;
use abi::syscalls::RawSyscall;
use event::{Cpu, Duration, Instant};

use super::plan::contents_bytes;

/// So long a beginning waits for its end.
const WAIT_MAX: Duration = Duration::from_ms(200);
/// No CPU keeps more back.
const HELD_BYTES_MAX: usize = 8 << 20;

/// What the rings gave and is not written yet.
#[derive(Debug)]
pub(super) struct Batch {
    cpus: Vec<(Cpu, Vec<u8>)>,
    /// Ends that bring the contents of their beginning, by thread.
    ends: HashMap<i32, Vec<(RawSyscall, Vec<u8>)>>,
}

/// A record with its contents.
type Whole<'b> = (RawSyscall, &'b [u8]);

impl Batch {
    pub fn new(cpus: &[Cpu]) -> Self {
        Batch {
            cpus: cpus.iter().map(|cpu| (*cpu, Vec::new())).collect(),
            ends: HashMap::new(),
        }
    }

    /// Takes in what the ring of `cpu` gave.
    pub fn add(&mut self, cpu: Cpu, bytes: &[u8]) {
        let Some((_, held)) = self.cpus.iter_mut().find(|(of, _)| *of == cpu) else {
            return;
        };
        let mut at = 0;
        while let Some((end, contents)) = whole(&bytes[at..]) {
            at += size_of::<RawSyscall>() + contents.len();
            if end.flags & raw::SYSCALL_AGAIN != 0 {
                let ends = self.ends.entry(end.tid).or_default();
                ends.push((end, contents.to_vec()));
            }
        }
        held.extend_from_slice(&bytes[..at]);
    }

    /// Gives each CPU's records away, in their order, until one has to wait. `now` is not earlier
    /// than any of them.
    ///
    /// # Errors
    /// What `write` gives.
    pub fn drain<E>(
        &mut self,
        now: Instant,
        is_last: bool,
        mut write: impl FnMut(Cpu, &RawSyscall, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let waits_since = now - WAIT_MAX;
        for (cpu, held) in &mut self.cpus {
            let must = is_last || held.len() > HELD_BYTES_MAX;
            let mut at = 0;
            while let Some((record, contents)) = whole(&held[at..]) {
                let size = size_of::<RawSyscall>() + contents.len();
                let is_entry = record.flags & raw::SYSCALL_EXIT == 0;
                if is_entry && record.lengths.contains(&raw::UNREADABLE) {
                    let is_old = Instant::from_ns(record.time_ns as i64) < waits_since;
                    match take_end(&mut self.ends, &record) {
                        Some((end, late)) => {
                            let lengths = end.lengths;
                            write(*cpu, &RawSyscall { lengths, ..record }, &late)?;
                        }
                        None if must || is_old => write(*cpu, &record, contents)?,
                        None => break,
                    }
                } else if record.flags & raw::SYSCALL_AGAIN != 0 {
                    // Its contents are the beginning's.
                    let lengths = Default::default();
                    write(*cpu, &RawSyscall { lengths, ..record }, &[])?;
                } else {
                    write(*cpu, &record, contents)?;
                }
                at += size;
            }
            held.drain(..at);
        }
        self.forget(waits_since);
        Ok(())
    }

    /// When the first record came that has to wait; none when none does.
    pub fn first_held(&self) -> Option<Instant> {
        let firsts = self.cpus.iter().filter_map(|(_, held)| whole(held));
        firsts
            .map(|(record, _)| Instant::from_ns(record.time_ns as i64))
            .min()
    }

    /// Ends whose beginnings were written, or lost.
    fn forget(&mut self, before: Instant) {
        self.ends.retain(|_, ends| {
            ends.retain(|(end, _)| Instant::from_ns(end.time_ns as i64) >= before);
            !ends.is_empty()
        });
    }
}

/// The end of the call that `entry` begins.
fn take_end(
    ends: &mut HashMap<i32, Vec<(RawSyscall, Vec<u8>)>>,
    entry: &RawSyscall,
) -> Option<(RawSyscall, Vec<u8>)> {
    let of_thread = ends.get_mut(&entry.tid)?;
    let place = of_thread
        .iter()
        .position(|(end, _)| end.number == entry.number && end.time_ns >= entry.time_ns)?;
    Some(of_thread.remove(place))
}

/// The record at the start of `bytes`.
fn whole(bytes: &[u8]) -> Option<Whole<'_>> {
    let record: RawSyscall = read(bytes)?;
    let behind = bytes.get(size_of::<RawSyscall>()..)?;
    let contents = behind.get(..contents_bytes(&record))?;
    Some((record, contents))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNREAD: [u16; raw::CONTENTS_MAX] = [raw::UNREADABLE, 0, 0];
    const READ: [u16; raw::CONTENTS_MAX] = [2, 0, 0];

    fn record(time_ns: u64, tid: i32, flags: u16, lengths: [u16; raw::CONTENTS_MAX]) -> Vec<u8> {
        let record = RawSyscall {
            time_ns,
            tid,
            flags,
            lengths,
            ..RawSyscall::default()
        };
        let mut bytes = abi::raw::bytes(&record).to_vec();
        let text = if lengths == READ { &b"x\0"[..] } else { &[] };
        bytes.extend_from_slice(text);
        bytes
    }

    /// What comes out after each step, as `cpu:time:contents`.
    fn check(steps: &[(u32, Vec<u8>)], now_ms: i64, is_last: bool, expect: &str) {
        let mut batch = Batch::new(&[Cpu(0), Cpu(1)]);
        for (cpu, bytes) in steps {
            batch.add(Cpu(*cpu), bytes);
        }
        let mut out = Vec::new();
        let now = Instant::from_ns(now_ms * 1_000_000);
        let written = batch.drain(now, is_last, |cpu, record, contents| {
            let text = String::from_utf8_lossy(contents);
            let text = text.trim_end_matches('\0');
            out.push(format!("{}:{}:{text}", cpu.0, record.time_ns));
            Ok::<(), ()>(())
        });
        assert_eq!(written, Ok(()));
        assert_eq!(out.join(" "), expect);
    }

    #[test]
    fn a_text_that_was_not_there_at_the_entry_is_that_of_the_exit() {
        let (exit, again) = (raw::SYSCALL_EXIT, raw::SYSCALL_EXIT | raw::SYSCALL_AGAIN);
        let entry = |at, tid| record(at, tid, 0, UNREAD);
        let whole = |at, tid| record(at, tid, 0, READ);
        let end = |at, tid| record(at, tid, again, READ);
        check(
            &[(0, whole(1, 7)), (0, record(2, 7, exit, [0; 3]))],
            1,
            false,
            "0:1:x 0:2:",
        );
        check(&[(0, entry(1, 7)), (0, end(2, 7))], 1, false, "0:1:x 0:2:");
        // It ended on another CPU, or before another thread's.
        check(&[(0, entry(1, 7)), (1, end(2, 7))], 1, false, "0:1:x 1:2:");
        check(&[(0, entry(1, 7)), (1, end(2, 8))], 1, false, "1:2:");
        // What stands behind one that waits waits too.
        check(&[(0, entry(1, 7)), (0, whole(2, 8))], 1, false, "");
        check(&[(0, entry(1, 7)), (0, whole(2, 8))], 1, true, "0:1: 0:2:x");
        check(
            &[(0, entry(1, 7)), (0, whole(2, 8))],
            300,
            false,
            "0:1: 0:2:x",
        );
        // Its own end, not that of its next call.
        check(
            &[
                (0, entry(1, 7)),
                (0, end(2, 7)),
                (0, entry(3, 7)),
                (0, end(4, 7)),
            ],
            1,
            false,
            "0:1:x 0:2: 0:3:x 0:4:",
        );
        // A record that is cut short is not there.
        check(&[(0, whole(1, 7)[..80].to_vec())], 1, true, "");
    }
}
