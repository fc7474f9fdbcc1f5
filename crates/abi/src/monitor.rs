//! The records of `bpf/monitor.h`: same names, same order, same bytes; and what they say.
//!
//! Invariant: plain integers and arrays of them, so that every bit pattern is a value; padding is
//! spelt out. `tests/monitor_layout.rs` compares each offset with what a C compiler says.

use event::evidence::{Stack, TaskRef, unnamed};
use event::{Cpu, Duration, Instant, Prio, Tid};

use crate::{raw, text};

/// `RTS_MONITOR_PHASES`.
pub const PHASES_MAX: usize = 7;
/// `RTS_MONITOR_PHASES_ROOM`.
pub const PHASES_ROOM: usize = 8;
/// `RTS_MONITOR_GROUPS`.
pub const GROUPS_MAX: usize = 4;
/// `RTS_GROUP_REAL_TIME`.
pub const GROUP_REAL_TIME: u8 = 1;
/// `RTS_GROUP_NAMED`.
pub const GROUP_NAMED: u8 = 2;
/// `RTS_LINEAR_MAX`: the last bucket of OSADL's form, of what is longer, has this number.
pub const LINEAR_MAX: usize = 10240;

/// `struct rts_monitor_worst`; `bpf/monitor.h` documents the fields.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawWorst {
    pub value_ns: u64,
    pub at_ns: u64,
    pub parts_ns: [u64; 4],
    pub instruction: u64,
    pub victim: raw::Task,
    pub culprit: raw::Task,
    pub cpu: u32,
    pub call: i32,
    pub mode: u8,
    pub timer: u8,
    pub padding: [u8; 6],
    pub stack: raw::Stack,
}

/// `struct rts_monitor_sums`.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawSums {
    pub sum_ns: u64,
    pub max_ns: u64,
    pub min_inverted_ns: u64,
    pub busy: u64,
}

/// `struct rts_monitor_series`.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawSeries {
    pub sums: [RawSums; PHASES_ROOM],
    pub buckets: [[u32; PHASES_ROOM]; raw::BUCKETS_MAX],
    pub worst: [RawWorst; PHASES_MAX],
}

/// `struct rts_monitor_linear`.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawLinear {
    pub counts: [u32; LINEAR_MAX + 1],
}

/// `struct rts_monitor_losses`.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawLosses {
    pub storage_failures: u64,
    pub unpaired: u64,
    pub worst_missed: u64,
    pub hidden: u64,
    pub unseen: u64,
}

/// `struct rts_monitor_config`.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawConfig {
    pub linear: u8,
    pub until_return: u8,
    pub every_task: u8,
    pub padding: [u8; 5],
}

macro_rules! plain {
    ($($name:ident),*) => { $(
        // SAFETY: repr(C), integers only, padding is named (the layout test checks the size).
        unsafe impl raw::Plain for $name {}
    )* };
}
plain!(
    RawWorst, RawSums, RawSeries, RawLinear, RawLosses, RawConfig
);

/// A part of a wake-up, or a sum of parts that begins at the expiry of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Phase {
    /// From the expiry of the timer to its function.
    Timer = 0,
    /// From there, or from the wake-up, to the run queue.
    Wakeup = 1,
    /// From the run queue onto a CPU.
    Switch = 2,
    /// Timer and wake-up.
    TimerWakeup = 3,
    /// Timer, wake-up and switch.
    TimerWakeupSwitch = 4,
    /// From the CPU to the return to user space.
    Return = 5,
    /// From the expiry to the return to user space.
    Total = 6,
}

impl Phase {
    /// All of them, by number.
    pub const ALL: [Phase; PHASES_MAX] = [
        Phase::Timer,
        Phase::Wakeup,
        Phase::Switch,
        Phase::TimerWakeup,
        Phase::TimerWakeupSwitch,
        Phase::Return,
        Phase::Total,
    ];

    /// As files and labels have it.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Timer => "timer",
            Phase::Wakeup => "wakeup",
            Phase::Switch => "switch",
            Phase::TimerWakeup => "timer_wakeup",
            Phase::TimerWakeupSwitch => "timer_wakeup_switch",
            Phase::Return => "return",
            Phase::Total => "total",
        }
    }

    /// As people read it.
    pub const fn title(self) -> &'static str {
        match self {
            Phase::Timer => "timer",
            Phase::Wakeup => "wake-up",
            Phase::Switch => "switch",
            Phase::TimerWakeup => "timer + wake-up",
            Phase::TimerWakeupSwitch => "timer + wake-up + switch",
            Phase::Return => "return to user space",
            Phase::Total => "total",
        }
    }
}

/// What an interrupt found: `enum rts_mode`, or `RTS_MONITOR_HIDDEN`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Kernel code where interrupts come back on: they were off before.
    #[default]
    Kernel = 0,
    /// User space.
    User = 1,
    /// The idle task.
    Idle = 2,
    /// Kernel code that had interrupts on.
    Enabled = 3,
    /// Nobody knows: no program saw the sample. Its first part is timer and wake-up together, and
    /// who had the CPU is who was last seen to come on it.
    Hidden = 4,
}

impl Mode {
    /// The mode of a number; what cannot be is kernel code.
    pub const fn of(number: u8) -> Mode {
        match number {
            1 => Mode::User,
            2 => Mode::Idle,
            3 => Mode::Enabled,
            4 => Mode::Hidden,
            _ => Mode::Kernel,
        }
    }
}

