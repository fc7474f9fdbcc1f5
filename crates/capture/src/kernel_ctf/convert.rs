//! One CPU's pages into one CTF stream, losses at their places.

use std::cmp::Reverse;
use std::sync::Arc;

use ctf::writer::{StreamTotals, StreamWriter};
use event::{Cpu, Instant, Result, TimeRange};
use ftrace::{Page, PageLayout};

use super::asked::NOTHING_KNOWN;
use super::contexts::{Carrier, Group, tid_of};
use super::current::Current;
use super::groups::ThreadGroups;
use super::moments::Moments;
use super::stacks::{Side, StackQueue, Stacks, Waiting};
use super::{KernelClasses, NewTask};

/// What lies between a page and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The ring overwrote what nobody had asked to keep: no loss.
    History,
    /// The ring ran on: what is missing is a loss.
    Running,
}

/// What was written of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTotals {
    /// The CPU.
    pub cpu: Cpu,
    /// Events written, but for those that say who has the CPU.
    pub events: u64,
    /// Events that the trace says were lost.
    pub discarded: u64,
    /// Records that no format describes.
    pub unknown: u64,
    /// Pages whose rest could not be read.
    pub damaged_pages: u64,
    /// Events whose time lay before their predecessor's, and were put beside it.
    pub backwards: u64,
    /// Records of call stacks.
    pub stacks: u64,
    /// Events of which contexts were asked that nobody could read.
    pub unread: u64,
    /// Bytes of the stream's file.
    pub size_bytes: u64,
    /// The first and the last event; none without events.
    pub window: Option<TimeRange>,
}

impl CpuTotals {
    /// Nothing yet.
    pub(crate) fn none(cpu: Cpu) -> CpuTotals {
        CpuTotals {
            cpu,
            events: 0,
            discarded: 0,
            unknown: 0,
            damaged_pages: 0,
            backwards: 0,
            stacks: 0,
            unread: 0,
            size_bytes: 0,
            window: None,
        }
    }
}

/// Converts the pages of one CPU, in order.
#[derive(Debug)]
pub struct CpuConverter {
    cpu: Cpu,
    classes: Arc<KernelClasses>,
    groups: Arc<ThreadGroups>,
    stream: StreamWriter,
    /// The stream that takes over, and from when on.
    next: Option<(Instant, StreamWriter)>,
    /// What the stream before this one got, until somebody asks.
    turned: Option<CpuTotals>,
    payload: Vec<u8>,
    current: Current,
    /// The class of who has the CPU, and how many such events were written.
    current_class: u32,
    told: u64,
    first_ns: Option<u64>,
    /// The last event.
    event_ns: u64,
    /// What the stream covers: the last event, or later.
    last_ns: u64,
    discarded: u64,
    /// Those of them that streams before this one have.
    discarded_before: u64,
    unknown: u64,
    damaged_pages: u64,
    backwards: u64,
    stacks: u64,
    unread: u64,
    /// Events that wait for their stacks.
    queue: StackQueue,
    /// What BPF read as they happened.
    moments: Moments,
    /// From the pages' clock to the trace's.
    shift_ns: i64,
    /// When the ring stood still, from the last moment at which it ran; the last one first.
    stops_ns: Vec<(u64, u64)>,
    /// What happens from then on is left out.
    end_ns: u64,
}

impl CpuConverter {
    /// A converter that writes to `stream`, whose first classes are those of `classes`; that of who
    /// has the CPU has the number `current_class`.
    pub fn new(
        cpu: Cpu,
        classes: Arc<KernelClasses>,
        groups: Arc<ThreadGroups>,
        (stream, current_class): (StreamWriter, u32),
    ) -> Self {
        CpuConverter {
            cpu,
            classes,
            groups,
            stream,
            next: None,
            turned: None,
            payload: Vec::with_capacity(256),
            current: Current::default(),
            current_class,
            told: 0,
            first_ns: None,
            event_ns: 0,
            last_ns: 0,
            discarded: 0,
            discarded_before: 0,
            unknown: 0,
            damaged_pages: 0,
            backwards: 0,
            stacks: 0,
            unread: 0,
            queue: StackQueue::default(),
            moments: Moments::default(),
            shift_ns: 0,
            stops_ns: Vec::new(),
            end_ns: u64::MAX,
        }
    }

