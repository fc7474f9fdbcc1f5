//! A directory of rings one of whose recorders we are: its processes come, are read in turns and
//! end there, and what one of them does is its own affair.

mod finding;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use event::{Error, ErrorKind, Result};
use ring::{Announced, Directory, RecorderLock};

use super::clock::CounterClock;
use super::finder::Found;
use super::forgotten::Forgotten;
use super::map::LookBudget;
use super::process::{Ended, Process};
use super::recorders::{self, Recorders};
use super::refusals::Refusals;
use super::session::{Shared, UserSummary};
use crate::{clock, descriptors, housekeeping};
use finding::Looked;

/// So long what was announced stays beside what follows it.
const FORMER_STAYS: StdDuration = StdDuration::from_secs(1);
/// In flight, of more processes than this the dead ones are let go.
const DEAD_KEPT: usize = 64;
/// So long the processes of one user are read until others have their turn.
pub(super) const TURN_MAX: StdDuration = StdDuration::from_millis(20);
/// More processes of one directory are not recorded at the same time.
const PROCESSES_MAX: usize = 4096;
/// All processes of one directory have so many events and fields, some 100 MB of the recorder's
/// memory; beyond, those go that have more than their share.
const DESCRIBED_MAX: usize = 1 << 18;

/// What a turn read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    /// The fill of the fullest ring, 0 to 1.
    pub fullest: f64,
    /// Whether there is more to read at once.
    pub is_behind: bool,
}

impl Read {
    /// This and `other`.
    pub fn and(self, other: Read) -> Read {
        Read {
            fullest: self.fullest.max(other.fullest),
            is_behind: self.is_behind || other.is_behind,
        }
    }
}

/// What became of processes.
#[derive(Default)]
pub(super) struct Outcome {
    summary: UserSummary,
    pub refusals: Refusals,
}

impl Outcome {
    /// Takes what became of one.
    fn take(&mut self, directory: &Path, ended: Ended) -> Result<()> {
        let Ended {
            process,
            problems,
            disk,
            stays: _,
        } = ended;
        for problem in problems {
            self.refusals.say(directory, problem);
        }
        if process.has_something() {
            self.summary.processes.push(process);
        }
        disk
    }

    /// What ended so far, which is told of an archive.
    pub fn take_ended(&mut self) -> UserSummary {
        std::mem::take(&mut self.summary)
    }

    /// The events of what ended, and its losses.
    pub fn counts(&self) -> (u64, u64) {
        (self.summary.events(), self.summary.lost())
    }

    pub fn into_summary(mut self) -> UserSummary {
        self.summary.refused = self.refusals.into_said();
        self.summary
    }
}

/// Whether an error is everybody's: no process can be recorded when the disk is full. All others
/// end the recording of one process.
pub(super) fn is_everybodys(error: &Error) -> bool {
    error.kind() == ErrorKind::StorageFull
}

/// A directory one of whose recorders we are.
pub(super) struct Place {
    directory: Rc<Directory>,
    identity: (u64, u64),
    /// Who answers for it.
    user: u32,
    /// Whether it is found again and again, or gone; and how many looks have not found it.
    is_elsewhere: bool,
    missed: u32,
    recorders: Recorders,
    session: Announced,
    /// What was announced before, and until when: who lists the directory just now may have passed
    /// by what came since.
    former: Vec<(Announced, StdInstant)>,
    /// That we are still here, when nobody is to be traced any more.
    farewell: Option<Announced>,
    /// What recorders that were killed left switched on.
    forgotten: Forgotten,
    processes: Vec<Process>,
    /// Whose turn is next.
    next: usize,
    /// What it may take to ask the kernel for the maps of all.
    look_budget: LookBudget,
    names: HashSet<String>,
    /// Files that were read to their ends, and stay for other recorders.
    left: HashSet<String>,
    /// Those that found no room beside others and never had any since: who ends without an event
    /// leaves no file that could be counted.
    waiting: HashSet<String>,
    /// So many have what recorders that were killed had still to read.
    unread: usize,
    /// By what their files are, whatever they are called.
    identities: HashMap<(u64, u64), String>,
    looked: Looked,
    /// So many are possible: no process has more rings.
    cpus: u32,
    /// So many processes are recorded at once.
    processes_max: usize,
    /// Whether nobody looks into it any more.
    is_closed: bool,
    _lock: RecorderLock,
}

impl Place {
    /// Becomes a recorder of a directory, under the number `own`, and announces the session in it.
    pub fn take(found: Found, own: u64, lines: &[String]) -> Result<Place> {
        let directory = Rc::new(found.directory?);
        let lock = directory.lock()?;
        let forgotten = Forgotten::take(&directory, &lock)?;
        let session = directory.announce(lines)?;
        Ok(Place {
            identity: directory.identity()?,
            user: found.user,
            is_elsewhere: found.is_elsewhere,
            missed: 0,
            recorders: Recorders::new(own, lock.is_first(), Rc::clone(&directory)),
            directory,
            session,
            former: Vec::new(),
            farewell: None,
            forgotten,
            processes: Vec::new(),
            next: 0,
            look_budget: LookBudget::default(),
            names: HashSet::new(),
            left: HashSet::new(),
            waiting: HashSet::new(),
            unread: 0,
            identities: HashMap::new(),
            looked: Looked::default(),
            cpus: housekeeping::cpus_possible(),
            processes_max: PROCESSES_MAX.min(descriptors::processes_max()),
            is_closed: false,
            _lock: lock,
        })
    }

