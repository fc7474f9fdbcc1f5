//! Whether the whole machine stood still: where a hypervisor does not say what it takes, a watch
//! has a timer beat on every CPU, and beats that are missing everywhere at once are the host's.

use std::collections::BTreeMap;

use event::{Cpu, Duration};

use trace::Lost;

use super::LateExpiry;
use super::late_expiries::LATE_NS_MIN;
use super::timeline::{Timeline, What};
use super::{Model, known_from};

/// The local timer's interrupt, as [`crate::Step::id`] numbers it.
const LOCAL_TIMER: i32 = -1;

/// The beats that the trace should hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Heartbeat {
    period_ns: i64,
    cpus: Vec<Cpu>,
}

/// A span of time, in nanoseconds.
pub(crate) type Span = (i64, i64);

impl Heartbeat {
    /// As the trace's environment tells it; none where nothing beat.
    pub fn read(environment: &BTreeMap<String, String>) -> Option<Heartbeat> {
        let period_ns = environment.get("rtscope_heartbeat_ns")?.parse().ok()?;
        let cpus = Cpu::parse_list(environment.get("rtscope_heartbeat_cpus")?).ok()?;
        (period_ns > 0 && !cpus.is_empty()).then_some(Heartbeat { period_ns, cpus })
    }

    fn others(&self, cpu: Option<Cpu>) -> impl Iterator<Item = Cpu> {
        let others = self.cpus.iter().copied();
        others.filter(move |other| Some(*other) != cpu)
    }
}

impl Model {
    /// The parts of a span in which every CPU stood still: nothing happened on `cpu`, and all
    /// others missed a beat by more than a period. Empty where nothing beat beside `cpu`.
    pub fn still(&self, cpu: Option<Cpu>, span: Span) -> Vec<Span> {
        // A CPU whose events were lost may have beaten.
        self.still_by(cpu, span, |other, missed| {
            without(missed, &self.lost_on(other, span))
        })
    }

    /// The same, and the parts in which it may have been so, as events of those CPUs were lost that
    /// did not show it. Empty where none were.
    pub fn perhaps_still(&self, cpu: Option<Cpu>, span: Span) -> Vec<Span> {
        let beats = self.heartbeat.iter();
        let mut others = beats.flat_map(|heartbeat| heartbeat.others(cpu));
        if others.all(|other| self.lost_on(other, span).is_empty()) {
            return vec![];
        }
        self.still_by(cpu, span, |other, mut missed| {
            missed.extend(self.lost_on(other, span));
            joined(missed)
        })
    }

    /// The parts of a span in which, by a recording without beats, the machine stood still: a timer
    /// of `cpu` and one of another CPU were overdue at once, and nothing happened on any.
    pub fn late_together(&self, cpu: Option<Cpu>, span: Span) -> Vec<Span> {
        let is_short = span.1 - span.0 < LATE_NS_MIN;
        let Some(cpu) = cpu.filter(|_| self.heartbeat.is_none() && !is_short) else {
            return vec![];
        };
        let last_ns = self
            .basis
            .window
            .map_or(i64::MIN, |window| window.end.as_ns());
        // A CPU that does something while its timer is overdue has its interrupts off.
        let is_silent = |late: &&LateExpiry| {
            let timeline = self.timeline(Cpu(late.cpu));
            let gaps = timeline.map(|line| gaps(line, (late.due_ns, late.served_ns), last_ns));
            gaps.is_some_and(|gaps| gaps.len() == 1)
        };
        let late = self.late_in(span);
        let of = |is_here: bool| {
            let own = late.iter().filter(|late| (late.cpu == cpu.0) == is_here);
            let silent = own.filter(is_silent);
            joined(silent.map(|late| (late.due_ns, late.served_ns)).collect())
        };
        let mut still = common(&common(&of(true), &[span]), &of(false));
        for timeline in &self.timelines {
            still = still
                .iter()
                .flat_map(|part| common(&[*part], &gaps(timeline, *part, last_ns)))
                .collect();
        }
        still.retain(|(begin_ns, end_ns)| end_ns - begin_ns >= LATE_NS_MIN);
        still
    }

