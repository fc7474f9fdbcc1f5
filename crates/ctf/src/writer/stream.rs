//! One stream file: events are collected into a packet, a full packet is written at once.

mod back;
mod refused;
mod run;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use event::{Cpu, Error, ErrorKind, Instant, Record, Result, Value};

use super::bits::PacketBytes;
use super::encode::{ClassEncoder, encode_members};
use super::index::{self, PacketFacts};
use super::storage::Storage;
use super::wire::Member;
use super::{HeaderKind, Outlet, write_error};

use run::Quick;
pub use run::{Run, WINDOW_BYTES};

/// CTF's magic number at the start of every packet.
const MAGIC: u32 = 0xC1FC_1FC1;
/// A packet is closed when it would grow beyond this.
const PACKET_BYTES: usize = 512 * 1024;
/// The same where packets may wait for the disk: the larger, the less is to wait for. Together with
/// what is written beyond its end it fits into a huge page.
const WAITING_PACKET_BYTES: usize = (2 << 20) - 4096;
/// Ids at and above these need the extended header.
const COMPACT_EXTENDED_ID: u32 = 31;
const LARGE_EXTENDED_ID: u32 = 65535;
/// The lowest bits of the time, as many as the short headers hold.
const COMPACT_TIME_BITS: u32 = 27;
const LARGE_TIME_BITS: u32 = 32;
/// Their sizes.
const COMPACT_BYTES: usize = 4;
const LARGE_BYTES: usize = 6;

/// Bytes of the largest header of an event.
const HEADER_BYTES_MAX: usize = 16;

/// The short forms of LTTng's headers: four bytes, and six.
#[inline(always)]
fn compact_header(id: u32, time: u64) -> u64 {
    u64::from(id | (time as u32) << 5)
}

#[inline(always)]
fn large_header(id: u32, time: u64) -> u64 {
    u64::from(id as u16) | u64::from(time as u32) << 16
}

/// What a stream file is started with.
#[derive(Debug)]
pub(super) struct Start {
    pub path: PathBuf,
    pub index_path: PathBuf,
    pub header: HeaderKind,
    pub classes: Arc<[ClassEncoder]>,
    /// Fields of the packet's context behind the writer's own.
    pub packet_context: Arc<[Member]>,
    pub uuid: [u8; 16],
    pub stream_id: u32,
    pub instance_id: u64,
    /// None where the stream's packets name no CPU.
    pub cpu: Option<Cpu>,
    /// Who is told of packets.
    pub outlet: Option<Arc<dyn Outlet>>,
}

/// What a finished stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTotals {
    /// Events written.
    pub events: u64,
    /// Events discarded, as the producer counted them, and those that found no room.
    pub discarded: u64,
    /// Those that found no room.
    pub refused: u64,
    /// Packets written.
    pub packets: u64,
    /// Size of the stream file.
    pub size_bytes: u64,
}

/// Writes the events of one CPU. Call [`StreamWriter::finish`], or the last packet is lost.
#[derive(Debug)]
#[must_use = "a stream must be finished, or its last packet is lost"]
pub struct StreamWriter {
    start: Start,
    quick: Quick,
    storage: Storage,
    /// The open packet, with room for its preamble; empty when no packet is open.
    packet: PacketBytes,
    /// Where the events of the open packet begin.
    events_begin: usize,
    /// The packet's context behind the writer's own fields, once it was set, and where it ends in
    /// the packet, in bits.
    context: Option<(Vec<u8>, u64)>,
    /// Where the next one is encoded, behind as many bytes as stand before it in a packet.
    scratch: PacketBytes,
    begin: u64,
    end: u64,
    discarded: u64,
    /// Events that found no room, which are losses too.
    refused: u64,
    written: Vec<PacketFacts>,
    sequence: u64,
    events: u64,
    /// Those of them that packets of before have.
    events_before: u64,
    may_wait: bool,
}

impl StreamWriter {
    pub(super) fn create(start: Start) -> Result<StreamWriter> {
        let storage = Storage::create(&start.path)?;
        Ok(StreamWriter {
            quick: Quick::new(start.header, &start.classes),
            start,
            storage,
            packet: PacketBytes::default(),
            events_begin: 0,
            context: None,
            scratch: PacketBytes::default(),
            begin: 0,
            end: 0,
            discarded: 0,
            refused: 0,
            written: Vec::new(),
            sequence: 0,
            events: 0,
            events_before: 0,
            may_wait: false,
        })
    }

