//! All recordings of ftrace below the given roots, as one trace.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use event::{ClassId, Clock, Cpu, Duration, EventClass, Instant, Result, TimeRange};

use ftrace::Halt;

use crate::own_time::OwnTime;
use crate::recorded::{Recorded, StreamFacts};
use crate::silence::{Covered, HOST};
use crate::{
    ClockFacts, LossCause, Lost, LostFrom, OpenOptions, PartInfo, StreamInfo, TraceInfo, Violations,
};

/// The recordings, in the order in which they were given.
pub(crate) struct FtraceTrace {
    pub parts: Vec<FtracePart>,
    /// Ends walks once it is raised.
    pub stop: Option<Arc<AtomicBool>>,
    whole: OnceLock<TimeRange>,
}

/// One recording with what places it among the others.
pub(crate) struct FtracePart {
    pub recording: Recorded,
    /// How its files are called: empty or with a slash at the end.
    pub prefix: String,
    /// Its first class in the list of all.
    pub first_class: u32,
    pub time: OwnTime,
    environment: BTreeMap<String, String>,
    /// To add to what its clock says of the wall clock.
    clock_offset: Duration,
}

/// The clock that other traces are placed beside.
#[derive(Clone, Copy)]
pub(crate) struct Base {
    pub wall_offset_ns: i64,
    pub first_class: u32,
}

impl FtracePart {
    /// A recording that was opened, called `prefix`.
    pub fn new(
        recording: Recorded,
        prefix: String,
        clock_offset: Duration,
        options: &OpenOptions,
    ) -> Self {
        let facts = recording.facts();
        let mut environment: BTreeMap<_, _> = facts.environment.iter().cloned().collect();
        environment.insert("trace_clock".to_owned(), facts.clock.clone());
        for (place, note) in facts.notes.iter().enumerate() {
            environment.insert(format!("note_{}", place + 1), note.clone());
        }
        let window = match options.intersection {
            true => intersection(&recording),
            false => TimeRange::ALL,
        };
        FtracePart {
            recording,
            prefix,
            first_class: 0,
            time: OwnTime::new(window),
            environment,
            clock_offset: clock_offset + options.clock_offset,
        }
    }

    fn is_monotonic(&self) -> bool {
        self.recording.facts().clock == "mono"
    }

    fn wall_offset_ns(&self) -> i64 {
        let offset_ns = self.recording.facts().wall_offset_ns;
        offset_ns.saturating_add(self.clock_offset.as_ns())
    }

    /// Its classes, as places in the list of all.
    pub fn classes(&self) -> std::ops::Range<usize> {
        let first = self.first_class as usize;
        first..first + self.recording.classes().len()
    }

    /// When it was recorded, and of which CPUs; none when it does not say.
    fn covered(&self) -> Option<Covered> {
        Some(Covered {
            host: self.environment.get(HOST).cloned(),
            range: self.range()?,
            shift_ns: self.is_monotonic().then_some(self.time.shift_ns),
            cpus: self.recording.cpus(),
        })
    }

    fn range(&self) -> Option<TimeRange> {
        let ranges = ranges_ns(&self.recording);
        let begin = ranges.iter().map(|(begin, _)| *begin).min()?;
        let end = ranges.iter().map(|(_, end)| *end).max()?;
        Some(self.time.seen(begin, end))
    }

    fn info(&self) -> PartInfo {
        let facts = self.recording.facts();
        let stream = |stream: StreamFacts| StreamInfo {
            file: stream.name,
            size_bytes: stream.size_bytes,
            class: None,
            cpu: stream.cpu,
            packets: stream.pages,
            range: stream.range_ns.map(|(begin, end)| TimeRange {
                begin: self.time.shifted(begin),
                end: self.time.shifted(end.saturating_add(1)),
            }),
            discarded: 0,
            packet_gaps: 0,
            packets_back_in_time: 0,
        };
        PartInfo {
            path: self.prefix.trim_end_matches('/').to_owned(),
            format: facts.format,
            format_version: facts.version,
            uuid: None,
            environment: self.environment.clone(),
            clocks: vec![ClockFacts {
                name: facts.clock.clone(),
                frequency_hz: 1_000_000_000,
                wall_offset: Duration::from_ns(facts.wall_offset_ns),
            }],
            streams: self.recording.streams().into_iter().map(stream).collect(),
            violations: Violations::default(),
        }
    }
}

impl FtraceTrace {
    /// Places the parts beside each other, and beside what is there already.
    pub fn new(mut parts: Vec<FtracePart>, base: Option<Base>) -> Self {
        let own_ns = parts.first().map_or(0, FtracePart::wall_offset_ns);
        let base_ns = base.map_or(own_ns, |base| base.wall_offset_ns);
        let mut first_class = base.map_or(0, |base| base.first_class);
        for part in &mut parts {
            part.first_class = first_class;
            first_class += part.recording.classes().len() as u32;
            // A recording that knows no wall clock stays where its own clock puts it.
            part.time.shift_ns = match part.recording.facts().wall_offset_ns {
                0 => part.clock_offset.as_ns(),
                _ => part.wall_offset_ns().saturating_sub(base_ns),
            };
        }
        if base.is_none()
            && let Some(first) = parts.first_mut()
        {
            first.time.shift_ns = 0;
        }
        FtraceTrace {
            parts,
            stop: None,
            whole: OnceLock::new(),
        }
    }