    /// The same for pages whose clock is so far behind the trace's.
    pub fn shifted(self, shift_ns: i64) -> Self {
        CpuConverter { shift_ns, ..self }
    }

    /// The same for a ring that stood still in each of `stops`, where at least one event is missing
    /// that nobody counted; what happens from `end` on is left out.
    pub fn without(self, end: Instant, stops: &[TimeRange]) -> Self {
        let ns = |stop: &TimeRange| (nanoseconds(stop.begin), nanoseconds(stop.end));
        let mut stops_ns: Vec<(u64, u64)> = stops.iter().map(ns).collect();
        stops_ns.sort_unstable_by_key(|(_, end_ns)| Reverse(*end_ns));
        CpuConverter {
            stops_ns,
            end_ns: nanoseconds(end),
            ..self
        }
    }

    /// The same for events of which BPF read `moments`.
    pub(crate) fn at_moments(self, moments: Moments) -> Self {
        CpuConverter { moments, ..self }
    }

    /// What BPF read, for more to be added before the pages that were read before it.
    pub(crate) fn moments(&mut self) -> &mut Moments {
        &mut self.moments
    }

    /// Counts the stops that were over by `time_ns`.
    fn stops_until(&mut self, time_ns: u64) -> Result<()> {
        let is_over = |stop: &mut (u64, u64)| stop.1 <= time_ns;
        while let Some((since_ns, at_ns)) = self.stops_ns.pop_if(is_over) {
            // Up to there it ran, also where nothing happened for long.
            self.last_ns = self.last_ns.max(since_ns);
            self.stream.covers(Instant::from_ns(self.last_ns as i64))?;
            self.lost(self.discarded.saturating_add(1))?;
            // From then on everything is seen again, also where nothing happens for long.
            self.covers(Instant::from_ns(at_ns as i64))?;
        }
        Ok(())
    }

    /// The events that were counted as lost so far.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// The layout of its pages.
    pub(crate) fn layout(&self) -> PageLayout {
        self.classes.layout
    }

    /// Pages so far whose rest could not be read.
    pub(crate) fn damaged_pages(&self) -> u64 {
        self.damaged_pages
    }

    /// Up to when it has said something: the last event, or later.
    pub fn reached(&self) -> Instant {
        Instant::from_ns(self.last_ns.min(i64::MAX as u64) as i64)
    }

    /// Writes the events of a page. Where the kernel says that events are missing before it but
    /// not how many, at least `missed_min` are counted, and never none.
    ///
    /// # Errors
    /// When the stream cannot be written.
    pub fn page(&mut self, bytes: &[u8], before: Before, missed_min: u64) -> Result<()> {
        let classes = Arc::clone(&self.classes);
        let Ok(page) = Page::parse(&classes.layout, bytes) else {
            return self.damaged();
        };
        let counted = page
            .missed
            .map(|missed| missed.unwrap_or(missed_min.max(1)));
        let missed = match before {
            Before::History => 0,
            Before::Running => counted.unwrap_or(0),
        };
        self.lost(self.discarded.saturating_add(missed))?;
        if missed > 0 && self.turns_at(page.time_ns) {
            // What is missing may reach beyond the turn: nothing is said of the time until here.
            self.turn(page.time_ns)?;
        }
        let shift_ns = self.shift_ns;
        for event in page.events() {
            let Ok(event) = event else {
                return self.damaged();
            };
            let time_ns = event.time_ns.saturating_add_signed(shift_ns);
            if time_ns >= self.end_ns {
                return Ok(());
            }
            self.stops_until(time_ns)?;
            self.event(&classes, time_ns, event.record)?;
        }
        Ok(())
    }

    fn damaged(&mut self) -> Result<()> {
        self.write_waiting()?;
        self.damaged_pages += 1;
        self.current.forget();
        self.stream.gap()
    }

    /// Says that `total` events were lost up to here.
    ///
    /// # Errors
    /// When the stream cannot be written.
    pub fn lost(&mut self, total: u64) -> Result<()> {
        if total > self.discarded {
            self.write_waiting()?;
            self.discarded = total;
            self.current.forget();
            self.stream.discarded(total - self.discarded_before)?;
        }
        Ok(())
    }

