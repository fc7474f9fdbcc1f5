//! The processes that come into a directory, and who of them has no room there.

use std::rc::Rc;

use event::{Error, ErrorKind, Result};
use ring::RingFile;

use super::{PROCESSES_MAX, Place, TURN_MAX};
use crate::clock::Effort;
use crate::user::former;
use crate::user::process::Process;
use crate::user::refusals::Refusals;
use crate::user::session::Shared;
use crate::{clock, descriptors};

/// Descriptions of so many bytes are read in a moment.
const LIGHT_BYTES_MAX: u64 = 64 << 10;
/// The time of a directory's last change is as fine as this. What changes so shortly behind a look
/// may not show.
const CHANGE_WIDTH_NS: i128 = 50_000_000;

/// How far the looks into the directory are.
#[derive(Default)]
pub(super) struct Looked {
    /// When the directory had changed last as of the last look, once that saw all.
    unchanged_since_ns: Option<i128>,
    /// Whether the look that goes on left something for the next.
    leaves_some: bool,
    /// Whether all was seen once.
    pub(super) is_through: bool,
    /// Whether the look that goes on passes by some for want of room or time, and whether the last
    /// one did.
    passes_by: bool,
    passed_by: bool,
}
impl Place {
    /// Attaches to processes that are new, for as long as a turn lasts.
    /// `others` are recorded elsewhere for the same user.
    pub fn find(&mut self, shared: &Shared, others: usize, refusals: &mut Refusals) -> Result<()> {
        if self.is_closed {
            return Ok(());
        }
        self.directory.check_is_there()?;
        let now_ns = i128::from(clock::wall_ns());
        let changed_ns = self.directory.changed_ns()?;
        if self.looked.unchanged_since_ns == Some(changed_ns) {
            return Ok(());
        }
        let effort = Effort::begin();
        let seen = self.directory.look()?;
        refusals.without_rings(&self.directory, seen.without_rings, shared.wanted.begin_ns);
        let mut heavy = Vec::new();
        if seen.is_whole {
            let is_there = |name: &String| seen.rings.binary_search(name).is_ok();
            self.left.retain(is_there);
        }
        for name in seen.rings {
            if self.names.contains(&name) || self.left.contains(&name) {
                continue;
            }
            if self.processes.len() + others >= self.processes_max {
                self.waiting.insert(name);
                self.looked.leaves_some = true;
                self.looked.passes_by = true;
                continue;
            }
            if effort.spent() > TURN_MAX {
                self.looked.leaves_some = true;
                self.looked.passes_by = true;
                break;
            }
            heavy.extend(self.find_one(name, LIGHT_BYTES_MAX, shared, refusals));
        }
        // Last: they take time, in which others are not seen.
        for name in heavy {
            if effort.spent() > TURN_MAX {
                self.looked.leaves_some = true;
                break;
            }
            self.find_one(name, u64::MAX, shared, refusals);
        }
        if seen.is_all {
            let is_settled = !self.looked.leaves_some && now_ns - changed_ns > CHANGE_WIDTH_NS;
            self.looked.unchanged_since_ns = is_settled.then_some(changed_ns);
            self.looked.is_through |= !self.looked.leaves_some;
            self.looked.leaves_some = false;
            self.looked.passed_by = std::mem::take(&mut self.looked.passes_by);
        }
        Ok(())
    }

    /// Whether processes wait that there was no room for beside the others, or no time.
    pub fn is_crowded(&self) -> bool {
        (self.looked.passes_by || self.looked.passed_by) && !self.is_closed
    }

    /// Says how many were not recorded because others were, if any, and where nobody could even say
    /// that it has no rings.
    pub fn say_left_out(&self, refusals: &mut Refusals) {
        let path = self.directory.path();
        let facts = rustix::fs::statvfs(path);
        if facts.is_ok_and(|facts| facts.f_files > 0 && facts.f_favail == 0) {
            let folder = path.display();
            let what = format!("programs that start can make no rings in {folder}");
            let error = Error::new(ErrorKind::StorageFull, what)
                .found("no free inode: its file system has as many files as it can")
                .fix(format!(
                    "remove some (df -i {folder}), or mount it with more (nr_inodes=)"
                ));
            refusals.add(path, &error);
        }
        let is_out = |name: &String| !self.left.contains(name) && !refusals.knows(&path.join(name));
        let count = match self.is_crowded() {
            true => self.directory.count(is_out).unwrap_or_default(),
            false => 0,
        };
        let count = count.max(self.waiting.len());
        if count > 0 {
            refusals.add(path, &self.left_out(count));
        }
        if self.unread > 0 {
            refusals.add(path, &former::left_unread(self.unread, path));
        }
    }