    /// Classes of all parts, numbered through.
    pub fn classes(&self) -> Vec<EventClass> {
        let mut classes = Vec::new();
        for part in &self.parts {
            for class in part.recording.classes() {
                classes.push(EventClass {
                    id: ClassId(part.first_class + class.id.0),
                    ..class.clone()
                });
            }
        }
        classes
    }

    /// Facts of the first part, CPUs of all.
    pub fn info(&self) -> TraceInfo {
        let Some(first) = self.parts.first() else {
            return TraceInfo::default();
        };
        TraceInfo {
            clock: match first.is_monotonic() {
                true => Clock::Monotonic,
                false => Clock::Foreign,
            },
            wall_offset: Duration::from_ns(first.wall_offset_ns()),
            environment: first.environment.clone(),
            cpus: self.cpus(),
        }
    }

    /// The CPUs that have a stream, in order.
    pub fn cpus(&self) -> Vec<Cpu> {
        let cpus = self.parts.iter().flat_map(|part| part.recording.cpus());
        let mut cpus: Vec<Cpu> = cpus.collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    pub fn part_infos(&self) -> Vec<PartInfo> {
        self.parts.iter().map(FtracePart::info).collect()
    }

    /// From the earliest page to the latest event.
    pub fn range(&self) -> Option<TimeRange> {
        let ranges: Vec<_> = self.parts.iter().filter_map(FtracePart::range).collect();
        Some(TimeRange {
            begin: ranges.iter().map(|range| range.begin).min()?,
            end: ranges.iter().map(|range| range.end).max()?,
        })
    }

    /// When the kernel was recorded: ftrace records nothing else.
    pub fn covered(&self) -> Vec<Covered> {
        self.parts.iter().filter_map(FtracePart::covered).collect()
    }

    /// The same as [`FtraceTrace::range`], kept; no time at all when nobody says.
    pub fn whole(&self) -> TimeRange {
        let none = TimeRange {
            begin: Instant::from_ns(0),
            end: Instant::from_ns(0),
        };
        *self.whole.get_or_init(|| self.range().unwrap_or(none))
    }

    pub fn environment_of(&self, class: ClassId) -> Option<&BTreeMap<String, String>> {
        let part = self.parts.get(self.part_index(class)?);
        part.map(|part| &part.environment)
    }

    /// The part that a class belongs to, as an index; none before the first.
    pub fn part_index(&self, class: ClassId) -> Option<usize> {
        let after = self
            .parts
            .partition_point(|part| part.first_class <= class.0);
        after.checked_sub(1)
    }

    /// The text of the kernel's symbols; empty when no recording has them.
    pub fn kallsyms(&self) -> Result<String> {
        for part in &self.parts {
            let text = part.recording.kallsyms()?;
            if !text.is_empty() {
                return Ok(text);
            }
        }
        Ok(String::new())
    }
}

/// From the first to the last time of each stream that has events.
fn ranges_ns(recording: &Recorded) -> Vec<(i64, i64)> {
    let streams = recording.streams().into_iter();
    streams.filter_map(|stream| stream.range_ns).collect()
}

/// The time in which all streams have events; no time at all when there is none.
fn intersection(recording: &Recorded) -> TimeRange {
    let ranges = ranges_ns(recording);
    let begin = ranges.iter().map(|(begin, _)| *begin).max();
    let end = ranges.iter().map(|(_, end)| *end).min();
    let (Some(begin), Some(end)) = (begin, end) else {
        return TimeRange::ALL;
    };
    TimeRange {
        begin: Instant::from_ns(begin),
        end: Instant::from_ns(end.saturating_add(1).max(begin)),
    }
}

impl FtraceTrace {
    /// What a reader of `cpu` met, in the words of this crate; none when it is no loss.
    pub fn lost(&self, part: &FtracePart, cpu: Cpu, halt: &Halt) -> Option<Lost> {
        let begin = |ns| match ns {
            i64::MIN => self.whole().begin,
            ns => part.time.shifted(ns),
        };
        let end = |ns| match ns {
            i64::MAX => self.whole().end,
            ns => part.time.shifted(ns),
        };
        let (cpu, range, count, cause) = match halt {
            Halt::Lost(loss) => (
                Some(cpu),
                (loss.begin_ns, loss.end_ns),
                loss.count,
                LossCause::Unknown,
            ),
            Halt::LostOn(cpu, loss) => (
                Some(Cpu(*cpu)),
                (loss.begin_ns, loss.end_ns),
                loss.count,
                LossCause::Unknown,
            ),
            Halt::Unread(hole) => (
                (!hole.is_of_any_cpu).then_some(cpu),
                (hole.begin_ns, hole.end_ns),
                None,
                match hole.is_cut {
                    true => LossCause::Cut,
                    false => LossCause::Damaged,
                },
            ),
            Halt::Damage { .. } | Halt::End => return None,
        };
        let begin = begin(range.0);
        Some(Lost {
            cpu,
            range: TimeRange {
                begin,
                end: end(range.1).max(begin),
            },
            count,
            cause,
            from: LostFrom::Recording,
        })
    }

    /// The CPUs of a part that are missing, as losses of all the time.
    pub fn missing(&self, part: &FtracePart) -> Vec<Lost> {
        let cpus = part.recording.facts().missing.iter();
        let lost = |cpu: &Cpu| Lost {
            cpu: Some(*cpu),
            range: self.whole(),
            count: None,
            cause: LossCause::Missing,
            from: LostFrom::Recording,
        };
        cpus.map(lost).collect()
    }
}
