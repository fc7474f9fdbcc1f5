//! All CTF traces below one root, as one trace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use ctf::reader::{ClockInfo, PacketIndex, StreamFile, TraceFiles};
use ctf::writer::EnvValue;
use ctf::{LOSSES_BETWEEN, LOSSES_KEY};
use event::evidence::Kind;
use event::{ClassId, Clock, Cpu, Duration, EventClass, Instant, Result, TimeRange};

use crate::own_time::OwnTime;
use crate::silence::{Covered, HOST};
use crate::{
    ClassFacts, ClockFacts, LossCause, Lost, LostFrom, OpenOptions, PartInfo, StreamInfo, TraceInfo,
};

/// The domain of a trace that a kernel recorded.
const KERNEL: &str = "kernel";
/// What every recording of a kernel's tasks has, also where it does not say its domain.
const SWITCH: &str = "sched_switch";

/// The CTF traces of one root, the kernel's first.
pub(crate) struct CtfTrace {
    pub parts: Vec<Part>,
    /// Ends walks once it is raised.
    pub stop: Option<Arc<AtomicBool>>,
    /// See [`CtfTrace::whole`].
    whole: OnceLock<TimeRange>,
    /// See [`CtfTrace::missing`].
    missing: OnceLock<Vec<Lost>>,
}

/// One CTF trace with what places it among the others.
pub(crate) struct Part {
    pub files: TraceFiles,
    /// Which of the roots it lies below.
    root: usize,
    /// Its directory relative to the root, empty or with a slash at the end.
    pub prefix: String,
    /// Its directory relative to the root that was given for it.
    pub path_below_root: String,
    /// Its first class in the list of all.
    pub first_class: u32,
    pub time: OwnTime,
    /// Whether a loss lies between two packets, not somewhere inside of the second.
    pub losses_between: bool,
    pub environment: BTreeMap<String, String>,
    /// To add to what its clock says of the wall clock.
    clock_offset: Duration,
    pub writer: Writer,
}

/// A directory to open.
pub(crate) struct Place {
    pub dir: PathBuf,
    /// Which of the roots it lies below.
    pub root: usize,
    /// How it is called from the root: empty or with a slash at the end.
    pub prefix: String,
    /// The same without the root, and without a slash.
    pub below_root: String,
    pub clock_offset: Duration,
    pub writer: Writer,
}

/// What became of who writes a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// It finished, as far as anything says.
    Finished,
    /// It was killed: nobody knows what comes behind the end of a stream.
    Killed,
    /// It writes still: what is not there yet is no loss.
    Active,
}

impl CtfTrace {
    /// Opens the directories.
    pub fn open(places: Vec<Place>, options: &OpenOptions) -> Result<CtfTrace> {
        let mut parts = Vec::with_capacity(places.len());
        for place in places {
            let files = TraceFiles::open(&place.dir)?;
            let environment = environment(&files);
            let losses_between = environment
                .get(LOSSES_KEY)
                .is_some_and(|v| v == LOSSES_BETWEEN);
            let window = match options.intersection {
                true => intersection(&files),
                false => TimeRange::ALL,
            };
            parts.push(Part {
                files,
                root: place.root,
                prefix: place.prefix,
                path_below_root: place.below_root,
                first_class: 0,
                time: OwnTime::new(window),
                losses_between,
                environment,
                clock_offset: place.clock_offset + options.clock_offset,
                writer: place.writer,
            });
        }
        parts.sort_by_key(|part| part.domain() != Some(KERNEL));
        join(&mut parts);
        let base_ns = parts.first().map_or(0, Part::wall_offset_ns);
        let mut first_class = 0;
        for part in &mut parts {
            part.first_class = first_class;
            first_class += part.files.schema().classes.len() as u32;
            part.time.shift_ns = part.wall_offset_ns().saturating_sub(base_ns);
        }
        Ok(CtfTrace {
            parts,
            stop: None,
            whole: OnceLock::new(),
            missing: OnceLock::new(),
        })
    }

