//! Files of rings as no probe makes them.

use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;

use abi::rings::{self, Header, Ring};
use rustix::fs::FlockOperation;
use rustix::time::{ClockId, clock_gettime};

const CONTROLS: u64 = 4096;
const SWITCHES: u64 = CONTROLS + rings::CPUS_MAX as u64 * size_of::<Ring>() as u64;
const AREA_BYTES: u64 = 4096;
const FILTERS: u64 = SWITCHES + AREA_BYTES;
const OBJECTS: u64 = FILTERS + AREA_BYTES;
const TABLE: u64 = OBJECTS + AREA_BYTES;

/// What a forged file says; all else is sound.
pub struct Forged {
    pub name: [u8; 16],
    pub pid: i32,
    pub begin_ns: u64,
    pub rings: u32,
    pub ring_bytes: u64,
    /// The table of events, and how large its area is.
    pub table: Vec<u8>,
    pub table_bytes: u64,
    /// What the control of each ring says.
    pub control: Ring,
    /// Records, at the begin of the first ring.
    pub records: Vec<u8>,
    /// So many events of its code found no room, as it says.
    pub unregistered: u64,
}

/// Now, in nanoseconds of CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The name of a process, as its header has it.
pub fn name(text: &[u8]) -> [u8; 16] {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text);
    name
}

/// An entry of the table of this kind and id.
pub fn entry(kind: u32, id: u32, text: &[u8]) -> Vec<u8> {
    let total = (32 + text.len()).next_multiple_of(8);
    let mut bytes = Vec::new();
    for number in [total as u32, text.len() as u32, id, kind] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(SWITCHES.to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend(text);
    bytes.resize(total, 0);
    bytes
}

/// An event `evil:NAME` with these fields.
pub fn event(id: u32, name: &str, fields: &[u8]) -> Vec<u8> {
    let text = [&[14], &b"evil\0"[..], name.as_bytes(), &[0], fields, &[0]].concat();
    entry(rings::ENTRY_EVENT, id, &text)
}

/// A record of the event `id` in so many words.
pub fn record(id: u16, time: u64, payload: &[u8]) -> Vec<u8> {
    let words = 2 + payload.len().div_ceil(8) as u64;
    let mut bytes = (words | u64::from(id) << 16 | 7 << 32)
        .to_le_bytes()
        .to_vec();
    bytes.extend(time.to_le_bytes());
    bytes.extend(payload);
    bytes.resize(words as usize * 8, 0);
    bytes
}

impl Forged {
    /// One process with one event and a record of it.
    pub fn new() -> Forged {
        let begin_ns = now_ns();
        let records = record(1, begin_ns, &7_u64.to_le_bytes());
        Forged {
            name: name(b"evil"),
            pid: 4242,
            begin_ns,
            rings: 1,
            ring_bytes: 64 << 10,
            table: event(1, "tick", b"\x04i\0"),
            table_bytes: 1 << 16,
            control: Ring {
                head: records.len() as u64,
                ..Ring::default()
            },
            records,
            unregistered: 0,
        }
    }

    /// With these records alone.
    pub fn with_records(mut self, records: Vec<u8>) -> Forged {
        self.control.head = records.len() as u64;
        self.records = records;
        self
    }

    /// Writes the file; what it does not say are holes. It is alive for as long as the file that is
    /// given is open.
    pub fn write(&self, path: &Path) -> File {
        let data = (TABLE + self.table_bytes).next_multiple_of(4096);
        let file_bytes = data + u64::from(self.rings) * self.ring_bytes;
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path);
        let file = file.expect("a file");
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .expect("ours");
        file.set_len(file_bytes).expect("a size");
        rustix::fs::flock(&file, FlockOperation::LockShared).expect("a lock");
        let put = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at).expect("room");
        let word = |at: usize, value: u64| put(at as u64, &value.to_le_bytes());
        let half = |at: usize, value: u32| put(at as u64, &value.to_le_bytes());
        half(offset_of!(Header, version), rings::LAYOUT_VERSION);
        half(offset_of!(Header, pid), self.pid as u32);
        half(offset_of!(Header, clock), rings::CLOCK_MONOTONIC);
        half(offset_of!(Header, rings_length), self.rings);
        half(offset_of!(Header, sets_length), 1);
        word(offset_of!(Header, begin_ns), self.begin_ns);
        word(offset_of!(Header, file_bytes), file_bytes);
        for (at, value) in [
            (offset_of!(Header, controls_offset), CONTROLS),
            (offset_of!(Header, switches_offset), SWITCHES),
            (offset_of!(Header, switches_bytes), AREA_BYTES),
            (offset_of!(Header, filters_offset), FILTERS),
            (offset_of!(Header, filters_bytes), AREA_BYTES),
            (offset_of!(Header, objects_offset), OBJECTS),
            (offset_of!(Header, objects_bytes), AREA_BYTES),
            (offset_of!(Header, table_offset), TABLE),
            (offset_of!(Header, table_bytes), self.table_bytes),
            (offset_of!(Header, table_used), self.table.len() as u64),
            (offset_of!(Header, unregistered), self.unregistered),
            (offset_of!(Header, data_offset), data),
            (offset_of!(Header, ring_bytes), self.ring_bytes),
            (offset_of!(Header, subbuffer_bytes), self.ring_bytes / 16),
        ] {
            word(at, value);
        }
        put(offset_of!(Header, name) as u64, &self.name);
        put(TABLE, &self.table);
        put(data, &self.records);
        for ring in 0..u64::from(self.rings) {
            let at = CONTROLS + ring * size_of::<Ring>() as u64;
            put(
                at + offset_of!(Ring, head) as u64,
                &self.control.head.to_le_bytes(),
            );
            put(
                at + offset_of!(Ring, tail) as u64,
                &self.control.tail.to_le_bytes(),
            );
            let lost = self.control.lost.map(u64::to_le_bytes).concat();
            put(at + offset_of!(Ring, lost) as u64, &lost);
        }
        // Last, as a probe does.
        word(0, rings::MAGIC);
        file
    }

    /// Changes what the controls of its first ring say, in a file that was written.
    pub fn set_control(file: &File, head: u64, lost: u64) {
        let put = |at: usize, value: u64| {
            let written = file.write_all_at(&value.to_le_bytes(), CONTROLS + at as u64);
            written.expect("room");
        };
        put(offset_of!(Ring, lost), lost);
        put(offset_of!(Ring, head), head);
    }
}
