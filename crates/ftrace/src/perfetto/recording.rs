//! An open trace of Perfetto: what its packets hold, learnt at open.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use event::{ClassId, Cpu, Error, ErrorKind, EventClass, Result};

use super::bundle::{self, Key};
use super::schema::{self, Shape};
use super::wire::{Fields, VARINT_BYTES_MAX, Wire, varint};
use crate::limits::CPUS_MAX;
use crate::recording::Facts;

/// `Trace.packet` with its length: how every packet begins.
const PACKET: u8 = 0x0a;
/// Packets of this size at most are read; real ones are below 1 MB.
const PACKET_BYTES_MAX: u64 = 64 << 20;
/// What packets that are compressed together may unpack to.
const UNPACKED_BYTES_MAX: u64 = 64 << 20;
/// Bundles of one trace; further ones are left out.
const BUNDLES_MAX: usize = 1 << 22;
/// Classes of one trace; events of further ones are left out.
const CLASSES_MAX: usize = 4096;
/// Fields of a packet have numbers up to here, as of today.
const FIELD_MAX: u32 = 2048;

/// A first packet of which less was read tells nothing.
const LARGE_BYTES_MIN: usize = 4096;

/// Fields of `TracePacket`.
const FTRACE_EVENTS: u32 = 1;
const PROCESS_TREE: u32 = 2;
const CLOCK_SNAPSHOT: u32 = 6;
const SYSTEM_INFO: u32 = 45;
const COMPRESSED: u32 = 50;
/// Numbers of clocks in a snapshot.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// Whether a file that begins with `bytes` is a trace of Perfetto.
pub fn is_perfetto(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let mut packets = 0;
    while let Some((&PACKET, behind)) = rest.split_first() {
        let mut behind = behind;
        let Some(length) = varint(&mut behind) else {
            return packets > 0;
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((packet, next)) = behind.split_at_checked(length) else {
            // The packet goes on behind what was read: its first field has to do.
            let first = Fields::new(behind).next();
            let is_packet = first.is_some_and(|(number, _)| number <= FIELD_MAX);
            return packets > 0 || bytes.len() >= LARGE_BYTES_MIN && is_packet;
        };
        let mut fields = Fields::new(packet);
        if fields.by_ref().any(|(number, _)| number > FIELD_MAX) || fields.is_broken() {
            return false;
        }
        packets += 1;
        rest = next;
    }
    packets > 0 && rest.is_empty()
}

/// Where a bundle lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// In the file, or in the packets that were compressed together.
    pub(super) offset_bytes: u64,
    pub(super) size_bytes: u32,
    /// Where those lie in the file.
    pub(super) compressed: Option<(u64, u32)>,
}

/// The bundles of one CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) places: Vec<Place>,
    pub(super) range_ns: Option<(i64, i64)>,
    pub(super) size_bytes: u64,
}

/// An open trace.
#[derive(Debug)]
pub struct PerfettoRecording {
    pub(super) file: File,
    pub(super) name: String,
    pub(super) facts: Facts,
    pub(super) classes: Vec<EventClass>,
    pub(super) shapes: Vec<Learnt>,
    pub(super) by_key: HashMap<Key, usize>,
    pub(super) streams: BTreeMap<u32, Stream>,
    /// Names of threads, from the process tree.
    pub(super) threads: HashMap<i32, String>,
    /// Where bytes made no sense, or the file ends too early.
    pub(super) broken: Option<Broken>,
}

/// A shape, and what all its events have.
#[derive(Debug)]
pub(super) struct Learnt {
    pub(super) shape: Shape,
    pub(super) has_pid: bool,
    pub(super) has_flags: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) offset_bytes: u64,
    pub(super) reason: String,
    pub(super) is_cut: bool,
}

