//! The memory of rings: they get a size, memory for that, and give it back.

use std::mem::offset_of;

use abi::rings::{self, Ring};
use event::{Error, ErrorKind, Result};
use rustix::io::Errno;

use super::RingFile;
use crate::memory;

impl RingFile {
    /// Bytes that its rings lack, of CPUs that are online.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn lacks_bytes(&self) -> Result<u64> {
        Ok(self.absent()?.len() as u64 * self.layout.ring_bytes)
    }

    /// Rings without memory, of CPUs that are online, with their heads.
    fn absent(&self) -> Result<Vec<(u32, u64)>> {
        let mut absent = Vec::new();
        for ring in 0..self.layout.rings {
            let control = self.ring(ring)?;
            absent.extend((control.absent != 0).then_some((ring, control.head)));
        }
        if !absent.is_empty() {
            let online = memory::online(self.layout.rings);
            absent.retain(|(ring, _)| online.contains(ring));
        }
        Ok(absent)
    }

    /// Rings of CPUs that are online and that their process gives memory at their first event, as a
    /// child of `fork` does: those that have none yet.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn awaited(&self) -> Result<Vec<u32>> {
        Ok(self.absent()?.into_iter().map(|(ring, _)| ring).collect())
    }

    /// Whether a ring has memory by now.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn has_memory(&self, ring: u32) -> Result<bool> {
        let offset = self.layout.control_offset(ring) + offset_of!(Ring, absent) as u64;
        Ok(self.word(offset)? == 0)
    }

    /// Gives the rings of this set a size where they have none: a power of two near `bytes`, as far
    /// as the process has room. Whoever did so before has decided. Rings of that size and smaller
    /// ones are given memory when an event is switched on; that there is no room for them is known
    /// from [`RingFile::without_memory`]. To be called before the data are mapped.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for an impossible size; otherwise what the operating system says.
    pub fn size(&mut self, bytes: u64) -> Result<()> {
        if !self.layout.had_room() {
            return Ok(());
        }
        let bytes = bytes.clamp(2 * rings::SUBBUFFER_BYTES_MIN, rings::RING_BYTES_MAX);
        let bytes = bytes.next_power_of_two();
        self.given_ring_max = self.given_ring_max.max(bytes);
        if self.layout.has_size {
            return Ok(());
        }
        let bytes = bytes.min(self.layout.ring_bytes);
        let end = self.layout.data_offset_of(0) + u64::from(self.layout.rings) * bytes;
        if let Err(errno) = memory::reach(&self.file, end) {
            self.without_memory.set(Some(errno));
            return Ok(());
        }
        let offset = self.layout.size_offset();
        self.exchange(offset, 0, bytes)?;
        let stored = self.word_in_file(offset)?;
        let Some(layout) = self.layout.of_size(stored) else {
            let what = format!("{}: an impossible size of rings", self.name);
            return Err(Error::new(ErrorKind::Corrupt, what).found(format!("{stored} bytes")));
        };
        self.layout = layout;
        Ok(())
    }

    /// Says why the rings get no size: their events are lost.
    pub fn leave_without_size(&mut self, errno: Errno) {
        self.without_memory.set(Some(errno));
    }

    /// Rings are given all that they lack, or nothing where that is more than so much.
    pub fn give_at_most(&self, bytes: u64) {
        self.given_max.set(Some(bytes));
    }

    /// Gives rings their memory, where they have none, once. That some could not get any is known
    /// from [`RingFile::without_memory`].
    pub(crate) fn give_memory(&self) -> Result<()> {
        let may_give = self.layout.ring_bytes <= self.given_ring_max;
        let most = self.given_max.get();
        if !self.layout.has_size {
            self.without_memory
                .set(self.without_memory.get().or(Some(Errno::DQUOT)));
            return Ok(());
        }
        if self.was_given.replace(true) || !(may_give || most.is_some()) {
            return Ok(());
        }
        let absent = self.absent()?;
        let lacks = absent.len() as u64 * self.layout.ring_bytes;
        if lacks > 0 && (!may_give || most.is_some_and(|most| lacks > most)) {
            self.without_memory.set(Some(Errno::DQUOT));
            return Ok(());
        }
        for (ring, head) in absent {
            if let Err(errno) = memory::give(&self.file, &self.layout, ring) {
                self.without_memory.set(Some(errno));
                continue;
            }
            // Writers go by the tail: it comes last. What was lost until now stays lost.
            let at = self.layout.control_offset(ring);
            self.write(&0u64.to_le_bytes(), at + offset_of!(Ring, absent) as u64)?;
            self.consumed(ring, head)?;
        }
        Ok(())
    }

    /// Takes the memory of rings back that got their size while their process ran, where all is
    /// read and no event goes into them any more; the next recorder gives it anew. A thread that is
    /// in an event since before counts it as lost, or stores into what is kept for it.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn take_memory_back(&self) -> Result<()> {
        let layout = &self.layout;
        if !layout.had_room() || !layout.has_size || self.has_event_on()? {
            return Ok(());
        }
        for ring in 0..layout.rings {
            let Ring {
                head, tail, absent, ..
            } = self.ring(ring)?;
            if absent != 0 || head != tail {
                continue;
            }
            let at = layout.control_offset(ring) + offset_of!(Ring, absent) as u64;
            self.write(&1u64.to_le_bytes(), at)?;
            self.consumed(ring, head.wrapping_sub(layout.most_ring_bytes()))?;
            let taken = memory::take_back(&self.file, layout, ring, head);
            taken.map_err(|errno| self.broken("cannot take back memory of", errno.into()))?;
        }
        Ok(())
    }

    /// Why CPUs that are online have no ring, after an event was switched on.
    pub fn without_memory(&self) -> Option<Errno> {
        self.without_memory.get()
    }
}