    /// Every stream file, as its part's place and its own in that, in the order that events of one
    /// instant have: by UUID, stream class and stream, then by name; as babeltrace2 orders them.
    pub fn streams_in_order(&self) -> Vec<(usize, usize)> {
        let mut keyed = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            let uuid = part.files.schema().uuid;
            // Traces without a UUID come last, and stay apart.
            let trace = (uuid.is_none().then_some(number), uuid);
            let indexes = part.files.indexes().iter().enumerate();
            let key = |index: &PacketIndex| (trace, index.stream_class, index.stream);
            keyed.extend(indexes.map(|(place, index)| (key(index), (number, place))));
        }
        keyed.sort();
        keyed.into_iter().map(|(_, place)| place).collect()
    }

    /// Classes of all parts, numbered through.
    pub fn classes(&self) -> Arc<[EventClass]> {
        if let [only] = &self.parts[..] {
            return Arc::clone(&only.files.schema().classes);
        }
        let mut classes = Vec::new();
        for class in self
            .parts
            .iter()
            .flat_map(|part| part.files.schema().classes.iter())
        {
            let id = ClassId(classes.len() as u32);
            classes.push(EventClass {
                id,
                ..class.clone()
            });
        }
        classes.into()
    }

    /// Facts of the first part, CPUs of all.
    pub fn info(&self) -> TraceInfo {
        let Some(first) = self.parts.first() else {
            return TraceInfo::default();
        };
        let clock = first.files.schema().base_clock();
        let monotonic = clock.is_some_and(|clock| clock.name == "monotonic");
        let mut cpus: Vec<Cpu> = self.parts.iter().flat_map(Part::cpus).collect();
        cpus.sort_unstable();
        cpus.dedup();
        TraceInfo {
            clock: if monotonic {
                Clock::Monotonic
            } else {
                Clock::Foreign
            },
            wall_offset: Duration::from_ns(first.wall_offset_ns()),
            environment: first.environment.clone(),
            cpus,
        }
    }

    /// How far the wall clock is ahead of the first part's.
    pub fn wall_offset_ns(&self) -> i64 {
        self.parts.first().map_or(0, Part::wall_offset_ns)
    }

    pub fn part_infos(&self) -> Vec<PartInfo> {
        self.parts.iter().map(Part::info).collect()
    }

    /// From the earliest packet to the latest.
    pub fn range(&self) -> Option<TimeRange> {
        let ranges = || self.parts.iter().filter_map(Part::range);
        Some(TimeRange {
            begin: ranges().map(|range| range.begin).min()?,
            end: ranges().map(|range| range.end).max()?,
        })
    }

    /// The same, kept; no time at all when nobody says.
    pub fn whole(&self) -> TimeRange {
        let none = TimeRange {
            begin: Instant::from_ns(0),
            end: Instant::from_ns(0),
        };
        *self.whole.get_or_init(|| self.range().unwrap_or(none))
    }

    /// The streams that are missing, as losses of all the time. One that is written still may have
    /// no byte yet.
    pub fn missing(&self) -> &[Lost] {
        self.missing.get_or_init(|| {
            let parts = self.parts.iter();
            let ended = parts.filter(|part| part.writer != Writer::Active);
            let streams = ended.flat_map(crate::missing::streams);
            let lost = |(cpu, from)| Lost {
                cpu,
                range: self.whole(),
                count: None,
                cause: LossCause::Missing,
                from,
            };
            let mut missing: Vec<(Option<Cpu>, LostFrom)> = streams.collect();
            missing.sort_unstable();
            missing.dedup();
            missing.into_iter().map(lost).collect()
        })
    }

    /// When the kernel was recorded. Directories that are parts of one trace count the packets
    /// between them, and so are one here.
    pub fn covered(&self) -> Vec<Covered> {
        let mut traces: BTreeMap<(usize, [u8; 16]), usize> = BTreeMap::new();
        let mut all: Vec<Covered> = Vec::new();
        for part in self.parts.iter().filter(|part| part.is_of_kernel()) {
            let Some(covered) = part.covered() else {
                continue;
            };
            let Some(uuid) = part.files.schema().uuid else {
                all.push(covered);
                continue;
            };
            let place = *traces.entry((part.root, uuid)).or_insert(all.len());
            match all.get_mut(place) {
                Some(trace) => trace.join(covered),
                None => all.push(covered),
            }
        }
        all
    }

    /// How many stream files there are.
    pub fn stream_count(&self) -> usize {
        self.parts
            .iter()
            .map(|part| part.files.streams().len())
            .sum()
    }

    /// When packets of any stream begin and how many bytes they have, by time; none where a stream
    /// cannot be read from the middle on as it is read from the start.
    pub fn cuts(&self) -> Option<Vec<(Instant, u64)>> {
        let mut cuts = Vec::new();
        for part in &self.parts {
            let files = part.files.streams().iter().zip(part.files.indexes());
            for (file, index) in files {
                let own = index.cuts(file.size_bytes())?.into_iter();
                cuts.extend(own.map(|(begin_ns, bytes)| (part.time.shifted(begin_ns), bytes)));
            }
        }
        cuts.sort_unstable();
        Some(cuts)
    }

    /// Packets that begin before an earlier one of their stream ends.
    pub fn packets_back_in_time(&self) -> u64 {
        let indexes = self.parts.iter().flat_map(|part| part.files.indexes());
        indexes.map(|index| index.packets_back_in_time).sum()
    }

    pub fn environment_of(&self, class: ClassId) -> Option<&BTreeMap<String, String>> {
        self.part_of(class).map(|part| &part.environment)
    }

    pub fn has_payload(&self, class: ClassId) -> bool {
        let has = |part: &Part| {
            let id = ClassId(class.0 - part.first_class);
            part.files.schema().has_payload(id)
        };
        self.part_of(class).is_some_and(has)
    }

    /// What is said of a class besides its fields, and which of the traces it is of.
    pub fn class_facts(&self, class: ClassId) -> Option<ClassFacts> {
        let part = self.part_of(class)?;
        let (schema, id) = (part.files.schema(), ClassId(class.0 - part.first_class));
        let remarks = schema.remarks(id)?;
        Some(ClassFacts {
            is_timed: schema.is_timed(id),
            log_level: remarks.log_level,
            emf_uri: remarks.emf_uri.clone(),
            trace_path: part.path_below_root.clone(),
        })
    }

    fn part_of(&self, class: ClassId) -> Option<&Part> {
        self.parts.get(self.part_index(class)?)
    }

    /// The part that a class belongs to, as an index.
    pub fn part_index(&self, class: ClassId) -> Option<usize> {
        let after = self
            .parts
            .partition_point(|part| part.first_class <= class.0);
        after.checked_sub(1)
    }
}

