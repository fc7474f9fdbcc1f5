//! What ran on a CPU, from the start of its events to their end, without a gap.

use super::forget::Kept;
use super::tasks::VersionId;

/// Who has a CPU: kind, flags and number in 32 bits, so that a segment stays small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occupant(u32);

/// The same, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Not known: before the CPU's first switch.
    Edge,
    /// Not known: events were lost.
    Lost,
    Nmi,
    /// A hard interrupt, numbered as in [`crate::Step::id`].
    Hardirq(i32),
    /// A softirq of this vector.
    Softirq(u32),
    /// The task itself (idle is a task).
    Task,
}

const KIND_SHIFT: u32 = 28;
const PICKED: u32 = 1 << 27;
const THROTTLED: u32 = 1 << 26;
const OPEN: u32 = 1 << 25;
const INFERRED: u32 = 1 << 24;
const NUMBER_MASK: u32 = (1 << 24) - 1;
/// Added to a number, so that negative ones fit.
const NUMBER_BIAS: i32 = 1 << 16;

impl Occupant {
    pub fn new(what: What) -> Self {
        let (kind, number) = match what {
            What::Edge => (0, 0),
            What::Lost => (1, 0),
            What::Nmi => (2, 0),
            What::Hardirq(irq) => (3, irq.saturating_add(NUMBER_BIAS)),
            What::Softirq(vector) => (4, vector as i32),
            What::Task => (5, 0),
        };
        Occupant(kind << KIND_SHIFT | number as u32 & NUMBER_MASK)
    }

    /// Marks a task that the scheduler picked at the segment's begin.
    pub fn picked(self) -> Self {
        Occupant(self.0 | PICKED)
    }

    /// Marks a task that runs while a runnable real-time task was preempted for it.
    pub fn throttled(self) -> Self {
        Occupant(self.0 | THROTTLED)
    }

    /// Marks a run whose end was not seen: its task may have another priority than at its begin.
    pub fn open(self) -> Self {
        Occupant(self.0 | OPEN)
    }

    /// Marks a run whose begin was not recorded: it was inferred from a wake-up.
    pub fn inferred(self) -> Self {
        Occupant(self.0 | INFERRED)
    }

    pub fn is_inferred(self) -> bool {
        self.0 & INFERRED != 0
    }

    pub fn is_open(self) -> bool {
        self.0 & OPEN != 0
    }

    pub fn is_picked(self) -> bool {
        self.0 & PICKED != 0
    }

    pub fn is_throttled(self) -> bool {
        self.0 & THROTTLED != 0
    }

    pub fn what(self) -> What {
        let number = (self.0 & NUMBER_MASK) as i32;
        match self.0 >> KIND_SHIFT {
            1 => What::Lost,
            2 => What::Nmi,
            3 => What::Hardirq(number - NUMBER_BIAS),
            4 => What::Softirq(number as u32),
            5 => What::Task,
            _ => What::Edge,
        }
    }
}

/// From `begin_ns` to the next segment's begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub begin_ns: i64,
    pub occupant: Occupant,
    /// The task on whose time it ran; [`VersionId::NONE`] when unknown.
    pub task: VersionId,
}

/// A moment that no segment shows, kept for the cross-check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub time_ns: i64,
    pub kind: crate::StepKind,
    pub id: i32,
}

/// A CPU waited for a spinning lock that another one held, and did nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contended {
    pub begin_ns: i64,
    /// The greatest instant while it waits.
    pub end_ns: i64,
}

/// All segments of one CPU in time order.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    segments: Vec<Segment>,
    pub marks: Vec<Mark>,
    pub contended: Vec<Contended>,
}

/// A segment cut to a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub occupant: Occupant,
    pub task: VersionId,
}

const UNKNOWN: Segment = Segment {
    begin_ns: i64::MIN,
    occupant: Occupant(0),
    task: VersionId::NONE,
};

impl Timeline {
    /// From `segment.begin_ns` on, this one has the CPU. Time never goes back: an earlier begin
    /// counts as the last one's.
    pub fn push(&mut self, mut segment: Segment) {
        if let Some(last) = self.segments.last_mut() {
            segment.begin_ns = segment.begin_ns.max(last.begin_ns);
            if last.begin_ns == segment.begin_ns {
                // What lasted no time had no time.
                *last = segment;
                return;
            }
        }
        self.segments.push(segment);
    }

