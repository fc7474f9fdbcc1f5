//! The walk over one CPU's bundles.

use std::collections::VecDeque;
use std::os::unix::fs::FileExt;

use event::{ClassId, Cpu, Value};

use super::bundle::{self, Running, Timed};
use super::recording::{PerfettoRecording, Place, Stream, unpack};
use super::schema;
use crate::reader::Hole;
use crate::{Halt, Loss, TextEvent};

/// A walk over the events of one CPU, in the order of their times inside of each bundle.
pub struct PerfettoReader<'a> {
    recording: &'a PerfettoRecording,
    stream: &'a Stream,
    cpu: u32,
    /// The next bundle.
    next: usize,
    /// Events of the current one that were not handed out, and what stands between them.
    ready: VecDeque<Ready>,
    /// Packets that were compressed together, with where they lie in the file.
    unpacked: Option<(u64, Vec<u8>)>,
    /// Who runs, once a switch said so.
    running: Option<Running>,
    class: ClassId,
    event: TextEvent,
    time_ns: i64,
}

enum Ready {
    Event(ClassId, i64, Vec<Value<'static>>),
    Halt(Halt),
}

impl<'a> PerfettoReader<'a> {
    /// A reader of each CPU, before its first event. What is broken in the file stands at the end
    /// of the first one.
    pub fn all(recording: &'a PerfettoRecording) -> impl Iterator<Item = PerfettoReader<'a>> + 'a {
        let streams = recording.streams.iter();
        streams.map(move |(cpu, stream)| PerfettoReader {
            recording,
            stream,
            cpu: *cpu,
            next: 0,
            ready: VecDeque::new(),
            unpacked: None,
            running: None,
            class: ClassId(0),
            event: TextEvent {
                cpu: *cpu,
                values: Vec::new(),
            },
            time_ns: i64::MIN,
        })
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.recording.name
    }

    /// Its CPU.
    pub fn cpu(&self) -> Cpu {
        Cpu(self.cpu)
    }

    /// The same that hands out these first.
    pub fn after(&mut self, halts: impl IntoIterator<Item = Halt>) {
        self.ready.extend(halts.into_iter().map(Ready::Halt));
    }

    /// The time of what it stands on.
    pub fn time_ns(&self) -> i64 {
        self.time_ns
    }

    /// The class of the event that it stands on.
    pub fn class(&self) -> ClassId {
        self.class
    }

    /// The event that it stands on.
    pub fn event(&self) -> &TextEvent {
        &self.event
    }

    /// Goes to the next event.
    ///
    /// # Errors
    /// What stands there instead. After [`Halt::End`] it stays at the end.
    pub fn advance(&mut self) -> std::result::Result<(), Box<Halt>> {
        loop {
            match self.ready.pop_front() {
                Some(Ready::Halt(halt)) => return Err(Box::new(halt)),
                Some(Ready::Event(class, time_ns, values)) => {
                    (self.class, self.time_ns) = (class, time_ns);
                    self.event.values = values;
                    return Ok(());
                }
                None => {}
            }
            let Some(place) = self.stream.places.get(self.next).copied() else {
                return Err(Box::new(self.end()));
            };
            self.next += 1;
            match self.bytes(place) {
                Some(bytes) => self.bundle(&bytes, place),
                None => self.damage(place, "a bundle", i64::MAX),
            }
        }
    }

    fn bytes(&mut self, place: Place) -> Option<Vec<u8>> {
        let size = place.size_bytes as usize;
        let Some((at, packed_bytes)) = place.compressed else {
            let mut bytes = vec![0; size];
            let file = &self.recording.file;
            file.read_exact_at(&mut bytes, place.offset_bytes).ok()?;
            return Some(bytes);
        };
        if self.unpacked.as_ref().is_none_or(|(known, _)| *known != at) {
            let mut packed = vec![0; packed_bytes as usize];
            self.recording.file.read_exact_at(&mut packed, at).ok()?;
            self.unpacked = Some((at, unpack(&packed)?));
        }
        let (_, unpacked) = self.unpacked.as_ref()?;
        let begin = usize::try_from(place.offset_bytes).ok()?;
        Some(unpacked.get(begin..begin.checked_add(size)?)?.to_vec())
    }

