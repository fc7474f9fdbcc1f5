//! How large the rings of programs are to be that start while they are recorded.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use host::memory;

/// What the rings of a program have for each CPU that starts while it is recorded, where there is
/// room: one burst of 200,000 events with two numbers fits in.
pub const RING_BYTES_USUAL: u64 = 8 << 20;
/// Of many processes at once each has less, but no less than this.
const RING_BYTES_MIN: u64 = 64 << 10;
/// So much the rings of one CPU take together, of all processes, and a part of the free memory.
const ALL_BYTES_MAX: u64 = 256 << 20;
const FREE_PARTS: u64 = 8;
/// Of what is left of that, the next process takes one part in so many.
const LEFT_PARTS: u64 = 16;
/// Where all programs of a user have a bound, the next takes one part in so many of what is left,
/// as those do that start (`USER_PARTS` in `probe/src/settings.c`).
const USER_PARTS: u64 = 512;
/// For so long the machine has the memory that it was asked for.
const MEMORY_STAYS: Duration = Duration::from_millis(50);
/// Who starts meanwhile is told of more room only when it is so many times as much.
const GROWTH: u64 = 4;
/// How the lines of a session's file begin that say it; the last of them never changes.
const EXACTLY: &str = "!ring ";
const AT_MOST: &str = "!ring-at-most ";
const IN_ALL: &str = "!rings-in-all ";
const PER_USER: &str = "!rings-per-user ";

/// What processes go by whose user has so many bytes for all of them, whatever each asks for.
pub(super) fn line_of_user(bytes: u64) -> String {
    format!("{PER_USER}{bytes}")
}

/// What programs are told of their rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RingRoom {
    /// What somebody asked for: told as it is.
    asked_bytes: Option<u64>,
    /// What the rings of one CPU may take together.
    all_bytes: u64,
    /// What was told last.
    told_bytes: u64,
}

impl RingRoom {
    /// Of a machine whose shared memory at `folder` is that of so many CPUs.
    pub fn new(asked_bytes: Option<u64>, folder: &Path, cpus: u32) -> RingRoom {
        let facts = rustix::fs::statvfs(folder).ok();
        let free_bytes = facts.map_or(0, |facts| facts.f_bavail.saturating_mul(facts.f_frsize));
        RingRoom::of(asked_bytes, free_bytes, cpus)
    }

    fn of(asked_bytes: Option<u64>, free_bytes: u64, cpus: u32) -> RingRoom {
        let all_bytes = (free_bytes / FREE_PARTS / u64::from(cpus.max(1))).min(ALL_BYTES_MAX);
        RingRoom {
            asked_bytes,
            all_bytes,
            told_bytes: share(all_bytes, 0),
        }
    }

    /// The line of a session's file, which [`RingRoom::note`] can change.
    pub fn line(&self) -> String {
        match self.asked_bytes {
            Some(bytes) => format!("{EXACTLY}{bytes}"),
            None => format!("{AT_MOST}{}", self.told_bytes),
        }
    }

    /// What processes go by that start faster than a recorder can tell them: they look for
    /// themselves what others have.
    pub fn line_of_all(&self) -> Option<String> {
        let is_bound = self.asked_bytes.is_none() && self.all_bytes > 0;
        is_bound.then(|| format!("{IN_ALL}{}", self.all_bytes))
    }

    /// Whether that is such a line.
    pub fn is_line(line: &str) -> bool {
        line.starts_with(EXACTLY) || line.starts_with(AT_MOST)
    }

    /// Takes note that the rings of one CPU take so much; whether programs must be told anew.
    pub fn note(&mut self, used_bytes: u64) -> bool {
        let bytes = share(self.all_bytes, used_bytes);
        let is_news = bytes < self.told_bytes || bytes / GROWTH >= self.told_bytes;
        if self.asked_bytes.is_some() || !is_news {
            return false;
        }
        self.told_bytes = bytes;
        true
    }
}

/// How large the rings become of processes that ran before, and are found now.
#[derive(Debug)]
pub(super) struct LateRoom {
    asked_bytes: Option<u64>,
    all_bytes: u64,
    cpus: u64,
    /// What the rings of one CPU take by now.
    used_bytes: Cell<u64>,
    /// What the machine has left, when it was last asked, less what was taken since.
    memory_left: Cell<Option<(Instant, u64)>>,
}

impl LateRoom {
    /// As [`RingRoom::new`].
    pub fn new(room: &RingRoom, cpus: u32) -> LateRoom {
        LateRoom {
            asked_bytes: room.asked_bytes,
            all_bytes: room.all_bytes,
            cpus: u64::from(cpus.max(1)),
            used_bytes: Cell::new(0),
            memory_left: Cell::new(None),
        }
    }

    /// Takes note that the rings of one CPU take so much.
    pub fn note(&self, used_bytes: u64) {
        self.used_bytes.set(used_bytes);
    }

