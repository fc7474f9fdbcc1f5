//! What is known of a whole trace: its tracks, tasks, activations and losses.

use std::collections::BTreeMap;

use crate::activation::{Activation, Family};
use crate::latency::{self, Stats};
use crate::series::Series;
use crate::timed::{Timed, TimedLook};
use crate::track::Track;
use crate::users::{UserTrack, UserWhat};

/// Events between two [checkpoints](Index::checkpoints).
pub const CHECKPOINT_EVENTS: u64 = 4096;
/// What is under way at an instant is looked for among so many that end behind it.
const LOOK_MAX: usize = 1 << 18;

/// Which track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrackId {
    /// Of this CPU.
    Cpu(u32),
    /// Of the thread at this place among the tasks.
    Thread(u32),
    /// The frequency of this CPU.
    Frequency(u32),
    /// The idle states of this CPU.
    IdleState(u32),
    /// The one at this place among [`Index::users`].
    User(u32),
    /// The one at this place among the counters that come with the question.
    Counter(u32),
}

impl TrackId {
    /// Reads `c0` or `t5`, `f0`, `i0`, `u3`, `n0`.
    pub fn parse(text: &str) -> Option<TrackId> {
        let (kind, number) = text.split_at_checked(1)?;
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|_| digits)?;
        match kind {
            "c" => Some(TrackId::Cpu(number)),
            "t" => Some(TrackId::Thread(number)),
            "f" => Some(TrackId::Frequency(number)),
            "i" => Some(TrackId::IdleState(number)),
            "u" => Some(TrackId::User(number)),
            "n" => Some(TrackId::Counter(number)),
            _ => None,
        }
    }
}

/// What is known of a task in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFacts {
    /// Its thread's id.
    pub tid: i32,
    /// Its process, where that is known.
    pub pid: Option<i32>,
    /// Its priority on LTTng's scale, where that is known.
    pub prio: Option<i32>,
    /// Its name.
    pub comm: String,
}

/// Time of which events are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// On this CPU; on any when nobody knows.
    pub cpu: Option<u32>,
    /// From when, in nanoseconds of the wall clock.
    pub begin_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// How many events, where the tracer counted them.
    pub count: Option<u64>,
    /// Why.
    pub cause: u8,
}

impl Loss {
    /// The causes by number, for people.
    pub const CAUSES: [&'static str; 7] = [
        "the trace does not say why",
        "the tracer's buffer was full",
        "the reader was overtaken",
        "bytes could not be understood",
        "a file ends too early",
        "a stream has no file",
        "none of the traces was recorded then",
    ];

    /// Why, for people.
    pub fn why(&self) -> &'static str {
        Loss::CAUSES
            .get(usize::from(self.cause))
            .copied()
            .unwrap_or(Loss::CAUSES[0])
    }
}

/// What is known of a trace, or of its beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    /// The first event, in nanoseconds of the wall clock.
    pub begin_ns: i64,
    /// The last event.
    pub end_ns: i64,
    /// How many events there are.
    pub events: u64,
    /// Stretches of bytes that could not be read.
    pub damages: u64,
    /// By number.
    pub cpus: Vec<Track>,
    /// By their places among the tasks.
    pub threads: Vec<Track>,
    /// In the order in which they were first seen.
    pub tasks: Vec<TaskFacts>,
    /// From wake-up to CPU, in the order of their ends.
    pub activations: Timed,
    /// Handlers of interrupts, in the order of their ends; so are the next two.
    pub irqs: Timed,
    /// Handlers of softirqs.
    pub softirqs: Timed,
    /// System calls that returned.
    pub calls: Timed,
    /// Names of interrupts by their numbers.
    pub irq_names: BTreeMap<u32, String>,
    /// Names of system calls, by what [`Activation::what`] says.
    pub call_names: Vec<String>,
    /// Frequencies by CPU, in kHz.
    pub frequencies: Vec<Series>,
    /// Idle states by CPU, by number; -1: in none.
    pub idle_states: Vec<Series>,
    /// What applications did, by thread.
    pub users: Vec<UserTrack>,
    /// Names of their events and spans, by what their tracks say.
    pub user_names: Vec<String>,
    /// In the order of the walk.
    pub losses: Vec<Loss>,
    /// When every 4096th event was, and how many events of the same instant stand before it.
    pub checkpoints: Vec<(i64, u32)>,
}