    /// Drops what lies outside of what is kept, but for the last run and what it followed.
    pub(super) fn retain(&mut self, kept: &Kept) {
        let last = match self.segments.last() {
            Some(last) => self.run_begin(last.task).saturating_sub(1),
            None => return,
        };
        let mut next = 0;
        for place in 0..self.segments.len() {
            let begin_ns = self.segments[place].begin_ns;
            let end_ns = self
                .segments
                .get(place + 1)
                .map_or(i64::MAX, |s| s.begin_ns);
            if place >= last || kept.touches(begin_ns, end_ns) {
                self.segments[next] = self.segments[place];
                next += 1;
            }
        }
        self.segments.truncate(next);
        self.segments.shrink_to(2 * next);
        let marks = &mut self.marks;
        marks.retain(|mark| kept.touches(mark.time_ns, mark.time_ns));
        let contended = &mut self.contended;
        contended.retain(|lock| kept.touches(lock.begin_ns, lock.end_ns));
    }

    /// An interrupt went on to `to_ns` that seemed to end at `from_ns`, since when its task has had
    /// the CPU.
    pub fn lengthen(&mut self, irq: i32, (from_ns, to_ns): (i64, i64)) {
        if let [.., before, last] = self.segments.as_mut_slice()
            && before.occupant.what() == What::Hardirq(irq)
            && last.occupant.what() == What::Task
            && last.begin_ns == from_ns
        {
            last.begin_ns = to_ns;
        }
    }

    /// Nothing says until when an interrupt that began then had the CPU, nor who had it behind it.
    pub fn doubt(&mut self, irq: i32, begin_ns: i64) {
        let segments = self.segments.iter_mut().rev();
        let since = segments.take_while(|segment| segment.begin_ns >= begin_ns);
        since
            .filter(|segment| segment.occupant.what() == What::Hardirq(irq))
            .for_each(|segment| segment.occupant = Occupant::new(What::Lost));
    }

    /// An interrupt ends whose begin nobody saw: it was since the last change at the earliest.
    pub fn doubt_last(&mut self) {
        if let Some(last) = self.segments.last_mut() {
            last.occupant = Occupant::new(What::Lost);
        }
    }

    /// The last run was that of other versions of its task: it changed its name or its priority
    /// while it ran, and the trace says so only where it leaves the CPU. Back to where `to` knows
    /// none.
    pub fn rename_run(&mut self, mut to: impl FnMut(VersionId) -> Option<VersionId>) {
        let mut last: Option<(VersionId, VersionId)> = None;
        for segment in self.segments.iter_mut().rev() {
            let known = last.filter(|(from, _)| *from == segment.task);
            let Some(new) = known.map(|known| known.1).or_else(|| to(segment.task)) else {
                return;
            };
            last = Some((segment.task, new));
            segment.task = new;
        }
    }

    /// Between two instants the CPU's task was not who it seemed to be: by inference it was `task`,
    /// or nobody knows who. What interrupted it stays.
    pub fn settle(&mut self, (begin_ns, end_ns): (i64, i64), task: Option<VersionId>) {
        let place = self.cut(begin_ns);
        for (number, segment) in self.segments[place..].iter_mut().enumerate() {
            if segment.begin_ns >= end_ns {
                break;
            }
            let is_task = segment.occupant.what() == What::Task;
            match task {
                Some(task) => {
                    segment.task = task;
                    let picked = number == 0 && is_task && segment.begin_ns == begin_ns;
                    segment.occupant = match picked {
                        true => segment.occupant.picked().inferred(),
                        false => segment.occupant.inferred(),
                    };
                }
                None if is_task => segment.occupant = Occupant::new(What::Lost),
                None => {}
            }
        }
    }

    /// Between two instants the end of the run was not seen.
    pub fn open(&mut self, (begin_ns, end_ns): (i64, i64)) {
        let place = self.cut(begin_ns);
        let segments = self.segments[place..].iter_mut();
        segments
            .take_while(|segment| segment.begin_ns < end_ns)
            .for_each(|segment| segment.occupant = segment.occupant.open());
    }

