//! What is counted together: a phase of wake-ups, or what a tracker measures.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use abi::monitor::Phase;

/// Letters of a name: those of a pair are as long as its events'.
const NAME_MAX: usize = 64;

/// A phase, or the intervals of a tracker of one series. Two of one name are the same.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A part of a wake-up, or a sum of parts.
    Phase(Phase),
    /// What a tracker measures.
    Tracked(Arc<Tracked>),
}

/// The intervals of a tracker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracked {
    name: String,
    /// What the other one of an interval did, in words that go before a name; may be empty.
    other: String,
}

impl Kind {
    /// A series of a tracker; `other` are the words that go before whoever else is told.
    pub fn tracked(tracker: &str, series: &str, other: &str) -> Kind {
        let words = format!("{tracker}_{series}");
        let mut name = String::new();
        for letter in words.chars() {
            match letter.is_ascii_alphanumeric() {
                true => name.push(letter.to_ascii_lowercase()),
                false if name.ends_with('_') => {}
                false => name.push('_'),
            }
        }
        name.truncate(NAME_MAX);
        Kind::stored(name, other.to_owned())
    }

    /// As a store has it.
    pub(crate) fn stored(name: String, other: String) -> Kind {
        Kind::Tracked(Arc::new(Tracked { name, other }))
    }

    /// As files and labels have it: small letters, digits and `_`.
    pub fn name(&self) -> &str {
        match self {
            Kind::Phase(phase) => phase.name(),
            Kind::Tracked(tracked) => &tracked.name,
        }
    }

    /// As people read it.
    pub fn title(&self) -> &str {
        match self {
            Kind::Phase(phase) => phase.title(),
            Kind::Tracked(tracked) => &tracked.name,
        }
    }

    /// The words before whoever else a longest interval names; none of a phase.
    pub(crate) fn other(&self) -> Option<&str> {
        match self {
            Kind::Phase(_) => None,
            Kind::Tracked(tracked) => Some(&tracked.other),
        }
    }

    /// The phase that it is.
    pub fn phase(&self) -> Option<Phase> {
        match self {
            Kind::Phase(phase) => Some(*phase),
            Kind::Tracked(_) => None,
        }
    }

    /// Phases by number, then what trackers measure, by name.
    fn key(&self) -> (u8, &str) {
        match self {
            Kind::Phase(phase) => (*phase as u8, ""),
            Kind::Tracked(tracked) => (u8::MAX, &tracked.name),
        }
    }
}

impl From<Phase> for Kind {
    fn from(phase: Phase) -> Kind {
        Kind::Phase(phase)
    }
}

impl PartialEq<Phase> for Kind {
    fn eq(&self, phase: &Phase) -> bool {
        self.phase() == Some(*phase)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Kind {}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Kind) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kind {
    fn cmp(&self, other: &Kind) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_a_name_that_a_label_and_an_address_can_hold() {
        let check = |tracker: &str, series: &str, expect: &str| {
            assert_eq!(Kind::tracked(tracker, series, "").name(), expect);
        };
        check("block", "queue", "block_queue");
        check("offcpu", "blocked on I/O", "offcpu_blocked_on_i_o");
        check("pair", "uprobe:a:f to \"x\"", "pair_uprobe_a_f_to_x_");
        let long = Kind::tracked("pair", &"é".repeat(90), "");
        assert_eq!(long.name(), "pair_");
        assert_eq!(Kind::tracked("pair", &"a".repeat(90), "").name().len(), 64);
    }

    #[test]
    fn phases_come_first_and_a_name_tells_kinds_apart() {
        let mut all = [
            Kind::tracked("irq", "handler", ""),
            Kind::tracked("block", "queue", "x"),
            Phase::Total.into(),
            Phase::Timer.into(),
        ];
        all.sort();
        let names: Vec<_> = all.iter().map(Kind::name).collect();
        assert_eq!(names, ["timer", "total", "block_queue", "irq_handler"]);
        assert_eq!(all[2], Kind::tracked("block", "queue", "y"));
        assert!(all[0] == Phase::Timer && all[2] != Phase::Timer);
    }
}
