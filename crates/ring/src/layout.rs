//! The header of a ring file, believed only as far as it was checked.

use abi::rings::{self, Header, Plain, Ring};
use event::{Error, ErrorKind, Result};

/// Sub-buffers beyond this gain nothing, and a reader copies a whole one.
const SUBBUFFER_BYTES_MAX: u64 = 256 << 20;
/// What is read as a whole is not larger than this: twice what the probe makes.
const TABLE_BYTES_MAX: u64 = 8 << 20;
const OBJECTS_BYTES_MAX: u64 = 2 << 20;

/// What the times of records count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// Ticks of the CPU's counter: to be converted.
    Counter,
    /// Nanoseconds of CLOCK_MONOTONIC.
    Monotonic,
}

/// What happens to events when a ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// New events are lost, and counted.
    Discard,
    /// The oldest sub-buffer is given up.
    Overwrite,
    /// A writer waits for a reader, for a bounded time; then as discard.
    Block,
}

/// Where everything is in a ring file. Every area lies inside the file, every length is bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The process, as it sees itself.
    pub pid: i32,
    /// Its name when the file was made.
    pub name: String,
    /// When the file was made, in nanoseconds of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// The counter at that moment; 0 when it is not the clock.
    pub begin_counter: u64,
    /// The counter and CLOCK_MONOTONIC at a later moment, when a recorder was there; else zeros.
    pub pair: (u64, u64),
    /// The clock of all records.
    pub clock: ClockKind,
    /// Whether its threads write through restartable sequences.
    pub rseq: bool,
    /// Number of rings: one per possible CPU.
    pub rings: u32,
    /// Bytes of each ring, a power of two.
    pub ring_bytes: u64,
    /// Bytes of each sub-buffer, a power of two.
    pub subbuffer_bytes: u64,
    /// Size of the table's area.
    pub table_bytes: u64,
    /// Where the table is.
    pub table_offset: u64,
    pub(crate) controls_offset: u64,
    pub(crate) switches_offset: u64,
    pub(crate) switches_bytes: u64,
    pub(crate) filters_offset: u64,
    pub(crate) filters_bytes: u64,
    pub(crate) objects_offset: u64,
    pub(crate) objects_bytes: u64,
    pub(crate) data_offset: u64,
}

/// A text of a traced process as people see it: nothing in it steers their terminal, or turns the
/// direction of what stands beside it.
pub(crate) fn shown(text: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let shown = |c: char| if steers(c) { '?' } else { c };
    text.chars().map(shown).collect()
}

fn corrupt(what: &str, found: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("not a ring file: {what}")).found(found.to_string())
}

