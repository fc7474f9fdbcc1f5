//! CTF 1.8 and 2: a directory below which each part of the trace lies where it lay, its streams one
//! file per stream class and CPU.
//!
//! All parts are written on the one clock that the walk's instants are on. A loss keeps its count,
//! its CPU and its range; bytes that could not be read are left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use ctf::writer::{
    ClockMeta, Dialect, EnvValue, HeaderKind, StagedDir, StreamMeta, StreamWriter, TraceMeta,
    TraceWriter, random_uuid, write_error,
};
use ctf::{LOSSES_BETWEEN, LOSSES_KEY, is_packet_bookkeeping};
use event::{
    Cpu, Duration, EventClass, Field, FieldId, Instant, Record, Result, Scope, TimeRange, Value,
};
use trace::{EventView, Lost, PartInfo, RECORDED_CPUS, Trace};

use crate::sink::Sink;

/// Where a recording keeps the kernel's symbols.
const KALLSYMS: &str = "rtscope/kallsyms";
/// What parts in CTF call their format: only there a stream may lack a clock or a CPU.
const FORMAT_CTF: &str = "CTF";

/// A trace that is being written.
pub(crate) struct CtfSink {
    dir: StagedDir,
    parts: Vec<Part>,
    /// Where the events of each class go.
    homes: Vec<Home>,
    /// Where each class has the packet context's fields that the caller sets.
    contexts: Vec<Vec<FieldId>>,
    /// To add to each instant, so that none is before the clock's origin.
    shift: Duration,
    /// Of the trace it gets what lies in this.
    window: TimeRange,
}

/// The part, the stream class in it and the class in that.
#[derive(Clone, Copy)]
struct Home {
    part: usize,
    stream: usize,
    class: u32,
}

struct Part {
    writer: TraceWriter,
    /// Stream classes, as they were declared.
    classes: Vec<StreamMeta>,
    streams: BTreeMap<(usize, Option<Cpu>), Stream>,
    /// From when to when each was recorded, also where nothing happened.
    recorded: BTreeMap<(usize, Option<Cpu>), TimeRange>,
    losses_are_vague: bool,
}

struct Stream {
    writer: StreamWriter,
    /// When its recording began, until its first event has come.
    begin: Option<Instant>,
    /// Whether its packets have a context that the caller sets.
    has_context: bool,
    latest: Instant,
    discarded: u64,
    /// A loss that ends here has been counted; what comes next begins after it.
    gap_end: Option<Instant>,
}

impl CtfSink {
    pub fn create(trace: &Trace, path: &Path, dialect: Dialect) -> Result<Self> {
        let dir = StagedDir::create(path)?;
        let begin = trace
            .range()
            .map_or(Instant::default(), |range| range.begin);
        let shift = Instant::default().since(begin.min(Instant::default()));
        let mut infos = trace.parts();
        if infos.is_empty() {
            infos.push(PartInfo::default());
        }
        let mut homes: Vec<Home> = Vec::with_capacity(trace.classes().len());
        let mut plans: Vec<Plan> = infos.iter().map(|_| Plan::default()).collect();
        for class in trace.classes() {
            let part = trace.part_of(class.id).min(plans.len() - 1);
            homes.push(plans[part].add(part, class));
        }
        let mut parts = Vec::with_capacity(infos.len());
        for (plan, info) in plans.into_iter().zip(&infos) {
            let recorded = plan.recorded(info);
            let meta = plan.meta(info, trace, shift, dialect)?;
            let writer = TraceWriter::create(&dir.path().join(inside(&info.path)), &meta)?;
            parts.push(Part {
                writer,
                losses_are_vague: meta.losses_are_vague,
                classes: meta.streams,
                streams: BTreeMap::new(),
                recorded,
            });
        }
        write_symbols(trace, dir.path())?;
        Ok(CtfSink {
            dir,
            parts,
            homes,
            contexts: trace.classes().iter().map(packet_context).collect(),
            shift,
            window: TimeRange::ALL,
        })
    }
}

/// The fields of the packet's context that the writer does not fill by itself: each class has them
/// behind its own.
fn packet_context(class: &EventClass) -> Vec<FieldId> {
    let fields = class.fields.iter().enumerate();
    let own = fields.filter(|(_, f)| f.scope == Scope::PacketContext && !is_packet_bookkeeping(f));
    own.map(|(place, _)| FieldId(place as u16)).collect()
}

/// The kernel's symbols, so that an analysis of what is written finds them too.
fn write_symbols(trace: &Trace, dir: &Path) -> Result<()> {
    if trace.symbols().is_empty() {
        return Ok(());
    }
    let path = dir.join(KALLSYMS);
    let parent = path.parent().unwrap_or(dir);
    fs::create_dir_all(parent).map_err(|cause| write_error(parent, cause))?;
    fs::write(&path, trace.symbols().to_kallsyms()).map_err(|cause| write_error(&path, cause))
}

/// A part's directory below the output; never above it.
fn inside(path: &str) -> PathBuf {
    let parts = Path::new(path).components();
    let names = parts.filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    names.collect()
}