    /// Says that the ring ran at `time`, though no event happened then: an idle CPU's stream spans
    /// the whole recording, and readers that take the intersection of all streams lose nothing.
    ///
    /// # Errors
    /// When the stream cannot be written.
    pub fn covers(&mut self, time: Instant) -> Result<()> {
        self.write_waiting()?;
        self.stops_until(nanoseconds(time))?;
        self.last_ns = self.last_ns.max(nanoseconds(time));
        self.stream.covers(Instant::from_ns(self.last_ns as i64))
    }

    /// The ring is empty: what waits for its stacks, and did so at the call before, is written.
    /// Says whether nothing waits any more.
    ///
    /// # Errors
    /// When the stream cannot be written.
    pub(crate) fn settle(&mut self) -> Result<bool> {
        let is_settled = self.queue.settle();
        self.write_whole()?;
        Ok(is_settled)
    }

    /// Brings what was converted to the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.stream.gap()
    }

    /// What happens from `at` on goes to `stream`, whose classes are the same. An event of before
    /// `at` that comes later still goes to the present one.
    pub(crate) fn turn_to(&mut self, at: Instant, stream: StreamWriter) {
        self.next = Some((at, stream));
    }

    /// Turns now, unless an event did: all of before was converted. Gives what the stream before
    /// got.
    ///
    /// # Errors
    /// When a stream cannot be written.
    pub(crate) fn turned(&mut self) -> Result<Option<CpuTotals>> {
        if let Some((at, _)) = &self.next {
            self.turn(nanoseconds(*at))?;
        }
        Ok(self.turned.take())
    }

    /// Whether another stream takes over at `time_ns`, or did before.
    pub(crate) fn turns_at(&self, time_ns: u64) -> bool {
        let at = self.next.as_ref().map(|(at, _)| nanoseconds(*at));
        at.is_some_and(|at| at <= time_ns)
    }

    /// Whether another stream is to take over and did not yet.
    pub(crate) fn waits_for_turn(&self) -> bool {
        self.next.is_some()
    }

    /// Ends the stream, and begins the next one, which says nothing of the time before `from_ns`.
    fn turn(&mut self, from_ns: u64) -> Result<()> {
        let Some((at, stream)) = self.next.take() else {
            return Ok(());
        };
        self.covers(at)?;
        let ended = std::mem::replace(&mut self.stream, stream);
        self.turned = Some(with(self.facts(), self.told, ended.finish()?));
        self.told = 0;
        self.first_ns = None;
        self.discarded_before = self.discarded;
        (
            self.unknown,
            self.damaged_pages,
            self.backwards,
            self.stacks,
            self.unread,
        ) = (0, 0, 0, 0, 0);
        // Each stream says by itself who has the CPU.
        self.current.forget();
        self.last_ns = self.last_ns.max(from_ns);
        self.stream.covers(Instant::from_ns(self.last_ns as i64))
    }

    fn event(&mut self, classes: &KernelClasses, time_ns: u64, record: &[u8]) -> Result<()> {
        if self.turns_at(time_ns) {
            self.turn(self.next.as_ref().map_or(0, |(at, _)| at.as_ns() as u64))?;
        }
        let id = number(record);
        if let Some(side) = classes.stacks.side(id) {
            return self.stack(classes, side, record);
        }
        let Some(index) = classes.index(id) else {
            self.unknown += 1;
            return Ok(());
        };
        if let Some(new_task) = classes.new_task.filter(|new_task| new_task.id == id) {
            self.learn(new_task, record);
        }
        if classes.stacks.is_empty() {
            return self.write(classes, (time_ns, index), (record, Stacks::default()));
        }
        let has_stacks = classes.with_stacks[index as usize];
        self.queue.push(time_ns, record, has_stacks);
        self.write_whole()
    }

    /// A stack behind its event.
    fn stack(&mut self, classes: &KernelClasses, side: Side, record: &[u8]) -> Result<()> {
        self.stacks += 1;
        self.queue.stack(&classes.stacks, side, record);
        self.write_whole()
    }

    /// Writes the events that wait for nothing any more.
    fn write_whole(&mut self) -> Result<()> {
        while let Some(event) = self.queue.pop() {
            self.write_one(&event)?;
        }
        Ok(())
    }

    /// Writes all events: nothing comes any more for those that wait.
    fn write_waiting(&mut self) -> Result<()> {
        self.queue.end();
        self.write_whole()
    }

    fn write_one(&mut self, event: &Waiting) -> Result<()> {
        let classes = Arc::clone(&self.classes);
        let Some(index) = classes.index(number(&event.record)) else {
            return Ok(());
        };
        self.write(
            &classes,
            (event.time_ns, index),
            (&event.record, event.stacks()),
        )
    }

    fn write(
        &mut self,
        classes: &KernelClasses,
        (time_ns, index): (u64, u32),
        (record, stacks): (&[u8], Stacks<'_>),
    ) -> Result<()> {
        if time_ns < self.last_ns {
            self.backwards += 1;
        }
        let time_ns = time_ns.max(self.last_ns);
        self.last_ns = time_ns;
        self.first_ns.get_or_insert(time_ns);
        self.event_ns = time_ns;
        self.payload.clear();
        classes.contexts.write_shared(stacks, &mut self.payload);
        if let Some(switch) = classes.switch
            && let Some(tid) = self.current.record(record, number(record), switch)
        {
            self.told += 1;
            let (time, shared) = (Instant::from_ns(time_ns as i64), self.payload.len());
            self.payload.extend(tid.to_le_bytes());
            self.stream.event(self.current_class, time, &self.payload)?;
            self.payload.truncate(shared);
        }
        self.write_contexts(classes, (time_ns, index), record)?;
        let group_of = |tid| self.groups.group(tid);
        classes.plans[index as usize].run(record, group_of, &mut self.payload);
        self.stream
            .event(index, Instant::from_ns(time_ns as i64), &self.payload)
    }

    /// The contexts in front of the event's own fields.
    fn write_contexts(
        &mut self,
        classes: &KernelClasses,
        (time_ns, index): (u64, u32),
        record: &[u8],
    ) -> Result<()> {
        let moment = match classes.contexts.asked() {
            Some(_) => self.moments.at(time_ns, tid_of(record))?,
            None => Some(&NOTHING_KNOWN),
        };
        self.unread += u64::from(moment.is_none());
        let event = Carrier {
            record,
            cpu: self.cpu,
            group: Group::In(&self.groups),
            moment: moment.unwrap_or(&NOTHING_KNOWN),
        };
        if classes.wakeup == Some(index) {
            classes.contexts.write_of_wakeup(&event, &mut self.payload);
        }
        classes.contexts.write(&event, &mut self.payload);
        Ok(())
    }

    /// `task_newtask` comes before the fork that names its threads.
    fn learn(&self, new_task: NewTask, record: &[u8]) {
        let word = |at: usize| {
            let bytes = record.get(at..at + 4)?.try_into().ok()?;
            Some(i32::from_le_bytes(bytes))
        };
        // Offset 4 is `common_pid`, the parent; `CLONE_THREAD` is in the low half of the flags.
        if let (Some(parent), Some(child), Some(flags)) =
            (word(4), word(new_task.pid_at), word(new_task.flags_at))
        {
            self.groups.new_task(parent, child, u64::from(flags as u32));
        }
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<CpuTotals> {
        self.write_waiting()?;
        let (told, facts) = (self.told, self.facts());
        Ok(with(facts, told, self.stream.finish()?))
    }

    /// What is known of the present stream beside what its file holds.
    fn facts(&self) -> CpuTotals {
        CpuTotals {
            unknown: self.unknown,
            damaged_pages: self.damaged_pages,
            backwards: self.backwards,
            stacks: self.stacks,
            unread: self.unread,
            window: self.first_ns.map(|first_ns| TimeRange {
                begin: Instant::from_ns(first_ns as i64),
                end: Instant::from_ns(self.event_ns as i64),
            }),
            ..CpuTotals::none(self.cpu)
        }
    }
}

/// The kernel's number of an event.
fn number(record: &[u8]) -> u16 {
    let id = record.get(..2);
    id.map_or(0, |id| u16::from_le_bytes([id[0], id[1]]))
}

/// The kernel's clock begins at 0.
fn nanoseconds(at: Instant) -> u64 {
    at.as_ns().max(0) as u64
}

/// The facts of a stream with what its file holds, of which `told` events say who has the CPU.
fn with(facts: CpuTotals, told: u64, file: StreamTotals) -> CpuTotals {
    CpuTotals {
        // Of those that tell, some may have found no room.
        events: file.events.saturating_sub(told),
        discarded: file.discarded,
        size_bytes: file.size_bytes,
        ..facts
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