impl Layout {
    /// Checks the first bytes of a file of `file_bytes`. `None` when the process is not through
    /// with making it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a version that is not known; [`ErrorKind::Corrupt`] when an
    /// area lies outside of the file or a length is impossible.
    pub fn parse(bytes: &[u8], file_bytes: u64) -> Result<Option<Layout>> {
        let Some(header) = Header::from_bytes(bytes) else {
            return Err(corrupt("too short", bytes.len()));
        };
        match header.magic {
            0 => return Ok(None),
            rings::MAGIC => (),
            other => return Err(corrupt("another magic number", format!("{other:#x}"))),
        }
        if header.version != rings::LAYOUT_VERSION {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a traced process speaks another version of the ring layout",
            )
            .found(format!(
                "version {}, known is {}",
                header.version,
                rings::LAYOUT_VERSION
            ))
            .fix("link the process with the librtscope-probe of this rtscope"));
        }
        check_lengths(&header)?;
        check_areas(&header, file_bytes)?;
        Ok(Some(Layout::from_checked(&header)?))
    }

    fn from_checked(header: &Header) -> Result<Layout> {
        let clock = match header.clock {
            rings::CLOCK_COUNTER => ClockKind::Counter,
            rings::CLOCK_MONOTONIC => ClockKind::Monotonic,
            other => return Err(corrupt("an unknown clock", other)),
        };
        let end = header.name.iter().position(|byte| *byte == 0);
        let name = &header.name[..end.unwrap_or(header.name.len())];
        Ok(Layout {
            pid: header.pid,
            name: shown(&String::from_utf8_lossy(name)),
            begin_ns: header.begin_ns,
            begin_counter: header.begin_counter,
            pair: (header.pair_counter, header.pair_ns),
            clock,
            rseq: header.rseq != 0,
            rings: header.rings_length,
            ring_bytes: header.ring_bytes,
            subbuffer_bytes: header.subbuffer_bytes,
            table_bytes: header.table_bytes,
            table_offset: header.table_offset,
            controls_offset: header.controls_offset,
            switches_offset: header.switches_offset,
            switches_bytes: header.switches_bytes,
            filters_offset: header.filters_offset,
            filters_bytes: header.filters_bytes,
            objects_offset: header.objects_offset,
            objects_bytes: header.objects_bytes,
            data_offset: header.data_offset,
        })
    }

    /// Where the control of `ring` is in the file.
    pub(crate) fn control_offset(&self, ring: u32) -> u64 {
        self.controls_offset + u64::from(ring) * size_of::<Ring>() as u64
    }

    /// The bytes of the header and of the controls, with what may lie between.
    pub(crate) fn front_bytes(&self) -> u64 {
        self.control_offset(self.rings)
    }

    /// Where the data of `ring` are in the file.
    pub(crate) fn data_offset_of(&self, ring: u32) -> u64 {
        self.data_offset + u64::from(ring) * self.ring_bytes
    }

    /// Where the data of all rings begin, and how many bytes they are.
    pub(crate) fn data_area(&self) -> (u64, u64) {
        (self.data_offset, u64::from(self.rings) * self.ring_bytes)
    }

    /// Whether a switch can be at `offset`.
    pub(crate) fn holds_switch(&self, offset: u64) -> bool {
        let size = size_of::<rings::Switch>() as u64;
        offset
            .checked_sub(self.switches_offset)
            .is_some_and(|place| place.is_multiple_of(size) && place < self.switches_bytes)
    }
}

fn check_lengths(header: &Header) -> Result<()> {
    let Header {
        ring_bytes,
        subbuffer_bytes,
        rings_length,
        ..
    } = *header;
    let possible = ring_bytes.is_power_of_two()
        && subbuffer_bytes.is_power_of_two()
        && ring_bytes <= rings::RING_BYTES_MAX
        && (rings::SUBBUFFER_BYTES_MIN..=SUBBUFFER_BYTES_MAX).contains(&subbuffer_bytes)
        && (2..=rings::SUBBUFFERS_MAX).contains(&(ring_bytes / subbuffer_bytes));
    if !possible {
        let found = format!("{ring_bytes} bytes in sub-buffers of {subbuffer_bytes}");
        return Err(corrupt("impossible rings", found));
    }
    if !(1..=rings::CPUS_MAX).contains(&rings_length) {
        return Err(corrupt("an impossible number of rings", rings_length));
    }
    for (what, bytes, most) in [
        ("table", header.table_bytes, TABLE_BYTES_MAX),
        ("list of objects", header.objects_bytes, OBJECTS_BYTES_MAX),
    ] {
        if bytes > most {
            let found = format!("{bytes} bytes, {most} at most");
            return Err(corrupt(&format!("an impossible {what}"), found));
        }
    }
    Ok(())
}

fn check_areas(header: &Header, file_bytes: u64) -> Result<()> {
    let rings = u64::from(header.rings_length);
    let areas = [
        (header.controls_offset, rings * size_of::<Ring>() as u64),
        (header.switches_offset, header.switches_bytes),
        (header.filters_offset, header.filters_bytes),
        (header.objects_offset, header.objects_bytes),
        (header.table_offset, header.table_bytes),
        (header.data_offset, rings * header.ring_bytes),
    ];
    let mut earliest = size_of::<Header>() as u64;
    for (offset, bytes) in areas {
        let end = offset.checked_add(bytes).filter(|end| *end <= file_bytes);
        match end {
            Some(end) if offset >= earliest && offset.is_multiple_of(8) => earliest = end,
            _ => {
                let found = format!("{bytes} bytes at {offset} of {file_bytes}");
                return Err(corrupt("an area that is not in the file", found));
            }
        }
    }
    Ok(())
}