/// The stream classes of a part, as they are found.
#[derive(Default)]
struct Plan {
    /// Ids of the source, in the order in which they were met, with their classes.
    streams: Vec<(u32, Vec<EventClass>)>,
}

impl Plan {
    fn add(&mut self, part: usize, class: &EventClass) -> Home {
        let known = self.streams.iter().position(|(id, _)| *id == class.stream);
        let stream = known.unwrap_or(self.streams.len());
        if known.is_none() {
            self.streams.push((class.stream, Vec::new()));
        }
        let classes = &mut self.streams[stream].1;
        classes.push(class.clone());
        Home {
            part,
            stream,
            class: classes.len() as u32 - 1,
        }
    }

    /// From when to when each stream was recorded, where its files say so.
    fn recorded(&self, info: &PartInfo) -> BTreeMap<(usize, Option<Cpu>), TimeRange> {
        let mut recorded: BTreeMap<_, TimeRange> = BTreeMap::new();
        for file in &info.streams {
            let is_its = |(id, _): &(u32, Vec<EventClass>)| file.class == Some(u64::from(*id));
            let (Some(place), Some(range)) = (self.streams.iter().position(is_its), file.range)
            else {
                continue;
            };
            let known = recorded.entry((place, file.cpu)).or_insert(range);
            known.begin = known.begin.min(range.begin);
            known.end = known.end.max(range.end);
        }
        recorded
    }

    fn meta(
        mut self,
        info: &PartInfo,
        trace: &Trace,
        shift: Duration,
        dialect: Dialect,
    ) -> Result<TraceMeta> {
        if self.streams.is_empty() {
            // A trace of no event class is still one: readers want a stream class.
            self.streams.push((0, Vec::new()));
        }
        let first = self
            .streams
            .first()
            .and_then(|(_, classes)| classes.first());
        let environment = match first {
            Some(class) => trace.environment_of(class.id),
            None => &info.environment,
        };
        let wall_offset = trace.info().wall_offset - shift;
        let clock = ClockMeta {
            name: info
                .clocks
                .first()
                .map_or("monotonic", |clock| &clock.name)
                .to_owned(),
            ..ClockMeta::monotonic(wall_offset.as_ns())
        };
        let says_between = environment
            .get(LOSSES_KEY)
            .is_some_and(|v| v == LOSSES_BETWEEN);
        let streams = self.streams.into_iter();
        Ok(TraceMeta {
            dialect,
            environment: environment
                .iter()
                .filter(|(name, _)| *name != RECORDED_CPUS)
                .map(env_entry)
                .collect(),
            uuid: random_uuid()?,
            clocks: vec![clock],
            streams: streams
                .map(|(id, classes)| stream_meta(id, classes, info, trace))
                .collect(),
            losses_are_vague: !says_between,
        })
    }
}

/// An entry of the environment; what reads as a number was one.
fn env_entry((name, value): (&String, &String)) -> (String, EnvValue) {
    let number = value
        .parse::<i64>()
        .ok()
        .filter(|n| n.to_string() == *value);
    let value = number.map_or_else(|| EnvValue::Text(value.clone()), EnvValue::Integer);
    (name.clone(), value)
}

fn stream_meta(id: u32, classes: Vec<EventClass>, info: &PartInfo, trace: &Trace) -> StreamMeta {
    let of_scope = |scope| -> Vec<Field> {
        let fields = classes.first().map_or(&[][..], |class| &class.fields);
        fields
            .iter()
            .filter(|f| f.scope == scope)
            .cloned()
            .collect()
    };
    let (own, packet) = of_scope(Scope::PacketContext)
        .into_iter()
        .partition::<Vec<Field>, _>(is_packet_bookkeeping);
    let is_ctf = info.format == FORMAT_CTF;
    let is_timed = classes
        .first()
        .is_none_or(|class| trace.class_facts(class.id).is_timed);
    StreamMeta {
        name: stream_name(id, info),
        header: if is_timed {
            HeaderKind::Large
        } else {
            HeaderKind::Untimed
        },
        event_context: of_scope(Scope::StreamContext),
        packet_context: packet,
        clock: 0,
        log_levels: classes
            .iter()
            .map(|class| trace.class_facts(class.id).log_level)
            .collect(),
        lacks_headers: is_ctf,
        has_no_cpu: is_ctf && !own.iter().any(|field| field.name == "cpu_id"),
        classes,
    }
}

/// What the files of a stream class begin with: `channel0_3` is `channel0`.
fn stream_name(id: u32, info: &PartInfo) -> String {
    let mut files = info
        .streams
        .iter()
        .filter(|file| file.class == Some(u64::from(id)));
    let name = files.next().and_then(|file| file.file.rsplit_once('_'));
    let shared = info
        .streams
        .iter()
        .filter(|file| file.class != Some(u64::from(id)));
    let plain = |name: &str| {
        name.chars()
            .all(|c| c.is_alphanumeric() || "-_.".contains(c))
    };
    match name {
        Some((name, _))
            if plain(name) && !shared.into_iter().any(|file| file.file.starts_with(name)) =>
        {
            name.to_owned()
        }
        _ => format!("stream{id}"),
    }
}