    /// The place of the first segment that begins at `time_ns` or later: one that lasts beyond it
    /// is cut there.
    fn cut(&mut self, time_ns: i64) -> usize {
        let place = self
            .segments
            .partition_point(|segment| segment.begin_ns < time_ns);
        let begins = |segment: &Segment| segment.begin_ns == time_ns;
        if self.segments.get(place).is_some_and(begins) {
            return place;
        }
        if let Some(before) = place.checked_sub(1) {
            let segment = Segment {
                begin_ns: time_ns,
                ..self.segments[before]
            };
            self.segments.insert(place, segment);
        }
        place
    }

    /// The index of the first segment of the last run, which is that of `task`.
    fn run_begin(&self, task: VersionId) -> usize {
        let before = self
            .segments
            .iter()
            .rposition(|segment| segment.task != task);
        before.map_or(0, |place| place + 1)
    }

    /// The end of the last run was not seen.
    pub fn leave_run_open(&mut self) {
        let Some(task) = self.segments.last().map(|segment| segment.task) else {
            return;
        };
        let run = self
            .segments
            .iter_mut()
            .rev()
            .take_while(|segment| segment.task == task);
        run.for_each(|segment| segment.occupant = segment.occupant.open());
    }

    /// What has the CPU at `time_ns`.
    pub fn at(&self, time_ns: i64) -> Segment {
        let after = self
            .segments
            .partition_point(|segment| segment.begin_ns <= time_ns);
        after
            .checked_sub(1)
            .map_or(UNKNOWN, |place| self.segments[place])
    }

    /// Calls `each` with the pieces of `[begin_ns, end_ns)`, in order, without a gap. The
    /// last segment lasts: a CPU without events goes on with what it did.
    pub fn slices(&self, begin_ns: i64, end_ns: i64, mut each: impl FnMut(Slice)) {
        let mut now_ns = begin_ns;
        let mut place = self
            .segments
            .partition_point(|segment| segment.begin_ns <= begin_ns);
        while now_ns < end_ns {
            let segment = place
                .checked_sub(1)
                .map_or(UNKNOWN, |place| self.segments[place]);
            let next_ns = self
                .segments
                .get(place)
                .map_or(i64::MAX, |segment| segment.begin_ns);
            let until_ns = next_ns.min(end_ns);
            if until_ns > now_ns {
                let Segment { occupant, task, .. } = segment;
                each(Slice {
                    begin_ns: now_ns,
                    end_ns: until_ns,
                    occupant,
                    task,
                });
            }
            now_ns = now_ns.max(until_ns);
            place += 1;
        }
    }

    /// The begin of the segment of `what` that is nearest to `time_ns`, within `within_ns`.
    pub fn nearest(&self, what: What, time_ns: i64, within_ns: i64) -> Option<i64> {
        let from_ns = time_ns.saturating_sub(within_ns);
        let first = self
            .segments
            .partition_point(|segment| segment.begin_ns < from_ns);
        let near = self.segments[first..]
            .iter()
            .take_while(|segment| segment.begin_ns <= time_ns.saturating_add(within_ns))
            .filter(|segment| segment.occupant.what() == what);
        near.map(|segment| segment.begin_ns)
            .min_by_key(|begin_ns| begin_ns.abs_diff(time_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_occupant_keeps_kind_number_and_marks_in_four_bytes() {
        for what in [
            What::Edge,
            What::Lost,
            What::Nmi,
            What::Hardirq(-4),
            What::Hardirq(0),
            What::Hardirq(4_000_000),
            What::Softirq(9),
            What::Task,
        ] {
            assert_eq!(Occupant::new(what).what(), what);
            let marked = Occupant::new(what).picked().throttled().open();
            let marked = marked.inferred();
            assert_eq!(marked.what(), what);
            assert!(marked.is_picked() && marked.is_throttled() && marked.is_open());
            assert!(marked.is_inferred() && !Occupant::new(what).is_inferred());
        }
    }

    #[test]
    fn slices_cover_a_range_without_a_gap_even_before_the_first_segment() {
        let mut timeline = Timeline::default();
        for (begin_ns, what) in [(10, What::Task), (20, What::Nmi), (20, What::Task)] {
            let occupant = Occupant::new(what);
            timeline.push(Segment {
                begin_ns,
                occupant,
                task: VersionId::NONE,
            });
        }
        let mut seen = vec![];
        timeline.slices(0, 30, |s| {
            seen.push((s.begin_ns, s.end_ns, s.occupant.what()))
        });
        assert_eq!(
            seen,
            [
                (0, 10, What::Edge),
                (10, 20, What::Task),
                (20, 30, What::Task)
            ]
        );
    }
}