    /// For the next process, in whose folder all files take so much memory, and of whose user so
    /// much is left where all of a user have a bound. Programs that start meanwhile take some that
    /// nobody told us of.
    pub fn next(&self, taken_bytes: u64, left_of_user: Option<u64>) -> u64 {
        if let Some(bytes) = self.asked_bytes {
            return bytes;
        }
        let memory_left = self.memory_left();
        let used_bytes = self.used_bytes.get().max(taken_bytes / self.cpus);
        let of_user = left_of_user.map(|left| left / USER_PARTS / self.cpus);
        let of_memory = memory_left / LEFT_PARTS / self.cpus;
        let most = share(self.all_bytes, used_bytes).min(of_memory);
        let most = of_user.map_or(most.max(RING_BYTES_MIN), |of_user| {
            most.min(of_user).max(2 * abi::rings::SUBBUFFER_BYTES_MIN)
        });
        1 << most.ilog2()
    }

    /// Whether the memory that is left allows it; otherwise nothing is given.
    pub fn allows(&self, bytes: u64) -> bool {
        bytes.saturating_mul(self.cpus) <= self.memory_left() / 2
    }

    /// Takes note that a process got rings of that size.
    pub fn took(&self, bytes: u64) {
        self.used_bytes
            .set(self.used_bytes.get().saturating_add(bytes));
        let less = |(at, left): (Instant, u64)| (at, left.saturating_sub(bytes * self.cpus));
        self.memory_left.set(self.memory_left.get().map(less));
    }

    fn memory_left(&self) -> u64 {
        if let Some((at, left)) = self.memory_left.get()
            && at.elapsed() < MEMORY_STAYS
        {
            return left;
        }
        let left = memory::left(Path::new("/"));
        self.memory_left.set(Some((Instant::now(), left)));
        left
    }
}

/// What the next process may take for a ring. Rings are powers of two.
fn share(all_bytes: u64, used_bytes: u64) -> u64 {
    let share = all_bytes.saturating_sub(used_bytes) / LEFT_PARTS;
    let power = 1 << share.max(1).ilog2();
    u64::clamp(power, RING_BYTES_MIN, RING_BYTES_USUAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn rings_are_smaller_where_there_is_less_room_or_more_processes() {
        let check = |free_mib: u64, cpus: u32, used_mib: u64, expect: u64| {
            let mut room = RingRoom::of(None, free_mib * MIB, cpus);
            room.note(used_mib * MIB);
            let line = format!("!ring-at-most {expect}");
            assert_eq!(room.line(), line, "{free_mib} {cpus} {used_mib}");
            assert!(RingRoom::is_line(&room.line()));
        };
        check(24_000, 2, 0, 8 * MIB);
        check(24_000, 2, 128, 8 * MIB);
        check(24_000, 2, 136, 4 * MIB);
        check(24_000, 2, 255, 64 << 10);
        check(24_000, 2, 10_000, 64 << 10);
        check(128_000, 64, 0, 8 * MIB);
        check(1_000, 2, 0, 2 * MIB);
        check(64, 2, 0, 256 << 10);
        check(0, 0, 0, 64 << 10);
    }

    #[test]
    fn all_rings_together_have_a_bound_and_what_was_asked_for_has_none() {
        let mut room = RingRoom::of(None, 24_000 * MIB, 2);
        let mut used_bytes = 0;
        for _ in 0..200 {
            used_bytes += room.told_bytes;
            room.note(used_bytes);
        }
        assert!(
            used_bytes < ALL_BYTES_MAX + 100 * RING_BYTES_MIN,
            "{used_bytes}"
        );
        let mut asked = RingRoom::of(Some(64 * MIB), 0, 2);
        assert!(!asked.note(1 << 40));
        assert_eq!(asked.line(), format!("!ring {}", 64 * MIB));
    }

    #[test]
    fn who_ran_before_takes_a_part_of_what_all_others_leave() {
        let room = LateRoom::new(&RingRoom::of(None, 24_000 * MIB, 2), 2);
        room.memory_left.set(Some((Instant::now(), u64::MAX)));
        let check = |used_mib: u64, taken_mib: u64, left: Option<u64>, expect: u64| {
            room.note(used_mib * MIB);
            room.memory_left.set(Some((Instant::now(), u64::MAX)));
            let next = room.next(taken_mib * MIB, left);
            assert_eq!(next, expect, "{used_mib} {taken_mib} {left:?}");
        };
        check(0, 0, None, 8 * MIB);
        check(136, 0, None, 4 * MIB);
        // Of both CPUs.
        check(0, 272, None, 4 * MIB);
        check(255, 0, None, 64 << 10);
        check(0, 0, Some(64 * MIB), 64 << 10);
        check(0, 0, Some(0), 8 << 10);
        room.note(0);
        room.took(136 * MIB);
        assert_eq!(room.next(0, None), 4 * MIB);
        assert!(!room.allows(u64::MAX));
    }

    #[test]
    fn more_room_is_told_only_when_it_is_much_more() {
        let mut room = RingRoom::of(None, 24_000 * MIB, 2);
        assert!(!room.note(0));
        assert!(room.note(200 * MIB));
        assert!(!room.note(190 * MIB) && !room.note(150 * MIB));
        assert!(room.note(0));
        assert_eq!(room.told_bytes, RING_BYTES_USUAL);
    }
}