    fn bundle(&mut self, bytes: &[u8], place: Place) {
        let (events, is_broken) = bundle::events(bytes);
        let first_ns = events.first().map(|event| event.time_ns);
        if bundle::head(bytes).has_lost {
            self.running = None;
            let end_ns = first_ns.unwrap_or(self.time_ns).max(self.time_ns);
            self.ready.push_back(Ready::Halt(Halt::Lost(Loss {
                count: None,
                begin_ns: self.time_ns,
                end_ns,
            })));
        }
        let mut latest_ns = self.time_ns;
        for event in &events {
            latest_ns = latest_ns.max(event.time_ns);
            self.event_of(event);
        }
        if is_broken {
            self.running = None;
            self.time_ns = self.time_ns.max(first_ns.unwrap_or(self.time_ns));
            self.damage(place, "the events of a bundle", latest_ns);
        }
    }

    fn event_of(&mut self, event: &Timed<'_>) {
        let before = self.running.clone();
        let switched = event.raw.switched_to();
        let is_packed = matches!(event.raw, bundle::Raw::Switch { .. });
        if switched.is_some() {
            self.running = switched;
        }
        // Compact switches do not say who ran: the first one of all, or behind a loss, only tells
        // who runs from then on.
        if is_packed && before.is_none() {
            return;
        }
        let recording = self.recording;
        let key = event.raw.key();
        let Some(place) = key.and_then(|key| recording.by_key.get(&key)).copied() else {
            return;
        };
        let learnt = &recording.shapes[place];
        let mut values = event.raw.values(&learnt.shape, before.as_ref());
        values.push(Value::Unsigned(u64::from(self.cpu)));
        if let Some(pid) = event.pid.filter(|_| learnt.has_pid) {
            values.push(Value::Signed(i64::from(pid)));
            values.push(schema::text(self.name_of(pid, before.as_ref()).as_bytes()));
        }
        if let Some(flags) = event.flags.filter(|_| learnt.has_flags) {
            values.push(Value::Unsigned(u64::from(flags)));
        }
        let class = ClassId(place as u32);
        self.ready
            .push_back(Ready::Event(class, event.time_ns, values));
    }

    fn name_of<'b>(&'b self, pid: i32, before: Option<&'b Running>) -> &'b str {
        let runs = before.filter(|running| running.pid == pid);
        let known = || self.recording.threads.get(&pid).map(String::as_str);
        match runs.map(|running| running.comm.as_str()).or_else(known) {
            Some(name) => name,
            None if pid == 0 => "swapper",
            None => "<...>",
        }
    }

    /// A bundle of which not all was understood: what is missing may lie anywhere in its time.
    fn damage(&mut self, place: Place, expected: &str, end_ns: i64) {
        let offset_bytes = place.compressed.map_or(place.offset_bytes, |(at, _)| at);
        self.ready.push_back(Ready::Halt(Halt::Damage {
            offset_bytes,
            reason: format!("expected {expected}, found other bytes"),
        }));
        self.ready.push_back(Ready::Halt(Halt::Unread(Hole {
            begin_ns: self.time_ns,
            end_ns: end_ns.max(self.time_ns),
            is_cut: false,
            is_of_any_cpu: false,
        })));
    }

    /// The end, or what is broken in the file before it.
    fn end(&mut self) -> Halt {
        let is_first = self.recording.streams.keys().next() == Some(&self.cpu);
        let is_new = self.next == self.stream.places.len();
        self.next = self.stream.places.len() + 1;
        let Some(broken) = self
            .recording
            .broken
            .as_ref()
            .filter(|_| is_first && is_new)
        else {
            return Halt::End;
        };
        self.ready.push_back(Ready::Halt(Halt::Unread(Hole {
            begin_ns: self.recording.last_ns(),
            end_ns: i64::MAX,
            is_cut: broken.is_cut,
            is_of_any_cpu: true,
        })));
        Halt::Damage {
            offset_bytes: broken.offset_bytes,
            reason: broken.reason.clone(),
        }
    }
}

impl PerfettoRecording {
    /// The last time that all CPUs together are known up to: what a file lacks lies behind the
    /// earliest end.
    fn last_ns(&self) -> i64 {
        let ends = self.streams.values().filter_map(|stream| stream.range_ns);
        ends.map(|(_, end_ns)| end_ns).min().unwrap_or(i64::MIN)
    }
}
