//! What a track says of an instant, in 32 bits.

/// Kinds of states; their numbers are those of the tiles (`docs/format/view.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Nobody knows.
    #[default]
    Unknown = 0,
    /// A CPU idles; a thread waits for something.
    Idle = 1,
    /// A task runs, outside of system calls.
    Run = 2,
    /// A task runs in a system call.
    Call = 3,
    /// An interrupt's handler, on a CPU; a thread is interrupted by one.
    Irq = 4,
    /// A softirq, on a CPU; a thread is interrupted by one.
    Softirq = 5,
    /// A thread waits for a CPU.
    Runnable = 6,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = 7;

    const ALL: [Kind; Kind::COUNT] = [
        Kind::Unknown,
        Kind::Idle,
        Kind::Run,
        Kind::Call,
        Kind::Irq,
        Kind::Softirq,
        Kind::Runnable,
    ];
}

/// What woke a thread that waited, as far as a state has room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WokenBy {
    /// The events do not say, or nothing woke it yet.
    Unknown,
    /// A thread: its place among the tasks.
    Task(u32),
    /// The expiry of a timer.
    Timer,
    /// An interrupt's handler.
    Irq(u32),
    /// A softirq.
    Softirq(u32),
}

const KIND_BITS: u32 = 3;
const DETAIL_BITS: u32 = 28;
const DETAIL_MAX: u32 = (1 << DETAIL_BITS) - 1;
const INFERRED: u32 = 1 << KIND_BITS;
/// Of the detail of a wait: what woke, and its number.
const WAKER_BITS: u32 = 25;
const WAKER_MAX: u32 = (1 << WAKER_BITS) - 1;

/// A kind with one detail.
///
/// Bits 0 to 2 are the [`Kind`], bit 3 says that a switch that bounds it was inferred, bits 4 to 31
/// are the detail: of a CPU, the task that has it, of a thread that runs, its CPU, of one that
/// waits for a CPU, who had that for the longest; each plus one, zero for nobody knows. Of one that
/// waits for something, what woke it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State(pub u32);

impl State {
    /// Nobody knows.
    pub const UNKNOWN: State = State(0);

    /// A state of this kind; a detail that has no room is as if nobody knew it.
    pub fn new(kind: Kind, detail: Option<u32>) -> State {
        let detail = detail.map_or(0, |detail| detail.saturating_add(1));
        let detail = if detail > DETAIL_MAX { 0 } else { detail };
        State(kind as u32 | detail << (KIND_BITS + 1))
    }

    /// A wait for something, with what ended it.
    pub fn waits(by: WokenBy) -> State {
        let (what, number) = match by {
            WokenBy::Unknown => (0, 0),
            WokenBy::Task(task) => (1, task),
            WokenBy::Timer => (2, 0),
            WokenBy::Irq(irq) => (3, irq),
            WokenBy::Softirq(vector) => (4, vector),
        };
        let detail = match number <= WAKER_MAX {
            true => what << WAKER_BITS | number,
            false => 0,
        };
        State(Kind::Idle as u32 | detail << (KIND_BITS + 1))
    }

    /// The same, bounded by a switch that was inferred.
    pub fn inferred_if(self, inferred: bool) -> State {
        State(if inferred { self.0 | INFERRED } else { self.0 })
    }

    /// Its kind.
    pub fn kind(self) -> Kind {
        let number = (self.0 & (INFERRED - 1)) as usize;
        Kind::ALL.get(number).copied().unwrap_or_default()
    }

    /// The detail, where it is known; not of a wait for something.
    pub fn detail(self) -> Option<u32> {
        (self.0 >> (KIND_BITS + 1)).checked_sub(1)
    }

    /// What ended a wait for something.
    pub fn woken_by(self) -> WokenBy {
        let detail = self.0 >> (KIND_BITS + 1);
        let number = detail & WAKER_MAX;
        match detail >> WAKER_BITS {
            1 => WokenBy::Task(number),
            2 => WokenBy::Timer,
            3 => WokenBy::Irq(number),
            4 => WokenBy::Softirq(number),
            _ => WokenBy::Unknown,
        }
    }
}

/// A stretch of one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From when, in nanoseconds of the wall clock.
    pub begin_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// The state.
    pub state: State,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_keeps_its_kind_and_its_detail() {
        for kind in Kind::ALL {
            for detail in [None, Some(0), Some(7), Some(DETAIL_MAX - 1)] {
                for inferred in [false, true] {
                    let state = State::new(kind, detail).inferred_if(inferred);
                    assert_eq!((state.kind(), state.detail()), (kind, detail));
                }
            }
            assert_eq!(State::new(kind, Some(u32::MAX)).detail(), None);
        }
    }

    #[test]
    fn a_wait_keeps_what_ended_it() {
        let check = |by: WokenBy, expect: WokenBy| {
            let state = State::waits(by);
            assert_eq!((state.kind(), state.woken_by()), (Kind::Idle, expect));
        };
        for by in [
            WokenBy::Unknown,
            WokenBy::Timer,
            WokenBy::Task(0),
            WokenBy::Task(WAKER_MAX),
            WokenBy::Irq(36),
            WokenBy::Softirq(1),
        ] {
            check(by, by);
        }
        check(WokenBy::Task(WAKER_MAX + 1), WokenBy::Unknown);
    }
}
