//! Which task has a CPU, written down where no switch says it.
//!
//! ftrace puts the task's number before each event, and LTTng's format has no room for it. Who has
//! a CPU follows from switches, so only what does not follow is written: at the first event, behind
//! a loss, and where the kernel hid a switch. A reader knows as much as if it stood with each.

use event::{ClassId, EventClass, Field, FieldType, Integer};
use ftrace::EventFormat;

/// The class of such an event.
const NAME: &str = "rtscope_current";
/// Where each record holds the task's number.
const TID_AT: usize = 4;

/// The class; its number is for the caller to set.
pub(crate) fn class() -> EventClass {
    let tid = FieldType::Integer(Integer::le(32, true));
    EventClass {
        id: ClassId(0),
        name: NAME.to_owned(),
        stream: 0,
        fields: vec![Field::payload("tid", tid)].into(),
    }
}

/// How switches are recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch {
    id: u16,
    next_at: usize,
}

impl Switch {
    pub fn of(format: &EventFormat) -> Option<Switch> {
        (format.full_name() == "sched:sched_switch").then_some(())?;
        let next = format.field("next_pid")?;
        Some(Switch {
            id: format.id,
            next_at: next.offset_bytes as usize,
        })
    }
}

/// Who has one CPU, as far as its stream tells.
#[derive(Debug, Default)]
pub(super) struct Current(Option<i32>);

impl Current {
    /// Events are missing: nobody knows any more.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// Takes in a record; the task that has the CPU, when the stream does not tell.
    pub fn record(&mut self, record: &[u8], id: u16, switch: Switch) -> Option<i32> {
        let word = |at: usize| {
            let bytes = record.get(at..at + 4)?.try_into().ok()?;
            Some(i32::from_le_bytes(bytes))
        };
        if id == switch.id {
            // It says itself who leaves.
            self.0 = word(switch.next_at);
            return None;
        }
        let tid = word(TID_AT)?;
        let is_told = self.0.replace(tid) == Some(tid);
        (!is_told).then_some(tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: Switch = Switch { id: 1, next_at: 8 };

    fn record(tid: i32, next: i32) -> Vec<u8> {
        let words = [1i32, tid, next];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn only_what_switches_do_not_tell_is_written() {
        let mut current = Current::default();
        let mut check = |id, tid, next, expect| {
            let record = record(tid, next);
            assert_eq!(current.record(&record, id, SWITCH), expect, "{id} {tid}");
        };
        check(2, 0, 0, Some(0));
        check(2, 0, 0, None);
        check(1, 0, 7, None);
        check(2, 7, 0, None);
        check(1, 7, 0, None);
        // The switch away from idle is hidden.
        check(2, 8, 0, Some(8));
        check(2, 8, 0, None);
        // A switch says itself that one before it is.
        check(1, 9, 0, None);
        check(2, 0, 0, None);
    }

    #[test]
    fn behind_a_loss_it_is_written_again() {
        let mut current = Current::default();
        assert_eq!(current.record(&record(5, 0), 2, SWITCH), Some(5));
        current.forget();
        assert_eq!(current.record(&record(5, 0), 2, SWITCH), Some(5));
        assert_eq!(current.record(&[2, 0], 2, SWITCH), None);
    }
}
