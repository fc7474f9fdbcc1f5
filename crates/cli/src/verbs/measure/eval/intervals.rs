//! An evaluation on its way to the disk: intervals as they close, and samples over the limit with
//! the time of day.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use event::Duration;
use host::clock::{Clock, WallClock, since_boot_ns};
use measure::cyclic::{Reader, Reading};
use measure::histogram::{Histogram, Portion};
use measure::journal::{
    Begin, ClockSet, Excursion, Interval, Journal, Line, LoadState, Plain, ThreadPortion,
    WorkloadPortion,
};
use report::{Ended, RunPart};

use super::served::Served;

/// Of each interval, so many samples over the limit are kept: the longest.
const EXCURSIONS_MAX: usize = 100;

/// Samples over the limit, as they come.
#[derive(Debug, Default)]
pub(in super::super) struct Excursions {
    /// The next one of each thread.
    next: Vec<u64>,
    kept: Vec<Excursion>,
    left_out: u64,
    wall: WallClock,
    /// When that was set since the last interval.
    clock_set: Vec<ClockSet>,
}

impl Excursions {
    /// Looks whether the wall clock was set: whoever asks for times of day has looked often.
    pub(in super::super) fn look_at_clock(&mut self) {
        self.clock_set.extend(self.wall.look().map(|set| ClockSet {
            at_wall_ns: set.at_wall_ns,
            by_ns: set.by.as_ns(),
        }));
    }

    /// The time of day at an instant of CLOCK_MONOTONIC.
    pub(in super::super) fn wall_ns(&self, monotonic_ns: i64) -> i64 {
        self.wall.at(monotonic_ns)
    }

    /// Takes what is new.
    pub(super) fn look(&mut self, reader: &Reader, threads: usize) {
        self.look_at_clock();
        self.next.resize(threads, 0);
        for (thread, next) in self.next.iter_mut().enumerate() {
            for sample in reader.newest(thread, *next) {
                self.left_out += sample.number - *next;
                *next = sample.number + 1;
                self.kept.push(Excursion {
                    thread,
                    at_wall_ns: self.wall.at(sample.at_ns),
                    latency_ns: sample.latency.as_ns(),
                });
            }
        }
        self.add(None, 0);
    }

    /// Takes what somebody else saw, `more` of which nothing but their number is known.
    pub(in super::super) fn add(&mut self, seen: Option<Excursion>, more: u64) {
        self.kept.extend(seen);
        self.left_out += more;
        if self.kept.len() > 2 * EXCURSIONS_MAX {
            self.left_out += cut(&mut self.kept, EXCURSIONS_MAX);
        }
    }

    /// Those since the last time, and how many more there were.
    pub(super) fn take(&mut self) -> (Vec<Excursion>, u64) {
        let left_out = cut(&mut self.kept, EXCURSIONS_MAX);
        let left_out = left_out + std::mem::take(&mut self.left_out);
        let mut kept = std::mem::take(&mut self.kept);
        kept.sort_by_key(|one| one.at_wall_ns);
        (kept, left_out)
    }
}

/// Leaves the longest; gives how many went.
fn cut(kept: &mut Vec<Excursion>, max: usize) -> u64 {
    kept.sort_by_key(|one| Reverse(one.latency_ns));
    let cut = kept.len().saturating_sub(max);
    kept.truncate(max);
    cut as u64
}

/// What each thread gained since `before`.
pub(super) fn portions(before: &[Reading], now: &[Reading]) -> Vec<ThreadPortion> {
    let one = |(place, now): (usize, &Reading)| {
        let before = before.get(place);
        let latency: Option<&Histogram> = before.map(|one| &one.latency);
        ThreadPortion {
            latency: Portion::between(latency, &now.latency),
            missed: now.missed - before.map_or(0, |one| one.missed),
            lost_cpu: now.lost_cpu,
        }
    };
    now.iter().enumerate().map(one).collect()
}

/// Writes lines as they come. What the disk does not take waits for the next.
fn write_all(journal: &Journal, lines: &Receiver<Line>) {
    let mut waiting = VecDeque::new();
    let mut has_complained = false;
    while let Ok(line) = lines.recv() {
        waiting.push_back(line);
        while let Some(first) = waiting.front() {
            if let Err(error) = journal.append(first) {
                if !std::mem::replace(&mut has_complained, true) {
                    note!("what is measured is not kept, were we killed: {error:#}");
                }
                break;
            }
            has_complained = false;
            waiting.pop_front();
        }
    }
}

/// The intervals of this run.
pub(in super::super) struct Intervals {
    /// Where lines go, and who writes them.
    writer: Option<(Sender<Line>, JoinHandle<()>)>,
    /// From one close to the next.
    length: Duration,
    /// How long was measured at the last close, and what there was then.
    closed_at: Duration,
    last: Vec<Reading>,
    /// The first instant of the run, and the last close, in nanoseconds since 1970; none before it
    /// begins.
    wall_ns: Option<(i64, i64)>,
    /// The same by the clock of the machine's start.
    since_boot_ns: (i64, i64),
    pub(in super::super) excursions: Excursions,
    listed: Vec<Excursion>,
    clock_set: Vec<ClockSet>,
    left_out: u64,
    boot: String,
    loads: Vec<LoadState>,
    /// Who else is told of intervals.
    served: Option<Served>,
}