/// The longest sample of a series, with who ran meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseWorst {
    /// How long it was.
    pub value: Duration,
    /// When it ended.
    pub at: Instant,
    /// The timer's lateness; none when no timer woke the task.
    pub timer: Option<Duration>,
    /// Wake-up, switch and return to user space, as far as the sample goes; the rest is zero.
    pub parts: [Duration; 3],
    /// Who was late.
    pub victim: Option<TaskRef>,
    /// Who had the CPU; its tid is 0 when the CPU was idle.
    pub culprit: Option<TaskRef>,
    /// Where.
    pub cpu: Cpu,
    /// The number of the system call in which the victim waited.
    pub call: Option<u32>,
    /// What was interrupted, where the instruction is known.
    pub mode: Mode,
    /// The interrupted instruction.
    pub instruction: Option<u64>,
    /// The culprit's stack in the kernel, innermost first.
    pub stack: Stack,
}

/// A phase of an interval, on one CPU and of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSeries {
    /// Where.
    pub cpu: Cpu,
    /// [`GROUP_REAL_TIME`] and [`GROUP_NAMED`], as bits.
    pub group: u8,
    /// The phase, by number.
    pub phase: u8,
    /// All samples together.
    pub sum: Duration,
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// Buckets that are not empty, by rising number, with their counts.
    pub buckets: Vec<(u16, u64)>,
    /// The longest, in full; none when it could not be written.
    pub worst: Option<PhaseWorst>,
}

impl PhaseSeries {
    /// How many samples there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

/// Whether a sample was counted: the shortest of any is not zero as it is written.
pub fn has_samples(sums: &RawSums) -> bool {
    sums.min_inverted_ns != 0
}

/// Reads the series of a phase; none when it has no samples.
pub fn decode_series(series: &RawSeries, cpu: Cpu, group: u8, phase: Phase) -> Option<PhaseSeries> {
    let number = phase as usize;
    let buckets = series.buckets.iter().map(|row| row[number]).enumerate();
    let buckets = buckets.filter(|(_, count)| *count > 0);
    let buckets: Vec<_> = buckets
        .map(|(bucket, count)| (bucket as u16, u64::from(count)))
        .collect();
    if buckets.is_empty() {
        return None;
    }
    let sums = &series.sums[number];
    let worst = decode_worst(&series.worst[number]);
    Some(PhaseSeries {
        cpu,
        group,
        phase: phase as u8,
        sum: ns(sums.sum_ns),
        min: ns(!sums.min_inverted_ns),
        max: ns(sums.max_ns),
        buckets,
        worst: worst.filter(|worst| worst.value.as_ns_unsigned() == sums.max_ns),
    })
}

fn decode_worst(worst: &RawWorst) -> Option<PhaseWorst> {
    if worst.at_ns == 0 {
        return None;
    }
    let length = (worst.stack.length as usize).min(raw::STACK_MAX);
    let [timer, parts @ ..] = worst.parts_ns.map(ns);
    Some(PhaseWorst {
        value: ns(worst.value_ns),
        at: Instant::from_ns(worst.at_ns as i64),
        timer: (worst.timer != 0).then_some(timer),
        parts,
        victim: task(&worst.victim),
        culprit: task(&worst.culprit),
        cpu: Cpu(worst.cpu),
        call: u32::try_from(worst.call).ok(),
        mode: Mode::of(worst.mode),
        instruction: (worst.instruction != 0).then_some(worst.instruction),
        stack: unnamed(&worst.stack.frames[..length]),
    })
}

fn ns(ns: u64) -> Duration {
    Duration::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

fn task(task: &raw::Task) -> Option<TaskRef> {
    (task.tid >= 0).then(|| TaskRef {
        tid: Tid(task.tid),
        comm: text(&task.comm),
        prio: Prio::from_lttng(task.prio),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_read_with_its_worst_and_lengths_that_lie_are_cut() {
        let mut series: RawSeries = raw::zeroed();
        assert_eq!(decode_series(&series, Cpu(1), 1, Phase::Timer), None);
        assert!(!has_samples(&series.sums[0]));
        series.buckets[20][0] = 3;
        series.buckets[21][1] = 9;
        let sums = &mut series.sums[0];
        (sums.sum_ns, sums.max_ns, sums.min_inverted_ns) = (63, 22, !20);
        let worst = &mut series.worst[0];
        worst.at_ns = 7;
        worst.value_ns = 22;
        worst.stack.length = u32::MAX;
        worst.call = -1;
        worst.culprit.tid = -1;
        assert!(has_samples(&series.sums[0]));
        let read = decode_series(&series, Cpu(1), 1, Phase::Timer).expect("samples");
        assert_eq!(
            (read.count(), read.min.as_ns(), read.max.as_ns()),
            (3, 20, 22)
        );
        let worst = read.worst.expect("a worst");
        assert_eq!((worst.call, worst.culprit, worst.timer), (None, None, None));
        assert_eq!(worst.stack.len(), raw::STACK_MAX);
        // The longest came while another one was being written.
        series.sums[0].max_ns = 23;
        let read = decode_series(&series, Cpu(1), 1, Phase::Timer).expect("samples");
        assert_eq!(read.worst, None);
    }

    #[test]
    fn every_phase_is_its_number_and_has_a_name_of_its_own() {
        for (number, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, number);
            let same = Phase::ALL
                .iter()
                .filter(|other| other.name() == phase.name());
            assert_eq!(same.count(), 1, "{}", phase.name());
        }
    }
}
