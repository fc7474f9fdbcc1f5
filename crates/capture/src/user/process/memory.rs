//! The memory of a process's rings: what size they get, as far as there is room, and which of them
//! have some by now.

use event::Result;
use ring::Directory;
use rustix::io::Errno;

use super::{Common, Process};
use crate::user::refusals;
use crate::user::room::LateRoom;

impl Process {
    /// Says where rings are not as large as was asked for.
    pub(super) fn say_size(&mut self, common: &Common) {
        let layout = self.file.layout();
        if let Some(asked) = common.wanted.ring_bytes
            && layout.ring_bytes != asked
            && layout.has_size
        {
            self.undersized = Some(refusals::of_another_size(layout, asked));
        }
    }

    /// Lanes for the rings that their process gave memory since.
    pub(super) fn look_for_memory(&mut self, common: &Common) -> Result<()> {
        let length = self.awaited.len();
        let mut awaited = std::mem::take(&mut self.awaited);
        for place in (0..length).rev() {
            if self.file.has_memory(awaited[place])? {
                awaited.swap_remove(place);
            }
        }
        self.awaited = awaited;
        if self.awaited.len() == length {
            return Ok(());
        }
        let mode = self.file.mode()?;
        self.add_lanes(mode, common)
    }

    /// How large rings become that have no size yet.
    pub(super) fn next_size(
        room: &LateRoom,
        directory: &Directory,
        common: &Common,
    ) -> Result<u64> {
        let taken = directory.memory_bytes()?;
        let most = common.wanted.user_bytes;
        Ok(room.next(taken, most.map(|most| most.saturating_sub(taken))))
    }

    /// Rings that nobody needed before become as large as is asked for, or as there is room.
    pub(super) fn give_size(&mut self, common: &Common) -> Result<()> {
        let Some(late_room) = common.late_room else {
            return Ok(());
        };
        let had_size = self.file.layout().has_size;
        let bytes = Process::next_size(late_room, &self.directory, common)?;
        if !had_size && !late_room.allows(bytes) {
            self.file.leave_without_size(Errno::OVERFLOW);
            return Ok(());
        }
        self.file.size(bytes)?;
        if had_size || !self.file.layout().has_size {
            return Ok(());
        }
        late_room.took(self.file.layout().ring_bytes);
        if !common.in_flight {
            self.file.map_data();
        }
        self.say_size(common);
        Ok(())
    }

    /// Its rings get no more memory than is left of what all programs of its user may have.
    pub(super) fn bound_memory(&self, common: &Common) -> Result<()> {
        let Some(most) = common.wanted.user_bytes else {
            return Ok(());
        };
        let lacks = self.file.lacks_bytes()?;
        if lacks > 0 {
            let left = most.saturating_sub(self.directory.memory_bytes()?);
            self.file.give_at_most(left);
            self.directory.took(if lacks > left { 0 } else { lacks });
        }
        Ok(())
    }
}