/// Directories below one root that bear the UUID of one trace are parts of it. What was named by
/// itself stands for itself.
fn join(parts: &mut [Part]) {
    let mut traces: BTreeMap<(usize, [u8; 16]), Vec<&mut TraceFiles>> = BTreeMap::new();
    for part in parts {
        if let Some(uuid) = part.files.schema().uuid {
            let trace = traces.entry((part.root, uuid)).or_default();
            trace.push(&mut part.files);
        }
    }
    for files in traces.values_mut().filter(|files| files.len() > 1) {
        TraceFiles::join(files);
    }
}

impl Part {
    fn wall_offset_ns(&self) -> i64 {
        let clock = self.files.schema().base_clock();
        let offset_ns = clock.map_or(0, |clock| clock.wall_offset_ns());
        offset_ns.saturating_add(self.clock_offset.as_ns())
    }

    fn domain(&self) -> Option<&str> {
        self.environment.get("domain").map(String::as_str)
    }

    fn is_of_kernel(&self) -> bool {
        let mut classes = self.files.schema().classes.iter();
        match self.domain() {
            Some(domain) => domain == KERNEL,
            None => classes.any(|class| class.name == SWITCH),
        }
    }

    /// When it was recorded, and of which CPUs; none when it does not say.
    fn covered(&self) -> Option<Covered> {
        let indexes = || {
            self.files
                .indexes()
                .iter()
                .filter(|index| index.packets > 0)
        };
        let is_of_one = |index: &PacketIndex| index.cpu.is_some() && !index.has_several_cpus;
        let mut cpus = match indexes().all(is_of_one) {
            true => self.cpus(),
            false => Vec::new(),
        };
        if !cpus.is_empty() {
            cpus.extend(crate::missing::recorded(&self.environment).unwrap_or_default());
        }
        let clock = self.files.schema().base_clock();
        let is_monotonic = clock.is_some_and(|clock| clock.name == "monotonic");
        Some(Covered {
            host: self.environment.get(HOST).cloned(),
            range: self.range()?,
            shift_ns: is_monotonic.then_some(self.time.shift_ns),
            cpus,
        })
    }