    /// When in a span events of a CPU were lost.
    fn lost_on(&self, cpu: Cpu, span: Span) -> Vec<Span> {
        let here = |lost: &&Lost| lost.cpu.is_none_or(|other| other == cpu);
        let lost = self.events_lost().filter(here);
        let spans = lost.map(|lost| (lost.range.begin.as_ns(), known_from(lost).as_ns()));
        common(&joined(spans.collect()), &[span])
    }

    fn still_by(
        &self,
        cpu: Option<Cpu>,
        span: Span,
        missed_by: impl Fn(Cpu, Vec<Span>) -> Vec<Span>,
    ) -> Vec<Span> {
        let Some(heartbeat) = &self.heartbeat else {
            return vec![];
        };
        if span.1 - span.0 <= heartbeat.period_ns {
            return vec![];
        }
        let mut others = heartbeat.others(cpu).peekable();
        if others.peek().is_none() {
            return vec![];
        }
        let last_ns = self
            .basis
            .window
            .map_or(i64::MIN, |window| window.end.as_ns());
        let mut still = vec![span];
        for other in others {
            let timeline = self.timeline(other);
            let missed =
                timeline.map(|line| missed_beats(line, span, heartbeat.period_ns, last_ns));
            still = common(&still, &missed_by(other, missed.unwrap_or_default()));
        }
        if let Some(timeline) = cpu.and_then(|cpu| self.timeline(cpu)) {
            still = common(&still, &gaps(timeline, span, last_ns));
        }
        still.retain(|(begin_ns, end_ns)| end_ns - begin_ns > heartbeat.period_ns);
        still
    }

    /// Whether another CPU's beats would show it if the machine had stood still in `span`.
    pub fn would_show_stillness(&self, cpu: Cpu, (begin_ns, end_ns): Span) -> bool {
        let Some(heartbeat) = &self.heartbeat else {
            return false;
        };
        let period_ns = heartbeat.period_ns;
        let beats = |other: Cpu| {
            let timeline = self.timeline(other);
            timeline.is_some_and(|line| last_beat(line, begin_ns, 2 * period_ns).is_some())
        };
        let long = end_ns - begin_ns >= 2 * period_ns;
        long && heartbeat.others(Some(cpu)).any(beats)
    }
}

impl Model {
    /// The longest stretch of a span in which nothing happened on any CPU, `cpu` among them. Zero
    /// where nobody could tell, as there is no other CPU, or where beats would show a host that
    /// stood still.
    pub fn unseen_max(&self, cpu: Cpu, span: Span) -> Duration {
        let others = (0..self.timelines.len() as u32).map(Cpu);
        let seen = |other: &Cpu| self.begins_ns.get(other.0 as usize) != Some(&i64::MAX);
        let others: Vec<Cpu> = others.filter(|other| *other != cpu).filter(seen).collect();
        if others.is_empty() || self.is_beaten(cpu, span) {
            return Duration::ZERO;
        }
        let last_ns = self
            .basis
            .window
            .map_or(i64::MIN, |window| window.end.as_ns());
        let mut unseen = vec![span];
        for other in others.into_iter().chain([cpu]) {
            if let Some(timeline) = self.timeline(other) {
                unseen = common(&unseen, &gaps(timeline, span, last_ns));
            }
        }
        let longest = unseen
            .into_iter()
            .map(|gap| self.longest_between_faults(gap));
        Duration::from_ns(longest.max().unwrap_or(0))
    }

    /// Whether beats would show it, or the span is too short for them to tell.
    fn is_beaten(&self, cpu: Cpu, span: Span) -> bool {
        let period_ns = self.heartbeat.as_ref().map(|beat| beat.period_ns);
        let short = period_ns.is_some_and(|period_ns| span.1 - span.0 < 2 * period_ns);
        short || self.would_show_stillness(cpu, span)
    }

