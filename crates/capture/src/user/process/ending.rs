//! The end of a process's recording: what its rings hold is read, its streams are closed, and what
//! went wrong is told.

use event::{Error, ErrorKind, Instant, Result};
use ring::{ClockKind, Liveness, Losses, Switch};

use super::{Common, Ended, Process, Recorders, UserProcess};
use crate::user::clock::CounterClock;
use crate::user::map::LookBudget;
use crate::user::metadata::Ending;
use crate::user::place::is_everybodys;

/// Behind the end of a recording no more is read than rings can hold that take so much memory, and
/// a bit: their sub-buffers need not be full.
const HELD_BYTES_MIN: u64 = 64 << 20;
const HELD_FACTOR: u64 = 2;
/// So often a process is asked whether it lives when its recording ends.
const LIVENESS_TRIES_MAX: u32 = 8;
/// A process that writes as fast as it is read keeps no turn waiting for longer.
const TURN_PASSES_MAX: u32 = 16;

impl Process {
    /// Switches it off, and notes what its rings hold: nothing that it writes behind that is waited
    /// for. Gives what could not be done.
    pub fn stop(&mut self, now: Instant, common: &Common) -> Vec<Error> {
        let mut problems = Vec::new();
        for place in &self.switched {
            let event = &self.file.table().events[*place];
            if let Err(error) = self.file.switch(event, Switch::Off) {
                // The others fail for the same reason.
                problems.push(error);
                break;
            }
        }
        // Also of CPUs that came since: what happened there is lost, and to be said.
        if let Err(error) = self
            .file
            .mode()
            .and_then(|mode| self.add_lanes(mode, common))
        {
            problems.push(error);
        }
        for lane in &mut self.lanes {
            lane.end_at_head(&self.file);
        }
        self.stopped = Some(now);
        self.rests_until = None;
        problems
    }

    /// Ends the recording of this process, which was stopped: what its rings hold is read, or its
    /// file goes when it is dead.
    pub fn finish(
        mut self,
        clock: &mut CounterClock,
        common: &Common,
        (recorders, budget): (&Recorders, &mut LookBudget),
    ) -> Ended {
        let dead = self.is_dead_for_sure();
        let end = self.stopped.unwrap_or(Instant::MIN);
        let read = self.read_to_the_end(clock, common, budget);
        let mut ended = self.close(clock, end);
        // Also when the disk is full: nobody must go on writing for us.
        let left = match (dead, common.keeps_the_dead) {
            (true, false) => self.leave_dead(recorders).map(|stays| ended.stays = stays),
            // Its mode says how its rings are to be read.
            (true, true) => Ok(()),
            (false, in_flight) => self
                .file
                .set_mode(self.mode_behind)
                .and_then(|()| match in_flight {
                    true => Ok(()),
                    false => self.file.take_memory_back(),
                })
                .and_then(|()| self.file.release()),
        };
        for done in [read, left] {
            match done {
                Err(error) if is_everybodys(&error) => ended.disk = Err(error),
                Err(error) => ended.problems.push(self.told(&error)),
                Ok(()) => (),
            }
        }
        ended
    }

    /// Asks several times: other recorders ask too, and who asks is taken for alive.
    fn is_dead_for_sure(&self) -> bool {
        (0..LIVENESS_TRIES_MAX).any(|_| {
            let is_dead = self.file.liveness() == Liveness::Dead;
            if !is_dead {
                std::thread::yield_now();
            }
            is_dead
        })
    }

    /// Gives its rings back; its file goes when no other recorder has to read it. Whether it stays.
    fn leave_dead(&self, recorders: &Recorders) -> Result<bool> {
        // First: of two that leave at the same time, one sees that the other has left.
        self.file.release()?;
        if self.file.is_waited_for(&|id| recorders.is_live(id))? {
            return Ok(true);
        }
        self.directory.remove(self.file.name()).map(|()| false)
    }

    /// Ends its trace here, and goes on in another: what is read from now on goes to the trace
    /// that the next `common` names.
    pub fn turn_over(
        &mut self,
        clock: &mut CounterClock,
        common: &Common,
        budget: &mut LookBudget,
    ) -> Ended {
        let mut whole_until = Instant::MIN;
        let mut polled = Ok(());
        for _ in 0..TURN_PASSES_MAX {
            let begin = crate::clock::monotonic();
            match self.poll(clock, common, budget) {
                Ok(read) if read.is_behind => (),
                Ok(_) => {
                    whole_until = begin;
                    break;
                }
                Err(error) => {
                    polled = Err(error);
                    break;
                }
            }
        }
        let mut ended = self.close(clock, whole_until);
        match polled {
            Err(error) if is_everybodys(&error) => ended.disk = Err(error),
            Err(error) => ended.problems.push(self.told(&error)),
            Ok(()) => (),
        }
        self.begin_anew();
        ended
    }

