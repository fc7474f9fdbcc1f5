//! What to repeat a recording with that had too little room: with more than it had, or, where there
//! is no more, with something else.

use abi::rings::RING_BYTES_MAX;
use capture::{RING_BYTES_USUAL, UserSummary};
use event::{Error, ErrorKind, Result};

use crate::options::parse_size;

/// So many times the room that was too little.
const GROWTH: u64 = 4;
/// The kernel makes none that is smaller.
const KERNEL_BYTES_MIN: u64 = 8 << 10;
/// The kernel's buffers may take one part in so many of the memory: they are never swapped out.
const MEMORY_PARTS: u64 = 4;
/// What sets the size of an application's rings.
pub const RING_SIZE: &str = "RTSCOPE_RING_SIZE";
/// The one cause of losses that larger rings fix, in [`ring::LOSS_NAMES`].
const RING_FULL: &str = "ring full";

/// After losses in the kernel's buffers, of `buffer_bytes` on each of so many CPUs.
pub fn of_kernel(buffer_bytes: u64, cpus: usize, memory_bytes: u64) -> String {
    let more_bytes = buffer_bytes.max(KERNEL_BYTES_MIN).saturating_mul(GROWTH);
    let more = size(more_bytes);
    let all_bytes = more_bytes.saturating_mul(cpus as u64);
    match all_bytes <= memory_bytes / MEMORY_PARTS {
        true => {
            format!("events were lost: repeat with --buffer {more}, or with fewer --events")
        }
        false => format!(
            "events were lost: repeat with fewer --events, or with a --filter; for larger buffers \
             ({more} on each of {cpus} CPUs) this machine has not the memory"
        ),
    }
}

/// What `--buffer` asks for on each CPU of this machine.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] where that is more than the memory.
pub fn kernel_buffer(buffer_bytes: u64) -> Result<usize> {
    let cpus = host::capabilities::gather_cpus().machine.cpus_online;
    within(buffer_bytes, cpus.len(), memory_bytes())
}

fn within(buffer_bytes: u64, cpus: usize, memory_bytes: u64) -> Result<usize> {
    let cpus = cpus.max(1);
    let is_there = buffer_bytes.saturating_mul(cpus as u64) <= memory_bytes;
    if let (true, Ok(bytes)) = (is_there, usize::try_from(buffer_bytes)) {
        return Ok(bytes);
    }
    let advised = (memory_bytes / MEMORY_PARTS / cpus as u64).max(KERNEL_BYTES_MIN);
    let what = "the buffers would be larger than the memory of this machine";
    Err(Error::new(ErrorKind::InvalidInput, what)
        .found(format!(
            "--buffer {} on each of {cpus} CPUs, and {:.1} GiB of memory",
            size(buffer_bytes),
            memory_bytes as f64 / (1 << 30) as f64
        ))
        .fix(format!("--buffer {}, or less", size(1 << advised.ilog2()))))
}

/// The memory of this machine.
pub fn memory_bytes() -> u64 {
    let machine = rustix::system::sysinfo();
    // Both are as wide as the machine's words.
    (machine.totalram as u64).saturating_mul(u64::from(machine.mem_unit))
}

/// After losses in the rings of applications, when larger ones would have kept the events.
/// `ring_size` is what [`RING_SIZE`] says in our own environment, which the command that we ran
/// has too (`is_ours`), and goes before what a recorder asks for.
pub fn of_applications(
    user: &UserSummary,
    ring_size: Option<&str>,
    is_ours: bool,
) -> Option<String> {
    let cause = ring::LOSS_NAMES
        .iter()
        .position(|name| *name == RING_FULL)?;
    let full = user.processes.iter().filter(|one| one.losses[cause] > 0);
    let largest_bytes = full.map(|one| one.ring_bytes).max()?;
    let is_set = ring_size.is_some_and(|text| parse_size(RING_SIZE, text).is_ok());
    Some(of_rings(largest_bytes, is_ours && is_set, is_ours))
}

