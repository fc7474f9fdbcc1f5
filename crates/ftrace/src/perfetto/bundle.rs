//! The events of one bundle: those of one CPU that were read from its ring together.

use std::collections::HashMap;

use event::Value;

use super::schema::{self, Part, Shape};
use super::wire::{Fields, Wire, packed};

/// Numbers of fields of `FtraceEventBundle`, `CompactSched` and `FtraceEvent`.
const CPU: u32 = 1;
const EVENT: u32 = 2;
const LOST: u32 = 3;
const COMPACT: u32 = 4;
const CLOCK: u32 = 5;
const TIMESTAMP: u32 = 1;
const PID: u32 = 2;
const FLAGS: u32 = 5;
pub(super) const GENERIC: u32 = 327;
pub(super) const SWITCH: u32 = 4;
pub(super) const WAKING: u32 = 20;

/// What tells classes apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The event's number.
    Number(u32),
    /// An event that Perfetto has no number for.
    Generic(String),
}

/// What a bundle says before its events are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    pub cpu: u32,
    pub has_lost: bool,
    /// Perfetto's number of ftrace's clock; zero is the time since boot.
    pub clock: u64,
}

pub(super) fn head(bundle: &[u8]) -> Head {
    let mut head = Head::default();
    for (number, value) in Fields::new(bundle) {
        match (number, value.number()) {
            (CPU, Some(cpu)) => head.cpu = u32::try_from(cpu).unwrap_or(u32::MAX),
            (LOST, Some(lost)) => head.has_lost = lost != 0,
            (CLOCK, Some(clock)) => head.clock = clock,
            _ => {}
        }
    }
    head
}

/// One event, before its values are read.
#[derive(Clone, Debug)]
pub(super) enum Raw<'a> {
    /// With its number and message.
    Own(u32, &'a [u8]),
    /// A switch of a compact bundle.
    Switch {
        state: i64,
        pid: i32,
        prio: i64,
        comm: &'a [u8],
    },
    /// A wake-up of a compact bundle.
    Waking {
        pid: i32,
        prio: i64,
        target_cpu: i64,
        comm: &'a [u8],
    },
}

/// An event with its time.
#[derive(Clone, Debug)]
pub(super) struct Timed<'a> {
    pub time_ns: i64,
    /// The task that was running, where the event says it.
    pub pid: Option<i32>,
    pub flags: Option<u8>,
    pub raw: Raw<'a>,
}

/// The events of a bundle in the order of their times, and whether bytes made no sense.
pub(super) fn events(bundle: &[u8]) -> (Vec<Timed<'_>>, bool) {
    let mut found = Vec::new();
    let mut fields = Fields::new(bundle);
    let mut broken = false;
    for (number, value) in fields.by_ref() {
        match (number, value) {
            (EVENT, Wire::Bytes(message)) => match own(message) {
                Some(event) => found.push(event),
                None => broken = true,
            },
            (COMPACT, Wire::Bytes(message)) => broken |= !compact(message, &mut found),
            _ => {}
        }
    }
    found.sort_by_key(|event| event.time_ns);
    (found, broken || fields.is_broken())
}

fn own(message: &[u8]) -> Option<Timed<'_>> {
    let (mut time_ns, mut pid, mut flags, mut raw) = (None, None, None, None);
    let mut fields = Fields::new(message);
    for (number, value) in fields.by_ref() {
        match (number, value) {
            (TIMESTAMP, value) => time_ns = value.number(),
            (PID, value) => pid = value.number(),
            (FLAGS, Wire::Varint(value)) => flags = Some(value as u8),
            (number, Wire::Bytes(message)) => raw = Some(Raw::Own(number, message)),
            _ => {}
        }
    }
    (!fields.is_broken()).then_some(Timed {
        time_ns: i64::try_from(time_ns?).ok()?,
        pid: pid.map(|pid| pid as i32),
        flags,
        raw: raw.unwrap_or(Raw::Own(0, &[])),
    })
}

