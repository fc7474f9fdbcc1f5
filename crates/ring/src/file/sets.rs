//! The sets of rings of a process, one for each recorder that there can be: whose they are, and who
//! takes which.

use abi::rings::{Plain, Ring};
use event::Result;

use super::{Mode, RingFile};
use crate::owned;

/// Whose a set of rings may be to be taken, how large its rings, and what it has to hold.
type Suits<'a> = (&'a dyn Fn(u64) -> bool, u64, Holds);

/// In the place of a recorder's number: nobody's, as the one that had it has ended. What it holds
/// is older than whoever takes it next.
const PAST: u64 = u64::MAX;

/// What a set of rings has to hold to be taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Anything,
    /// Something to read.
    Something,
    /// Nothing that is missing elsewhere: a flight recorder's history is nobody's.
    NothingToKeep,
}

impl RingFile {
    /// Means another set of its rings from now on. To be called before it is mapped.
    pub fn choose(&mut self, set: u32) {
        self.layout = self.layout.of_set(set);
    }

    /// Takes a set of rings for the recorder `session`, for as long as this is open: the one that
    /// the process gave it, else one of a recorder that was killed and had read all, else one that
    /// nobody has, and of these one whose rings have or can get `ring_bytes` each, if there is one
    /// (0: any). What a killed one had still to read stays as long as there are others. Recorders
    /// are alive where `is_live` says so. Whether there was one; it is meant from then on.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn claim(
        &mut self,
        session: u64,
        is_live: &dyn Fn(u64) -> bool,
        ring_bytes: u64,
    ) -> Result<bool> {
        if !self.layout.has_sets() {
            return self.take(0);
        }
        // Also events that were switched on without a recorder wait for one: before a set is chosen
        // for its size, one is that has something to read.
        let is_killed = |owner: u64| owner != 0 && !is_live(owner);
        let suits: [Suits; 6] = [
            (&|owner| owner == session, 0, Holds::Anything),
            (&is_killed, 0, Holds::NothingToKeep),
            (&|owner| owner == 0, 0, Holds::Something),
            (&|owner| owner == 0, ring_bytes, Holds::Anything),
            (&|owner| owner == 0, 0, Holds::Anything),
            (&is_killed, 0, Holds::Anything),
        ];
        for (suits, ring_bytes, holds) in suits {
            for set in 0..self.layout.sets() {
                let fits = self.layout.can_have(set, ring_bytes);
                if !fits || !suits(self.session_of(set)?) {
                    continue;
                }
                if !self.holds(set, holds)? || !self.take(set)? {
                    continue;
                }
                // Another recorder may have been here before the lock was ours.
                if suits(self.session_of(set)?) {
                    let is_past = self.is_past(set)?;
                    self.choose(set);
                    self.claimed = Some(set);
                    if is_past {
                        self.pass_over()?;
                    }
                    return self.own(session).map(|()| true);
                }
                self.give_back(set)?;
            }
        }
        Ok(false)
    }

    /// Gives the set that was claimed back: it is nobody's then. What is still in it, or comes from
    /// a thread in the middle of an event, is for nobody who records later; unless an event stays
    /// on, as its process wants it by itself.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn release(&self) -> Result<()> {
        match self.layout.has_sets() {
            true if self.has_event_on()? => self.own(0),
            true => self.own(PAST),
            false => Ok(()),
        }
    }

    /// Whether a set had a recorder that has ended.
    fn is_past(&self, set: u32) -> Result<bool> {
        Ok(self.raw_session_of(set)? == PAST)
    }

    /// Takes all that our set holds, records and losses, for told. A flight recorder's newest
    /// events are found by where the head is.
    fn pass_over(&self) -> Result<()> {
        let is_flight = self.mode()? == Mode::Overwrite;
        for ring in (0..self.layout.rings).filter(|_| !is_flight) {
            let control = self.ring(ring)?;
            if control.absent == 0 {
                self.consumed(ring, control.head)?;
            }
            self.stated(ring, &control.lost)?;
        }
        Ok(())
    }

    /// Takes a set besides, whose recorder was killed, for as long as `with` lasts; nothing where
    /// that is alive.
    ///
    /// # Errors
    /// What the operating system says, and what `with` gives.
    pub fn with_forgotten(
        &mut self,
        set: u32,
        is_live: &dyn Fn(u64) -> bool,
        with: &mut dyn FnMut(&RingFile) -> Result<()>,
    ) -> Result<()> {
        let own = self.layout.set;
        let owner = self.session_of(set)?;
        if self.claimed == Some(set) || owner == 0 || is_live(owner) || !self.take(set)? {
            return Ok(());
        }
        self.choose(set);
        let done = with(self);
        self.choose(own);
        done.and(self.give_back(set))
    }

    /// Whether other sets hold what their recorders have still to read, those that are alive and
    /// those that were killed; what nobody claims is nobody's.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn is_waited_for(&self, is_live: &dyn Fn(u64) -> bool) -> Result<bool> {
        let others = (0..self.layout.sets()).filter(|set| *set != self.layout.set);
        for set in others {
            let owner = self.session_of(set)?;
            if owner != 0 && (is_live(owner) || self.holds_something(set)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a set, and not ours, has what a recorder that was killed had still to read.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn is_left_unread(&self, is_live: &dyn Fn(u64) -> bool) -> Result<bool> {
        for set in (0..self.layout.sets()).filter(|set| self.claimed != Some(*set)) {
            let owner = self.session_of(set)?;
            if owner != 0 && !is_live(owner) && self.holds_something(set)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn holds(&self, set: u32, holds: Holds) -> Result<bool> {
        Ok(match holds {
            Holds::Anything => true,
            Holds::Something => !self.is_past(set)? && self.holds_something(set)?,
            Holds::NothingToKeep => {
                self.mode_of(set)? == Mode::Overwrite || !self.holds_something(set)?
            }
        })
    }

    /// Whether a set has records that were not read, or losses that were not stated.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn holds_something(&self, set: u32) -> Result<bool> {
        let layout = self.layout.of_set(set);
        for ring in 0..layout.rings {
            let mut bytes = [0; size_of::<Ring>()];
            self.read(&mut bytes, layout.control_offset(ring))?;
            let control = Ring::from_bytes(&bytes).unwrap_or_default();
            let was_read = control.absent != 0 || control.head == control.tail;
            if !was_read || control.lost != control.lost_stated {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whose a set is; 0: nobody's.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn session_of(&self, set: u32) -> Result<u64> {
        let session = self.raw_session_of(set)?;
        Ok(if session == PAST { 0 } else { session })
    }

    fn raw_session_of(&self, set: u32) -> Result<u64> {
        let offset = self.layout.sets.get(set as usize);
        match offset.and_then(|set| set.session_offset) {
            Some(offset) => self.word_in_file(offset),
            None => Ok(0),
        }
    }

    fn own(&self, session: u64) -> Result<()> {
        let own = &self.layout.sets[self.layout.set as usize];
        match own.session_offset {
            Some(offset) => self.write(&session.to_le_bytes(), offset),
            None => Ok(()),
        }
    }

    fn take(&self, set: u32) -> Result<bool> {
        owned::take(&self.file, set).map_err(|cause| self.unreadable(cause))
    }

    fn give_back(&self, set: u32) -> Result<()> {
        owned::give_back(&self.file, set).map_err(|cause| self.unreadable(cause))
    }
}
