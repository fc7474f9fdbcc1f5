//! The switches of a process's events, which several recorders and the process change: each as a
//! whole, in one step, so that whoever is killed leaves nothing half done.

use std::mem::offset_of;
use std::sync::atomic::{Ordering, fence};

use abi::rings::{self, Filters, Header, Plain};
use event::{Error, ErrorKind, Result};

use crate::RingFile;
use crate::description::EventDescription;

/// Who changes a switch again and again, or the area of filters, keeps nobody for longer.
const TRIES_MAX: usize = 100;
/// Places of filters count so many bytes.
const UNIT_BYTES: u64 = 8;

/// What becomes of an event that happens, for the recorder of a set of rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Nothing.
    Off,
    /// It is recorded.
    On,
    /// It is recorded where its filter lets it pass.
    Filtered(FilterPlace),
}

/// Where a filter is that was put down with [`RingFile::place_filter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterPlace(u32);

impl RingFile {
    /// Sets the switch of an event of the table, for the recorder of this set of rings; before the
    /// first that is switched on, its rings get their memory. Whether there was room for its
    /// filters. A description that names a place outside of the switches is ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for a switch that changes all the time; otherwise what the operating
    /// system says.
    pub fn switch(&self, event: &EventDescription, to: Switch) -> Result<bool> {
        if !self.layout().holds_switch(event.switch_offset) {
            return Ok(true);
        }
        if to != Switch::Off {
            self.give_memory()?;
        }
        // What the switch leads to is there before the switch leads to it.
        fence(Ordering::Release);
        if !self.layout().has_sets() {
            return self.switch_alone(event.switch_offset, to).map(|()| true);
        }
        for _ in 0..TRIES_MAX {
            let word = self.shared_word(event.switch_offset)?;
            let Some(switched) = self.switched(word, to)? else {
                return Ok(false);
            };
            if switched == word || self.exchange(event.switch_offset, word, switched)? {
                return Ok(true);
            }
        }
        Err(self.restless("a switch"))
    }

    /// The switch of a file that has one recorder: filters stand alone there.
    fn switch_alone(&self, offset: u64, to: Switch) -> Result<()> {
        let enabled = match to {
            Switch::Off => 0,
            Switch::On => rings::ENABLED,
            Switch::Filtered(FilterPlace(place)) => {
                let at = offset + offset_of!(rings::Switch, filter) as u64;
                self.write(&place.to_le_bytes(), at)?;
                rings::ENABLED | rings::FILTERED
            }
        };
        fence(Ordering::Release);
        self.write(&[enabled], offset)
    }

    /// The switch `word` as it is to be; none where filters find no room.
    fn switched(&self, word: u64, to: Switch) -> Result<Option<u64>> {
        let mut switch = rings::Switch::from_bytes(&word.to_le_bytes()).unwrap_or_default();
        let before = self.filters_at(switch.filter)?;
        let own = self.layout().set as usize;
        let bit = 1 << own;
        let mut filters = before;
        match to {
            Switch::Off => switch.sets &= !bit,
            Switch::On | Switch::Filtered(_) => switch.sets |= bit,
        }
        filters.at[own] = match to {
            Switch::Filtered(FilterPlace(place)) => place,
            Switch::Off | Switch::On => 0,
        };
        for (set, filter) in filters.at.iter_mut().enumerate() {
            if switch.sets & 1 << set == 0 {
                *filter = 0;
            }
        }
        // Who is off asks no filter, whatever stands there; others are believed.
        let differs = |set: usize| switch.sets & 1 << set != 0 && filters.at[set] != before.at[set];
        if filters.at == [0; rings::SETS_MAX] {
            switch.filter = 0;
        } else if (0..rings::SETS_MAX).any(differs) {
            let bytes: Vec<u8> = filters.at.iter().flat_map(|at| at.to_le_bytes()).collect();
            match self.place_filter(&bytes)? {
                Some(FilterPlace(place)) => switch.filter = place,
                None => return Ok(None),
            }
        }
        switch.enabled = enabled(switch.sets, switch.filter);
        let rings::Switch {
            enabled,
            sets,
            id,
            filter,
        } = switch;
        let [low, high] = id.to_le_bytes();
        let [a, b, c, d] = filter.to_le_bytes();
        Ok(Some(u64::from_le_bytes([
            enabled, sets, low, high, a, b, c, d,
        ])))
    }