/// The columns of a compact bundle; whether all have the same length and make sense.
fn compact<'a>(message: &'a [u8], found: &mut Vec<Timed<'a>>) -> bool {
    let mut comms: Vec<&[u8]> = Vec::new();
    let mut columns: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut fields = Fields::new(message);
    for (number, value) in fields.by_ref() {
        match (number, value) {
            (5, Wire::Bytes(comm)) => comms.push(comm),
            (number, Wire::Bytes(bytes)) => {
                columns.entry(number).or_default().extend(packed(bytes))
            }
            (number, value) => columns.entry(number).or_default().extend(value.number()),
        }
    }
    let column = |number: u32| columns.get(&number).map_or(&[][..], Vec::as_slice);
    let comm = |index: Option<&u64>| {
        let index = index.and_then(|index| usize::try_from(*index).ok());
        index.and_then(|index| comms.get(index)).copied()
    };
    let at = |number: u32, place: usize| column(number).get(place).map(|number| *number as i64);
    let mut sound = !fields.is_broken();
    let mut time_ns = 0u64;
    for (place, delta_ns) in column(1).iter().enumerate() {
        time_ns = time_ns.wrapping_add(*delta_ns);
        let event = || {
            Some(Timed {
                time_ns: i64::try_from(time_ns).ok()?,
                pid: None,
                flags: None,
                raw: Raw::Switch {
                    state: at(2, place)?,
                    pid: at(3, place)? as i32,
                    prio: at(4, place)?,
                    comm: comm(column(6).get(place))?,
                },
            })
        };
        let event = event();
        sound &= event.is_some();
        found.extend(event);
    }
    time_ns = 0;
    for (place, delta_ns) in column(7).iter().enumerate() {
        time_ns = time_ns.wrapping_add(*delta_ns);
        let event = || {
            Some(Timed {
                time_ns: i64::try_from(time_ns).ok()?,
                pid: None,
                flags: at(12, place).map(|flags| flags as u8),
                raw: Raw::Waking {
                    pid: at(8, place)? as i32,
                    target_cpu: at(9, place)?,
                    prio: at(10, place)?,
                    comm: comm(column(11).get(place))?,
                },
            })
        };
        let event = event();
        sound &= event.is_some();
        found.extend(event);
    }
    sound
}

impl Raw<'_> {
    /// The class that it belongs to; none where its number is in no table.
    pub fn key(&self) -> Option<Key> {
        match self {
            Raw::Own(GENERIC, message) => schema::generic_key(message).map(Key::Generic),
            Raw::Own(number, _) => schema::is_known(*number).then_some(Key::Number(*number)),
            Raw::Switch { .. } => Some(Key::Number(SWITCH)),
            Raw::Waking { .. } => Some(Key::Number(WAKING)),
        }
    }

    /// Its values; `before` is who ran before a switch.
    pub fn values(&self, shape: &Shape, before: Option<&Running>) -> Vec<Value<'static>> {
        match self {
            Raw::Own(GENERIC, message) => schema::generic_values(shape, message),
            Raw::Own(_, message) => shape.values(message),
            Raw::Switch {
                state,
                pid,
                prio,
                comm,
            } => {
                let comm = String::from_utf8_lossy(comm);
                let mut parts = vec![
                    (4, Part::Number(*state)),
                    (5, Part::Text(&comm)),
                    (6, Part::Number(i64::from(*pid))),
                    (7, Part::Number(*prio)),
                ];
                if let Some(before) = before {
                    parts.extend([
                        (1, Part::Text(before.comm.as_str())),
                        (2, Part::Number(i64::from(before.pid))),
                        (3, Part::Number(before.prio)),
                    ]);
                }
                shape.values_of(&parts)
            }
            Raw::Waking {
                pid,
                prio,
                target_cpu,
                comm,
            } => shape.values_of(&[
                (1, Part::Text(&String::from_utf8_lossy(comm))),
                (2, Part::Number(i64::from(*pid))),
                (3, Part::Number(*prio)),
                (5, Part::Number(*target_cpu)),
            ]),
        }
    }

    /// Whom it switches to.
    pub fn switched_to(&self) -> Option<Running> {
        let (pid, prio, comm) = match self {
            Raw::Switch {
                pid, prio, comm, ..
            } => (*pid, *prio, *comm),
            Raw::Own(SWITCH, message) => {
                let (mut pid, mut prio, mut comm) = (0, 0, &[][..]);
                for (number, value) in Fields::new(message) {
                    match (number, value) {
                        (5, Wire::Bytes(bytes)) => comm = bytes,
                        (6, Wire::Varint(number)) => pid = number as i32,
                        (7, Wire::Varint(number)) => prio = number as i64,
                        _ => {}
                    }
                }
                (pid, prio, comm)
            }
            _ => return None,
        };
        Some(Running {
            pid,
            prio,
            comm: String::from_utf8_lossy(comm).into_owned(),
        })
    }
}

/// Who runs on a CPU.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub pid: i32,
    pub prio: i64,
    pub comm: String,
}
