//! The directory that recordings and snapshots share: `kernel/` in CTF, `rtscope/` with symbols.

use std::path::Path;
use std::sync::Arc;

use bpf_host::Gone;
use ctf::writer::{
    ClockMeta, EnvValue, HeaderKind, Outlet, StreamMeta, StreamWriter, TraceMeta, TraceWriter,
    random_uuid,
};
use event::{Cpu, EventClass, Instant, Result, Tid, TimeRange};
use host::groups::Kept;

use crate::channels::{CHANNEL_NAME, RingId};
use crate::evidence::{self, Encoded};
use crate::kernel_ctf::{CpuConverter, KernelClasses, ThreadGroups, class_of_current};
use crate::statedump::{self, LoadedProgram, StateDump};

/// Places of the stream classes.
const KERNEL_STREAM: usize = 0;
const EVIDENCE_STREAM: usize = 1;
/// The file of the state dump: a stream of its own, because events were recorded meanwhile.
pub(crate) const STATEDUMP_FILE: &str = "statedump_0";

/// How the files are called that say what of the evidence was overwritten.
const EVIDENCE_GONE_FILE: &str = "evidence_gone";

/// How the files of system calls begin.
const CALLS_FILE: &str = "syscalls";

/// A kernel trace that is being written.
pub(crate) struct KernelTrace {
    writer: TraceWriter,
    classes: Arc<KernelClasses>,
    uuid: [u8; 16],
    /// The class of who has a CPU.
    current_class: u32,
    /// The stream class of what carries no call stacks.
    bare_stream: usize,
    /// That of the first channel beside `channel0`; the others follow.
    named_stream: usize,
}

impl KernelTrace {
    /// Writes the metadata below `root`; `calls` are the classes of system calls that others than
    /// ftrace record.
    pub(crate) fn create(
        root: &Path,
        classes: (Arc<KernelClasses>, &[EventClass]),
        environment: Vec<(String, EnvValue)>,
        wall_offset_ns: i64,
        with_evidence: bool,
    ) -> Result<Self> {
        let identity = (random_uuid()?, wall_offset_ns);
        KernelTrace::with(root, classes, environment, identity, with_evidence)
    }

    /// The trace with this UUID and offset of its clock once more: other streams of it are there
    /// already, and its metadata, which this one is to be replaced by.
    pub(crate) fn again(
        root: &Path,
        classes: Arc<KernelClasses>,
        identity: ([u8; 16], i64),
    ) -> Result<Self> {
        KernelTrace::with(root, (classes, &[]), Vec::new(), identity, false)
    }

    /// What tells it from others.
    pub(crate) fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    fn with(
        root: &Path,
        (classes, calls): (Arc<KernelClasses>, &[EventClass]),
        environment: Vec<(String, EnvValue)>,
        (uuid, wall_offset_ns): ([u8; 16], i64),
        with_evidence: bool,
    ) -> Result<Self> {
        let kernel = classes
            .classes()
            .iter()
            .cloned()
            .chain(statedump::classes())
            .chain([class_of_current()])
            .chain(calls.iter().cloned());
        let kernel: Vec<EventClass> = kernel.collect();
        let current_class = (kernel.len() - calls.len()) as u32 - 1;
        let shared = classes.shared();
        // The same classes and numbers in all of them.
        let channel = |name: &str| StreamMeta {
            event_context: shared.clone(),
            ..stream(name, kernel.clone())
        };
        // What others than ftrace tell has no stacks.
        let bare = (!shared.is_empty()).then(|| stream("state", kernel.clone()));
        let mut streams = vec![channel(CHANNEL_NAME)];
        let named: Vec<StreamMeta> = classes
            .channels()
            .iter()
            .map(|name| channel(name))
            .collect();
        if with_evidence {
            streams.push(stream(
                "evidence",
                evidence::classes(EVIDENCE_STREAM as u32),
            ));
        }
        let bare_stream = bare.as_ref().map_or(KERNEL_STREAM, |_| streams.len());
        streams.extend(bare);
        let named_stream = streams.len();
        streams.extend(named);
        let meta = TraceMeta {
            environment,
            uuid,
            clocks: vec![ClockMeta::monotonic(wall_offset_ns)],
            streams,
            ..TraceMeta::default()
        };
        let writer = TraceWriter::create(&root.join("kernel"), &meta)?;
        Ok(KernelTrace {
            writer,
            classes,
            uuid,
            current_class,
            bare_stream,
            named_stream,
        })
    }

    /// Tells `outlet` of the packets of all streams that are begun from now on.
    pub(crate) fn tell(&mut self, outlet: Option<Arc<dyn Outlet>>) {
        self.writer.tell(outlet);
    }

    /// The converter of the pages that `cpu` has in the first channel.
    pub(crate) fn cpu(&mut self, cpu: Cpu, groups: &Arc<ThreadGroups>) -> Result<CpuConverter> {
        self.ring(RingId { channel: 0, cpu }, groups)
    }

    /// The converter of a ring's pages.
    pub(crate) fn ring(
        &mut self,
        ring: RingId,
        groups: &Arc<ThreadGroups>,
    ) -> Result<CpuConverter> {
        let stream = self.stream(ring)?;
        Ok(CpuConverter::new(
            ring.cpu,
            Arc::clone(&self.classes),
            Arc::clone(groups),
            (stream, self.current_class),
        ))
    }