impl PerfettoRecording {
    /// Opens the trace at `path` and reads it once.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it has no event of ftrace; otherwise what the operating system
    /// says.
    pub fn open(path: &Path) -> Result<PerfettoRecording> {
        let failed = |cause| Error::io(format!("cannot read {}", path.display()), cause);
        let file = File::open(path).map_err(failed)?;
        let name = path.file_name().unwrap_or_default();
        let mut recording = PerfettoRecording {
            file,
            name: name.to_string_lossy().into_owned(),
            facts: Facts {
                format: "perfetto",
                clock: "boot".to_owned(),
                environment: vec![
                    ("domain".to_owned(), "kernel".to_owned()),
                    ("tracer_name".to_owned(), "perfetto".to_owned()),
                ],
                ..Facts::default()
            },
            classes: Vec::new(),
            shapes: Vec::new(),
            by_key: HashMap::new(),
            streams: BTreeMap::new(),
            threads: HashMap::new(),
            broken: None,
        };
        let mut learning = Learning::default();
        recording.learn(&mut learning).map_err(failed)?;
        recording.close(learning);
        if recording
            .streams
            .values()
            .all(|stream| stream.range_ns.is_none())
        {
            let what = format!("{} holds no event of ftrace", path.display());
            return Err(Error::new(ErrorKind::NotFound, what)
                .found("a trace of Perfetto without linux.ftrace")
                .fix(
                    "record with tracebox -t 10s -o NEW sched/sched_switch sched/sched_waking \
                     irq/irq_handler_entry irq/irq_handler_exit irq/softirq_entry \
                     irq/softirq_exit",
                ));
        }
        Ok(recording)
    }

    /// The first reading: every packet of the file.
    fn learn(&mut self, learning: &mut Learning) -> std::io::Result<()> {
        let size_bytes = self.file.metadata()?.len();
        let mut at = 0;
        while at < size_bytes {
            let mut head = [0; 1 + VARINT_BYTES_MAX];
            let count = read_at_most(&self.file, &mut head, at)?;
            let mut rest = head.get(1..count).unwrap_or_default();
            let length = varint(&mut rest).filter(|length| *length <= PACKET_BYTES_MAX);
            let is_packet = head[0] == PACKET;
            let head_bytes = (count - rest.len()) as u64;
            let Some(length) = length.filter(|_| is_packet) else {
                let is_cut = is_packet && count < head.len();
                self.break_off(at, "a packet's head", is_cut);
                break;
            };
            let begin = at + head_bytes;
            if begin + length > size_bytes {
                self.break_off(at, "a packet that ends inside of the file", true);
                break;
            }
            let mut packet = vec![0; length as usize];
            self.file.read_exact_at(&mut packet, begin)?;
            self.packet(&packet, (begin, None), learning);
            at = begin + length;
        }
        Ok(())
    }

    fn break_off(&mut self, offset_bytes: u64, expected: &str, is_cut: bool) {
        self.broken.get_or_insert(Broken {
            offset_bytes,
            reason: format!("expected {expected}, found other bytes"),
            is_cut,
        });
    }

    /// Learns from one packet, which lies at an offset of the file or of unpacked bytes.
    fn packet(
        &mut self,
        packet: &[u8],
        (begin, compressed): (u64, Option<(u64, u32)>),
        learning: &mut Learning,
    ) {
        let offset = |part: &[u8]| begin + (part.as_ptr().addr() - packet.as_ptr().addr()) as u64;
        let mut fields = Fields::new(packet);
        for (number, value) in fields.by_ref() {
            let Some(bytes) = value.bytes() else {
                continue;
            };
            match number {
                FTRACE_EVENTS => {
                    let place = Place {
                        offset_bytes: offset(bytes),
                        size_bytes: bytes.len() as u32,
                        compressed,
                    };
                    self.bundle(bytes, place, learning);
                }
                CLOCK_SNAPSHOT => learning.clocks(bytes),
                SYSTEM_INFO => self.system(bytes),
                PROCESS_TREE => self.processes(bytes),
                COMPRESSED if compressed.is_none() => {
                    self.compressed(bytes, offset(bytes), learning);
                }
                _ => {}
            }
        }
        if fields.is_broken() {
            self.break_off(begin, "the fields of a packet", false);
        }
    }

