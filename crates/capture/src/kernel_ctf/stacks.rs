//! Call stacks of the kernel's events: ftrace writes each as a record of its own behind its event,
//! a trace has them beside it.
//!
//! An interrupt may bring events, each with stacks, between an event and its stacks. What ftrace
//! puts before every record is the same for an event and its stacks, so they are found by it.

use std::collections::VecDeque;

use ftrace::{EventFormat, Formats};

use super::flags::irq_level;

/// Events that wait for their stacks on one CPU: a task and each kind of interrupt have one at
/// most, and tasks that are preempted inside of an event are few.
const WAITING_MAX: usize = 16;
/// Of the words before each record, those that an event shares with its stacks.
const SHARED: std::ops::Range<usize> = 2..8;
const ADDRESS_BYTES: usize = 8;

/// Whose stack a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Kernel,
    User,
}

/// How the kernel writes one kind of stack.
#[derive(Clone, Copy, Debug)]
struct StackRecord {
    id: u16,
    caller_at: usize,
    /// Where it says how many addresses there are; else they end with a zero.
    size_at: Option<usize>,
}

impl StackRecord {
    fn of(format: &EventFormat) -> Option<StackRecord> {
        Some(StackRecord {
            id: format.id,
            caller_at: format.field("caller")?.offset_bytes as usize,
            size_at: format
                .field("size")
                .map(|field| field.offset_bytes as usize),
        })
    }

    /// The bytes of the addresses in `record`, whole ones.
    fn addresses<'r>(&self, record: &'r [u8]) -> &'r [u8] {
        let all = record.get(self.caller_at..).unwrap_or_default();
        let in_record = all.len() / ADDRESS_BYTES;
        let said = self.size_at.and_then(|at| {
            let bytes = record.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(i32::from_le_bytes(bytes)).ok()
        });
        let count = match (said, self.size_at) {
            (Some(count), _) => count.min(in_record),
            (None, Some(_)) => 0,
            (None, None) => {
                let mut addresses = all.chunks_exact(ADDRESS_BYTES);
                let end = addresses.position(|address| address.iter().all(|byte| *byte == 0));
                end.unwrap_or(in_record)
            }
        };
        &all[..count * ADDRESS_BYTES]
    }
}

/// The kernel's records of stacks, where they are recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StackRecords {
    kernel: Option<StackRecord>,
    user: Option<StackRecord>,
}

impl StackRecords {
    /// Those among `formats`, and the formats without them: they are no events.
    pub fn split(formats: &Formats) -> (StackRecords, Formats) {
        let mut records = StackRecords::default();
        let mut events = Vec::new();
        for format in formats.iter() {
            match format.full_name().as_str() {
                KERNEL_STACK => records.kernel = StackRecord::of(format),
                USER_STACK => records.user = StackRecord::of(format),
                _ => events.push(format.clone()),
            }
        }
        (records, Formats::new(formats.layout, events))
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.kernel.is_none() && self.user.is_none()
    }

    /// Whose stack the record with this number holds.
    pub fn side(&self, id: u16) -> Option<Side> {
        let is = |record: Option<StackRecord>| record.is_some_and(|record| record.id == id);
        match (is(self.kernel), is(self.user)) {
            (true, _) => Some(Side::Kernel),
            (_, true) => Some(Side::User),
            _ => None,
        }
    }

    fn addresses<'r>(&self, side: Side, record: &'r [u8]) -> &'r [u8] {
        let of = match side {
            Side::Kernel => self.kernel,
            Side::User => self.user,
        };
        of.map_or(&[], |of| of.addresses(record))
    }
}

/// What ftrace calls records of stacks.
pub(crate) const KERNEL_STACK: &str = "ftrace:kernel_stack";
pub(crate) const USER_STACK: &str = "ftrace:user_stack";

/// The stacks of one event: bytes of addresses, the innermost first; none where there are none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stacks<'s> {
    pub kernel: &'s [u8],
    pub user: &'s [u8],
}

/// An event, and the stacks that came behind it so far.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub time_ns: u64,
    pub record: Vec<u8>,
    kernel: Option<Vec<u8>>,
    user: Option<Vec<u8>>,
    /// Nothing comes for it any more.
    is_whole: bool,
    /// The ring was empty with it waiting: what does not come soon was not written.
    is_old: bool,
}

impl Waiting {
    pub fn stacks(&self) -> Stacks<'_> {
        Stacks {
            kernel: self.kernel.as_deref().unwrap_or_default(),
            user: self.user.as_deref().unwrap_or_default(),
        }
    }

    /// What an event shares with its stacks: flags, counts, task.
    fn shared(&self) -> &[u8] {
        self.record.get(SHARED).unwrap_or_default()
    }
}

/// Events of one CPU in the order of their times, from the first one that waits for its stacks.
#[derive(Debug, Default)]
pub(super) struct StackQueue {
    events: VecDeque<Waiting>,
}

impl StackQueue {
    /// Adds an event. Those that it cannot have interrupted have all that they get.
    pub fn push(&mut self, time_ns: u64, record: &[u8], has_stacks: bool) {
        let level = |record: &[u8]| irq_level(record.get(2).copied().unwrap_or(0));
        for before in &mut self.events {
            let (theirs, own) = (level(&before.record), level(record));
            let is_same_task = before.record.get(4..8) == record.get(4..8);
            before.is_whole |= theirs > own || theirs == own && is_same_task;
        }
        if self.events.len() >= WAITING_MAX
            && let Some(oldest) = self.events.front_mut()
        {
            oldest.is_whole = true;
        }
        self.events.push_back(Waiting {
            time_ns,
            record: record.to_vec(),
            is_whole: !has_stacks,
            ..Waiting::default()
        });
    }

    /// Adds a stack to its event. False when that is not here: it was lost, or is history.
    pub fn stack(&mut self, records: &StackRecords, side: Side, record: &[u8]) -> bool {
        let shared = record.get(SHARED).unwrap_or_default();
        let is_its = |event: &&mut Waiting| {
            let has = match side {
                Side::Kernel => event.kernel.is_some(),
                Side::User => event.user.is_some(),
            };
            !event.is_whole && !has && event.shared() == shared
        };
        let Some(event) = self.events.iter_mut().rev().find(is_its) else {
            return false;
        };
        let addresses = Some(records.addresses(side, record).to_vec());
        match side {
            Side::Kernel => event.kernel = addresses,
            Side::User => event.user = addresses,
        }
        // The kernel's is written first.
        event.is_whole = side == Side::User || records.user.is_none();
        true
    }

    /// The next event that has all that it gets.
    pub fn pop(&mut self) -> Option<Waiting> {
        self.events.front().filter(|event| event.is_whole)?;
        self.events.pop_front()
    }

    /// Nothing comes any more for those that wait.
    pub fn end(&mut self) {
        self.events
            .iter_mut()
            .for_each(|event| event.is_whole = true);
    }

    /// The ring is empty: who waited then already gets nothing more. Whether nobody waits now.
    pub fn settle(&mut self) -> bool {
        for event in &mut self.events {
            event.is_whole |= event.is_old;
            event.is_old = true;
        }
        self.events.iter().all(|event| event.is_whole)
    }
}

#[cfg(test)]
#[path = "stacks_tests.rs"]
mod tests;