impl Intervals {
    /// Of a run that is about to begin.
    pub(super) fn new(journal: &Arc<Journal>, length: Duration) -> Intervals {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let (lines, written) = channel();
        let journal = journal.clone();
        let writer = std::thread::spawn(move || write_all(&journal, &written));
        Intervals {
            writer: Some((lines, writer)),
            length,
            closed_at: Duration::ZERO,
            last: Vec::new(),
            wall_ns: None,
            since_boot_ns: (0, 0),
            excursions: Excursions::default(),
            listed: Vec::new(),
            clock_set: Vec::new(),
            left_out: 0,
            boot: boot.unwrap_or_default().trim().to_owned(),
            loads: Vec::new(),
            served: None,
        }
    }

    /// Tells of intervals on a port of this machine, too, where one was asked for.
    pub(super) fn serve(&mut self, port: Option<u16>) -> event::Result<()> {
        let served = port.map(|port| Served::start(port, &self.boot));
        self.served = served.transpose()?;
        Ok(())
    }

    /// Its threads begin now.
    pub(in super::super) fn begin(&mut self) {
        let (at_wall_ns, since_boot_ns) = (Clock::Realtime.now_ns(), since_boot_ns());
        self.wall_ns = Some((at_wall_ns, at_wall_ns));
        self.since_boot_ns = (since_boot_ns, since_boot_ns);
        self.write(Line::Begin(Begin {
            at_wall_ns,
            boot: self.boot.clone(),
            since_boot_ns: Some(since_boot_ns),
        }));
    }

    /// Whether an interval has its length, when so much was measured.
    pub(in super::super) fn is_due(&self, now: Duration) -> bool {
        now - self.closed_at >= self.length
    }

    /// Closes an interval.
    pub(super) fn close(&mut self, now: Duration, readings: Vec<Reading>, loads: Vec<LoadState>) {
        let threads = portions(&self.last, &readings);
        if let Some(interval) = self.closed(now, (threads, None), loads) {
            if let Some(served) = &self.served {
                served.closed(&interval, &readings);
            }
            self.write(Line::Interval(interval));
        }
        self.last = readings;
    }

    /// The same of an application.
    pub(in super::super) fn close_workload(
        &mut self,
        now: Duration,
        gained: WorkloadPortion,
        loads: Vec<LoadState>,
    ) {
        if let Some(interval) = self.closed(now, (Vec::new(), Some(gained)), loads) {
            self.write(Line::Interval(interval));
        }
    }

    /// The interval that ends now; none of a run that never began.
    fn closed(
        &mut self,
        now: Duration,
        (threads, workload): (Vec<ThreadPortion>, Option<WorkloadPortion>),
        loads: Vec<LoadState>,
    ) -> Option<Interval> {
        let (begun_wall_ns, from_wall_ns) = self.wall_ns?;
        let (excursions, left_out) = self.excursions.take();
        self.listed.extend(excursions.iter().copied());
        self.left_out += left_out + cut(&mut self.listed, RunPart::EXCURSIONS_MAX);
        self.loads.clone_from(&loads);
        let clock_set = std::mem::take(&mut self.excursions.clock_set);
        self.clock_set.extend(&clock_set);
        let until_wall_ns = Clock::Realtime.now_ns();
        self.since_boot_ns.1 = since_boot_ns();
        let elapsed_ns = (now - self.closed_at).as_ns().max(0);
        self.closed_at = now;
        self.wall_ns = Some((begun_wall_ns, until_wall_ns));
        Some(Interval {
            from_wall_ns,
            until_wall_ns,
            since_boot_ns: Some(self.since_boot_ns.1),
            clock_set,
            elapsed_ns,
            threads,
            excursions,
            excursions_left_out: left_out,
            loads,
            workload,
        })
    }

    /// What was measured before anything is explained.
    pub(super) fn plain(&mut self, elapsed: Duration, readings: &[Reading]) {
        let (excursions, left_out) = self.excursions.take();
        self.listed.extend(excursions.iter().copied());
        self.left_out += left_out;
        // The threads that come count from zero.
        self.excursions.next.clear();
        self.write(Line::Plain(Plain {
            elapsed_ns: elapsed.as_ns(),
            threads: portions(&[], readings),
            excursions,
            excursions_left_out: left_out,
        }));
    }

    /// The run is over: when this returns all of it is on the disk.
    pub(super) fn end(&mut self, complete: bool) {
        self.write(Line::End { complete });
        if let Some((lines, writer)) = self.writer.take() {
            drop(lines);
            writer.join().ok();
        }
    }

    /// Has a line written. Who looks at threads and loads does not wait for a disk.
    fn write(&self, line: Line) {
        if let Some((lines, _)) = &self.writer {
            // The writer ends behind the last line.
            lines.send(line).ok();
        }
    }

    /// The run as a part of its evaluation, with its samples and the longest of them; nothing of
    /// one that never began.
    pub(super) fn part(
        &self,
        (samples, longest): (u64, Option<Duration>),
        elapsed: Duration,
        complete: bool,
    ) -> Option<RunPart> {
        Some(RunPart {
            wall_ns: self.wall_ns?,
            since_boot_ns: Some(self.since_boot_ns),
            clock_set: self.clock_set.clone(),
            elapsed,
            samples,
            longest,
            boot: self.boot.clone(),
            ended: match complete {
                true => Ended::Complete,
                false => Ended::Interrupted,
            },
            loads: self.loads.clone(),
            excursions: self.listed.clone(),
            excursions_left_out: self.left_out,
        })
    }

    /// The start of the machine that it sees.
    pub(super) fn boot(&self) -> &str {
        &self.boot
    }
}