/// `had_bytes` were too little; `is_set`: our environment said how much that is.
fn of_rings(had_bytes: u64, is_set: bool, is_ours: bool) -> String {
    let more = had_bytes.saturating_mul(GROWTH);
    if more > RING_BYTES_MAX {
        return format!(
            "events of applications were lost: record fewer with --user, or start them with \
             RTSCOPE_MODE=block; rings are {} at most",
            size(RING_BYTES_MAX)
        );
    }
    let fix = match (is_set, is_ours) {
        (true, _) => format!("start them with {RING_SIZE}={}", size(more)),
        (false, true) => format!("repeat with --ring {}", size(more)),
        // No less than they would have had if they had not been there before.
        (false, false) => format!(
            "repeat with --ring {}, and start them while the recording runs",
            size(more.max(RING_BYTES_USUAL))
        ),
    };
    format!("events of applications were lost: {fix}")
}

/// As `--buffer` and [`RING_SIZE`] take it, in the largest unit that says it whole.
fn size(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let whole = |shift: &u32| bytes > 0 && bytes.trailing_zeros() >= *shift;
    match units.into_iter().find(|(shift, _)| whole(shift)) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn kernel_buffers_are_to_be_four_times_as_large_while_there_is_memory() {
        let check = |buffer: &str, expect: &str| {
            let bytes = parse_size("--buffer", buffer).expect("a size");
            let said = of_kernel(bytes, 2, 4 * GIB);
            assert!(said.contains(expect), "{buffer}: {said}");
        };
        check("1", "--buffer 32K,");
        check("9000", "--buffer 36000,");
        check("96K", "--buffer 384K,");
        check("4M", "--buffer 16M,");
        check("16M", "--buffer 64M,");
        check("128M", "--buffer 512M,");
        check("129M", "fewer --events, or with a --filter; for larger");
        check("8G", "fewer --events, or with a --filter; for larger");
    }

    #[test]
    fn buffers_beyond_the_memory_are_refused_with_a_size_that_it_has() {
        let check = |buffer: &str, expect: Option<&str>| {
            let bytes = parse_size("--buffer", buffer).expect("a size");
            let refused = within(bytes, 2, 4 * GIB).err();
            let fix = refused.as_ref().and_then(Error::fixed_by);
            assert_eq!(fix, expect, "{buffer}");
        };
        check("2G", None);
        check("3G", Some("--buffer 512M, or less"));
        check("999T", Some("--buffer 512M, or less"));
    }

    #[test]
    fn rings_are_to_be_four_times_as_large_up_to_the_largest() {
        let check = |had_bytes: u64, is_set: bool, is_ours: bool, expect: &str| {
            let said = of_rings(had_bytes, is_set, is_ours);
            assert!(said.ends_with(expect), "{had_bytes}: {said}");
        };
        check(64 << 10, false, true, "repeat with --ring 256K");
        check(8 << 20, false, true, "repeat with --ring 32M");
        check(
            64 << 10,
            true,
            true,
            "start them with RTSCOPE_RING_SIZE=256K",
        );
        check(1 << 30, true, true, "start them with RTSCOPE_RING_SIZE=4G");
        let others = "--ring 8M, and start them while the recording runs";
        check(256 << 10, false, false, others);
        let larger = "--ring 32M, and start them while the recording runs";
        check(8 << 20, false, false, larger);
        check(
            2 << 30,
            false,
            true,
            "RTSCOPE_MODE=block; rings are 4G at most",
        );
    }

    #[test]
    fn larger_rings_are_advised_only_where_rings_were_full() {
        let process = |cause: &str| {
            let place = ring::LOSS_NAMES.iter().position(|name| *name == cause);
            let mut losses = ring::Losses::default();
            losses[place.expect("a cause")] = 7;
            capture::UserProcess {
                pid: 1,
                name: String::new(),
                events: 0,
                refused: 0,
                losses,
                malformed: 0,
                unregistered: 0,
                size_bytes: 0,
                ring_bytes: 256 << 10,
            }
        };
        let advice = |cause| {
            let user = UserSummary {
                processes: vec![process(cause)],
                refused: Vec::new(),
            };
            of_applications(&user, None, true)
        };
        assert!(advice(RING_FULL).is_some());
        assert_eq!(advice("aborted too often"), None);
    }
}
