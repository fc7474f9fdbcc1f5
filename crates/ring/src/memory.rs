//! The memory of rings that were made without: their process was not recorded when it started.

use std::fs::File;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::Layout;

/// Rings that nobody asked for are not larger (`RING_BYTES_DEFAULT` in `probe/src/settings.c`).
/// Larger ones have their memory from their own process, or from a recorder that gives them as
/// much: nobody can say of a file of holes that it is all rings, and let the recorder fill the
/// machine's memory.
pub(crate) const GIVEN_BYTES_MAX: u64 = 256 << 10;

/// Makes the file so long. Nobody makes it shorter this way that others made longer.
pub(crate) fn reach(file: &File, end: u64) -> Result<(), Errno> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    if limit.current.is_some_and(|most| end > most) {
        // Else a signal would end us.
        return Err(Errno::FBIG);
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), end - 1, 1) {
        Err(Errno::OPNOTSUPP) => {
            let is_short = rustix::fs::fstat(file)?.st_size.unsigned_abs() < end;
            if is_short {
                rustix::fs::ftruncate(file, end)
            } else {
                Ok(())
            }
        }
        done => done,
    }
}

/// Gives the data of `ring` memory, so that no store into it can fail.
pub(crate) fn give(file: &File, layout: &Layout, ring: u32) -> Result<(), Errno> {
    let offset = layout.data_offset_of(ring);
    match rustix::fs::fallocate(file, FallocateFlags::empty(), offset, layout.ring_bytes) {
        // No shared memory: who put it there has chosen so.
        Err(Errno::OPNOTSUPP) => Ok(()),
        done => done,
    }
}

/// Takes the memory of `ring` back but for two sub-buffers from that of the head on: a thread that
/// is in an event since before may still store there.
pub(crate) fn take_back(file: &File, layout: &Layout, ring: u32, head: u64) -> Result<(), Errno> {
    let (ring_bytes, subbuffer_bytes) = (layout.ring_bytes, layout.subbuffer_bytes);
    let (data, current) = (layout.data_offset_of(ring), head - head % subbuffer_bytes);
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for place in 2..ring_bytes / subbuffer_bytes {
        let place = current.wrapping_add(place * subbuffer_bytes) % ring_bytes;
        match rustix::fs::fallocate(file, flags, data + place, subbuffer_bytes) {
            Err(Errno::OPNOTSUPP) => return Ok(()),
            done => done?,
        }
    }
    Ok(())
}

/// The CPUs of `rings` that are online; all where nobody knows.
pub(crate) fn online(rings: u32) -> Vec<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    online_of(&list, rings)
}

fn online_of(list: &str, rings: u32) -> Vec<u32> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some((first.parse::<u32>().ok()?, last.parse::<u32>().ok()?))
    };
    let ranges: Option<Vec<_>> = list.trim_end().split(',').map(range).collect();
    let Some(ranges) = ranges else {
        return (0..rings).collect();
    };
    let is_online = |cpu: &u32| {
        ranges
            .iter()
            .any(|(first, last)| (first..=last).contains(&cpu))
    };
    (0..rings).filter(is_online).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_that_are_online_are_those_of_the_list() {
        let check = |list: &str, rings: u32, expect: &[u32]| {
            assert_eq!(online_of(list, rings), expect, "{list:?} of {rings}");
        };
        check("0-1\n", 4, &[0, 1]);
        check("0,2-3\n", 8, &[0, 2, 3]);
        check("0-7\n", 2, &[0, 1]);
        check("", 3, &[0, 1, 2]);
        check("none", 2, &[0, 1]);
    }

    #[test]
    fn the_largest_ring_that_is_given_memory_is_the_one_that_nobody_asked_for() {
        let settings = include_str!("../../../probe/src/settings.c");
        let define = "#define RING_BYTES_DEFAULT (UINT64_C(256) << 10)";
        assert!(settings.contains(define), "no longer {GIVEN_BYTES_MAX}");
    }
}
