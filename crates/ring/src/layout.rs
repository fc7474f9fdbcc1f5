//! The header of a ring file, believed only as far as it was checked.

use std::mem::offset_of;

use abi::rings::{self, Header, Plain, Ring, Set};
use event::{Error, ErrorKind, Result};

/// The largest rings in as few sub-buffers as there can be.
const SUBBUFFER_BYTES_MAX: u64 = rings::RING_BYTES_MAX / 2;
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
    /// Whether the rings have that size. Else it is the most that they can get, from whoever first
    /// needs them ([`RingFile::size`](crate::RingFile::size)), and they hold nothing.
    pub has_size: bool,
    /// Size of the table's area.
    pub table_bytes: u64,
    /// Where the table is.
    pub table_offset: u64,
    /// Which set of rings is meant.
    pub set: u32,
    /// All sets of rings, which each belong to one recorder.
    pub(crate) sets: Vec<SetLayout>,
    pub(crate) controls_offset: u64,
    pub(crate) mode_offset: u64,
    pub(crate) switches_offset: u64,
    pub(crate) switches_bytes: u64,
    pub(crate) filters_offset: u64,
    pub(crate) filters_bytes: u64,
    pub(crate) objects_offset: u64,
    pub(crate) objects_bytes: u64,
    pub(crate) data_offset: u64,
}

/// A set of rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetLayout {
    /// Where it says whose it is; none where all is one recorder's.
    pub session_offset: Option<u64>,
    /// Where it says how large its rings are.
    pub size_offset: u64,
    mode_offset: u64,
    controls_offset: u64,
    data_offset: u64,
    ring_bytes: u64,
    subbuffer_bytes: u64,
    has_size: bool,
    /// The most bytes that its rings can get, and in how many parts; 0 where their size is fixed.
    room_bytes: u64,
    subbuffers: u64,
}

impl SetLayout {
    /// The same where its rings get their size while the process runs, or got it.
    fn with_room(mut self, (room_bytes, subbuffers): (u64, u32)) -> SetLayout {
        if room_bytes == 0 {
            return self;
        }
        (self.room_bytes, self.subbuffers) = (room_bytes, u64::from(subbuffers));
        match self.ring_bytes {
            0 => self.of_size(room_bytes, false),
            bytes => self.of_size(bytes, true),
        }
    }

    /// The same with rings of that size, which they have by now or can get.
    fn of_size(mut self, ring_bytes: u64, has_size: bool) -> SetLayout {
        let subbuffer_bytes = ring_bytes / self.subbuffers.max(1);
        self.ring_bytes = ring_bytes;
        self.subbuffer_bytes = subbuffer_bytes.max(rings::SUBBUFFER_BYTES_MIN);
        self.has_size = has_size;
        self
    }

    /// The sets of a header whose number of them was checked.
    fn all(header: &Header) -> Vec<SetLayout> {
        let first = SetLayout {
            session_offset: (header.version != rings::LAYOUT_VERSION_ONE_SET)
                .then_some(offset_of!(Header, session) as u64),
            size_offset: offset_of!(Header, ring_bytes) as u64,
            mode_offset: offset_of!(Header, mode) as u64,
            controls_offset: header.controls_offset,
            data_offset: header.data_offset,
            ring_bytes: header.ring_bytes,
            subbuffer_bytes: header.subbuffer_bytes,
            has_size: true,
            room_bytes: 0,
            subbuffers: 0,
        };
        let rooms = match header.version {
            rings::LAYOUT_VERSION => header.room_bytes,
            _ => [0; rings::SETS_MAX],
        };
        let controls_bytes = u64::from(header.rings_length) * size_of::<Ring>() as u64;
        let of = |(place, set): (usize, &Set)| {
            let at = (offset_of!(Header, more) + place * size_of::<Set>()) as u64;
            SetLayout {
                session_offset: Some(at + offset_of!(Set, session) as u64),
                size_offset: at + offset_of!(Set, ring_bytes) as u64,
                mode_offset: at + offset_of!(Set, mode) as u64,
                controls_offset: first
                    .controls_offset
                    .saturating_add((place as u64 + 1) * controls_bytes),
                data_offset: set.data_offset,
                ring_bytes: set.ring_bytes,
                subbuffer_bytes: set.subbuffer_bytes,
                ..first.clone()
            }
        };
        let more = header.more.iter().take(sets_of(header) as usize - 1);
        let more: Vec<_> = more.enumerate().map(of).collect();
        let all = std::iter::once(first).chain(more).zip(rooms);
        all.map(|(set, room_bytes)| set.with_room((room_bytes, header.subbuffers)))
            .collect()
    }
}

