//! One stream file: events are collected into a packet, a full packet is written at once.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use event::{Cpu, Error, ErrorKind, Instant, Result};

use super::index::{self, PacketFacts};
use super::{HeaderKind, write_error};

/// CTF's magic number at the start of every packet.
const MAGIC: u32 = 0xC1FC_1FC1;
/// Packet header (magic, uuid, stream id, instance id) and context (six u64, one u32).
const PREAMBLE_BYTES: usize = 4 + 16 + 4 + 8 + 6 * 8 + 4;
/// A packet is closed when it would grow beyond this.
const PACKET_BYTES: usize = 512 * 1024;
/// Ids at and above these need the extended header.
const COMPACT_EXTENDED_ID: u32 = 31;
const LARGE_EXTENDED_ID: u32 = 65535;

/// What a stream file is started with.
#[derive(Debug)]
pub(super) struct Start {
    pub path: PathBuf,
    pub index_path: PathBuf,
    pub header: HeaderKind,
    pub class_count: u32,
    pub uuid: [u8; 16],
    pub stream_id: u32,
    pub instance_id: u64,
    pub cpu: Cpu,
}

/// What a finished stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTotals {
    /// Events written.
    pub events: u64,
    /// Events discarded, as the producer counted them.
    pub discarded: u64,
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
    file: File,
    /// The open packet, with room for its preamble; empty when no packet is open.
    packet: Vec<u8>,
    begin: u64,
    end: u64,
    discarded: u64,
    written: Vec<PacketFacts>,
    offset_bytes: u64,
    events: u64,
}

impl StreamWriter {
    pub(super) fn create(start: Start) -> Result<StreamWriter> {
        let file =
            File::create_new(&start.path).map_err(|cause| write_error(&start.path, cause))?;
        Ok(StreamWriter {
            start,
            file,
            packet: Vec::new(),
            begin: 0,
            end: 0,
            discarded: 0,
            written: Vec::new(),
            offset_bytes: 0,
            events: 0,
        })
    }

    /// Appends an event. `payload` holds the bytes of the stream's event context, the event's
    /// context and its fields, laid out as [`super::PayloadWriter`] does.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when time goes backwards or the class does not exist; otherwise
    /// what the operating system says, with the file's name.
    pub fn event(&mut self, class_index: u32, time: Instant, payload: &[u8]) -> Result<()> {
        if class_index >= self.start.class_count {
            return Err(
                Error::new(ErrorKind::InvalidInput, "no such event class in the stream")
                    .found(format!("class {class_index} of {}", self.start.class_count)),
            );
        }
        let time = self.checked_time(time)?;
        let grown = self.packet.len() + payload.len() + 16;
        if grown > PACKET_BYTES && self.packet.len() > PREAMBLE_BYTES {
            self.close_packet()?;
        }
        if self.packet.is_empty() {
            self.open_packet(time)?;
        }
        self.header(class_index, time);
        self.packet.extend_from_slice(payload);
        self.end = time;
        self.events += 1;
        Ok(())
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
        if self.packet.is_empty() {
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
        if self.packet.is_empty() && self.discarded > counted {
            // A loss after the last event still has to stand in the trace.
            self.open_packet(self.end)?;
        }
        self.close_packet()?;
        let path = &self.start.index_path;
        fs::write(path, index::encode(&self.written)).map_err(|cause| write_error(path, cause))?;
        Ok(StreamTotals {
            events: self.events,
            discarded: self.discarded,
            packets: self.written.len() as u64,
            size_bytes: self.offset_bytes,
        })
    }

    fn checked_time(&self, time: Instant) -> Result<u64> {
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
        if self.written.is_empty() && self.discarded > 0 {
            // Readers take the first packet's count as the origin: give them one that says zero.
            let discarded = std::mem::take(&mut self.discarded);
            self.start_packet(time);
            self.close_packet()?;
            self.discarded = discarded;
        }
        self.start_packet(time);
        Ok(())
    }

    fn start_packet(&mut self, time: u64) {
        self.packet.resize(PREAMBLE_BYTES, 0);
        self.begin = time;
        self.end = time;
    }

    fn header(&mut self, id: u32, time: u64) {
        let delta = time - self.end;
        match self.start.header {
            HeaderKind::Compact if id < COMPACT_EXTENDED_ID && delta >> 27 == 0 => {
                let word = id | (time as u32) << 5;
                self.packet.extend_from_slice(&word.to_le_bytes());
            }
            HeaderKind::Large if id < LARGE_EXTENDED_ID && delta >> 32 == 0 => {
                self.packet.extend_from_slice(&(id as u16).to_le_bytes());
                self.packet.extend_from_slice(&(time as u32).to_le_bytes());
            }
            kind => {
                match kind {
                    HeaderKind::Compact => self.packet.push(COMPACT_EXTENDED_ID as u8),
                    HeaderKind::Large => {
                        self.packet
                            .extend_from_slice(&(LARGE_EXTENDED_ID as u16).to_le_bytes());
                    }
                }
                self.packet.extend_from_slice(&id.to_le_bytes());
                self.packet.extend_from_slice(&time.to_le_bytes());
            }
        }
    }

    fn close_packet(&mut self) -> Result<()> {
        if self.packet.is_empty() {
            return Ok(());
        }
        let facts = PacketFacts {
            offset_bytes: self.offset_bytes,
            size_bits: self.packet.len() as u64 * 8,
            begin: self.begin,
            end: self.end,
            discarded: self.discarded,
            stream_id: self.start.stream_id,
            instance_id: self.start.instance_id,
            sequence: self.written.len() as u64,
        };
        let preamble = self.preamble(&facts);
        self.packet[..PREAMBLE_BYTES].copy_from_slice(&preamble);
        self.file
            .write_all(&self.packet)
            .map_err(|cause| write_error(&self.start.path, cause))?;
        self.offset_bytes += self.packet.len() as u64;
        self.packet.clear();
        self.written.push(facts);
        Ok(())
    }

    fn preamble(&self, facts: &PacketFacts) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = Vec::with_capacity(PREAMBLE_BYTES);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&self.start.uuid);
        bytes.extend_from_slice(&facts.stream_id.to_le_bytes());
        bytes.extend_from_slice(&facts.instance_id.to_le_bytes());
        let context = [
            facts.begin,
            facts.end,
            facts.size_bits,
            facts.size_bits,
            facts.sequence,
            facts.discarded,
        ];
        for word in context {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&self.start.cpu.0.to_le_bytes());
        let mut preamble = [0; PREAMBLE_BYTES];
        preamble.copy_from_slice(&bytes);
        preamble
    }
}