    /// Whether packets may wait for the disk from now on: large ones are written past the page
    /// cache then, which takes less of the CPU's time and nobody's memory. It begins without.
    pub fn may_wait(&mut self, may_wait: bool) {
        self.may_wait = may_wait;
    }

    /// Appends an event. `payload` holds the bytes of the stream's event context, the event's
    /// context and its fields, laid out as [`super::PayloadWriter`] does.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when time goes backwards, the class does not exist or is not
    /// made of whole bytes alone; otherwise what the operating system says, with the file's name.
    pub fn event(&mut self, class_index: u32, time: Instant, payload: &[u8]) -> Result<()> {
        let is_quick = self.run().event(class_index, time, payload, &[]);
        match is_quick {
            true => Ok(()),
            false => self.any_event(class_index, time, payload, &[]),
        }
    }

    /// Many events, one after the other.
    #[inline]
    pub fn run(&mut self) -> Run<'_> {
        Run::new(self)
    }

    /// An event that begins a packet, or has no short header, or is refused.
    #[cold]
    fn any_event(
        &mut self,
        class_index: u32,
        time: Instant,
        context: &[u8],
        fields: &[u8],
    ) -> Result<()> {
        if !self.class(class_index)?.wire.is_bytes {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "an event whose fields are not whole bytes, aligned to bytes, is no byte string",
            )
            .found(format!("class {class_index}")));
        }
        let time = self.begin_event(class_index, time, context.len() + fields.len())?;
        self.packet.append(context);
        self.packet.append(fields);
        self.end_event(time);
        Ok(())
    }

    /// Appends an event by the values of its fields: those of the class at `class_index`, in its
    /// order, the stream's context among them.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when time goes backwards, the class does not exist, or a value
    /// could not be read again; otherwise what the operating system says, with the file's name.
    pub fn record(&mut self, class_index: u32, time: Instant, record: &dyn Record) -> Result<()> {
        self.class(class_index)?;
        let time = self.begin_event(class_index, time, 0)?;
        let classes = Arc::clone(&self.start.classes);
        classes[class_index as usize].encode(record, &mut self.packet)?;
        self.end_event(time);
        Ok(())
    }

    fn class(&self, class_index: u32) -> Result<&ClassEncoder> {
        let classes = &self.start.classes;
        classes.get(class_index as usize).ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, "no such event class in the stream")
                .found(format!("class {class_index} of {}", classes.len()))
        })
    }

    /// Makes room for an event and writes its header.
    fn begin_event(&mut self, class_index: u32, time: Instant, size_bytes: usize) -> Result<u64> {
        let time = self.checked_time(time)?;
        let grown = self.packet.bytes.len() + size_bytes + HEADER_BYTES_MAX;
        if grown > self.packet_bytes_max() && self.packet.bytes.len() > self.events_begin {
            self.close_packet()?;
        }
        if self.packet.bytes.is_empty() {
            self.open_packet(time)?;
        }
        self.header(class_index, time);
        Ok(time)
    }

    #[inline]
    fn end_event(&mut self, time: u64) {
        self.end = time;
        self.events += 1;
    }

    /// Sets the values of the packet's context behind the writer's own fields. When they change,
    /// the open packet is closed first.
    ///
    /// # Errors
    /// What the operating system says, with the file's name; values that are no such context.
    pub fn packet_context(&mut self, values: &[Value<'_>]) -> Result<()> {
        let preamble = self.preamble(&self.facts());
        self.scratch.clear();
        self.scratch.append(&preamble);
        encode_members(&self.start.packet_context, values, &mut self.scratch)?;
        let context = &self.scratch.bytes[preamble.len()..];
        let is_same = |(same, _): &(Vec<u8>, u64)| same == context;
        if !self.context.as_ref().is_some_and(is_same) {
            let context = (context.to_vec(), self.scratch.len_bits());
            self.close_packet()?;
            self.context = Some(context);
        }
        Ok(())
    }

    /// Says that `count` packets are missing here, with as many events as nobody counted.
    ///
    /// # Errors
    /// What the operating system says, with the file's name.
    pub fn lost_packets(&mut self, count: u64) -> Result<()> {
        self.close_packet()?;
        if self.written.is_empty() {
            // Readers take the first packet's number as the origin: give them one before.
            self.start_packet(self.end)?;
            self.close_packet()?;
        }
        self.sequence += count;
        Ok(())
    }

    /// Lets the next event be earlier than the last: it begins a packet of its own, which readers
    /// put in order.
    ///
    /// # Errors
    /// What the operating system says, with the file's name.
    pub fn turn_back(&mut self) -> Result<()> {
        self.close_packet()?;
        self.end = 0;
        Ok(())
    }

    fn packet_bytes_max(&self) -> usize {
        match self.may_wait {
            true => WAITING_PACKET_BYTES,
            false => PACKET_BYTES,
        }
    }

    /// Whether nothing was written to it yet.
    pub fn is_new(&self) -> bool {
        self.events == 0 && self.written.is_empty() && self.packet.bytes.is_empty()
    }

    /// The time of its last event, or up to where it is known to have none; the clock's origin at
    /// first.
    pub fn end(&self) -> Instant {
        Instant::from_ns(self.end.min(i64::MAX as u64) as i64)
    }

    /// The place of the stream's class in the metadata.
    pub(super) fn stream_index(&self) -> usize {
        self.start.stream_id as usize
    }

    /// Takes the classes that the metadata have gained.
    pub(super) fn set_classes(&mut self, classes: Arc<[ClassEncoder]>) {
        self.quick = Quick::new(self.start.header, &classes);
        self.start.classes = classes;
    }

    /// Sets the cumulative number of discarded events that the following packets carry. When it
    /// grows, the open packet is closed first: the loss lies between two packets.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when the total shrinks; otherwise what the operating system
    /// says.
    pub fn discarded(&mut self, total: u64) -> Result<()> {
        if total < self.discarded {
            return Err(
                Error::new(ErrorKind::InvalidInput, "the count of lost events shrinks")
                    .found(format!("{total} after {}", self.discarded)),
            );
        }
        if total > self.discarded {
            self.close_packet()?;
        }
        self.discarded = total;
        Ok(())
    }

    /// Closes the open packet, so that a loss lies between two packets.
    ///
    /// # Errors
    /// What the operating system says, with the file's name.
    pub fn gap(&mut self) -> Result<()> {
        self.close_packet()
    }

    /// Says that the stream was recorded at `time`, though no event happened: the packet's range
    /// reaches there.
    ///
    /// # Errors
    /// As [`StreamWriter::event`].
    pub fn covers(&mut self, time: Instant) -> Result<()> {
        let time = self.checked_time(time)?;
        if self.packet.bytes.is_empty() {
            self.open_packet(time)?;
        }
        self.end = time;
        Ok(())
    }

    /// Writes what is left, and the index.
    ///
    /// # Errors
    /// What the operating system says, with the file's name.
    pub fn finish(mut self) -> Result<StreamTotals> {
        let counted = self.written.last().map_or(0, |packet| packet.discarded);
        let missing = self.sequence > self.written.last().map_or(0, |last| last.sequence + 1);
        if self.packet.bytes.is_empty() && (self.lost() > counted || missing) {
            // A loss after the last event still has to stand in the trace.
            self.open_packet(self.end)?;
        }
        self.close_packet()?;
        let path = &self.start.index_path;
        if let Err(cause) = fs::write(path, index::encode(&self.written)) {
            // Readers do without an index, and not with half of one.
            let _ = fs::remove_file(path);
            return Err(write_error(path, cause));
        }
        Ok(StreamTotals {
            events: self.events,
            discarded: self.lost(),
            refused: self.refused,
            packets: self.written.len() as u64,
            size_bytes: self.storage.size_bytes(),
        })
    }

    fn checked_time(&self, time: Instant) -> Result<u64> {
        if self.start.header == HeaderKind::Untimed {
            return Ok(0);
        }
        let refuse = |what: &str, found: String| {
            Err(Error::new(ErrorKind::InvalidInput, what)
                .found(format!("{found} in {}", self.start.path.display())))
        };
        match u64::try_from(time.as_ns()) {
            Err(_) => refuse(
                "an event's time is before the clock's origin",
                time.to_string(),
            ),
            Ok(ns) if ns < self.end => refuse(
                "an event's time goes backwards",
                format!("{time} after {}", Instant::from_ns(self.end as i64)),
            ),
            Ok(ns) => Ok(ns),
        }
    }

    fn open_packet(&mut self, time: u64) -> Result<()> {
        if self.written.is_empty() && self.lost() > 0 {
            // Readers take the first packet's count as the origin: give them one that says zero.
            let discarded = std::mem::take(&mut self.discarded);
            let refused = std::mem::take(&mut self.refused);
            self.start_packet(time)?;
            self.close_packet()?;
            (self.discarded, self.refused) = (discarded, refused);
        }
        self.start_packet(time)
    }

    fn start_packet(&mut self, time: u64) -> Result<()> {
        let preamble = self.preamble(&self.facts());
        self.packet.append(&preamble);
        match &self.context {
            Some((context, end_bits)) => {
                self.packet.append(context);
                self.packet.truncate(*end_bits);
            }
            None => encode_members(&self.start.packet_context, &[], &mut self.packet)?,
        }
        self.events_begin = self.packet.bytes.len();
        self.begin = time;
        self.end = time;
        Ok(())
    }

    fn header(&mut self, id: u32, time: u64) {
        let delta = time.wrapping_sub(self.end);
        let packet = &mut self.packet;
        match self.start.header {
            HeaderKind::Compact if id < COMPACT_EXTENDED_ID && delta >> COMPACT_TIME_BITS == 0 => {
                packet.append(&compact_header(id, time).to_le_bytes()[..COMPACT_BYTES]);
            }
            HeaderKind::Large if id < LARGE_EXTENDED_ID && delta >> LARGE_TIME_BITS == 0 => {
                packet.append(&large_header(id, time).to_le_bytes()[..LARGE_BYTES]);
            }
            HeaderKind::Untimed => packet.append(&id.to_le_bytes()),
            HeaderKind::Compact => {
                packet.append(&[COMPACT_EXTENDED_ID as u8]);
                packet.append(&id.to_le_bytes());
                packet.append(&time.to_le_bytes());
            }
            HeaderKind::Large => {
                packet.append(&(LARGE_EXTENDED_ID as u16).to_le_bytes());
                packet.append(&id.to_le_bytes());
                packet.append(&time.to_le_bytes());
            }
        }
    }

    /// What the preamble says of the packet as it is now.
    fn facts(&self) -> PacketFacts {
        PacketFacts {
            offset_bytes: self.storage.size_bytes(),
            size_bits: self.packet.bytes.len() as u64 * 8,
            content_bits: self.packet.len_bits(),
            begin: self.begin,
            end: self.end,
            discarded: self.lost(),
            stream_id: self.start.stream_id,
            instance_id: self.start.instance_id,
            sequence: self.sequence,
        }
    }

    fn close_packet(&mut self) -> Result<()> {
        if self.packet.bytes.is_empty() {
            return Ok(());
        }
        if self.is_refused() {
            self.refuse();
            return Ok(());
        }
        let mut facts = self.seal();
        let padded = match self.may_wait {
            true => self.storage.padded(self.packet.bytes.len()),
            false => self.packet.bytes.len(),
        };
        if padded > self.packet.bytes.len() {
            facts.size_bits = padded as u64 * 8;
            self.write_preamble(&facts);
            self.packet.bytes.zero_up_to(padded);
        }
        let written = self.storage.append(&self.packet.bytes, self.may_wait);
        if let Err(cause) = written {
            return self.not_written(cause);
        }
        self.packet.clear();
        self.written.push(facts);
        self.sequence += 1;
        self.tell();
        Ok(())
    }

    /// Brings the open packet's preamble up to date.
    fn seal(&mut self) -> PacketFacts {
        let facts = self.facts();
        self.write_preamble(&facts);
        facts
    }

    fn write_preamble(&mut self, facts: &PacketFacts) {
        let preamble = self.preamble(facts);
        self.packet.bytes[..preamble.len()].copy_from_slice(&preamble);
    }

    /// Packet header (magic, uuid, stream id, instance id) and the writer's own fields of the
    /// context.
    fn preamble(&self, facts: &PacketFacts) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(96);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&self.start.uuid);
        bytes.extend_from_slice(&facts.stream_id.to_le_bytes());
        bytes.extend_from_slice(&facts.instance_id.to_le_bytes());
        let words = [
            facts.begin,
            facts.end,
            facts.content_bits,
            facts.size_bits,
            facts.sequence,
            facts.discarded,
        ];
        let is_timed = self.start.header != HeaderKind::Untimed;
        for word in &words[if is_timed { 0 } else { 2 }..] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        if let Some(cpu) = self.start.cpu {
            bytes.extend_from_slice(&cpu.0.to_le_bytes());
        }
        bytes
    }
}