    fn left_out(&self, count: usize) -> Error {
        let path = self.directory.path().display();
        let fix = match self.processes_max < PROCESSES_MAX {
            true => {
                let files = descriptors::needed(PROCESSES_MAX);
                format!("raise 'ulimit -Hn' (to {files}), or record fewer with RTSCOPE_DIR")
            }
            false => {
                "give some another folder by RTSCOPE_DIR, and that a recorder of its own".into()
            }
        };
        let what = format!("{count} processes of {path} were not recorded");
        Error::new(ErrorKind::Unsupported, what)
            .found(format!("{} others at the same time", self.processes_max))
            .fix(format!(
                "{fix}; what those left that have ended: rtscope recover"
            ))
    }

    /// Takes a process that is new; gives its name back where it has described more than so much.
    fn find_one(
        &mut self,
        name: String,
        described_bytes_max: u64,
        shared: &Shared,
        refusals: &mut Refusals,
    ) -> Option<String> {
        let path = self.directory.path().join(&name);
        if refusals.knows(&path) {
            return None;
        }
        let taken = match self.directory.rings(&name) {
            // The process is not through with making it.
            Ok(None) => {
                self.looked.leaves_some = true;
                return None;
            }
            Ok(Some(file)) if file.described_bytes() > described_bytes_max => return Some(name),
            Ok(Some(file)) if former::is_past(&file, shared, &self.recorders) => {
                self.unread += usize::from(former::is_unread(&file, &self.recorders));
                self.names.insert(name);
                return None;
            }
            Ok(Some(file)) => {
                self.unread += usize::from(former::is_unread(&file, &self.recorders));
                self.attach(file, shared)
            }
            Err(error) => Err(error),
        };
        self.waiting.remove(&name);
        match taken {
            Ok((process, identity)) => {
                self.processes.push(process);
                self.identities.insert(identity, name.clone());
                self.names.insert(name);
            }
            Err(error) => refusals.add_at(path, &error),
        }
        None
    }

    fn attach(&self, file: RingFile, shared: &Shared) -> Result<(Process, (u64, u64))> {
        let name = file.name();
        let identity = file.identity();
        if let Some(other) = self.identities.get(&identity) {
            let what = format!("the rings {name} are recorded already");
            let found = format!("another name of {other}");
            return Err(Error::new(ErrorKind::AlreadyExists, what).found(found));
        }
        let (rings, most) = (file.layout().rings, self.cpus);
        if rings > most {
            let what = format!("the rings {name} are not of this machine");
            let found = format!("{rings} rings, {most} CPUs are possible here");
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found(found)
                .fix("rtscope recover reads the rings of another machine"));
        }
        let directory = Rc::clone(&self.directory);
        let recorders = (&self.recorders, &self.forgotten);
        let mut process = Process::attach(directory, file, &shared.common(), recorders)?;
        if let Some(error) = self.is_too_much(&process, true) {
            // What could not be switched off is not read either.
            let _ = process.stop(clock::monotonic(), &shared.common());
            return Err(error);
        }
        Ok((process, identity))
    }
}

#[cfg(test)]
mod tests {
    use ring::Directory;

    use super::*;
    use crate::user::finder::Found;

    #[test]
    fn those_for_whom_there_was_no_room_are_counted_with_what_helps() {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let owner = rustix::process::geteuid().as_raw();
        let directory = Directory::open(folder.path(), owner).expect("a directory");
        let found = Found::here(folder.path().to_owned(), owner, Ok(directory));
        let mut place = Place::take(found, 7, &["app".to_owned()]).expect("ours");
        for number in 0..5000 {
            std::fs::write(folder.path().join(format!("rings-{number}-1")), "").expect("a file");
        }
        place.left.insert("rings-7-1".to_owned());
        let mut check = |passed_by: bool, processes_max: usize, expect: &[&str]| {
            let mut refusals = Refusals::default();
            place.looked.passed_by = passed_by;
            place.processes_max = processes_max;
            place.say_left_out(&mut refusals);
            let said = refusals.into_said();
            assert_eq!(said.len(), usize::from(passed_by), "{said:?}");
            for part in expect {
                assert!(said[0].contains(part), "no '{part}' in {said:?}");
            }
        };
        check(false, 12, &[]);
        let files = [
            "4999 processes of",
            "12 others",
            "'ulimit -Hn' (to 49152)",
            "recover",
        ];
        check(true, 12, &files);
        check(true, PROCESSES_MAX, &["4096 others", "by RTSCOPE_DIR"]);
        // Those that have ended since are counted too.
        let gone = (0..6000).map(|number| format!("rings-{number}-2"));
        place.waiting = gone.collect();
        let mut refusals = Refusals::default();
        place.looked.passed_by = false;
        place.say_left_out(&mut refusals);
        let said = refusals.into_said();
        assert!(said[0].contains("6000 processes of"), "{said:?}");
    }
}