/// So many sets of rings a header says that there are.
fn sets_of(header: &Header) -> u32 {
    match header.version {
        rings::LAYOUT_VERSION_ONE_SET => 1,
        _ => header.sets_length,
    }
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
        let known = [
            rings::LAYOUT_VERSION_ONE_SET,
            rings::LAYOUT_VERSION_SIZED,
            rings::LAYOUT_VERSION,
        ];
        if !known.contains(&header.version) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a traced process speaks another version of the ring layout",
            )
            .found(format!(
                "version {}, known are {} to {}",
                header.version,
                rings::LAYOUT_VERSION_ONE_SET,
                rings::LAYOUT_VERSION
            ))
            .fix("link the process with the librtscope-probe of this rtscope"));
        }
        check_lengths(&header)?;
        let sets = SetLayout::all(&header);
        for set in &sets {
            check_rings(set)?;
        }
        check_areas(&header, &sets, file_bytes)?;
        Ok(Some(Layout::from_checked(&header, sets)?))
    }

    fn from_checked(header: &Header, sets: Vec<SetLayout>) -> Result<Layout> {
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
            ring_bytes: sets[0].ring_bytes,
            subbuffer_bytes: sets[0].subbuffer_bytes,
            has_size: sets[0].has_size,
            table_bytes: header.table_bytes,
            table_offset: header.table_offset,
            set: 0,
            sets,
            controls_offset: header.controls_offset,
            mode_offset: offset_of!(Header, mode) as u64,
            switches_offset: header.switches_offset,
            switches_bytes: header.switches_bytes,
            filters_offset: header.filters_offset,
            filters_bytes: header.filters_bytes,
            objects_offset: header.objects_offset,
            objects_bytes: header.objects_bytes,
            data_offset: header.data_offset,
        })
    }

    /// So many sets of rings there are.
    pub fn sets(&self) -> u32 {
        self.sets.len() as u32
    }

    /// Whether each recorder has rings of its own; else the one that there can be has all.
    pub fn has_sets(&self) -> bool {
        self.sets[0].session_offset.is_some()
    }

    /// The same file by another set of its rings; the same where there is no such set.
    pub fn of_set(&self, set: u32) -> Layout {
        let mut layout = self.clone();
        if let Some(other) = self.sets.get(set as usize) {
            layout.set = set;
            layout.controls_offset = other.controls_offset;
            layout.mode_offset = other.mode_offset;
            layout.data_offset = other.data_offset;
            layout.ring_bytes = other.ring_bytes;
            layout.subbuffer_bytes = other.subbuffer_bytes;
            layout.has_size = other.has_size;
        }
        layout
    }

    /// The same when its rings have got a size; none where they cannot have that.
    pub(crate) fn of_size(&self, ring_bytes: u64) -> Option<Layout> {
        let mut layout = self.clone();
        let own = layout.sets.get_mut(self.set as usize)?;
        let sized = own.clone().of_size(ring_bytes, true);
        if ring_bytes > own.room_bytes || check_rings(&sized).is_err() {
            return None;
        }
        *own = sized;
        Some(layout.of_set(self.set))
    }

    /// Whether the rings of a set have so many bytes each, or may get them; 0: any.
    pub(crate) fn can_have(&self, set: u32, ring_bytes: u64) -> bool {
        let set = self.sets.get(set as usize);
        ring_bytes == 0
            || set.is_some_and(|set| {
                let is_open = !set.has_size && set.ring_bytes > ring_bytes;
                is_open || set.ring_bytes == ring_bytes
            })
    }

    /// Where the size of its rings stands.
    pub(crate) fn size_offset(&self) -> u64 {
        self.sets[self.set as usize].size_offset
    }

    /// The most bytes that each of its rings could get when the process started.
    pub(crate) fn most_ring_bytes(&self) -> u64 {
        self.sets[self.set as usize].room_bytes
    }

    /// Whether their size was open when the process started.
    pub(crate) fn had_room(&self) -> bool {
        self.sets[self.set as usize].room_bytes > 0
    }

    /// The bytes before the area of filters: the header, and all switches.
    pub(crate) fn switched_bytes(&self) -> u64 {
        self.switches_offset.saturating_add(self.switches_bytes)
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

fn check_rings(set: &SetLayout) -> Result<()> {
    let SetLayout {
        ring_bytes,
        subbuffer_bytes,
        ..
    } = *set;
    let possible = ring_bytes.is_power_of_two()
        && subbuffer_bytes.is_power_of_two()
        && ring_bytes <= rings::RING_BYTES_MAX
        && (rings::SUBBUFFER_BYTES_MIN..=SUBBUFFER_BYTES_MAX).contains(&subbuffer_bytes)
        && (2..=rings::SUBBUFFERS_MAX).contains(&(ring_bytes / subbuffer_bytes));
    match possible {
        true => Ok(()),
        false => {
            let found = format!("{ring_bytes} bytes in sub-buffers of {subbuffer_bytes}");
            Err(corrupt("impossible rings", found))
        }
    }
}

fn check_lengths(header: &Header) -> Result<()> {
    let (rings_length, sets) = (header.rings_length, sets_of(header));
    if !(1..=rings::SETS_MAX as u32).contains(&sets) {
        return Err(corrupt("an impossible number of sets of rings", sets));
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

fn check_areas(header: &Header, sets: &[SetLayout], file_bytes: u64) -> Result<()> {
    let rings = u64::from(header.rings_length);
    let controls_bytes = sets.len() as u64 * rings * size_of::<Ring>() as u64;
    let areas = [
        (header.controls_offset, controls_bytes),
        (header.switches_offset, header.switches_bytes),
        (header.filters_offset, header.filters_bytes),
        (header.objects_offset, header.objects_bytes),
        (header.table_offset, header.table_bytes),
    ];
    let areas = areas.map(|(offset, bytes)| (offset, bytes, file_bytes));
    let data = sets.iter().map(|set| {
        // Rings without a size lie behind the end.
        let most = if set.has_size { file_bytes } else { u64::MAX };
        (set.data_offset, rings * set.ring_bytes, most)
    });
    let mut earliest = match header.version {
        rings::LAYOUT_VERSION => size_of::<Header>(),
        rings::LAYOUT_VERSION_SIZED => offset_of!(Header, room_bytes),
        _ => offset_of!(Header, sets_length),
    } as u64;
    for (offset, bytes, most) in areas.into_iter().chain(data) {
        let end = offset.checked_add(bytes).filter(|end| *end <= most);
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