    /// Its classes, as places in the list of all.
    pub fn classes(&self) -> std::ops::Range<usize> {
        let first = self.first_class as usize;
        first..first + self.files.schema().classes.len()
    }

    /// What a stream of this class holds; the class is none where its packets do not say it.
    pub fn kind_of_stream(&self, class: Option<u64>) -> LostFrom {
        let classes = self.files.schema().classes.iter();
        let is_evidence = |class: &EventClass| Kind::of_class(&class.name).is_some();
        let of_stream = |found: &&EventClass| class.is_none_or(|id| id == u64::from(found.stream));
        let (mut evidence, mut others) = (false, false);
        for found in classes.filter(of_stream) {
            match is_evidence(found) {
                true => evidence = true,
                false => others = true,
            }
        }
        match (evidence, others) {
            (true, false) => LostFrom::Evidence,
            (true, true) => LostFrom::Either,
            (false, _) => LostFrom::Recording,
        }
    }

    /// The CPUs of the streams.
    fn cpus(&self) -> Vec<Cpu> {
        let indexes = self.files.indexes().iter();
        indexes.filter_map(|index| index.cpu.map(Cpu)).collect()
    }

    /// From the earliest packet to the latest, inside of the window.
    fn range(&self) -> Option<TimeRange> {
        let ranges = || {
            self.files
                .indexes()
                .iter()
                .filter_map(PacketIndex::range_ns)
        };
        let begin = ranges().map(|(begin, _)| begin).min()?;
        let end = ranges().map(|(_, end)| end).max()?;
        Some(self.time.seen(begin, end))
    }

    fn info(&self) -> PartInfo {
        let schema = self.files.schema();
        let clock = |clock: &ClockInfo| ClockFacts {
            name: clock.name.clone(),
            frequency_hz: clock.frequency_hz,
            wall_offset: Duration::from_ns(clock.wall_offset_ns()),
        };
        let files = self.files.streams().iter().zip(self.files.indexes());
        let stream = |(file, index): (&StreamFile, &PacketIndex)| StreamInfo {
            file: file.name().to_owned(),
            size_bytes: file.size_bytes(),
            class: index.stream_class,
            cpu: index.cpu.map(Cpu),
            packets: index.packets,
            range: index.range_ns().map(|(begin, end)| TimeRange {
                begin: self.time.shifted(begin),
                end: self.time.shifted(end.saturating_add(1)),
            }),
            discarded: index.discarded,
            packet_gaps: index.packet_gaps,
            packets_back_in_time: index.packets_back_in_time,
        };
        PartInfo {
            path: self.prefix.trim_end_matches('/').to_owned(),
            format: "CTF",
            format_version: schema.format_version,
            uuid: schema.uuid,
            environment: self.environment.clone(),
            clocks: schema.clocks.iter().map(clock).collect(),
            streams: files.map(stream).collect(),
            violations: schema.violations.clone(),
        }
    }
}

/// The time in which all streams of a trace have packets; no time at all when there is none.
fn intersection(files: &TraceFiles) -> TimeRange {
    let ranges = || files.indexes().iter().filter_map(PacketIndex::range_ns);
    let begin = ranges().map(|(begin, _)| begin).max();
    let end = ranges().map(|(_, end)| end).min();
    let (Some(begin), Some(end)) = (begin, end) else {
        return TimeRange::ALL;
    };
    TimeRange {
        begin: Instant::from_ns(begin),
        end: Instant::from_ns(end.saturating_add(1).max(begin)),
    }
}

fn environment(files: &TraceFiles) -> BTreeMap<String, String> {
    let entry = |(name, value): &(String, EnvValue)| match value {
        EnvValue::Text(text) => (name.clone(), text.clone()),
        EnvValue::Integer(number) => (name.clone(), number.to_string()),
    };
    files.schema().environment.iter().map(entry).collect()
}
