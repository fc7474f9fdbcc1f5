//! Who is recorded: the directories of users and of namespaces, and the processes in them.

use std::path::{Path, PathBuf};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use event::{Error, ErrorKind, Result};

use super::Session;
use crate::clock::Effort;
use crate::user::finder::Found;
use crate::user::place::Place;
use crate::user::places::{self, SHARED_MEMORY};
use crate::user::room::RingRoom;

/// So much effort is made to find the processes that are there when a recording begins or ends.
pub(super) const FIND_MAX: StdDuration = StdDuration::from_secs(2);
/// How long directories are looked for at once while others wait.
const PLACES_SLICE: StdDuration = StdDuration::from_millis(5);
/// Directories that are recorded at the same time, and those for which one user answers that is not
/// root: who makes many keeps nobody else out.
const PLACES_MAX: usize = 1024;
const PLACES_OF_USER_MAX: usize = 64;
/// A directory elsewhere that so many looks have not found any more is gone, with its namespace.
const MISSED_MAX: u32 = 2;

impl Session {
    /// Takes the directories that are ours.
    pub(super) fn take_own(&mut self) -> Result<()> {
        let own = places::own(self.asked.as_deref());
        let mut moved = Vec::new();
        let directory = places::open_own(&own.0, own.1, &mut moved);
        self.say_moved(&moved);
        self.take(Found::here(own.0, own.1, directory), true)
    }

    fn say_moved(&mut self, moved: &[Error]) {
        for problem in moved {
            let refusals = &mut self.outcome.refusals;
            refusals.add(Path::new(SHARED_MEMORY), problem);
        }
    }

    /// Takes directories of others that are new: they come with the first traced process of a user.
    /// Looks for them for a slice of time, or until all were seen, at `most` so long.
    pub(super) fn find_places(&mut self, most: StdDuration) -> Result<()> {
        let effort = Effort::begin();
        loop {
            let part = self.finder.look(PLACES_SLICE);
            self.say_moved(&part.moved);
            for found in part.found {
                self.take(found, false)?;
            }
            if part.is_all {
                self.leave_what_is_gone();
                self.places_found = Some(StdInstant::now());
                return Ok(());
            }
            self.places_found = None;
            if effort.spent() >= most {
                return Ok(());
            }
        }
    }

    /// Takes a directory, unless it was taken or refused before. An error is that of one of ours.
    fn take(&mut self, found: Found, ours: bool) -> Result<()> {
        let identity = match &found.directory {
            Ok(directory) => Some(directory.identity()?),
            Err(_) => places::identity(&found.path),
        };
        let mut places = self.places.iter_mut();
        if let Some(place) = places.find(|place| Some(place.identity()) == identity) {
            place.is_found();
            return Ok(());
        }
        // Who makes many namespaces is told of, not each of them.
        let told = match found.is_elsewhere {
            true => PathBuf::from(format!("namespaces of user {}", found.user)),
            false => found.path.clone(),
        };
        if !ours && let Some(error) = self.too_many(found.user) {
            if self.refused.insert((u64::MAX, u64::from(found.user))) {
                self.outcome.refusals.add(&told, &error);
            }
            return Ok(());
        }
        match Place::take(found, self.id, &self.lines) {
            Ok(place) => self.places.push(place),
            Err(error) if ours => return Err(error),
            Err(error) => {
                if identity.is_some_and(|identity| self.refused.insert(identity)) {
                    self.outcome.refusals.add(&told, &error);
                }
            }
        }
        Ok(())
    }

    /// Why one more directory of a user is not recorded, if it is not.
    fn too_many(&self, user: u32) -> Option<Error> {
        let of_user = self.places.iter().filter(|place| place.user() == user);
        let (all, of_user) = (self.places.len(), of_user.count());
        let found = match user != 0 && of_user >= PLACES_OF_USER_MAX {
            true => format!("{of_user} directories of rings of user {user}"),
            false if all >= PLACES_MAX => format!("{all} directories of rings"),
            false => return None,
        };
        let error = Error::new(ErrorKind::Unsupported, "some directories are not recorded");
        Some(error.found(found).fix("name one: RTSCOPE_DIR"))
    }

    /// Closes the directories whose namespaces have gone since: else those of containers that come
    /// and go would be kept with their memory, and fill the list.
    fn leave_what_is_gone(&mut self) {
        for place in &mut self.places {
            if place.was_missed() > MISSED_MAX {
                place.close();
            }
        }
    }

    /// Attaches to processes that are new: to some of each directory.
    pub(super) fn find(&mut self) {
        for index in 0..self.places.len() {
            let others = self.of_same_user(index);
            let refusals = &mut self.outcome.refusals;
            let found = self.places[index].find(&self.shared, others, refusals);
            // Whoever took the directory away ends what would have been recorded there alone.
            if let Err(error) = found {
                let place = &mut self.places[index];
                self.outcome.refusals.add(place.path(), &error);
                place.close();
            }
        }
        self.places.retain(|place| !place.is_over());
    }

    /// So many processes are recorded in the other directories of the same user, where that one is
    /// not root: more directories give nobody room for more.
    fn of_same_user(&self, index: usize) -> usize {
        let user = self.places[index].user();
        let others = self.places.iter().enumerate();
        let others = others.filter(|(other, place)| *other != index && place.user() == user);
        match user {
            0 => 0,
            _ => others.map(|(_, place)| place.processes()).sum(),
        }
    }

    /// Tells who starts from now on how large its rings may be, by what others have.
    pub(super) fn tell_room(&mut self) {
        let used_bytes = self.places.iter().map(Place::ring_bytes);
        let used_bytes = used_bytes.fold(0, u64::saturating_add);
        self.shared.late_room.note(used_bytes);
        if !self.room.note(used_bytes) {
            return;
        }
        for line in &mut self.lines {
            if RingRoom::is_line(line) {
                *line = self.room.line();
            }
        }
        for place in &mut self.places {
            // Where it is no more, nobody starts; others go by what they were told before.
            let _ = place.announce(&self.lines);
        }
    }

    /// The same of all that are there now, within reason.
    pub(super) fn find_all(&mut self) {
        let effort = Effort::begin();
        loop {
            self.find();
            let is_done = self.places.iter().all(Place::has_seen_all);
            if is_done || effort.spent() > FIND_MAX {
                return;
            }
        }
    }
}
