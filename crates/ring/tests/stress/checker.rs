//! Counts every number that writers wrote: each is read once, in order and whole, or it was lost.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ring::{Mode, Record, Records, RingFile, Window, overwritten_before, readable};

/// Writers that have counters: threads, and the handlers above them.
const WRITERS: usize = 8;
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";

/// What the writers say of themselves.
pub struct Counters(File);

impl Counters {
    pub fn create(path: &Path) -> Counters {
        std::fs::write(path, [0; 4096]).expect("the counters' file");
        Counters(File::open(path).expect("the counters"))
    }

    /// Begun and done, of one writer.
    fn of(&self, writer: usize) -> [u64; 2] {
        let mut bytes = [0; 16];
        self.0
            .read_exact_at(&mut bytes, writer as u64 * 16)
            .expect("counters");
        let (begun, done) = bytes.split_at(8);
        [begun, done].map(|half| u64::from_le_bytes(half.try_into().expect("8 bytes")))
    }

    pub fn begun(&self) -> u64 {
        (0..WRITERS).map(|writer| self.of(writer)[0]).sum()
    }

    pub fn done(&self) -> u64 {
        (0..WRITERS).map(|writer| self.of(writer)[1]).sum()
    }
}

/// One ring's progress.
#[derive(Default)]
struct Lane {
    next: u64,
    time: u64,
}

/// What was read so far.
pub struct Checker {
    lanes: Vec<Lane>,
    /// Each event by its time and its place in its ring: the writer and its number.
    read: BTreeMap<(u64, u32, u64), (u32, u64)>,
    read_bytes: u64,
}

impl Checker {
    pub fn new(file: &RingFile) -> Checker {
        let lanes = (0..file.layout().rings).map(|_| Lane::default());
        Checker {
            lanes: lanes.collect(),
            read: BTreeMap::new(),
            read_bytes: 0,
        }
    }

    /// Reads what is new in rings that discard, and makes room.
    pub fn drain(&mut self, file: &RingFile) {
        for ring in 0..file.layout().rings {
            let Some((window, _)) = file.control(ring).expect("a control") else {
                continue;
            };
            let tail = self.lanes[ring as usize].next;
            assert_eq!(window.tail, tail, "only we move the tail");
            let range = readable(file.layout(), Mode::Discard, window).expect("sound offsets");
            let mut bytes = Vec::new();
            file.copy(ring, range.clone(), &mut bytes).expect("data");
            let position = self.add(file, ring, &bytes, range.start);
            assert_eq!(position, range.end, "the head is behind a whole record");
            self.lanes[ring as usize].next = position;
            file.consumed(ring, position).expect("consumed");
        }
    }

    /// Reads all that rings that overwrite keep now; forgets what was read before.
    pub fn read_kept(&mut self, file: &RingFile) {
        self.read.clear();
        self.read_bytes = 0;
        let layout = file.layout().clone();
        for ring in 0..layout.rings {
            let Some((window, _)) = file.control(ring).expect("a control") else {
                continue;
            };
            let range = readable(&layout, Mode::Overwrite, window).expect("sound offsets");
            let mut bytes = Vec::new();
            file.copy(ring, range.clone(), &mut bytes).expect("data");
            let (Window { head, .. }, _) = file.control(ring).expect("a control").expect("a ring");
            let begin = overwritten_before(&layout, head).clamp(range.start, range.end);
            self.lanes[ring as usize].time = 0;
            let kept = &bytes[(begin - range.start) as usize..];
            let position = self.add(file, ring, kept, begin);
            assert_eq!(position, range.end);
            self.read_bytes = self.read_bytes.max(kept.len() as u64);
        }
    }

    /// The bytes of the ring that kept most.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    fn add(&mut self, file: &RingFile, ring: u32, bytes: &[u8], base: u64) -> u64 {
        let lane = &mut self.lanes[ring as usize];
        let mut records = Records::new(bytes, base, file.layout().subbuffer_bytes, lane.time);
        while let Some(record) = records.next() {
            let place = records.position();
            let event = whole(file, record);
            self.read.insert((record.time, ring, place), event);
        }
        assert_eq!(records.malformed(), 0, "a torn record, or time that falls");
        lane.time = records.time_max();
        records.position()
    }

    /// Each writer's numbers rise with time and stay below what it has begun; returns how many
    /// were read.
    pub fn check(&self, counters: &Counters) -> u64 {
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        for ((time, ..), (writer, number)) in &self.read {
            let before = last.insert(*writer, *number);
            assert!(
                before < Some(*number),
                "{writer}: {number} after {before:?} at {time}"
            );
            let [begun, _] = counters.of(*writer as usize);
            assert!(*number < begun, "{writer}: {number} was never begun");
        }
        self.read.len() as u64
    }

    pub fn lost(&self, file: &RingFile) -> u64 {
        let controls =
            (0..file.layout().rings).filter_map(|ring| file.control(ring).expect("a control"));
        controls.map(|(_, losses)| losses.iter().sum::<u64>()).sum()
    }
}

/// The writer and the number of a record, which must be as the writer meant it to be.
fn whole(file: &RingFile, record: Record<'_>) -> (u32, u64) {
    let event = file
        .table()
        .events
        .iter()
        .find(|event| event.id == record.id);
    let event = event.expect("an id of the table");
    let mut fields: Vec<&[u8]> = Vec::new();
    assert!(
        event.split(record.payload, |_, bytes| fields.push(bytes)),
        "{record:?}"
    );
    let number = u64::from_le_bytes(fields[1].try_into().expect("8 bytes"));
    let writer = u32::from_le_bytes(fields[0].try_into().expect("4 bytes"));
    let expect = match event.name.as_str() {
        "fixed" => (!number).wrapping_mul(31).to_le_bytes().to_vec(),
        _ => {
            let from = (number % 26) as usize;
            LETTERS[from..from + (number % 23) as usize].to_vec()
        }
    };
    assert_eq!(fields[2], expect, "{record:?}");
    assert_eq!(number % 2 == 1, event.name == "fixed");
    (writer, number)
}