    /// Who answers for it: its owner, or who made the namespace that it is in.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Takes note that a look found it.
    pub fn is_found(&mut self) {
        self.missed = 0;
    }

    /// Takes note that a look is over; gives how many did not find it, of those elsewhere.
    pub fn was_missed(&mut self) -> u32 {
        self.missed += u32::from(self.is_elsewhere);
        self.missed
    }

    /// What it is, wherever it is found.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Whether all files that were there in the beginning were looked at.
    pub fn has_seen_all(&self) -> bool {
        self.looked.is_through || self.is_closed
    }

    /// Looks for no more processes. Those that are recorded write to files that we have.
    pub fn close(&mut self) {
        self.is_closed = true;
        // Where it is there and cannot be read, who starts must not record for us.
        let _ = self.conclude();
    }

    /// Whether nothing more comes from here.
    pub fn is_over(&self) -> bool {
        self.is_closed && self.processes.is_empty()
    }

    /// Leaves the last pair of both clocks in all files.
    pub fn leave_pair(&self, clock: &CounterClock) {
        for process in &self.processes {
            // A help for whoever finds the file after a crash: an older one is there without.
            let _ = process.leave_pair(clock);
        }
    }

    /// Reads one process after the other, and ends those that are dead, for as long as its `slice`
    /// lasts; the next turn goes on there.
    pub fn turn(
        &mut self,
        clock: &mut CounterClock,
        (shared, slice): (&Shared, StdDuration),
        outcome: &mut Outcome,
    ) -> Result<Read> {
        let begin = StdInstant::now();
        let mut read = Read::default();
        // Where it is gone by itself, that is as well.
        let _ = self.remove_former(begin);
        for _ in 0..self.processes.len() {
            let now = StdInstant::now();
            if now.duration_since(begin) > slice {
                read.is_behind = true;
                break;
            }
            if self.next >= self.processes.len() {
                self.next = 0;
            }
            let process = &mut self.processes[self.next];
            // Asked before the last reading, so that nothing can come after it.
            let dead = process.has_died(now);
            let is_over = match process.poll(clock, &shared.common(), &mut self.look_budget) {
                Ok(of_process) => {
                    read = read.and(of_process);
                    dead && !of_process.is_behind
                }
                Err(error) if is_everybodys(&error) => return Err(error),
                Err(error) => {
                    outcome.refusals.add_at(process.path(), &error);
                    dead
                }
            };
            if let Some(error) = self.is_too_much(&self.processes[self.next], false) {
                outcome
                    .refusals
                    .add_at(self.processes[self.next].path(), &error);
                self.end(self.next, clock, shared, outcome)?;
                continue;
            }
            let has_failed = self.processes[self.next].has_failed();
            let is_kept = shared.in_flight && self.processes.len() <= DEAD_KEPT;
            match has_failed || (is_over && !is_kept) {
                true => self.end(self.next, clock, shared, outcome)?,
                false => self.next += 1,
            }
        }
        Ok(read)
    }

    /// Why a process, one of those that are recorded or a new one, cannot be recorded: the memory
    /// of all is the recorder's.
    fn is_too_much(&self, process: &Process, is_new: bool) -> Option<Error> {
        let own = process.described();
        if own <= DESCRIBED_MAX / (self.processes.len() + 1) {
            return None;
        }
        let others: usize = self.processes.iter().map(Process::described).sum();
        let all = others + if is_new { own } else { 0 };
        (all > DESCRIBED_MAX).then(|| {
            let what = format!("{} has too many events", process.name());
            Error::new(ErrorKind::Unsupported, what)
                .found(format!(
                    "{own} events and fields, {all} of all in its directory"
                ))
                .fix("record it alone")
        })
    }

    fn end(
        &mut self,
        index: usize,
        clock: &mut CounterClock,
        shared: &Shared,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let mut process = self.processes.swap_remove(index);
        self.names.remove(process.name());
        self.identities.retain(|_, name| name != process.name());
        for error in process.stop(clock::monotonic(), &shared.common()) {
            outcome.refusals.add_at(process.path(), &error);
        }
        let name = process.name().to_owned();
        let ended = process.finish(
            clock,
            &shared.common(),
            (&self.recorders, &mut self.look_budget),
        );
        if ended.stays {
            self.left.insert(name);
        }
        outcome.take(self.path(), ended)
    }