    /// An error with the name of the process.
    fn told(&self, error: &Error) -> String {
        let layout = self.file.layout();
        format!("{} ({}): {error:#}", layout.name, layout.pid)
    }

    /// Reads what is left, unless something failed before.
    fn read_to_the_end(
        &mut self,
        clock: &mut CounterClock,
        common: &Common,
        budget: &mut LookBudget,
    ) -> Result<()> {
        if !common.in_flight {
            self.map.look_last(&self.file, budget);
        }
        let memory_bytes = self.file.memory_bytes()?;
        let most_bytes = memory_bytes
            .saturating_mul(HELD_FACTOR)
            .saturating_add(HELD_BYTES_MIN);
        let mut read_bytes: u64 = 0;
        loop {
            let before: Vec<u64> = self.lanes.iter().map(|lane| lane.next).collect();
            let read = self.poll(clock, common, budget)?;
            let passed = self.lanes.iter().zip(before);
            let passed = passed.map(|(lane, before)| lane.next.saturating_sub(before));
            read_bytes = passed.fold(read_bytes, u64::saturating_add);
            if !read.is_behind {
                return Ok(());
            }
            if read_bytes > most_bytes {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    "rings say that they hold more than they can",
                )
                .found(format!(
                    "more than {read_bytes} bytes in {memory_bytes} of memory"
                )));
            }
        }
    }

    /// After a write that failed: ends the trace, before `end`, where the first of its events is
    /// lost, so that what is in the files is all that happened until then. Gives when that is.
    fn end_where_events_are_lost(&mut self, end: Instant) -> Result<Instant> {
        let Some((writer, _)) = &self.trace else {
            return Ok(end);
        };
        let whole_until = self.lanes.iter().map(|lane| lane.whole_until).min();
        let until = whole_until.unwrap_or(end).min(end);
        let streams = self
            .lanes
            .iter_mut()
            .filter_map(|lane| lane.stream.as_mut());
        let mut streams: Vec<_> = streams.chain(self.map.stream()).collect();
        let until = writer.end_at(&mut streams, until)?;
        for lane in &mut self.lanes {
            lane.ended_at(until);
        }
        Ok(until.max(Instant::from_ns(0)))
    }

    /// Ends the streams and says in the trace what was lost.
    pub(super) fn close(&mut self, clock: &CounterClock, end: Instant) -> Ended {
        let mut all = match self.consumes && !self.has_failed {
            true => self.flush(),
            false => Ok(()),
        };
        let mut end = end;
        if self.has_failed {
            match self.end_where_events_are_lost(end) {
                Ok(until) => end = until,
                Err(error) => all = all.and(Err(error)),
            }
        }
        let mut losses = Losses::default();
        for lane in &mut self.lanes {
            for (total, lost) in losses.iter_mut().zip(lane.losses) {
                *total += lost;
            }
            // Each of them, whatever became of the others.
            let (size_bytes, refused) = match lane.finish(end) {
                Ok(totals) => totals,
                Err(error) => {
                    all = all.and(Err(error));
                    continue;
                }
            };
            self.size_bytes += size_bytes;
            self.refused += refused;
        }
        let of_map = self.map.finish(end);
        self.size_bytes += of_map.as_ref().map_or(0, |bytes| *bytes);
        all = all.and(of_map.map(|_| ()));
        if let Some((writer, meta)) = &mut self.trace {
            let is_converted = self.file.layout().clock == ClockKind::Counter;
            let ending = Ending {
                losses,
                malformed: self.written.malformed,
                unknown: self.written.unknown,
                clock_error_ns: is_converted.then(|| clock.error_ns().max(self.early_error_ns)),
            };
            meta.environment.extend(ending.environment());
            all = all.and(writer.update(meta));
        }
        self.ended(losses, all)
    }

    fn ended(&mut self, losses: Losses, all: Result<()>) -> Ended {
        let mut problems = std::mem::take(&mut self.problems);
        if let Some(problem) = self.file.table().problems.first() {
            let count = self.file.table().problems.len();
            let error = Error::new(
                ErrorKind::Corrupt,
                "events are described in a way that makes no sense",
            )
            .found(format!(
                "{} at byte {}, {count} in all",
                problem.what, problem.offset
            ));
            problems.push(self.told(&error));
        }
        let disk = match all {
            Err(error) if !is_everybodys(&error) => {
                problems.push(self.told(&error));
                Ok(())
            }
            all => all,
        };
        let process = UserProcess {
            pid: self.file.layout().pid,
            name: self.file.layout().name.clone(),
            events: self.written.events.saturating_sub(self.refused),
            refused: self.refused,
            losses,
            malformed: self.written.malformed,
            unregistered: self.file.unregistered().unwrap_or_default(),
            size_bytes: self.size_bytes,
            ring_bytes: self.file.layout().ring_bytes,
        };
        Ended {
            process,
            problems,
            disk,
            stays: false,
        }
    }
}