    /// A stream for the system calls of each of `cpus`, and the number of their first class.
    pub(crate) fn calls(&mut self, cpus: &[Cpu]) -> Result<(Vec<(RingId, StreamWriter)>, u32)> {
        let (writer, class) = (&mut self.writer, self.bare_stream);
        let stream = |cpu: &Cpu| {
            let name = format!("{CALLS_FILE}_{}", cpu.0);
            let ring = RingId {
                channel: 0,
                cpu: *cpu,
            };
            Ok((ring, writer.stream_file(class, &name, *cpu)?))
        };
        let streams: Result<Vec<_>> = cpus.iter().map(stream).collect();
        Ok((streams?, self.current_class + 1))
    }

    /// Writes the tables of tasks and interrupts; returns how many events they are. The stream
    /// covers `window`, so that the intersection of all streams stays what was recorded.
    pub(crate) fn state_dump(&mut self, dump: &StateDump, window: TimeRange) -> Result<u64> {
        let mut stream = self.open_dump(window.begin.min(dump.begin))?;
        let events = self.dump(&mut stream, dump)?;
        stream.covers(window.end.max(dump.end))?;
        stream.finish()?;
        Ok(events)
    }

    /// The stream of state dumps, which covers what comes from `begin` on.
    pub(crate) fn open_dump(&mut self, begin: Instant) -> Result<StreamWriter> {
        let mut stream = self
            .writer
            .stream_file(self.bare_stream, STATEDUMP_FILE, Cpu(0))?;
        stream.covers(begin)?;
        Ok(stream)
    }

    /// Writes the tables into that stream; returns how many events they are.
    pub(crate) fn dump(&self, stream: &mut StreamWriter, dump: &StateDump) -> Result<u64> {
        dump.write(stream, self.classes.classes().len() as u32)
    }

    /// Says in that stream whose events alone are recorded from `at` on.
    pub(crate) fn tracked(
        &self,
        stream: &mut StreamWriter,
        (at, tasks): (Instant, &[Tid]),
    ) -> Result<()> {
        let first_class = self.classes.classes().len() as u32;
        statedump::write_tracked(stream, first_class, (at.max(stream.end()), tasks))
    }

    /// Says in that stream which programs and libraries came by `at`.
    pub(crate) fn programs(
        &self,
        stream: &mut StreamWriter,
        at: Instant,
        programs: &[LoadedProgram],
    ) -> Result<()> {
        let first_class = self.classes.classes().len() as u32;
        statedump::write_programs(stream, first_class, (at.max(stream.end()), programs))
    }

    /// Says in that stream for how long quotas kept tasks between two looks.
    pub(crate) fn quota(
        &self,
        stream: &mut StreamWriter,
        (begin, end): (Instant, Instant),
        kept: &Kept,
    ) -> Result<()> {
        let first_class = self.classes.classes().len() as u32;
        let end = end.max(stream.end());
        statedump::write_quota(stream, first_class, (begin, end), kept)
    }

    /// A stream for the events of each of `rings`.
    pub(crate) fn streams(&mut self, rings: &[RingId]) -> Result<Vec<(RingId, StreamWriter)>> {
        rings
            .iter()
            .map(|ring| Ok((*ring, self.stream(*ring)?)))
            .collect()
    }

    fn stream(&mut self, ring: RingId) -> Result<StreamWriter> {
        let class = match ring.channel {
            0 => KERNEL_STREAM,
            named => self.named_stream + named - 1,
        };
        self.writer.stream(class, ring.cpu)
    }

    /// Writes hits and records, in order of time, into a stream per CPU that covers `window`; what
    /// is `gone` is a loss where it reaches into that.
    pub(crate) fn evidence(
        &mut self,
        events: &[Encoded],
        gone: &[Gone],
        window: TimeRange,
    ) -> Result<u64> {
        for gone in gone.iter().filter(|gone| gone.before > window.begin) {
            self.evidence_gone(gone, window)?;
        }
        let mut cpus: Vec<_> = events.iter().map(|event| event.cpu).collect();
        cpus.sort();
        cpus.dedup();
        for cpu in cpus {
            let mut stream = self.writer.stream(EVIDENCE_STREAM, cpu)?;
            let own = || events.iter().filter(|event| event.cpu == cpu);
            let (first, last) = (own().next(), own().next_back());
            stream.covers(first.map_or(window.begin, |event| event.time.min(window.begin)))?;
            for event in own() {
                stream.event(event.class, event.time, &event.payload)?;
            }
            stream.covers(last.map_or(window.end, |event| event.time.max(window.end)))?;
            stream.finish()?;
        }
        Ok(events.len() as u64)
    }

    /// A loss of evidence, in a file of its own: what is left of that time has another.
    fn evidence_gone(&mut self, gone: &Gone, window: TimeRange) -> Result<()> {
        let name = format!("{EVIDENCE_GONE_FILE}_{}", gone.cpu.0);
        let mut stream = self.writer.stream_file(EVIDENCE_STREAM, &name, gone.cpu)?;
        stream.covers(window.begin)?;
        stream.discarded(1)?;
        stream.covers(gone.before.min(window.end))?;
        stream.finish().map(drop)
    }
}

fn stream(name: &str, classes: Vec<EventClass>) -> StreamMeta {
    let name = name.to_owned();
    StreamMeta {
        name,
        header: HeaderKind::Large,
        classes,
        ..StreamMeta::default()
    }
}