    /// The longest stretch of a span in which no task touched a page that was not there.
    fn longest_between_faults(&self, (begin_ns, end_ns): Span) -> i64 {
        let faults = &self.page_faults;
        let first = faults.partition_point(|fault| fault.time_ns <= begin_ns);
        let inside = faults[first..].iter().map(|fault| fault.time_ns);
        let mut last_ns = begin_ns;
        let mut longest_ns = 0;
        for time_ns in inside
            .take_while(|time_ns| *time_ns < end_ns)
            .chain([end_ns])
        {
            longest_ns = longest_ns.max(time_ns - last_ns);
            last_ns = time_ns;
        }
        longest_ns
    }
}

/// The times without an event on a CPU.
fn gaps(timeline: &Timeline, (begin_ns, end_ns): Span, last_ns: i64) -> Vec<Span> {
    let mut gaps = vec![];
    timeline.slices(begin_ns, end_ns.min(last_ns), |slice| {
        gaps.push((slice.begin_ns, slice.end_ns));
    });
    gaps
}

/// The times in which a CPU that had beaten until then did nothing, from the beat that it missed.
/// One that does not show its beats shows no stillness.
fn missed_beats(timeline: &Timeline, span: Span, period_ns: i64, last_ns: i64) -> Vec<Span> {
    let from_ns = span.0.saturating_sub(2 * period_ns);
    let until_ns = span.1.saturating_add(2 * period_ns).min(last_ns);
    let mut missed = vec![];
    for (begin_ns, end_ns) in gaps(timeline, (from_ns, until_ns), last_ns) {
        // The first slice is cut; what happens there is its own begin.
        let begin_ns = timeline.at(begin_ns).begin_ns;
        let Some(beat_ns) = last_beat(timeline, begin_ns, 2 * period_ns) else {
            continue;
        };
        let due_ns = begin_ns.max(beat_ns + period_ns);
        if end_ns - due_ns > period_ns {
            missed.push((due_ns, end_ns));
        }
    }
    missed
}

/// The begin of the last interrupt of the local timer until `time_ns`, within `within_ns`.
fn last_beat(timeline: &Timeline, time_ns: i64, within_ns: i64) -> Option<i64> {
    let mut last = None;
    timeline.slices(
        time_ns.saturating_sub(within_ns),
        time_ns.saturating_add(1),
        |slice| {
            if slice.occupant.what() == What::Hardirq(LOCAL_TIMER) {
                last = Some(slice.begin_ns);
            }
        },
    );
    last
}

/// The parts of spans that lie outside of others, which are in order.
fn without(spans: Vec<Span>, others: &[Span]) -> Vec<Span> {
    let mut left = vec![];
    for (mut begin_ns, end_ns) in spans {
        for &(other_begin_ns, other_end_ns) in others {
            if begin_ns < other_begin_ns.min(end_ns) {
                left.push((begin_ns, other_begin_ns.min(end_ns)));
            }
            begin_ns = begin_ns.max(other_end_ns);
        }
        if begin_ns < end_ns {
            left.push((begin_ns, end_ns));
        }
    }
    left
}

/// The same times as one list in order and without overlaps.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut joined: Vec<Span> = vec![];
    for (begin_ns, end_ns) in spans {
        match joined.last_mut() {
            Some(last) if begin_ns <= last.1 => last.1 = last.1.max(end_ns),
            _ => joined.push((begin_ns, end_ns)),
        }
    }
    joined
}

/// What two lists of spans have in common; each is in order and without overlaps.
fn common(first: &[Span], second: &[Span]) -> Vec<Span> {
    let mut common = vec![];
    for &(begin_ns, end_ns) in first {
        for &(other_begin_ns, other_end_ns) in second {
            let both = (begin_ns.max(other_begin_ns), end_ns.min(other_end_ns));
            if both.0 < both.1 {
                common.push(both);
            }
        }
    }
    common
}