    /// Brings what was read to the files.
    pub fn flush(&mut self, outcome: &mut Outcome) -> Result<()> {
        for process in &mut self.processes {
            match process.flush() {
                Err(error) if is_everybodys(&error) => return Err(error),
                Err(error) => outcome.refusals.add_at(process.path(), &error),
                Ok(()) => (),
            }
        }
        Ok(())
    }

    /// Ends the traces of all processes here; what they write next goes to others.
    pub fn turn_over(
        &mut self,
        clock: &mut CounterClock,
        shared: &Shared,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let mut turned = Ok(());
        for index in 0..self.processes.len() {
            let ended =
                self.processes[index].turn_over(clock, &shared.common(), &mut self.look_budget);
            turned = turned.and(outcome.take(self.path(), ended));
        }
        turned
    }

    /// Tells who starts from now on other `lines`.
    pub fn announce(&mut self, lines: &[String]) -> Result<()> {
        let session = self.directory.announce(lines)?;
        let before = std::mem::replace(&mut self.session, session);
        self.former.push((before, StdInstant::now() + FORMER_STAYS));
        self.remove_former(StdInstant::now())
    }

    /// Removes what was announced before, where that is long enough ago.
    fn remove_former(&mut self, now: StdInstant) -> Result<()> {
        let is_over = |(_, until): &(Announced, StdInstant)| *until <= now;
        let over = self.former.partition_point(is_over);
        let mut removed = Ok(());
        for (name, _) in self.former.drain(..over) {
            removed = removed.and(self.directory.remove(&name));
        }
        removed
    }

    /// What the rings of one CPU take, of all processes here.
    pub fn ring_bytes(&self) -> u64 {
        let each = self.processes.iter().map(Process::ring_bytes);
        each.fold(0, u64::saturating_add)
    }

    /// So many processes are recorded.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// So many processes are recorded, with their events and losses in the present traces.
    pub fn counts(&self) -> (u64, u64, u64) {
        let counts = self.processes.iter().map(Process::counts);
        let (events, lost) = counts.fold((0, 0), |(events, lost): (u64, u64), of| {
            (events.saturating_add(of.0), lost.saturating_add(of.1))
        });
        (self.processes.len() as u64, events, lost)
    }

    /// Who starts from now on is not traced.
    pub fn conclude(&mut self) -> Result<()> {
        if self.farewell.is_none() {
            // Other recorders leave what we have still to read. Where the directory is gone, nobody
            // takes anything from us.
            let lines = [recorders::announced(self.recorders.own)];
            self.farewell = self.directory.announce(&lines).ok();
        }
        let removed = self.directory.remove(&self.session);
        removed.and(self.remove_former(StdInstant::now() + FORMER_STAYS))
    }

    /// Switches all processes off, and notes what they hold: nothing that comes later is waited
    /// for.
    pub fn stop(&mut self, shared: &Shared, outcome: &mut Outcome) {
        for process in &mut self.processes {
            for error in process.stop(clock::monotonic(), &shared.common()) {
                outcome.refusals.add_at(process.path(), &error);
            }
        }
    }

    /// Reads what is left of all processes, and ends them; other recorders see us until this goes.
    pub fn finish(
        &mut self,
        clock: &mut CounterClock,
        shared: &Shared,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let mut finished = Ok(());
        for process in std::mem::take(&mut self.processes) {
            // It may live, and is not to be recorded anew.
            self.left.insert(process.name().to_owned());
            let ended = process.finish(
                clock,
                &shared.common(),
                (&self.recorders, &mut self.look_budget),
            );
            finished = finished.and(outcome.take(self.path(), ended));
        }
        self.names.clear();
        self.identities.clear();
        finished
    }
}

/// However it ends, nobody must be told any more to record for us.
impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.conclude();
        if let Some(farewell) = &self.farewell {
            let _ = self.directory.remove(farewell);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn who_looks_for_lines_while_they_change_finds_some() {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let owner = rustix::process::geteuid().as_raw();
        let open = || Directory::open(folder.path(), owner).expect("a directory");
        let lines = ["app".to_owned()];
        let found = Found::here(folder.path().to_owned(), owner, Ok(open()));
        let mut place = Place::take(found, 7, &lines).expect("ours");
        // What makes listing it take some time.
        for number in 0..2000 {
            std::fs::write(folder.path().join(format!("rings-{number}")), "").expect("a file");
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let directory = open();
                let (mut looks, mut empty) = (0, 0);
                while !is_over.load(Ordering::Acquire) {
                    looks += 1;
                    let names = directory.sessions().expect("a list");
                    let has_lines =
                        |name: &String| directory.session(name).is_ok_and(|found| found == lines);
                    empty += u32::from(!names.iter().any(has_lines));
                }
                (looks, empty)
            });
            for _ in 0..1000 {
                place.announce(&lines).expect("announced");
            }
            is_over.store(true, Ordering::Release);
            let (looks, empty) = looks.join().expect("no panic");
            assert!(looks > 0);
            assert_eq!(empty, 0, "of {looks} looks");
        });
        drop(place);
        assert_eq!(open().sessions().expect("a list"), [""; 0]);
    }
}