    /// Whether an event of the table goes into this set of rings.
    pub(crate) fn has_event_on(&self) -> Result<bool> {
        let layout = self.layout();
        for event in &self.table().events {
            if !layout.holds_switch(event.switch_offset) {
                continue;
            }
            let word = self.shared_word(event.switch_offset)?;
            let switch = rings::Switch::from_bytes(&word.to_le_bytes()).unwrap_or_default();
            if switch.sets & 1 << layout.set != 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The filters that stand at `place`; none where there are none.
    fn filters_at(&self, place: u32) -> Result<Filters> {
        let layout = self.layout();
        let offset = u64::from(place) * UNIT_BYTES;
        let mut bytes = [0; size_of::<Filters>()];
        let ends = offset + bytes.len() as u64;
        if place == 0 || ends > layout.filters_bytes {
            return Ok(Filters::default());
        }
        self.read(&mut bytes, layout.filters_offset + offset)?;
        Ok(Filters::from_bytes(&bytes).unwrap_or_default())
    }

    /// Puts a filter behind those of the process, for [`Switch::Filtered`]. None where there is no
    /// room for it.
    ///
    /// # Errors
    /// As [`RingFile::switch`].
    pub fn place_filter(&self, filter: &[u8]) -> Result<Option<FilterPlace>> {
        let bytes = (filter.len() as u64).next_multiple_of(UNIT_BYTES);
        let Some(used) = self.take_filter_bytes(bytes)? else {
            return Ok(None);
        };
        let mut padded = filter.to_vec();
        padded.resize(bytes as usize, 0);
        self.write(&padded, self.layout().filters_offset + used)?;
        Ok(Some(FilterPlace((used / UNIT_BYTES) as u32)))
    }

    /// Takes room in the area of filters, which nobody else has then; gives where it begins.
    fn take_filter_bytes(&self, bytes: u64) -> Result<Option<u64>> {
        let used_offset = offset_of!(Header, filters_used) as u64;
        for _ in 0..TRIES_MAX {
            let word = self.shared_word(used_offset)?;
            let begin = word.checked_next_multiple_of(UNIT_BYTES);
            let end = begin.and_then(|begin| begin.checked_add(bytes));
            let (Some(begin), Some(end)) = (begin, end) else {
                return Ok(None);
            };
            if end > self.layout().filters_bytes {
                return Ok(None);
            }
            if self.exchange(used_offset, word, end)? {
                return Ok(Some(begin));
            }
        }
        Err(self.restless("the area of filters"))
    }

    fn restless(&self, what: &str) -> Error {
        let what = format!("{what} of the rings {} changes all the time", self.name());
        Error::new(ErrorKind::Corrupt, what).found(format!("{TRIES_MAX} times in a moment"))
    }
}

/// What traced code looks at, as it follows from the rest of a switch.
fn enabled(sets: u8, filters: u32) -> u8 {
    let others = sets & !rings::ENABLED;
    let asks = sets != 0 && (others != 0 || filters != 0);
    (sets & rings::ENABLED) | if asks { rings::FILTERED } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_set_0_has_alone_and_whole_goes_without_a_detour() {
        let check = |sets: u8, filters: u32, expect: u8| {
            assert_eq!(enabled(sets, filters), expect, "{sets:b} {filters}");
        };
        let (on, asks) = (rings::ENABLED, rings::FILTERED);
        check(0, 0, 0);
        check(0, 5, 0);
        check(0b1, 0, on);
        check(0b1, 5, on | asks);
        check(0b10, 0, asks);
        check(0b1000, 5, asks);
        check(0b1011, 0, on | asks);
    }
}