    fn compressed(&mut self, bytes: &[u8], at: u64, learning: &mut Learning) {
        let Some(unpacked) = unpack(bytes) else {
            return self.break_off(at, "packets that were compressed", false);
        };
        let place = (at, bytes.len() as u32);
        let mut fields = Fields::new(&unpacked);
        for (number, value) in fields.by_ref() {
            if let (1, Wire::Bytes(packet)) = (number, value) {
                let begin = (packet.as_ptr().addr() - unpacked.as_ptr().addr()) as u64;
                self.packet(packet, (begin, Some(place)), learning);
            }
        }
        if fields.is_broken() {
            self.break_off(at, "packets inside of compressed ones", false);
        }
    }

    fn bundle(&mut self, bytes: &[u8], place: Place, learning: &mut Learning) {
        let head = bundle::head(bytes);
        if head.cpu >= CPUS_MAX || learning.bundles >= BUNDLES_MAX {
            learning.left_out += 1;
            return;
        }
        learning.bundles += 1;
        learning.clock = learning.clock.or(Some(head.clock));
        let (events, _) = bundle::events(bytes);
        let mut range_ns: Option<(i64, i64)> = None;
        for event in &events {
            let (first, last) = range_ns.get_or_insert((event.time_ns, event.time_ns));
            *first = event.time_ns.min(*first);
            *last = event.time_ns.max(*last);
            let Some(key) = event.raw.key() else {
                learning.unknown += 1;
                continue;
            };
            let known = self.by_key.get(&key).copied();
            let place = match known {
                Some(place) => place,
                None if self.shapes.len() < CLASSES_MAX => {
                    let Some(shape) = shape_of(&key, &event.raw) else {
                        continue;
                    };
                    self.shapes.push(Learnt {
                        shape,
                        has_pid: true,
                        has_flags: true,
                    });
                    self.by_key.insert(key, self.shapes.len() - 1);
                    self.shapes.len() - 1
                }
                None => continue,
            };
            let learnt = &mut self.shapes[place];
            learnt.has_pid &= event.pid.is_some();
            learnt.has_flags &= event.flags.is_some();
        }
        let stream = self.streams.entry(head.cpu).or_default();
        stream.places.push(place);
        stream.size_bytes += u64::from(place.size_bytes);
        if let Some((first, last)) = range_ns {
            let known = stream.range_ns.get_or_insert((first, last));
            *known = (known.0.min(first), known.1.max(last));
        }
    }

    /// `SystemInfo`: the kernel that was traced.
    fn system(&mut self, bytes: &[u8]) {
        for (number, value) in Fields::new(bytes) {
            let (1, Wire::Bytes(utsname)) = (number, value) else {
                continue;
            };
            for (number, value) in Fields::new(utsname) {
                let name = match number {
                    1 => "sysname",
                    2 => "kernel_version",
                    3 => "kernel_release",
                    4 => "architecture",
                    _ => continue,
                };
                let text = String::from_utf8_lossy(value.bytes().unwrap_or_default());
                self.facts
                    .environment
                    .push((name.to_owned(), text.into_owned()));
            }
        }
    }

    /// `ProcessTree`: names of threads.
    fn processes(&mut self, bytes: &[u8]) {
        for (number, value) in Fields::new(bytes) {
            let (2, Wire::Bytes(thread)) = (number, value) else {
                continue;
            };
            let (mut tid, mut name) = (None, None);
            for (number, value) in Fields::new(thread) {
                match (number, value) {
                    (1, Wire::Varint(number)) => tid = Some(number as i32),
                    (2, Wire::Bytes(text)) => name = Some(String::from_utf8_lossy(text)),
                    _ => {}
                }
            }
            if let (Some(tid), Some(name)) = (tid, name) {
                self.threads.insert(tid, name.into_owned());
            }
        }
    }