impl Part {
    fn stream(&mut self, place: usize, cpu: Option<Cpu>) -> Result<&mut Stream> {
        let meta = &self.classes[place];
        let cpu = cpu.filter(|_| !meta.has_no_cpu);
        let key = (place, cpu);
        if !self.streams.contains_key(&key) {
            let writer = match cpu {
                Some(cpu) => self.writer.stream(place, cpu)?,
                None => self.writer.stream_file(place, &meta.name, Cpu(0))?,
            };
            let has_context = !meta.packet_context.is_empty();
            self.streams.insert(
                key,
                Stream {
                    writer,
                    begin: self.recorded.get(&key).map(|recorded| recorded.begin),
                    has_context,
                    latest: Instant::default(),
                    discarded: 0,
                    gap_end: None,
                },
            );
        }
        // It was inserted above.
        self.streams.get_mut(&key).ok_or_else(|| {
            event::Error::new(event::ErrorKind::NotFound, "no such stream in the output")
        })
    }

    /// The last instant at which a stream was recorded, as far as it lies in `window`.
    fn recorded_until(&self, stream: (usize, Option<Cpu>), window: TimeRange) -> Option<Instant> {
        let end = self.recorded.get(&stream)?.end.min(window.end);
        Some(Instant::from_ns(end.as_ns().saturating_sub(1)))
    }

    /// The stream that a loss of `cpu` belongs to, as far as anybody says: the first of its CPU.
    fn losing(&mut self, cpu: Option<Cpu>) -> Result<&mut Stream> {
        let known = self.streams.keys().find(|(_, own)| *own == cpu).copied();
        let (place, cpu) = known.unwrap_or((0, cpu));
        self.stream(place, cpu)
    }
}

impl Stream {
    /// Lets the writer's time be `time`: a pending loss ends before it.
    fn advance(&mut self, time: Instant, is_vague: bool) -> Result<()> {
        if let Some(end) = self.gap_end {
            let is_over = match is_vague {
                // The packet reaches to the end of what the tracer said of the loss.
                true => time > end,
                false => true,
            };
            if is_over {
                self.gap_end = None;
                self.covers(end.min(time))?;
                if is_vague {
                    self.writer.gap()?;
                }
            }
        }
        if time < self.latest {
            self.writer.turn_back()?;
        }
        self.latest = time;
        Ok(())
    }

    fn covers(&mut self, time: Instant) -> Result<()> {
        if time >= self.latest && !self.has_context {
            self.latest = time;
            self.writer.covers(time)?;
        }
        Ok(())
    }

    fn lost(&mut self, begin: Instant, end: Instant, count: Option<u64>) -> Result<()> {
        self.covers(begin)?;
        match count {
            Some(count) => {
                self.discarded += count;
                self.writer.discarded(self.discarded)?;
            }
            None => self.writer.lost_packets(1)?,
        }
        self.gap_end = Some(end);
        Ok(())
    }
}

impl Sink for CtfSink {
    fn event(&mut self, event: &EventView<'_>) -> Result<()> {
        let Some(home) = self.homes.get(event.class().0 as usize).copied() else {
            return Ok(());
        };
        let window = self.window;
        let part = &mut self.parts[home.part];
        let is_vague = part.losses_are_vague;
        let stream = part.stream(home.stream, event.cpu())?;
        let time = match event.is_timed() {
            true => event.time() + self.shift,
            false => stream.latest,
        };
        if stream.has_context {
            let value = |field: &FieldId| Record::value(event, *field);
            let context = self.contexts.get(event.class().0 as usize);
            let values: Vec<Value<'_>> = context.into_iter().flatten().map(value).collect();
            stream.writer.packet_context(&values)?;
        }
        if let Some(begin) = stream.begin.take() {
            let begin = begin.max(window.begin) + self.shift;
            if begin < time {
                stream.covers(begin)?;
            }
        }
        stream.advance(time, is_vague)?;
        stream.writer.record(home.class, time, event)
    }

    fn lost(&mut self, lost: &Lost) -> Result<()> {
        // Kernel traces come first, and are the ones that lose.
        let named = |part: &Part| part.streams.keys().any(|(_, cpu)| *cpu == lost.cpu);
        let place = self.parts.iter().position(named).unwrap_or(0);
        let (begin, end) = (lost.range.begin + self.shift, lost.range.end + self.shift);
        match self
            .parts
            .get_mut(place)
            .filter(|part| !part.classes.is_empty())
        {
            Some(part) => part.losing(lost.cpu)?.lost(begin, end, lost.count),
            None => Ok(()),
        }
    }

    fn covers(&mut self, range: TimeRange) {
        self.window = range;
    }

    fn finish(self: Box<Self>) -> Result<()> {
        for mut part in self.parts {
            for (place, mut stream) in std::mem::take(&mut part.streams) {
                if let Some(end) = stream.gap_end {
                    stream.covers(end)?;
                }
                if let Some(last) = part.recorded_until(place, self.window) {
                    stream.covers(last + self.shift)?;
                }
                stream.writer.finish()?;
            }
        }
        self.dir.commit().map(drop)
    }
}
