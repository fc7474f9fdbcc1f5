//! Of each moment on a CPU one recording tells who ran there. Two that tell it give every run,
//! wake-up and interrupt twice.

use std::collections::BTreeMap;

use event::{ClassId, Cpu, Duration, Error, ErrorKind, Instant, Result, TimeRange};
use trace::{Item, PartInfo, StreamInfo, Trace};

use super::machine::HOST;
use super::{Binding, Known, Sched};

/// What tracers call the kernel's clock that no one sets: LTTng and we, and ftrace.
const MONOTONIC: [&str; 2] = ["monotonic", "mono"];

/// Two recordings, as places among the trace's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    earlier: usize,
    later: usize,
}

/// A switch that both have, or lies between two of the other one.
#[derive(Clone, Copy, Debug)]
struct Twice {
    cpu: Option<Cpu>,
    at: Instant,
}

impl Binding {
    /// Refuses recordings that tell the same moments of a CPU. Those that follow each other, such
    /// as the archives of a session, may touch; so may those of different CPUs.
    ///
    /// # Errors
    /// Two parts of the trace have switches of one CPU in turns; as [`trace::Cursor::next`].
    pub fn recorded_once(&self, trace: &Trace) -> Result<()> {
        let switches = trace
            .classes()
            .iter()
            .filter(|class| self.is_switch(class.id));
        let switches = switches.map(|class| (trace.part_of(class.id), class.stream));
        let switches: Vec<(usize, u32)> = switches.collect();
        if switches.iter().all(|(part, _)| *part == switches[0].0) {
            return Ok(());
        }
        let parts = trace.parts();
        let mut streams = Vec::new();
        for (part, class) in switches {
            let all = parts.get(part).into_iter().flat_map(|part| &part.streams);
            let own = all.filter(|stream| stream.class.is_none_or(|id| id == u64::from(class)));
            streams.extend(own.map(|stream| (part, stream)));
        }
        for (pair, both) in overlaps(&streams) {
            if are_of_two_hosts(&parts, pair) {
                continue;
            }
            if let Some(found) = self.alternate(trace, &parts, pair, both)? {
                return Err(twice(trace, &parts, pair, found));
            }
        }
        Ok(())
    }

    fn is_switch(&self, class: ClassId) -> bool {
        let known = self.get(class).map(|bound| bound.known);
        matches!(known, Some(Known::Sched(Sched::Switch(_))))
    }

    /// Looks at the events: packets end later than their last event, and begin earlier than their
    /// first. Gives a CPU, and when the earlier one has a switch there behind one of the later one.
    fn alternate(
        &self,
        trace: &Trace,
        parts: &[PartInfo],
        pair: Pair,
        both: TimeRange,
    ) -> Result<Option<Twice>> {
        let wanted = |class| {
            let part = trace.part_of(class);
            self.is_switch(class) && (part == pair.earlier || part == pair.later)
        };
        // Each archive of a session is placed by the wall clock of its own begin, and that may be
        // slewed or set until the next one: by the kernel's own clock they only touch.
        let clock = |part: usize| parts.get(part).and_then(|part| part.clocks.first());
        let clocks = clock(pair.earlier).zip(clock(pair.later));
        let is_one = clocks.is_some_and(|(one, other)| {
            one.name == other.name && MONOTONIC.contains(&one.name.as_str())
        });
        let offset = |part| match clock(part).filter(|_| is_one) {
            Some(clock) => clock.wall_offset,
            None => Duration::ZERO,
        };
        let (mut by_cpu, mut found) = (BTreeMap::new(), None);
        trace.cursor_of(both, wanted).each_while(|item| {
            let Item::Event(event) = item else {
                return true;
            };
            let own = self.get(event.class()).and_then(|bound| bound.cpu);
            let own = own.and_then(|field| u32::try_from(event.i64(field)).ok());
            let cpu = own.map(Cpu).or(event.cpu());
            let (begun, before) = by_cpu.entry(cpu).or_insert((None, None));
            let part = trace.part_of(event.class());
            let at = event.time() - offset(part);
            match part == pair.later {
                true => *begun = begun.or(Some(at)),
                false => *before = Some(at),
            }
            // At the same instant their order says nothing.
            let turned = begun.zip(*before).is_some_and(|(begin, end)| begin <= end);
            found = turned.then_some(Twice {
                cpu,
                at: event.time(),
            });
            found.is_none()
        })?;
        Ok(found)
    }
}

/// Each has a CPU of that number.
fn are_of_two_hosts(parts: &[PartInfo], pair: Pair) -> bool {
    let host = |part: usize| parts.get(part).and_then(|part| part.environment.get(HOST));
    let hosts = host(pair.earlier).zip(host(pair.later));
    hosts.is_some_and(|(one, other)| one != other)
}

/// Recordings of which some streams may be of one CPU, and from when to when both ran by what their
/// packets say.
fn overlaps(streams: &[(usize, &StreamInfo)]) -> BTreeMap<Pair, TimeRange> {
    let mut pairs = BTreeMap::new();
    for (place, (one, first)) in streams.iter().enumerate() {
        for (other, second) in &streams[place + 1..] {
            let apart = first.cpu.is_some() && second.cpu.is_some() && first.cpu != second.cpu;
            let (Some(range), Some(also)) = (first.range, second.range) else {
                continue;
            };
            let (begin, end) = (range.begin.max(also.begin), range.end.min(also.end));
            // A packet that ends where the next one begins is not in both.
            if one == other || apart || end <= begin + Duration::from_ns(1) {
                continue;
            }
            let (earlier, later) = match (range.begin, one) <= (also.begin, other) {
                true => (*one, *other),
                false => (*other, *one),
            };
            let both = pairs.entry(Pair { earlier, later });
            let both = both.or_insert(TimeRange { begin, end });
            both.begin = both.begin.min(begin);
            both.end = both.end.max(end);
        }
    }
    pairs
}

fn twice(trace: &Trace, parts: &[PartInfo], pair: Pair, found: Twice) -> Error {
    let name = |part: usize| match parts.get(part).map(|part| part.path.as_str()) {
        None | Some("") => format!("recording {}", part + 1),
        Some(path) => format!("'{}'", event::plain_text(path.as_bytes())),
    };
    let of_cpu = match found.cpu {
        Some(cpu) => format!(" of CPU {}", cpu.0),
        None => String::new(),
    };
    let wall_ns = trace.wall_ns(found.at);
    Error::new(
        ErrorKind::InvalidInput,
        "two recordings tell the same time of one kernel: together every run, wake-up and \
         interrupt would count twice",
    )
    .found(format!(
        "{} and {} both have switches{of_cpu} at {}.{:09} s since 1970",
        name(pair.earlier),
        name(pair.later),
        wall_ns.div_euclid(1_000_000_000),
        wall_ns.rem_euclid(1_000_000_000)
    ))
    .fix("name one of them; 'rtscope cat' shows the events of both")
}
