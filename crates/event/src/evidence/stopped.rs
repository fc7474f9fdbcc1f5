//! A target that was stopped, traced or frozen: nobody had its CPU, and it could not run.

use super::from_kernel::{FromKernel, Machine};
use super::raw::{self, mirror};
use super::record::{Place, label_part, record};
use super::task::TaskRef;

/// How a task was stopped. The values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StopKind {
    /// A signal stopped its process.
    Signal = 0,
    /// Its tracer keeps it.
    Traced = 1,
    /// Its control group is frozen, or the machine is about to sleep.
    Frozen = 2,
}

impl StopKind {
    /// All kinds, with the names that traces use, in the order of the values.
    pub const NAMES: [(StopKind, &'static str); 3] = [
        (StopKind::Signal, "signal"),
        (StopKind::Traced, "traced"),
        (StopKind::Frozen, "frozen"),
    ];

    /// From its value in a record.
    pub fn from_value(value: u8) -> Option<StopKind> {
        Self::NAMES.get(usize::from(value)).map(|(kind, _)| *kind)
    }
}

label_part!(StopKind);

/// How a target slept when it was stopped. The values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Asleep {
    /// It did not, as far as was seen: its work waits.
    No = 0,
    /// Until an instant, and for nothing else.
    Until = 1,
    /// Until somebody wakes it, whether there is a last instant or not.
    Event = 2,
}

impl Asleep {
    /// All of them, with the names that traces use, in the order of the values.
    pub const NAMES: [(Asleep, &'static str); 3] = [
        (Asleep::No, "no"),
        (Asleep::Until, "until"),
        (Asleep::Event, "event"),
    ];

    /// From its value in a record.
    pub fn from_value(value: u8) -> Option<Asleep> {
        Self::NAMES
            .get(usize::from(value))
            .map(|(asleep, _)| *asleep)
    }
}

label_part!(Asleep, Asleep::No);

record! {
    /// A target left the CPU because it was stopped. Its time is when it left.
    Stopped as "rtscope_stopped" {
        /// The target.
        task: TaskRef = "",
        /// How.
        how: StopKind = "how",
        /// Who did it: the sender of the signal, the tracer, who froze a group last.
        by: Option<TaskRef> = "by_",
        /// The signal's number; zero without one.
        signal: u32 = "signal",
        /// How it slept before.
        asleep: Asleep = "asleep",
    }
}

mirror! {
    /// What the kernel sends of it.
    Raw = "rts_stopped" {
        task: raw::Task,
        by: raw::Task,
        signal: u32,
        how: u8,
        asleep: u8,
        padding: [u8; 2],
    }
}

impl FromKernel for Stopped {
    type Raw = Raw;

    fn from_kernel(place: Place, raw: &Raw, _: &Machine) -> Option<Stopped> {
        Some(Stopped {
            cpu: place.cpu,
            time: place.time,
            task: raw.task.named()?,
            how: StopKind::from_value(raw.how)?,
            by: raw.by.named(),
            signal: raw.signal,
            asleep: Asleep::from_value(raw.asleep)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_round_trip, place, task};
    use super::*;

    #[test]
    fn a_stop_comes_back_from_its_trace_with_and_without_who_did_it() {
        for (by, how, asleep) in [
            (None, StopKind::Frozen, Asleep::Until),
            (Some(task("sh")), StopKind::Signal, Asleep::Event),
        ] {
            check_round_trip(&Stopped {
                cpu: place().cpu,
                time: place().time,
                task: task("target"),
                how,
                by,
                signal: 19,
                asleep,
            });
        }
    }
}
