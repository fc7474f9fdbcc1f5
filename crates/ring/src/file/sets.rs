//! The sets of rings of a process, one for each recorder that there can be: whose they are, and who
//! takes which.

use abi::rings::{Plain, Ring};
use event::Result;

use super::RingFile;
use crate::owned;

/// Whose a set of rings may be to be taken, how large its rings, and whether it has to hold
/// something.
type Suits<'a> = (&'a dyn Fn(u64) -> bool, u64, bool);

impl RingFile {
    /// Means another set of its rings from now on. To be called before it is mapped.
    pub fn choose(&mut self, set: u32) {
        self.layout = self.layout.of_set(set);
    }

    /// Takes a set of rings for the recorder `session`, for as long as this is open: the one that
    /// the process gave it, else one of a recorder that was killed, else one that nobody has, and
    /// of these one whose rings have or can get `ring_bytes` each, if there is one (0: any). Others
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
        let suits: [Suits; 5] = [
            (&|owner| owner == session, 0, false),
            (&|owner| owner != 0 && !is_live(owner), 0, false),
            (&|owner| owner == 0, 0, true),
            (&|owner| owner == 0, ring_bytes, false),
            (&|owner| owner == 0, 0, false),
        ];
        for (suits, ring_bytes, has_to_hold) in suits {
            for set in 0..self.layout.sets() {
                let fits = self.layout.can_have(set, ring_bytes);
                if !fits || !suits(self.session_of(set)?) {
                    continue;
                }
                if has_to_hold && !self.holds_something(set)? || !self.take(set)? {
                    continue;
                }
                // Another recorder may have been here before the lock was ours.
                if suits(self.session_of(set)?) {
                    self.choose(set);
                    self.claimed = Some(set);
                    return self.own(session).map(|()| true);
                }
                self.give_back(set)?;
            }
        }
        Ok(false)
    }

    /// Gives the set that was claimed back: it is nobody's then.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn release(&self) -> Result<()> {
        match self.layout.has_sets() {
            true => self.own(0),
            false => Ok(()),
        }
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