impl Index {
    /// A track of states; none when the trace has no such.
    pub fn track(&self, id: TrackId) -> Option<&Track> {
        match id {
            TrackId::Cpu(cpu) => self.cpus.get(cpu as usize),
            TrackId::Thread(task) => self.threads.get(task as usize),
            TrackId::User(place) => match &self.users.get(place as usize)?.what {
                UserWhat::Spans(_, track) => Some(track.as_ref()),
                UserWhat::Events(_) => None,
            },
            TrackId::Frequency(_) | TrackId::IdleState(_) | TrackId::Counter(_) => None,
        }
    }

    /// A track of numbers; none when the trace has no such.
    pub fn series(&self, id: TrackId) -> Option<&Series> {
        match id {
            TrackId::Frequency(cpu) => self.frequencies.get(cpu as usize),
            TrackId::IdleState(cpu) => self.idle_states.get(cpu as usize),
            TrackId::User(place) => match &self.users.get(place as usize)?.what {
                UserWhat::Events(series) => Some(series),
                UserWhat::Spans(..) => None,
            },
            TrackId::Cpu(_) | TrackId::Thread(_) | TrackId::Counter(_) => None,
        }
    }

    /// All of a family, in the order of their ends.
    pub fn timed(&self, family: Family) -> &Timed {
        match family {
            Family::Wakeup => &self.activations,
            Family::Irq => &self.irqs,
            Family::Softirq => &self.softirqs,
            Family::Call => &self.calls,
        }
    }

    /// What those of a family that end in a range took, by a key; those without one are left out.
    pub fn stats(
        &self,
        family: Family,
        range_ns: (i64, i64),
        key: impl Fn(&Activation) -> Option<u32>,
    ) -> Vec<(u32, Stats)> {
        latency::stats(self.timed(family), range_ns, key)
    }

    /// One of a family that was under way at an instant; none as well when it ended behind very
    /// many others.
    pub fn under_way(
        &self,
        family: Family,
        at_ns: i64,
        wanted: impl Fn(&Activation) -> bool,
    ) -> Option<Activation> {
        let all = self.timed(family);
        let first = TimedLook::new(all).before(at_ns.saturating_add(1));
        let mut near = all.some(first..first.saturating_add(LOOK_MAX));
        let is_there =
            |one: &Activation| one.end_ns.saturating_sub(one.latency_ns) <= at_ns && wanted(one);
        near.find(is_there)
    }

    /// What an interrupt, a softirq or a system call is called.
    pub fn name_of(&self, family: Family, what: u32) -> String {
        let name = match family {
            Family::Wakeup => None,
            Family::Irq => self.irq_names.get(&what).map(String::as_str),
            Family::Softirq => event::vectors::softirq_name(what),
            Family::Call => self.call_names.get(what as usize).map(String::as_str),
        };
        name.unwrap_or_default().to_owned()
    }

    /// Where an event stands: from when to walk, and how many events to pass over there.
    pub fn place_of(&self, row: u64) -> Option<(i64, u64)> {
        let (at_ns, skip) = self
            .checkpoints
            .get(usize::try_from(row / CHECKPOINT_EVENTS).ok()?)?;
        Some((*at_ns, u64::from(*skip) + row % CHECKPOINT_EVENTS))
    }

    /// The last checkpoint before an instant: its row, from when to walk and how many to pass over.
    pub fn checkpoint_before(&self, at_ns: i64) -> (u64, i64, u64) {
        let behind = self.checkpoints.partition_point(|(ns, _)| *ns < at_ns);
        let place = behind.saturating_sub(1);
        let (ns, skip) = self.checkpoints.get(place).copied().unwrap_or_default();
        (place as u64 * CHECKPOINT_EVENTS, ns, u64::from(skip))
    }
}
