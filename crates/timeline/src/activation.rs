//! What takes time, one by one: an activation, a handler, a system call; and rows of as long ones.

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// From a task's wake-up to its CPU.
    Wakeup,
    /// A handler of an interrupt.
    Irq,
    /// A handler of a softirq.
    Softirq,
    /// A system call.
    Call,
}

impl Family {
    /// Reads its name.
    pub fn parse(text: &str) -> Option<Family> {
        match text {
            "wakeup" => Some(Family::Wakeup),
            "irq" => Some(Family::Irq),
            "softirq" => Some(Family::Softirq),
            "call" => Some(Family::Call),
            _ => None,
        }
    }
}

/// Something of a [`Family`] that took time: a task was woken and was scheduled in, a handler or a
/// system call began and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activation {
    /// When it ended, in nanoseconds of the wall clock.
    pub end_ns: i64,
    /// So long after its begin.
    pub latency_ns: i64,
    /// The task's place among the tasks; [`NO_TASK`] for handlers.
    pub task: u32,
    /// The CPU.
    pub cpu: u32,
    /// Which interrupt, softirq or system call, by number; nothing of a wake-up.
    pub what: u32,
}

/// The task of what has none.
pub const NO_TASK: u32 = u32::MAX;

/// Rows for each power of two of nanoseconds.
const ROWS_PER_OCTAVE: usize = 4;
/// Rows of a grid: the last holds all of 69 s and more.
pub const ROWS: usize = 36 * ROWS_PER_OCTAVE + 1;

/// The row of a latency.
pub(crate) fn row(ns: i64) -> usize {
    let ns = ns.max(1) as u64;
    let octave = 63 - ns.leading_zeros() as usize;
    let part = match octave {
        0 | 1 => (ns as usize & ((1 << octave) - 1)) << (2 - octave),
        _ => (ns >> (octave - 2)) as usize & (ROWS_PER_OCTAVE - 1),
    };
    (octave * ROWS_PER_OCTAVE + part).min(ROWS - 1)
}

/// The least latency above a row.
pub fn row_end_ns(row: usize) -> i64 {
    let (octave, part) = ((row + 1) / ROWS_PER_OCTAVE, (row + 1) % ROWS_PER_OCTAVE);
    let whole = 1u64 << octave.min(60);
    (whole + (whole * part as u64).div_ceil(ROWS_PER_OCTAVE as u64)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_lies_below_the_end_of_its_row_and_not_below_that_before() {
        let samples = (0..60).flat_map(|bit| [1i64 << bit, (1 << bit) + 1, (3 << bit) / 2]);
        for ns in samples.chain(0..4_000).filter(|ns| *ns > 0) {
            let row = row(ns);
            assert!(ns < row_end_ns(row) || row == ROWS - 1, "{ns} {row}");
            assert!(row == 0 || ns >= row_end_ns(row - 1), "{ns} {row}");
        }
    }
}