    /// What is known when all packets were read.
    fn close(&mut self, learning: Learning) {
        self.facts.clock = match learning.clock.unwrap_or(0) {
            0 => "boot",
            2 => "global",
            3 => "local",
            4 => "mono_raw",
            _ => "unknown",
        }
        .to_owned();
        if self.facts.clock == "boot" {
            self.facts.wall_offset_ns = learning.wall_offset_ns.unwrap_or(0);
        }
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                self.facts.notes.push(format!("{count} {what}"));
            }
        };
        note(learning.unknown, "events of kinds that are not read here");
        note(learning.left_out, "bundles beyond what one trace may have");
        let classes = self.shapes.iter().enumerate();
        let class = |(place, learnt): (usize, &Learnt)| {
            let Learnt {
                shape,
                has_pid,
                has_flags,
            } = learnt;
            shape.class(ClassId(place as u32), *has_pid, *has_flags)
        };
        self.classes = classes.map(class).collect();
    }

    /// What is known of it besides its events.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Its event classes, under LTTng's names.
    pub fn classes(&self) -> &[EventClass] {
        &self.classes
    }

    /// The CPUs that have events, each with its bytes, its bundles and its times.
    pub fn streams(&self) -> impl Iterator<Item = (Cpu, u64, u64, Option<(i64, i64)>)> + '_ {
        self.streams.iter().map(|(cpu, stream)| {
            let bundles = stream.places.len() as u64;
            (Cpu(*cpu), stream.size_bytes, bundles, stream.range_ns)
        })
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn shape_of(key: &Key, raw: &bundle::Raw<'_>) -> Option<Shape> {
    match (key, raw) {
        (Key::Number(number), _) => schema::shape(*number),
        (Key::Generic(_), bundle::Raw::Own(_, message)) => Some(schema::generic_shape(message)),
        (Key::Generic(_), _) => None,
    }
}

/// What is only of use until all packets were read.
#[derive(Default)]
struct Learning {
    bundles: usize,
    left_out: u64,
    unknown: u64,
    clock: Option<u64>,
    wall_offset_ns: Option<i64>,
}

impl Learning {
    /// `ClockSnapshot`: the wall clock beside the others at one instant; the first one counts.
    fn clocks(&mut self, bytes: &[u8]) {
        let mut read: BTreeMap<u64, u64> = BTreeMap::new();
        for (number, value) in Fields::new(bytes) {
            let (1, Wire::Bytes(clock)) = (number, value) else {
                continue;
            };
            let (mut id, mut ns) = (None, None);
            for (number, value) in Fields::new(clock) {
                match number {
                    1 => id = value.number(),
                    2 => ns = value.number(),
                    _ => {}
                }
            }
            if let (Some(id), Some(ns)) = (id, ns) {
                read.insert(id, ns);
            }
        }
        let ns = |id: u64| read.get(&id).and_then(|ns| i64::try_from(*ns).ok());
        let boot = ns(BOOTTIME).or(ns(MONOTONIC));
        if let (Some(real), Some(boot)) = (ns(REALTIME), boot) {
            self.wall_offset_ns.get_or_insert(real.saturating_sub(boot));
        }
    }
}

/// What was compressed; none where it makes no sense or is too large.
pub(super) fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut unpacked = Vec::new();
    let decoder = flate2::read::ZlibDecoder::new(bytes);
    let read = decoder
        .take(UNPACKED_BYTES_MAX + 1)
        .read_to_end(&mut unpacked);
    let is_whole = read.is_ok() && unpacked.len() as u64 <= UNPACKED_BYTES_MAX;
    is_whole.then_some(unpacked)
}

/// Reads up to the end of the file or of the buffer.
fn read_at_most(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], at + count as u64)? {
            0 => break,
            read => count += read,
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_perfetto_is_known_by_its_packets_and_text_is_none() {
        let check = |bytes: &[u8], expect: bool| {
            assert_eq!(is_perfetto(bytes), expect, "{bytes:?}");
        };
        // One packet with a timestamp.
        check(&[0x0a, 2, 0x40, 7], true);
        check(&[0x0a, 2, 0x40, 7, 0x0a, 2, 0x40, 8], true);
        // The second one is cut.
        check(&[0x0a, 2, 0x40, 7, 0x0a, 9, 0x40], true);
        check(b"", false);
        check(b"\n# tracer: nop\n", false);
        check(b"\n\n\n\n", false);
        check(b"plain words\n", false);
        check(&[0x0a, 2, 0x40, 7, 0x0b], false);
    }
}
